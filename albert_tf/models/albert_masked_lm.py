import re
from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.heads import masked_lm_head
from albert_tf.models.batching import prefetched
from albert_tf.models.prediction import predict_batches
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing import AlbertMaskedLMPreprocessor
from albert_tf.preprocessing.segment_packer import PackedTexts
from albert_tf.preprocessing.texts import Texts, is_pair
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_texts, check_integer
from albert_tf_lite.sentence_piece import SPACE_PIECE

# The number of rows that `pseudo_perplexity` predicts together.
ROWS_AT_A_TIME = 1024


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertMaskedLM(AlbertTask, keras_hub.models.MaskedLM):
    """ALBERT with its masked language model head: fills `[MASK]`, learns from texts.

    `fit(texts)` continues the pretraining on raw strings without labels, with other
    masks in each epoch. `evaluate(texts)` and `validation_data=texts` have the same
    masks each time. `AlbertPretrainer`, which also has the sentence-order head, trains
    on records of a large corpus.

    Args:
        backbone, pairs, compile: as for `AlbertTextClassifier`.
        preprocessor: optional `AlbertMaskedLMPreprocessor`.

    Inputs:
        The dict `AlbertBackbone` takes, and `mask_positions`, an int32 tensor
        [batch, masks]: the positions to predict, then 0.

    Returns:
        Logits [batch, masks, vocabulary_size]. `predict` returns a list of arrays
        [masks, vocabulary_size], one per text.

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
    pipeline_tag = "fill-mask"
    summaries = ("predicts the tokens at `[MASK]`", "预测 `[MASK]` 处的 token")
    weights_targets = True
    preprocessor_cls = AlbertMaskedLMPreprocessor
    heads = ("masked_lm_head",)
    keeps_pooler = True
    default_learning_rate = 1e-4

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

    def default_metrics(self):
        return {"weighted_metrics": ["accuracy"]}

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
            batch_size: as for `predict`.

        Returns:
            For one text a list of dicts, the likeliest first: `score`, a probability;
            `token`, its id; `token_str`; `sequence`, the text with the token instead of
            the mask; `start` and `end`, the characters of the mask. For a text of
            several masks a list of such lists; for a list of texts a list of these.

        Raises:
            AlbertError: if a text has no mask, or one beyond `sequence_length`, or
                `targets` are not tokens of the vocabulary.
        """
        if top_k is not None:
            top_k = check_integer("top_k", top_k)
        if isinstance(texts, str):
            return self.fill([texts], top_k, targets, batch_size)[0]
        texts, tokenizer = as_texts(texts), self.preprocessor.tokenizer
        allowed = _target_ids(tokenizer, targets)
        mask = re.escape(tokenizer.mask_token)
        logits = self.predict(texts, batch_size=batch_size, verbose=0)
        filled = []
        for i, (text, rows) in enumerate(zip(texts, logits, strict=True)):
            places = [match.span() for match in re.finditer(mask, text)]
            if not 0 < len(places) == len(rows):
                raise AlbertError(
                    f"Text {i} has {len(places)} {tokenizer.mask_token}, {len(rows)} "
                    f"within sequence_length={self.preprocessor.sequence_length} "
                    f"tokens. Expected at least one, and all within these: {text!r:.80}"
                )
            answers = []
            probabilities = self.probabilities(rows).numpy()
            for place, scores in zip(places, probabilities, strict=True):
                best = np.argsort(-scores[allowed], kind="stable")[:top_k]
                ids = allowed[best].tolist()
                answers.append(
                    [_filled(text, place, tokenizer, x, float(scores[x])) for x in ids]
                )
            filled.append(answers[0] if len(answers) == 1 else answers)
        return filled

    def pseudo_perplexity(
        self, texts: Sequence[str], batch_size: int | None = None
    ) -> np.ndarray:
        """Return the pseudo-perplexity of texts, with each token masked in turn.

        It is exp of the mean of -log P(token | all others), 1 for a text that is
        certain.

        Args:
            texts: list of strings.
            batch_size: as for `predict`; an example is a text with one token masked.

        Returns:
            A float array [texts]; NaN for a text without tokens.

        Reference:
            [Salazar et al., 2020](https://arxiv.org/abs/1910.14659), equation 3, per
            text.
        """
        tokenizer = self.preprocessor.tokenizer
        packed = self.preprocessor.pack_texts(texts)
        ids, rows = packed.tokens.values.numpy(), packed.tokens.value_rowids().numpy()
        positions = tf.ragged.range(packed.lengths).values.numpy()
        is_text = ~np.isin(ids, (tokenizer.cls_token_id, tokenizer.sep_token_id))
        ids, rows, positions = (x[is_text] for x in (ids, rows, positions))
        logs = np.zeros(len(ids))
        # Each example has as many logits as the vocabulary.
        for start in range(0, len(ids), ROWS_AT_A_TIME):
            part = slice(start, start + ROWS_AT_A_TIME)
            tokens = tf.gather(packed.tokens, rows[part])
            values, places = tokens.values.numpy(), tokens.row_starts().numpy()
            values[places + positions[part]] = tokenizer.mask_token_id
            masked = PackedTexts(
                tokens=tokens.with_values(tf.constant(values)),
                first_lengths=tf.gather(packed.first_lengths, rows[part]),
            )
            batches = self.prediction_batches(masked, batch_size)
            logits = np.concatenate(predict_batches(self, batches, verbose=0))
            # Texts may have more masks.
            is_ours = np.isin(
                np.flatnonzero(values == tokenizer.mask_token_id),
                places + positions[part],
            )
            scores = self.probabilities(logits[is_ours]).numpy()
            found = np.take_along_axis(scores, ids[part, np.newaxis], axis=1)[:, 0]
            # Never log 0, of a token that rounds to impossible.
            logs[part] = np.log(np.maximum(found, 1e-37))
        counts = np.bincount(rows, minlength=len(packed))
        sums = np.bincount(rows, weights=logs, minlength=len(packed))
        with np.errstate(invalid="ignore"):
            return np.exp(-sums / counts)

    def probabilities(self, logits: tf.Tensor) -> tf.Tensor:
        """Return the probabilities of tokens.

        With marked labels, `##` and a character counts as the character.
        """
        probabilities = tf.nn.softmax(logits)
        if self.preprocessor is None:
            return probabilities
        # The table may have more rows than there are tokens.
        count = self.preprocessor.tokenizer.vocabulary_size()
        probabilities = probabilities[..., :count]
        plain = self.preprocessor.label_tokens
        if plain is None:
            return probabilities
        # The sum of the columns that stand for the same token.
        summed = tf.math.unsorted_segment_sum(
            tf.transpose(tf.reshape(probabilities, [-1, len(plain)])), plain, len(plain)
        )
        return tf.reshape(tf.transpose(summed), tf.shape(probabilities))

    def answers(self, x, batch_size=None, top_k=5, targets=None):
        """Return the answers of `fill`."""
        return self.fill(x, top_k=top_k, targets=targets, batch_size=batch_size)

    def postprocess(self, outputs: Any, top_k: int = 5) -> dict[str, Any]:
        """Return the `tokens`, `token_ids` and `scores` [batch, masks, top_k]."""
        scores, token_ids = tf.math.top_k(self.probabilities(outputs), top_k)
        tokens = tf.constant(self.preprocessor.tokenizer.get_vocabulary())
        return {
            "tokens": tf.gather(tokens, token_ids),
            "token_ids": token_ids,
            "scores": scores,
        }

    def serve(self, texts: Any, call: Any, **options: Any) -> dict[str, Any]:
        """Return the `answers`; empty, -1 and 0 after the last mask of a text."""
        features = self.preprocessor.features(texts)
        found = self.postprocess(call(features), **options)
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
        """Return batches with other masks in each epoch, unless `fixed`."""
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

    def preprocess_samples(self, x, y=None, sample_weight=None):
        # Datasets of texts to fill: `prepare_dataset` masks those to train on.
        if self.preprocessor is not None:
            x = self.preprocessor.features(x)
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def prediction_batches(self, packed, batch_size=None, max_tokens=None):
        batches = super().prediction_batches(packed, batch_size, max_tokens)
        return batches.map(self.preprocessor.with_mask_positions)

    def predicted_mask(self, x):
        # No mask is at the first position, which is that of [CLS].
        return tf.cast(x["mask_positions"] > 0, tf.int32)

    def _with_masks(self, dataset, fixed):
        # `map` traces a function twice that creates variables.
        _ = self.preprocessor.mask_generator

        def mask(number, batch):
            batch = batch if isinstance(batch, tuple) else (batch,)
            # One weight per text.
            batch = (*batch[:2], *(tf.reshape(x, [-1]) for x in batch[2:]))
            seed = tf.stack([0, tf.cast(number, tf.int32)]) if fixed else None
            return self.preprocessor.masked(*batch, seed=seed)

        # Not in parallel, so that the state of the generator repeats its masks.
        return dataset.enumerate().map(mask)


def _target_ids(tokenizer, targets):
    """Return the ids of tokens, each once, in their order; of all for `None`."""
    if targets is None:
        return np.arange(tokenizer.vocabulary_size())
    targets = [targets] if isinstance(targets, str) else as_texts(targets, "targets")
    ids = {token: i for i, token in enumerate(tokenizer.get_vocabulary())}
    found = [ids.get(x, ids.get(SPACE_PIECE + x)) for x in targets]
    missing = [x for x, i in zip(targets, found, strict=True) if i is None]
    if missing or not targets:
        raise AlbertError(
            "`targets` should be tokens of the vocabulary, such as single Chinese "
            f"characters. Not in it: {missing}"
        )
    return np.array(list(dict.fromkeys(found)))


def _filled(text, place, tokenizer, number, score):
    """Return the answer that puts a token in place of a mask."""
    start, end = place
    token = tokenizer.id_to_token(number).replace(SPACE_PIECE, " ").strip()
    sequence = text[:start] + token.removeprefix("##") + text[end:]
    answer = {"score": score, "token": number, "token_str": token}
    return {**answer, "sequence": sequence, "start": start, "end": end}
