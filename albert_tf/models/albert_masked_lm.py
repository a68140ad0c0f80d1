from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.models.albert_pretrainer import masked_lm_head
from albert_tf.models.mask_filling import fill_masks, pseudo_perplexity
from albert_tf.models.task import AlbertTask
from albert_tf.models.text_fitting import FitsTexts
from albert_tf.preprocessing import AlbertMaskedLMPreprocessor
from albert_tf.preprocessing.examples import is_pair
from albert_tf.preprocessing.length_grouping import GroupedTexts, prefetched
from albert_tf.preprocessing.marked_labels import marked_label_ids, plain_token_ids
from albert_tf.preprocessing.texts import Texts
from albert_tf_lite.errors import AlbertError


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertMaskedLM(FitsTexts, AlbertTask, keras_hub.models.MaskedLM):
    """ALBERT with its masked language model head: fills `[MASK]`, learns from texts.

    `fit(texts)` continues the pretraining on raw strings, with masks drawn anew in each
    epoch; `evaluate(texts)` has the same masks each time. `AlbertPretrainer`, which has
    the sentence-order head, too, trains on records of a large corpus.

    Args:
        backbone: an `AlbertBackbone`.
        preprocessor: an `AlbertMaskedLMPreprocessor`, or `None` if the inputs are ids
            already.
        pairs: bool. Whether an example is a pair of texts; `fit` sets it.
        compile: bool. Compile with the defaults.

    Inputs:
        The dict `AlbertBackbone` takes, and `mask_positions`, an int32 tensor
        [batch, masks]: the positions to predict, then 0.

    Returns:
        Logits, [batch, masks, vocabulary_size]. `predict` gives a list of arrays
        [masks, vocabulary_size], one a text.

    Example:
    ```python
    masked_lm = albert_tf.models.AlbertMaskedLM.from_checkpoint("albert_tiny_zh")
    masked_lm.fill("今天[MASK]气很好", top_k=5)
    masked_lm.pseudo_perplexity(["今天天气很好", "今天很气天好"])
    masked_lm.preprocessor.segmenter = zh.Jieba()  # For masks of whole words.
    masked_lm.fit(texts)
    ```

    Reference:
        [ALBERT, section 3.1](https://arxiv.org/abs/1909.11942);
        google-research/albert `run_pretraining.py`, `get_masked_lm_output`.
    """

    preprocessor_cls = AlbertMaskedLMPreprocessor
    heads = ("masked_lm_head",)
    keeps_pooler = True

    def __init__(
        self,
        backbone: AlbertBackbone,
        preprocessor: AlbertMaskedLMPreprocessor | None = None,
        pairs: bool = False,
        **kwargs: Any,
    ):
        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.masked_lm_head = masked_lm_head(backbone)

        # === Config ===
        self.pairs = pairs

        # === Functional Model ===
        positions = keras.Input((None,), dtype="int32", name="mask_positions")
        hidden = backbone(backbone.input)["sequence_output"]
        super().__init__(
            inputs={**backbone.input, "mask_positions": positions},
            outputs=self.masked_lm_head(hidden, positions),
            **kwargs,
        )

    @classmethod
    def read_heads(cls, checkpoint, arguments):
        """albert_zh's labels keep the `##` of its word marker."""
        return {"marked_labels": checkpoint.layout.name == "albert_zh", **arguments}, []

    @classmethod
    def from_backbone(
        cls,
        backbone: AlbertBackbone,
        vocabulary: Any = None,
        *args: Any,
        marked_labels: bool = False,
        segmenter: Callable[[str], list[str]] | None = None,
        **kwargs: Any,
    ) -> AlbertMaskedLM:
        """As of other tasks.

        Args:
            marked_labels, segmenter: as for `AlbertMaskedLMPreprocessor`.
                `from_checkpoint` takes both, too; by default labels are marked in
                albert_zh's checkpoints.
        """
        task = super().from_backbone(backbone, vocabulary, *args, **kwargs)
        if task.preprocessor is not None:
            task.preprocessor.marked_labels = marked_labels
            task.preprocessor.segmenter = segmenter
        return task

    @property
    def default_learning_rate(self) -> float:
        return 1e-4

    def default_loss(self):
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def default_metrics(self):
        accuracy = keras.metrics.SparseCategoricalAccuracy(name="accuracy")
        return {"weighted_metrics": [accuracy]}

    # === Filling ===

    def fill(
        self,
        texts: str | Sequence[str],
        top_k: int = 5,
        targets: str | Sequence[str] | None = None,
        batch_size: int | None = None,
    ) -> list:
        """The most likely tokens at each `[MASK]`, with the keys of transformers.

        Args:
            texts: a string, or list of strings, with one `[MASK]` or more.
            top_k: int. How many answers a mask gets.
            targets: optional tokens of the vocabulary, the only ones to choose from.
                Their scores remain the probabilities among all tokens.
            batch_size: optional int, more than 32 by default where texts are short.

        Returns:
            For one text a list of dicts, the likeliest first: `score`, a probability;
            `token`, its id; `token_str`; `sequence`, the text with the token in the
            place of the mask; `start` and `end`, the characters of the text where the
            mask stands. For a text of several masks a list of such lists; for a list
            of texts a list of what each text gets.

        Raises:
            AlbertError: if a text has no mask, or one beyond `sequence_length`, or
                `targets` are not tokens of the vocabulary.
        """
        return fill_masks(self, texts, top_k, targets, batch_size)

    def pseudo_perplexity(
        self, texts: Sequence[str], batch_size: int = 32
    ) -> np.ndarray:
        """How unlikely each text is, with each of its tokens masked in turn.

        exp of the mean of -log P(token | all others): 1 for a text that could not be
        otherwise. It takes as many rows of a batch as a text has tokens.

        Args:
            texts: list of strings.
            batch_size: int. Rows that are computed at once.

        Returns:
            A float array [texts]; NaN for a text without tokens.

        Reference:
            [Salazar et al., 2020](https://arxiv.org/abs/1910.14659), equation 3 of
            each text by itself.
        """
        return pseudo_perplexity(self, texts, batch_size)

    def probabilities(self, logits: tf.Tensor) -> tf.Tensor:
        """Of each token, `##` and a character counted as the character if marked."""
        probabilities = tf.nn.softmax(logits)
        if self.preprocessor is None or not self.preprocessor.has_marked_labels:
            return probabilities
        plain = plain_token_ids(marked_label_ids(self.preprocessor.tokenizer))
        # The sum of the columns that stand for the same token.
        summed = tf.math.unsorted_segment_sum(
            tf.transpose(tf.reshape(probabilities, [-1, len(plain)])), plain, len(plain)
        )
        return tf.reshape(tf.transpose(summed), tf.shape(probabilities))

    def answers(self, outputs: Any, top_k: int = 5) -> dict[str, Any]:
        """The likeliest `tokens`, `token_ids` and `scores`, [batch, masks, top_k]."""
        scores, token_ids = tf.math.top_k(self.probabilities(outputs), top_k)
        tokens = tf.constant(self.preprocessor.tokenizer.get_vocabulary())
        return {
            "tokens": tf.gather(tokens, token_ids),
            "token_ids": token_ids,
            "scores": scores,
        }

    def text_answers(self, texts: Any, call: Any, **options: Any) -> dict[str, Any]:
        """As `answers`. Where a text has fewer masks than another, they are empty, -1
        and 0."""
        features = self.preprocessor(texts)
        found = self.answers(call(features), **options)
        is_mask = (features["mask_positions"] > 0)[..., tf.newaxis]
        fill = {"tokens": "", "token_ids": -1, "scores": 0.0}
        return {name: tf.where(is_mask, x, fill[name]) for name, x in found.items()}

    # === Training ===

    def fit(
        self,
        x: Any = None,
        y: None = None,
        *args: Any,
        validation_data: Any = None,
        group_by_length: bool = False,
        max_tokens: int | None = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Train on texts: as of other tasks, without `y`.

        Args:
            x: list of strings, the tuple of two such lists, or a `tf.data.Dataset` of
                batches of strings.
            y: `None`, as the labels are the tokens that are masked.
            validation_data: optional list of strings, or dataset of such.
            *args, group_by_length, max_tokens, **kwargs: as for
                `AlbertTextClassifier.fit`.
        """
        if isinstance(validation_data, list):
            validation_data = (validation_data, None)
        budget = max_tokens if group_by_length else None
        return super().fit(
            self._masked_dataset(x, group_by_length, max_tokens),
            y,
            *args,
            validation_data=self._masked_dataset(
                validation_data, group_by_length, budget, fixed=True
            ),
            group_by_length=group_by_length,
            max_tokens=None if isinstance(x, tf.data.Dataset) else max_tokens,
            **kwargs,
        )

    def evaluate(self, x: Any = None, y: None = None, *args: Any, **kwargs: Any) -> Any:
        """Loss and accuracy on texts, with the same masks each time."""
        if isinstance(x, tf.data.Dataset):
            grouped = kwargs.get("group_by_length", False)
            budget = kwargs.pop("max_tokens", None)
            x = self._masked_dataset(x, grouped, budget, fixed=True)
        return super().evaluate(x, y, *args, **kwargs)

    def targets(self, x: Texts, y: None) -> tf.RaggedTensor:
        """Where words begin, of which the masks and labels of a batch are made."""
        if y is not None:
            raise AlbertError(
                "A masked language model learns the texts themselves. Leave out `y`."
            )
        return self.preprocessor.word_starts(x)

    def predicted_mask(self, x):
        # No mask stands at the first position, which is that of [CLS].
        return tf.cast(x["mask_positions"] > 0, tf.int32)

    def _grouped(self, x, *labels, shuffle=None, **options):
        texts = super()._grouped(x, *labels, shuffle=bool(shuffle), **options)
        if not labels:
            return texts.map(self.preprocessor.with_mask_positions)
        # `evaluate` does not say whether to shuffle.
        masked = self._with_masks(texts.dataset, fixed=shuffle is None)
        return GroupedTexts(lambda: prefetched(masked), texts.order)

    def _masked_dataset(self, data, group_by_length, max_tokens=None, fixed=False):
        """A dataset of texts as one of masked batches; other data as it is."""
        if not isinstance(data, tf.data.Dataset) or is_pair(data) is None:
            return data
        self.pairs = is_pair(data)
        batch_size = self._batching(data, None, max_tokens, group_by_length)
        if group_by_length:
            if self.preprocessor.segmenter is not None:
                raise AlbertError(
                    "`group_by_length` of a dataset goes without a segmenter, which "
                    "needs the texts. Give the texts as a list, or set "
                    "`preprocessor.segmenter = None`."
                )
            data = self._bucketed(data, batch_size)
        return self._with_masks(data, fixed)

    def _with_masks(self, dataset, fixed):
        def mask(number, batch):
            batch = batch if isinstance(batch, tuple) else (batch,)
            seed = tf.stack([0, tf.cast(number, tf.int32)]) if fixed else None
            return self.preprocessor.masked(*batch, seed=seed)

        # One after the other, for the state of the masks to give the same ones again.
        return dataset.enumerate().map(mask)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "pairs": self.pairs}
