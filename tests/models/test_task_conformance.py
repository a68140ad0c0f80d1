"""Every task of the table in `task_cases.py` keeps the same promises."""

import concurrent.futures
import inspect
import re
import sys

import h5py
import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf
import yaml
from small_classifier import VOCABULARY, small_backbone
from task_cases import CASES, COUNT, tensor

from albert_tf.models import TASKS, AlbertTask
from albert_tf.trainers.batching import BatchOptions

pytestmark = [
    pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`"),
    # Warnings of Keras about models that were not trained and about datasets.
    pytest.mark.filterwarnings("ignore:Skipping variable loading for optimizer"),
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
]


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES.keys())
def case(request):
    return request.param


# Tests that take seconds run unmarked for a task per text and a task per token. Of the
# others, some have inputs, outputs or a training of another kind.
COMMON = ("text classifier", "token classifier")
SLOW = ("multi-label classifier", "pretrainer", "question answering")
SLOW += ("multiple choice", "masked language model", "text embedder")


def by_case(common, slow, others):
    """Run a test for the cases of `COMMON`, `SLOW` and all others with these marks."""
    marks = {name: slow if name in SLOW else others for name in CASES}
    marks |= dict.fromkeys(COMMON, common)
    return pytest.mark.parametrize(
        "case",
        [pytest.param(x, id=name, marks=marks[name]) for name, x in CASES.items()],
        indirect=True,
    )


slow_but_common = by_case((), pytest.mark.slow, pytest.mark.nightly)


@pytest.fixture(scope="module")
def task(case):
    return case.build()


@pytest.fixture(scope="module")
def outputs(case, task):
    return predict(case, task, case.x)


def predict(case, task, x, **kwargs):
    """Return the outputs of the model, before `predict` says what they mean."""
    return task.predict_rows(x, verbose=0, **kwargs)[2]


def leaves(outputs):
    """Return the arrays of the output of `predict` or of a call."""
    return [np.asarray(leaf) for leaf in keras.tree.flatten(outputs)]


def columns(outputs):
    return list(outputs.values()) if isinstance(outputs, dict) else [outputs]


def difference(first, second):
    pairs = zip(leaves(first), leaves(second), strict=True)
    return max(np.abs(a - b).max() for a, b in pairs)


def test_tasks_are_built_in_threads_at_once():
    backbone = small_backbone()
    kinds = [
        CASES[name].cls for name in ("regressor", "sentence order", "text embedder")
    ]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            tasks = list(pool.map(lambda kind: kind(backbone), kinds * 4))
    finally:
        sys.setswitchinterval(interval)
    assert [type(task) for task in tasks] == kinds * 4


def call(case, task):
    return task(case.features(task), training=False)


@pytest.fixture
def text_case(case):
    if not case.takes_texts:
        pytest.skip("takes ids")
    return case


def test_every_task_has_a_case_and_at_most_two_bases():
    tested = {case.cls for case in CASES.values()}
    assert {cls for cls in TASKS.values() if issubclass(cls, AlbertTask)} <= tested
    assert all(len(cls.__bases__) <= 2 for cls in tested)


@pytest.mark.parametrize("method", ["fit", "evaluate", "predict"])
def test_signatures_are_those_of_keras(case, method):
    theirs = list(inspect.signature(getattr(keras.Model, method)).parameters.values())
    ours = inspect.signature(getattr(case.cls, method)).parameters
    for parameter, other in zip(theirs, ours.values(), strict=False):
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            # `fit` chooses the epochs by the number of examples.
            default = None if parameter.name == "epochs" else parameter.default
            assert (parameter.name, default) == (other.name, other.default)
    assert ours["max_tokens"].kind is inspect.Parameter.KEYWORD_ONLY


def test_outputs_have_their_shapes(case, task, outputs):
    def shape(output):
        if isinstance(output, dict):
            return {name: shape(x) for name, x in output.items()}
        return [x.shape for x in output] if isinstance(output, list) else output.shape

    assert shape(outputs) == case.outputs
    assert {leaf.dtype.name for leaf in leaves(outputs)} == {"float32"}
    with pytest.raises(TypeError, match="has no argument `droput`"):
        case.cls.from_backbone(task.backbone, droput=0.1)


def test_predictions_do_not_depend_on_order_and_neighbours(text_case, task, outputs):
    x = text_case.x
    order = np.random.default_rng(0).permutation(COUNT)
    parts = [[part[i] for i in order] for part in (x if isinstance(x, tuple) else [x])]
    texts = tuple(parts) if isinstance(x, tuple) else parts[0]
    again = predict(text_case, task, texts, max_tokens=64)
    for first, second in zip(columns(again), columns(outputs), strict=True):
        for row, i in enumerate(order):
            np.testing.assert_allclose(first[row], second[i], atol=1e-5)


@slow_but_common
def test_a_dataset_is_predicted_like_a_list(case, task, outputs):
    dataset = case.dataset()
    assert difference(predict(case, task, dataset), outputs) < 1e-5
    if not case.takes_texts:
        return
    ids = dataset.map(task.preprocessor.features)
    assert difference(predict(case, task, ids), outputs) < 1e-5
    nothing = ([],) * len(case.x) if isinstance(case.x, tuple) else []
    assert not any(map(len, columns(predict(case, task, nothing))))


# Options with which `answers` answers as much as a graph for strings.
WHOLE = {
    **{name: {"top_k": None} for name in ("text classifier", "multiple choice")},
    **dict.fromkeys(("regressor", "token classifier", "question answering"), {}),
    **dict.fromkeys(("masked language model", "text embedder"), {}),
    "summarizer": {"sentences": 99},
}


@pytest.mark.parametrize(
    ("case", "options"),
    [(CASES[name], options) for name, options in WHOLE.items()],
    ids=WHOLE,
    indirect=["case"],
)
def test_a_graph_for_strings_answers_like_python(case, task, options):
    x = case.x
    texts = x if isinstance(x, tuple) else ([text or "差" for text in x],)
    answers = task.answers(x if isinstance(x, tuple) else texts[0], **options)
    found = [x for x in keras.tree.flatten(answers) if isinstance(x, float)]
    served = task.serve(tuple(map(tensor, texts)), task)
    numbers = [np.ravel(x) for x in leaves(served) if x.dtype == "float32"]
    # 0 and -1 stand where a row has fewer answers than others.
    expected = [x for x in np.concatenate(numbers) if x not in (0.0, -1.0)]
    assert len(found) >= COUNT - 1
    np.testing.assert_allclose(np.sort(found), np.sort(expected), atol=1e-5)


@slow_but_common
def test_precision_of_outputs_and_weights(case, task):
    double = case.build(dtype="float64")
    assert {leaf.dtype.name for leaf in leaves(call(case, double))} == {"float64"}
    half = case.build(dtype="mixed_bfloat16")
    given, expected = call(case, half), call(case, task)
    assert {leaf.dtype.name for leaf in leaves(given)} == {"float32"}
    assert {weight.dtype for weight in half.weights} == {"float32"}
    scale = max(np.abs(leaf).max() for leaf in leaves(expected))
    # 2**-8 for the embedding, the two halves of each of two layers, and the head.
    assert 0 < difference(given, expected) < 6 * 2**-8 * max(scale, 1)


@slow_but_common
def test_gradient_reaches_every_weight(case, task):
    features, y = case.features(task), case.y
    if case.takes_texts:
        examples = task.read_examples(case.train_x, y)
        batches = task.batches(examples, BatchOptions(COUNT))
        features, y, *_ = next(iter(batches))
    with tf.GradientTape() as tape:
        given = task(features, training=True)
        loss = task.compute_loss(features, y, given, training=True)
    weights = task.trainable_variables
    gradients = tape.gradient(loss, [weight.value for weight in weights])
    for weight, gradient in zip(weights, gradients, strict=True):
        if weight.path in case.unmoved:
            continue
        assert gradient is not None, weight.path
        assert np.abs(tf.convert_to_tensor(gradient)).max() > 0, weight.path


@slow_but_common
def test_fit_and_evaluate_take_lists(case, tmp_path):
    keras.utils.set_random_seed(3)
    task = case.build(num_layers=1)
    task.compile(learning_rate=5e-3)
    x = case.train_x
    before = task.evaluate(x, case.y, verbose=0, return_dict=True)
    history = task.fit(x, case.y, batch_size=4, epochs=case.epochs, verbose=0).history
    after = task.evaluate(x, case.y, verbose=0, return_dict=True)
    assert history.keys() == before.keys()
    assert after["loss"] < before["loss"]
    # Pairs of an embedder have no weights.
    if case.takes_texts and case.fits_on is None:
        options = {"sample_weight": [1] * COUNT, "verbose": 0, "return_dict": True}
        weighted = task.evaluate(x, case.y, **options)
        assert weighted["loss"] == pytest.approx(after["loss"], rel=1e-4)

    task.save_to_preset(str(tmp_path))
    if task.heads:
        with h5py.File(tmp_path / "task.weights.h5") as file:
            assert "optimizer" not in file


def save_and_load(task, kind, tmp_path):
    if kind == "keras":
        task.save(tmp_path / "task.keras")
        return keras.models.load_model(tmp_path / "task.keras")
    task.save_to_preset(str(tmp_path / "preset"))
    return type(task).from_preset(str(tmp_path / "preset"))


@slow_but_common
def test_a_preset_gives_the_same_task(case, task, tmp_path):
    assert_same_from_file(case, task, tmp_path, "preset")
    backbone = keras_hub.models.Backbone.from_preset(str(tmp_path / "preset"))
    assert backbone.count_params() == task.backbone.count_params()


@by_case(pytest.mark.slow, pytest.mark.nightly, pytest.mark.nightly)
def test_a_keras_file_gives_the_same_task(case, task, tmp_path):
    assert_same_from_file(case, task, tmp_path, "keras")


def assert_same_from_file(case, task, tmp_path, kind):
    loaded = save_and_load(task, kind, tmp_path)
    assert type(loaded) is case.cls
    assert loaded.starts_trained == (kind == "preset") and not task.starts_trained
    assert difference(call(case, loaded), call(case, task)) == 0.0
    for name, value in case.init_kwargs.items():
        assert loaded.get_config()[name] == value
    if case.takes_texts:
        ours, theirs = task.preprocessor, loaded.preprocessor
        assert theirs.sequence_length == ours.sequence_length == 29
        assert theirs.tokenizer.get_vocabulary() == VOCABULARY
    settings = [x.get_compile_config()["task_settings"] for x in (loaded, task)]
    assert settings[0].pop("starts_trained", False) == loaded.starts_trained
    assert settings[0] == settings[1] and settings[0]["loss"] == "auto"


# The task on the Hugging Face Hub, where it has another name.
PIPELINE_TAGS = {
    **dict.fromkeys(("multi-label", "regression"), "text-classification"),
    "sentence-order": "text-classification",
    "text-embedding": "feature-extraction",
    "spelling-correction": "text2text-generation",
    None: "fill-mask",
}


@slow_but_common
def test_a_preset_has_a_model_card_whose_code_runs(case, task, tmp_path, monkeypatch):
    task.save_to_preset(str(tmp_path))
    card = (tmp_path / "README.md").read_text("utf-8")
    fields = yaml.safe_load(card.split("---\n")[1])
    name = task.name_of_task
    assert fields["pipeline_tag"] == PIPELINE_TAGS.get(name, name)
    assert fields.get("language") == ("zh" if case.takes_texts else None)
    assert (fields["library_name"], fields["tags"][0]) == ("keras", "albert")
    monkeypatch.chdir(tmp_path)
    python, again = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    assert python == again
    exec(python, {})


# The head of a masked language model reads the int8 table of the embedding.
@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (CASES["masked language model"], "preset"),
        pytest.param(CASES["token classifier"], "keras", marks=pytest.mark.slow),
        pytest.param(CASES["text classifier"], "preset", marks=pytest.mark.nightly),
    ],
    indirect=["case"],
)
def test_a_quantized_model_is_saved_quantized(case, task, tmp_path, kind):
    quantized = case.build()
    quantized.quantize("int8")
    given = call(case, quantized)
    assert 0 < difference(given, call(case, task)) < 0.2
    loaded = save_and_load(quantized, kind, tmp_path)
    assert difference(call(case, loaded), given) == 0.0
