import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from albert_tf.backbone.head_layers import masked_lm_head
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.preprocessing.segment_packer import PackedTexts
from albert_tf.preprocessing.texts import as_string_tensor
from albert_tf.trainers.batching import PADDING_TARGET
from albert_tf.trainers.head_choice import check_masked_lm_head
from albert_tf.trainers.labels import check_count
from albert_tf.trainers.prediction import Outputs, predict_batches
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import as_texts
from albert_tf_lite.words import CHINESE

# A text has as many logits as tokens times the vocabulary.
TEXTS_AT_A_TIME = 64


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertSpellingCorrector(AlbertTask, keras_hub.models.Task):
    """ALBERT that corrects wrong characters, by its masked LM head at every token.

    `fit(texts, corrected)` takes pairs of strings of the same length, as in the data
    sets of SIGHAN. Only Chinese characters are corrected.

    Args:
        backbone: an `AlbertBackbone`.
        preprocessor: an `AlbertTextClassifierPreprocessor`, or `None` if the inputs
            are ids already.
        compile: bool. Compile with the defaults.

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
        check_masked_lm_head(checkpoint)
        return arguments, []

    def targets(self, x: list[str], y: list[str], packed=None) -> tf.RaggedTensor:
        """Return the ids of the right characters, ragged int32 [texts, (tokens)]."""
        x, y = as_texts(x), as_texts(check_count(x, y), "y")
        for pair in zip(x, y, strict=True):
            if len(pair[0]) != len(pair[1]):
                raise AlbertError(f"A text and its correction differ in length: {pair}")
        tokenizer = self.preprocessor.tokenizer
        labels = []
        pairs = zip(_tokens(tokenizer, x), _tokens(tokenizer, y), strict=True)
        for given, right in pairs:
            id_at = {place: token for token, place in right}
            labels.append([id_at.get(place, PADDING_TARGET) for _, place in given])
        special = {"cls_token_id": PADDING_TARGET, "sep_token_id": PADDING_TARGET}
        packer = dataclasses.replace(self.preprocessor.packer, **special)
        return packer.pack([tf.ragged.constant(labels, tf.int32, ragged_rank=1)])[0]

    def postprocess(self, outputs: Outputs) -> dict[str, Any]:
        """Return the likeliest `tokens` of each position, and their `token_ids`."""
        ids = tf.argmax(self._of_tokens(outputs), axis=-1, output_type=tf.int32)
        tokens = tf.constant(self.preprocessor.tokenizer.get_vocabulary())
        return {"tokens": tf.gather(tokens, ids), "token_ids": ids}

    def serve(self, texts: tuple[tf.Tensor, ...], call: Callable) -> dict[str, Any]:
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
            batch_size: optional int, by default more than 32 for short texts.

        Returns:
            A dict per text: `source`, `target`, and `errors`, a list of tuples of the
            wrong character, the right one and its position.
        """
        texts = as_texts(texts)
        packed = self.preprocessor.pack_texts(texts)
        answers: list[dict[str, Any]] = []
        for start in range(0, len(texts), TEXTS_AT_A_TIME):
            some = slice(start, start + TEXTS_AT_A_TIME)
            packed_some = PackedTexts(
                tokens=packed.tokens[some], first_lengths=packed.first_lengths[some]
            )
            batches = self.prediction_batches(packed_some, batch_size)
            logits = predict_batches(self, batches, verbose=0)
            ids = np.concatenate([self._of_tokens(row).argmax(-1) for row in logits])
            ids = packed_some.tokens.with_values(tf.constant(ids))
            sources = texts[some]
            targets = as_texts(self._corrected(as_string_tensor(sources), ids))
            answers += map(_answer, sources, targets)
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
        _, starts, ends = tokenizer.tokenize_with_offsets(texts)
        lengths = ids.row_lengths()
        starts = tf.RaggedTensor.from_tensor(starts.to_tensor(), lengths).values
        ends = tf.RaggedTensor.from_tensor(ends.to_tensor(), lengths).values
        characters = tf.strings.unicode_split(texts, "UTF-8", errors="ignore")
        places = tf.gather(characters.row_starts(), ids.value_rowids())
        places += tf.cast(starts, tf.int64)
        new = tf.gather(tf.constant(tokenizer.get_vocabulary()), ids.values)
        is_character = ends - starts == 1
        places = tf.boolean_mask(places, is_character)
        new = tf.boolean_mask(new, is_character)
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


def _answer(source, target):
    """Return a text, its correction, and the characters that differ."""
    pairs = enumerate(zip(source, target, strict=True))
    errors = [
        (wrong, right, place) for place, (wrong, right) in pairs if wrong != right
    ]
    return {"source": source, "target": target, "errors": errors}


def _tokens(tokenizer, texts):
    """Return the tokens of each text, tuples of the id and the place `(start, end)`."""
    ids, starts, ends = map(
        tf.RaggedTensor.to_list, tokenizer.tokenize_with_offsets(texts)
    )
    rows = []
    for columns in zip(ids, starts, ends, strict=True):
        tokens = zip(*columns, strict=True)
        rows.append([(token, (start, end)) for token, start, end in tokens])
    return rows
