"""Forms besides a folder of TF1 files: heads of tasks, modules, archives, releases."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from checkpoint_files import (
    GOLDEN,
    backbone_inputs,
    config_of,
    copy,
    expected,
    weights_of,
    write,
)

import albert_tf
from albert_tf.checkpoints import CheckpointError, open_checkpoint
from albert_tf.conversion import convert_checkpoint
from albert_tf.models import AlbertPretrainer, AlbertTextClassifier

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TOKENS += [chr(0x4E00 + i) for i in range(115)]


# === A fine-tuned classification head ===


def fine_tuned(folder, scope="", classes=3, name="google_v2"):
    """A golden encoder with a random head, as `run_classifier.py` saves it."""
    random = np.random.default_rng(4)
    head = {
        f"{scope}output_weights": random.normal(size=(classes, 48)).astype("float32"),
        f"{scope}output_bias": random.normal(size=classes).astype("float32"),
    }
    tensors = weights_of(name)
    encoder = {x: y for x, y in tensors.items() if not x.startswith("cls/")}
    slots = {f"{x}/adam_m": np.zeros_like(y) for x, y in head.items()}
    write(folder, {**encoder, **head, **slots}, config_of(name))
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    return head


@pytest.mark.parametrize(
    ("name", "scope"),
    [("google_v2", ""), ("albert_zh_preln", "loss/")],
)
def test_a_fine_tuned_checkpoint_answers_at_once(tmp_path, scope, name):
    head = fine_tuned(tmp_path, scope, name=name)
    classifier = AlbertTextClassifier.from_checkpoint(tmp_path)
    assert classifier.num_classes == 3
    arrays = expected(name)
    logits = classifier(backbone_inputs(arrays))
    weights, bias = head.values()
    by_hand = arrays["pooled_output"] @ weights.T + bias
    assert np.abs(logits - by_hand).max() < 1e-4
    assert classifier.predict([chr(0x4E00) * 3]).shape == (1, 3)


def test_another_number_of_classes_begins_anew_and_says_so(tmp_path):
    fine_tuned(tmp_path)
    report = albert_tf.inspect_checkpoint(tmp_path)
    assert (report.heads, report.num_classes) == (["classifier"], 3)
    with pytest.warns(UserWarning, match="has 3 classes, not 2"):
        classifier = AlbertTextClassifier.from_checkpoint(tmp_path, num_classes=2)
    assert classifier.num_classes == 2
    assert classifier.output_dense.kernel.numpy().std() > 0


def test_without_a_head_the_classes_must_be_given(tmp_path):
    folder = copy("google_v2", tmp_path)
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no classification head. Give `num_classes=`"):
        AlbertTextClassifier.from_checkpoint(folder)


def test_all_heads_travel_together(tmp_path):
    tensors = weights_of("google_v2")
    tensors["output_weights"] = np.ones((2, 48), "float32")
    tensors["output_bias"] = np.ones(2, "float32")
    write(tmp_path / "all", tensors, config_of("google_v2"))
    done = convert_checkpoint(tmp_path / "all", tmp_path / "hf", "huggingface")
    assert done.left_out == []
    report = albert_tf.inspect_checkpoint(tmp_path / "hf")
    assert report.heads == ["masked_lm_head", "sop_head", "classifier"]


def test_half_a_head_is_refused(tmp_path):
    kept = "output_bias"
    head = fine_tuned(tmp_path / "whole")
    tensors = {**weights_of("google_v2"), kept: head[kept]}
    folder = write(tmp_path / "half", tensors, config_of("google_v2"))
    with pytest.raises(CheckpointError, match="a part of the classifier only"):
        AlbertTextClassifier.from_checkpoint(folder, num_classes=3, vocabulary=TOKENS)


# === Without sentence order, without pooler ===


def masked_only(folder, pooler=True):
    left_out = ("cls/seq_relationship",) + (() if pooler else ("bert/pooler",))
    tensors = weights_of("google_v2")
    tensors = {x: y for x, y in tensors.items() if not x.startswith(left_out)}
    return write(folder, tensors, config_of("google_v2"))


@pytest.mark.parametrize("pooler", [True, False])
def test_a_checkpoint_without_sentence_order(tmp_path, pooler):
    model = AlbertPretrainer.from_checkpoint(masked_only(tmp_path / "tf1", pooler))
    assert list(model.output) == ["mlm_logits"]
    assert (model.backbone.pooled_dense is not None) is pooler
    arrays = expected("google_v2")
    inputs = backbone_inputs(arrays)
    logits = model({**inputs, "mask_positions": arrays["masked_lm_positions"]})
    whole = AlbertPretrainer.from_checkpoint(GOLDEN / "google_v2")
    expected_logits = whole({**inputs, "mask_positions": arrays["masked_lm_positions"]})
    assert np.array_equal(logits["mlm_logits"], expected_logits["mlm_logits"])
    albert_tf.save_checkpoint(model, tmp_path / "hf", "huggingface")
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert config["architectures"] == ["AlbertForMaskedLM"]


def test_a_backbone_without_pooler_has_to_be_asked_for(tmp_path):
    folder = masked_only(tmp_path, pooler=False)
    with pytest.raises(CheckpointError, match="loads with `pooler=False`"):
        albert_tf.load_checkpoint(folder)
    backbone = albert_tf.load_checkpoint(folder, pooler=False)
    arrays = expected("google_v2")
    outputs = backbone(backbone_inputs(arrays))
    assert list(outputs) == ["sequence_output"]
    assert np.abs(outputs["sequence_output"] - arrays["sequence_output"]).max() < 1e-5


# === TF-Hub modules and archives ===


def hub_module(folder, name="google_v2"):
    """A TF1 SavedModel with the variables of a golden checkpoint in a scope."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for tensor, values in weights_of(name).items():
            if not tensor.startswith("cls/seq_relationship"):
                tf.compat.v1.get_variable(f"module/{tensor}", initializer=values)
        session.run(tf.compat.v1.global_variables_initializer())
        builder = tf.compat.v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(session, [])
        builder.save()
    (folder / "assets").mkdir()
    config = json.dumps(config_of(name))
    (folder / "assets" / "albert_config.json").write_text(config)
    return folder


def test_a_module_of_tf_hub(tmp_path):
    folder = hub_module(tmp_path / "module")
    backbone = albert_tf.load_checkpoint(folder)
    arrays = expected("google_v2")
    outputs = backbone(backbone_inputs(arrays))
    assert np.abs(outputs["pooled_output"] - arrays["pooled_output"]).max() < 1e-5
    for part in ("", "saved_model.pb", "variables/variables.index"):
        assert albert_tf.inspect_checkpoint(folder / part).heads == ["masked_lm_head"]


@pytest.mark.parametrize(
    ("kind", "inside"),
    [
        ("zip", "albert_tiny"),
        ("gztar", ""),
        pytest.param("tar", "albert_tiny", marks=pytest.mark.slow),
    ],
)
def test_an_archive_as_released(tmp_path, kind, inside):
    copy("albert_zh_postln", tmp_path / "files" / inside)
    path = shutil.make_archive(tmp_path / "release", kind, tmp_path / "files")
    backbone = albert_tf.load_checkpoint(path)
    original = albert_tf.load_checkpoint(GOLDEN / "albert_zh_postln")
    for a, b in zip(backbone.weights, original.weights, strict=True):
        assert np.array_equal(a.numpy(), b.numpy())


def test_an_archive_of_a_module_and_of_a_preset(tmp_path):
    hub_module(tmp_path / "files" / "module")
    path = shutil.make_archive(tmp_path / "release", "gztar", tmp_path / "files")
    albert_tf.load_checkpoint(path)
    convert_checkpoint(path, tmp_path / "preset", "keras")
    path = shutil.make_archive(tmp_path / "preset", "zip", tmp_path / "preset")
    assert open_checkpoint(path).layout.name == "keras"


# === A sentence-order head of another kind ===


def test_a_new_sentence_order_head_is_told(tmp_path):
    classes = 3
    masked_only(tmp_path / "no_pooler", False)
    with pytest.raises(CheckpointError, match="bert/pooler"):
        AlbertPretrainer.from_checkpoint(
            tmp_path / "no_pooler", num_sop_classes=classes
        )
    tmp_path = masked_only(tmp_path / "pooler")
    with pytest.warns(UserWarning, match=f"has 0 classes, not {classes}"):
        model = AlbertPretrainer.from_checkpoint(tmp_path, num_sop_classes=classes)
    assert model.sop_head.kernel.shape == (48, classes)
    assert model.sop_head.kernel.numpy().std() > 0.01
    without = AlbertPretrainer.from_checkpoint(tmp_path)
    for first, second in zip(
        without.masked_lm_head.weights, model.masked_lm_head.weights, strict=True
    ):
        assert np.array_equal(first, second)


def test_without_its_sentence_order_head(tmp_path):
    folder = copy("google_v2", tmp_path)
    model = AlbertPretrainer.from_checkpoint(folder, num_sop_classes=0)
    assert model.sop_head is None and list(model.output) == ["mlm_logits"]
