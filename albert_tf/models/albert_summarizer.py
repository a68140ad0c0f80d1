from __future__ import annotations

from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.evaluation import oracle_labels
from albert_tf.models.task import AlbertTask
from albert_tf.models.text_fitting import FitsTexts
from albert_tf.models.token_outputs import PADDING_TARGET
from albert_tf.preprocessing.examples import is_pair
from albert_tf.preprocessing.sentences import (
    choose_sentences,
    sentence_bounds,
    sentences_of,
    split_sentences_in_graph,
)
from albert_tf.preprocessing.summarizer_preprocessor import (
    AlbertSummarizerPreprocessor,
    Articles,
)
from albert_tf.preprocessing.texts import as_string_tensor
from albert_tf.training import SentenceLoss
from albert_tf_lite.errors import AlbertError


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertSummarizer(FitsTexts, AlbertTask, keras_hub.models.Task):
    """ALBERT that chooses the sentences of an article that say most.

    Each sentence begins with its own [CLS], whose hidden state gives its score. An
    article is a string, or the list of its sentences, such as `zh.split_sentences`
    gives; a long one is read in windows of whole sentences.

    `fit` takes for each article its summary, or a list of 1 and 0, one a sentence. Of a
    summary those sentences are learned that together have the best ROUGE
    (`albert_tf.evaluation.oracle_labels`). Its scores are
    `albert_tf.evaluation.rouge_scores`.

    Args:
        backbone: an `AlbertBackbone`.
        preprocessor: an `AlbertSummarizerPreprocessor`, or `None` if the inputs are ids
            already.
        dropout: float. Rate between the encoder's output and the head.
        compile: bool. Compile with the defaults.

    Returns:
        Logits [batch, time]; what they are at tokens other than a sentence's [CLS]
        means nothing.

    Example:
    ```python
    summarizer = albert_tf.models.AlbertSummarizer.from_checkpoint("albert_tiny_zh")
    summarizer.fit(articles, summaries)
    summarizer.predict([article], sentences=2)[0]["summary"]
    ```

    Reference:
        [BertSum](https://arxiv.org/abs/1908.08345), sections 3.1 and 3.2.
    """

    preprocessor_cls = AlbertSummarizerPreprocessor
    heads = ("sentence_head",)

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
        self.output_dropout = keras.layers.Dropout(
            dropout, dtype=backbone.compute_dtype, name="output_dropout"
        )
        self.sentence_dense = self.dense_head(1, "sentence_logits")

        # === Config ===
        self.dropout = dropout

        # === Functional Model ===
        hidden = backbone(backbone.input)["sequence_output"]
        outputs = self.sentence_dense(self.output_dropout(hidden))[..., 0]
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    @classmethod
    def read_heads(cls, checkpoint, arguments):
        if "sentence_head" not in checkpoint.heads:
            return arguments, ["sentence_head"]
        return {**checkpoint.head_config("sentence_head"), **arguments}, []

    def default_loss(self):
        return SentenceLoss()

    # === Articles in ===

    def _takes_texts(self, x):
        return isinstance(x, Articles) or super()._takes_texts(x)

    def _examples(self, x, *labels):
        if isinstance(x, Articles):
            return x.tokens, x.tokens.row_lengths()
        sentences = sentences_of(x)
        articles = self.preprocessor.articles(sentences)
        if labels:
            y, *weights = labels
            weights = [tf.gather(weight, articles.article) for weight in weights]
            labels = (sentence_targets(articles, sentences, y), *weights)
        return articles.tokens, articles.tokens.row_lengths(), *labels

    def targets(self, x: list, y: list) -> tf.RaggedTensor:
        """Of each token of the windows, float [windows, (tokens)]: 1 or 0 at the [CLS]
        of a sentence, `PADDING_TARGET` elsewhere."""
        sentences = sentences_of(x)
        return sentence_targets(self.preprocessor.articles(sentences), sentences, y)

    def dataset_targets(self, dataset):
        # Of ids, and targets beside them, are those that `fit` makes itself.
        if is_pair(dataset) is not None:
            raise TypeError(
                "An AlbertSummarizer learns from lists of articles. Received a "
                "tf.data.Dataset."
            )
        return dataset

    # === Summaries out ===

    def sentence_scores(
        self, x: list, batch_size: int | None = None, **kwargs: Any
    ) -> list[np.ndarray]:
        """The probability of each sentence to be in the summary, an array an article.

        Args:
            x: list of articles.
            batch_size: optional int, more than 32 by default where texts are short.
            **kwargs: passed on to `keras.Model.predict`.
        """
        sentences = sentences_of(x)
        if not sentences:
            return []
        articles = self.preprocessor.articles(sentences)
        logits = super().predict(articles, batch_size=batch_size, **kwargs)
        logits = np.concatenate(logits)[articles.positions.numpy()]
        bounds = np.cumsum([len(row) for row in sentences])[:-1]
        return np.split(keras.ops.convert_to_numpy(tf.sigmoid(logits)), bounds)

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        sentences: int = 3,
        max_characters: int | None = None,
        **kwargs: Any,
    ) -> list:
        """The summaries of articles.

        Args:
            x: list of articles, or a dataset of batches of strings; or ids, as
                `keras.Model.predict` takes them.
            batch_size: optional int, more than 32 by default where texts are short.
            sentences: int. Most sentences of a summary.
            max_characters: optional int. Most characters of its sentences together.
            **kwargs: passed on to `keras.Model.predict`.

        Returns:
            A dict for each article: `summary`, a string; and `sentences`, tuples
            `(start, end, score)` in the order of the article, where
            `article[start:end]` is the sentence (of a list, in what its sentences give
            joined). Of ids an array of logits [tokens] for each example.
        """
        if isinstance(x, tf.data.Dataset) and is_pair(x) is False:
            # What stands beside the texts is not for predicting.
            batches = (x[0] if isinstance(x, tuple) else x for x in x)
            x = [text for batch in batches for text in batch.numpy()]
        if not self._takes_texts(x):
            return super().predict(x, batch_size=batch_size, **kwargs)
        rows, summaries = sentences_of(x), []
        scores = self.sentence_scores(rows, batch_size, **kwargs)
        for row, row_scores in zip(rows, scores, strict=True):
            bounds = sentence_bounds(row)
            chosen = choose_sentences(row, row_scores, sentences, max_characters)
            summaries.append(
                {
                    "summary": "".join(row[i] for i in chosen).strip(),
                    "sentences": [(*bounds[i], float(row_scores[i])) for i in chosen],
                }
            )
        return summaries

    def answers(self, outputs: Any) -> dict[str, Any]:
        """`scores` [batch, time], the probability of a sentence that begins there."""
        return {"scores": tf.sigmoid(outputs)}

    def text_answers(self, texts: Any, call: Any) -> dict[str, Any]:
        """`sentences` and `scores` [batch, sentences] of whole articles, in order.

        The sentences joined give the article. Where it has fewer than another, they
        are empty and -1.
        """
        rows = split_sentences_in_graph(as_string_tensor(texts[0]))
        articles = self.preprocessor.cut(rows)
        tokens = articles.tokens
        logits = call(self.preprocessor.packer.pad(tokens, tokens.row_lengths()))
        places = tf.stack([articles.window, articles.place], axis=1)
        scores = rows.with_values(tf.sigmoid(tf.gather_nd(logits, places)))
        return {"sentences": rows.to_tensor(""), "scores": scores.to_tensor(-1.0)}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "dropout": self.dropout}


def sentence_targets(
    articles: Articles, sentences: list[list[str]], y: Any
) -> tf.RaggedTensor:
    """What `targets` gives, of articles that are cut already."""
    if y is None or len(y) != len(sentences):
        raise AlbertError(
            "`y` should have a summary, or a list of 1 and 0, for each article. "
            f"Received {0 if y is None else len(y)} for {len(sentences)} articles."
        )
    labels = []
    for position, (row, given) in enumerate(zip(sentences, y, strict=True)):
        found = oracle_labels(row, given) if isinstance(given, str) else list(given)
        if len(found) != len(row) or not set(found) <= {0, 1}:
            raise AlbertError(
                f"Article {position} has {len(row)} sentences. Its labels should be as "
                f"many 1 and 0. Received {len(found)}: {str(found)[:80]}"
            )
        labels.extend(found)
    values = np.full(articles.tokens.values.shape, PADDING_TARGET, "float32")
    values[articles.positions.numpy()] = labels
    return articles.tokens.with_values(tf.constant(values))
