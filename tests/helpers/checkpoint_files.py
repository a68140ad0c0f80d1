"""Reading, changing and writing the golden checkpoints, without albert_tf."""

import json
import pathlib
import shutil

import numpy as np
import tensorflow as tf

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
NAMES = (
    "albert_zh_postln",
    "albert_zh_preln",
    "google_early",
    "google_groups",
    "google_v2",
)
LAYOUT_OF = {name: name.rsplit("_", 1)[0] for name in NAMES}
LAYOUT_OF.update(google_early="google", google_groups="google", google_v2="google")


def expected(name):
    return dict(np.load(GOLDEN / name / "expected.npz"))


def backbone_inputs(arrays):
    return {
        "token_ids": arrays["input_ids"],
        "segment_ids": arrays["segment_ids"],
        "padding_mask": arrays["input_mask"],
    }


def config_of(name):
    return json.loads((GOLDEN / name / "albert_config.json").read_text())


def read(prefix):
    """Every tensor of a checkpoint, as {name: array}."""
    reader = tf.train.load_checkpoint(str(prefix))
    return {
        name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()
    }


def is_weight(name):
    return not name.endswith(("/adam_m", "/adam_v")) and name != "global_step"


def weights_of(name):
    """The golden tensors without optimizer slots and step."""
    tensors = read(GOLDEN / name / "model.ckpt-best")
    return {name: array for name, array in tensors.items() if is_weight(name)}


def write(directory, tensors, config, prefix="model.ckpt"):
    directory.mkdir(parents=True, exist_ok=True)
    tf.raw_ops.SaveV2(
        prefix=str(directory / prefix),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=[np.ascontiguousarray(array) for array in tensors.values()],
    )
    (directory / "albert_config.json").write_text(json.dumps(config))
    return directory


def copy(name, directory):
    return pathlib.Path(shutil.copytree(GOLDEN / name, directory / name))
