"""Building the model that a checkpoint holds."""

from albert_tf.models import (
    AlbertMultipleChoice,
    AlbertPretrainer,
    AlbertQuestionAnswering,
    AlbertSentenceOrder,
    AlbertSummarizer,
    AlbertTextClassifier,
    AlbertTextRegressor,
    AlbertTokenClassifier,
)

# How the task of a head is built; of several heads in a checkpoint the first here.
BUILDERS = {
    "classifier": lambda checkpoint: AlbertTextClassifier.from_opened(
        checkpoint, checkpoint.tokenizer()
    ),
    "span_head": lambda checkpoint: AlbertQuestionAnswering.from_opened(
        checkpoint, checkpoint.tokenizer()
    ),
    "choice_head": lambda checkpoint: AlbertMultipleChoice.from_opened(
        checkpoint, checkpoint.tokenizer()
    ),
    "sentence_head": lambda checkpoint: AlbertSummarizer.from_opened(
        checkpoint, checkpoint.tokenizer()
    ),
    "regressor": lambda checkpoint: AlbertTextRegressor.from_opened(
        checkpoint, checkpoint.tokenizer()
    ),
    "token_classifier": lambda checkpoint: AlbertTokenClassifier.from_opened(
        checkpoint, checkpoint.tokenizer()
    ),
    "masked_lm_head": AlbertPretrainer.from_opened,
    "sop_head": lambda checkpoint: AlbertSentenceOrder.from_opened(
        checkpoint, checkpoint.tokenizer()
    ),
}


def build_model(checkpoint):
    """A task of the first head of `BUILDERS` that a checkpoint has, else a backbone."""
    for part, build in BUILDERS.items():
        if part in checkpoint.parts:
            return build(checkpoint)
    backbone = checkpoint.build_backbone(pooler=checkpoint.has_pooler)
    checkpoint.load_into(backbone)
    return backbone
