"""Search the recipe of fine-tuning: what each setting adds to the defaults of `fit`.

    python -m benchmarks.quality.recipe_search [--assets ../shared]
        [--data headlines ...] [--sizes 50 200 500] [--seeds 1 2]

Trains the bundled checkpoint with the defaults of `fit`, and with one setting changed
at a time. Scores are those of 1,000 other examples of the training part: no example of
a test part takes part. `cost` is the time as a multiple of that of the defaults, by
processor time. Layer-wise decay is left out: the layers of ALBERT share their weights.
An interrupted run resumes.
"""

import argparse
import dataclasses
import itertools
import json
import os
import pathlib
import time

import albert_tf
from albert_tf.evaluation import entity_scores, regression_scores
from albert_tf.models import (
    AlbertTextClassifier,
    AlbertTextRegressor,
    AlbertTokenClassifier,
)
from albert_tf.training import fine_tuning_epochs
import keras
from keras import ops
import numpy as np
import tensorflow as tf

from benchmarks.lib.harness import console, table_of, write_results
from benchmarks.lib.labelled_sets import (
    chnsenticorp,
    choose,
    headlines,
    lcqmc,
    peoples_daily,
    select,
    stsb,
)
from benchmarks.lib.paths import RESULTS

CHECKPOINT = "albert_micro_zh"
DEV = 1_000


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What differs from the defaults.

    Attributes:
        rate: float, times the default learning rate.
        epochs: float, times the default number of epochs.
        arguments: dict, arguments of the model.
        compiled: dict, arguments of `compile`.
        mixin: optional class that changes the training step.
        all_tasks: bool. False for recipes of classifiers.
    """

    rate: float = 1.0
    epochs: float = 1.0
    arguments: dict = dataclasses.field(default_factory=dict)
    compiled: dict = dataclasses.field(default_factory=dict)
    mixin: type | None = None
    all_tasks: bool = True


def smoothed(truth, logits):
    """The cross-entropy with a tenth of the probability on all classes."""
    classes = ops.shape(logits)[-1]
    targets = ops.one_hot(ops.cast(ops.reshape(truth, [-1]), "int32"), classes)
    return keras.losses.categorical_crossentropy(
        targets, logits, from_logits=True, label_smoothing=0.1
    )


class RDrop:
    """R-Drop (arXiv 2106.14448): two passes with dropout should agree."""

    def compute_loss(self, x=None, y=None, y_pred=None, *args, **kwargs):
        loss = super().compute_loss(x, y, y_pred, *args, **kwargs)
        other = self(x, training=True)
        logs = [ops.log_softmax(logits) for logits in (y_pred, other)]
        # The sum of both divergences.
        difference = (ops.exp(logs[0]) - ops.exp(logs[1])) * (logs[0] - logs[1])
        return loss + ops.mean(ops.sum(difference, axis=-1))


class FastGradient:
    """FGM (arXiv 1605.07725): learn also with the embeddings moved to be wrong."""

    def train_step(self, data):
        x, y, weights = keras.utils.unpack_x_y_sample_weight(data)
        table = self.backbone.embedding.token_embedding.embeddings
        index = next(i for i, v in enumerate(self.trainable_variables) if v is table)
        first, loss = self._gradients(x, y, weights)
        dense = tf.convert_to_tensor(first[index])
        moved = dense / (tf.norm(dense) + 1e-9)
        table.assign_add(moved)
        second, _ = self._gradients(x, y, weights)
        table.assign_sub(moved)
        gradients = [
            # A pooler that is not used has none.
            None
            if one is None
            else tf.convert_to_tensor(one) + tf.convert_to_tensor(other)
            for one, other in zip(first, second, strict=True)
        ]
        self.optimizer.apply_gradients(
            zip(gradients, self.trainable_variables, strict=True)
        )
        self._loss_tracker.update_state(loss)
        return {"loss": self._loss_tracker.result()}

    def _gradients(self, x, y, weights):
        with tf.GradientTape() as tape:
            outputs = self(x, training=True)
            loss = self.compute_loss(x, y, outputs, weights)
        return tape.gradient(loss, self.trainable_variables), loss


RECIPES = {
    "defaults": Recipe(),
    "half the rate": Recipe(rate=0.5),
    "2.5 times the rate": Recipe(rate=2.5),
    "5 times the rate": Recipe(rate=5),
    "half the epochs": Recipe(epochs=0.5),
    "twice the epochs": Recipe(epochs=2),
    "averaged weights (EMA 0.99)": Recipe(compiled={"ema_momentum": 0.99}),
    "no dropout before the head": Recipe(arguments={"dropout": 0.0}),
    "dropout 0.3 before the head": Recipe(arguments={"dropout": 0.3}),
    "label smoothing 0.1": Recipe(compiled={"loss": smoothed}, all_tasks=False),
    "R-Drop": Recipe(mixin=RDrop, all_tasks=False),
    "FGM": Recipe(mixin=FastGradient),
    "pooling cls": Recipe(arguments={"pooling_mode": "cls"}, all_tasks=False),
    "pooling max": Recipe(arguments={"pooling_mode": "max"}, all_tasks=False),
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A set, its task, and the score of predictions."""

    read: object
    task: type
    score: object


def accuracy(truth, outputs, labels):
    return float(np.mean(np.array(labels)[outputs.argmax(axis=-1)] == np.array(truth)))


def correlation(truth, outputs, labels):
    return regression_scores(truth, outputs.ravel())["spearman"]


def entity_f1(truth, spans, labels):
    return entity_scores(truth, spans)["f1"]


DATA = {
    "ChnSentiCorp": Case(chnsenticorp, AlbertTextClassifier, accuracy),
    "headlines": Case(headlines, AlbertTextClassifier, accuracy),
    "LCQMC": Case(lcqmc, AlbertTextClassifier, accuracy),
    "STS-B": Case(stsb, AlbertTextRegressor, correlation),
    "People's Daily": Case(peoples_daily, AlbertTokenClassifier, entity_f1),
}


def arguments_of(case, y):
    """Return labels that no head of the checkpoint has, so that the head is new."""
    if case.task is AlbertTextClassifier:
        return {"labels": [f"{label} " for label in sorted(set(y))]}
    if case.task is AlbertTokenClassifier:
        names = {name for spans in y for *_, name in spans}
        return {"labels": [f"{name}2" for name in sorted(names)]}
    return {}


def renamed(case, y):
    """Return labels as `arguments_of` names them."""
    if case.task is AlbertTextClassifier:
        return [f"{label} " for label in y]
    if case.task is AlbertTokenClassifier:
        return [[(a, b, f"{name}2") for a, b, name in spans] for spans in y]
    return y


def train(case, recipe, parts, seed):
    """Return the score on dev and the seconds of processor time of a training."""
    (x, y), (dev_x, dev_y) = parts
    keras.utils.set_random_seed(seed)
    task = case.task
    if recipe.mixin:
        task = type(task.__name__, (recipe.mixin, task), {})
    arguments = {**arguments_of(case, y), **recipe.arguments}
    model = task.from_checkpoint(CHECKPOINT, **arguments)
    epochs = max(round(fine_tuning_epochs(len(y)) * recipe.epochs), 1)
    rate = model.default_learning_rate * recipe.rate
    model.compile(learning_rate=rate, **recipe.compiled)
    start = time.process_time()
    model.fit(x, renamed(case, y), epochs=epochs, verbose=0)
    seconds = time.process_time() - start
    outputs = model.predict(dev_x, verbose=0)
    truth = renamed(case, dev_y)
    return case.score(truth, outputs, arguments.get("labels")), seconds


def deal(case, assets, size, seed):
    """Return training and dev examples of the training part."""
    x, y = next(iter(case.read(assets)))
    stratify = case.task is AlbertTextClassifier
    rest_x, rest_y = choose(x, y, int(size) + DEV, seed, stratify)
    rows = np.random.default_rng(seed).permutation(len(rest_y))

    return select(rest_x, rest_y, rows[DEV:]), select(rest_x, rest_y, rows[:DEV])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("ALBERT_TF_ASSETS", "../shared")
    parser.add_argument("--assets", type=pathlib.Path, default=pathlib.Path(default))
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--sizes", nargs="+", default=["50", "200", "500"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=list(RECIPES))
    given = parser.parse_args()
    path = RESULTS / "recipe_search.json"
    rows = json.loads(path.read_text("utf-8"))["rows"] if path.exists() else {}
    cases = itertools.product(given.data, given.sizes, given.seeds, given.recipes)
    for name, size, seed, title in cases:
        case, recipe = DATA[name], RECIPES[title]
        row = rows.setdefault(f"{name}, {size} labels", {}).setdefault(title, {})
        is_classifier = case.task is AlbertTextClassifier
        if f"seed {seed}" in row or not (recipe.all_tasks or is_classifier):
            continue
        parts = deal(case, given.assets, size, seed)
        score, seconds = train(case, recipe, parts, seed)
        row[f"seed {seed}"], row["seconds"] = score, seconds
        seeds = [value for key, value in row.items() if key.startswith("seed ")]
        row["mean"] = float(np.mean(seeds))
        print(name, size, seed, title, f"{score:.4f}, {seconds:.0f} s", flush=True)
        write_results("recipe_search", {"version": albert_tf.__version__, "rows": rows})
    for name, recipes in rows.items():
        console.print(name)
        console.print(table_of(recipes, ["mean", "seconds"]))


if __name__ == "__main__":
    main()
