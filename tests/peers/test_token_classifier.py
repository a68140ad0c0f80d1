"""Tags of PyTorch transformers, from files of either."""

import numpy as np
import pytest
from small_classifier import VOCABULARY, randomised, small_backbone

from albert_tf.checkpoints import inspect_checkpoint, save_checkpoint
from albert_tf.models import AlbertTokenClassifier

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

pytestmark = pytest.mark.peers

# Batch 3, length 17, 4 heads.
SIZES = {
    "num_heads": 4,
    "embedding_projection": "after_layer_norm",
    "pooler": False,
}
TOLERANCE = 1e-5


def inputs():
    rng = np.random.default_rng(2)
    mask = (np.arange(17) < np.array([[17], [9], [12]])).astype("int32")
    return {
        "token_ids": rng.integers(120, size=(3, 17)).astype("int32") * mask,
        "segment_ids": np.zeros((3, 17), "int32"),
        "padding_mask": mask,
    }


def run(model, given):
    names = {
        "token_ids": "input_ids",
        "segment_ids": "token_type_ids",
        "padding_mask": "attention_mask",
    }
    given = {names[x]: torch.tensor(v, dtype=torch.long) for x, v in given.items()}
    with torch.no_grad():
        return model.eval()(**given).logits.numpy()


def difference(ours, theirs):
    mask = inputs()["padding_mask"][..., None]
    return np.abs((np.asarray(ours) - theirs) * mask).max()


@pytest.mark.parametrize("scheme", ["BIO", "BIOES"])
def test_our_model_in_transformers(tmp_path, scheme):
    model = randomised(
        AlbertTokenClassifier.from_backbone(
            small_backbone(**SIZES), VOCABULARY, ["PER", "LOC"], scheme
        )
    )
    save_checkpoint(model, tmp_path, "huggingface")
    theirs = transformers.AutoModelForTokenClassification.from_pretrained(tmp_path)
    assert type(theirs).__name__ == "AlbertForTokenClassification"
    assert list(theirs.config.id2label.values()) == model.tags
    assert difference(model(inputs()), run(theirs, inputs())) < TOLERANCE


def test_their_model_in_ours(tmp_path):
    torch.manual_seed(0)
    tags = ["I-LOC", "B-PER", "O", "B-LOC", "I-PER"]
    config = transformers.AlbertConfig(
        vocab_size=120,
        embedding_size=8,
        hidden_size=12,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=20,
        max_position_embeddings=33,
        initializer_range=0.3,
        classifier_dropout_prob=0.25,
        id2label=dict(enumerate(tags)),
        label2id={tag: number for number, tag in enumerate(tags)},
    )
    theirs = transformers.AlbertForTokenClassification(config)
    theirs.save_pretrained(tmp_path)
    report = inspect_checkpoint(tmp_path)
    assert (report.heads, report.num_classes) == (["token_classifier"], 5)
    read = AlbertTokenClassifier.from_checkpoint
    for arguments in ({}, {"labels": ["PER", "LOC"]}):
        ours = read(tmp_path, vocabulary=VOCABULARY, **arguments)
        assert (ours.tags, ours.scheme, ours.dropout) == (tags, "BIO", 0.25)
        assert difference(ours(inputs()), run(theirs, inputs())) < TOLERANCE


def test_entities_are_those_of_their_pipeline(tmp_path):
    """By argmax; so with one kind of entity and no rule that could be broken."""
    # Without full stops and emoji, which their tokenizer joins and leaves out alike.
    rng = np.random.default_rng(0)
    alphabet = [*"好坏很不太差了的一是我你他", *"abcde", " ", "，"]
    texts = ["".join(rng.choice(alphabet, rng.integers(2, 26))) for _ in range(200)]
    texts = [text.strip() or "好" for text in texts]
    backbone = small_backbone(**SIZES)
    model = AlbertTokenClassifier.from_backbone(
        backbone, VOCABULARY, tags=["O", "I-PER", "I-LOC"]
    )
    randomised(model)
    logits = np.concatenate(
        [x[1:-1] for x in model.predict(model.preprocessor(texts), verbose=0)]
    )
    # So that each tag is there.
    model.tag_dense.bias.assign_sub(np.median(logits, axis=0))
    save_checkpoint(model, tmp_path, "huggingface")
    pipeline = transformers.pipeline(
        "token-classification", str(tmp_path), aggregation_strategy="simple"
    )
    ours = model.predict_spans(texts, verbose=0)
    count = 0
    for text, row, entities in zip(texts, ours, pipeline(texts), strict=True):
        theirs = [(x["start"], x["end"], x["entity_group"]) for x in entities]
        assert [x[:3] for x in row] == theirs, text
        scores = [x["score"] for x in entities]
        np.testing.assert_allclose([x[3] for x in row], scores, atol=1e-5)
        count += len(row)
    assert count > 300
