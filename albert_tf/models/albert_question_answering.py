from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.evaluation.scores import best_null_threshold, score_answers
from albert_tf.models.answer_spans import NEVER, answer_lists, best_spans, span_targets
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing.examples import (
    check_count,
    refuse_datasets_of_texts,
    texts_in_memory,
)
from albert_tf.preprocessing.question_answering_preprocessor import (
    AlbertQuestionAnsweringPreprocessor,
    as_questions,
)
from albert_tf.preprocessing.texts import without_invalid_bytes
from albert_tf_lite.answers import check_top_k
from albert_tf_lite.errors import AlbertError


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertQuestionAnswering(AlbertTask, keras_hub.models.Task):
    """ALBERT that marks the answer to a question in its context.

    `fit` and `evaluate` take `(questions, contexts)` and answers `(start, text)`, or
    `None` where the context has none; `predict` returns answers with their place in the
    context. Contexts longer than the model's positions are read in overlapping windows,
    and the best answer over all windows is returned.

    An answer whose `start` does not point at its text is moved to the nearest place
    that does. If an example has a list of several answers, the first that its context
    holds is learned. `fit` and `evaluate` take lists, not datasets of texts.

    Args:
        backbone: an `AlbertBackbone`.
        preprocessor: an `AlbertQuestionAnsweringPreprocessor`, or `None` if the
            inputs are ids already.
        null_threshold: optional float. Return no answer if its log-probability exceeds
            that of the best answer by more than this. `None` always answers; `fit` sets
            it to 0 if some examples have no answer, and `tune_null_threshold` to the
            best.
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

    name_of_task = "question-answering"
    fields = ("question", "context")
    preprocessor_cls = AlbertQuestionAnsweringPreprocessor
    heads = ("span_head",)
    monitor = "f1"

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
        self.output_dropout = self.head_dropout(dropout)
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

    def default_loss(self):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return dict.fromkeys(self.output, loss)

    def default_metrics(self):
        return {"weighted_metrics": dict.fromkeys(self.output, "accuracy")}

    # === Questions and answers in ===

    def prepare_fit(self, x, y):
        is_new = self.null_threshold is None and y is not None
        if is_new and self.takes_texts(x) and not all(answer_lists(y)):
            self.null_threshold = 0.0
        return x, y

    def targets(self, x: Any, y: Any, packed=None) -> dict[str, np.ndarray]:
        """Return the first and last token of the answers, int arrays [windows]."""
        questions, contexts = as_questions(x)
        check_count((questions, contexts), y)
        packed = packed or self.preprocessor.pack_texts((questions, contexts))
        return span_targets(packed, contexts, y)

    prepare_dataset = refuse_datasets_of_texts

    # === Answers out ===

    read_texts = staticmethod(texts_in_memory)

    def predictions(self, x, packed, outputs):
        """Return a dict of `answer`, `start`, `end` and `score` per question.

        `context[start:end] == answer`, and `score` is the probability of the answer in
        its window; the answer is `""` where there is none. For ids, return the outputs
        of the model.
        """
        if packed is None:
            return [] if isinstance(x, tuple) else outputs
        return [answers[0] for answers in self._ranked(x, packed, outputs)]

    def predict_n_best(
        self,
        x: Any,
        n_best: int = 5,
        null_threshold: float | str | None = "auto",
        max_answer_length: int | None = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
    ) -> list[list[dict[str, Any]]]:
        """Return several answers per question, the best first.

        Args:
            x, batch_size, verbose: as for `predict`.
            n_best: int. Maximum number of answers.
            null_threshold: as for the class; by default that of the model.
            max_answer_length: optional int, in tokens; by default that of the model.

        Returns:
            A list of dicts per question, as of `predict`.
        """
        found = self.predict_rows(x, batch_size, verbose=verbose)
        return self._ranked(*found, n_best, null_threshold, max_answer_length)

    def predict_dicts(
        self,
        x,
        batch_size=None,
        top_k=1,
        null_threshold="auto",
        max_answer_length=None,
    ):
        """Return `answer`, `start`, `end` and `score`, or a list of `top_k` such."""
        if top_k is None:
            raise AlbertError("`top_k` of answers must be a number. Received: None")
        check_top_k(top_k)
        answers = self.predict_n_best(
            x, top_k, null_threshold, max_answer_length, batch_size, verbose=0
        )
        return answers if top_k > 1 else [ranked[0] for ranked in answers]

    def _ranked(
        self, x, packed, outputs, n_best=1, null_threshold="auto", max_length=None
    ):
        """Return the best answers per question as dicts, the best first.

        No answer is ranked by its log-probability less the `null_threshold`. For `None`
        it is left out, unless there is no other.
        """
        if packed is None:
            return []
        if null_threshold == "auto":
            null_threshold = self.null_threshold
        answers = []
        found = self._best_spans(packed, outputs, n_best, max_length)
        rows = zip(as_questions(x)[1], *found, strict=True)
        for context, scores, *places, null in rows:
            spans = zip(scores, *places, strict=True)
            spans = [span for span in spans if span[0] > NEVER / 2]
            if null_threshold is not None or not spans:
                place = int(np.sum(scores >= null - (null_threshold or 0.0)))
                spans.insert(place, (null, 0, 0))
            answers.append(
                [
                    {
                        "answer": context[start:end],
                        "start": int(start),
                        "end": int(end),
                        "score": float(np.exp(score)),
                    }
                    for score, start, end in spans[:n_best]
                ]
            )
        return answers

    def _best_spans(self, packed, outputs, n_best=1, max_length=None):
        start, end = (
            packed.tokens.with_values(np.concatenate(outputs[name]))
            for name in ("start_logits", "end_logits")
        )
        max_length = max_length or self.max_answer_length
        return [x.numpy() for x in best_spans(packed, start, end, n_best, max_length)]

    def tune_null_threshold(
        self,
        x: Any,
        y: Sequence[Any],
        scores: str = "squad",
        batch_size: int | None = None,
    ) -> float:
        """Set `null_threshold` to that with the best F1 on a dev set, and return it.

        Args:
            x, y: as for `fit`, some with an answer and some without.
            scores: `"squad"`, or `"cmrc"` for Chinese.
            batch_size: as for `predict`.
        """
        x, packed, outputs = self.predict_rows(x, batch_size, verbose=0)
        _, contexts = as_questions(x)
        *spans, null = self._best_spans(packed, outputs)
        best, starts, ends = (part[:, 0] for part in spans)
        rows = zip(contexts, starts, ends, strict=True)
        predictions = [context[start:end] for context, start, end in rows]
        texts = [[text for _, text in answers] for answers in answer_lists(y)]
        answered = score_answers(predictions, texts, scores)[:, 1]
        unanswered = score_answers([""] * len(texts), texts, scores)[:, 1]
        self.null_threshold = best_null_threshold(null - best, answered, unanswered)
        return self.null_threshold

    def answers(self, outputs: Any) -> dict[str, Any]:
        """Return the logits; a SavedModel for strings returns answers as `predict`."""
        return dict(outputs)

    def text_answers(self, texts, call):
        questions, contexts = map(without_invalid_bytes, texts)
        packed = self.preprocessor.pack_texts((questions, contexts))
        logits = call(self.preprocessor.packer.pad(packed.tokens, packed.first_lengths))
        start, end = (
            tf.RaggedTensor.from_tensor(logits[name], packed.lengths)
            for name in ("start_logits", "end_logits")
        )
        *spans, null = best_spans(packed, start, end, 1, self.max_answer_length)
        score, start, end = (part[:, 0] for part in spans)
        is_null = score < NEVER / 2
        if self.null_threshold is not None:
            is_null |= null - self.null_threshold > score
        start, end = (tf.where(is_null, 0, x) for x in (start, end))
        return {
            "answer": tf.strings.substr(contexts, start, end - start, "UTF8_CHAR"),
            "start": start,
            "end": end,
            "score": tf.exp(tf.where(is_null, null, score)),
        }
