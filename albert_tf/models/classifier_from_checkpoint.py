import warnings

import keras

from albert_tf.checkpoints import open_checkpoint
from albert_tf.tokenizers.load_tokenizer import load_tokenizer


class ClassifierFromCheckpoint:
    """How a classifier is built from a checkpoint, or on a backbone."""

    @classmethod
    def from_checkpoint(
        cls,
        path,
        num_classes=None,
        config=None,
        vocabulary=None,
        sequence_length=None,
        lowercase=None,
        dtype=None,
        **kwargs,
    ):
        """Build a classifier on the encoder of a checkpoint.

        The head comes from the checkpoint if that has one of as many classes;
        otherwise it is new, with random weights.

        Args:
            path: what `albert_tf.load_checkpoint` takes, or a checkpoint opened by
                `albert_tf.checkpoints.open_checkpoint`.
            num_classes: int. By default as many as the checkpoint's head has.
            config: optional path or dict. By default the config beside the
                checkpoint.
            vocabulary: optional path of a `vocab.txt` or a SentencePiece model, or
                list of tokens. By default the one beside the checkpoint.
            sequence_length: optional int. Most tokens of an example; by default
                as many as the model has positions for.
            lowercase: optional bool. Lower-case the text. By default as the
                checkpoint says, else `True`, as for all releases.
            dtype: optional string or `keras.DTypePolicy` to compute in.
            **kwargs: passed on to `AlbertTextClassifier`.

        Returns:
            An `AlbertTextClassifier`.

        Raises:
            FileNotFoundError: if a file is missing.
            albert_tf.checkpoints.CheckpointError: as `albert_tf.load_checkpoint`.
            ValueError: if the vocabulary has not the checkpoint's size, or
                `num_classes` is not given and the checkpoint has no head.
        """
        checkpoint = open_checkpoint(path, config=config)
        tokenizer = checkpoint.tokenizer(lowercase, vocabulary)
        if tokenizer is None:
            raise FileNotFoundError(
                f"There is no vocabulary beside {checkpoint.path} (vocab*.txt or "
                "*.model). Put it there or give it with `vocabulary=`."
            )
        return cls.from_opened(
            checkpoint, tokenizer, num_classes, sequence_length, dtype, **kwargs
        )

    @classmethod
    def from_opened(
        cls,
        checkpoint,
        tokenizer=None,
        num_classes=None,
        sequence_length=None,
        dtype=None,
        **kwargs,
    ):
        """`from_checkpoint` of an open checkpoint, with or without tokenizer."""
        found = checkpoint.num_classes("classifier")
        if not (num_classes or found):
            raise ValueError(
                f"{checkpoint.path} has no classification head. Give `num_classes=` "
                "to begin with a new one."
            )
        has_head = num_classes in (None, found)
        if has_head:
            kwargs = {**checkpoint.head_config("classifier"), **kwargs}
        elif found:
            warnings.warn(
                f"The head of {checkpoint.path} tells {found} classes apart, not "
                f"{num_classes}: the classifier begins with a new one.",
                stacklevel=3,
            )
        backbone = checkpoint.build_backbone(dtype=dtype)
        model = cls.from_backbone(
            backbone,
            tokenizer,
            num_classes or found,
            sequence_length=sequence_length,
            **kwargs,
        )
        checkpoint.load_into(model if has_head else backbone)
        return model

    @classmethod
    def from_backbone(
        cls,
        backbone,
        vocabulary,
        num_classes,
        sequence_length=None,
        lowercase=True,
        **kwargs,
    ):
        """Build a classifier on a backbone and a vocabulary.

        Args:
            backbone: an `AlbertBackbone`.
            vocabulary: path of a `vocab.txt` or of a SentencePiece model, list of
                tokens, or tokenizer; `None` for a model that takes ids.
            num_classes: int.
            sequence_length: optional int. Most tokens of an example; by default
                as many as the model has positions for.
            lowercase: bool. Lower-case the text. A tokenizer has its own.
            **kwargs: passed on to `AlbertTextClassifier`.

        Returns:
            An `AlbertTextClassifier`.
        """
        if vocabulary is not None:
            if not isinstance(vocabulary, keras.layers.Layer):
                vocabulary = load_tokenizer(vocabulary, lowercase=lowercase)
            kwargs["preprocessor"] = cls.preprocessor_cls(
                vocabulary,
                sequence_length=sequence_length or backbone.max_sequence_length,
            )
        return cls(backbone, num_classes, **kwargs)
