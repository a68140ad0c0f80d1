"""Upload presets to a hub."""

import os
import pathlib

import keras_hub

from albert_tf.checkpoints.download import HUB
from albert_tf.files import CARD
from albert_tf_lite.errors import import_extra


def upload_preset(uri: str, preset: str | os.PathLike) -> None:
    """Upload a preset with its model card.

    This calls `keras_hub.upload_preset`, which overwrites the `README.md` of a preset
    with a short one, and deletes it after the upload, if the repository on the Hugging
    Face Hub has none. Therefore the model card is uploaded first.

    Args:
        uri: string, such as `"hf://user/name"` or
            `"kaggle://user/model/keras/variation"`.
        preset: path of the directory.

    Raises:
        ImportError: if the package of the hub is not installed.
        FileNotFoundError: if `preset` is not a preset.

    Example:
    ```python
    classifier.save_to_preset("my_model")
    albert_tf.upload_preset("hf://user/my_model", "my_model")
    ```
    """
    card, config = (pathlib.Path(preset, name) for name in (CARD, "config.json"))
    if uri.startswith(HUB) and card.is_file() and config.is_file():
        hub = import_extra("huggingface_hub")
        repository = hub.create_repo(repo_id=uri.removeprefix(HUB), exist_ok=True)
        hub.upload_file(
            path_or_fileobj=card, path_in_repo=CARD, repo_id=repository.repo_id
        )
    keras_hub.upload_preset(uri, str(preset))
