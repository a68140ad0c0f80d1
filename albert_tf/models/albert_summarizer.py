import re
from collections.abc import Callable
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.head_layers import dense_head, head_dropout
from albert_tf.evaluation import oracle_labels
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing.articles import (
    choose_sentences,
    sentence_bounds,
    sentences_of,
    split_sentences_in_graph,
)
from albert_tf.preprocessing.task_preprocessors import AlbertSummarizerPreprocessor
from albert_tf.preprocessing.texts import as_string_tensor
from albert_tf.trainers.batching import PADDING_TARGET
from albert_tf.trainers.labels import check_count
from albert_tf.trainers.prediction import Outputs, PredictedRows
from albert_tf.training import SentenceLoss
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_list, check_integer

# Sentences of a summary, as in most papers on news.
SENTENCES = 3


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertSummarizer(AlbertTask, keras_hub.models.Task):
    """ALBERT that summarizes an article by its most important sentences.

    Each sentence begins with a [CLS], whose hidden state is its score. An article is a
    string, or the list of its sentences, such as from `zh.split_sentences`; a long one
    is read in windows of whole sentences.

    `fit` takes the summary of each article, or a list of 1 and 0, one per sentence. For
    a summary, it learns the sentences that together have the best ROUGE
    (`albert_tf.evaluation.oracle_labels`).

    Args:
        backbone: an `AlbertBackbone`.
        preprocessor: optional `AlbertSummarizerPreprocessor`.
        dropout: float. Rate before the head, apart from the encoder's own.
        compile: bool. Compile with the defaults.

    Returns:
        Logits [batch, time], meaningful at the [CLS] of each sentence.

    Example:
    ```python
    summarizer = albert_tf.models.AlbertSummarizer.from_checkpoint("albert_tiny_zh")
    summarizer.fit(articles, summaries)
    summarizer.summarize([article], sentences=2)[0]["summary"]
    ```

    Reference:
        [BertSum](https://arxiv.org/abs/1908.08345), sections 3.1 and 3.2.
    """

    name_of_task = "summarization"
    pipeline_tag = "summarization"
    summaries = ("extracts the key sentences of a text", "抽取关键句作为摘要")
    preprocessor_cls = AlbertSummarizerPreprocessor
    monitor = "rouge_l"
    targets_are = None
    ignored_class = PADDING_TARGET
    heads = ("sentence_head",)
    reads_windows = True

    def __init__(
        self,
        backbone: AlbertBackbone,
        preprocessor: AlbertSummarizerPreprocessor | None = None,
        dropout: float = 0.1,
        **kwargs: Any,
    ):
        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.output_dropout = head_dropout(backbone, dropout)
        self.sentence_dense = dense_head(backbone, 1, "sentence_logits")

        # === Config ===
        self.dropout = dropout

        # === Functional Model ===
        hidden = backbone(backbone.input)["sequence_output"]
        outputs = self.sentence_dense(self.output_dropout(hidden))[..., 0]
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    def default_loss(self):
        return SentenceLoss()

    def targets(self, x: list, y: list, packed=None) -> tf.RaggedTensor:
        """Return 1 or 0 at the [CLS] of each sentence, float [windows, (tokens)].

        It is `PADDING_TARGET` elsewhere.
        """
        packed = packed or self.preprocessor.pack_texts(x)
        articles = sentences_of(x)
        y = check_count(articles, y)
        labels: list[int] = []
        for position, (sentences, given) in enumerate(zip(articles, y, strict=True)):
            labels += _sentence_labels(sentences, given, position)
        values = np.full(packed.tokens.values.shape, PADDING_TARGET, "float32")
        values[packed.positions.numpy()] = labels
        return packed.tokens.with_values(tf.constant(values))

    def predictions(self, x, packed, outputs):
        if packed is None:
            return outputs
        return self._summaries(PredictedRows(x, packed, outputs))

    def summarize(
        self,
        x: list,
        sentences: int = SENTENCES,
        max_characters: int | None = None,
        batch_size: int | None = None,
        verbose: str | int = "auto",
    ) -> list[dict[str, Any]]:
        """Return the summaries of articles; `predict` does so by the defaults.

        Args:
            x: list of articles, or a dataset of batches of strings.
            sentences: int. Maximum number of sentences of a summary.
            max_characters: optional int. Maximum number of characters of its
                sentences together.
            batch_size: optional int, by default more than 32 for short texts.
            verbose: 0 for silence, 1 for a progress bar; `"auto"` is 1 in most cases.

        Returns:
            A dict per article: `summary`, a string; and `sentences`, tuples
            `(start, end, score)` in the order of the article, where
            `article[start:end]` is the sentence (for a list, in its joined sentences).
        """
        sentences = check_integer("sentences", sentences)
        if max_characters is not None:
            max_characters = check_integer("max_characters", max_characters)
        rows = self.predict_rows(x, batch_size, verbose=verbose)
        return self._summaries(rows, sentences, max_characters)

    def answers(self, x, batch_size=None, sentences=SENTENCES, max_characters=None):
        """Return `summary` and `sentences` of each article; see `summarize`."""
        return self.summarize(x, sentences, max_characters, batch_size, verbose=0)

    def _summaries(
        self,
        rows: PredictedRows,
        sentences: int = SENTENCES,
        max_characters: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return the summaries of predicted articles."""
        packed: Any = rows.packed
        if packed is None:
            return []
        articles, summaries = sentences_of(rows.x), []
        logits = np.concatenate(rows.outputs)[packed.positions.numpy()]
        ends = np.cumsum([len(article) for article in articles])
        all_scores: Any = np.split(tf.sigmoid(logits).numpy(), ends[:-1])
        for article, scores in zip(articles, all_scores, strict=True):
            bounds = sentence_bounds(article)
            chosen = choose_sentences(article, scores, sentences, max_characters)
            spans = [(*bounds[i], float(scores[i])) for i in chosen]
            summary = "".join(article[i] for i in chosen).strip()
            summaries.append({"summary": summary, "sentences": spans})
        return summaries

    def postprocess(self, outputs: Outputs) -> dict[str, Any]:
        """Return `scores` [batch, time], the probabilities of sentences."""
        return {"scores": tf.sigmoid(outputs)}

    def serve(self, texts: tuple[tf.Tensor, ...], call: Callable) -> dict[str, Any]:
        """Return `sentences` and `scores` [batch, sentences] of whole articles.

        They are empty and -1 after the last sentence of an article.
        """
        rows = split_sentences_in_graph(as_string_tensor(texts[0]))
        articles = self.preprocessor.cut(rows)
        tokens = articles.tokens
        logits = call(self.preprocessor.packer.pad(tokens, tokens.row_lengths()))
        logits = tf.RaggedTensor.from_tensor(logits, tokens.row_lengths()).values
        scores = rows.with_values(tf.sigmoid(tf.gather(logits, articles.positions)))
        return {"sentences": rows.to_tensor(""), "scores": scores.to_tensor(-1.0)}


def _sentence_labels(sentences, given, position):
    """Return 1 or 0 for each sentence of an article, from its summary or as given."""
    is_summary = isinstance(given, str)
    if is_summary and re.fullmatch(r"[01](\W[01])*", given):
        raise AlbertError(
            f"The summary of article {position} is {given!r}. If these are the labels "
            'of its sentences, pass [[int(x) for x in row.split("'
            f'{given[1:2] or "|"}")] for row in y].'
        )
    if is_summary:
        labels = oracle_labels(sentences, given)
    else:
        labels = as_list(given, f"y[{position}]")
    if len(labels) != len(sentences) or not set(labels) <= {0, 1}:
        raise AlbertError(
            f"Article {position} has {len(sentences)} sentences. Its labels should be "
            f"as many 1 and 0. Received {len(labels)}: {str(labels)[:80]!r}"
        )
    return labels
