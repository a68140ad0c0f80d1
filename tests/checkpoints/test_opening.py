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
from tiers import few

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


@pytest.mark.parametrize("form", ["huggingface", "google"])
def test_files_in_other_precisions(form, tmp_path):
    tensors = weights_of("google_v2")
    if form == "huggingface":
        convert_checkpoint(GOLDEN / "google_v2", tmp_path, form)
        path = tmp_path / "model.safetensors"
        tensors = safetensors.numpy.load_file(path)
    for dtype in (ml_dtypes.bfloat16, "float16", "float64"):
        stored = {name: x.astype(dtype) for name, x in tensors.items()}
        if form == "huggingface":
            safetensors.numpy.save_file(stored, path, {"format": "pt"})
        else:
            write(tmp_path, stored, config_of("google_v2"))
        opened = open_checkpoint(tmp_path)
        for name in opened.layout.names(opened.parts, opened.arguments):
            expected = stored[name].astype("float32")
            assert np.array_equal(opened.read(name), expected)
    assert_golden(load_checkpoint(tmp_path))


# === Several files ===

INDEX = "model.safetensors.index.json"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def write_shards(folder, names=SHARDS, index=INDEX):
    """Write a checkpoint in two files, as `save_pretrained(max_shard_size=...)`."""
    convert_checkpoint(GOLDEN / "google_v2", folder, "huggingface")
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    places = {name: names[i % 2] for i, name in enumerate(sorted(tensors))}
    for file in names:
        part = {x: y for x, y in tensors.items() if places[x] == file}
        safetensors.numpy.save_file(part, folder / file)
    content = {"metadata": {"total_size": 1}, "weight_map": places}
    (folder / index).write_text(json.dumps(content))
    return places


@pytest.mark.parametrize("variant", few(("", "fp16"), ("",)))
def test_a_checkpoint_in_several_files(variant, tmp_path):
    names, index = SHARDS, INDEX
    if variant:
        names = [x.replace("model", f"model.{variant}") for x in SHARDS]
        index = f"model.safetensors.index.{variant}.json"
    write_shards(tmp_path / "hf", names, index)
    for path in ("", index, *names):
        assert open_checkpoint(tmp_path / "hf" / path).path.name == index
    convert_checkpoint(tmp_path / "hf", tmp_path / "google", "google")
    assert_golden(load_checkpoint(tmp_path / "google"))
    report = inspect_checkpoint(tmp_path / "hf")
    assert report.missing == report.damaged == []
    # A file of a variant alone.
    (tmp_path / "hf" / index).unlink()
    with pytest.raises(FileNotFoundError, match="one of several files.*index.json"):
        load_checkpoint(tmp_path / "hf")


def test_files_that_are_missing_or_of_two_checkpoints(tmp_path):
    places = write_shards(tmp_path)
    name = next(x for x, file in places.items() if file == SHARDS[1])
    file = tmp_path / SHARDS[1]
    tensors = safetensors.numpy.load_file(file)
    for change, message in (
        ({"x": np.ones(2)}, r"does not fit.*lacks none .* has \['x'\] others"),
        ({name: None}, f"does not fit.*it lacks .*{name}.* has no others"),
    ):
        changed = {x: y for x, y in {**tensors, **change}.items() if y is not None}
        safetensors.numpy.save_file(changed, file)
        with pytest.raises(CheckpointError, match=message):
            load_checkpoint(tmp_path)
    file.unlink()
    for path in (tmp_path, tmp_path / SHARDS[0]):
        with pytest.raises(
            FileNotFoundError, match=rf"2 files, of which \['{SHARDS[1]}"
        ):
            load_checkpoint(path)
    outside = {"weight_map": dict.fromkeys(places, f"../{tmp_path.name}/{SHARDS[0]}")}
    (tmp_path / INDEX).write_text(json.dumps(outside))
    with pytest.raises(CheckpointError, match="is not the index of a checkpoint"):
        load_checkpoint(tmp_path)


@pytest.mark.peers
def test_weights_in_the_state_of_a_trainer(tmp_path):
    torch = pytest.importorskip("torch")
    convert_checkpoint(GOLDEN / "google_v2", tmp_path, "huggingface")
    tensors = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    state = {f"model.{x}": torch.from_numpy(y) for x, y in tensors.items()}
    for name, content in (
        ("last.ckpt", {"state_dict": state, "epoch": 3, "loops": {"fit": [1]}}),
        ("model.pt", {"model_state_dict": state, "optimizer": {"lr": 1e-3}}),
        ("states.pt", {"module": {x: y.double() for x, y in state.items()}}),
        ("model.pth", {x: y.clone() for x, y in state.items()}),
    ):
        torch.save(content, tmp_path / name)
        assert_golden(load_checkpoint(tmp_path / name))
    torch.save({"weights": state}, tmp_path / "model.pt")
    with pytest.raises(CheckpointError, match=r"nor has one under.*\['weights'\]"):
        load_checkpoint(tmp_path / "model.pt")
    # In shards, in half precision.
    names = [f"pytorch_model-0000{i}-of-00002.bin" for i in (1, 2)]
    places = {x: names[i % 2] for i, x in enumerate(state)}
    for file in names:
        part = {x: state[x].bfloat16() for x in state if places[x] == file}
        torch.save(part, tmp_path / file)
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    expected = load_checkpoint(GOLDEN / "google_v2")
    for weight in expected.weights:
        value = weight.numpy().astype(ml_dtypes.bfloat16)
        weight.assign(value.astype("float32"))
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
