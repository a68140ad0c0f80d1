import json

import keras
import numpy as np
import pytest
from checkpoint_files import (
    GOLDEN,
    LAYOUT_OF,
    NAMES,
    backbone_inputs,
    config_of,
    expected,
    read,
    weights_of,
)
from small_backbone import SMALL

from albert_tf import load_checkpoint, save_checkpoint
from albert_tf.checkpoints import CheckpointError
from albert_tf.conversion import saving
from albert_tf.models import AlbertBackbone, AlbertPretrainer, AlbertTextClassifier

# Fields of the golden configs that say nothing about the model's arithmetic.
NOT_READ = {
    "directionality",
    "down_scale_factor",
    "gap_size",
    "initializer_range",
    "net_structure_type",
    "num_memory_blocks",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
}
FILES = [
    "albert_config.json",
    "albert_model.ckpt.data-00000-of-00001",
    "albert_model.ckpt.index",
]


def files_in(directory):
    return sorted(path.name for path in directory.iterdir())


def same_tensors(written, original):
    assert written.keys() == original.keys()
    for name, array in original.items():
        assert written[name].dtype == array.dtype, name
        assert written[name].shape == array.shape, name
        assert np.array_equal(written[name], array), name


@pytest.mark.parametrize("name", NAMES)
def test_loading_and_saving_gives_the_same_file(tmp_path, name):
    model = AlbertPretrainer.from_checkpoint(GOLDEN / name)
    save_checkpoint(model, tmp_path / "saved", layout=LAYOUT_OF[name])
    assert files_in(tmp_path / "saved") == FILES
    same_tensors(read(tmp_path / "saved" / "albert_model.ckpt"), weights_of(name))
    config = json.loads((tmp_path / "saved" / "albert_config.json").read_text())
    original = config_of(name)
    assert config == {field: original[field] for field in config}
    left_out = original.keys() - config.keys()
    assert left_out <= NOT_READ, "a field the original code would miss"


@pytest.mark.parametrize("name", ["albert_zh_preln", "google_groups"])
def test_a_backbone_is_written_without_heads_and_loads_again(tmp_path, name):
    backbone = load_checkpoint(GOLDEN / name)
    save_checkpoint(backbone, tmp_path / "saved", layout=LAYOUT_OF[name])
    encoder = {x: y for x, y in weights_of(name).items() if not x.startswith("cls/")}
    same_tensors(read(tmp_path / "saved" / "albert_model.ckpt"), encoder)
    outputs = load_checkpoint(tmp_path / "saved")(backbone_inputs(expected(name)))
    original = backbone(backbone_inputs(expected(name)))
    for output, array in original.items():
        assert np.abs(outputs[output] - array).max() == 0.0


def test_a_model_of_our_own_round_trip(tmp_path):
    arguments = {
        **SMALL,
        "num_layers": 4,
        "num_attention_groups": 3,
        "num_ffn_groups": 3,
        "num_inner_repetitions": 2,
        "embedding_projection": "after_layer_norm",
        "activation": "relu",
        "hidden_dropout": 0.1,
        "attention_dropout": 0.2,
        "max_sequence_length": 33,
        "num_segments": 3,
    }
    model = AlbertBackbone(**arguments)
    save_checkpoint(model, tmp_path / "saved", layout="google")
    loaded = load_checkpoint(tmp_path / "saved")
    assert arguments.items() <= loaded.get_config().items()
    for a, b in zip(model.weights, loaded.weights, strict=True):
        assert a.path == b.path
        assert np.array_equal(a.numpy(), b.numpy())


def test_mixed_precision_is_written_in_float32(tmp_path):
    model = load_checkpoint(GOLDEN / "google_v2", dtype="mixed_bfloat16")
    save_checkpoint(model, tmp_path, layout="google")
    encoder = weights_of("google_v2").items()
    encoder = {x: y for x, y in encoder if not x.startswith("cls/")}
    same_tensors(read(tmp_path / "albert_model.ckpt"), encoder)


def test_a_classifier_brings_its_vocabulary(tmp_path):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += [chr(0x4E00 + i) for i in range(115)]
    classifier = AlbertTextClassifier.from_checkpoint(
        GOLDEN / "albert_zh_postln", num_classes=2, vocabulary=tokens
    )
    save_checkpoint(classifier, tmp_path, layout="albert_zh")
    assert files_in(tmp_path) == [*FILES, "vocab.txt"]
    lines = (tmp_path / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert lines == tokens


# === Refusals ===


@pytest.mark.parametrize(
    ("changes", "layout", "message"),
    [
        ({}, "google", "google.*embedding_projection='before_layer_norm'"),
        (
            {"embedding_projection": "after_layer_norm", "normalize_first": True},
            "google",
            r"normalize_first=True \(the layout has False\)",
        ),
        (
            {"embedding_projection": "after_layer_norm", "num_ffn_groups": 3},
            "google",
            "num_attention_groups=1 and num_ffn_groups=3.*one for both",
        ),
        ({"num_ffn_groups": 3}, "albert_zh", "num_ffn_groups=3"),
        ({"activation": "gelu"}, "albert_zh", "activation='gelu'"),
    ],
)
def test_a_model_the_layout_cannot_hold(tmp_path, changes, layout, message):
    model = AlbertBackbone(**SMALL, **changes)
    with pytest.raises(CheckpointError, match=message):
        save_checkpoint(model, tmp_path / "saved", layout=layout)
    assert files_in(tmp_path) == []


def test_every_difference_is_named_at_once(tmp_path):
    arguments = load_checkpoint(GOLDEN / "google_groups").get_config()
    model = AlbertBackbone(**{**arguments, "activation": "mish"})
    with pytest.raises(CheckpointError) as error:
        save_checkpoint(model, tmp_path, layout="albert_zh")
    for name in (
        "embedding_projection",
        "num_attention_groups",
        "num_inner_repetitions",
        "activation",
    ):
        assert f"{name}=" in str(error.value)


def test_unknown_layout_is_refused_with_the_known_ones(tmp_path):
    model = load_checkpoint(GOLDEN / "google_v2")
    with pytest.raises(ValueError, match="'tf2'.*'google', 'albert_zh'"):
        save_checkpoint(model, tmp_path / "saved", layout="tf2")
    assert files_in(tmp_path) == []


# === Failures on the way ===


@pytest.fixture
def full_disk(monkeypatch):
    def write_tensors(prefix, tensors):
        prefix.with_name("albert_model.ckpt.index").write_bytes(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(saving, "write_tensors", write_tensors)


def test_a_failure_leaves_nothing_or_an_older_checkpoint(tmp_path, full_disk):
    model = load_checkpoint(GOLDEN / "google_v2")
    folder = tmp_path / "saved"
    with pytest.raises(OSError, match="No space"):
        save_checkpoint(model, folder, layout="google")
    assert files_in(tmp_path) == []
    folder.mkdir()
    for name in (*FILES, "notes.txt"):
        (folder / name).write_text(f"the old {name}")
    with pytest.raises(OSError, match="No space"):
        save_checkpoint(model, folder, layout="google")
    assert files_in(tmp_path) == ["saved"]
    assert files_in(folder) == sorted([*FILES, "notes.txt"])
    for path in folder.iterdir():
        assert path.read_text() == f"the old {path.name}"


def test_an_older_checkpoint_is_replaced_and_other_files_stay(tmp_path):
    model = load_checkpoint(GOLDEN / "google_v2")
    save_checkpoint(model, tmp_path, layout="google")
    (tmp_path / "notes.txt").write_text("mine")
    model.pooled_dense.bias.assign(keras.ops.ones(48))
    save_checkpoint(model, tmp_path, layout="google")
    assert files_in(tmp_path) == sorted([*FILES, "notes.txt"])
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert load_checkpoint(tmp_path).pooled_dense.bias.numpy().tolist() == [1.0] * 48
