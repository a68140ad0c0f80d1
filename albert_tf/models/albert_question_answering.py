from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.evaluation import best_null_threshold, score_answers
from albert_tf.models.answer_spans import best_spans, ranked_answers, served_answers
from albert_tf.models.answer_targets import (
    answer_characters,
    answer_lists,
    in_memory,
    span_targets,
)
from albert_tf.models.task import AlbertTask
from albert_tf.models.text_fitting import FitsTexts
from albert_tf.preprocessing.question_answering_preprocessor import (
    AlbertQuestionAnsweringPreprocessor,
    WindowedContexts,
    as_questions,
)
from albert_tf.preprocessing.texts import without_invalid_bytes
from albert_tf_lite.errors import AlbertError


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertQuestionAnswering(FitsTexts, AlbertTask, keras_hub.models.Task):
    """ALBERT that marks the answer to a question in its context.

    `fit` and `evaluate` take `(questions, contexts)` and answers `(start, text)`, or
    `None` where the context has none; `predict` gives answers with their place in the
    context. Contexts longer than the model's positions are read in windows that
    overlap, and the best answer over all windows is given.

    Args:
        backbone: an `AlbertBackbone`.
        preprocessor: an `AlbertQuestionAnsweringPreprocessor`, or `None` if the
            inputs are ids already.
        null_threshold: optional float. There is no answer where the log-probability of
            none is that of the best answer plus more than this. `None` for always an
            answer; `fit` makes it 0 if some of its examples have none, and
            `tune_null_threshold` finds the best.
        max_answer_length: int, in tokens.
        dropout: float. Rate between the encoder's output and the head.
        compile: bool. Compile with the defaults.

    Returns:
        A dict of `start_logits` and `end_logits` [batch, time], for the first and the
        last token of the answer, -1e9 for padding.

    Example:
    ```python
    model = albert_tf.models.AlbertQuestionAnswering.from_checkpoint("albert_tiny_zh")
    model.fit((["黄河有多长？"], ["黄河长5464公里。"]), [(3, "5464公里")])
    model.predict((["长江有多长？"], ["长江长6300公里。"]))
    # [{"answer": "6300公里", "start": 3, "end": 9, "score": 0.9}]
    ```

    Reference:
        google-research/albert `squad_utils.py`, `create_v1_model`; transformers
        `AlbertForQuestionAnswering`.
    """

    preprocessor_cls = AlbertQuestionAnsweringPreprocessor
    heads = ("span_head",)
    text_inputs = ("question", "context")

    def __init__(
        self,
        backbone: AlbertBackbone,
        preprocessor: AlbertQuestionAnsweringPreprocessor | None = None,
        null_threshold: float | None = None,
        max_answer_length: int = 64,
        dropout: float = 0.0,
        **kwargs: Any,
    ):
        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.output_dropout = keras.layers.Dropout(
            dropout, dtype=backbone.compute_dtype, name="output_dropout"
        )
        self.span_dense = self.dense_head(2, "span_logits")

        # === Config ===
        self.null_threshold = null_threshold
        self.max_answer_length = max_answer_length
        self.dropout = dropout

        # === Functional Model ===
        inputs = backbone.input
        hidden = self.output_dropout(backbone(inputs)["sequence_output"])
        logits = self.span_dense(hidden)
        # So that the loss does not depend on how far a batch is padded.
        is_token = keras.ops.cast(inputs["padding_mask"], "bool")
        outputs = {
            name: keras.ops.where(is_token, logits[..., i], -1e9)
            for i, name in enumerate(("start_logits", "end_logits"))
        }
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

    @classmethod
    def read_heads(cls, checkpoint, arguments):
        found = "span_head" in checkpoint.heads
        return arguments, [] if found else ["span_head"]

    def default_loss(self):
        return {
            name: keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            for name in ("start_logits", "end_logits")
        }

    def default_metrics(self):
        metrics = {
            name: [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
            for name in ("start_logits", "end_logits")
        }
        return {"weighted_metrics": metrics}

    # === Questions and answers in ===

    def fit(self, x=None, y=None, *args: Any, **kwargs: Any):
        """Train on questions, contexts and answers; as `FitsTexts.fit`.

        Args:
            x: the tuple of two lists of strings, `(questions, contexts)`; or a dataset
                of batches `((questions, contexts), (starts, texts))`, which is read
                into memory, or of ids and positions.
            y: list of answers, one an example: `(start, text)`, with the first
                character in the context, or `None` for no answer. A `start` that does
                not point at the text is moved to the nearest place that does. Of a list
                of several answers the first that the context holds is learned.
            *args, **kwargs: as for `FitsTexts.fit`.

        Raises:
            AlbertError: if a context does not hold its answer.
        """
        x, y = in_memory(x, y)
        if isinstance(kwargs.get("validation_data"), tf.data.Dataset):
            kwargs["validation_data"] = in_memory(kwargs["validation_data"])
        is_new = self.null_threshold is None and y is not None
        if is_new and self._takes_texts(x) and not all(answer_lists(y)):
            self.null_threshold = 0.0
        return super().fit(x, y, *args, **kwargs)

    def evaluate(self, x=None, y=None, *args: Any, **kwargs: Any):
        """Loss and accuracy of the positions; arguments as for `fit`."""
        return super().evaluate(*in_memory(x, y), *args, **kwargs)

    def targets(self, x: Any, y: Any) -> dict[str, np.ndarray]:
        """The first and last token of the answers, a dict of int arrays [windows]."""
        x = as_questions(x)
        return span_targets(self.preprocessor.windows(x), answer_characters(x[1], y))

    def _takes_texts(self, x):
        return isinstance(x, WindowedContexts) or super()._takes_texts(x)

    def _examples(self, x, *labels):
        contexts = x
        if not isinstance(x, WindowedContexts):
            x = as_questions(x)
            contexts = self.preprocessor.windows(x)
        if labels:
            y, *weights = labels
            texts = contexts.windows.texts.numpy()
            weights = [weight[texts] for weight in weights]
            targets = span_targets(contexts, answer_characters(x[1], y))
            labels = (targets, *weights)
        return contexts.tokens, contexts.first_lengths, *labels

    # === Answers out ===

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        n_best: int = 1,
        null_threshold: float | str | None = "auto",
        max_answer_length: int | None = None,
        **kwargs: Any,
    ) -> list:
        """The answers to questions.

        Args:
            x: the tuple of two lists of strings, `(questions, contexts)`, or a dataset
                of batches of such; or ids, as `keras.Model.predict` takes them.
            batch_size: optional int, more than 32 by default where texts are short.
            n_best: int. More than 1 for a list of so many answers a question at most,
                the best first.
            null_threshold: as for the class; `"auto"` for that of the model.
            max_answer_length: optional int, in tokens; by default that of the model.
            **kwargs: passed on to `keras.Model.predict`.

        Returns:
            A dict for each question of `answer`, `start`, `end` and `score`, with
            `context[start:end] == answer` and the probability of the answer in its
            window; the answer is `""` where there is none. Of ids, the outputs of the
            model.
        """
        x, _ = in_memory(x)
        if not self._takes_texts(x):
            return super().predict(x, batch_size=batch_size, **kwargs)
        options = {"batch_size": batch_size, **kwargs}
        contexts, *found = self._best_spans(x, n_best, max_answer_length, options)
        if null_threshold == "auto":
            null_threshold = self.null_threshold
        answers = [
            ranked_answers(*row, null_threshold)[:n_best]
            for row in zip(contexts, *found, strict=True)
        ]
        return answers if n_best > 1 else [ranked[0] for ranked in answers]

    def _best_spans(self, x, n_best, max_answer_length, options):
        """The contexts as strings, and what `best_spans` gives."""
        x = as_questions(x)
        if not x[0]:
            return [], *[[]] * 4
        contexts = self.preprocessor.windows(x)
        logits = super().predict(contexts, **options)
        most = max_answer_length or self.max_answer_length
        return x[1], *best_spans(contexts, logits, n_best, most)

    def predict_logits(self, x: Any, batch_size: int | None = None, **kwargs: Any):
        """The outputs of the model for `(questions, contexts)` or ids.

        Returns:
            A dict of `start_logits` and `end_logits`, each a list of float arrays
            [tokens], one a window, in the order of `preprocessor.windows(x)`.
        """
        return super().predict(x, batch_size=batch_size, **kwargs)

    def tune_null_threshold(
        self,
        x: Any,
        y: Sequence[Any],
        scores: str = "squad",
        batch_size: int | None = None,
    ) -> float:
        """Set `null_threshold` to what gives the best F1 on a dev set, and return it.

        Args:
            x, y: as for `fit`, some with an answer and some without.
            scores: `"squad"`, or `"cmrc"` for Chinese.
            batch_size: optional int, more than 32 by default where texts are short.
        """
        options = {"batch_size": batch_size, "verbose": 0}
        contexts, *spans, null = self._best_spans(x, 1, None, options)
        best, starts, ends = (part[:, 0] for part in spans)
        rows = zip(contexts, starts, ends, strict=True)
        predictions = [context[start:end] for context, start, end in rows]
        texts = [[text for _, text in answers] for answers in answer_lists(y)]
        answered, unanswered = (
            score_answers(given, texts, scores)[:, 1]
            for given in (predictions, [""] * len(texts))
        )
        self.null_threshold = best_null_threshold(null - best, answered, unanswered)
        return self.null_threshold

    def answers(self, outputs: Any) -> dict[str, Any]:
        """The logits; a SavedModel for strings gives what `predict` does."""
        return dict(outputs)

    def text_answers(self, texts, call, **options):
        if options:
            raise AlbertError(f"There are no options. Received: {sorted(options)}")
        questions, contexts = map(without_invalid_bytes, texts)
        windowed = self.preprocessor.windows((questions, contexts))
        packed = windowed.tokens, windowed.first_lengths
        logits = call(self.preprocessor.packer.pad(*packed))
        return served_answers(
            contexts, windowed, logits, self.max_answer_length, self.null_threshold
        )

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "null_threshold": self.null_threshold,
            "max_answer_length": self.max_answer_length,
            "dropout": self.dropout,
        }
