"""Building the model that a checkpoint holds."""

from albert_tf.models import AlbertPretrainer, AlbertTextClassifier


def build_model(checkpoint):
    """A model of ours with the weights and heads that a checkpoint has.

    Args:
        checkpoint: a `Checkpoint`.

    Returns:
        An `AlbertTextClassifier` if there is a classification head, else an
        `AlbertPretrainer` if there is one for masked words, else an
        `AlbertBackbone`.
    """
    if "classifier" in checkpoint.parts:
        return AlbertTextClassifier.from_opened(checkpoint, checkpoint.tokenizer())
    if "masked_lm_head" in checkpoint.parts:
        return AlbertPretrainer.from_opened(checkpoint)
    backbone = checkpoint.build_backbone(pooler=checkpoint.has_pooler)
    checkpoint.load_into(backbone)
    return backbone
