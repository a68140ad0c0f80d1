"""Opening, inspecting and loading checkpoints, by a path or a name."""

import collections
import contextlib
import dataclasses
import math
import os
import pathlib
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import keras
import numpy as np

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints import download
from albert_tf.checkpoints.checkpoint import Checkpoint, Config
from albert_tf.checkpoints.formats import (
    Files,
    bundle,
    huggingface,
    keras_model,
    torch_files,
)
from albert_tf.checkpoints.heads import HEADS
from albert_tf.checkpoints.layout import (
    ENCODER_PARTS,
    CheckpointError,
    exported_model_error,
    float32_of,
)
from albert_tf.checkpoints.named_heads import head_prefix
from albert_tf.checkpoints.releases import RELEASES
from albert_tf.files import HUB, find_bundled, split_head
from albert_tf.layers.arguments import suggest_arguments
from albert_tf_lite.errors import AlbertError

CheckpointPath: TypeAlias = str | os.PathLike | keras.Model

# Arguments of tasks, which a backbone does not take.
_OF_TASKS = (
    "head",
    "labels",
    "lowercase",
    "num_classes",
    "precision",
    "preprocessor",
    "sequence_length",
    "tokenizer",
    "vocabulary",
)
_FORMATS: tuple[Any, ...] = (bundle, huggingface, keras_model)


def open_checkpoint(
    path: CheckpointPath | Checkpoint,
    config: Config | None = None,
    *,
    head: str | None = None,
) -> Checkpoint:
    """Open a checkpoint without building a model.

    Args:
        path: string: a directory, an archive (.tar.gz, .zip), a prefix, or any file of
            the checkpoint; the name of a release; `"hf://user/name"` on the Hugging
            Face Hub; or a Keras model. An open checkpoint is returned.
        config: optional path of the config file, or dict of its fields. By default the
            one beside the checkpoint.
        head: optional string, one of several named heads, which `path` may also name:
            `"my_model:entities"`. It is then the only head of the checkpoint.

    Returns:
        A `Checkpoint`.

    Raises:
        FileNotFoundError: if a file of the checkpoint or its config is missing.
        CheckpointError: if the index or the config is damaged or of unknown form, or
            the head is missing or incomplete.
        AlbertError: if `path` and `head` name different heads.

    Example:
    ```python
    checkpoint = albert_tf.checkpoints.open_checkpoint("albert_micro_zh")
    checkpoint.arguments["num_layers"]
    ```
    """
    if isinstance(path, Checkpoint):
        opened, named = path, path.head
    elif isinstance(path, keras.Model):
        opened = Checkpoint(keras_model.open_files(path), config)
        named = None
    else:
        path, named = split_head(path)
        opened = _open_path(path, config)
    if named and head and named != head:
        raise AlbertError(
            f"{path} names the head {named}, and `head=` is {head!r}. Pass one of them."
        )
    head = head or named
    return opened if head == opened.head else opened.with_head(str(head))


def _open_path(name: str | os.PathLike, config: Config | None) -> Checkpoint:
    path = find_bundled(name) or name
    if str(path).startswith(HUB):
        path = download.fetch_from_hub(str(path))
    path = pathlib.Path(path)
    if path.name.endswith(download.ARCHIVES) and path.is_file():
        return _open_archive(path, config)
    return Checkpoint(_open_files(path), config, name)


def _open_archive(path: pathlib.Path, config: Config | None) -> Checkpoint:
    """Open the checkpoint in an archive; messages name the archive."""
    # Removed with the last reference, which `read` has.
    unpacked = tempfile.TemporaryDirectory(
        prefix="albert_tf_", ignore_cleanup_errors=True
    )
    folder = pathlib.Path(unpacked.name)

    @contextlib.contextmanager
    def name_archive() -> Iterator[None]:
        try:
            yield
        except (AlbertError, FileNotFoundError) as error:
            message = str(error).replace(unpacked.name, str(path))
            raise type(error)(message) from None

    download.unpack(path, folder)
    with name_archive():
        files = _open_folder(folder)
        inside = path / files.path.relative_to(folder)
        read = name_archive()(files.read)
        files = dataclasses.replace(files, path=inside, read=read)
        return Checkpoint(files, config, path)


def _open_files(path: pathlib.Path) -> Files:
    """Open a folder, a file or a release by its format."""
    name = str(path)
    if path.is_dir():
        return _open_folder(path)
    if name.endswith(".keras"):
        return keras_model.open_files(path)
    if _is_of_torch(path):
        return huggingface.open_files(path)
    if path.suffix in (".onnx", ".tflite"):
        raise exported_model_error(path, "an exported file")
    # Another file beside the weights names its folder.
    if path.is_file() and not bundle.FILE_ENDING.search(name):
        inside = path.parent.name in ("assets", "variables")
        return _open_folder(path.parent.parent if inside else path.parent)
    if name in RELEASES and not path.with_name(f"{path.name}.index").exists():
        return _open_folder(download.download_release(name))
    return bundle.open_files(path)


def _is_of_torch(path: pathlib.Path) -> bool:
    """Return whether a path is that of weights of PyTorch, or of their index."""
    if path.suffix in (".safetensors", ".bin") or torch_files.is_index(path):
        return True
    # The prefix of a TensorFlow checkpoint may end in .ckpt, too.
    is_prefix = path.with_name(f"{path.name}.index").exists()
    return path.suffix in torch_files.PICKLES and path.is_file() and not is_prefix


def _open_folder(folder: pathlib.Path) -> Files:
    # Archives often hold a folder, perhaps in another one. The variables of a module
    # are found from both folders above them.
    below = sorted((*folder.glob("*/"), *folder.glob("*/*/")))
    places = _find(folder)
    if not places:
        for inner in below:
            places += [place for place in _find(inner) if place not in places]
    if not places:
        raise FileNotFoundError(
            f"There is no checkpoint in {folder}. Expected an *.index file of "
            "TensorFlow, model.safetensors, pytorch_model.bin or a preset of Keras. "
            f"Found: {sorted(file.name for file in folder.iterdir())[:10]}."
            f"{download.interruption_hint(folder)}"
        )
    if len(places) > 1:
        names = [str(path.relative_to(folder)) for _, path in places]
        raise CheckpointError(
            f"{folder} holds {len(places)} checkpoints: {names}. Choose one, for "
            f"example {places[-1][1]}"
        )
    ((format_, path),) = places
    return format_.open_files(path)


def _find(folder: pathlib.Path) -> list[tuple[Any, pathlib.Path]]:
    """Return the format and path of each checkpoint in a folder."""
    return [(format_, path) for format_ in _FORMATS for path in format_.find(folder)]


# === Loading ===


@suggest_arguments(*_OF_TASKS, owner="`from_checkpoint` of the tasks")
def load_checkpoint(
    path: CheckpointPath,
    config: Config | None = None,
    dtype: str | keras.DTypePolicy | None = None,
    pooler: bool = True,
) -> AlbertBackbone:
    """Load the encoder of a checkpoint of any form.

    Reads TF1 checkpoints of google-research/albert and brightmart/albert_zh
    (post-LN and pre-LN) and Google's TF-Hub modules, Hugging Face directories,
    KerasHub's presets and models, and `.keras` files and presets of this package.
    The form is found from the files and variable names.

    Args:
        path: string: a directory, an archive (.tar.gz, .zip), a prefix, or any file of
            the checkpoint; the name of a release in `albert_tf.checkpoints.RELEASES`,
            which is downloaded once; `"albert_micro_zh"`, which comes with the package;
            `"hf://user/name"` on the Hugging Face Hub; or a
            Keras model. `"my_model:entities"` names one of several heads, which
            `from_checkpoint` of tasks reads.
        config: optional path of the config file, or dict of its fields. By
            default the one beside the checkpoint.
        dtype: optional string or `keras.DTypePolicy` to compute in.
        pooler: bool. Pass `False` for a checkpoint without pooler: the model then has
            no `pooled_output`.

    Returns:
        An `AlbertBackbone` whose every weight came from the file.

    Raises:
        FileNotFoundError: if a file of the checkpoint or its config is missing.
        CheckpointError: if the file is damaged, of an unknown layout, of other sizes
            than its config, or if a weight is missing or has no place in the model.
        OSError: if a release cannot be downloaded.

    Example:
    ```python
    backbone = albert_tf.load_checkpoint("albert_micro_zh")
    ```
    """
    checkpoint = open_checkpoint(path, config=config)
    backbone = checkpoint.build_backbone(dtype=dtype, pooler=pooler)
    checkpoint.load_into(backbone)
    return backbone


# === Inspecting ===


@dataclasses.dataclass(frozen=True)
class CheckpointReport:
    """The result of `inspect_checkpoint`."""

    path: str  # The prefix of the checkpoint, or the file or folder.
    layout: str  # "google", "albert_zh", "huggingface", "kerashub" or "keras".
    config: dict[str, Any]  # The fields of the config file.
    release: str | None  # The release with the same `.index` file.
    vocabulary: str | None  # The path of the vocabulary.
    parameters: int  # Numbers in the encoder and the pooler.
    dtypes: dict[str, int]  # Bytes of encoder, pooler and heads by type.
    heads: list[str]  # The complete heads, by their names in `heads.HEADS`.
    # The tensors that the file lacks of other heads, by head.
    incomplete_heads: dict[str, list[str]]
    # By name its `head` (as in `heads`; `None` if it is incomplete), and the number of
    # classes, labels and pooling mode that it has.
    named_heads: dict[str, dict[str, Any]]
    num_classes: int | None  # The classes of a task's head.
    missing: list[str]  # Encoder tensors that the file lacks.
    damaged: list[str]  # Tensors that cannot be read or are not finite.
    unused: list[str]  # Tensors that belong to nothing known.
    optimizer_slots: list[str]
    training_state: list[str]  # Averages, gradients, the scale of the loss.
    other: list[str]  # The step counter, tied copies, heads of other tasks.


def inspect_checkpoint(
    path: CheckpointPath, config: Config | None = None
) -> CheckpointReport:
    """Report the contents of a checkpoint, without building the model.

    Reads the data of every weight to find damage.

    Args:
        path: string: a directory, an archive (.tar.gz, .zip), a prefix, or any file of
            the checkpoint; the name of a release; `"hf://user/name"` on the Hugging
            Face Hub; or a Keras model.
        config: optional path of the config file, or dict of its fields. By default the
            one beside the checkpoint.

    Returns:
        A `CheckpointReport`.

    Raises:
        FileNotFoundError: if a file of the checkpoint or its config is missing.
        CheckpointError: if the index or the config is damaged or of unknown form.

    Example:
    ```python
    report = albert_tf.inspect_checkpoint("albert_micro_zh")
    report.missing, report.parameters
    ```
    """
    checkpoint = open_checkpoint(path, config=config)
    shapes, heads, layout = checkpoint.shapes, checkpoint.heads, checkpoint.layout
    vocabulary = checkpoint.vocabulary
    backbone = layout.names((*ENCODER_PARTS, "pooler"), checkpoint.arguments)
    known = [*backbone, *layout.names(heads)]
    # The tensors that are not of the backbone, by kind.
    kinds = layout.kinds(shapes, backbone)
    unused = kinds.get(None, [])
    slots = kinds.get("optimizer", [])
    state = kinds.get("training state", []) + kinds.get("average", [])
    # Also the rest of heads that are not complete.
    other = sorted(set(shapes) - {*known, *unused, *slots, *state})
    class_counts = [
        checkpoint.num_classes(part) for part in heads if HEADS[part].fields
    ]
    damaged, dtypes = _read_all(checkpoint, known)
    named = {}
    for name in checkpoint.named_heads:
        prefix = head_prefix(layout, name)
        head = _inspect_head(checkpoint, name)
        named[name] = head.row
        damaged += [prefix + tensor for tensor in head.damaged]
        dtypes += head.dtypes
        other += [prefix + tensor for tensor in head.other]
    return CheckpointReport(
        path=str(checkpoint.path),
        layout=layout.name,
        config=dict(checkpoint.config),
        release=checkpoint.release.name if checkpoint.release else None,
        vocabulary=None if vocabulary is None else str(vocabulary),
        parameters=sum(math.prod(shapes.get(name, [0])) for name in backbone),
        dtypes=dict(dtypes),
        heads=heads,
        incomplete_heads=checkpoint.incomplete_heads,
        named_heads=named,
        num_classes=class_counts[0] if class_counts else None,
        missing=sorted(set(backbone) - set(shapes)),
        damaged=damaged,
        unused=unused,
        optimizer_slots=slots,
        training_state=sorted(state),
        other=other,
    )


def _read_all(
    checkpoint: Checkpoint, names: Iterable[str]
) -> tuple[list[str], collections.Counter[str]]:
    """Return the tensors that are damaged, and the number of bytes by type."""
    damaged, dtypes = [], collections.Counter[str]()
    for name in names:
        if name not in checkpoint.shapes:
            continue
        try:
            stored = np.asarray(checkpoint.read_stored(name))
            dtypes[stored.dtype.name] += stored.nbytes
            # Only models of ours may be quantized.
            if checkpoint.model is None or stored.dtype.kind != "i":
                float32_of(stored, name, checkpoint.path)
        except CheckpointError:
            damaged.append(name)
    return damaged, dtypes


class _NamedHead(NamedTuple):
    """The contents of a named head; tensors by their names without prefix."""

    row: dict[str, Any]  # In `CheckpointReport.named_heads`.
    damaged: list[str]
    dtypes: collections.Counter[str]  # Bytes by type.
    other: list[str]


def _inspect_head(checkpoint: Checkpoint, name: str) -> _NamedHead:
    """Return the contents of a named head."""
    try:
        view = checkpoint.with_head(name)
    except CheckpointError:
        return _NamedHead({"head": None}, [], collections.Counter(), [])
    part = view.heads[0]
    known = view.layout.names(view.heads)
    fields = view.head_config(part)
    row = {
        "head": part,
        "num_classes": view.num_classes(part),
        "labels": fields.get("labels") or fields.get("tags"),
        "pooling_mode": fields.get("pooling_mode"),
    }
    damaged, dtypes = _read_all(view, known)
    other = sorted(set(view.shapes) - set(checkpoint.shapes) - set(known))
    return _NamedHead(row, damaged, dtypes, other)
