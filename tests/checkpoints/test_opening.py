"""Every way to name a checkpoint, and every form it may have."""

import json
import shutil

import keras
import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from checkpoint_files import (
    GOLDEN,
    TOKENS,
    assert_golden,
    assert_same_weights,
    backbone_inputs,
    config_of,
    copy,
    expected,
    weights_of,
    write,
    write_module,
)

from albert_tf import convert_checkpoint
from albert_tf.checkpoints import (
    CheckpointError,
    inspect_checkpoint,
    load_checkpoint,
    open_checkpoint,
    save_checkpoint,
)
from albert_tf.models import AlbertPretrainer, AlbertTextClassifier

PREFIX = "model.ckpt-best"
ENDINGS = (".index", ".data-00000-of-00001")


# === Paths ===


def test_folder_prefix_and_files(tmp_path, monkeypatch):
    folder = GOLDEN / "google_v2"
    for name in ("", PREFIX, *(f"{PREFIX}{x}" for x in (*ENDINGS, ".meta"))):
        assert open_checkpoint(folder / name).path == folder / PREFIX
        assert open_checkpoint(str(folder / name)).path == folder / PREFIX
    monkeypatch.chdir(GOLDEN / "albert_zh_postln")
    for relative in (".", f"{PREFIX}.index"):
        opened = open_checkpoint(relative)
        assert opened.layout.name == "albert_zh"
    assert open_checkpoint(opened) is opened
    for missing in ("nowhere", "model.ckpt.index"):
        with pytest.raises(FileNotFoundError, match=r"no checkpoint at .*\.index does"):
            load_checkpoint(tmp_path / missing)


def test_odd_names_of_folders_and_files(tmp_path):
    name = "中文 模型 (1)"
    folder = copy("google_v2", tmp_path).rename(tmp_path / name)
    for ending in ENDINGS:
        (folder / f"{PREFIX}{ending}").rename(folder / f"{name}{ending}")
    for path in (folder, folder / name):
        assert_golden(load_checkpoint(path))


def test_two_checkpoints_in_a_folder(tmp_path):
    """One must be named, by the user or by TensorFlow's file `checkpoint`."""
    folder = copy("google_v2", tmp_path)
    latest = folder / "checkpoint"
    latest.write_text('model_checkpoint_path: "/data/model.ckpt-7"\n')
    assert open_checkpoint(folder).path == folder / PREFIX
    for ending in ENDINGS:
        shutil.copy(folder / f"{PREFIX}{ending}", folder / f"model.ckpt-7{ending}")
    assert open_checkpoint(folder).path.name == "model.ckpt-7"
    latest.write_text('model_checkpoint_path: "model.ckpt-9"\n')
    message = "2 checkpoints.*model.ckpt-7.*model.ckpt-best.*Choose one"
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder)
    assert open_checkpoint(folder / "model.ckpt-7").path.name == "model.ckpt-7"


# === Configs ===


def test_a_config_beside_the_checkpoint_or_given(tmp_path):
    folder = copy("google_v2", tmp_path)
    config = config_of("google_v2")
    (folder / "albert_config.json").rename(folder / "bert_config.json")
    assert open_checkpoint(folder).config == config
    shutil.copy(folder / "bert_config.json", folder / "bert_config_2.json")
    with pytest.raises(CheckpointError, match="several config.*bert_config_2"):
        load_checkpoint(folder)
    relu = {**config, "hidden_act": "relu"}
    (tmp_path / "mine.json").write_text(json.dumps(relu))
    for given in (relu, tmp_path / "mine.json"):
        backbone = load_checkpoint(folder, config=given)
        assert backbone.activation is keras.activations.relu


def test_old_configs_without_fields_have_the_defaults_of_the_original():
    config = config_of("google_v2")
    added_later = ("hidden_act", "num_hidden_groups", "inner_group_num")
    for field in (*added_later, "hidden_dropout_prob", "attention_probs_dropout_prob"):
        del config[field]
    assert_golden(load_checkpoint(GOLDEN / "google_v2", config=config))


# === Modules of TF-Hub, archives, presets ===


def test_a_module_of_tf_hub_and_its_archive(tmp_path):
    tensors = weights_of("google_v2")
    tensors = {x: y for x, y in tensors.items() if "seq_relationship" not in x}
    folder = write_module(tmp_path / "a" / "module", tensors, config_of("google_v2"))
    assert_golden(load_checkpoint(folder))
    for part in ("", "saved_model.pb", "variables/variables.index"):
        assert inspect_checkpoint(folder / part).heads == ["masked_lm_head"]
    for kind in ("gztar", "zip"):
        archive = shutil.make_archive(tmp_path / "module", kind, tmp_path / "a")
        assert_golden(load_checkpoint(archive))
    convert_checkpoint(GOLDEN / "google_v2", tmp_path / "hf", "huggingface")
    archive = shutil.make_archive(tmp_path / "hf", "zip", tmp_path / "hf")
    assert_golden(load_checkpoint(archive))


def test_files_in_half_precision(tmp_path):
    dtype = ml_dtypes.bfloat16
    convert_checkpoint(GOLDEN / "google_v2", tmp_path, "huggingface")
    path = tmp_path / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    half = {name: x.astype(dtype) for name, x in tensors.items()}
    safetensors.numpy.save_file(half, path, {"format": "pt"})
    expected = load_checkpoint(GOLDEN / "google_v2")
    for weight in expected.weights:
        weight.assign(weight.numpy().astype(dtype).astype("float32"))
    assert_same_weights(load_checkpoint(tmp_path), expected)


def test_a_vocabulary_in_a_tokenizer_json(tmp_path):
    """transformers 5 writes no vocab.txt."""
    convert_checkpoint(GOLDEN / "google_v2", tmp_path, "huggingface")
    model = {"type": "WordPiece", "vocab": {x: i for i, x in enumerate(TOKENS)}}
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": model}))
    tokenizer = open_checkpoint(tmp_path).tokenizer(lowercase=False)
    assert (tokenizer.get_vocabulary(), tokenizer.lowercase) == (TOKENS, False)
    path.write_text(json.dumps({"model": {**model, "type": "Unigram"}}))
    with pytest.raises(CheckpointError, match="tokenizer.json holds no WordPiece"):
        open_checkpoint(tmp_path).tokenizer()


# === Complete and missing heads ===


def fine_tuned(folder, scope, name, head=("output_weights", "output_bias")):
    """Write a golden encoder with a head of three classes, as `run_classifier.py`."""
    random = np.random.default_rng(4)
    shapes = {"output_weights": (3, 48), "output_bias": (3,)}
    tensors = {f"{scope}{x}": random.normal(size=shapes[x]) for x in head}
    tensors = {x: y.astype("float32") for x, y in tensors.items()}
    encoder = {x: y for x, y in weights_of(name).items() if x.startswith("bert/")}
    slots = {f"{x}/adam_m": np.zeros_like(y) for x, y in tensors.items()}
    write(folder, {**encoder, **tensors, **slots}, config_of(name))
    (folder / "vocab.txt").write_text("\n".join(TOKENS), encoding="utf-8")
    return tensors.values()


@pytest.mark.parametrize(
    ("name", "scope"), [("google_v2", ""), ("albert_zh_preln", "loss/")]
)
def test_a_fine_tuned_checkpoint_predicts_at_once(tmp_path, scope, name):
    weights, bias = fine_tuned(tmp_path, scope, name)
    classifier = AlbertTextClassifier.from_checkpoint(tmp_path)
    arrays = expected(name)
    logits = classifier(backbone_inputs(arrays))
    by_hand = arrays["pooled_output"] @ weights.T + bias
    assert np.abs(logits - by_hand).max() < 1e-4
    assert classifier.predict(["一一一"]).shape == (1, 3)


def test_no_head_and_half_a_head(tmp_path):
    fine_tuned(tmp_path / "none", "", "google_v2", head=())
    with pytest.raises(ValueError, match="no classification head. Pass `num_classes=`"):
        AlbertTextClassifier.from_checkpoint(tmp_path / "none")
    fine_tuned(tmp_path / "half", "", "google_v2", head=("output_bias",))
    with pytest.raises(CheckpointError, match="only a part of the classifier"):
        AlbertTextClassifier.from_checkpoint(tmp_path / "half", num_classes=3)


def test_a_checkpoint_without_sentence_order_head_and_pooler(tmp_path):
    left_out = ("cls/seq_relationship", "bert/pooler")
    tensors = weights_of("google_v2")
    tensors = {x: y for x, y in tensors.items() if not x.startswith(left_out)}
    folder = write(tmp_path / "tf1", tensors, config_of("google_v2"))
    model = AlbertPretrainer.from_checkpoint(folder)
    assert list(model.output) == ["mlm_logits"]
    assert model.backbone.pooled_dense is None
    save_checkpoint(model, tmp_path / "hf", "huggingface")
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert config["architectures"] == ["AlbertForMaskedLM"]
    with pytest.raises(CheckpointError, match="loads with `pooler=False`"):
        load_checkpoint(folder)
    backbone = load_checkpoint(folder, pooler=False)
    assert list(backbone.output) == ["sequence_output"]
    assert_golden(backbone)
