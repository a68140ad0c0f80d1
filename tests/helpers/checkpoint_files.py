"""Reading, changing and writing the golden checkpoints, without albert_tf."""

import functools
import json
import pathlib
import shutil

import numpy as np
import tensorflow as tf
from numpy_reference import randomize

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
LAYOUT_OF = dict.fromkeys(("albert_zh_postln", "albert_zh_preln"), "albert_zh")
LAYOUT_OF |= dict.fromkeys(("google_early", "google_groups", "google_v2"), "google")
NAMES = tuple(LAYOUT_OF)
# A vocabulary of the size of the golden checkpoints.
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TOKENS += [chr(0x4E00 + i) for i in range(115)]


def expected(name):
    """Return what the original graph computed, by name of the array."""
    return dict(np.load(GOLDEN / name / "expected.npz"))


def backbone_inputs(arrays):
    names = ("input_ids", "segment_ids", "input_mask")
    ids, segments, mask = (arrays[name] for name in names)
    return {"token_ids": ids, "segment_ids": segments, "padding_mask": mask}


def assert_golden(backbone, name="google_v2"):
    """Assert that a backbone computes what the original graph did."""
    arrays = expected(name)
    outputs = backbone(backbone_inputs(arrays))
    for output in outputs:
        assert_near(outputs[output], arrays[output])


def assert_golden_heads(pretrainer, name):
    """Assert the same for both heads of a pretrainer."""
    arrays = expected(name)
    inputs = backbone_inputs(arrays)
    heads = pretrainer({**inputs, "mask_positions": arrays["masked_lm_positions"]})
    words, order = arrays["mlm_log_probs"], arrays["sop_log_probs"]
    assert_near(np.reshape(log_softmax(heads["mlm_logits"]), words.shape), words, 5e-5)
    assert_near(log_softmax(heads["sop_logits"]), order, 5e-5)


def assert_near(a, b, tolerance=1e-5):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    assert np.abs(a - b).max() < tolerance


def assert_same_weights(one, other):
    for a, b in zip(one.weights, other.weights, strict=True):
        assert a.path == b.path
        assert np.array_equal(a.numpy(), b.numpy()), a.path


filled = functools.partial(randomize, spread=1.0)


def log_softmax(x):
    x = np.asarray(x, "float64")
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def config_of(name):
    return json.loads((GOLDEN / name / "albert_config.json").read_text())


def read(prefix):
    """Return every tensor of a checkpoint, as {name: array}."""
    reader = tf.train.load_checkpoint(str(prefix))
    return {x: reader.get_tensor(x) for x in reader.get_variable_to_shape_map()}


def weights_of(name):
    """Return the golden tensors without optimizer slots and step."""
    skipped = ("/adam_m", "/adam_v", "global_step")
    tensors = read(GOLDEN / name / "model.ckpt-best")
    return {x: array for x, array in tensors.items() if not x.endswith(skipped)}


def write(directory, tensors, config=None, prefix="model.ckpt"):
    """Write a checkpoint, and its config unless it is `None`."""
    directory.mkdir(parents=True, exist_ok=True)
    tf.raw_ops.SaveV2(
        prefix=str(directory / prefix),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=[tf.convert_to_tensor(array) for array in tensors.values()],
    )
    if config is not None:
        (directory / "albert_config.json").write_text(json.dumps(config))
    return directory


def write_module(folder, tensors, config):
    """Write a TF-Hub module of TensorFlow 1: a graph, its variables and assets."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for name, values in tensors.items():
            tf.compat.v1.get_variable(f"module/{name}", initializer=values)
        session.run(tf.compat.v1.global_variables_initializer())
        builder = tf.compat.v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(session, [])
        builder.save()
    (folder / "assets").mkdir()
    (folder / "assets" / "albert_config.json").write_text(json.dumps(config))
    return folder


def copy(name, directory):
    return pathlib.Path(shutil.copytree(GOLDEN / name, directory / name))
