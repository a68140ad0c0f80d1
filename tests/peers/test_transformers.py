"""Files of PyTorch transformers in this package, and our files there."""

import json
import os

# Before transformers is imported: nothing here may look for a model elsewhere.
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pytest
from peer_models import (
    ENGLISH,
    GOLDEN,
    SIZES,
    TOLERANCE,
    at_positions,
    golden,
    inputs,
    largest_difference,
    log_softmax,
    mask_positions,
    random_backbone,
    random_values,
    randomise,
    same_weights,
    sentence_piece_proto,
)

import albert_tf
from albert_tf.checkpoints import CheckpointError
from albert_tf.models import (
    AlbertMultiLabelClassifier,
    AlbertPretrainer,
    AlbertTextClassifier,
    AlbertTextRegressor,
)
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.tokenizers import SentencePieceTokenizer, WordPieceTokenizer

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors")

pytestmark = pytest.mark.peers

NUM_LAYERS = 3
SMALL = {
    "vocab_size": SIZES["vocabulary_size"],
    "num_hidden_layers": NUM_LAYERS,
    "num_attention_heads": SIZES["num_heads"],
    "embedding_size": SIZES["embedding_dim"],
    "hidden_size": SIZES["hidden_dim"],
    "intermediate_size": SIZES["intermediate_dim"],
    "max_position_embeddings": SIZES["max_sequence_length"],
    "type_vocab_size": SIZES["num_segments"],
}
# hidden_act, num_hidden_groups, inner_group_num
KINDS = [("gelu", 1, 1), ("gelu_new", 3, 2), ("relu", 2, 1)]
# With the file format that each is tried in.
KINDS_AND_FORMATS = list(zip(KINDS, ["safetensors", "bin", "safetensors"], strict=True))
LABELS = ["差评", "一般", "好评"]
GOLDEN_NAMES = ["google_v2", "google_groups", "google_early"]

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CHINESE = [
    "今天天气很好，我们去公园吧！",
    "Hello 世界123，ＡＢＣ　全角",
    "这部 电影\t太差了。",
    "Café 的咖啡……不错",
    "生僻字：𠮷龘",
]


# === Making, saving and running models of transformers ===


def peer(cls, kind=KINDS[0], seed=0, **fields):
    """A model of transformers whose every parameter is random."""
    act, groups, inner = kind
    config = transformers.AlbertConfig(
        hidden_act=act, num_hidden_groups=groups, inner_group_num=inner, **SMALL
    )
    config.update(fields)
    model = getattr(transformers, cls)(config).eval()
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_scale = "norm" in name.lower() and name.endswith("weight")
            values = random_values(tuple(parameter.shape), is_scale, rng)
            parameter.copy_(torch.tensor(values))
    return model


def save(model, folder, file_format="safetensors"):
    """As transformers writes today, or as it wrote for years."""
    if file_format == "safetensors":
        model.save_pretrained(folder)
    else:
        model.config.save_pretrained(folder)
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder


def run(model, model_inputs, **kwargs):
    names = {
        "input_ids": "token_ids",
        "token_type_ids": "segment_ids",
        "attention_mask": "padding_mask",
    }
    tensors = {
        theirs: torch.tensor(model_inputs[ours].astype("int64"))
        for theirs, ours in names.items()
    }
    with torch.no_grad():
        return model(**tensors, **kwargs)


def load(cls, folder):
    """A model of transformers that got all of its weights from a directory."""
    model, info = getattr(transformers, cls).from_pretrained(
        folder, output_loading_info=True
    )
    for kind, names in info.items():
        assert not names, f"{kind}: {names}"
    return model.eval()


# === Their files, our models ===


@pytest.mark.parametrize("kind, file_format", KINDS_AND_FORMATS)
def test_their_encoder(tmp_path, kind, file_format):
    model = peer("AlbertModel", kind)
    backbone = albert_tf.load_checkpoint(save(model, tmp_path, file_format))
    for given in (inputs(), inputs(padded=False)):
        ours = backbone.with_intermediates()(given)
        theirs = run(model, given, output_hidden_states=True)
        pooled = theirs.pooler_output
        assert largest_difference(ours["pooled_output"], pooled) < TOLERANCE
        layers = ours["hidden_states"], theirs.hidden_states
        assert len(layers[0]) == NUM_LAYERS * kind[2] + 1
        for a, b in zip(*layers, strict=True):
            assert largest_difference(a, b) < TOLERANCE


@pytest.mark.parametrize("kind, file_format", KINDS_AND_FORMATS)
def test_their_pretraining_heads(tmp_path, kind, file_format):
    model = peer("AlbertForPreTraining", kind)
    folder = save(model, tmp_path, file_format)
    positions = mask_positions()
    ours = AlbertPretrainer.from_checkpoint(folder)
    ours = ours({**inputs(), "mask_positions": positions})
    theirs = run(model, inputs())
    mlm_logits = at_positions(theirs.prediction_logits, positions)
    assert largest_difference(ours["mlm_logits"], mlm_logits) < TOLERANCE
    assert largest_difference(ours["sop_logits"], theirs.sop_logits) < TOLERANCE
    backbone = albert_tf.load_checkpoint(folder)
    pooled = run(model.albert, inputs()).pooler_output
    assert largest_difference(backbone(inputs())["pooled_output"], pooled) < TOLERANCE


def classifier_of_theirs(kind=KINDS[0], labels=LABELS):
    names = {
        "id2label": dict(enumerate(labels)),
        "label2id": {label: i for i, label in enumerate(labels)},
    }
    return peer("AlbertForSequenceClassification", kind, **names)


@pytest.mark.parametrize("kind, file_format", KINDS_AND_FORMATS)
def test_their_classifier(tmp_path, kind, file_format):
    model = classifier_of_theirs(kind)
    folder = save(model, tmp_path, file_format)
    ours = AlbertTextClassifier.from_checkpoint(folder, vocabulary=vocabulary())
    assert (ours.num_classes, ours.labels) == (len(LABELS), LABELS)
    theirs = run(model, inputs()).logits
    assert largest_difference(ours(inputs()), theirs) < TOLERANCE


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
    assert largest_difference(*logits) < TOLERANCE


def check_logits_and_loss(ours, model, labels):
    theirs = run(model, inputs(), labels=torch.tensor(labels))
    assert largest_difference(ours(inputs()), theirs.logits) < TOLERANCE
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
    given = ours.answers(ours(inputs()))["probabilities"]
    assert largest_difference(given, theirs.sigmoid()) < TOLERANCE

    ours.thresholds = [0.25, 0.5, 0.75]
    albert_tf.save_checkpoint(ours, tmp_path / "ours", "huggingface")
    again = load(cls, tmp_path / "ours")
    assert again.config.problem_type == problem
    assert largest_difference(run(again, inputs()).logits, theirs) < TOLERANCE


def test_their_classifier_of_two_classes_without_names(tmp_path):
    # transformers does not write the names of two classes called LABEL_0, LABEL_1.
    model = peer("AlbertForSequenceClassification")
    ours = AlbertTextClassifier.from_checkpoint(
        save(model, tmp_path), vocabulary=vocabulary()
    )
    assert ours.num_classes == 2
    assert largest_difference(ours(inputs()), run(model, inputs()).logits) < TOLERANCE


@pytest.mark.parametrize("kind, file_format", KINDS_AND_FORMATS)
def test_their_masked_language_model(tmp_path, kind, file_format):
    model = peer("AlbertForMaskedLM", kind)
    folder = save(model, tmp_path, file_format)
    ours = AlbertPretrainer.from_checkpoint(folder)
    positions = mask_positions()
    ours = ours({**inputs(), "mask_positions": positions})
    # The file has neither pooler nor sentence order; random ones would be a trap.
    assert list(ours) == ["mlm_logits"]
    theirs = at_positions(run(model, inputs()).logits, positions)
    assert largest_difference(ours["mlm_logits"], theirs) < TOLERANCE
    with pytest.raises(CheckpointError, match="pooler=False"):
        albert_tf.load_checkpoint(folder)
    ours = albert_tf.load_checkpoint(folder, pooler=False)(inputs())
    assert list(ours) == ["sequence_output"]
    theirs = run(model.albert, inputs()).last_hidden_state
    assert largest_difference(ours["sequence_output"], theirs) < TOLERANCE


def test_a_pooler_without_sentence_order(tmp_path):
    # So the converted English releases are published.
    model = peer("AlbertForPreTraining")
    state = {
        name: tensor
        for name, tensor in model.state_dict().items()
        if not name.startswith("sop_classifier")
    }
    model.config.save_pretrained(tmp_path)
    torch.save(state, tmp_path / "pytorch_model.bin")
    ours = AlbertPretrainer.from_checkpoint(tmp_path)
    pooled = run(model.albert, inputs()).pooler_output
    backbone = ours.backbone(inputs())
    assert largest_difference(backbone["pooled_output"], pooled) < TOLERANCE
    ours = ours({**inputs(), "mask_positions": mask_positions()})
    assert list(ours) == ["mlm_logits"]


@pytest.mark.parametrize(
    "cls", ["AlbertForTokenClassification", "AlbertForQuestionAnswering"]
)
def test_the_head_of_another_task_is_not_a_classifier(tmp_path, cls):
    # A head over the tokens has the names and shapes of one over the text.
    folder = save(peer(cls), tmp_path)
    with pytest.raises((CheckpointError, ValueError)):
        AlbertTextClassifier.from_checkpoint(folder, vocabulary=vocabulary())


@pytest.mark.parametrize("act", ["gelu_pytorch_tanh", "silu", "mish", "tanh"])
def test_other_activations(tmp_path, act):
    model = peer("AlbertModel", (act, 1, 1))
    backbone = albert_tf.load_checkpoint(save(model, tmp_path))
    theirs = run(model, inputs()).last_hidden_state
    ours = backbone(inputs())["sequence_output"]
    assert largest_difference(ours, theirs) < TOLERANCE


def test_an_activation_keras_does_not_have_is_refused(tmp_path):
    folder = save(peer("AlbertModel", ("quick_gelu", 1, 1)), tmp_path)
    with pytest.raises(CheckpointError, match="hidden_act='quick_gelu'"):
        albert_tf.load_checkpoint(folder)


def test_another_epsilon_is_refused(tmp_path):
    folder = save(peer("AlbertModel", layer_norm_eps=1e-3), tmp_path)
    with pytest.raises(CheckpointError, match="layer_norm_eps"):
        albert_tf.load_checkpoint(folder)


def test_a_file_of_early_versions(tmp_path):
    model = peer("AlbertForPreTraining")
    state = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): tensor
        for name, tensor in model.state_dict().items()
    }
    state["albert.embeddings.position_ids"] = torch.arange(33)[None]
    model.config.save_pretrained(tmp_path)
    torch.save(state, tmp_path / "pytorch_model.bin")
    ours = AlbertPretrainer.from_checkpoint(tmp_path)
    ours = ours({**inputs(), "mask_positions": mask_positions()})
    theirs = run(model, inputs()).sop_logits
    assert largest_difference(ours["sop_logits"], theirs) < TOLERANCE


@pytest.mark.parametrize("file_format", ["safetensors", "bin"])
def test_a_model_in_half_precision(tmp_path, file_format):
    model = peer("AlbertModel").to(torch.bfloat16)
    backbone = albert_tf.load_checkpoint(save(model, tmp_path, file_format))
    theirs = run(model.float(), inputs()).last_hidden_state
    ours = backbone(inputs())["sequence_output"]
    assert largest_difference(ours, theirs) < TOLERANCE


@pytest.mark.parametrize("cls", ["AlbertModel", "AlbertForPreTraining"])
def test_their_file_through_ours_is_the_same_file(tmp_path, cls):
    folder = save(peer(cls, ("gelu_new", 3, 2)), tmp_path / "theirs")
    with_heads = cls == "AlbertForPreTraining"
    read = AlbertPretrainer.from_checkpoint if with_heads else albert_tf.load_checkpoint
    albert_tf.save_checkpoint(read(folder), tmp_path / "ours", layout="huggingface")
    theirs, ours = (tensors_of(tmp_path / name) for name in ("theirs", "ours"))
    # The encoder alone may be written with the prefix that models with heads have.
    ours = {name.removeprefix("albert."): x for name, x in ours.items()}
    theirs = {name.removeprefix("albert."): x for name, x in theirs.items()}
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert ours[name].dtype == tensor.dtype
        assert np.array_equal(ours[name], tensor), name


def tensors_of(folder):
    from safetensors.numpy import load_file

    return load_file(folder / "model.safetensors")


# === Our files, their models ===


def write(model, folder):
    albert_tf.save_checkpoint(model, folder, layout="huggingface")
    return folder


@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_the_original_graphs_layers_in_transformers(tmp_path, name):
    golden_inputs, expected = golden(name)
    write(albert_tf.load_checkpoint(GOLDEN / name), tmp_path)
    theirs = run(load("AutoModel", tmp_path), golden_inputs, output_hidden_states=True)
    assert len(theirs.hidden_states) == len(expected["layers"]) + 1
    for a, b in zip(theirs.hidden_states[1:], expected["layers"], strict=True):
        assert largest_difference(a, b) < TOLERANCE
    pooled = expected["pooled_output"]
    assert largest_difference(theirs.pooler_output, pooled) < TOLERANCE


@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_the_original_graphs_heads_in_transformers(tmp_path, name):
    golden_inputs, expected = golden(name)
    write(AlbertPretrainer.from_checkpoint(GOLDEN / name), tmp_path)
    theirs = run(load("AlbertForPreTraining", tmp_path), golden_inputs)
    positions = expected["masked_lm_positions"]
    mlm = log_softmax(at_positions(theirs.prediction_logits, positions))
    mlm = mlm.reshape(expected["mlm_log_probs"].shape)
    assert largest_difference(mlm, expected["mlm_log_probs"]) < 5e-5
    sop = log_softmax(theirs.sop_logits)
    assert largest_difference(sop, expected["sop_log_probs"]) < 5e-5


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
    assert largest_difference(*states) < TOLERANCE
    assert largest_difference(ours["pooled_output"], theirs.pooler_output) < TOLERANCE
    assert same_weights(albert_tf.load_checkpoint(tmp_path), backbone)


@pytest.mark.parametrize("kind", OUR_KINDS[:2])
def test_our_pretrainer(tmp_path, kind):
    model = randomise(AlbertPretrainer(random_backbone(**kind)))
    theirs = run(load("AlbertForPreTraining", write(model, tmp_path)), inputs())
    ours = model({**inputs(), "mask_positions": mask_positions()})
    mlm = at_positions(theirs.prediction_logits, mask_positions())
    assert largest_difference(ours["mlm_logits"], mlm) < TOLERANCE
    assert largest_difference(ours["sop_logits"], theirs.sop_logits) < TOLERANCE


def test_our_masked_language_model_without_pooler(tmp_path):
    backbone = random_backbone(pooler=False)
    model = randomise(AlbertPretrainer(backbone, num_sop_classes=0))
    theirs = run(load("AutoModelForMaskedLM", write(model, tmp_path)), inputs())
    ours = model({**inputs(), "mask_positions": mask_positions()})
    mlm = at_positions(theirs.logits, mask_positions())
    assert largest_difference(ours["mlm_logits"], mlm) < TOLERANCE


def classifier_of_ours(labels=LABELS, num_classes=3, **kwargs):
    backbone = random_backbone(**kwargs)
    return randomise(
        AlbertTextClassifier.from_backbone(
            backbone, vocabulary(), num_classes, labels=labels
        )
    )


@pytest.mark.parametrize("labels, num_classes", [(LABELS, 3), (None, 1), (None, 5)])
def test_our_classifier(tmp_path, labels, num_classes):
    model = classifier_of_ours(labels, num_classes)
    theirs = load("AutoModelForSequenceClassification", write(model, tmp_path))
    assert type(theirs).__name__ == "AlbertForSequenceClassification"
    if labels:
        assert list(theirs.config.id2label.values()) == LABELS
        assert theirs.config.label2id == {label: i for i, label in enumerate(LABELS)}
    assert largest_difference(model(inputs()), run(theirs, inputs()).logits) < TOLERANCE
    loaded = AlbertTextClassifier.from_checkpoint(tmp_path)
    assert (loaded.labels, loaded.num_classes) == (labels, num_classes)
    logits = [x.predict(CHINESE, verbose=0) for x in (model, loaded)]
    assert np.array_equal(*logits)


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


def test_a_model_transformers_cannot_hold(tmp_path):
    model = random_backbone(normalize_first=True)
    with pytest.raises(CheckpointError, match="normalize_first"):
        write(model, tmp_path / "saved")
    assert not list(tmp_path.iterdir())


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


def test_cased_word_piece_ids(tmp_path):
    texts = ["Hello hello", "Café"]
    tokens = [*SPECIAL, "Hello", "hello", "Caf", "##é", "Ca", "##fe"]
    tokens += [f"[unused{i}]" for i in range(120 - len(tokens))]
    model = AlbertTextClassifier.from_backbone(
        random_backbone(), tokens, 2, lowercase=False
    )
    write(model, tmp_path)
    assert ids_of_transformers(tmp_path, texts) == [[5, 6], [7, 8]]
    loaded = AlbertTextClassifier.from_checkpoint(tmp_path)
    assert loaded.preprocessor.tokenizer(texts).to_list() == [[5, 6], [7, 8]]


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
        assert largest_difference(ours, logits) < TOLERANCE


def golden_texts(name, unlike):
    """The golden texts that transformers tokenizes as the original did."""
    cases = json.loads((GOLDEN / "tokenization.json").read_text(encoding="utf-8"))
    return [case for case in cases[name] if not any(x in case["text"] for x in unlike)]


def test_released_chinese_vocabulary(tmp_path, assets):
    path = assets / "released" / "vocab" / "vocab_zh_21128.txt"
    tokenizer = WordPieceTokenizer(str(path))
    backbone = random_backbone(vocabulary_size=tokenizer.vocabulary_size())
    write(AlbertTextClassifier.from_backbone(backbone, str(path), 2), tmp_path)
    # Literal special tokens, and lower-casing of a final sigma and a dotted I.
    cases = golden_texts("zh", ["[CLS]", "Σ"])
    assert len(cases) > 40
    texts = [case["text"] for case in cases]
    assert ids_of_transformers(tmp_path, texts) == [case["ids"] for case in cases]
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    special = (config.pad_token_id, config.bos_token_id, config.eos_token_id)
    assert special == (0, 101, 102)


def sentence_piece_classifier(tokenizer):
    backbone = random_backbone(vocabulary_size=tokenizer.vocabulary_size())
    preprocessor = AlbertTextClassifierPreprocessor(tokenizer, sequence_length=33)
    return randomise(AlbertTextClassifier(backbone, 3, preprocessor=preprocessor))


def test_sentence_piece_ids(tmp_path):
    model = sentence_piece_classifier(SentencePieceTokenizer(sentence_piece_proto()))
    write(model, tmp_path)
    texts = [text.title() for text in ENGLISH]
    ours = model.preprocessor.tokenizer(texts).to_list()
    assert len({i for ids in ours for i in ids}) > 20
    assert ids_of_transformers(tmp_path, texts) == ours
    loaded = AlbertTextClassifier.from_checkpoint(tmp_path)
    assert loaded.preprocessor.tokenizer(texts).to_list() == ours


def test_released_english_pieces(tmp_path, assets):
    path = assets / "released" / "vocab" / "30k-clean.model"
    tokenizer = SentencePieceTokenizer(path)
    write(sentence_piece_classifier(tokenizer), tmp_path)
    # transformers cuts these pieces off before SentencePiece sees the word, and
    # makes one quotation mark of two.
    unlike = ["(", '"', "-", "–", "£", "€", "``", "[CLS]", "9.", "U.S", "3.14"]
    cases = golden_texts("en_sentencepiece", unlike)
    assert len(cases) > 10
    texts = [case["text"] for case in cases]
    ours = tokenizer(texts).to_list()
    assert ours == [case["ids"] for case in cases]
    assert ids_of_transformers(tmp_path, texts) == ours
