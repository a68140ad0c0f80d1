import re
from collections.abc import Callable, Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone import AlbertBackbone
from albert_tf.backbone.head_layers import masked_lm_head
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing import AlbertMaskedLMPreprocessor
from albert_tf.preprocessing.segment_packer import PackedTexts
from albert_tf.preprocessing.texts import Texts
from albert_tf.trainers.batching import prefetched
from albert_tf.trainers.head_choice import check_masked_lm_head
from albert_tf.trainers.prediction import Outputs, predict_batches
from albert_tf.trainers.token_accuracy import TokenAccuracy
from albert_tf.training.batch_order import BatchOrder
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
        backbone: an `AlbertBackbone`.
        preprocessor: optional `AlbertMaskedLMPreprocessor`.
        pairs: bool. An example is a pair of texts; `fit` sets it.
        compile: bool. Compile with the defaults.

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
        check_masked_lm_head(checkpoint)
        # albert_zh's labels keep the `##` of its word marker.
        return {"marked_labels": checkpoint.layout.name == "albert_zh", **arguments}, []

    def default_metrics(self):
        return {"weighted_metrics": [TokenAccuracy(name="accuracy")]}

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
        logits = self.predict(texts, batch_size=batch_size, verbose=0)
        filled = []
        for number, text in enumerate(texts):
            places = self._mask_places(number, text, len(logits[number]))
            probabilities = self.probabilities(logits[number]).numpy()
            answers = []
            for place, scores in zip(places, probabilities, strict=True):
                best = np.argsort(-scores[allowed], kind="stable")[:top_k]
                ids = allowed[best].tolist()
                answers.append(
                    [_filled(text, place, tokenizer, i, float(scores[i])) for i in ids]
                )
            filled.append(answers[0] if len(answers) == 1 else answers)
        return filled

    def _mask_places(self, number, text, predicted):
        """Return start and end of each mask of a text; raise if one is truncated."""
        token = self.preprocessor.tokenizer.mask_token
        places = [match.span() for match in re.finditer(re.escape(token), text)]
        if not 0 < len(places) == predicted:
            raise AlbertError(
                f"Text {number} has {len(places)} {token}, {predicted} within "
                f"sequence_length={self.preprocessor.sequence_length} tokens. Expected "
                f"at least one, and all within these: {text!r:.80}"
            )
        return places

    def pseudo_perplexity(
        self, texts: Sequence[str], batch_size: int | None = None
    ) -> np.ndarray:
        """Return the pseudo-perplexity of texts, with each token masked in turn.

        It is exp of the mean of -log P(token | all others), 1 for a text that is
        certain.

        Args:
            texts: list of strings.
            batch_size: optional int, texts with one token masked per batch; by default
                more than 32 for short texts.

        Returns:
            A float array [texts]; NaN for a text without tokens.

        Reference:
            [Salazar et al., 2020](https://arxiv.org/abs/1910.14659), equation 3, per
            text.
        """
        tokenizer = self.preprocessor.tokenizer
        packed = self.preprocessor.pack_texts(texts)
        ids = packed.tokens.values.numpy()
        text_of_token = packed.tokens.value_rowids().numpy()
        positions = tf.ragged.range(packed.lengths).values.numpy()
        # A token without special ones, its text, and its position there.
        is_text = ~np.isin(ids, (tokenizer.cls_token_id, tokenizer.sep_token_id))
        ids, text_of_token = ids[is_text], text_of_token[is_text]
        positions = positions[is_text]
        logs = np.zeros(len(ids))
        # Each example has as many logits as the vocabulary.
        for start in range(0, len(ids), ROWS_AT_A_TIME):
            some = slice(start, start + ROWS_AT_A_TIME)
            logs[some] = self._log_probabilities(
                packed, text_of_token[some], positions[some], ids[some], batch_size
            )
        counts = np.bincount(text_of_token, minlength=len(packed))
        sums = np.bincount(text_of_token, weights=logs, minlength=len(packed))
        with np.errstate(invalid="ignore"):
            return np.exp(-sums / counts)

    def _log_probabilities(self, packed, texts, positions, ids, batch_size):
        """Return the logarithm of the probability of some tokens, each masked alone.

        All but `packed` and `batch_size` are arrays [tokens].
        """
        mask_id = self.preprocessor.tokenizer.mask_token_id
        tokens = tf.gather(packed.tokens, texts)
        values = tokens.values.numpy()
        places = tokens.row_starts().numpy() + positions
        values[places] = mask_id
        masked = PackedTexts(
            tokens=tokens.with_values(tf.constant(values)),
            first_lengths=tf.gather(packed.first_lengths, texts),
        )
        batches = self.prediction_batches(masked, batch_size)
        logits = np.concatenate(predict_batches(self, batches, verbose=0))
        # Texts may have more masks.
        is_ours = np.isin(np.flatnonzero(values == mask_id), places)
        probabilities = self.probabilities(logits[is_ours]).numpy()
        of_ids = np.take_along_axis(probabilities, ids[:, np.newaxis], axis=1)[:, 0]
        # Never log 0, of a token that rounds to impossible.
        return np.log(np.maximum(of_ids, 1e-37))

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

    def postprocess(self, outputs: Outputs, top_k: int = 5) -> dict[str, Any]:
        """Return the `tokens`, `token_ids` and `scores` [batch, masks, top_k]."""
        scores, token_ids = tf.math.top_k(self.probabilities(outputs), top_k)
        tokens = tf.constant(self.preprocessor.tokenizer.get_vocabulary())
        return {
            "tokens": tf.gather(tokens, token_ids),
            "token_ids": token_ids,
            "scores": scores,
        }

    def serve(
        self, texts: tuple[tf.Tensor, ...], call: Callable, **options: Any
    ) -> dict[str, Any]:
        """Return the `answers`; empty, -1 and 0 after the last mask of a text."""
        features = self.preprocessor.features(texts)
        answers = self.postprocess(call(features), **options)
        is_mask = (features["mask_positions"] > 0)[..., tf.newaxis]
        return {
            "tokens": tf.where(is_mask, answers["tokens"], ""),
            "token_ids": tf.where(is_mask, answers["token_ids"], -1),
            "scores": tf.where(is_mask, answers["scores"], 0.0),
        }

    # === Training ===

    @property
    def adaptation_learning_rate(self) -> float:
        """A peak learning rate for `albert_tf.tools.adapt`.

        It is ten times that of fine-tuning, 2e-3 for the bundled checkpoint.
        """
        return 10 * super().default_learning_rate

    def targets(self, x: Texts, y: None, packed=None) -> tf.RaggedTensor:
        """Return where words begin, from which the masks of a batch are drawn."""
        if y is not None:
            raise AlbertError(
                "A masked language model learns the texts themselves. Leave out `y`."
            )
        return self.preprocessor.word_starts(x)

    def training_batches(self, examples, options):
        """Return batches with other masks in each epoch, unless these are fixed.

        With a `BatchOrder`, the masks of a batch depend on its seed, the epoch and the
        number of the batch, so that a resumed training draws the same.
        """
        batches = super().training_batches(examples, options)
        return prefetched(self._with_masks(batches, _seeds_of(options)))

    def prepare_dataset(self, examples, fixed):
        dataset = examples.x
        x, y, _ = keras.utils.unpack_x_y_sample_weight(dataset.element_spec)
        is_packed = isinstance(x, dict) and "mask_positions" not in x and y is None
        if not examples.are_texts and not is_packed:
            return dataset
        if is_packed and self.preprocessor.segmenter is not None:
            raise AlbertError(
                "A segmenter needs the texts, not their ids. Give the texts as a list, "
                "or set `preprocessor.segmenter = None`."
            )
        return self._with_masks(dataset, _fixed_seed if fixed else None)

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

    def _with_masks(self, dataset, seed_of):
        """Return batches with masks.

        `seed_of` is a function of the number of a batch that returns the seed of its
        masks, or `None` for other masks each time.
        """
        # `map` traces a function twice that creates variables.
        _ = self.preprocessor.mask_generator

        def mask(number, batch):
            x, word_starts, weights = keras.utils.unpack_x_y_sample_weight(batch)
            seed = None if seed_of is None else seed_of(tf.cast(number, tf.int32))
            return self.preprocessor.masked(x, word_starts, weights, seed)

        # Not in parallel, so that the state of the generator repeats its masks.
        return dataset.enumerate().map(mask)


def _fixed_seed(number):
    """Return the seed of a batch that is masked alike in each epoch."""
    return tf.stack([0, number])


def _seeds_of(options):
    """Return the function from the number of a batch to the seed of its masks."""
    order = options.shuffle
    if options.fixed:
        return _fixed_seed
    if not isinstance(order, BatchOrder):
        return None
    return lambda number: tf.stack(
        [tf.cast(order.epoch_seed.read_value(), tf.int32), number + order.skip]
    )


def _target_ids(tokenizer, targets):
    """Return the ids of tokens, each once, in their order; of all for `None`."""
    if targets is None:
        return np.arange(tokenizer.vocabulary_size())
    targets = [targets] if isinstance(targets, str) else as_texts(targets, "targets")
    known = {token: i for i, token in enumerate(tokenizer.get_vocabulary())}
    ids, missing = [], []
    for token in targets:
        if token in known:
            ids.append(known[token])
        elif SPACE_PIECE + token in known:
            ids.append(known[SPACE_PIECE + token])
        else:
            missing.append(token)
    if missing or not targets:
        raise AlbertError(
            "`targets` should be tokens of the vocabulary, such as single Chinese "
            f"characters. Not in it: {missing}"
        )
    return np.array(list(dict.fromkeys(ids)))


def _filled(text, place, tokenizer, number, score):
    """Return the answer that puts a token in place of a mask."""
    start, end = place
    token = tokenizer.id_to_token(number).replace(SPACE_PIECE, " ").strip()
    return {
        "score": score,
        "token": number,
        "token_str": token,
        "sequence": text[:start] + token.removeprefix("##") + text[end:],
        "start": start,
        "end": end,
    }
