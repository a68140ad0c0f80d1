"""Models that are trained from a checkpoint or from random weights."""

import inspect
import pathlib
from typing import Any

from albert_tf.files import read_json
from albert_tf_lite.errors import AlbertError, first_line


def choose_model_class(task, early_exit, class_weight, options):
    """Return the class of the model; raise if it does not take an option."""
    from albert_tf.models import TASKS
    from albert_tf.tools import AlbertEarlyExitClassifier

    model_class = AlbertEarlyExitClassifier if early_exit else TASKS[task]
    arguments = inspect.signature(TASKS[task]).parameters
    unknown = [name.replace("_", "-") for name in options if name not in arguments]
    if model_class.name_of_task != task:
        unknown.append("early-exit")
    if class_weight and not model_class.takes_class_weight:
        unknown.append("class-weight")
    if unknown:
        raise AlbertError(f"--{unknown[0]} does not apply to --task {task}.")
    return model_class


def new_model(model_class, checkpoint, config, vocab, sequence_length, arguments):
    """Build a model from a checkpoint or with random weights."""
    from albert_tf.checkpoints import open_checkpoint
    from albert_tf.tokenizers import load_tokenizer

    if checkpoint:
        start = open_checkpoint(checkpoint, config=config)
        longest = start.arguments["max_sequence_length"]
        build, vocabulary = model_class.from_checkpoint, vocab
    else:
        vocabulary = load_tokenizer(vocab)
        start = random_backbone(config, vocabulary.vocabulary_size())
        longest = start.max_sequence_length
        build = model_class.from_backbone
    length = min(sequence_length, longest)
    return build(start, vocabulary=vocabulary, sequence_length=length, **arguments)


def random_backbone(config: str, vocabulary_size: int | None = None) -> Any:
    """Build a backbone of a named size or of a config file, with random weights."""
    import zh
    from albert_tf.backbone import SIZES, AlbertBackbone

    sizes = {**SIZES, **zh.SIZES}
    if config in sizes:
        rows = {"vocabulary_size": vocabulary_size} if vocabulary_size else {}
        return AlbertBackbone(**{**sizes[config], **rows})
    if not pathlib.Path(config).exists():
        raise AlbertError(
            f"--config {config} is neither a file nor a known size. Known sizes: "
            f"{', '.join(sizes)}"
        )
    # Needs TensorFlow.
    from albert_tf.checkpoints import config_arguments

    return AlbertBackbone(**config_arguments(config))


def new_pretrainer(config, checkpoint, records):
    """Return an `AlbertPretrainer` with the order classes of the records."""
    from albert_tf.checkpoints import open_checkpoint
    from albert_tf.models import AlbertPretrainer
    from albert_tf.pretraining import read_weights
    from albert_tf.pretraining.training.network import backbone_of
    from albert_tf.tokenizers import load_tokenizer

    classes = records.order_classes
    if checkpoint is None:
        backbone = random_backbone(config, records.tokens["size"])
        model = AlbertPretrainer(backbone, num_sop_classes=classes)
    elif checkpoint.endswith(".npz"):
        network = read_weights(checkpoint, classes)
        model = AlbertPretrainer(backbone_of(network), num_sop_classes=classes)
        model.set_weights(network.get_weights())
    else:
        opened = open_checkpoint(checkpoint)
        tokenizer = opened.tokenizer()
        tokens = load_tokenizer(records.vocabulary).get_vocabulary()
        if tokenizer is not None and tokenizer.get_vocabulary() != tokens:
            raise AlbertError(
                f"{records.folder} and {checkpoint} have different vocabularies. "
                "Make the records with the same vocabulary."
            )
        model = AlbertPretrainer.from_opened(opened, num_sop_classes=classes)
    if not classes and model.backbone.pooled_dense is not None:
        # Unused here, but a classifier starts from it.
        model.backbone.pooled_dense.trainable = False
    return model


def new_network(config, checkpoint, records):
    """Return the same network where TensorFlow is not installed.

    There, --config is a size or a JSON file of arguments of `AlbertBackbone`, and
    --checkpoint a file of `write_weights`.
    """
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.pretraining import build_network, read_weights

    if checkpoint is not None:
        return read_weights(checkpoint, records.order_classes)
    file = pathlib.Path(config)
    size = records.tokens["size"]
    if file.is_file():
        sizes = read_json(file, dict, "arguments of AlbertBackbone, a JSON object")
        try:
            backbone = AlbertBackbone(**{**sizes, "vocabulary_size": size})
        except (TypeError, ValueError, LookupError) as error:
            raise AlbertError(
                f"{file} does not have arguments of AlbertBackbone: {first_line(error)}"
            ) from error
    else:
        backbone = random_backbone(config, size)
    return build_network(backbone, records.order_classes)
