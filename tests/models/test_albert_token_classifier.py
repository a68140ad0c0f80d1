"""Entities: their offsets, windows, training, files, errors."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_classifier import VOCABULARY, randomised, small_backbone

from albert_tf.checkpoints import save_checkpoint
from albert_tf.models import AlbertTokenClassifier
from albert_tf_lite import tagging as lite
from albert_tf_lite.errors import AlbertError

LABELS = ["PER", "LOC"]
TEXTS = [
    "很好吃，我想你来吧",
    "",
    "😀 好",
    "ab，c",
    "他 去 了吗",
    "大小上下左右前后" * 9,
]
SPANS = [
    [(0, 2, "PER"), (4, 5, "LOC")],
    [],
    [(2, 3, "LOC")],
    [(0, 2, "PER")],
    [(2, 3, "PER"), (4, 6, "LOC")],
    [(20, 25, "LOC"), (25, 40, "PER")],
]
ODD = "好我ab，。 \t\u3000\0\ufeffＡ１é\u0301😀👨🏽𠮷한\ud800\udfff"
TEXT = st.one_of(
    st.text(ODD, max_size=30),
    st.text(st.characters(exclude_categories=()), max_size=60),
    st.text("ab ", min_size=95, max_size=240),
)
FIFTY_TEXTS = st.lists(TEXT, min_size=50, max_size=50)


def small_tagger(seed=0, sizes=None, **kwargs):
    kwargs = {"labels": LABELS, **kwargs}
    backbone = small_backbone(pooler=False, **(sizes or {}))
    return randomised(
        AlbertTokenClassifier.from_backbone(backbone, VOCABULARY, **kwargs), seed
    )


@pytest.fixture(scope="module")
def tagger():
    return small_tagger()


@pytest.mark.traced
@settings(max_examples=5)
@given(texts=FIFTY_TEXTS)
def test_entities_of_250_random_texts_are_slices(tagger, texts):
    texts = [*texts, *TEXTS]
    entities = tagger.predict_spans(texts, batch_size=10_000, verbose=0)
    for text, row in zip(texts, entities, strict=True):
        before = 0
        for start, end, label, score in row:
            assert before <= start < end <= len(text)
            assert label in LABELS and 0 < score <= 1
            assert not text[start].isspace() and not text[end - 1].isspace()
            before = end
    assert any(entities)


def test_the_loss_counts_each_token_once():
    """Padding, special tokens and tokens of another window have no loss."""
    tagger = small_tagger(dropout=0.0, sizes={"num_layers": 1})
    tags = tagger.targets(TEXTS, SPANS)
    counted = tags.to_tensor(-1).numpy() >= 0
    # One token per character that is not a space.
    assert counted.sum() == sum(len(text.replace(" ", "")) for text in TEXTS)
    windows = tagger.preprocessor.pack_texts(TEXTS)
    features = tagger.preprocessor.packer.pad(windows.tokens, windows.first_lengths)
    padded = tags.to_tensor(-1, shape=features["token_ids"].shape).numpy()
    logits = tagger(features).numpy()[:, : counted.shape[1]].astype("float64")
    logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
    truth = np.maximum(tags.to_tensor(0).numpy(), 0)
    losses = -np.take_along_axis(logits, truth[..., None], axis=-1)[..., 0] * counted
    right = (logits.argmax(-1) == truth) & counted
    weights = np.array([1.0, 0.0, 2.0, 0.5, 3.0, 0.25])
    for sample_weight in (None, weights):
        by_text = np.ones(6) if sample_weight is None else weights
        by_row = by_text[windows.windows.texts.numpy()]
        by_token = by_row[:, None] * counted
        results = tagger.evaluate(TEXTS, SPANS, sample_weight=sample_weight, verbose=0)
        of_ids = tagger.evaluate(features, padded, sample_weight=by_row, verbose=0)
        assert of_ids == pytest.approx(results, abs=1e-5)
        loss = (losses * by_token).sum() / counted.sum()
        accuracy = (right * by_token).sum() / by_token.sum()
        assert results == pytest.approx([loss, accuracy], abs=1e-5)
        # Tokens count alike in batches of any length.
        options = {"sample_weight": sample_weight, "verbose": 0, "batch_size": 2}
        assert tagger.evaluate(TEXTS, SPANS, **options)[1] == pytest.approx(accuracy)


def test_spans_within_a_token_are_extended_and_counted(tagger):
    # é is two characters and one token, ab is two tokens.
    x = ["e\u0301 ab 好", "  好"]
    y = [[(0, 1, "PER"), (3, 4, "LOC")], [(0, 1, "PER")]]
    with pytest.warns(UserWarning, match="2 spans begin or end within.*'e'"):
        tags = tagger.targets(x, y)
    names = [[tagger.tags[i] if i >= 0 else "" for i in row] for row in tags.to_list()]
    assert names == [["", "B-PER", "B-LOC", "O", "O", ""], ["", "O", ""]]


# The id2label of a checkpoint, and what is read: the labels or an error.
BERT_NER = ["<PAD>", "O", "PER-B", "PER-I", "LOC-B", "LOC-I", "X", "[CLS]", "[SEP]"]
HEADS = {
    "marks": (BERT_NER, ["PER", "LOC"]),
    "lower case": (["o", "b-per", "i-per", "x", "[cls]"], ["per"]),
    "words": (["B", "M", "E", "S"], ["W"]),
    "labels alone": (["PER", "O", "LOC"], ["PER", "LOC"]),
    "no O": (["n", "v"], r"tags=\['I-n', 'I-v', \.\.\.\].*tags=\['S-n', 'S-v', "),
    "generic": ([f"LABEL_{i}" for i in range(9)], "its 9 tags.*`labels=`, a list of 4"),
    "twice": (["O", "B-PER", "I-PER", "M-PER"], "'I-PER' and 'M-PER' mean the same"),
}


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.filterwarnings("ignore:(The t|T)ags")
def test_tags_of_a_checkpoint_are_read_or_the_message_helps(name, tmp_path):
    names, expected = HEADS[name]
    tags = ["O", *(f"S-{i}" for i in range(1, len(names)))]
    sizes = {"embedding_projection": "after_layer_norm"}
    source = small_tagger(labels=None, tags=tags, sizes=sizes)
    # Towards the tags of entities.
    source.tag_dense.bias.assign([0, 2, 2, 2, 2, 2, 0, 0, 0][: len(names)])
    save_checkpoint(source, tmp_path / "old", layout="huggingface")
    config = json.loads((tmp_path / "old/config.json").read_text("utf-8"))
    config |= {"id2label": {str(i): x for i, x in enumerate(names)}}
    config["label2id"] = {x: i for i, x in enumerate(names)}
    (tmp_path / "old/config.json").write_text(json.dumps(config), "utf-8")
    arguments = {}
    if isinstance(expected, str):
        with pytest.raises(AlbertError, match=expected):
            AlbertTokenClassifier.from_checkpoint(tmp_path / "old")
        # As the message says, and with outputs that no tag needs.
        tags = [f"S-{x}" for x in names]
        if name == "generic":
            tags = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "O", "O", "O"]
            with pytest.warns(
                UserWarning, match="Its 9 outputs are read as .'O', 'B-a"
            ):
                AlbertTokenClassifier.from_checkpoint(
                    tmp_path / "old", labels=list("abcd")
                )
        arguments = {"tags": tags}
        expected = list(dict.fromkeys(x[2:] for x in tags if x != "O"))
    tagger = AlbertTokenClassifier.from_checkpoint(tmp_path / "old", **arguments)
    assert tagger.labels == expected
    # The weights are those of the checkpoint.
    kernels = [x.tag_dense.kernel.numpy() for x in (source, tagger)]
    np.testing.assert_array_equal(*kernels)
    spans = tagger.predict(TEXTS, verbose=0)
    assert any(spans)
    save_checkpoint(tagger, tmp_path / "new", layout="huggingface")
    again = AlbertTokenClassifier.from_checkpoint(tmp_path / "new")
    assert again.predict(TEXTS, verbose=0) == spans
    plain = lite.Tagging(tagger.exported_settings()["tags"])
    features = tagger.preprocessor(TEXTS[:1])
    logits = np.array(tagger(features))[0, 1:10]
    found = plain.entities(logits, range(9), range(1, 10))
    assert [x[:3] for x in found] == spans[0]
    if name == "words":
        with pytest.raises(AlbertError, match="In text 0, '吃' has no span, and"):
            tagger.fit(["好吃"], [[(0, 1, "W")]])
