"""What travels with the weights: labels, activation, dropout, the vocabulary."""

import itertools
import json

import keras
import keras_hub
import numpy as np
import pytest
from checkpoint_files import GOLDEN, copy

from albert_tf.checkpoints import (
    CheckpointError,
    inspect_checkpoint,
    load_checkpoint,
    open_checkpoint,
)
from albert_tf.conversion import convert_checkpoint, save_checkpoint, verify_conversion
from albert_tf.models import AlbertBackbone, AlbertTextClassifier
from albert_tf.tokenizers import WordPieceTokenizer

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "A", "a", "b", "c", "d"]
TEXTS = ["A b", "a c d", ""]


def small_backbone(**kwargs):
    sizes = {"num_layers": 2, "num_heads": 4, "embedding_dim": 8, "hidden_dim": 12}
    sizes.update(vocabulary_size=10, intermediate_dim=20, max_sequence_length=29)
    return AlbertBackbone(**{**sizes, **kwargs})


def classifier(layout, lowercase=False, **kwargs):
    """One that the layout can hold, with random biases, too."""
    projection = "before" if layout == "albert_zh" else "after"
    backbone = small_backbone(embedding_projection=f"{projection}_layer_norm")
    tokenizer = WordPieceTokenizer(TOKENS, lowercase=lowercase)
    model = AlbertTextClassifier.from_backbone(backbone, tokenizer, 3, **kwargs)
    random = np.random.default_rng(3)
    for weight in model.weights:
        weight.assign(weight + random.normal(scale=0.3, size=weight.shape))
    return model


@pytest.mark.parametrize(
    ("layout", "activation"),
    [
        ("google", None),
        ("huggingface", "softmax"),
        ("kerashub", "softmax"),
        pytest.param("google", "softmax", marks=pytest.mark.slow),
        pytest.param("albert_zh", "softmax", marks=pytest.mark.slow),
        pytest.param("keras", "softmax", marks=pytest.mark.slow),
    ],
)
def test_a_classifier_comes_back_whole(tmp_path, layout, activation):
    labels = None if layout == "kerashub" else ["差", "中", "好"]
    model = classifier(layout, activation=activation, dropout=0.25, labels=labels)
    save_checkpoint(model, tmp_path / "there", layout)
    again = AlbertTextClassifier.from_checkpoint(tmp_path / "there")
    assert again.activation is model.activation
    assert (again.dropout, again.labels) == (0.25, labels)
    tokenizer = model.preprocessor.tokenizer
    assert again.preprocessor.tokenizer.fingerprint == tokenizer.fingerprint
    assert np.array_equal(again.predict(TEXTS), model.predict(TEXTS))


WAYS = [
    *itertools.permutations(("google", "huggingface", "kerashub", "keras"), 2),
    *itertools.permutations(("albert_zh", "keras"), 2),
]
FAST = (("google", "huggingface"), ("huggingface", "kerashub"))


@pytest.mark.parametrize(
    ("first", "then"),
    [x if x in FAST else pytest.param(*x, marks=pytest.mark.slow) for x in WAYS],
)
def test_every_conversion_of_a_classifier_is_verified(tmp_path, first, then):
    kind = "albert_zh" if "albert_zh" in (first, then) else first
    model = classifier(kind, activation="softmax")
    save_checkpoint(model, tmp_path / "first", first)
    convert_checkpoint(tmp_path / "first", tmp_path / "then", then)
    differences = verify_conversion(tmp_path / "first", tmp_path / "then")
    assert differences.keys() >= {"sequence_output", "pooled_output", "logits"}
    assert max(differences.values()) < 1e-5


def test_verifying_notices_a_lost_activation(tmp_path):
    save_checkpoint(classifier("google", activation="softmax"), tmp_path / "a")
    convert_checkpoint(tmp_path / "a", tmp_path / "b", "google")
    config = tmp_path / "b" / "albert_config.json"
    fields = json.loads(config.read_text())
    assert fields.pop("classifier_activation") == "softmax"
    config.write_text(json.dumps(fields))
    assert verify_conversion(tmp_path / "a", tmp_path / "b")["logits"] > 0.01


def test_an_activation_without_a_name_is_refused(tmp_path):
    def twice(logits):
        return 2 * logits

    model = classifier("google", activation=twice)
    with pytest.raises(CheckpointError, match='not one of Keras\' own.*layout="keras"'):
        save_checkpoint(model, tmp_path / "there", "google")
    assert list(tmp_path.iterdir()) == []
    # A model in memory, and a preset Keras can write, hold any function.
    save_checkpoint(model, tmp_path / "there", "kerashub")


def test_an_unknown_activation_in_the_config_is_refused(tmp_path):
    save_checkpoint(classifier("google", activation="softmax"), tmp_path / "a")
    config = tmp_path / "a" / "albert_config.json"
    config.write_text(config.read_text().replace("softmax", "swoosh"))
    with pytest.raises(CheckpointError, match="classifier_activation='swoosh'"):
        AlbertTextClassifier.from_checkpoint(tmp_path / "a")


def test_what_keras_hub_has_no_place_for_is_told(tmp_path):
    model = classifier("kerashub", labels=["x", "y", "z"])
    told = "no place for the labels .'x', 'y', 'z'."
    with pytest.warns(UserWarning, match=told):
        save_checkpoint(model, tmp_path / "warned", "kerashub")
    save_checkpoint(model, tmp_path / "google")
    done = convert_checkpoint(tmp_path / "google", tmp_path / "hub", "kerashub")
    assert done.left_out == ["the labels ['x', 'y', 'z']"]


# === Upper and lower case ===


@pytest.mark.parametrize(
    "layout", ["google", pytest.param("keras", marks=pytest.mark.slow)]
)
def test_lower_casing_is_the_checkpoints_and_can_be_overruled(tmp_path, layout):
    save_checkpoint(classifier(layout), tmp_path / "cased", layout)
    cased, lower = ([5, 7], [6, 7])
    path = tmp_path / "cased"
    assert list(open_checkpoint(path).tokenizer()("A b")) == cased
    assert list(open_checkpoint(path).tokenizer(lowercase=True)("A b")) == lower
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(TOKENS))
    for lowercase, ids in ((None, cased), (False, cased), (True, lower)):
        model = AlbertTextClassifier.from_checkpoint(
            path, vocabulary=vocabulary, lowercase=lowercase
        )
        assert list(model.preprocessor.tokenizer("A b")) == ids


def test_do_lower_case_must_be_true_or_false(tmp_path):
    save_checkpoint(classifier("google"), tmp_path / "a")
    config = tmp_path / "a" / "albert_config.json"
    fields = {**json.loads(config.read_text()), "do_lower_case": "false"}
    config.write_text(json.dumps(fields))
    with pytest.raises(CheckpointError, match="do_lower_case=.*Expected true or false"):
        AlbertTextClassifier.from_checkpoint(tmp_path / "a")


# === The vocabulary ===


def test_the_vocabulary_beside_a_preset_of_keras_hub_is_found(tmp_path):
    theirs = keras_hub.models.AlbertBackbone(10, 2, 4, 8, 16, 32)
    theirs.save_to_preset(str(tmp_path / "preset"))
    assert open_checkpoint(tmp_path / "preset").tokenizer() is None
    vocabulary = tmp_path / "preset" / "vocab.txt"
    vocabulary.write_text("\n".join(TOKENS))
    assert inspect_checkpoint(tmp_path / "preset").vocabulary == str(vocabulary)
    assert list(open_checkpoint(tmp_path / "preset").tokenizer()("b c")) == [7, 8]


def test_a_vocabulary_can_be_given_by_its_path(tmp_path):
    vocabulary = tmp_path / "mine.txt"
    vocabulary.write_text("\n".join(TOKENS))
    backbone = classifier("google").backbone
    save_checkpoint(backbone, tmp_path / "saved", tokenizer=vocabulary)
    assert (tmp_path / "saved" / "vocab.txt").read_text().split() == TOKENS
    save_checkpoint(backbone, tmp_path / "bare")
    convert_checkpoint(
        tmp_path / "bare", tmp_path / "hf", "huggingface", vocabulary=vocabulary
    )
    assert (tmp_path / "hf" / "vocab.txt").read_text().split() == TOKENS
    vocabulary.write_text("\n".join(TOKENS[:-1]))
    with pytest.raises(CheckpointError, match="mine.txt has 9 tokens, the model 10"):
        save_checkpoint(backbone, tmp_path / "no", tokenizer=vocabulary)


# === What is no part of an ALBERT ===


def around(backbone):
    """A model of the user's own with a layer on the backbone."""
    inputs = {x: keras.Input((None,), dtype="int32", name=x) for x in backbone.input}
    pooled = backbone(inputs)["pooled_output"]
    return keras.Model(inputs, keras.layers.Dense(5, name="mine")(pooled))


def test_a_layer_around_the_backbone_is_not_dropped_in_silence(tmp_path):
    layout = "google"
    model = around(load_checkpoint(GOLDEN / "google_v2"))
    model.save(tmp_path / "mine.keras")
    with pytest.raises(CheckpointError, match="no place for mine/kernel, mine/bias"):
        save_checkpoint(model, tmp_path / "saved", layout)
    path = tmp_path / "mine.keras"
    done = convert_checkpoint(path, tmp_path / "converted", layout)
    assert done.left_out == ["mine/kernel", "mine/bias"]
    assert inspect_checkpoint(path).other == ["mine/bias", "mine/kernel"]


def test_only_a_model_is_saved(tmp_path):
    with pytest.raises(TypeError, match="`model` should be an AlbertBackbone.*convert"):
        save_checkpoint(GOLDEN / "google_v2", tmp_path / "saved")


# === What lies in the directory already ===


def test_a_preset_is_not_written_over_another(tmp_path):
    layout = "keras"
    save_checkpoint(classifier(layout), tmp_path / "there", layout)
    before = {x: x.read_bytes() for x in tmp_path.rglob("*") if x.is_file()}
    with pytest.raises(FileExistsError, match="files of another checkpoint"):
        save_checkpoint(classifier(layout).backbone, tmp_path / "there", layout)
    assert before == {x: x.read_bytes() for x in tmp_path.rglob("*") if x.is_file()}


def test_a_checkpoint_is_written_anew_in_its_place(tmp_path):
    layout = "huggingface"
    save_checkpoint(classifier(layout), tmp_path, layout)
    model = classifier(layout, lowercase=True)
    save_checkpoint(model, tmp_path, layout)
    again = AlbertTextClassifier.from_checkpoint(tmp_path)
    assert again.preprocessor.tokenizer.lowercase


def test_a_second_config_or_vocabulary_is_not_put_beside(tmp_path):
    model = classifier("google")
    for name in ("albert_config_tiny.json", "vocab_old.txt", "x.model"):
        (tmp_path / name).write_text("{}")
        with pytest.raises(FileExistsError, match=name):
            save_checkpoint(model, tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [name]
        (tmp_path / name).unlink()


def test_a_directory_below_a_file_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("mine")
    model = classifier("google")
    for name in ("file", "file/below"):
        with pytest.raises(FileExistsError, match="a file"):
            save_checkpoint(model, tmp_path / name)
    assert (tmp_path / "file").read_text() == "mine"


# === Tied tensors ===


@pytest.mark.parametrize(
    "name", ["predictions.decoder.weight", "predictions.decoder.bias"]
)
def test_a_copy_of_a_tied_tensor_must_be_one(tmp_path, name):
    import safetensors.numpy

    convert_checkpoint(GOLDEN / "google_v2", tmp_path / "hf", "huggingface")
    path = tmp_path / "hf" / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    original = {
        "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
        "predictions.decoder.bias": "predictions.bias",
    }[name]
    tensors[name] = tensors[original]
    safetensors.numpy.save_file(tensors, path, {"format": "pt"})
    convert_checkpoint(tmp_path / "hf", tmp_path / "same", "google")
    tensors[name] = tensors[original] + 1e-3
    safetensors.numpy.save_file(tensors, path, {"format": "pt"})
    load_checkpoint(tmp_path / "hf")  # The encoder has nothing to do with it.
    with pytest.raises(CheckpointError, match=f"{name} other than its {original}"):
        convert_checkpoint(tmp_path / "hf", tmp_path / "back", "google")
    assert not (tmp_path / "back").exists()


# === A preset of a backbone alone ===


def test_a_task_on_a_preset_with_few_positions(tmp_path):
    backbone = small_backbone()
    backbone.save_to_preset(str(tmp_path))
    WordPieceTokenizer(TOKENS).save_to_preset(str(tmp_path))
    model = AlbertTextClassifier.from_preset(str(tmp_path), num_classes=2)
    positions = backbone.max_sequence_length
    assert positions < 512
    assert model.preprocessor.sequence_length == positions
    assert isinstance(model.backbone, AlbertBackbone)
    assert model.predict(["b c d"]).shape == (1, 2)


def test_the_source_of_a_copy(tmp_path):
    folder = copy("google_v2", tmp_path)
    opened = open_checkpoint(folder)
    assert open_checkpoint(opened) is opened
