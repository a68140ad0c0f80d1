"""What is to be written of a checkpoint, in the terms of a layout."""

import dataclasses
import functools
import os

import keras_hub

from albert_tf.checkpoints.checkpoint import Checkpoint
from albert_tf.checkpoints.config import file_config, layout_differences
from albert_tf.checkpoints.head_fields import write_head
from albert_tf.checkpoints.heads import HEADS
from albert_tf.checkpoints.layout import CheckpointError, Layout
from albert_tf.checkpoints.layouts import (
    ALBERT_ZH,
    GOOGLE,
    HUGGINGFACE,
    KERASHUB,
    own_layout,
)
from albert_tf.checkpoints.plan import Plan, plan_writing
from albert_tf.tokenizers import SentencePieceTokenizer
from albert_tf_lite.errors import AlbertError

LAYOUTS = {layout.name: layout for layout in (GOOGLE, ALBERT_ZH, HUGGINGFACE, KERASHUB)}


@dataclasses.dataclass(frozen=True)
class Contents:
    """What is to be written: a checkpoint, in the terms of a layout.

    Attributes:
        unplaced: the parts and further weights of the model that the layout has no
            place for.
    """

    checkpoint: Checkpoint
    layout: Layout
    tokenizer: object
    config: dict
    plan: Plan
    unplaced: list

    def tensors(self):
        """Pairs of name and array, read one after the other."""
        for row in self.plan:
            yield from zip(
                row.target.names,
                row.target.from_weight(self.plan.weight(row)),
                strict=True,
            )

    def head_fields(self):
        """The config fields of all heads that are written."""
        checkpoint, fields = self.checkpoint, {}
        for part in self.plan.parts:
            if part in HEADS and HEADS[part].fields:
                count = checkpoint.num_classes(part)
                fields.update(write_head(part, count, checkpoint.head_config(part)))
        return fields

    @property
    def lost(self):
        """What the layout has no place for besides weights, a list of strings."""
        if self.layout is not KERASHUB:
            return []
        head = self.checkpoint.head_config("classifier")
        lost = [f"the labels {head['labels']}"] if head.get("labels") else []
        if head.get("multi_label"):
            lost.append("multi_label=True")
        if self.keras_hub_tokenizer is not None and not self.tokenizer.lowercase:
            lost.append("lowercase=False")
        return lost

    @functools.cached_property
    def keras_hub_tokenizer(self):
        """The tokenizer for KerasHub's models, `None` if KerasHub has none such."""
        # KerasHub's ALBERT has no WordPiece, and its BERT changes Chinese text.
        if not isinstance(self.tokenizer, SentencePieceTokenizer):
            return None
        return keras_hub.tokenizers.AlbertTokenizer(self.tokenizer.proto)


def contents_of(checkpoint, layout, tokenizer):
    """The `Contents` of a checkpoint; arguments and errors as of `save_checkpoint`."""
    known = [*LAYOUTS, "keras"]
    if layout not in known:
        raise AlbertError(f"Unknown layout {layout!r}. Known: {known}")
    target = LAYOUTS.get(layout) or own_layout(checkpoint.arguments)
    _refuse_other_shape(target, checkpoint.arguments)
    parts = [part for part in checkpoint.parts if part in target.weights]
    if target in (HUGGINGFACE, KERASHUB):
        _refuse_other_pooling(checkpoint, parts, layout)
    return Contents(
        checkpoint,
        target,
        _fitting_tokenizer(checkpoint, tokenizer),
        file_config(target, checkpoint.arguments),
        plan_writing(checkpoint, target, parts),
        [x for x in checkpoint.parts if x not in parts] + checkpoint.source.outside,
    )


def _refuse_other_shape(target, arguments):
    if differ := layout_differences(target, arguments):
        fit = [x.name for x in LAYOUTS.values() if not layout_differences(x, arguments)]
        raise CheckpointError(
            f'The "{target.name}" layout cannot hold this model: {"; ".join(differ)}. '
            f"Layouts that can: {', '.join([*fit, 'keras'])}."
        )


def _refuse_other_pooling(checkpoint, parts, layout):
    """Other code would read the pooler and give other answers, without a word."""
    for part in filter(checkpoint.heads.__contains__, parts):
        mode = checkpoint.head_config(part).get("pooling_mode", "cls")
        if mode != "cls":
            raise CheckpointError(
                f'The "{layout}" layout has no place for pooling_mode="{mode}" of the '
                f"{part}: what reads it pools by the first token. Save "
                '`model.backbone`, or with layout="keras".'
            )


def _fitting_tokenizer(checkpoint, tokenizer):
    name = checkpoint.vocabulary
    if isinstance(tokenizer, (str, os.PathLike)):
        name, tokenizer = tokenizer, checkpoint.tokenizer(vocabulary=tokenizer)
    elif tokenizer is None:
        tokenizer = checkpoint.tokenizer()
    rows = checkpoint.arguments["vocabulary_size"]
    if tokenizer is not None and tokenizer.vocabulary_size() != rows:
        raise CheckpointError(
            f"The vocabulary {name or 'given'} has "
            f"{tokenizer.vocabulary_size()} tokens, the model {rows}. Use the one that "
            "it was trained with."
        )
    return tokenizer
