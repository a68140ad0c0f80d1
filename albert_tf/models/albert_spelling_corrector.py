import dataclasses
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone.heads import masked_lm_head
from albert_tf.models.batching import PADDING_TARGET
from albert_tf.models.prediction import predict_batches
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.preprocessing.segment_packer import PackedTexts
from albert_tf.preprocessing.texts import as_string_tensor, check_count
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_texts
from albert_tf_lite.words import CHINESE


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertSpellingCorrector(AlbertTask, keras_hub.models.Task):
    """ALBERT that corrects wrong characters, by its masked LM head at every token.

    `fit(texts, corrected)` takes pairs of strings of the same length, as in the data
    sets of SIGHAN. Only Chinese characters are corrected.

    Args:
        backbone, preprocessor, compile: as for `AlbertTextClassifier`.

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
    pipeline_tag = "text2text-generation"
    summaries = ("replaces wrong characters", "纠正文本中的错别字")
    preprocessor_cls = AlbertTextClassifierPreprocessor
    monitor = "correction_f1"
    heads = ("masked_lm_head",)
    ignored_class = PADDING_TARGET

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

    def targets(self, x: list[str], y: list[str], packed=None) -> tf.RaggedTensor:
        """Return the ids of the right characters, ragged int32 [texts, (tokens)]."""
        x, y = as_texts(x), as_texts(check_count(x, y), "y")
        unlike = [(a, b) for a, b in zip(x, y, strict=True) if len(a) != len(b)]
        if unlike:
            raise AlbertError(
                f"A text and its correction differ in length: {unlike[0]}"
            )
        labels = []
        sides = map(self.preprocessor.tokenizer.tokenize_with_offsets, (x, y))
        rows = (zip(*(part.to_list() for part in side), strict=True) for side in sides)
        for (_, *places), (ids, *right) in zip(*rows, strict=True):
            # By start and end.
            known = dict(zip(zip(*right, strict=True), ids, strict=True))
            places = zip(*places, strict=True)
            labels.append([known.get(place, PADDING_TARGET) for place in places])
        special = {"cls_token_id": PADDING_TARGET, "sep_token_id": PADDING_TARGET}
        packer = dataclasses.replace(self.preprocessor.packer, **special)
        return packer.pack([tf.ragged.constant(labels, tf.int32, ragged_rank=1)])[0]

    def postprocess(self, outputs: Any) -> dict[str, Any]:
        """Return the likeliest `tokens` of each position, and their `token_ids`."""
        ids = tf.argmax(self._of_tokens(outputs), axis=-1, output_type=tf.int32)
        tokens = tf.constant(self.preprocessor.tokenizer.get_vocabulary())
        return {"tokens": tf.gather(tokens, ids), "token_ids": ids}

    def serve(self, texts: Any, call: Any) -> dict[str, Any]:
        """Return `corrected` [batch], the texts corrected as by `correct`."""
        packed, first_lengths = self.preprocessor.pack(texts)
        logits = call(self.preprocessor.packer.pad(packed, first_lengths))
        ids = tf.argmax(self._of_tokens(logits), -1)
        ids = tf.RaggedTensor.from_tensor(ids, packed.row_lengths())
        return {"corrected": self._corrected(texts[0], ids)}

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
        texts = as_texts(texts)
        answers: list[dict[str, Any]] = []
        packed = self.preprocessor.pack_texts(texts)
        # A text has as many logits as tokens times the vocabulary: 64 at a time.
        for start in range(0, len(texts), 64):
            rows = slice(start, start + 64)
            part, tokens = texts[rows], packed.tokens[rows]
            own = PackedTexts(tokens=tokens, first_lengths=packed.first_lengths[rows])
            batches = self.prediction_batches(own, batch_size)
            logits = predict_batches(self, batches, verbose=0)
            ids = np.concatenate([self._of_tokens(row).argmax(-1) for row in logits])
            ids = tokens.with_values(tf.constant(ids))
            targets = as_texts(self._corrected(as_string_tensor(part), ids))
            for source, target in zip(part, targets, strict=True):
                pairs = enumerate(zip(source, target, strict=True))
                errors = [(a, b, i) for i, (a, b) in pairs if a != b]
                answers.append({"source": source, "target": target, "errors": errors})
        return answers

    def answers(self, x, batch_size=None):
        """Return `source`, `target` and `errors` of each text; see `correct`."""
        return self.correct(x, batch_size)

    def _of_tokens(self, logits):
        """Return logits without those of rows that are no tokens."""
        return logits[..., : self.preprocessor.tokenizer.vocabulary_size()]

    def _corrected(self, texts, ids):
        """Return strings with Chinese characters replaced by the packed tokens."""
        tokenizer = self.preprocessor.tokenizer
        # Without [CLS] and [SEP]. Text beyond `sequence_length` stays as it is.
        ids = ids[:, 1:-1]
        _, *offsets = tokenizer.tokenize_with_offsets(texts)
        starts, ends = (
            tf.RaggedTensor.from_tensor(x.to_tensor(), ids.row_lengths()).values
            for x in offsets
        )
        characters = tf.strings.unicode_split(texts, "UTF-8", errors="ignore")
        places = tf.gather(characters.row_starts(), ids.value_rowids())
        places += tf.cast(starts, tf.int64)
        new = tf.gather(tf.constant(tokenizer.get_vocabulary()), ids.values)
        is_character = ends - starts == 1
        places, new = (tf.boolean_mask(x, is_character) for x in (places, new))
        old = tf.gather(characters.values, places)
        both_chinese = tf.strings.regex_full_match(
            tf.strings.join([old, new]), CHINESE.pattern * 2
        )
        values = tf.tensor_scatter_nd_update(
            characters.values,
            tf.boolean_mask(places, both_chinese)[:, tf.newaxis],
            tf.boolean_mask(new, both_chinese),
        )
        return tf.strings.reduce_join(characters.with_values(values), axis=1)
