"""`albert-tf predict` on large files: formats, workers, resuming, Ray."""

import gzip
import importlib.util
import itertools
import json
import os
import pathlib
import re
import signal
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
import zstandard
from command_line import refused, run
from full_disk import full_disk
from lite_tasks import needs_onnx
from processes import kill_when, run_python, start_python
from small_classifier import CHARACTERS, small_classifier
from tiers import few

import albert_tf
from albert_tf.data.files.tables import read_table
from albert_tf_cli.shared import progress
from albert_tf_cli.shared.column_options import ColumnOptions
from albert_tf_cli.tasks import task_named
from albert_tf_cli.tasks.blocks import BLOCK, CheckedBlocks, file_blocks

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


def write_table(path, count):
    rows = (f"{i}\t{TEXTS[i % len(TEXTS)]}\t好\n" for i in range(count))
    path.write_text(f"{HEADER}\n{''.join(rows)}", "utf-8")
    return path


def journal_of(output):
    """The file that keeps the answers of an unfinished run."""
    return output.with_name(f".{output.name}.answers")


def answered_blocks(output):
    """Return how many blocks of an unfinished run have answers."""
    try:
        lines = journal_of(output).read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0
    # After a line of settings.
    return max(lines - 1, 0)


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
def test_each_format_is_answered_in_blocks(model, tmp_path, name):
    count = BLOCK + len(TEXTS)
    texts = [TEXTS[i % len(TEXTS)] for i in range(count)]
    table = pd.DataFrame({"id": range(count), "text": texts})
    INPUTS[name](table, tmp_path / name)
    answers = albert_tf.export.OnnxModel(model / "model.onnx").answers(texts)
    has_ids = not name.startswith("a.txt")
    names = ["text", "label", "score"]
    if has_ids:
        names.insert(0, "id")
    for ending in ("csv", "tsv", "jsonl", "parquet"):
        output = tmp_path / f"found.{ending}"
        run("predict", model, tmp_path / name, "--output", output, "--workers", 1)
        written = read_table(output).records()
        assert [list(x) for x in written] == count * [names]
        assert [x["text"] for x in written] == texts
        assert [x["label"] for x in written] == [x["label"] for x in answers]
        scores = [float(x["score"]) for x in written]
        assert scores == pytest.approx([x["score"] for x in answers], abs=1e-5)
        if has_ids:
            assert [int(x["id"]) for x in written] == list(range(count))
    if name == "a.parquet":
        before, after = map(pyarrow.parquet.read_schema, (tmp_path / name, output))
        assert before.types[0] == "int16" and after.types[:2] == before.types
        assert after.types[2:] == ["string", "double"]
    assert len(os.listdir(tmp_path)) == 1 + 4


def test_columns_that_begin_in_a_late_block(model, tmp_path):
    records: list[dict] = [{"text": text} for text in ["好"] * BLOCK + TEXTS]
    # Half of a surrogate pair, which UTF-8 cannot hold.
    records[-2]["text"] += "\ud83d"
    records[-3] |= {"date": "2026", "label": {"a": [1]}}
    records[-1] |= {"date": 7}
    lines = "\n".join(map(json.dumps, records))
    (tmp_path / "a.jsonl").write_text(lines, "utf-8")
    written = {}
    for ending in ("jsonl", "csv", "parquet"):
        output = tmp_path / f"found.{ending}"
        command = ("predict", model, tmp_path / "a.jsonl", "--output", output)
        run(*command, "--workers", 1)
        written[ending] = read_table(output).records()
    records[-2]["text"] = records[-2]["text"].replace("\ud83d", "?")
    for record, answered in zip(records, written["jsonl"], strict=True):
        assert answered | record == answered
    assert list(written["csv"][0]) == list(written["parquet"][0])
    assert {"date", "label", "predicted_label"} < {*written["csv"][0]}
    dates = [x["date"] for x in written["parquet"]]
    assert dates[-3:] == ["2026", None, "7"] and {*dates[:-3]} == {None}


def test_a_wrong_row_of_a_late_block_is_named_before_any_answer(model, tmp_path):
    file = write_table(tmp_path / "a.tsv", BLOCK + 1)
    file.write_text(file.read_text("utf-8") + "12\n", "utf-8")
    command = ("predict", model, file, "--output", tmp_path / "found.csv")
    assert f"Line {BLOCK + 3} of" in refused(*command)
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
    model, tmp_path, workers
):
    count = 2 * BLOCK + 4
    # Other characters in each block.
    lines = [f"很好{chr(0x9F00 + i // BLOCK) * 2}\n" for i in range(count)]
    for i in (BLOCK, 2 * BLOCK, count - 1):
        lines[i] = "好" * 200 + "\n"
    (tmp_path / "a.txt").write_text("".join(lines), "utf-8")
    with pytest.warns(UserWarning) as warned:
        run("predict", model, tmp_path / "a.txt", "--workers", workers)
    first, last = (str(x.message) for x in warned)
    assert first.startswith("50.0% of the tokens of 1,000 texts are [UNK]")
    assert last.startswith("3 of 2,004 texts are longer than the ")


# === Resuming ===


def mark(block):
    """Give a block of answers a label that no model has."""
    answers = [answer | {"label": "kept"} for answer in json.loads(block)]
    return json.dumps(answers).encode() + b"\n"


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_run_that_filled_the_disk_is_resumed(model, tmp_path, is_damaged):
    """Blocks of answers are kept, and those after a damage are computed again."""
    file = write_table(tmp_path / "a.tsv", 3 * BLOCK + 1)
    whole, resumed = tmp_path / "whole.jsonl", tmp_path / "resumed.jsonl"
    run("predict", model, file, "--output", whole, "--workers", 1)
    command = ("predict", model, file, "--output", resumed)
    with full_disk(130_000):
        error = refused(*command, "--workers", 1)
    assert "resumed.jsonl: File too large. Choose a disk" in error
    assert not resumed.exists()
    header, *blocks, part = journal_of(resumed).read_bytes().splitlines(True)
    assert len(blocks) == 2 and not part.endswith(b"\n")
    # A label that the model does not have shows which answers are kept.
    blocks = [mark(block) for block in blocks]
    if is_damaged:
        blocks[1] = blocks[1].replace(b"label", b"la", 1)[:-9] + b"\n"
    journal_of(resumed).write_bytes(b"".join([header, *blocks, part]))
    # Another command does not continue it.
    assert "unfinished run with other top_k." in refused(*command, "--top-k", 0)
    other = write_table(tmp_path / "other.tsv", 3 * BLOCK)
    command = ("predict", model, other, "--output", resumed)
    assert "unfinished run with other texts." in refused(*command)
    # Texts of another file and in another form are the same.
    moved = tmp_path / "moved.csv"
    moved.write_text(file.read_text("utf-8").replace("\t", ","), "utf-8")
    with warnings.catch_warnings(record=True, action="always") as warned:
        run("predict", model, moved, "--output", resumed, "--workers", 2)
    messages = [str(x.message) for x in warned if ".answers" in str(x.message)]
    rows = read_table(resumed).records()
    if is_damaged:
        (message,) = messages
        assert message.startswith("Line 3 of") and "is damaged" in message
        kept = BLOCK
    else:
        assert not messages
        kept = 2 * BLOCK
    assert [row["predicted_label"] for row in rows[:kept]] == ["kept"] * kept
    assert rows[kept:] == read_table(whole).records()[kept:]
    assert not [*tmp_path.glob(".*")]


def test_a_model_without_an_exported_file_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "LINE_EVERY", 0.01)
    small_classifier(2).save_to_preset(tmp_path / "model")
    file, output = write_table(tmp_path / "a.tsv", BLOCK + 200), tmp_path / "b.tsv"
    command = ("predict", tmp_path / "model", file, "--output", output)
    command += ("--batch-size", 200)
    with full_disk(50_000):
        run(*command, code=1)
    header, block, _ = journal_of(output).read_bytes().splitlines(True)
    journal_of(output).write_bytes(header + mark(block))
    printed = run(*command).stderr
    line = r"^predict: texts 1,\d00 of 1,200, [\d,.]+ texts per s, 0 min \d+ s left$"
    assert re.search(line, printed, re.MULTILINE)
    labels = [x["predicted_label"] for x in read_table(output).records()]
    assert labels[:BLOCK] == ["kept"] * BLOCK and "kept" not in labels[BLOCK:]
    error = refused(*command[:3], "--engine=ray")
    assert "--engine ray needs an exported model" in error


# === A file that changes meanwhile ===


COLUMNS = ColumnOptions()
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


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("kind", CHANGES)
def test_a_file_that_changes_is_noticed(tmp_path, kind, in_place):
    """While its texts are answered, or before its rows are written beside them."""
    file = write_table(tmp_path / "a.tsv", 2 * BLOCK + 1)
    before, state = file.read_bytes(), file.stat()
    after = "".join(CHANGES[kind](before.decode().splitlines(True))).encode()
    for blocks_before in (1, 3):
        read = file_blocks(task_named("text-classification"), file, COLUMNS, ("text",))
        blocks = CheckedBlocks(read, str(file))
        reading = blocks()
        for _ in range(blocks_before):
            next(reading)
        change(file, after, in_place)
        # As if within the resolution of the clock.
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
        with pytest.raises(albert_tf.AlbertError, match="a.tsv has changed since"):
            for _ in itertools.chain(reading, blocks()):
                pass
        file.write_bytes(before)


def test_the_right_file_resumes_after_another_was_refused(model, tmp_path):
    file, output = write_table(tmp_path / "a.tsv", 5 * BLOCK), tmp_path / "b.csv"
    command = ("predict", model, file, "--workers", 1, "--output")
    run(*command, tmp_path / "whole.csv")
    before = file.read_bytes()

    def append_a_row():
        while not answered_blocks(output):
            time.sleep(0.001)
        change(file, before + "5000\t好\t好\n".encode(), in_place=False)

    thread = threading.Thread(target=append_a_row, daemon=True)
    thread.start()
    assert "a.tsv has changed since" in refused(*command, output)
    thread.join()
    assert not output.exists()
    assert "unfinished run with other texts" in refused(*command, output)
    file.write_bytes(before)
    run(*command, output)
    assert output.read_bytes() == (tmp_path / "whole.csv").read_bytes()


@pytest.mark.parametrize("kind", few(CHANGES, ("appended to",)))
def test_rows_keep_their_answers_whenever_the_file_changes(model, tmp_path, kind):
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


PREDICT = "import albert_tf_cli; albert_tf_cli.main()"


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        pytest.param(signal.SIGTERM, 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, -9, marks=pytest.mark.slow),
    ],
)
def test_a_killed_run_is_resumed(model, tmp_path, number, code):
    # More blocks than two workers take ahead of the answers.
    count = 8 * BLOCK
    killed, whole = tmp_path / "killed.jsonl", tmp_path / "whole.jsonl"
    table = write_table(tmp_path / "a.tsv", count)
    command = ("predict", model, table, "--output")
    process = start_python(PREDICT, *command, killed, "--workers", 2)
    printed, _ = kill_when(process, lambda: answered_blocks(killed) > 0, number)
    assert process.returncode == code
    assert ("The same command resumes" in printed) == (number != signal.SIGKILL)
    assert not killed.exists()
    for output in (killed, whole):
        run(*command, output, "--workers", 1)
    assert killed.read_bytes() == whole.read_bytes()
    assert whole.read_bytes().count(b"\n") == count
    assert not journal_of(killed).exists()


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
    table = write_table(tmp_path / "a.tsv", 9000)
    command = ("predict", model, table, "--output")
    assert "killed" in run_python(RAY, *command, tmp_path / "ray.csv", "--engine=ray")
    run(*command, tmp_path / "here.csv")
    here = (tmp_path / "here.csv").read_bytes()
    assert (tmp_path / "ray.csv").read_bytes() == here
