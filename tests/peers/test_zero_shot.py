"""Zero-shot classes against the pipeline of transformers, on the same weights."""

import os

# Before transformers is imported: nothing here may look for a model elsewhere.
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pytest
from peer_models import random_backbone, randomise
from small_classifier import CHARACTERS, VOCABULARY

from albert_tf.models import AlbertTextClassifier, ZeroShotClassifier

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.peers

# As transformers expects them: entailment first, contradiction last.
LABELS = ["entailment", "neutral", "contradiction"]
CANDIDATES = ["天地", "吃鸡蛋", "中文", "左右"]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Our classifier, and their pipeline of what it was saved as."""
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
    return ZeroShotClassifier(classifier), pipeline


@pytest.mark.parametrize("multi_label", [False, True])
def test_probabilities_are_those_of_the_pipeline(both, multi_label):
    model, pipeline = both
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice([*CHARACTERS], rng.integers(1, 18))) for _ in range(50)]
    ours = model.predict(texts, CANDIDATES, multi_label=multi_label)
    theirs = pipeline(
        texts,
        CANDIDATES,
        hypothesis_template=model.template,
        multi_label=multi_label,
    )
    for row, found in zip(ours, theirs, strict=True):
        scores = dict(zip(found["labels"], found["scores"], strict=True))
        expected = [scores[label] for label in CANDIDATES]
        np.testing.assert_allclose(row, expected, atol=1e-5)
    assert np.ptp(ours, axis=1).mean() > 1e-3
