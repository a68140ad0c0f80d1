"""Checkpoints on the Hugging Face Hub: `hf://user/name`."""

import functools
import pathlib

from albert_tf_lite.errors import MissingPackageError

HUB = "hf://"
# Every form we read; of others' weights (Flax, ONNX, TensorFlow 2) nothing.
_FILES = [
    "*.json",
    "*.txt",
    "*.model",
    "*.safetensors",
    "*.keras",
    "model.weights*.h5",
    "task.weights.h5",
    "*.index",
    "*.data-*-of-*",
    "assets/**",
]
_WEIGHTS = ("*.safetensors", "*.h5", "*.keras", "*.index")


def is_on_hub(path):
    """Whether a path names a repository of the Hub."""
    return isinstance(path, str) and path.startswith(HUB)


def fetch_from_hub(path):
    """Fetch a repository unless it was fetched before.

    `huggingface_hub` does it: its cache, its retries, and `HF_ENDPOINT`, the address
    of a mirror where the Hub itself cannot be reached.

    Args:
        path: string, `"hf://user/name"` or `"hf://user/name@revision"`.

    Returns:
        The folder, a `pathlib.Path`.
    """
    try:
        import huggingface_hub
    except ImportError as error:
        raise MissingPackageError(
            f"{path} is fetched by huggingface_hub. Run: pip install 'albert-tf[hf]'"
        ) from error
    name, _, revision = path.removeprefix(HUB).partition("@")

    fetch = functools.partial(
        huggingface_hub.snapshot_download, name, revision=revision or None
    )
    folder = pathlib.Path(fetch(allow_patterns=_FILES))
    # A repository often has its weights in two forms: this one only if it must be.
    if not _has_weights(folder):
        fetch(allow_patterns=["pytorch_model*.bin"])
    return folder


def kept_of_hub(name):
    """The folder of a repository that was fetched before, `None` if it was not."""
    try:
        import huggingface_hub
    except ImportError:
        return None
    try:
        folder = huggingface_hub.snapshot_download(name, local_files_only=True)
    except OSError:
        return None
    folder = pathlib.Path(folder)
    kept = _has_weights(folder) or any(folder.glob("pytorch_model*.bin"))
    return folder if kept else None


def _has_weights(folder):
    return any(file for pattern in _WEIGHTS for file in folder.glob(pattern))
