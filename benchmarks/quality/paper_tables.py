"""Repeat the comparisons of the ALBERT paper with small models on one corpus.

    python -m benchmarks.quality.paper_tables --text CORPUS text
    python -m benchmarks.quality.paper_tables --records records/train --output runs
    python -m benchmarks.quality.paper_tables --score --dev records/dev --output runs
    python -m benchmarks.quality.paper_tables --fine-tune --output runs
        --vocab vocab.txt [--assets ../shared]

The first command selects the documents of CORPUS (a folder of .txt.gz files) with two
lines and enough text to fill a sequence; `albert-tf pretrain-data` makes the records.
The second pretrains the model of each run, all with the same records, seed, steps and
tokens per step, on a GPU in some ten minutes (`KERAS_BACKEND=jax`; needs NumPy, JAX,
Keras and KerasHub). Each run writes NAME.json and NAME.npz (float16) when it is
complete; the same command skips complete runs and resumes the one that was cut.
`--minutes` ends a run that takes longer, and starts the next. The third scores masked
words and both sentence tasks on held-out records. The fourth, with TensorFlow,
fine-tunes with 500 labels. `make figures` writes the tables.
"""

import argparse
import dataclasses
import gzip
import json
import os
import pathlib
import shutil
import signal
import statistics
import time
from typing import Any

from benchmarks.lib.release_sizes import MICRO_SIZES

FINE_TUNING = {"pooling_mode": "mean", "learning_rate": 2e-4}
LAYERS = MICRO_SIZES["num_layers"]
NOT_SHARED = {"num_attention_groups": LAYERS, "num_ffn_groups": LAYERS}
# Masks to score with, by name, as arguments of `PretrainingRecords.masks`.
MASKS = {"ngrams": {"ngram": 3}, "tokens": {"ngram": 1, "whole_word": False}}
DATA_NAMES = ("ChnSentiCorp", "LCQMC")
LABELS = 500
# Characters that fill a sequence of 128 tokens; every how many documents one is kept.
FULL, HELD_OUT = 120, 60


@dataclasses.dataclass(frozen=True)
class Run:
    """Settings of a run: arguments of the backbone, the sentence task, the masks."""

    sizes: dict[str, Any] = dataclasses.field(default_factory=dict)
    order: str = "sop"
    masks: str = "ngrams"


# The comparisons that need the fewest runs first.
RUNS = {
    "base": Run(),
    "nsp": Run(order="nsp"),
    "none": Run(order="none"),
    "not_shared": Run(NOT_SHARED),
    "shared_attention": Run({"num_ffn_groups": LAYERS}),
    "shared_ffn": Run({"num_attention_groups": LAYERS}),
    "single_tokens": Run(masks="tokens"),
    "dropout": Run({"hidden_dropout": 0.1, "attention_dropout": 0.1}),
    "e64": Run({"embedding_dim": 64}),
    "e320": Run({"embedding_dim": 320}),
    "e64_not_shared": Run({"embedding_dim": 64, **NOT_SHARED}),
    "e320_not_shared": Run({"embedding_dim": 320, **NOT_SHARED}),
}


# === Text ===


def select_text(corpus, output):
    """Write the long documents of a corpus, and every 60th of them as held-out text."""
    parts = {part: output / part for part in ("train", "dev")}
    for folder in parts.values():
        folder.mkdir(parents=True)
    seen, count, characters = set(), 0, 0
    for path in sorted(corpus.glob("*.txt.gz")):
        name = path.name.removesuffix(".gz")
        with (
            gzip.open(path, "rt", encoding="utf-8") as file,
            open(parts["train"] / name, "w", encoding="utf-8") as train,
            open(parts["dev"] / name, "w", encoding="utf-8") as dev,
        ):
            for document in file.read().split("\n\n"):
                lines = [x.strip() for x in document.split("\n") if x.strip()]
                text = "\n".join(lines)
                if len(lines) < 2 or len(text) < FULL or text in seen:
                    continue
                seen.add(text)
                count += 1
                characters += len(text)
                print(text, end="\n\n", file=train if count % HELD_OUT else dev)
    print(f"{count:,} documents of {characters:,} characters")


# === Pretraining ===


class Watch:
    """Times of the calls of a training, which it ends when its minutes are over."""

    def __init__(self, minutes):
        self.end = time.monotonic() + 60 * minutes if minutes else float("inf")
        self.times = []
        self.is_over = False

    def __call__(self, done, steps):
        self.times.append(time.monotonic())
        if self.times[-1] > self.end and done < steps and not self.is_over:
            self.is_over = True
            # `pretrain` ends after this call, and resumes from the last interval.
            signal.raise_signal(signal.SIGTERM)

    @property
    def seconds_per_call(self):
        """Median of the seconds, without those of compiling and saving."""
        pairs = zip(self.times, self.times[1:], strict=False)
        return statistics.median([y - x for x, y in pairs] or [float("nan")])


def new_backbone(run, records):
    """Return the backbone of a run with random weights."""
    from albert_tf.backbone import AlbertBackbone

    backbone = AlbertBackbone(
        vocabulary_size=records.tokens["size"],
        max_sequence_length=records.sequence_length,
        **{**MICRO_SIZES, **run.sizes},
    )
    # Without a sentence task nothing trains the pooler.
    backbone.pooled_dense.trainable = records.order_classes > 0
    return backbone


def pretrain_run(name, arguments):
    """Pretrain a run and write its weights and its results."""
    from albert_tf.pretraining import (
        PretrainingRecords,
        Run,
        build_network,
        pretrain,
        write_weights,
    )
    from albert_tf.training import scheduled_optimizer
    import keras

    run = RUNS[name]
    keras.utils.clear_session()
    keras.utils.set_random_seed(arguments.seed)
    keras.config.set_dtype_policy(arguments.dtype)
    records = PretrainingRecords(arguments.records, run.order)
    backbone = new_backbone(run, records)
    network = build_network(backbone, records.order_classes)
    network.compile(scheduled_optimizer("adamw", arguments.learning_rate))
    watch = Watch(arguments.minutes)
    state = arguments.output / f"{name}.state"
    settings = {
        "steps": arguments.steps,
        "batch_tokens": arguments.batch_tokens,
        "learning_rate": arguments.learning_rate,
        "seed": arguments.seed,
        "steps_per_call": arguments.steps_per_call,
    }
    training = Run(
        masks=records.masks(**MASKS[run.masks]),
        interval=arguments.steps // arguments.intervals,
        padded_lengths=(),
        warmup_share=0.05,
        **settings,
    )
    try:
        done = pretrain(network, records, state, training, progress=watch, verbose=0)
    except KeyboardInterrupt as error:
        if not watch.is_over:
            raise
        print(f"{name}: {error}", flush=True)
        return
    write_weights(network, arguments.output / f"{name}.npz", dtype="float16")
    tokens = arguments.batch_tokens * arguments.steps_per_call
    write(
        arguments.output / f"{name}.json",
        {
            "run": dataclasses.asdict(run),
            "settings": {**settings, "dtype": arguments.dtype},
            "device": device(),
            "parameters": backbone.count_params(),
            "tokens": tokens_read(records, training),
            "padded_tokens": arguments.batch_tokens * arguments.steps,
            "padded_tokens_per_second": tokens / watch.seconds_per_call,
            "seconds": done["seconds"],
            "history": done["history"],
        },
    )
    shutil.rmtree(state)


def tokens_read(records, run):
    """Return the number of tokens of the sequences of a training."""
    from albert_tf.pretraining.training.batch_plan import BatchPlan
    from albert_tf.pretraining.training.sequences import packed_lengths

    lengths = packed_lengths(records)
    plan = BatchPlan(lengths, records.sequence_length, run)
    calls = range(run.steps // run.steps_per_call)
    return int(sum(lengths[plan[call].rows].sum() for call in calls))


def device():
    """Return the name of the device, and the versions of the packages."""
    import keras

    facts = {"backend": keras.backend.backend(), "keras": keras.__version__}
    if facts["backend"] == "jax":
        import jax

        facts["device"] = jax.devices()[0].device_kind
        facts["jax"] = jax.__version__
    return facts


# === Scores ===


def score_run(name, arguments):
    """Add the accuracy of masked words and of both sentence tasks to the results."""
    from albert_tf.pretraining import PretrainingRecords, evaluate_pretraining

    network = network_of(name, arguments.output, arguments.seed)
    scores = {}
    for order, kind in (("sop", "ngrams"), ("sop", "tokens"), ("nsp", "ngrams")):
        dev = PretrainingRecords(arguments.dev, order)
        masks = dev.masks(**MASKS[kind])
        found = evaluate_pretraining(network, dev, masks=masks)
        scores[order] = found["sop_logits_accuracy"]
        if order == "sop":
            scores[kind] = found["mlm_logits_accuracy"]
    add(arguments.output / f"{name}.json", scores=scores)
    print(name, scores, flush=True)


def network_of(name, folder, seed):
    """Return the network of a run in float32; a head that it lacks is random."""
    from albert_tf.backbone import AlbertBackbone
    from albert_tf.pretraining import build_network, read_weights
    from albert_tf.pretraining.training.network import backbone_of
    import keras

    keras.utils.set_random_seed(seed)
    classes = 0 if RUNS[name].order == "none" else 2
    trained = read_weights(folder / f"{name}.npz", classes)
    config = {**backbone_of(trained).get_config(), "dtype": "float32"}
    network = build_network(AlbertBackbone.from_config(config), 2)
    weights = {weight.path: weight for weight in trained.weights}
    for weight in network.weights:
        if weight.path in weights:
            weight.assign(weights[weight.path])
    return network


def fine_tune_run(name, arguments):
    """Add the test accuracy after fine-tuning with few labels, by seed."""
    from benchmarks.lib.labelled_sets import choose
    from benchmarks.quality.pretraining_gain import DATA

    file = arguments.output / f"{name}.json"
    found = json.loads(file.read_text("utf-8")).get("fine_tuned", {})
    for data_name in DATA_NAMES:
        data = DATA[data_name]
        train, test = data.read(arguments.assets)
        for seed in range(1, arguments.seeds + 1):
            key = f"{data_name}/{seed}"
            if key not in found:
                few = choose(*train, LABELS, seed, stratify=True)
                model = classifier(name, arguments, few[1], seed)
                model.fit(*few, verbose=0)
                found[key] = data.score(model, *test)
                add(file, fine_tuned=found)
                print(name, key, f"{found[key]:.4f}", flush=True)


def classifier(name, arguments, classes, seed):
    """Return a classifier that starts from the weights of a run."""
    from albert_tf.models import AlbertTextClassifier
    from albert_tf.pretraining.training.network import backbone_of
    import keras

    backbone = backbone_of(network_of(name, arguments.output, arguments.seed))
    backbone.fine_tuning = FINE_TUNING
    keras.utils.set_random_seed(seed)
    labels = sorted(set(classes))
    return AlbertTextClassifier.from_backbone(
        backbone,
        vocabulary=arguments.vocab,
        sequence_length=backbone.max_sequence_length,
        labels=labels,
        num_classes=len(labels),
    )


# === Command line ===


def write(file, values):
    from albert_tf.files import write_json

    write_json(file, values)


def add(file, **values):
    """Add values to the results of a run."""
    write(file, {**json.loads(file.read_text("utf-8")), **values})


def read_arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", nargs=2, type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--records", help="directory to pretrain on")
    parser.add_argument("--dev", help="directory to score on")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("runs"))
    parser.add_argument("--runs", nargs="+", default=list(RUNS), choices=RUNS)
    parser.add_argument("--score", action="store_true")
    parser.add_argument("--fine-tune", action="store_true")
    parser.add_argument("--minutes", type=float, help="maximum of each run")
    parser.add_argument("--steps", type=int, default=2048)
    parser.add_argument("--batch-tokens", type=int, default=32_768)
    parser.add_argument("--steps-per-call", type=int, default=32)
    parser.add_argument("--intervals", type=int, default=4, help="saved states")
    parser.add_argument("--learning-rate", type=float, default=0.0015)
    parser.add_argument("--dtype", default="mixed_bfloat16")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3, help="of the fine-tuning")
    default = os.environ.get("ALBERT_TF_ASSETS", "../shared")
    parser.add_argument("--assets", type=pathlib.Path, default=default)
    parser.add_argument("--vocab", help="of the records, to fine-tune with")
    return parser.parse_args(arguments)


def main():
    arguments = read_arguments()
    if arguments.text:
        select_text(*arguments.text)
        return
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in arguments.runs:
        exists = (arguments.output / f"{name}.json").exists()
        if not (arguments.score or arguments.fine_tune):
            if not exists:
                pretrain_run(name, arguments)
        elif exists:
            (score_run if arguments.score else fine_tune_run)(name, arguments)


if __name__ == "__main__":
    main()
