"""Models that are trained from a checkpoint or from random weights."""

import inspect
import pathlib
from typing import Any

from albert_tf_lite.errors import AlbertError


def choose_model_class(task, early_exit, class_weight, options):
    """Return the class of the model; raise if it does not take an option."""
    from albert_tf.models import TASKS, AlbertEarlyExitClassifier

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
