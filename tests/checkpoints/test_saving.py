"""Saving: the files beside the weights, and files that are never overwritten."""

import keras
import numpy as np
import pytest
from checkpoint_files import TOKENS, assert_same_weights, filled
from sentence_piece_reference import train_model
from small_backbone import SMALL

from albert_tf import convert_checkpoint
from albert_tf.checkpoints import CheckpointError, load_checkpoint, save_checkpoint
from albert_tf.models import AlbertBackbone, AlbertTextClassifier
from albert_tf.tokenizers import SentencePieceTokenizer, WordPieceTokenizer
from albert_tf_lite.errors import AlbertError

VOCABULARY = [*TOKENS[:5], "A", "a", *TOKENS[7:]]
THREE_IN_TWO_GROUPS = {"num_attention_groups": 2, "num_ffn_groups": 2, "num_layers": 3}
FILES = [
    "albert_config.json",
    "albert_model.ckpt.data-00000-of-00001",
    "albert_model.ckpt.index",
]


def files_in(directory):
    return sorted(path.name for path in directory.iterdir())


def contents_of(directory):
    return {x: x.read_bytes() for x in directory.rglob("*") if x.is_file()}


def small_backbone(layout="google", **changes):
    """Return a backbone that the layout can hold."""
    order = "before" if layout == "albert_zh" else "after"
    changes = {"embedding_projection": f"{order}_layer_norm", **changes}
    return filled(AlbertBackbone(**{**SMALL, "num_layers": 2, **changes}))


def new_classifier(layout, **kwargs):
    tokenizer = WordPieceTokenizer(VOCABULARY, lowercase=False)
    backbone = small_backbone(layout)
    return filled(
        AlbertTextClassifier.from_backbone(backbone, tokenizer, 3, **kwargs), seed=3
    )


@pytest.fixture(scope="module")
def backbone():
    return small_backbone()


@pytest.fixture(scope="module")
def classifier():
    return new_classifier("google", activation="softmax", labels=["差", "中", "好"])


# === What is written ===


def test_every_argument_of_a_backbone(tmp_path):
    """Dropout and precision, too: weights are written in float32."""
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
    model = filled(AlbertBackbone(**arguments, dtype="mixed_bfloat16"))
    save_checkpoint(model, tmp_path, layout="google")
    assert files_in(tmp_path) == FILES
    loaded = load_checkpoint(tmp_path)
    assert arguments.items() <= loaded.get_config().items()
    assert_same_weights(model, loaded)


@pytest.mark.parametrize("layout", ["huggingface", "kerashub"])
def test_a_classifier_with_labels_activation_and_vocabulary(tmp_path, layout):
    labels = None if layout == "kerashub" else ["差", "中", "好"]
    model = new_classifier(layout, activation="softmax", dropout=0.25, labels=labels)
    save_checkpoint(model, tmp_path, layout)
    again = AlbertTextClassifier.from_checkpoint(tmp_path)
    assert again.activation is model.activation
    assert (again.dropout, again.labels) == (0.25, labels)
    tokenizer = model.preprocessor.tokenizer
    assert again.preprocessor.tokenizer.fingerprint == tokenizer.fingerprint
    texts = ["A 七", "a丈 三", ""]
    assert np.array_equal(again.predict(texts), model.predict(texts))


@pytest.mark.parametrize("layout", ["google", "albert_zh", "preset"])
def test_settings_of_fine_tuning_are_stored_and_used(tmp_path, layout):
    former = new_classifier("albert_zh" if layout == "albert_zh" else "google")
    backbone, preprocessor = former.backbone, former.preprocessor
    assert (former.pooling_mode, former.default_learning_rate) == ("cls", 1e-3)
    backbone.fine_tuning = {"pooling_mode": "mean", "learning_rate": 2e-4}
    if layout == "preset":
        backbone.save_to_preset(tmp_path)
        preprocessor.save_to_preset(tmp_path)
        model = AlbertTextClassifier.from_preset(str(tmp_path), num_classes=3)
    else:
        new = AlbertTextClassifier(backbone, 3, preprocessor)
        save_checkpoint(new, tmp_path, layout)
        model = AlbertTextClassifier.from_checkpoint(tmp_path)
    assert (model.pooling_mode, model.default_learning_rate) == ("mean", 2e-4)
    if layout != "preset":
        with pytest.warns(UserWarning, match="new head"):
            model = AlbertTextClassifier.from_checkpoint(tmp_path, num_classes=4)
        assert (model.pooling_mode, model.default_learning_rate) == ("mean", 2e-4)
    with pytest.raises(AlbertError, match="Received: \\['pooling'\\]"):
        backbone.fine_tuning = {"pooling": "mean"}


def test_sentence_pieces_are_saved_for_keras_hub(tmp_path):
    tokenizer = SentencePieceTokenizer(train_model())
    backbone = small_backbone(vocabulary_size=tokenizer.vocabulary_size())
    model = filled(AlbertTextClassifier.from_backbone(backbone, tokenizer, 3), seed=3)
    save_checkpoint(model, tmp_path / "hub", "kerashub")
    again = AlbertTextClassifier.from_checkpoint(tmp_path / "hub")
    texts = ["the river, 2018, rose", ""]
    assert np.array_equal(again.predict(texts), model.predict(texts))
    cased = SentencePieceTokenizer(tokenizer.proto, lowercase=False)
    with pytest.raises(CheckpointError, match="no place for lowercase=False"):
        save_checkpoint(backbone, tmp_path / "cased", "kerashub", cased)


# === What a layout cannot hold ===


@pytest.mark.parametrize(
    ("changes", "layout", "message"),
    [
        ({"embedding_projection": "before_layer_norm"}, "google", "_projection='bef"),
        ({"num_ffn_groups": 2}, "google", "num_ffn_groups=2.*has 1"),
        ({"activation": "mish"}, "albert_zh", "embedding_projection=.*='mish'"),
        (THREE_IN_TWO_GROUPS, "kerashub", '"kerashub" layout cannot.*num_layers=3'),
    ],
)
def test_a_model_the_layout_cannot_hold(tmp_path, changes, layout, message):
    """Every difference is named, and nothing is written."""
    with pytest.raises(CheckpointError, match=message):
        save_checkpoint(small_backbone(**changes), tmp_path / "saved", layout=layout)
    assert files_in(tmp_path) == []


def test_labels_that_keras_hub_cannot_hold(classifier, tmp_path):
    with pytest.raises(CheckpointError, match="labels=.'差', '中', '好'."):
        save_checkpoint(classifier, tmp_path / "warned", "kerashub")
    save_checkpoint(classifier, tmp_path / "google")
    done = convert_checkpoint(tmp_path / "google", tmp_path / "hub", "kerashub")
    assert done.left_out == ["labels=['差', '中', '好']"]
    warm = AlbertTextClassifier(classifier.backbone, 3, temperature=1.5)
    with pytest.raises(CheckpointError, match="no place for temperature=1.5"):
        save_checkpoint(warm, tmp_path / "warm", "kerashub")
    with pytest.raises(ValueError, match="google holds the source"):
        convert_checkpoint(tmp_path / "google", tmp_path / "google", "keras")


def test_a_layer_around_the_backbone_is_refused(backbone, tmp_path):
    inputs = {x: keras.Input((None,), dtype="int32", name=x) for x in backbone.input}
    outputs = keras.layers.Dense(5, name="mine")(backbone(inputs)["pooled_output"])
    model = keras.Model(inputs, outputs)
    model.save(tmp_path / "mine.keras")
    with pytest.raises(CheckpointError, match="not an ALBERT but a Functional"):
        save_checkpoint(model, tmp_path / "saved", "google")
    with pytest.raises(CheckpointError, match="mine.keras is not an ALBERT"):
        load_checkpoint(tmp_path / "mine.keras")


# === Files that are there already ===


def test_another_checkpoint_is_not_overwritten(backbone, classifier, tmp_path):
    for name in ("albert_config_tiny.json", "vocab_old.txt", "x.model"):
        (tmp_path / name).write_text("{}")
        with pytest.raises(FileExistsError, match=name):
            save_checkpoint(classifier, tmp_path)
        assert files_in(tmp_path) == [name]
        (tmp_path / name).unlink()
    save_checkpoint(classifier, tmp_path / "preset", "keras")
    before = contents_of(tmp_path)
    with pytest.raises(FileExistsError, match="files of another checkpoint"):
        save_checkpoint(backbone, tmp_path / "preset", "keras")
    assert contents_of(tmp_path) == before


def test_a_checkpoint_replaces_itself_and_other_files_stay(tmp_path):
    layout = "huggingface"
    model = new_classifier(layout)
    save_checkpoint(model, tmp_path, layout)
    before = files_in(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    model.backbone.pooled_dense.bias.assign(np.ones(48))
    save_checkpoint(model, tmp_path, layout)
    assert files_in(tmp_path) == sorted([*before, "notes.txt"])
    assert_same_weights(model, AlbertTextClassifier.from_checkpoint(tmp_path))
