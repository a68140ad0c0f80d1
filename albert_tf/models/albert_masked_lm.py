from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.models.albert_pretrainer import masked_lm_head
from albert_tf.models.batching import prefetched
from albert_tf.models.mask_filling import fill_masks, pseudo_perplexity
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing import AlbertMaskedLMPreprocessor
from albert_tf.preprocessing.examples import is_pair
from albert_tf.preprocessing.texts import Texts
from albert_tf_lite.answers import check_top_k
from albert_tf_lite.errors import AlbertError


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertMaskedLM(AlbertTask, keras_hub.models.MaskedLM):
    """ALBERT with its masked language model head: fills `[MASK]`, learns from texts.

    `fit(texts)` continues the pretraining on raw strings without labels, with masks
    drawn anew in each epoch; `evaluate(texts)` has the same masks each time; so have
    `validation_data=texts`. `AlbertPretrainer`, which also has the sentence-order head,
    trains on records of a large corpus.

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

    name_of_task = "fill-mask"
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
        # albert_zh's labels keep the `##` of its word marker.
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
        """Build the task on a backbone; as for other tasks.

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
        """Return the most likely tokens of each `[MASK]`, with transformers' keys.

        Args:
            texts: a string, or list of strings, with one `[MASK]` or more.
            top_k: int. The number of answers per mask.
            targets: optional tokens of the vocabulary, the only ones to choose from.
                Their scores remain the probabilities among all tokens.
            batch_size: optional int, by default more than 32 for short texts.

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
        """Return the pseudo-perplexity of texts, with each token masked in turn.

        It is exp of the mean of -log P(token | all others), 1 for a text that could not
        be otherwise. Each token of a text is a row of a batch.

        Args:
            texts: list of strings.
            batch_size: int. Rows computed at once.

        Returns:
            A float array [texts]; NaN for a text without tokens.

        Reference:
            [Salazar et al., 2020](https://arxiv.org/abs/1910.14659), equation 3 of
            each text by itself.
        """
        return pseudo_perplexity(self, texts, batch_size)

    def probabilities(self, logits: tf.Tensor) -> tf.Tensor:
        """Return the probabilities of tokens.

        With marked labels, `##` and a character counts as the character.
        """
        probabilities = tf.nn.softmax(logits)
        plain = self.preprocessor and self.preprocessor.label_tokens
        if plain is None:
            return probabilities
        # The sum of the columns that stand for the same token.
        summed = tf.math.unsorted_segment_sum(
            tf.transpose(tf.reshape(probabilities, [-1, len(plain)])), plain, len(plain)
        )
        return tf.reshape(tf.transpose(summed), tf.shape(probabilities))

    def predict_dicts(self, x, batch_size=None, top_k=5, targets=None):
        """Return lists of `score`, `token`, `token_str`, `sequence`, `start` and `end`.

        Args:
            x: list of strings.
            batch_size: optional int.
            top_k, targets: as for `fill`.
        """
        check_top_k(top_k)
        return self.fill(x, top_k=top_k, targets=targets, batch_size=batch_size)

    def answers(self, outputs: Any, top_k: int = 5) -> dict[str, Any]:
        """Return the `tokens`, `token_ids` and `scores` [batch, masks, top_k]."""
        scores, token_ids = tf.math.top_k(self.probabilities(outputs), top_k)
        tokens = tf.constant(self.preprocessor.tokenizer.get_vocabulary())
        return {
            "tokens": tf.gather(tokens, token_ids),
            "token_ids": token_ids,
            "scores": scores,
        }

    def text_answers(self, texts: Any, call: Any, **options: Any) -> dict[str, Any]:
        """As `answers`; empty, -1 and 0 after the last mask of a text."""
        features = self.preprocessor(texts)
        found = self.answers(call(features), **options)
        is_mask = (features["mask_positions"] > 0)[..., tf.newaxis]
        fill = {"tokens": "", "token_ids": -1, "scores": 0.0}
        return {name: tf.where(is_mask, x, fill[name]) for name, x in found.items()}

    # === Training ===

    def targets(self, x: Texts, y: None, packed=None) -> tf.RaggedTensor:
        """Return where words begin, from which the masks of a batch are drawn."""
        if y is not None:
            raise AlbertError(
                "A masked language model learns the texts themselves. Leave out `y`."
            )
        return self.preprocessor.word_starts(x)

    def training_batches(
        self, x, y, sample_weight=None, *, fixed=False, **options
    ) -> tf.data.Dataset:
        """Return batches with masks, drawn anew in each epoch unless `fixed`."""
        batches = super().training_batches(x, y, sample_weight, **options)
        return prefetched(self._with_masks(batches, fixed))

    def prepare_dataset(self, dataset, fixed=False):
        spec = dataset.element_spec
        x = spec[0] if isinstance(spec, tuple) and len(spec) < 2 else spec
        is_packed = isinstance(x, dict) and "mask_positions" not in x
        if is_pair(dataset) is None and not is_packed:
            return dataset
        if is_packed and self.preprocessor.segmenter is not None:
            raise AlbertError(
                "A segmenter needs the texts, not their ids. Give the texts as a list, "
                "or set `preprocessor.segmenter = None`."
            )
        return self._with_masks(dataset, fixed)

    def prediction_batches(self, packed, batch_size=None, max_tokens=None):
        batches = super().prediction_batches(packed, batch_size, max_tokens)
        return batches.map(self.preprocessor.with_mask_positions)

    def predicted_mask(self, x):
        # No mask is at the first position, which is that of [CLS].
        return tf.cast(x["mask_positions"] > 0, tf.int32)

    def _with_masks(self, dataset, fixed):
        def mask(number, batch):
            batch = batch if isinstance(batch, tuple) else (batch,)
            # One weight per text.
            batch = (*batch[:2], *(tf.reshape(x, [-1]) for x in batch[2:]))
            seed = tf.stack([0, tf.cast(number, tf.int32)]) if fixed else None
            return self.preprocessor.masked(*batch, seed=seed)

        # Not in parallel, so that the state of the generator repeats its masks.
        return dataset.enumerate().map(mask)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "pairs": self.pairs}
