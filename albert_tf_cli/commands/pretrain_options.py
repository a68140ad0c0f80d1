"""The options of `albert-tf pretrain`."""

import dataclasses
from typing import Annotated, Literal

from albert_tf_cli.commands.pretrain_data import MarkedLabels, Ngram, Order
from albert_tf_cli.shared.options import (
    EmaMomentum,
    GradientAccumulationSteps,
    Layout,
    Precision,
    Seed,
    StartCheckpoint,
    advanced_option,
    data_option,
    directory_option,
    mask_option,
    model_option,
    output_option,
    training_option,
)

Optimizer = Literal["lamb", "adamw"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainOptions:
    """The options of `albert-tf pretrain`."""

    data: Annotated[str, data_option("Directory of records from `pretrain-data`.")]
    output: Annotated[str, directory_option("Directory for the checkpoint.")]
    dev: Annotated[str | None, data_option("Records to evaluate on.")] = None
    order: Annotated[
        Order | None,
        data_option(
            "Labels of pairs, instead of those of the records: sop (ALBERT), nsp "
            "(BERT), three_way (StructBERT), none (RoBERTa)."
        ),
    ] = None
    labelled: Annotated[
        str | None,
        data_option(
            "Labelled records from `pretrain-data`, for a second stage with a head "
            "for each kind of label. Text of --data joins each batch."
        ),
    ] = None
    config: Annotated[
        str | None, model_option("A size such as albert_tiny_zh, or a config file.")
    ] = None
    checkpoint: StartCheckpoint = None
    mask_selection_rate: Annotated[
        str | None,
        mask_option(
            "Share of the tokens to predict. Default: 0.15; 0.3:0.15 falls linearly."
        ),
    ] = None
    ngram: Ngram = None
    whole_word: Annotated[
        bool | None, mask_option("Mask whole words (default) or single tokens.")
    ] = None
    marked_labels: MarkedLabels = None
    steps: Annotated[
        int | None,
        training_option("Number of training batches. Default: 10,000.", min=1),
    ] = None
    minutes: Annotated[
        float | None,
        training_option(
            "Duration of the training, instead of --steps, whose number then follows "
            "from a trial."
        ),
    ] = None
    batch_tokens: Annotated[
        int, training_option("Tokens per step, padding included.", min=1)
    ] = 65_536
    optimizer: Annotated[
        Optimizer, training_option("LAMB as in the paper, or AdamW.")
    ] = "lamb"
    learning_rate: Annotated[
        float, training_option("Peak learning rate, before its linear decay.")
    ] = 0.00176
    warmup: Annotated[
        float, training_option("Share of the steps for warm-up.", min=0, max=1)
    ] = 0.1
    interval: Annotated[
        int | None,
        training_option(
            "Steps between evaluations on --dev. Default: the largest number from 100 "
            "to 1,000 that divides --steps, or all steps; a twentieth of --minutes.",
            min=1,
        ),
    ] = None
    steps_per_call: Annotated[
        int | None,
        training_option(
            "Steps that a call of the device trains. Default: up to 32 for JAX on a "
            "GPU, else 1.",
            min=1,
        ),
    ] = None
    precision: Precision = "float32"
    seed: Seed = 1
    to: Annotated[
        Layout | None,
        output_option("Layout to write. Default: the fitting TF1 layout."),
    ] = None
    ema_momentum: EmaMomentum = None
    gradient_accumulation_steps: GradientAccumulationSteps = None
    coordinator: Annotated[
        str | None,
        advanced_option(
            "Address of the first of several hosts that train together, such as "
            "host:1234 (JAX only)."
        ),
    ] = None
    hosts: Annotated[int, advanced_option("Number of hosts.", min=1)] = 1
    host: Annotated[int, advanced_option("Index of this host, from 0.", min=0)] = 0
