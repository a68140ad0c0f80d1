"""Every task with its inputs and the shapes of its outputs, for the tests."""

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

from albert_tf import models, tools
from albert_tf.layers.arguments import argument_names

COUNT = len(TEXTS)
PAIRS = (TEXTS, OTHERS)
DROPOUT = {"dropout": 0.25}
NAMED = {"num_classes": 3, "labels": ["坏", "中", "好"]}
# [CLS], a token a character that is no space, [SEP].
LENGTHS = [len(text.replace(" ", "")) + 2 for text in TEXTS]
SPANS = [[(0, len(text) // 2 + 1, "PER")] if text else [] for text in TEXTS]
# [CLS] question [SEP] context [SEP], the second only if there is a context.
PAIR_LENGTHS = [
    length + len(other) + (length > 2)
    for length, other in zip(LENGTHS, OTHERS, strict=True)
]
ANSWERS = [(2, "吃，"), None, (0, "差"), (1, "好"), (4, "太差了"), None, (4, "了吗")]
CHOICES = [["好", "不好", "你"], ["不"], ["差", "好"], ["我", "你"], ["我", "你"]]
CHOICES += [["好", "吃", "不"], ["吗", "吃饭"]]
# Sentences after the first, which has another [CLS] and [SEP].
MORE = [max(text.count("！") - 1, 0) for text in TEXTS]
MASKS = [i % 3 + 1 for i in range(COUNT)]
MASKED = [f"{x}{'[MASK]' * masks}好" for x, masks in zip(TEXTS, MASKS, strict=True)]


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
    """A task with its inputs and outputs."""

    cls: type
    init_kwargs: dict
    x: Any
    y: Any
    outputs: Any  # The shape of each output for `x`; a list of shapes is per text.
    sizes: dict = dataclasses.field(default_factory=dict)
    unmoved: tuple = ()  # Weights without gradient, such as a bias in a softmax.
    epochs: int = 2  # Until the loss falls.
    fits_on: Any = None  # The `x` of `fit`, if it differs from that of `predict`.

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

    def without_dropout(self):
        """The case of a task whose outputs in training are those of inference."""
        has_rate = "dropout" in argument_names(self.cls, object)
        rates = {"dropout": 0.0} if has_rate else {}
        return dataclasses.replace(self, init_kwargs={**self.init_kwargs, **rates})

    def features(self, task):
        """The inputs of the model for `x`."""
        return task.preprocessor.features(self.x) if self.takes_texts else self.x

    def dataset(self):
        # `x` in a tuple, because it may be a tuple itself.
        x = tuple(map(tensor, self.x)) if isinstance(self.x, tuple) else self.x
        return tf.data.Dataset.from_tensor_slices((x,)).batch(3)


def tensor(texts):
    """Texts as a tensor; lists of them, `""` after those of an example with fewer."""
    if isinstance(texts[0], list):
        return tf.ragged.constant(texts).to_tensor()
    return tf.constant(texts)


NO_POOLER = {"pooler": False}
CASES = {
    "text classifier": Case(
        cls=models.AlbertTextClassifier,
        init_kwargs={**NAMED, **DROPOUT, "temperature": 1.5},
        x=TEXTS,
        y=LABELS,
        outputs=(COUNT, 3),
    ),
    "pair classifier": Case(
        cls=models.AlbertTextClassifier,
        init_kwargs={"num_classes": 3, "activation": "softmax", "pairs": True},
        x=PAIRS,
        y=LABELS,
        outputs=(COUNT, 3),
    ),
    "multi-label classifier": Case(
        cls=models.AlbertMultiLabelClassifier,
        init_kwargs={
            **NAMED,
            "thresholds": [0.25, 0.5, 0.75],
            "pooling_mode": "mean",
            "temperature": 0.5,
        },
        x=TEXTS,
        y=np.array([[0, 1, 1], [0, 0, 0], [1, 1, 1], [1, 0, 0]] + 3 * [[0, 1, 0]]),
        outputs=(COUNT, 3),
        unmoved=("pooled_dense/kernel", "pooled_dense/bias"),
    ),
    "early-exit classifier": Case(
        cls=tools.AlbertEarlyExitClassifier,
        init_kwargs={**NAMED, **DROPOUT},
        x=TEXTS,
        y=LABELS,
        outputs=(COUNT, 3),
    ),
    "regressor": Case(
        cls=models.AlbertTextRegressor,
        init_kwargs={**DROPOUT, "pairs": True},
        x=PAIRS,
        y=np.linspace(-1, 5, COUNT),
        outputs=(COUNT, 1),
    ),
    "pretrainer": Case(
        cls=models.AlbertPretrainer,
        init_kwargs={"num_sop_classes": 3},
        x=ids(),
        y={"mlm_logits": ids()["mask_positions"], "sop_logits": np.array(LABELS)},
        outputs={"mlm_logits": (COUNT, 4, len(VOCABULARY)), "sop_logits": (COUNT, 3)},
    ),
    "token classifier": Case(
        cls=models.AlbertTokenClassifier,
        init_kwargs={
            "labels": ["PER", "LOC"],
            "scheme": "BIOES",
            "temperature": 2.0,
            **DROPOUT,
        },
        x=TEXTS,
        y=SPANS,
        outputs=[(length, 9) for length in LENGTHS],
        sizes=NO_POOLER,
    ),
    "question answering": Case(
        cls=models.AlbertQuestionAnswering,
        init_kwargs={"null_threshold": 0.5, "max_answer_length": 7},
        x=(OTHERS, TEXTS),
        y=ANSWERS,
        outputs={
            name: [(x,) for x in PAIR_LENGTHS]
            for name in ("start_logits", "end_logits")
        },
        sizes=NO_POOLER,
        unmoved=("span_logits/bias",),
    ),
    "multiple choice": Case(
        cls=models.AlbertMultipleChoice,
        init_kwargs=DROPOUT,
        x=(TEXTS, OTHERS, CHOICES),
        y=[len(choices) - 1 for choices in CHOICES],
        outputs=[(len(choices),) for choices in CHOICES],
        unmoved=("score/bias",),
        epochs=12,
    ),
    "masked language model": Case(
        cls=models.AlbertMaskedLM,
        init_kwargs={},
        x=MASKED,
        y=None,
        outputs=[(count, len(VOCABULARY)) for count in MASKS],
        sizes=NO_POOLER,
    ),
    "sentence order": Case(
        cls=models.AlbertSentenceOrder,
        init_kwargs={"num_sop_classes": 3},
        x=PAIRS,
        y=LABELS,
        outputs=(COUNT, 3),
    ),
    "spelling corrector": Case(
        cls=models.AlbertSpellingCorrector,
        init_kwargs={},
        x=TEXTS,
        y=[text.replace("吃", "差") for text in TEXTS],
        outputs=[(length, len(VOCABULARY)) for length in LENGTHS],
        sizes=NO_POOLER,
    ),
    "summarizer": Case(
        cls=models.AlbertSummarizer,
        init_kwargs=DROPOUT,
        x=TEXTS,
        y=[[i % 2] + [1] * more for i, more in enumerate(MORE)],
        outputs=[
            (length + 2 * marks,) for length, marks in zip(LENGTHS, MORE, strict=True)
        ],
        sizes=NO_POOLER,
    ),
    "text embedder": Case(
        cls=models.AlbertTextEmbedder,
        init_kwargs={"pooling_mode": "first_last_mean", "normalize": False},
        x=TEXTS,
        y=LABELS,
        outputs=(COUNT, 12),
        sizes=NO_POOLER,
        fits_on=PAIRS,
    ),
}
