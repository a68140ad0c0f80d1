import keras
import keras_hub
import tensorflow as tf

from albert_tf.models.albert_backbone import AlbertBackbone
from albert_tf.preprocessing.segment_packer import SegmentPacker
from albert_tf.preprocessing.texts import as_segments
from albert_tf.preprocessing.word_piece_tokenizer import WordPieceTokenizer


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTextClassifierPreprocessor(keras_hub.models.Preprocessor):
    """Strings or pairs of strings in, what `AlbertBackbone` takes out.

    Args:
        tokenizer: a `WordPieceTokenizer`.
        sequence_length: int. Most tokens of an example, the special ones
            included. Longer texts are cut.
        padding: `"longest"` (of the batch) or `"max_length"`.
        pad_to_multiple_of: int. See `SegmentPacker`.

    Call arguments:
        x: a string, a list or tensor of strings [batch], or for pairs the tuple
            of two such lists. Or a dict with the keys `token_ids`,
            `segment_ids`, `padding_mask`, which passes unchanged.
        y: optional labels, passed on.
        sample_weight: optional weights, passed on.

    Returns:
        A dict of int32 tensors [batch, time], or [time] for a single string;
        with `y` or `sample_weight` the tuple of all.

    Example:
    ```python
    preprocessor = AlbertTextClassifierPreprocessor(WordPieceTokenizer("vocab.txt"))
    preprocessor(["很好", "太差了"])
    preprocessor((["你好吗", "几点了"], ["你还好吗", "什么时间"]))
    ```
    """

    backbone_cls = AlbertBackbone
    tokenizer_cls = WordPieceTokenizer

    def __init__(
        self,
        tokenizer,
        sequence_length=512,
        padding="longest",
        pad_to_multiple_of=8,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length
        self.padding = padding
        self.pad_to_multiple_of = pad_to_multiple_of

    @property
    def packer(self):
        """The `SegmentPacker`; made when asked for, as a tokenizer restored
        from a preset gets its vocabulary later."""
        return SegmentPacker(
            self.tokenizer.cls_token_id,
            self.tokenizer.sep_token_id,
            self.tokenizer.pad_token_id,
            sequence_length=self.sequence_length,
            padding=self.padding,
            pad_to_multiple_of=self.pad_to_multiple_of,
        )

    def __call__(self, x, y=None, sample_weight=None):
        # By keyword: KerasHub would take a lone tuple for (x, y), not a pair.
        return super().__call__(x, y=y, sample_weight=sample_weight)

    def call(self, x, y=None, sample_weight=None):
        if not isinstance(x, dict):
            segments = as_segments(x)
            single = segments[0].shape.rank == 0
            if single:
                segments = [segment[tf.newaxis] for segment in segments]
            x = self.packer([self.tokenizer(segment) for segment in segments])
            if single:
                x = {name: value[0] for name, value in x.items()}
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def tokenize_and_pack(self, x, chunk=4096):
        """Tokenize all texts once, without padding.

        Args:
            x: strings, or the tuple of two lists of strings.
            chunk: int. Texts tokenized at a time, for bounded memory.

        Returns:
            What `SegmentPacker.pack` gives, and how many examples were cut to
            `sequence_length`, an int.
        """
        packer = self.packer
        segments = as_segments(x)

        def pack(*texts):
            parts = [self.tokenizer(text) for text in texts]
            tokens, first_lengths = packer.pack(parts)
            # A second text without tokens gets no [SEP].
            length = parts[0].row_lengths() + 2
            for part in parts[1:]:
                length += part.row_lengths() + tf.minimum(part.row_lengths(), 1)
            cut = tf.reduce_sum(tf.cast(length > self.sequence_length, tf.int32))
            return tokens, first_lengths, cut

        chunks = tf.data.Dataset.from_tensor_slices(tuple(segments)).batch(chunk)
        packed = list(chunks.map(pack, num_parallel_calls=tf.data.AUTOTUNE))
        tokens, first_lengths, cut = zip(*packed, strict=True)
        return (
            tf.concat(tokens, axis=0),
            tf.concat(first_lengths, axis=0),
            sum(int(count) for count in cut),
        )

    def get_config(self):
        config = super().get_config()
        config.update(
            sequence_length=self.sequence_length,
            padding=self.padding,
            pad_to_multiple_of=self.pad_to_multiple_of,
        )
        return config
