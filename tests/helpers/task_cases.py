"""Every task, what it is given and what it gives: the table that tests go through."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf
from small_classifier import (
    LABELS,
    OTHERS,
    TEXTS,
    VOCABULARY,
    randomised,
    small_backbone,
)
from toy_tagger import ToyTagger

from albert_tf.models import (
    AlbertEarlyExitClassifier,
    AlbertMaskedLM,
    AlbertMultiLabelClassifier,
    AlbertMultipleChoice,
    AlbertPretrainer,
    AlbertQuestionAnswering,
    AlbertSentenceOrder,
    AlbertSpellingCorrector,
    AlbertSummarizer,
    AlbertTextClassifier,
    AlbertTextEmbedder,
    AlbertTextRegressor,
    AlbertTokenClassifier,
)

COUNT = len(TEXTS)
# [CLS], a token a character that is no space, [SEP].
LENGTHS = [len(text.replace(" ", "")) + 2 for text in TEXTS]
TAGS = [[(i + t) % 3 for t in range(length)] for i, length in enumerate(LENGTHS)]
SPANS = [[(0, len(text) // 2 + 1, "PER")] if text else [] for text in TEXTS]
# [CLS] question [SEP] context [SEP], the second only if there is a context.
PAIR_LENGTHS = [
    length + len(other) + (length > 2)
    for length, other in zip(LENGTHS, OTHERS, strict=True)
]
ANSWERS = [(2, "吃，"), None, (0, "差"), (1, "好"), (4, "太差了"), None, (4, "了吗")]
CHOICES = [["好", "不好", "你"], ["不"], ["差", "好"], *2 * [["我", "你"]]]
CHOICES += [["好", "吃", "不"], ["吗", "吃饭"]]
# Sentences after the first, which has a [CLS] and a [SEP] of its own.
MORE = [max(text.count("！") - 1, 0) for text in TEXTS]
SENTENCE_LABELS = [[i % 2, *[1] * more] for i, more in enumerate(MORE)]
SCORES = [[float(length)] for length in LENGTHS]
MASKED = [text + "[MASK]" * (i % 3 + 1) + "好" for i, text in enumerate(TEXTS)]
MASKS = [i % 3 + 1 for i in range(COUNT)]


def ids():
    rng = np.random.default_rng(5)
    return {
        "token_ids": rng.integers(120, size=(COUNT, 16)).astype("int32"),
        "segment_ids": np.repeat([[0] * 9 + [1] * 7], COUNT, axis=0).astype("int32"),
        "padding_mask": np.ones((COUNT, 16), "int32"),
        "mask_positions": rng.integers(1, 15, size=(COUNT, 4)).astype("int32"),
    }


@dataclasses.dataclass(frozen=True)
class Case:
    """A task, and what it is given and gives."""

    cls: type
    init_kwargs: dict
    x: Any
    y: Any
    # The shape of each output for `x`; a list has one for each text.
    outputs: Any
    sizes: dict = dataclasses.field(default_factory=dict)
    # Whether a dataset's `y` has the form of that beside a list.
    fits_datasets: bool = True
    # Weights without gradient: a bias added to all that a softmax compares.
    unmoved: tuple = ()
    # Those that its loss needs to fall.
    epochs: int = 4
    # What it learns from, if that is not what it predicts for.
    fits_on: Any = None

    @property
    def train_x(self):
        return self.x if self.fits_on is None else self.fits_on

    @property
    def takes_texts(self):
        return self.cls.preprocessor_cls is not None

    def build(self, **sizes):
        vocabulary = VOCABULARY if self.takes_texts else None
        backbone = small_backbone(**self.sizes, **sizes)
        task = self.cls.from_backbone(backbone, vocabulary, **self.init_kwargs)
        return randomised(task)

    def features(self, task):
        """The inputs of the model for `x`."""
        return task.preprocessor(self.x) if self.takes_texts else self.x

    def dataset(self, labelled=True):
        # A lone `x` in a tuple, for one that is a tuple itself.
        x = tuple(map(tensor, self.x)) if isinstance(self.x, tuple) else self.x
        parts = (x, self.y) if labelled else (x,)
        return tf.data.Dataset.from_tensor_slices(parts).batch(3)


def tensor(texts):
    """Texts as a tensor; lists of them, `""` after those of an example with fewer."""
    if isinstance(texts[0], list):
        return tf.ragged.constant(texts).to_tensor()
    return tf.constant(texts)


CASES = {
    "text classifier": Case(
        AlbertTextClassifier,
        {"num_classes": 3, "labels": ["坏", "中", "好"], "dropout": 0.25},
        TEXTS,
        LABELS,
        (COUNT, 3),
    ),
    "pair classifier": Case(
        AlbertTextClassifier,
        {"num_classes": 3, "activation": "softmax", "pairs": True},
        (TEXTS, OTHERS),
        LABELS,
        (COUNT, 3),
    ),
    "multi-label classifier": Case(
        AlbertMultiLabelClassifier,
        {
            "num_classes": 3,
            "labels": ["坏", "中", "好"],
            "thresholds": [0.25, 0.5, 0.75],
            "pooling_mode": "mean",
        },
        TEXTS,
        np.array([[0, 1, 1], [0, 0, 0], [1, 1, 1], [1, 0, 0]] + 3 * [[0, 1, 0]]),
        (COUNT, 3),
        unmoved=("pooled_dense/kernel", "pooled_dense/bias"),
    ),
    "early-exit classifier": Case(
        AlbertEarlyExitClassifier,
        {"num_classes": 3, "labels": ["坏", "中", "好"], "dropout": 0.25},
        TEXTS,
        LABELS,
        (COUNT, 3),
    ),
    "regressor": Case(
        AlbertTextRegressor,
        {"dropout": 0.25, "pairs": True},
        (TEXTS, OTHERS),
        np.linspace(-1, 5, COUNT),
        (COUNT, 1),
    ),
    "pretrainer": Case(
        AlbertPretrainer,
        {"num_sop_classes": 3},
        ids(),
        {"mlm_logits": ids()["mask_positions"], "sop_logits": np.array(LABELS)},
        {"mlm_logits": (COUNT, 4, len(VOCABULARY)), "sop_logits": (COUNT, 3)},
    ),
    "token classifier": Case(
        AlbertTokenClassifier,
        {"labels": ["PER", "LOC"], "scheme": "BIOES", "dropout": 0.25},
        TEXTS,
        SPANS,
        [(length, 9) for length in LENGTHS],
        sizes={"pooler": False},
        fits_datasets=False,
    ),
    "question answering": Case(
        AlbertQuestionAnswering,
        {"null_threshold": 0.5, "max_answer_length": 7},
        (OTHERS, TEXTS),
        ANSWERS,
        {name: [(x,) for x in PAIR_LENGTHS] for name in ("start_logits", "end_logits")},
        sizes={"pooler": False},
        fits_datasets=False,
        unmoved=("span_logits/bias",),
    ),
    "multiple choice": Case(
        AlbertMultipleChoice,
        {"dropout": 0.25},
        (TEXTS, OTHERS, CHOICES),
        [len(choices) - 1 for choices in CHOICES],
        [(len(choices),) for choices in CHOICES],
        fits_datasets=False,
        unmoved=("score/bias",),
        epochs=12,
    ),
    "masked language model": Case(
        AlbertMaskedLM,
        {},
        MASKED,
        None,
        [(count, len(VOCABULARY)) for count in MASKS],
        sizes={"pooler": False},
        fits_datasets=False,
    ),
    "sentence order": Case(
        AlbertSentenceOrder,
        {"num_sop_classes": 3},
        (TEXTS, OTHERS),
        LABELS,
        (COUNT, 3),
    ),
    "spelling corrector": Case(
        AlbertSpellingCorrector,
        {},
        TEXTS,
        [text.replace("吃", "差") for text in TEXTS],
        [(length, len(VOCABULARY)) for length in LENGTHS],
        sizes={"pooler": False},
        fits_datasets=False,
    ),
    "summarizer": Case(
        AlbertSummarizer,
        {"dropout": 0.25},
        TEXTS,
        SENTENCE_LABELS,
        [(length + 2 * marks,) for length, marks in zip(LENGTHS, MORE, strict=True)],
        sizes={"pooler": False},
        fits_datasets=False,
    ),
    "text embedder": Case(
        AlbertTextEmbedder,
        {"pooling_mode": "first_last_mean", "normalize": False},
        TEXTS,
        LABELS,
        (COUNT, 12),
        sizes={"pooler": False},
        fits_datasets=False,
        fits_on=(TEXTS, OTHERS),
    ),
    "toy tagger": Case(
        ToyTagger,
        {"num_tags": 3},
        TEXTS,
        (TAGS, SCORES),
        {"tags": [(length, 3) for length in LENGTHS], "score": (COUNT, 1)},
        sizes={"pooler": False},
        fits_datasets=False,
    ),
}
