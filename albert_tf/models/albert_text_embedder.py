import warnings
from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf
from keras import ops

from albert_tf.backbone import AlbertBackbone
from albert_tf.checkpoints.sentence_transformers import read_length, read_pooling
from albert_tf.layers.tensor_types import Tensor
from albert_tf.models.pooling import pool_states
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.preprocessing.segment_packer import PackedTexts
from albert_tf.preprocessing.texts import as_segments
from albert_tf.trainers.batching import text_batches
from albert_tf.trainers.examples import Column, Inputs, count_examples
from albert_tf.trainers.prediction import Outputs
from albert_tf.training import PairLoss
from albert_tf.training.losses import first_equal_rows
from albert_tf_lite.answers import all_cosines, cosines, score_dicts
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.inputs import (
    as_list,
    as_texts,
    check_integer,
    is_missing,
    single_values,
)


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertTextEmbedder(AlbertTask, keras_hub.models.TextEmbedder):
    """ALBERT that maps texts to vectors, near each other for similar meanings.

    The vectors of a pretrained checkpoint are a poor measure of meaning: train it on
    pairs of texts. `fit((first, second), scores)` ranks pairs by their scores (CoSENT);
    `fit((first, second))` takes pairs that belong together; texts of other pairs of
    the batch do not, unless they are equal. See `albert_tf.training.PairLoss`.

    In a folder of sentence-transformers, `from_checkpoint` also reads the pooling mode
    and the maximum number of tokens.

    Args:
        backbone: an `AlbertBackbone`.
        preprocessor: an `AlbertTextClassifierPreprocessor`, or `None` if the inputs
            are ids already.
        pooling_mode: `"mean"` or `"max"` of the tokens' last hidden states, `"cls"` for
            that of `[CLS]`, or `"first_last_mean"` of the first layer and the last.
        normalize: bool. Scale vectors to length 1.
        compile: bool. Compile with the defaults.

    Returns:
        A float tensor [batch, hidden_dim].

    Raises:
        AlbertError: if `pooling_mode` is unknown.

    Example:
    ```python
    embedder = albert_tf.models.AlbertTextEmbedder.from_checkpoint("albert_tiny_zh")
    embedder.fit((first, second), scores)
    embedder.encode_text(["很好", "不错"])  # A float32 array [2, 312].
    embedder.search("怎么退货", corpus, top_k=3)
    ```

    Reference:
        [Sentence-BERT](https://arxiv.org/abs/1908.10084); KerasHub's
        `BertTextEmbedder`, whose names and defaults these are.
    """

    name_of_task = "text-embedding"
    pipeline_tag = "feature-extraction"
    summaries = ("maps texts to vectors by meaning", "把文本映射为语义向量")
    fields = ("text", "text_pair")
    optional_fields = ("text_pair",)
    preprocessor_cls = AlbertTextClassifierPreprocessor
    monitor = "spearman"
    exported_output = "embedding"
    outputs_are = "vectors"
    targets_are = None
    # Single texts, although `fit` takes pairs.
    text_inputs = ("text",)

    def __init__(
        self,
        backbone: AlbertBackbone,
        preprocessor: AlbertTextClassifierPreprocessor | None = None,
        pooling_mode: str = "mean",
        normalize: bool = True,
        **kwargs: Any,
    ):
        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor

        # === Config ===
        self.pooling_mode = pooling_mode
        self.normalize = normalize

        # === Functional Model ===
        states = backbone.with_intermediates().output["hidden_states"]
        mask = backbone.input["padding_mask"]
        outputs = pool_states(backbone, pooling_mode, states, mask)
        if normalize:
            outputs = keras.ops.normalize(outputs, axis=-1, order=2)
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    @classmethod
    def from_opened(cls, checkpoint, tokenizer=None, *, sequence_length=None, **kwargs):
        if sequence_length is None:
            stored_length = read_length(checkpoint.folders)
            if stored_length:
                positions = checkpoint.arguments["max_sequence_length"]
                sequence_length = min(stored_length, positions)
        if "pooling_mode" not in kwargs:
            stored_mode = read_pooling(checkpoint.folders)
            if stored_mode:
                kwargs["pooling_mode"] = stored_mode
        return super().from_opened(
            checkpoint, tokenizer, sequence_length=sequence_length, **kwargs
        )

    def default_loss(self):
        return PairLoss()

    # === Vectors (`encode_text` is KerasHub's) ===

    def similarity(
        self, query_embeddings: Tensor, document_embeddings: Tensor
    ) -> np.ndarray:
        """Return the cosines [queries, documents] of two sets of vectors.

        They are float32, from -1 to 1, and 0 for vectors of zeros.
        """
        first = np.atleast_2d(query_embeddings)
        second = np.atleast_2d(document_embeddings)
        are_vectors = _are_vectors(first) and _are_vectors(second)
        if not are_vectors or first.shape[1] != second.shape[1]:
            raise AlbertError(
                "Expected vectors of `encode_text`, of equal length. Received arrays "
                f"{first.dtype} {list(first.shape)} and {second.dtype} "
                f"{list(second.shape)}."
            )
        return all_cosines(first, second)

    def search(
        self,
        query: str | Sequence[str],
        corpus: Sequence[str] | np.ndarray,
        top_k: int = 5,
    ) -> list:
        """Return the texts that are nearest to a query.

        Args:
            query: a string, or list of strings.
            corpus: list of strings, or its vectors by `encode_text`, to compute them
                only once.
            top_k: int.

        Returns:
            A list of dicts, the nearest first: `index` in the corpus, `score`, the
            cosine, and `text`, if the corpus is texts. For a list of queries a list of
            such lists.

        Raises:
            AlbertError: if `corpus` is empty.
        """
        top_k = check_integer("top_k", top_k)
        is_text = np.ndim(corpus) != 2 or hasattr(corpus, "columns")
        texts = as_texts(corpus, "corpus") if is_text else []
        if not len(texts if is_text else corpus):
            raise AlbertError("`corpus` is empty. Expected at least one text.")
        vectors: Any = self.encode_text(texts, verbose=0) if is_text else corpus
        scores = self.similarity(self.encode_text(query, verbose=0), vectors)
        nearest = np.argsort(-scores, axis=1, kind="stable")[:, :top_k].tolist()
        answers = []
        for row, indices in zip(scores, nearest, strict=True):
            matches: list[dict] = [
                {"index": i, "score": float(row[i])} for i in indices
            ]
            if is_text:
                for match, i in zip(matches, indices, strict=True):
                    match["text"] = texts[i]
            answers.append(matches)
        return answers[0] if isinstance(query, str) else answers

    def postprocess(self, outputs: Outputs) -> dict[str, Any]:
        """Return `embedding`, the vectors, float32 [batch, hidden_dim]."""
        return {"embedding": outputs}

    def answers(self, x, batch_size=None):
        """Return the `embedding` of each text; for pairs `score`, the cosine."""
        examples = self.read_examples(x)
        if not examples.is_pair:
            vectors = self.predict(examples, batch_size, verbose=0)
            return [{"embedding": vector} for vector in vectors.tolist()]
        first, second = examples.parts
        vectors = self.predict([*first, *second], batch_size, verbose=0)
        return score_dicts(cosines(*np.split(vectors, 2)))

    # === Training ===

    def targets(self, x: Inputs, y: Column | None, packed=None) -> np.ndarray:
        """Return the scores of pairs; NaN for pairs without."""
        count = count_examples(x)
        if y is None:
            scores = np.full(count, np.nan)
        else:
            values = single_values(as_list(y, "y"))
            scores = np.asarray([np.nan if is_missing(v) else v for v in values])
        if scores.shape != (count,) or not count or scores.dtype.kind not in "iufb":
            raise AlbertError(
                "`y` must be a number for each pair, at least one pair. Received "
                f"{count} pairs, and `y` of shape {scores.shape} and type "
                f"{scores.dtype}."
            )
        if 0 < (unscored := int(np.isnan(scores).sum())) < count:
            warnings.warn(
                f"{unscored} of {count} pairs have no score. They are learned as pairs "
                "that belong together. Leave them out if their score is missing.",
                stacklevel=4,
            )
        return scores.astype("float32")

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        if isinstance(self.loss, PairLoss) and isinstance(x, dict):
            # Texts with the same tokens are equal, also if they were truncated.
            numbers = ops.cast(first_equal_rows(x["token_ids"]), "float32")
            scores = ops.cast(ops.reshape(y, (-1,)), "float32")
            y = ops.stack([scores, numbers], axis=1)
        return super().compute_loss(x, y, y_pred, sample_weight, training)

    def training_batches(self, examples, options):
        """Return batches in which the texts of a pair are neighbours."""
        if not examples.is_pair:
            raise AlbertError(
                "An embedder learns from pairs of texts: fit((first, second), scores), "
                "or fit((first, second)) for pairs that belong together. Received "
                f"`x` of type {type(examples.x).__name__}."
            )
        if examples.sample_weight is not None:
            raise AlbertError("Pairs have no `sample_weight`: their loss is a ranking.")
        scores = self.targets(examples.x, examples.y)
        if not options.fixed:
            _check_that_pairs_differ(examples, scores)
        texts, _ = _interleaved(as_segments(examples.x))
        packed = self.preprocessor.pack_texts(texts)
        pairs = PackedTexts(
            tokens=tf.RaggedTensor.from_row_splits(
                packed.tokens, tf.range(0, len(packed) + 1, 2, tf.int64)
            ),
            first_lengths=tf.reshape(packed.first_lengths, [-1, 2]),
        )

        def pad(tokens, first_lengths, scores):
            lengths = tf.reshape(first_lengths, [-1])
            features = self.preprocessor.packer.pad(tokens.values, lengths)
            return features, tf.repeat(scores, 2)

        # The loss compares the pairs of a batch, which should be of one size.
        sizes = options.with_batch_size().sizes
        return text_batches(self.preprocessor, pairs, scores, pad=pad, **sizes).dataset

    def preprocess_samples(self, x, y=None, sample_weight=None):
        # Pairs of a dataset.
        if isinstance(x, tuple):
            x, y = _interleaved(x, y)
        return super().preprocess_samples(x, y, sample_weight)

    def examples_to_predict(self, x):
        examples = super().examples_to_predict(x)
        if examples.is_pair:
            raise AlbertError(
                "An embedder takes texts one by one, not in pairs: `encode_text` them "
                "all, then compare by `similarity`."
            )
        return examples


def _are_vectors(array):
    """Return whether an array is rows of numbers."""
    is_number = array.dtype.kind in "fiu" or array.dtype.name == "bfloat16"
    return is_number and array.ndim == 2


def _check_that_pairs_differ(examples, scores):
    """Raise if pairs are so alike that nothing can be learned from them."""
    if (scores == scores[0]).all():
        raise AlbertError(
            f"All pairs have the score {scores[0]:g}, from which no order can be "
            "learned. For pairs that belong together call fit((first, second)) "
            "without scores."
        )
    if examples.y is not None:
        return
    for name, texts in zip(("first", "second"), examples.x, strict=True):
        if len(texts) > 1 and len(set(texts)) == 1:
            raise AlbertError(
                f"All {len(texts)} pairs have the same {name} text, {texts[0]!r:.80}. "
                "A text learns from other pairs with other texts. Add pairs, or pass "
                "scores."
            )


def _interleaved(x, y=None):
    """Return pairs as one batch, first, second, first, ..., and the score of each."""
    texts = tf.reshape(tf.stack(x, axis=1), [-1])
    if y is None:
        y = tf.fill([tf.shape(x[0])[0]], float("nan"))
    return texts, tf.repeat(tf.cast(y, tf.float32), 2)
