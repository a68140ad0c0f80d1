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
from albert_tf.models.batching import size_or_default, text_batches
from albert_tf.models.pooling import pool_states
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.preprocessing.segment_packer import PackedTexts
from albert_tf.preprocessing.texts import as_segments, count_examples, is_pair
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
        backbone, preprocessor, compile: as for `AlbertTextClassifier`.
        pooling_mode: `"mean"` or `"max"` of the tokens' last hidden states, `"cls"` for
            that of `[CLS]`, or `"first_last_mean"` of the first layer and the last.
        normalize: bool. Scale vectors to length 1.

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
        folders, longest = checkpoint.folders, checkpoint.arguments
        if length := sequence_length is None and read_length(folders):
            sequence_length = min(length, longest["max_sequence_length"])
        if "pooling_mode" not in kwargs and (mode := read_pooling(folders)):
            kwargs["pooling_mode"] = mode
        options = {"sequence_length": sequence_length, **kwargs}
        return super().from_opened(checkpoint, tokenizer, **options)

    def default_loss(self):
        return PairLoss()

    # === Vectors (`encode_text` is KerasHub's) ===

    def similarity(self, query_embeddings: Any, document_embeddings: Any) -> np.ndarray:
        """Return the cosines [queries, documents] of two sets of vectors.

        They are float32, from -1 to 1, and 0 for vectors of zeros.
        """
        first, second = map(np.atleast_2d, (query_embeddings, document_embeddings))
        are_numbers = all(
            x.dtype.kind in "fiu" or x.dtype.name == "bfloat16" for x in (first, second)
        )
        are_rows = first.ndim == second.ndim == 2
        if not (are_numbers and are_rows and first.shape[1] == second.shape[1]):
            found = [f"{x.dtype} {list(x.shape)}" for x in (first, second)]
            raise AlbertError(
                "Expected vectors of `encode_text`, of equal length. Received arrays "
                f"{' and '.join(found)}."
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
        found = [
            [
                {"index": i, "score": float(row[i])}
                | ({"text": texts[i]} if is_text else {})
                for i in indices
            ]
            for row, indices in zip(scores, nearest, strict=True)
        ]
        return found[0] if isinstance(query, str) else found

    def postprocess(self, outputs: Any) -> dict[str, Any]:
        """Return `embedding`, the vectors, float32 [batch, hidden_dim]."""
        return {"embedding": outputs}

    def answers(self, x, batch_size=None):
        """Return the `embedding` of each text; for pairs `score`, the cosine."""
        if isinstance(x, tuple):
            first, second = map(list, x)
            vectors = self.predict([*first, *second], batch_size, verbose=0)
            return score_dicts(cosines(*np.split(vectors, 2)))
        vectors = self.predict(x, batch_size, verbose=0)
        return [{"embedding": vector} for vector in vectors.tolist()]

    # === Training ===

    def targets(self, x: Any, y: Any, packed=None) -> np.ndarray:
        """Return the scores of pairs; NaN for pairs without."""
        count = count_examples(x)
        rows = [None] * count if y is None else single_values(as_list(y, "y"))
        y = np.asarray([np.nan if is_missing(value) else value for value in rows])
        if y.shape != (count,) or not count or y.dtype.kind not in "iufb":
            raise AlbertError(
                "`y` must be a number for each pair, at least one pair. Received "
                f"{count} pairs, and `y` of shape {y.shape} and type {y.dtype}."
            )
        if 0 < (unscored := int(np.isnan(y).sum())) < count:
            warnings.warn(
                f"{unscored} of {count} pairs have no score. They are learned as pairs "
                "that belong together. Leave them out if their score is missing.",
                stacklevel=4,
            )
        return y.astype("float32")

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        if isinstance(self.loss, PairLoss) and isinstance(x, dict):
            # Texts with the same tokens are equal, also if they were truncated.
            numbers = ops.cast(first_equal_rows(x["token_ids"]), "float32")
            scores = ops.cast(ops.reshape(y, (-1,)), "float32")
            y = ops.stack([scores, numbers], axis=1)
        return super().compute_loss(x, y, y_pred, sample_weight, training)

    def training_batches(
        self, x, y, sample_weight=None, *, fixed=False, **options: Any
    ) -> tf.data.Dataset:
        """Return batches in which the texts of a pair are neighbours."""
        if not isinstance(x, tuple):
            raise AlbertError(
                "An embedder learns from pairs of texts: fit((first, second), scores), "
                "or fit((first, second)) for pairs that belong together. Received "
                f"`x` of type {type(x).__name__}."
            )
        if sample_weight is not None:
            raise AlbertError("Pairs have no `sample_weight`: their loss is a ranking.")
        scores = self.targets(x, y)
        if not fixed and (scores == scores[0]).all():
            raise AlbertError(
                f"All pairs have the score {scores[0]:g}, from which no order can be "
                "learned. For pairs that belong together call fit((first, second)) "
                "without scores."
            )
        if not fixed and y is None:
            _check_that_texts_differ(x)
        packed = self.preprocessor.pack_texts(_interleaved(as_segments(x))[0])
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

        if options.get("max_tokens") is None:
            options["batch_size"] = size_or_default(options.get("batch_size"))
        batches = text_batches(self.preprocessor, pairs, scores, pad=pad, **options)
        return batches.dataset

    def preprocess_samples(self, x, y=None, sample_weight=None):
        # Pairs of a dataset.
        if isinstance(x, tuple):
            x, y = _interleaved(x, y)
        return super().preprocess_samples(x, y, sample_weight)

    def read_texts(self, x):
        if is_pair(x):
            raise AlbertError(
                "An embedder takes texts one by one, not in pairs: `encode_text` them "
                "all, then compare by `similarity`."
            )
        return x


def _check_that_texts_differ(x):
    """Raise if all pairs have the same first or the same second text."""
    for name, texts in zip(("first", "second"), x, strict=True):
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
