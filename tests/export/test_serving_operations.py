"""The graphs use what TensorFlow 2.20 knows, that of the newest released server."""

import json
import os
import pathlib
import subprocess

import pytest
import serving_operations
from exported_tasks import NAMES, exporter
from serving_operations import graph_of, operations_of

TABLE = pathlib.Path(__file__).with_name("serving_operations.json")
# Of tensorflow_text, those that TensorFlow Serving links (`tensorflow_text:ops_lib`)
# and that we need; two more for models of pieces.
TEXT_OPERATIONS = {"FastWordpieceTokenizeWithOffsets", "NormalizeUTF8"}
TEXT_OPERATIONS |= {"SentencepieceOp", "SentencepieceTokenizeOp"}
QUICK = ("pair classifier", "token classifier")


@pytest.fixture(scope="module")
def export_task(tmp_path_factory):
    return exporter(tmp_path_factory)


@pytest.fixture(scope="module")
def known():
    return json.loads(TABLE.read_text())


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[] if x in QUICK else pytest.mark.slow) for x in NAMES],
)
def test_operations_and_their_attributes_are_known(export_task, known, name):
    path = export_task(name).path
    unknown = {
        (operation, attribute)
        for operation, attributes in operations_of(path).items()
        for attribute in attributes or {""}
        if attribute not in [*known["operations"].get(operation, []), ""]
        or operation not in known["operations"]
    }
    assert not unknown, f"Not in {TABLE.name}: see tests/helpers/serving_operations.py"
    versions = graph_of(path).versions
    # An older reader refuses what says that it needs a newer one.
    assert versions.min_consumer <= known["graph_version"]
    text = {x for x in operations_of(path) if _is_of_text(x)}
    assert text <= TEXT_OPERATIONS
    assert not {"PyFunc", "PyFuncStateless", "EagerPyFunc"} & {*operations_of(path)}


def _is_of_text(operation):
    """Whether it is none of core TensorFlow's."""
    from tensorflow.python.ops import (  # noqa: F401  registers them
        gen_array_ops,
        gen_string_ops,
    )

    return operation.startswith(
        ("FastWordpiece", "Normalize", "Sentencepiece", "TFText")
    )


@pytest.mark.slow
def test_the_table_is_what_the_server_knows(export_task, known, tmp_path):
    python = os.environ.get("ALBERT_TF_SERVING_PYTHON")
    if not python:
        pytest.skip(
            "ALBERT_TF_SERVING_PYTHON does not name the Python of an environment with "
            "TensorFlow 2.20, that of the newest server"
        )
    from small_sentence_piece import english_classifier

    import albert_tf

    pieces = albert_tf.export.saved_model(english_classifier(), tmp_path / "1")
    paths = [pieces, *(export_task(name).path for name in NAMES)]
    finished = subprocess.run(
        [python, serving_operations.__file__, *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert finished.returncode == 0, finished.stderr
    report = json.loads(finished.stdout)
    assert report["tensorflow"].startswith("2.20.")
    used = set().union(*map(operations_of, paths))
    assert set(report["operations"]) == used
    assert {x: known["operations"][x] for x in used} == report["operations"]
    assert known["graph_version"] == report["graph_version"]
