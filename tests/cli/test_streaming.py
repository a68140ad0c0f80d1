"""`albert-tf predict` on large files: formats, workers, resuming, Ray."""

import errno
import gzip
import importlib.util
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
import zstandard
from command_line import refused, run
from lite_tasks import needs_onnx
from processes import PATH
from small_classifier import CHARACTERS, small_classifier

import albert_tf
from albert_tf.data.files.tables import read_table
from albert_tf_cli.commands import predict
from albert_tf_cli.shared import journal, progress
from albert_tf_cli.tasks import blocks

pytestmark = needs_onnx
TEXTS = ["很好", "", "太差了", "😀好\u2028", "不", "我想你", "一 般", "差！"]
HEADER = "id\ttext\tlabel"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A classifier that answers without TensorFlow."""
    folder = tmp_path_factory.mktemp("model")
    classifier = small_classifier(2, labels=["差", "好"])
    classifier.save_to_preset(folder)
    albert_tf.export.onnx(classifier, folder / "model.onnx", preset=folder)
    return folder


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 3)


def write_table(path, count):
    rows = (f"{i}\t{TEXTS[i % len(TEXTS)]}\t好\n" for i in range(count))
    path.write_text(f"{HEADER}\n{''.join(rows)}", "utf-8")
    return path


def interrupt_after(number, error):
    """Raise an error once the blocks of a number are written."""
    append, calls = journal.append, []

    def append_or_raise(journal, answers):
        calls.append(answers)
        append(journal, answers)
        if len(calls) == number:
            # Half a line, as of a killed process.
            journal.write(b'[{"label": ')
            journal.flush()
            raise error

    return mock.patch.object(predict, "append", append_or_raise), calls


# === Formats ===


def write_zst(table, path):
    path.write_bytes(
        zstandard.compress("".join(f"{x}\n" for x in table["text"]).encode())
    )


INPUTS = {
    "a.txt.zst": write_zst,
    "a.tsv": lambda table, path: table.to_csv(path, sep="\t", index=False),
    "a.csv.gz": lambda table, path: table.to_csv(
        path, sep=";", index=False, encoding="gb18030"
    ),
    "a.jsonl.gz": lambda table, path: table.to_json(path, orient="records", lines=True),
    "a.parquet": lambda table, path: table.astype({"id": "int16"}).to_parquet(path),
}


@pytest.mark.filterwarnings("ignore:.*Read as such")
@pytest.mark.parametrize("name", INPUTS)
def test_each_format_is_answered_in_blocks(model, tmp_path, small_blocks, name):
    table = pd.DataFrame({"id": range(len(TEXTS)), "text": TEXTS})
    INPUTS[name](table, tmp_path / name)
    answers = albert_tf.export.OnnxModel(model / "model.onnx").answers(TEXTS)
    has_ids = not name.startswith("a.txt")
    for ending in ("csv", "tsv", "jsonl", "parquet"):
        output = tmp_path / f"found.{ending}"
        run("predict", model, tmp_path / name, "--output", output, "--workers", 1)
        found = read_table(output).records()
        names = [*["id"] * has_ids, "text", "label", "score"]
        assert [list(x) for x in found] == len(TEXTS) * [names]
        assert [x["text"] for x in found] == TEXTS
        assert [x["label"] for x in found] == [x["label"] for x in answers]
        scores = [float(x["score"]) for x in found]
        assert scores == pytest.approx([x["score"] for x in answers], abs=1e-5)
        if has_ids:
            assert [int(x["id"]) for x in found] == list(range(len(TEXTS)))
    if name == "a.parquet":
        before, after = map(pyarrow.parquet.read_schema, (tmp_path / name, output))
        assert before.types[0] == "int16" and after.types[:2] == before.types
        assert after.types[2:] == ["string", "double"]
    assert len(os.listdir(tmp_path)) == 1 + 4


def test_columns_that_begin_in_a_late_block(model, tmp_path, small_blocks):
    records: list[dict] = [{"text": text} for text in TEXTS]
    # Half of a surrogate pair, which UTF-8 cannot hold.
    records[6]["text"] += "\ud83d"
    records[5] |= {"date": "2026", "label": {"a": [1]}}
    records[7] |= {"date": 7}
    lines = "\n".join(map(json.dumps, records))
    (tmp_path / "a.jsonl").write_text(lines, "utf-8")
    found = {}
    for ending in ("jsonl", "csv", "parquet"):
        output = tmp_path / f"found.{ending}"
        command = ("predict", model, tmp_path / "a.jsonl", "--output", output)
        run(*command, "--workers", 1)
        found[ending] = read_table(output).records()
    records[6]["text"] = records[6]["text"].replace("\ud83d", "?")
    for record, answered in zip(records, found["jsonl"], strict=True):
        assert answered | record == answered
    assert list(found["csv"][0]) == list(found["parquet"][0])
    assert {"date", "label", "predicted_label"} < {*found["csv"][0]}
    assert [x["date"] for x in found["parquet"]] == [*5 * [None], "2026", None, "7"]


def test_a_wrong_row_of_a_late_block_is_named_before_any_answer(
    model, tmp_path, small_blocks
):
    file = write_table(tmp_path / "a.tsv", 11)
    file.write_text(file.read_text("utf-8") + "12\n", "utf-8")
    command = ("predict", model, file, "--output", tmp_path / "found.csv")
    assert "Line 13 of" in refused(*command)
    data = gzip.compress("\n".join(TEXTS * 50).encode())
    (tmp_path / "b.txt.gz").write_bytes(data[:-20])
    assert "c.parquet is not a file" in refused("predict", model, "c.parquet")
    (tmp_path / "c.parquet").write_bytes(b"PAR1")
    for name, message in (
        ("b.txt.gz", "b.txt.gz is damaged or truncated"),
        ("c.parquet", "cannot be read as Parquet"),
    ):
        assert message in refused("predict", model, tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["a.tsv", "b.txt.gz", "c.parquet"]


@pytest.mark.parametrize("workers", [1, 2])
def test_unknown_tokens_are_named_once_and_truncated_texts_counted(
    model, tmp_path, small_blocks, workers
):
    # Other characters in each block.
    lines = [f"很好{chr(0x9F00 + i)}{chr(0x9F00 + i)}\n" for i in range(10)]
    lines[4] = lines[8] = lines[9] = "好" * 200 + "\n"
    (tmp_path / "a.txt").write_text("".join(lines), "utf-8")
    with pytest.warns(UserWarning) as found:
        run("predict", model, tmp_path / "a.txt", "--workers", workers)
    first, last = (str(x.message) for x in found)
    assert first.startswith("50.0% of the tokens of 3 texts are [UNK]")
    assert last.startswith("3 of 10 texts are longer than the ")


# === Resuming ===


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.ENOSPC, "full")])
def test_an_interrupted_run_is_resumed(model, tmp_path, small_blocks, error):
    file = write_table(tmp_path / "a.tsv", 14)
    whole, resumed = tmp_path / "whole.csv", tmp_path / "resumed.csv"
    run("predict", model, file, "--output", whole, "--workers", 1)
    command = ("predict", model, file, "--output", resumed)
    patch, _ = interrupt_after(2, error)
    with patch:
        if error is KeyboardInterrupt:
            assert "The same command resumes" in run(*command, code=130).stdout
        else:
            assert "resumed.csv: full" in refused(*command, "--workers", 1)
    assert not resumed.exists()
    if error is KeyboardInterrupt:
        journal = tmp_path / ".resumed.csv.answers"
        lines = journal.read_bytes().splitlines(keepends=True)
        lines[2] = lines[2].replace(b"label", b"la", 1)[:-9] + b"\n"
        journal.write_bytes(b"".join(lines))
    # Another command does not continue it.
    assert "unfinished run with other top_k." in refused(*command, "--top-k", 0)
    other = write_table(tmp_path / "other.tsv", 13)
    command = ("predict", model, other, "--output", resumed)
    assert "unfinished run with other texts." in refused(*command)
    # Texts of another file and in another form are the same.
    moved = tmp_path / "moved.csv"
    moved.write_text(file.read_text("utf-8").replace("\t", ","), "utf-8")
    patch, calls = interrupt_after(0, error)
    with patch, warnings.catch_warnings(record=True, action="always") as found:
        run("predict", model, moved, "--output", resumed, "--workers", 2)
    messages = [str(x.message) for x in found]
    damaged = [x for x in messages if "Line 3 of" in x and ".answers" in x]
    assert len(damaged) == (error is KeyboardInterrupt)
    assert len(calls) == 3 + len(damaged)
    assert resumed.read_bytes() == whole.read_bytes()
    assert not [*tmp_path.glob(".*")]


def test_a_model_without_an_exported_file_resumes(tmp_path, small_blocks, monkeypatch):
    monkeypatch.setattr(progress, "LINE_EVERY", 0.001)
    small_classifier(2).save_to_preset(tmp_path / "model")
    file = write_table(tmp_path / "a.tsv", 8)
    command = ("predict", tmp_path / "model", file, "--output", tmp_path / "b.tsv")
    patch, _ = interrupt_after(1, KeyboardInterrupt)
    with patch:
        run(*command, code=130)
    patch, calls = interrupt_after(0, None)
    with patch:
        printed = run(*command).stderr
    line = r"^predict: texts \d of 8, [\d,.]+ texts per s, 0 min \d+ s left$"
    assert re.search(line, printed, re.MULTILINE)
    assert len(calls) == 2 and len(read_table(tmp_path / "b.tsv").places) == 8
    error = refused(*command[:3], "--engine=ray")
    assert "--engine ray needs an exported model" in error


# === A file that changes meanwhile ===


# Functions of the lines.
CHANGES = {
    # As long as before.
    "replaced": lambda lines: [line.replace("好", "差") for line in lines],
    "appended to": lambda lines: [*lines, lines[-1]],
    "cut": lambda lines: lines[: -len(lines) // 3],
}


def change(path, content, in_place):
    """Write a file in place, or put another one in its place."""
    if in_place:
        path.write_bytes(content)
    else:
        path.with_suffix(".new").write_bytes(content)
        path.with_suffix(".new").replace(path)


@pytest.mark.parametrize("kind", CHANGES)
def test_a_file_that_changes_is_refused(model, tmp_path, small_blocks, kind):
    file, output = write_table(tmp_path / "a.tsv", 14), tmp_path / "b.csv"
    run("predict", model, file, "--output", tmp_path / "whole.csv", "--workers", 1)
    before, state = file.read_bytes(), file.stat()
    after = CHANGES[kind](before.decode().splitlines(True))
    command = ("predict", model, file, "--output", output, "--workers", 1)
    append = journal.append

    # 5 blocks: during the answers, and between answers and records.
    for moment, in_place in itertools.product((1, 5), (True, False)):
        blocks = itertools.count(1)

        def append_and_change(*block, blocks=blocks, moment=moment, in_place=in_place):
            append(*block)
            if next(blocks) == moment:
                change(file, "".join(after).encode(), in_place)
                # As if within the resolution of the clock.
                os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))

        with mock.patch.object(predict, "append", append_and_change):
            assert "a.tsv has changed since" in refused(*command)
        assert not output.exists()
        assert "unfinished run with other texts" in refused(*command)
        # The right file resumes.
        file.write_bytes(before)
        run(*command)
        assert output.read_bytes() == (tmp_path / "whole.csv").read_bytes()
        output.unlink()


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(x, marks=[pytest.mark.nightly] * (x != "appended to"))
        for x in CHANGES
    ],
)
def test_rows_keep_their_answers_whenever_the_file_changes(
    model, tmp_path, monkeypatch, kind
):
    monkeypatch.setattr(blocks, "BLOCK", 100)
    random, file = np.random.default_rng(0), tmp_path / "a.tsv"
    texts = ["".join(random.choice([*CHARACTERS], 12)) for _ in range(2000)]
    before = [f"{i}\t{text}\n" for i, text in enumerate(texts)]
    command = ("predict", model, file, "--workers", 1, "--text-column", 2, "--output")
    contents, truths = [], []
    for lines in (before, CHANGES[kind](before)):
        contents.append("".join(["id\ttext\n", *lines]).encode())
        file.write_bytes(contents[-1])
        start = time.monotonic()
        run(*command, tmp_path / f"{len(truths)}.jsonl")
        seconds = time.monotonic() - start
        truths.append((tmp_path / f"{len(truths)}.jsonl").read_bytes())
    refusals = 0
    for i, moment in enumerate(random.uniform(0, seconds, 10)):
        file.write_bytes(contents[0])
        timer = threading.Timer(moment, change, (file, contents[1], i % 2))
        timer.start()
        output = tmp_path / f"found_{i}.jsonl"
        result = run(*command, output, code=1)
        timer.join()
        if result.exit_code:
            assert isinstance(result.exception, albert_tf.AlbertError)
            refusals += 1
        else:
            assert output.read_bytes() in truths
    assert refusals


COMMAND = [sys.executable, "-m", "albert_tf_cli", "predict"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": PATH}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_is_resumed(model, tmp_path, number):
    write_table(tmp_path / "a.tsv", 9000)
    arguments = [model, "a.tsv", "--workers", "2", "--output"]
    settings = {"cwd": tmp_path, "env": ENVIRONMENT}
    process = subprocess.Popen([*COMMAND, *arguments, "killed.jsonl"], **settings)
    journal = tmp_path / ".killed.jsonl.answers"
    while not (journal.exists() and journal.read_bytes().count(b"\n") > 3):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait() == {signal.SIGKILL: -9, signal.SIGTERM: 130}[number]
    assert not (tmp_path / "killed.jsonl").exists()
    for name in ("killed.jsonl", "whole.jsonl"):
        subprocess.run([*COMMAND, *arguments, name], check=True, **settings)
    whole = (tmp_path / "whole.jsonl").read_bytes()
    assert (tmp_path / "killed.jsonl").read_bytes() == whole
    assert whole.count(b"\n") == 9000 and not journal.exists()


RAY = """
import os, pathlib, signal, sys, threading, time
import ray
import albert_tf_cli

def kill_one():
    while True:
        for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if file.read_bytes().startswith(b"ray::call_pickled"):
                    os.kill(int(file.parent.name), signal.SIGKILL)
                    print("killed", flush=True)
                    return
            except OSError:
                pass  # It has ended.
        time.sleep(0.01)

threading.Thread(target=kill_one, daemon=True).start()
ray.init(num_cpus=2, log_to_driver=False)
albert_tf_cli.main()
"""


@pytest.mark.nightly
@pytest.mark.skipif(
    not importlib.util.find_spec("ray") or not pathlib.Path("/proc/self").exists(),
    reason="needs Ray (extra [ray]), whose workers are found in /proc",
)
def test_a_killed_worker_of_ray_changes_nothing(model, tmp_path):
    write_table(tmp_path / "a.tsv", 9000)
    arguments = ["predict", model, tmp_path / "a.tsv", "--output"]
    command = [sys.executable, "-c", RAY, *map(str, arguments), "--engine=ray"]
    command.insert(-1, str(tmp_path / "ray.csv"))
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "killed" in done.stdout
    run(*arguments, tmp_path / "here.csv")
    here = (tmp_path / "here.csv").read_bytes()
    assert (tmp_path / "ray.csv").read_bytes() == here
