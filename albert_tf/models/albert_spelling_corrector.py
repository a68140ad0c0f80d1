from __future__ import annotations

import dataclasses
from typing import Any

import keras
import keras_hub
import tensorflow as tf

from albert_tf.models.albert_pretrainer import masked_lm_head
from albert_tf.models.batching import PADDING_TARGET
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.preprocessing.words import CHINESE
from albert_tf_lite.errors import AlbertError


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertSpellingCorrector(AlbertTask, keras_hub.models.Task):
    """ALBERT that corrects wrong characters, by its masked LM head at every token.

    `fit(texts, corrected)` takes pairs of strings of the same length, as in the data
    sets of SIGHAN. Only Chinese characters are corrected.

    Args:
        backbone: an `AlbertBackbone`.
        preprocessor: an `AlbertTextClassifierPreprocessor`, or `None` for ids.

    Returns:
        Logits [batch, time, vocabulary_size].

    Example:
    ```python
    corrector = AlbertSpellingCorrector.from_checkpoint("albert_tiny_zh")
    corrector.fit(["我再家等你"], ["我在家等你"])
    corrector.correct(["他再学校"])[0]["errors"]  # [("再", "在", 1)]
    ```
    """

    name_of_task = "spelling-correction"
    preprocessor_cls = AlbertTextClassifierPreprocessor
    monitor = "correction_f1"
    heads = ("masked_lm_head",)

    def __init__(self, backbone, preprocessor=None, **kwargs: Any):
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.masked_lm_head = masked_lm_head(backbone)
        ones = keras.ops.ones_like(backbone.input["token_ids"])
        positions = keras.ops.cumsum(ones, axis=1) - 1
        hidden = backbone(backbone.input)["sequence_output"]
        outputs = self.masked_lm_head(hidden, positions)
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    @classmethod
    def read_heads(cls, checkpoint, arguments):
        # Without the pretrained head there is nothing to fine-tune.
        return arguments, []

    def default_loss(self):
        return keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=PADDING_TARGET
        )

    def targets(self, x: list[str], y: list[str], packed=None) -> tf.RaggedTensor:
        """Return the ids of the right characters, ragged int32 [texts, (tokens)]."""
        if y is None or len(x) != len(y) or len(x) == 0:
            raise AlbertError(
                "`y` should be the corrected text of each text of `x`. Received: "
                f"{len(x)} texts and {'none' if y is None else len(y)}."
            )
        unlike = [(a, b) for a, b in zip(x, y, strict=True) if len(a) != len(b)]
        if unlike:
            raise AlbertError(
                f"A text and its correction differ in length: {unlike[0]}"
            )
        labels = []
        for found, right in zip(self._tokens(x), self._tokens(y), strict=True):
            ids = {tuple(place): token for token, *place in right}
            labels.append(
                [ids.get(tuple(place), PADDING_TARGET) for _, *place in found]
            )
        special = {"cls_token_id": PADDING_TARGET, "sep_token_id": PADDING_TARGET}
        packer = dataclasses.replace(self.preprocessor.packer, **special)
        return packer.pack([tf.ragged.constant(labels, tf.int32, ragged_rank=1)])[0]

    def answers(self, outputs: Any) -> dict[str, Any]:
        """Return the likeliest `tokens` of each position, and their `token_ids`."""
        ids = tf.argmax(outputs, axis=-1, output_type=tf.int32)
        tokens = tf.constant(self.preprocessor.tokenizer.get_vocabulary())
        return {"tokens": tf.gather(tokens, ids), "token_ids": ids}

    def text_answers(self, texts: Any, call: Any) -> dict[str, Any]:
        """Return `corrected` [batch], the texts corrected as by `correct`."""
        (text,) = texts
        ids, starts, ends = self.preprocessor.tokenizer.tokenize_with_offsets(text)
        packer = self.preprocessor.packer
        packed, first_lengths = packer.pack([ids])
        answers = self.answers(call(packer.pad(packed, first_lengths)))
        # Without [CLS]. Text beyond `sequence_length` stays as it is.
        read = packed.row_lengths() - 2
        right = tf.RaggedTensor.from_tensor(answers["tokens"][:, 1:], read)
        starts, ends = (
            tf.RaggedTensor.from_tensor(tf.cast(x.to_tensor(), tf.int64), read)
            for x in (starts, ends)
        )
        characters = tf.strings.unicode_split(text, "UTF-8", errors="ignore")
        rows = tf.gather(characters.row_starts(), starts.value_rowids())
        is_character = ends.values - starts.values == 1
        places = tf.boolean_mask(rows + starts.values, is_character)
        new = tf.boolean_mask(right.values, is_character)
        old = tf.gather(characters.values, places)
        is_wrong = tf.strings.regex_full_match(old, CHINESE.pattern)
        is_wrong &= tf.strings.regex_full_match(new, CHINESE.pattern)
        values = tf.tensor_scatter_nd_update(
            characters.values,
            tf.boolean_mask(places, is_wrong)[:, tf.newaxis],
            tf.boolean_mask(new, is_wrong),
        )
        corrected = tf.strings.reduce_join(characters.with_values(values), axis=1)
        return {"corrected": corrected}

    def correct(
        self, texts: list[str], batch_size: int | None = None
    ) -> list[dict[str, Any]]:
        """Correct the wrong characters of texts.

        Args:
            texts: list of strings.
            batch_size: as for `predict`.

        Returns:
            A dict per text: `source`, `target`, and `errors`, a list of tuples of the
            wrong character, the right one and its position.
        """
        answers: list[dict[str, Any]] = []
        # A text has as many logits as tokens times the vocabulary: 64 at a time.
        for start in range(0, len(texts), 64):
            part = texts[start : start + 64]
            logits = self.predict(part, batch_size=batch_size, verbose=0)
            answers += map(self._corrected, part, self._tokens(part), logits)
        return answers

    def predict_dicts(self, x, batch_size=None):
        """Return `source`, `target` and `errors` of each text; see `correct`."""
        return self.correct(x, batch_size)

    def _corrected(self, text, tokens, logits):
        target, errors = list(text), []
        # Without [CLS]. Text beyond `sequence_length` stays as it is.
        best = logits[1:-1].argmax(-1)
        for (_, start, end), token in zip(tokens, best, strict=False):
            right = self.preprocessor.tokenizer.id_to_token(token)
            wrong = text[start:end]
            if wrong != right and all(map(CHINESE.fullmatch, (wrong, right))):
                target[start] = right
                errors.append((wrong, right, start))
        return {"source": text, "target": "".join(target), "errors": errors}

    def _tokens(self, texts):
        """Return triples of id, start and end, a list for each text."""
        found = self.preprocessor.tokenizer.tokenize_with_offsets(texts)
        return list(map(list, map(zip, *(x.to_list() for x in found))))
