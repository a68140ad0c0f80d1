"""The table of operations is what TensorFlow 2.20 says, the newest server's."""

import json
import os
import subprocess

import pytest
import serving_operations
from exported_tasks import NAMES, exporter
from serving_operations import TABLE, operations_of


@pytest.fixture(scope="module")
def export_task(tmp_path_factory):
    return exporter(tmp_path_factory)


@pytest.mark.slow
def test_the_table_is_what_the_server_knows(export_task, tmp_path):
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
    report, known = json.loads(finished.stdout), json.loads(TABLE.read_text())
    assert report["tensorflow"].startswith("2.20.")
    used = set().union(*map(operations_of, paths))
    assert set(report["operations"]) == used
    assert {x: known["operations"][x] for x in used} == report["operations"]
    assert known["graph_version"] == report["graph_version"]
