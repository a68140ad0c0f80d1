"""Promises of every exported task, by the table of tasks."""

import functools
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import types

import numpy as np
import pytest
import tensorflow as tf
from serving_operations import TABLE, graph_of, operations_of
from task_cases import CASES, tensor

import albert_tf

DOCS = pathlib.Path(__file__).parents[2] / "docs/reference/serving.md"
# A name, its type and its shape, as the table of the docs has them.
ENTRY = re.compile(r"`(\w+)` (\w+) \[([^\]]*)\]")
# Invalid UTF-8 around the bytes of 好.
INVALID = b"\xff\xe5\xa5\xbd\xfe"
NAMES = [name for name, case in CASES.items() if case.takes_texts]
# Each takes seconds, and TensorFlow keeps 30 MB of it.
QUICK = ("multiple choice", "token classifier")
MARKS = {"token classifier": ()}
# With other outputs, or other inputs.
SLOW = ("text classifier", "multiple choice", "question answering", "regressor")
SLOW += ("masked language model", "text embedder")
MARKS |= dict.fromkeys(SLOW, pytest.mark.slow)

pytestmark = [pytest.mark.text_ops, pytest.mark.traced]


@pytest.fixture(scope="module")
def export_task(tmp_path_factory):
    """A function of the name of a case, which returns the task and its export."""

    @functools.cache
    def export(name):
        case, task = CASES[name], CASES[name].build(num_layers=1)
        folder = tmp_path_factory.mktemp("serving") / name.replace(" ", "_")
        path = albert_tf.export.saved_model(task, folder, version="next")
        served = tf.saved_model.load(str(path))
        x = case.x if isinstance(case.x, tuple) else (case.x,)

        def ask(**texts):
            texts = {name: tf.constant(text) for name, text in texts.items()}
            answers = served.signatures["serving_default"](**texts)
            return {name: value.numpy() for name, value in answers.items()}

        # The texts of the case, by the names of the inputs.
        inputs = dict(zip(task.text_inputs, map(tensor, x), strict=True))
        return types.SimpleNamespace(
            task=task, path=path, served=served, ask=ask, inputs=inputs
        )

    return export


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=MARKS.get(name, pytest.mark.nightly)) for name in NAMES
    ],
)
def exported(request, export_task):
    return export_task(request.param)


def assert_alike(given, expected):
    assert given.keys() == expected.keys()
    for name, value in expected.items():
        value = np.asarray(value)
        if value.dtype.kind == "f":
            np.testing.assert_allclose(given[name], value, atol=1e-5)
        else:
            np.testing.assert_array_equal(given[name], value)


def test_answers_are_those_of_the_task(exported):
    texts = tuple(exported.inputs.values())
    expected = exported.task.serve(texts, exported.task)
    assert_alike(exported.ask(**exported.inputs), expected)


# TensorFlow Serving restores the variables and runs the signature by its tensor names,
# as the loader of TensorFlow 1 does.
FRESH_PROCESS = """
import pickle, sys
import tensorflow as tf
import tensorflow_text

answers = []
for path, inputs in pickle.load(sys.stdin.buffer):
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], path)
        signature = graph.signature_def["serving_default"]
        feeds = {signature.inputs[name].name: x for name, x in inputs.items()}
        names = {name: x.name for name, x in signature.outputs.items()}
        answers.append(session.run(names, feeds))
modules = {name.split(".")[0] for name in sys.modules}
assert not modules & {"albert_tf", "zh", "keras_hub", "keras_nlp"}
pickle.dump(answers, sys.stdout.buffer)
"""


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(QUICK, marks=pytest.mark.slow),
        pytest.param(NAMES, marks=pytest.mark.nightly),
    ],
    ids=["two tasks", "all tasks"],
)
def test_a_fresh_process_answers_without_this_package(export_task, names, tmp_path):
    """By the TensorFlow of the newest server if ALBERT_TF_SERVING_PYTHON has one."""
    exports = [export_task(name) for name in names]
    requests = [
        (str(x.path), {key: text.numpy() for key, text in x.inputs.items()})
        for x in exports
    ]
    python = os.environ.get("ALBERT_TF_SERVING_PYTHON", sys.executable)
    done = subprocess.run(
        [python, "-c", FRESH_PROCESS],
        input=pickle.dumps(requests),
        capture_output=True,
        cwd=tmp_path,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr.decode()
    for given, exported in zip(pickle.loads(done.stdout), exports, strict=True):
        assert_alike(given, exported.ask(**exported.inputs))


# --- Names, types and shapes ---


def documented(name):
    """`{signature: {way: {name: (type, rank)}}}` of a class in the docs."""
    rows = [
        [cell.strip() for cell in line.strip("| \n").split(" | ")]
        for line in DOCS.read_text().splitlines()
        if line.startswith("| `Albert")
    ]
    cells = {row[0]: row[1:] for row in rows}[name]
    return [
        {key: (kind, shape.count(",") + 1) for key, kind, shape in ENTRY.findall(cell)}
        for cell in cells
    ]


def test_names_types_and_shapes_are_those_of_the_docs(exported):
    name = f"`{type(exported.task).__name__}`"
    texts, answers, of_ids = documented(name)

    def forms(tensors):
        return {key: (x.dtype.name, x.shape.rank) for key, x in tensors.items()}

    signatures = exported.served.signatures
    given = signatures["serving_default"].structured_input_signature[1]
    assert set(given) == set(list(texts)[: len(given)])
    for key, spec in given.items():
        assert spec.dtype == tf.string
        assert spec.shape.rank == (None if texts[key][1] == 1 else texts[key][1])
    assert forms(signatures["serving_default"].structured_outputs) == answers
    assert forms(signatures["tokens"].structured_outputs) == of_ids
    for signature in signatures.values():
        for output in signature.structured_outputs.values():
            assert output.shape[0] is None
    # In REST they would be base64.
    assert not [key for key in {**answers, **of_ids} if key.endswith("_bytes")]


# --- What its graph needs ---

# Linked by TensorFlow Serving (`tensorflow_text:ops_lib`).
TEXT_OPERATIONS = {"FastWordpieceTokenizeWithOffsets", "NormalizeUTF8"}


def test_operations_and_their_attributes_are_known_to_the_newest_server(exported):
    server, used = json.loads(TABLE.read_text()), operations_of(exported.path)
    known = {name: set(x) for name, x in server["operations"].items()}
    unknown = {
        name: attributes
        for name, attributes in used.items()
        if name not in known or not attributes <= known[name]
    }
    # tests/helpers/serving_operations.py looks up new ones.
    assert not unknown, f"not in {TABLE.name}"
    assert graph_of(exported.path).versions.min_consumer <= server["graph_version"]
    prefixes = ("Fast", "Normalize", "Sentencepiece")
    of_text = {x for x in used if x.startswith(prefixes)}
    assert of_text <= TEXT_OPERATIONS
    assert not [x for x in used if x.startswith("TFText>") or "PyFunc" in x]


# --- Any request ---


def texts_of(exported, column):
    """A request whose every text is the same column; of each choice another one."""
    return {
        spec.name: tf.constant(
            # Equal choices would tie.
            [[x, "差".encode()] if spec.shape.rank == 2 else x for x in column]
        )
        for spec in exported.task.text_specs
    }


def test_no_text_makes_a_batch_fail(exported):
    column = ["很好[MASK]。", "", "\x00", INVALID, b"\xe4", " \u3000\n", "😀" * 9]
    column += ["好" * 300, "a" * 300, "很差。" * 100, "[MASK]好" * 40]
    texts = texts_of(exported, column)
    given = exported.ask(**texts)
    for name, value in given.items():
        assert len(value) == len(column), name
        assert value.dtype.kind != "f" or np.isfinite(value).all(), name
    # Other texts of the batch change no answer.
    alone = exported.ask(**{name: x[:1] for name, x in texts.items()})
    for name, value in alone.items():
        given[name] = given[name][tuple(slice(0, size) for size in value.shape)]
    assert_alike(given, alone)
