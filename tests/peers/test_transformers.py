"""Files of PyTorch transformers in this package, and our files there."""

import os

# Before transformers is imported: nothing here may look for a model elsewhere.
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pytest
from checkpoint_files import (
    GOLDEN,
    assert_near,
    assert_same_weights,
    backbone_inputs,
    log_softmax,
)
from checkpoint_files import expected as golden
from peer_models import ENGLISH, SIZES, inputs, random_backbone, randomise
from sentence_piece_reference import train_model
from small_classifier import SPECIAL

import albert_tf
from albert_tf.checkpoints import CheckpointError
from albert_tf.models import (
    AlbertMultiLabelClassifier,
    AlbertMultipleChoice,
    AlbertPretrainer,
    AlbertQuestionAnswering,
    AlbertTextClassifier,
    AlbertTextRegressor,
    AlbertTokenClassifier,
)
from albert_tf.tokenizers import SentencePieceTokenizer

load_file = pytest.importorskip("safetensors.numpy").load_file
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.peers

SMALL = {
    "vocab_size": SIZES["vocabulary_size"],
    "num_hidden_layers": 3,
    "num_attention_heads": SIZES["num_heads"],
    "embedding_size": SIZES["embedding_dim"],
    "hidden_size": SIZES["hidden_dim"],
    "intermediate_size": SIZES["intermediate_dim"],
    "max_position_embeddings": SIZES["max_sequence_length"],
    "type_vocab_size": SIZES["num_segments"],
}
# hidden_act, num_hidden_groups, inner_group_num
KINDS = [("gelu", 1, 1), ("gelu_new", 3, 2), ("relu", 2, 1)]
LABELS = ["差评", "一般", "好评"]
POSITIONS = np.random.default_rng(0).integers(17, size=(3, 5))

CHINESE = [
    "今天天气很好，我们去公园吧！",
    "Hello 世界123，ＡＢＣ　全角",
    "这部 电影\t太差了。",
    "Café 的咖啡……不错",
    "生僻字：𠮷龘",
]


# === Making, saving and running models of transformers ===


def peer(cls, kind=KINDS[0], **fields):
    """A model of transformers whose every parameter is random."""
    act, groups, inner = kind
    config = transformers.AlbertConfig(
        hidden_act=act, num_hidden_groups=groups, inner_group_num=inner, **SMALL
    )
    config.update(fields)
    model = getattr(transformers, cls)(config).eval()
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_scale = "norm" in name.lower() and name.endswith("weight")
            values = rng.normal(float(is_scale), 0.15, tuple(parameter.shape))
            parameter.copy_(torch.tensor(values))
    return model


def save(model, folder, state=None):
    """Write the files of today, or a state as transformers did for years."""
    if state is None:
        model.save_pretrained(folder)
    else:
        model.config.save_pretrained(folder)
        torch.save(state, folder / "pytorch_model.bin")
    return folder


def run(model, model_inputs, **kwargs):
    names = ("token_ids", "segment_ids", "padding_mask")
    theirs = ("input_ids", "token_type_ids", "attention_mask")
    tensors = (torch.tensor(model_inputs[name].astype("int64")) for name in names)
    with torch.no_grad():
        return model(**dict(zip(theirs, tensors, strict=True)), **kwargs)


def at_positions(array):
    """The rows of [batch, time, ...] at `POSITIONS`."""
    return np.take_along_axis(np.asarray(array), POSITIONS[..., None], axis=1)


def heads_of(folder):
    model = AlbertPretrainer.from_checkpoint(folder)
    return model({**inputs(), "mask_positions": POSITIONS})


def load(cls, folder):
    """A model of transformers that got all of its weights from a directory."""
    model, info = getattr(transformers, cls).from_pretrained(
        folder, output_loading_info=True
    )
    for kind, names in info.items():
        assert not names, f"{kind}: {names}"
    return model.eval()


# === Their files, our models ===


@pytest.mark.parametrize("kind", KINDS)
def test_their_layers_and_pretraining_heads(tmp_path, kind):
    model = peer("AlbertForPreTraining", kind)
    state = model.state_dict() if kind[0] == "gelu_new" else None
    backbone = albert_tf.load_checkpoint(save(model, tmp_path, state))
    for given in (inputs(), inputs(padded=False)):
        ours = backbone.with_intermediates()(given)
        theirs = run(model.albert, given, output_hidden_states=True)
        assert_near(ours["pooled_output"], theirs.pooler_output)
        layers = ours["hidden_states"], theirs.hidden_states
        assert len(layers[0]) == 3 * kind[2] + 1
        for a, b in zip(*layers, strict=True):
            assert_near(a, b)
    ours, theirs = heads_of(tmp_path), run(model, inputs())
    assert_near(ours["mlm_logits"], at_positions(theirs.prediction_logits))
    assert_near(ours["sop_logits"], theirs.sop_logits)


def names(labels):
    return {
        "id2label": dict(enumerate(labels)),
        "label2id": {label: i for i, label in enumerate(labels)},
    }


HEADS = {
    "AlbertForSequenceClassification": (AlbertTextClassifier, names(LABELS)),
    "AlbertForTokenClassification": (
        AlbertTokenClassifier,
        names(["I-LOC", "B-PER", "O", "B-LOC", "I-PER"]),
    ),
    "AlbertForQuestionAnswering": (AlbertQuestionAnswering, {}),
    "AlbertForMultipleChoice": (AlbertMultipleChoice, {}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cls", HEADS)
def test_a_head_there_and_back(tmp_path, cls, kind):
    task, fields = HEADS[cls]
    given = inputs()
    if cls == "AlbertForMultipleChoice":
        parts = [inputs(seed) for seed in range(4)]
        given = {name: np.stack([x[name] for x in parts], axis=1) for name in given}
    theirs = peer(cls, kind, **fields)
    ours = task.from_checkpoint(
        save(theirs, tmp_path / "theirs"), vocabulary=vocabulary()
    )
    write(ours, tmp_path / "ours")
    again = load(cls, tmp_path / "ours")
    for model in (theirs, again):
        assert_same_logits(ours, model, given)
        assert fields.items() <= vars(model.config).items()
    assert_same_weights(task.from_checkpoint(tmp_path / "ours"), ours)


def assert_same_logits(ours, theirs, given):
    """Logits of padding may differ."""
    ours, theirs = ours(given), run(theirs, given)
    is_token = given["padding_mask"] == 1
    for name, x in ours.items() if isinstance(ours, dict) else [("logits", ours)]:
        x, expected = np.asarray(x), theirs[name].numpy()
        if x.shape[:2] == is_token.shape:
            x, expected = x[is_token], expected[is_token]
        assert_near(x, expected)


@pytest.mark.parametrize("problem", ["regression", None])
def test_their_regressor(tmp_path, problem):
    cls = "AlbertForSequenceClassification"
    model = peer(cls, num_labels=1, problem_type=problem)
    ours = AlbertTextRegressor.from_checkpoint(
        save(model, tmp_path / "theirs"), vocabulary=vocabulary()
    )
    labels = np.array([0.5, 5.0, 2.5], "float32")
    check_logits_and_loss(ours, model, labels)

    albert_tf.save_checkpoint(ours, tmp_path / "ours", "huggingface")
    again = load(cls, tmp_path / "ours")
    assert (again.config.problem_type, again.config.num_labels) == ("regression", 1)
    logits = (run(x, inputs()).logits for x in (again, model))
    assert_near(*logits)


def check_logits_and_loss(ours, model, labels):
    theirs = run(model, inputs(), labels=torch.tensor(labels))
    assert_near(ours(inputs()), theirs.logits)
    loss = ours.evaluate(inputs(), labels, verbose=0)[0]
    assert loss == pytest.approx(float(theirs.loss), rel=1e-5)


def test_their_multi_label_classifier(tmp_path):
    cls, problem = "AlbertForSequenceClassification", "multi_label_classification"
    model = peer(cls, id2label=dict(enumerate(LABELS)), problem_type=problem)
    path = save(model, tmp_path / "theirs")
    with pytest.raises(ValueError, match="AlbertMultiLabelClassifier"):
        AlbertTextClassifier.from_checkpoint(path, vocabulary=vocabulary())
    ours = AlbertMultiLabelClassifier.from_checkpoint(path, vocabulary=vocabulary())
    assert ours.labels == LABELS
    labels = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 1]], "float32")
    check_logits_and_loss(ours, model, labels)
    theirs = run(model, inputs()).logits
    given = ours.postprocess(ours(inputs()))["probabilities"]
    assert_near(given, theirs.sigmoid())

    ours.thresholds = [0.25, 0.5, 0.75]
    albert_tf.save_checkpoint(ours, tmp_path / "ours", "huggingface")
    again = load(cls, tmp_path / "ours")
    assert again.config.problem_type == problem
    assert_near(run(again, inputs()).logits, theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_their_masked_language_model(tmp_path, kind):
    model = peer("AlbertForMaskedLM", kind)
    folder = save(model, tmp_path)
    ours = heads_of(folder)
    # The file has neither pooler nor sentence order; random ones would be a trap.
    assert list(ours) == ["mlm_logits"]
    assert_near(ours["mlm_logits"], at_positions(run(model, inputs()).logits))
    with pytest.raises(CheckpointError, match="pooler=False"):
        albert_tf.load_checkpoint(folder)
    ours = albert_tf.load_checkpoint(folder, pooler=False)(inputs())
    assert list(ours) == ["sequence_output"]
    theirs = run(model.albert, inputs()).last_hidden_state
    assert_near(ours["sequence_output"], theirs)


@pytest.mark.parametrize("act", ["gelu_pytorch_tanh", "silu", "mish", "tanh"])
def test_other_activations(tmp_path, act):
    model = peer("AlbertModel", (act, 1, 1))
    backbone = albert_tf.load_checkpoint(save(model, tmp_path))
    theirs = run(model, inputs()).last_hidden_state
    ours = backbone(inputs())["sequence_output"]
    assert_near(ours, theirs)


def test_a_file_of_early_versions(tmp_path):
    model = peer("AlbertForPreTraining")
    state = {"albert.embeddings.position_ids": torch.arange(33)[None]}
    for name, tensor in model.state_dict().items():
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
        state[name.replace("LayerNorm.bias", "LayerNorm.beta")] = tensor
    ours = heads_of(save(model, tmp_path, state))
    assert_near(ours["sop_logits"], run(model, inputs()).sop_logits)


@pytest.mark.parametrize("cls", ["AlbertModel", "AlbertForPreTraining"])
def test_their_file_through_ours_is_the_same_file(tmp_path, cls):
    folder = save(peer(cls, ("gelu_new", 3, 2)), tmp_path / "theirs")
    with_heads = cls == "AlbertForPreTraining"
    read = AlbertPretrainer.from_checkpoint if with_heads else albert_tf.load_checkpoint
    albert_tf.save_checkpoint(read(folder), tmp_path / "ours", layout="huggingface")
    files = (tmp_path / name / "model.safetensors" for name in ("theirs", "ours"))
    theirs, ours = map(load_file, files)
    # The encoder alone may be written with the prefix that models with heads have.
    ours = {name.removeprefix("albert."): x for name, x in ours.items()}
    theirs = {name.removeprefix("albert."): x for name, x in theirs.items()}
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert ours[name].dtype == tensor.dtype
        assert np.array_equal(ours[name], tensor), name


# === Our files, their models ===


def write(model, folder):
    albert_tf.save_checkpoint(model, folder, layout="huggingface")
    return folder


@pytest.mark.parametrize("name", ["google_v2", "google_groups", "google_early"])
def test_the_original_graphs_outputs_in_transformers(tmp_path, name):
    expected = golden(name)
    given = backbone_inputs(expected)
    write(AlbertPretrainer.from_checkpoint(GOLDEN / name), tmp_path)
    model = load("AlbertForPreTraining", tmp_path)
    theirs = run(model.albert, given, output_hidden_states=True)
    assert_near(theirs.pooler_output, expected["pooled_output"])
    for a, b in zip(theirs.hidden_states[1:], expected["layers"], strict=True):
        assert_near(a, b)
    theirs, words = run(model, given), expected["mlm_log_probs"]
    positions = expected["masked_lm_positions"][..., None]
    logits = np.take_along_axis(theirs.prediction_logits.numpy(), positions, axis=1)
    assert_near(log_softmax(logits).reshape(words.shape), words, 5e-5)
    assert_near(log_softmax(theirs.sop_logits), expected["sop_log_probs"], 5e-5)


OUR_KINDS = [
    {"activation": "gelu_approximate"},
    {"activation": "gelu", "num_attention_groups": 3, "num_ffn_groups": 3},
    {"activation": "relu", "num_inner_repetitions": 2},
    {"activation": "silu", "num_attention_groups": 2, "num_ffn_groups": 2},
]


@pytest.mark.parametrize("kind", OUR_KINDS)
def test_our_encoder(tmp_path, kind):
    backbone = random_backbone(**kind, hidden_dropout=0.1, attention_dropout=0.2)
    theirs = load("AutoModel", write(backbone, tmp_path))
    assert theirs.config.hidden_dropout_prob == 0.1
    assert theirs.config.attention_probs_dropout_prob == 0.2
    theirs, ours = run(theirs, inputs()), backbone(inputs())
    states = ours["sequence_output"], theirs.last_hidden_state
    assert_near(*states)
    assert_near(ours["pooled_output"], theirs.pooler_output)
    assert_same_weights(albert_tf.load_checkpoint(tmp_path), backbone)


def classifier_of_ours(labels=LABELS, num_classes=3, **kwargs):
    backbone = random_backbone(**kwargs)
    return randomise(
        AlbertTextClassifier.from_backbone(
            backbone, vocabulary(), num_classes, labels=labels
        )
    )


def test_a_directory_that_transformers_wrote_again(tmp_path):
    # transformers 5 writes tokenizer.json in place of vocab.txt.
    model = classifier_of_ours()
    folder, again = tmp_path / "ours", tmp_path / "again"
    write(model, folder)
    load("AutoModelForSequenceClassification", folder).save_pretrained(again)
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(again)
    assert not (again / "vocab.txt").exists()
    loaded = AlbertTextClassifier.from_checkpoint(again)
    assert loaded.labels == LABELS
    logits = [x.predict(CHINESE, verbose=0) for x in (model, loaded)]
    assert np.array_equal(*logits)


# === Tokenizers ===


def vocabulary():
    """120 tokens that know some of `CHINESE` and nothing of the rest."""
    characters = sorted({c for text in CHINESE[:3] for c in text.lower() if c > "〿"})
    pieces = ["hello", "ca", "##fe", "1", "##2", "##3", ",", "!", "ａ", "##ｂ", "##ｃ"]
    tokens = list(dict.fromkeys([*SPECIAL, *characters, *pieces]))
    return tokens + [f"[unused{i}]" for i in range(120 - len(tokens))]


def ids_of_transformers(folder, texts):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return tokenizer(texts, add_special_tokens=False)["input_ids"]


def test_from_texts_and_pairs_to_logits(tmp_path):
    model = classifier_of_ours()
    write(model, tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer.model_max_length == SIZES["max_sequence_length"]
    ids = model.preprocessor.tokenizer(CHINESE).to_list()
    assert len({i for row in ids for i in row}) > 30
    assert ids_of_transformers(tmp_path, CHINESE) == ids
    theirs = load("AutoModelForSequenceClassification", tmp_path)
    for texts in ((CHINESE,), (CHINESE[:2], CHINESE[1:3])):
        batch = tokenizer(*texts, padding=True, return_tensors="pt")
        with torch.no_grad():
            logits = theirs(**batch).logits
        ours = model.predict(texts if len(texts) > 1 else texts[0], verbose=0)
        assert_near(ours, logits)


def test_sentence_piece_ids(tmp_path):
    tokenizer = SentencePieceTokenizer(train_model())
    backbone = random_backbone(vocabulary_size=tokenizer.vocabulary_size())
    write(AlbertTextClassifier.from_backbone(backbone, tokenizer, 3), tmp_path)
    texts = [text.title() for text in ENGLISH]
    ours = tokenizer(texts).to_list()
    assert len({i for ids in ours for i in ids}) > 20
    assert ids_of_transformers(tmp_path, texts) == ours
    loaded = AlbertTextClassifier.from_checkpoint(tmp_path)
    assert loaded.preprocessor.tokenizer(texts).to_list() == ours
