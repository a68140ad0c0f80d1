"""Every task under every switch of Keras trains like plain Keras, or refuses."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
from task_cases import CASES, COUNT
from tiers import few

from albert_tf import AlbertError, models
from albert_tf.trainers.batching import BatchOptions

pytestmark = [
    pytest.mark.filterwarnings("ignore:Gradients do not exist for variables"),
    pytest.mark.filterwarnings("ignore:Skipping variable loading for optimizer"),
]
BATCH_SIZE = 4
WEIGHTS = np.linspace(0.0, 2.0, COUNT)
CLASS_WEIGHT = {0: 3.0, 1: 0.5, 2: 1.0}


def sgd(**options):
    """An optimizer that does not turn rounding errors into steps, as Adam does."""
    return keras.optimizers.SGD(0.02, momentum=0.5, **options)


@dataclasses.dataclass(frozen=True)
class Switch:
    """Arguments of `compile` and `fit` under which a task equals a plain Keras model.

    `optimizer` and `fit` are for both, `compile` is for the task alone.
    """

    optimizer: Callable[[], Any] = sgd
    compile: dict[str, Any] = dataclasses.field(default_factory=dict)
    fit: dict[str, Any] = dataclasses.field(default_factory=dict)
    dtype: str = "float32"
    tolerance: float = 2e-5
    # Keras' graphs, where other switches are quicker to test without.
    is_traced: bool = False
    # Fields of the tasks that refuse the switch, with the message.
    refused_by: Callable[[Any], bool] = lambda cls: False
    message: str = ""


# The first ones are those of `QUICK`, in the order of the tasks that they suit.
SWITCHES = {
    "class_weight": Switch(
        fit={"class_weight": CLASS_WEIGHT},
        refused_by=lambda cls: not cls.takes_class_weight,
        message="`class_weight` is for classifiers",
    ),
    "sample_weight": Switch(
        fit={"sample_weight": WEIGHTS},
        refused_by=lambda cls: cls is models.AlbertTextEmbedder,
        message="Pairs have no `sample_weight`",
    ),
    "run_eagerly": Switch(compile={"run_eagerly": True}),
    "gradient accumulation": Switch(lambda: sgd(gradient_accumulation_steps=2)),
    "moving averages": Switch(lambda: sgd(use_ema=True, ema_momentum=0.5)),
    "steps_per_execution": Switch(compile={"steps_per_execution": 2}, is_traced=True),
    "clipping": Switch(lambda: sgd(global_clipnorm=0.1)),
    "schedule": Switch(
        lambda: keras.optimizers.SGD(
            keras.optimizers.schedules.CosineDecay(0.05, decay_steps=4)
        )
    ),
    "loss scale": Switch(lambda: keras.optimizers.LossScaleOptimizer(sgd())),
    "Adam by its name": Switch(lambda: "adam", tolerance=1e-3),
    "mixed_bfloat16": Switch(dtype="mixed_bfloat16", tolerance=1e-3),
    "graph": Switch(is_traced=True),
    "jit_compile": Switch(
        compile={"jit_compile": True}, is_traced=True, tolerance=1e-4
    ),
}
# For `make test`, the first switches, each for one task; graphs are slow.
QUICK = set(itertools.islice(zip(CASES, SWITCHES, strict=False), 6))


def switches(all_switches, quick):
    """Parametrize a test by tasks and switches, all but `quick` nightly."""
    parameters = []
    for name, switch in itertools.product(CASES, all_switches):
        value = all_switches[switch]
        marks = [pytest.mark.traced] if value.is_traced else []
        if (name, switch) not in quick:
            marks.append(pytest.mark.nightly)
        elif value.is_traced:
            marks.append(pytest.mark.slow)
        label = f"{name}, {switch}"
        parameters.append(pytest.param(CASES[name], value, id=label, marks=marks))
    return pytest.mark.parametrize(("case", "switch"), parameters)


def build(case, **sizes):
    """Build a task without dropout, always with the same weights."""
    keras.utils.set_random_seed(4)
    return case.without_dropout().build(num_layers=1, **sizes)


def plain_model(case, **sizes):
    """Return the task, and its graph as a model of Keras."""
    task = build(case, **sizes)
    if case.cls is CASES["early-exit classifier"].cls:
        # It trains another graph than it predicts with.
        return task, task
    return task, keras.Model(task.input, task.output)


@switches(SWITCHES, QUICK)
def test_a_switch_trains_like_plain_keras(case, switch):
    task = build(case, dtype=switch.dtype)
    task.compile(switch.optimizer(), **switch.compile)
    fit = {"batch_size": BATCH_SIZE, "epochs": 1, "shuffle": False, "verbose": 0}
    if switch.refused_by(case.cls):
        with pytest.raises(AlbertError, match=switch.message):
            task.fit(case.train_x, case.y, **fit, **switch.fit)
        return
    keras.utils.set_random_seed(5)
    given = task.fit(case.train_x, case.y, **fit, **switch.fit).history

    other, plain = plain_model(case, dtype=switch.dtype)
    plain.compile(
        switch.optimizer(),
        other.default_loss(),
        run_eagerly=True,
        **other.default_metrics(),
    )
    options = dict(switch.fit)
    weights = options.pop("sample_weight", None)
    keras.utils.set_random_seed(5)
    examples = other.read_examples(case.train_x, case.y, weights)
    batches = other.batches(examples, BatchOptions(BATCH_SIZE))
    if weights is not None and case.cls is models.AlbertPretrainer:
        # Keras needs one per masked word.
        batches = batches.map(
            lambda x, y, w: (x, y, {"mlm_logits": w[:, None], "sop_logits": w})
        )
    fit_plain = keras.Model.fit
    expected = fit_plain(plain, batches, epochs=1, verbose=0, **options).history

    assert given.keys() == expected.keys()
    for name, values in expected.items():
        # In graphs, Keras takes the mean of an output's loss over the batches, whatever
        # their sizes.
        if switch.is_traced and name.endswith("_logits_loss"):
            continue
        assert given[name] == pytest.approx(values, abs=10 * switch.tolerance), name
    # The plain model lacks a pooler that no head reads.
    trained = {weight.path: np.array(weight) for weight in task.weights}
    for weight in plain.weights:
        np.testing.assert_allclose(
            trained[weight.path],
            np.array(weight),
            atol=switch.tolerance,
            err_msg=weight.path,
        )


@pytest.mark.nightly
@pytest.mark.traced
@pytest.mark.parametrize("rate", [0.0, 0.1])
@pytest.mark.parametrize("name", CASES)
def test_xla_evaluates_and_predicts_what_eager_calls_do(name, rate):
    case = CASES[name]
    task = case.build(num_layers=1, hidden_dropout=rate, attention_dropout=rate)

    def scores_and_outputs():
        scores = task.evaluate(case.train_x, case.y, verbose=0, return_dict=True)
        return scores, task.predict_rows(case.x, verbose=0)[2]

    task.compile(sgd(), jit_compile=True)
    fit = {"batch_size": BATCH_SIZE, "epochs": 1, "verbose": 0}
    history = task.fit(case.train_x, case.y, **fit).history
    assert all(np.all(np.isfinite(x)) for x in history.values())
    scores, outputs = scores_and_outputs()
    task.compile(sgd(), run_eagerly=True)
    eager_scores, eager_outputs = scores_and_outputs()
    assert scores == pytest.approx(eager_scores, abs=1e-4)
    pairs = zip(*map(keras.tree.flatten, (outputs, eager_outputs)), strict=True)
    assert all(np.allclose(a, b, atol=1e-4) for a, b in pairs)


@pytest.mark.parametrize(
    "name", few(CASES, ["text classifier"]), ids=[name for name in CASES]
)
def test_mixed_float16_stays_finite_over_several_fits(name):
    case = CASES[name]
    task = build(case, dtype="mixed_float16")
    fit = {"batch_size": BATCH_SIZE, "epochs": 1, "verbose": 0}
    for _ in range(2):
        task.fit(case.train_x, case.y, **fit)
        assert float(task.optimizer.dynamic_scale) > 0
        assert all(np.all(np.isfinite(np.array(x))) for x in task.weights)
    half = build(case, dtype="float16")
    half.compile("adam")
    with pytest.raises(AlbertError, match='dtype="mixed_float16"'):
        half.fit(case.train_x, case.y, **fit)
    # A rounding is 2**-11; sums of a few digits lose more than one.
    pairs = [x.predict_rows(case.x, verbose=0)[2] for x in (half, build(case))]
    for one, other in zip(*map(keras.tree.flatten, pairs), strict=True):
        np.testing.assert_allclose(one, other, atol=32 * 2**-11 * np.abs(other).max())
