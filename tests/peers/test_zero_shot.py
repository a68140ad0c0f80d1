"""Zero-shot classes against the pipeline of transformers, on the same weights."""

import os

# Before transformers is imported: nothing here may look for a model elsewhere.
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pytest
from peer_models import random_backbone, randomise
from small_classifier import CHARACTERS, VOCABULARY

import albert_tf
from albert_tf.models import AlbertTextClassifier

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.peers

# As transformers expects them: entailment first, contradiction last.
LABELS = ["entailment", "neutral", "contradiction"]
CANDIDATES = ["天地", "吃鸡蛋", "中文", "左右"]


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory):
    """Ours, and theirs of what the classifier was saved as."""
    path = tmp_path_factory.mktemp("model")
    classifier = AlbertTextClassifier.from_backbone(
        random_backbone(), VOCABULARY, labels=LABELS, num_classes=3, pairs=True
    )
    kernel = randomise(classifier).output_dense.kernel
    kernel.assign(kernel * 20)
    classifier.export_to_transformers(path)
    pipeline = transformers.ZeroShotClassificationPipeline(
        model=transformers.AutoModelForSequenceClassification.from_pretrained(path),
        tokenizer=transformers.AutoTokenizer.from_pretrained(path),
    )
    return albert_tf.pipeline("zero-shot-classification", classifier), pipeline


@pytest.mark.parametrize("multi_label", [False, True])
def test_answers_are_those_of_the_pipeline(pipelines, multi_label):
    ours, theirs = pipelines
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice([*CHARACTERS], rng.integers(1, 18))) for _ in range(50)]
    options = {
        "candidate_labels": CANDIDATES,
        "hypothesis_template": "这句话是关于{}的。",
        "multi_label": multi_label,
    }
    spreads = []
    for row, expected in zip(
        ours(texts, **options), theirs(texts, **options), strict=True
    ):
        assert row.keys() == expected.keys() and row["sequence"] == expected["sequence"]
        scores = [
            dict(zip(x["labels"], x["scores"], strict=True)) for x in (row, expected)
        ]
        assert scores[0] == pytest.approx(scores[1], abs=1e-5)
        assert row["scores"] == sorted(row["scores"], reverse=True)
        spreads.append(np.ptp(row["scores"]))
    assert np.mean(spreads) > 1e-3
