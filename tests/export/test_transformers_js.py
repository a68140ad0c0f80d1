"""Directories for transformers.js: Keras' numbers from Hugging Face's own tokenizer."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import sentence_piece_reference
from lite_tasks import TASKS, needs_onnx, small_task
from small_classifier import (
    TEXTS,
    VOCABULARY,
    randomised,
    small_backbone,
    small_classifier,
)
from tiers import few

import albert_tf
from albert_tf import models
from albert_tf.export.tokenizer_json import tokenizer_json
from albert_tf.export.transformers_js import NETWORKS
from albert_tf.model_card import MARK
from albert_tf.tokenizers import SentencePieceTokenizer, WordPieceTokenizer
from albert_tf_lite.word_piece import WordPieceTokenizer as PlainTokenizer

tokenizers = pytest.importorskip("tokenizers")
onnxruntime = pytest.importorskip("onnxruntime")

ROOT = Path(__file__).parents[2]
MICRO = ROOT / "examples" / "albert_micro_zh"
MASKED = [f"{text}[MASK]好" for text in TEXTS]
NAMES = [x for x in TASKS if x not in ("choices", "order")]
NAMES += ["masked", "english"]
# Tasks that read long texts in windows, and characters of one.
WINDOWS = {"tags": 8, "questions": 5}
OURS = ("token_ids", "segment_ids", "padding_mask")

pytestmark = [needs_onnx, pytest.mark.filterwarnings("ignore:.* texts are longer")]


def build(name):
    """Return a task and texts for it."""
    if name == "english":
        task = sentence_piece_reference.english_classifier()
        return task, sentence_piece_reference.TEXT.splitlines()
    if name != "masked":
        return small_task(name)
    # Labels with ## count as their characters.
    vocabulary = [*VOCABULARY[:-2], "##好", "##不"]
    backbone = small_backbone(vocabulary_size=len(vocabulary))
    cls = models.AlbertMaskedLM
    task = cls.from_backbone(backbone, vocabulary, marked_labels=True)
    return randomised(task), MASKED


def texts_of(name, texts):
    """Return texts of one window, and no empty ones in pairs, which keep a [SEP]."""
    if isinstance(texts, tuple):
        return tuple([x[: WINDOWS.get(name)] or "好" for x in part] for part in texts)
    return [x[: WINDOWS.get(name)] for x in texts]


def run(folder, texts, precision="float32"):
    """Return ids and outputs by name, computed without this package."""
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    pad = tokenizer.token_to_id(config["pad_token"])
    tokenizer.enable_padding(pad_id=pad, pad_token=config["pad_token"])
    rows = zip(*texts, strict=True) if isinstance(texts, tuple) else texts
    found = tokenizer.encode_batch([*rows])
    feeds = {
        "input_ids": [x.ids for x in found],
        "token_type_ids": [x.type_ids for x in found],
        "attention_mask": [x.attention_mask for x in found],
    }
    feeds = {name: np.array(x, "int64") for name, x in feeds.items()}
    session = onnxruntime.InferenceSession(folder / NETWORKS[precision])
    assert [x.name for x in session.get_inputs()] == [*feeds]
    names = [x.name for x in session.get_outputs()]
    return feeds, dict(zip(names, session.run(None, feeds), strict=True))


def softmax(x):
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def answers(name, task, outputs, features):
    """Return pairs of arrays: those of the file and those of Keras."""
    mask = features["padding_mask"].numpy() > 0
    expected = task(features, training=False)
    if name == "questions":
        return [(outputs[x][mask], expected[x].numpy()[mask]) for x in expected]
    # transformers.js has no temperature, so that the file divides the logits.
    expected = np.array(expected) / getattr(task, "temperature", 1.0)
    if name == "tags":
        return [(outputs["logits"][mask], expected[mask])]
    if name == "masked":
        where = features["mask_positions"].numpy()
        logits = np.take_along_axis(outputs["logits"], where[..., None], axis=1)
        return [(softmax(logits), task.probabilities(expected).numpy())]
    if name.startswith("embedding"):
        return [(outputs["sentence_embedding"], expected)]
    given = outputs["logits"]
    return [(softmax(given) if name == "google pairs" else given, expected)]


@pytest.mark.parametrize("name", NAMES)
def test_ids_and_numbers_are_those_of_keras(name, tmp_path):
    task, texts = build(name)
    texts = texts_of(name, texts)
    albert_tf.export.transformers_js(task, tmp_path / "web")
    given, outputs = run(tmp_path / "web", texts)
    features = task.preprocessor.features(texts)
    mask = given["attention_mask"] > 0
    for ours, theirs in zip(OURS, given, strict=True):
        features[ours] = features[ours][:, : mask.shape[1]]
        found = given[theirs][mask], features[ours].numpy()[mask]
        np.testing.assert_array_equal(*found)
    assert features["padding_mask"].numpy().sum() == mask.sum()
    for found, expected in answers(name, task, outputs, features):
        np.testing.assert_allclose(found, expected, atol=1e-4)
    _, quantized = run(tmp_path / "web", texts, "int8")
    for key, values in quantized.items():
        np.testing.assert_allclose(values, outputs[key], atol=3)
        assert np.ptp(values, axis=0).max() > 1e-3


def test_a_row_that_was_cut_off_ends_with_sep(tmp_path):
    """transformers.js removes the last special token of a long text."""
    classifier = small_classifier()
    albert_tf.export.transformers_js(classifier, tmp_path / "web")
    text, length = "我想吃鸡蛋" * 9, classifier.preprocessor.sequence_length
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "web/tokenizer.json"))
    tokenizer.no_truncation()
    ids = np.array([tokenizer.encode(text).ids[:length]], "int64")
    session = onnxruntime.InferenceSession(tmp_path / "web" / NETWORKS["float32"])
    feeds = {"input_ids": ids, "token_type_ids": ids * 0, "attention_mask": ids**0}
    expected = classifier.predict([text], verbose=0)
    np.testing.assert_allclose(session.run(None, feeds)[0], expected, atol=1e-4)


# --- The tokenizer ---

SETTINGS = [
    {},
    {"lowercase": False},
    {"strip_accents": False, "max_input_chars_per_word": 5},
    {"lowercase": False, "strip_accents": True, "tokenize_chinese_chars": False},
]


def library_ids(tokenizer, texts):
    content = json.dumps(tokenizer_json(tokenizer, 9, decodes=False))
    library = tokenizers.Tokenizer.from_str(content)
    library.no_truncation()
    return [x.ids for x in library.encode_batch(texts, add_special_tokens=False)]


@pytest.mark.parametrize("arguments", few(SETTINGS, [{}]), ids=str)
def test_word_pieces_of_random_strings(arguments):
    rng = random.Random(6)
    characters = [chr(x) for x in range(0xD800)]
    characters += [chr(rng.randrange(0xE000, 0x110000)) for _ in range(9000)]
    # U+03A3 has another small letter at the end of a word, only in whole texts.
    texts = [f"a{x}b中{x}" for x in characters if x != "\u03a3"]
    common = "".join(VOCABULARY[5:99]) + " \t\nÀéSCHL[MASK]𠮷鿕🥰１，"
    texts += ["".join(rng.choices(common, k=rng.randrange(40))) for _ in range(2000)]
    texts += ["[CLS][MASK]", "Ａ" * 201, "a" * 200, "a" * 201]
    letters = [x for y in "aàé中𠮷１Ａa" for x in (y, f"##{y}")]
    tokens = [*VOCABULARY, *letters, "[", "]", "cls", "mask", "###"]
    plain = PlainTokenizer(tokens, **arguments)
    found = library_ids(WordPieceTokenizer(tokens, **arguments), texts)
    assert found == [plain.tokenize(text) for text in texts]


def test_added_tokens_and_rows_of_one_token():
    tokens = [*VOCABULARY[:-2], "<a>", "好"]
    tokenizer = WordPieceTokenizer(tokens, added_tokens={"<a>": False})
    texts = ["好<a>好", "<A>", "<a>"]
    assert library_ids(tokenizer, texts) == tokenizer(texts).to_list()


@pytest.mark.parametrize("lowercase", [True, False])
def test_sentence_pieces(lowercase):
    proto = sentence_piece_reference.train_model()
    tokenizer = SentencePieceTokenizer(proto, lowercase)
    rng = random.Random(7)
    text = sentence_piece_reference.TEXT
    texts = [
        *text.splitlines(),
        "",
        " a  b ",
        "1,2,3,, 4, x9,",
        "Café ﬁne ½,\u3000中文",
    ]
    texts += ["".join(rng.choices(text + "é½中", k=30)) for _ in range(500)]
    ours = tokenizer(texts).to_list()
    # Equally likely segmentations, of numbers with three zeros.
    pairs = zip(texts, ours, library_ids(tokenizer, texts), strict=True)
    assert not [x for x, a, b in pairs if a != b and "000" not in x]


def test_chinese_is_decoded_without_spaces(tmp_path):
    task, _ = build("questions")
    albert_tf.export.transformers_js(task, tmp_path / "web")
    library = tokenizers.Tokenizer.from_file(str(tmp_path / "web/tokenizer.json"))
    found = library.encode("很好，不 ab c 好")
    assert library.decode(found.ids) == "很好，不 ab c 好"


# --- The other files ---


def test_labels_of_every_task(tmp_path):
    expected = {
        "labels": ("albert", "AlbertForSequenceClassification", [*"坏中好"]),
        "multi-label": ("albert", "AlbertForSequenceClassification", None),
        "regression": ("albert", "AlbertForSequenceClassification", ["score"]),
        "tags": ("bert", "BertForTokenClassification", None),
        "questions": ("albert", "AlbertForQuestionAnswering", None),
        "embedding": ("albert", "AlbertModel", None),
    }
    for name, (kind, architecture, labels) in expected.items():
        task, _ = small_task(name)
        albert_tf.export.transformers_js(task, tmp_path / name)
        config = json.loads((tmp_path / name / "config.json").read_text("utf-8"))
        assert (config["model_type"], *config["architectures"]) == (kind, architecture)
        if labels:
            assert [*config["id2label"].values()] == labels == [*config["label2id"]]
        card = (tmp_path / name / "README.md").read_text("utf-8")
        assert MARK in card and f'"{name}"' in card and "{" in card and "{{" not in card
    assert config["pad_token_id"] == 0
    tags = json.loads((tmp_path / "tags/config.json").read_text("utf-8"))["label2id"]
    assert {"O", "B-PER", "E-LOC"} <= {*tags}
    problem = json.loads((tmp_path / "multi-label/config.json").read_text("utf-8"))
    assert problem["problem_type"] == "multi_label_classification"
    assert problem["classifier_thresholds"] == [0.3, 0.5, 0.6, 0.4]
    settings = (tmp_path / "labels/tokenizer_config.json").read_text("utf-8")
    assert json.loads(settings)["model_max_length"] == 29


def test_mistakes(tmp_path):
    def write(task, folder="web"):
        albert_tf.export.transformers_js(task, tmp_path / folder)

    with pytest.raises(ValueError, match="are written for text-classification"):
        write(small_task("choices")[0])
    classifier = small_classifier(activation="tanh")
    with pytest.raises(ValueError, match='Expected `activation` "softmax"'):
        write(classifier)
    assert not (tmp_path / "web").exists()
    classifier = small_classifier()
    classifier.save_to_preset(tmp_path / "model")
    with pytest.raises(FileExistsError, match="choose another directory"):
        write(classifier, "model")
    write(classifier)
    (tmp_path / "web/README.md").write_text("Mine.", "utf-8")
    write(classifier)
    assert (tmp_path / "web/README.md").read_text("utf-8") == "Mine."
    classifier.preprocessor = None
    with pytest.raises(ValueError, match="has no preprocessor"):
        write(classifier)
