import warnings
from collections.abc import Sequence, Set, Sized
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.head_layers import dense_head, head_dropout
from albert_tf.data.labels.text_spans import find_answer
from albert_tf.evaluation.answer_scores import best_null_threshold, score_answers
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing.segment_packer import WindowedTexts
from albert_tf.preprocessing.text_preprocessors import (
    AlbertQuestionAnsweringPreprocessor,
    as_questions,
)
from albert_tf.preprocessing.texts import without_invalid_bytes
from albert_tf.trainers.examples import Column, Inputs
from albert_tf.trainers.labels import check_count
from albert_tf.trainers.prediction import Outputs, PredictedRows, split_ragged
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_list, check_integer, is_missing
from albert_tf_lite.spans import (
    NEVER,
    ContextLogits,
    NullThreshold,
    WindowLogits,
    answer_dicts,
    best_spans,
    rank_answers,
)

# The first and the last token of no answer.
NO_TOKENS = (-1, -1)


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
        preprocessor: optional `AlbertQuestionAnsweringPreprocessor`.
        null_threshold: optional float. Return no answer if its log-probability exceeds
            that of the best answer by more than this. `None` always answers; `fit` sets
            it to 0 if some examples have no answer, and `tune_null_threshold` to the
            best.
        max_answer_length: int, in tokens.
        dropout: float. Rate before the head, apart from the encoder's own.
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
    pipeline_tag = "question-answering"
    summaries = ("answers questions from a text", "从文本中抽取答案")
    fields = ("question", "context")
    preprocessor_cls = AlbertQuestionAnsweringPreprocessor
    heads = ("span_head",)
    reads_windows = True
    monitor = "f1"
    exported_output = "logits"

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
        self.output_dropout = head_dropout(backbone, dropout)
        self.span_dense = dense_head(backbone, 2, "span_logits")

        # === Config ===
        self.null_threshold = null_threshold
        self.max_answer_length = check_integer("max_answer_length", max_answer_length)
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

    def default_metrics(self):
        return {"weighted_metrics": dict.fromkeys(self.output, "accuracy")}

    # === Questions and answers in ===

    def adapt_to(self, examples):
        """Answer nothing from now on where that is likelier, if examples do so."""
        if examples.kind != "texts" or examples.y is None:
            return
        if self.null_threshold is None and not all(answer_lists(examples.y)):
            self.null_threshold = 0.0

    def targets(
        self, x: Inputs, y: Column | None, packed=None
    ) -> dict[str, np.ndarray]:
        """Return the first and last token of the answers, int arrays [windows]."""
        _, contexts = as_questions(x)
        y = check_count(contexts, y)
        return span_targets(packed or self.preprocessor.pack_texts(x), contexts, y)

    # === Answers out ===

    def predictions(self, x, packed, outputs):
        """Return a dict of `answer`, `start`, `end` and `score` per question.

        `context[start:end] == answer`, and `score` is the probability of the answer in
        its window; the answer is `""` where there is none. For ids, return the outputs
        of the model.
        """
        if packed is None:
            return [] if isinstance(x, tuple) else outputs
        windows = self._windows(PredictedRows(x, packed, outputs))
        return answer_dicts(x, windows, self.exported_settings())

    def predict_n_best(
        self,
        x: Inputs,
        n_best: int = 5,
        null_threshold: NullThreshold = "auto",
        max_answer_length: int | None = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
    ) -> list[list[dict[str, Any]]]:
        """Return several answers per question, the best first.

        Args:
            x: the tuple of two lists, questions and contexts.
            n_best: int. Maximum number of answers.
            null_threshold: optional float. Return no answer first if its
                log-probability exceeds that of the best by more than this; `None`
                never does. By default that of the model.
            max_answer_length: optional int, in tokens; by default that of the model.
            batch_size: optional int, by default more than 32 for short texts.
            verbose: 0 for silence, 1 for a progress bar; `"auto"` is 1 in most cases.

        Returns:
            A list per question of dicts `answer`, `start`, `end` and `score`.
        """
        rows = self.predict_rows(x, batch_size, verbose=verbose)
        return rank_answers(
            self._windows(rows),
            self.exported_settings(),
            n_best,
            null_threshold,
            max_answer_length,
        )

    def answers(
        self, x, batch_size=None, top_k=1, null_threshold="auto", max_answer_length=None
    ):
        """Return `answer`, `start`, `end` and `score`, or a list of `top_k` such."""
        rows = self.predict_rows(x, batch_size, verbose=0)
        return answer_dicts(
            rows.x,
            self._windows(rows),
            self.exported_settings(),
            top_k,
            null_threshold,
            max_answer_length,
        )

    def exported_settings(self):
        preprocessor = self.preprocessor
        return {
            **super().exported_settings(),
            "stride": preprocessor and preprocessor.stride,
            "max_question_length": preprocessor and preprocessor.max_question_length,
            "max_answer_length": self.max_answer_length,
            "null_threshold": self.null_threshold,
        }

    def _windows(self, rows: PredictedRows) -> list[ContextLogits]:
        """Return the windows of each context with their logits."""
        packed: Any = rows.packed
        if packed is None:
            return []
        lengths, firsts = packed.lengths.numpy(), packed.first_lengths.numpy()
        start_logits = rows.outputs["start_logits"]
        end_logits = rows.outputs["end_logits"]
        texts, offsets = packed.windows.texts.numpy(), packed.windows.starts.numpy()
        windows: list[list] = [[] for _ in range(packed.starts.nrows())]
        for row, text in enumerate(texts):
            # [CLS] and the context, without the last [SEP].
            kept = [0, *range(firsts[row], lengths[row] - 1)]
            windows[text].append(
                WindowLogits(
                    offsets[row], start_logits[row][kept], end_logits[row][kept]
                )
            )
        _, contexts = rows.x
        starts, ends = split_ragged((packed.starts, packed.ends))
        rows_of_contexts = zip(contexts, windows, starts, ends, strict=True)
        return [ContextLogits(*row) for row in rows_of_contexts]

    def tune_null_threshold(
        self,
        x: Inputs,
        y: Column,
        scores: str = "squad",
        batch_size: int | None = None,
    ) -> float:
        """Set `null_threshold` to that with the best F1 on a dev set, and return it.

        Args:
            x: the tuple of two lists, questions and contexts.
            y: their answers `(start, text)`, and `None` for some without.
            scores: `"squad"`, or `"cmrc"` for Chinese.
            batch_size: optional int, by default more than 32 for short texts.
        """
        rows = self.predict_rows(x, batch_size, verbose=0)
        predictions, differences = [], []
        for context, windows, starts, ends in self._windows(rows):
            spans, null = best_spans(windows, starts, ends, self.max_answer_length)
            best, start, end = spans[0] if spans else (NEVER, 0, 0)
            predictions.append(context[start:end])
            differences.append(null - best)
        texts = [[text for _, text in answers] for answers in answer_lists(y)]
        answered = score_answers(predictions, texts, scores)[:, 1]
        unanswered = score_answers([""] * len(texts), texts, scores)[:, 1]
        self.null_threshold = best_null_threshold(
            np.array(differences), answered, unanswered
        )
        return self.null_threshold

    def postprocess(self, outputs: Outputs) -> dict[str, Any]:
        """Return the logits; a SavedModel for strings returns answers as `predict`."""
        return dict(outputs)

    def serve(self, texts, call):
        questions, contexts = map(without_invalid_bytes, texts)
        packed = self.preprocessor.pack_rows((questions, contexts))
        logits = call(self.preprocessor.packer.pad(packed.tokens, packed.first_lengths))
        start = tf.RaggedTensor.from_tensor(logits["start_logits"], packed.lengths)
        end = tf.RaggedTensor.from_tensor(logits["end_logits"], packed.lengths)
        score, start, end, null = best_spans_in_graph(
            packed, start, end, self.max_answer_length
        )
        # No span is valid.
        is_null = score < NEVER / 2
        if self.null_threshold is not None:
            is_null = is_null | (null - self.null_threshold > score)
        start = tf.where(is_null, 0, start)
        end = tf.where(is_null, 0, end)
        return {
            "answer": tf.strings.substr(contexts, start, end - start, "UTF8_CHAR"),
            "start": start,
            "end": end,
            "score": tf.exp(tf.where(is_null, null, score)),
        }


# === Answers to the tokens that `fit` learns, and logits to the best answers ===


def answer_lists(y: Column) -> list[list[tuple[int | None, str]]]:
    """Return the answers of each example, a list of `(start, text)`.

    An element of `y` is `(start, text)`, a list of such, empty for no answer, or the
    dict of `text` and `answer_start` of Hugging Face data sets.
    """
    return [_answers(given, i) for i, given in enumerate(as_list(y, "y"))]


def _answers(given, position):
    """Return the answers of one example, an element of `y`."""
    if isinstance(given, dict) and {"answer_start", "text"} <= {*given}:
        # A row of SQuAD in the form of Hugging Face.
        starts = as_list(given["answer_start"], "answer_start")
        answers = list(zip(starts, as_list(given["text"], "text"), strict=True))
    elif isinstance(given, (list, np.ndarray, Set)):
        # Sets are refused: which answer is learned depends on their order.
        answers = as_list(given, f"y[{position}]")
    else:
        answers = [given]
    answers = [one for one in answers if not is_missing(one) and _is_given(one)]
    for answer in answers:
        is_pair = isinstance(answer, (list, tuple)) and len(answer) == 2
        if not is_pair or not isinstance(answer[1], str):
            raise AlbertError(
                "An answer is `(start, text)`: the first character in the context, an "
                "int, and a string; or `None`, where the context has none. Element "
                f"{position} of `y` is {given!r:.80}. For texts alone pass [(None, "
                "text) for text in y]."
            )
    return [tuple(answer) for answer in answers if answer[1]]


def _is_given(answer):
    """Return whether an answer is not empty; a number is refused later."""
    return not isinstance(answer, Sized) or len(answer) > 0


def span_targets(
    packed: WindowedTexts, contexts: Sequence[str], y: Sequence[Any]
) -> dict[str, np.ndarray]:
    """Return the first and the last token of the answer, int32 arrays [windows].

    They are 0, that is `[CLS]`, where the window does not contain the whole answer.
    """
    starts, ends = split_ragged((packed.starts, packed.ends))
    # The first and the last token of each answer in its context.
    tokens = []
    num_moved = 0
    for i, (context, answers) in enumerate(zip(contexts, answer_lists(y), strict=True)):
        if not answers:
            tokens.append(NO_TOKENS)
            continue
        start, given_start, text = _first_in(context, answers, i)
        if given_start is not None and given_start != start:
            num_moved += 1
        first = np.searchsorted(ends[i], start, side="right")
        last = np.searchsorted(starts[i], start + len(text), side="left") - 1
        # The tokenizer may drop all characters of an answer.
        tokens.append((first, last) if first <= last else NO_TOKENS)
    if num_moved:
        warnings.warn(
            f"{num_moved} of {len(tokens)} answers do not stand at their `start`, and "
            "were found elsewhere in their contexts.",
            stacklevel=5,
        )
    windows = packed.windows
    first, last = np.array(tokens, "int64")[windows.texts.numpy()].T
    begin, end = windows.starts.numpy(), windows.ends.numpy()
    is_whole = (first >= begin) & (last < end)
    shift = packed.first_lengths.numpy() - begin
    return {
        "start_logits": np.where(is_whole, first + shift, 0).astype("int32"),
        "end_logits": np.where(is_whole, last + shift, 0).astype("int32"),
    }


def _first_in(context, answers, position):
    """Return the place, the given start and the text of the first answer found."""
    for given, text in answers:
        start = find_answer(context, given, text)
        if start is not None:
            return start, given, text
    raise AlbertError(
        f"The context of element {position} does not contain its answer "
        f"{answers[0][1]!r}. Leave such examples out, as "
        "`albert_tf.data.read_squad(path).for_training()` does."
    )


def best_spans_in_graph(
    packed: WindowedTexts,
    start_logits: tf.RaggedTensor,
    end_logits: tf.RaggedTensor,
    max_answer_length: int,
) -> tuple[tf.Tensor, ...]:
    """Return what `albert_tf_lite.spans.best_spans` does, as tensors [contexts].

    These are the score, start and end of the best span, and the score of no answer.
    """

    def best(window):
        start, end, first = window
        # [CLS] and the context, without the last [SEP].
        start = tf.nn.log_softmax(tf.concat([start[:1], start[first:-1]], axis=0))
        end = tf.nn.log_softmax(tf.concat([end[:1], end[first:-1]], axis=0))
        null = start[0] + end[0]
        begins = start[1:, tf.newaxis]
        ends = tf.pad(end[1:], [[0, max_answer_length]], constant_values=NEVER)
        # [time, the tokens of a span less one].
        last = tf.range(tf.size(begins))[:, tf.newaxis] + tf.range(max_answer_length)
        scores = tf.reshape(begins + tf.gather(ends, last), [-1])
        # One more, because a window may have no tokens.
        scores = tf.pad(scores, [[0, 1]], constant_values=NEVER)
        index = tf.argmax(scores)
        first, more = index // max_answer_length, index % max_answer_length
        return tf.reduce_max(scores), first, first + more, null

    inputs = (start_logits, end_logits, packed.first_lengths)
    types = (tf.float32, tf.int64, tf.int64, tf.float32)
    scores, firsts, lasts, nulls = tf.map_fn(best, inputs, fn_output_signature=types)
    windows = packed.windows
    by_context = tf.RaggedTensor.from_value_rowids(
        scores, windows.texts, packed.starts.nrows(), validate=False
    )
    # One column more, because there may be no contexts.
    rows = tf.pad(by_context.to_tensor(NEVER), [[0, 0], [0, 1]], constant_values=NEVER)
    window = tf.argmax(rows, axis=1) + by_context.row_starts()
    shift = tf.gather(windows.row_starts + windows.starts, window)
    first = shift + tf.gather(firsts, window)
    last = shift + tf.gather(lasts, window)
    start = _at_or_0(packed.starts.values, first)
    end = _at_or_0(packed.ends.values, last)
    null = tf.math.segment_min(nulls, windows.texts)
    return tf.gather(scores, window), start, end, null


def _at_or_0(values: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
    """Return values at places, 0 after the last: impossible spans may end there."""
    count = tf.size(values, tf.int64)
    return tf.gather(tf.pad(values, [[0, 1]]), tf.minimum(places, count))
