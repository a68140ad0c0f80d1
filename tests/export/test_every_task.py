"""Promises of every exported task, by the table of tasks."""

import json
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf
from exported_tasks import NAMES, exporter
from serving_operations import TABLE, graph_of, operations_of

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "serving.md"
# A name, its type and its shape, as the table of the docs has them.
ENTRY = re.compile(r"`(\w+)` (\w+) \[([^\]]*)\]")
# Invalid UTF-8 around the bytes of 好.
INVALID = b"\xff\xe5\xa5\xbd\xfe"
# Each takes seconds, and TensorFlow keeps 30 MB of it.
QUICK = ("multiple choice", "token classifier")

pytestmark = pytest.mark.traced


@pytest.fixture(scope="module")
def export_task(tmp_path_factory):
    return exporter(tmp_path_factory)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow)
        for name in NAMES
    ],
)
def exported(request, export_task):
    return export_task(request.param)


def test_answers_are_those_of_the_task(exported):
    texts = tuple(exported.inputs.values())
    served = exported.ask(**exported.inputs)
    expected = exported.task.text_answers(texts, exported.task)
    assert served.keys() == expected.keys()
    for name, value in expected.items():
        if value.dtype == tf.float32:
            np.testing.assert_allclose(served[name], value, atol=1e-5)
        else:
            np.testing.assert_array_equal(served[name], value)


# --- Names, types and shapes ---


def documented(name):
    """`{signature: {way: {name: (type, rank)}}}` of a class in docs/serving.md."""
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
    specs = exported.task.text_specs
    empty = np.zeros([0] * max(spec.shape.rank for spec in specs), object)
    return {
        spec.name: tf.constant(
            # Equal choices would tie.
            [[x, b"\xe5\xb7\xae"] if spec.shape.rank == 2 else x for x in column]
            or empty,
            tf.string,
            shape=None if column else [0] * spec.shape.rank,
        )
        for spec in specs
    }


@pytest.mark.parametrize(
    "length", [300, pytest.param(100_000, marks=pytest.mark.nightly)]
)
def test_no_text_makes_a_batch_fail(exported, length):
    column = ["很好[MASK]。", "", "\x00", INVALID, b"\xe4", " \u3000\n", "😀" * 9]
    column += ["好" * length, "a" * length, "很差。" * (length // 3)]
    column += ["[MASK]好" * (length // 7)]
    texts = texts_of(exported, column)
    given = exported.ask(**texts)
    for name, value in given.items():
        assert len(value) == len(column), name
        assert value.dtype.kind != "f" or np.isfinite(value).all(), name
    # Other texts of the batch change no answer.
    alone = exported.ask(**{name: x[:1] for name, x in texts.items()})
    for name, value in alone.items():
        row = given[name][:1]
        row = row[tuple(slice(0, size) for size in value.shape)]
        if value.dtype.kind == "f":
            np.testing.assert_allclose(row, value, atol=1e-5)
        else:
            np.testing.assert_array_equal(row, value)
