"""Processes that answer for months: memory, log lines, files, read-only systems."""

import base64
import importlib
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tracemalloc
import warnings

import hypothesis
import hypothesis.strategies as st
import pytest
from lite_tasks import (
    near,
    needs_litert,
    needs_onnx,
    small_task,
    write_litert,
    write_onnx,
)
from processes import run_python
from small_classifier import VOCABULARY

import albert_tf
import albert_tf_lite
from albert_tf_cli.shared.exported_files import open_network
from albert_tf_lite.errors import import_extra
from albert_tf_lite.packing import PackedRow, batches_of, pad
from albert_tf_lite.unknown import warn
from albert_tf_lite.word_piece import WordPieceTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]


FORKING = """
import os, sys
import albert_tf_lite
model = dict(litert=albert_tf_lite.LiteRTModel, onnx=albert_tf_lite.OnnxModel)["{}"]
for threads in (1, 2):
    opened = model(sys.argv[1], threads)
    opened.answers(["好"])
    if not os.fork():
        try:
            print(opened.answers(["好"]), flush=True)
        except albert_tf_lite.AlbertError as error:
            print(error, flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture
def traced():
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()


def test_words_take_a_bounded_part_of_memory(traced):
    """Kept, the pieces of these words would take hundreds of MB."""
    tokenizer, draw = WordPieceTokenizer(VOCABULARY), random.Random(0)
    for size, count in ((20, 1000), (90, 500), (5_000, 2)):
        for _ in range(count):
            tokenizer.tokenize("".join(draw.choices("abcdefghij", k=size)))
    tokenizer.tokenize(base64.b64encode(draw.randbytes(7_500)).decode())
    kept = traced()
    # 1,000 words of 20 pieces, a sixteenth of those that are kept.
    assert 1 < kept < 2.5
    # The table of characters keeps those of the basic plane.
    before = traced()
    tokenizer.tokenize("".join(map(chr, range(0x10000, 0x14000))))
    assert traced() - before < 1


def test_warnings_about_requests_are_not_kept(traced):
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for _ in range(2):
            warn(UserWarning("The same texts"))
        assert len(shown) == 1
        for i in range(3000):
            warn(UserWarning(f"{i} texts" + 1000 * "!"))
            shown.clear()
    assert "__warningregistry__" not in globals()
    assert traced() < 2


@hypothesis.given(st.lists(st.integers(2, 128), max_size=40), st.integers(1, 9))
def test_batches_hold_each_row_once_and_little_padding(lengths, batch_size):
    batches = batches_of(lengths, batch_size)
    assert sorted(i for batch in batches for i in batch) == [*range(len(lengths))]
    for batch in batches:
        ids = [[0] * lengths[i] for i in batch]
        rows = [PackedRow(x, x, is_truncated=False) for x in ids]
        padded = pad(rows, 0, 128)["token_ids"].shape
        assert len(batch) <= batch_size
        # Rows are padded to multiples of 8 even when they are alone.
        alone = [pad([row], 0, 128)["token_ids"].shape[1] for row in rows]
        assert padded[1] <= 1.25 * min(alone)
    # A short row joins the next batch only where the first is full.
    assert len(batches_of([5] * 12, 4)) == 3


@needs_onnx
def test_telemetry_is_off_unless_the_user_turned_it_on(monkeypatch):
    name, during = "ORT_DISABLE_TELEMETRY", []
    imported = importlib.import_module

    def watch(module):
        during.append(os.environ[name])
        return imported(module)

    monkeypatch.setattr(importlib, "import_module", watch)
    for given, expected in ((None, "1"), ("0", "0")):
        monkeypatch.delenv(name, raising=False)
        if given:
            monkeypatch.setenv(name, given)
        import_extra("onnxruntime")
        # The variable is set while the package is imported.
        assert during.pop() == expected and os.environ.get(name) == given


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
@pytest.mark.parametrize(
    "write",
    [
        pytest.param(write_litert, marks=[pytest.mark.slow, needs_litert], id="litert"),
        pytest.param(write_onnx, marks=needs_onnx, id="onnx"),
    ],
)
def test_a_network_with_threads_refuses_to_answer_after_a_fork(write, tmp_path):
    """The thread pool of ONNX Runtime would end the process with SIGSEGV."""
    write(small_task("labels")[0], tmp_path / "model")
    script = FORKING.format(write.__name__.replace("write_", ""))
    output = run_python(script, str(tmp_path / "model"), PYTHONPATH=str(ROOT))
    one, several = output.splitlines()
    assert "label" in one and "was opened before this process was forked" in several


@needs_onnx
def test_the_network_beside_a_model_answers_for_it(tmp_path):
    task, texts = small_task("labels")
    task.save_to_preset(tmp_path)
    with pytest.raises(ValueError, match="has no model.onnx"):
        albert_tf_lite.pipeline(tmp_path)
    albert_tf.export.onnx(task, tmp_path / "model.onnx", preset=tmp_path)
    assert albert_tf.models.AlbertTextClassifier.from_checkpoint(tmp_path).labels
    answer = albert_tf_lite.pipeline(tmp_path, top_k=2)
    expected = albert_tf.pipeline(path=task, top_k=2)
    assert near(answer(texts)) == expected(texts)
    assert near(answer("很好", top_k=1)) == expected("很好", top_k=1)
    with pytest.raises(ValueError, match="no option targets. Its .* batch_size, top_k"):
        answer("很好", targets=[])
    other, _ = small_task("google pairs")
    other.save_to_preset(tmp_path / "other")
    weights = "model.weights.h5"
    (tmp_path / "other" / weights).replace(tmp_path / weights)
    with pytest.raises(ValueError, match="is not of the model beside it"):
        albert_tf_lite.pipeline(tmp_path)


@needs_onnx
def test_int8_answers_where_it_agrees_with_float32(tmp_path):
    import onnx

    task, texts = small_task("labels")
    network, int8 = tmp_path / "model.onnx", tmp_path / "model.int8.onnx"

    def write():
        task.save_to_preset(tmp_path)
        albert_tf.export.onnx(task, network, preset=tmp_path)

    def opened(**options):
        return pathlib.Path(albert_tf_lite.pipeline(tmp_path, **options).answerer.path)

    write()
    with pytest.raises(ValueError, match=r"has no model.int8.onnx, .* as good as"):
        opened(precision="int8")
    options = {"precision": "int8", "preset": tmp_path, "compare": texts}
    albert_tf.export.onnx(task, int8, **options)
    # Of too few texts.
    assert opened() == network and opened(precision="int8") == int8
    model = onnx.load(int8)
    settings = json.loads(model.metadata_props[0].value)
    # The checksum, which another content would not have.
    del model.metadata_props[1:]
    for answers, examples, expected in (
        (0.995, 200, int8),
        (0.9949, 10_000, network),
        (1.0, 199, network),
        (1.0, 200, int8),
    ):
        settings["agreement"] = {"answers": answers, "examples": examples}
        model.metadata_props[0].value = json.dumps(settings)
        onnx.save(model, int8)
        assert opened() == expected
    assert opened(precision="float32") == network
    with pytest.raises(ValueError, match="holds other weights than the model"):
        other, _ = small_task("labels", hidden_dim=64)
        albert_tf.export.onnx(other, network, preset=tmp_path)
    # Other weights, with which only float32 was written again.
    task.output_dense.bias.assign_add([0.1, 0.0, 0.0])
    write()
    assert opened() == network
    with pytest.raises(ValueError, match=r"int8.onnx is not of the model beside it"):
        opened(precision="int8")
    for path, name in ((tmp_path, "float16"), (network, "int8")):
        with pytest.raises(ValueError, match="`precision`"):
            albert_tf_lite.pipeline(path, precision=name)


def test_a_damaged_network_beside_a_model_is_named(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"\x08\x07")
    pytest.importorskip("onnxruntime")
    with pytest.warns(UserWarning, match=r"is truncated.*TensorFlow answers"):
        assert open_network(str(tmp_path)) is None


# Threads load models while another one logs.
LOADING = """
import os, sys, threading
before = os.readlink("/proc/self/fd/2")
done, count = threading.Event(), 0
def log():
    global count
    while not done.wait(0.001):
        os.write(2, f"log line {count}\\n".encode())
        count += 1
logger = threading.Thread(target=log)
logger.start()
import albert_tf_lite
def load(file):
    for _ in range(2):
        model = albert_tf_lite.pipeline(file, threads=1)
        assert model.answerer.threads == 1
        model("很好")
threads = [threading.Thread(target=load, args=[x]) for x in sys.argv[1:] * 3]
[x.start() for x in threads]
import albert_tf
[x.join() for x in threads]
done.set()
logger.join()
assert os.readlink("/proc/self/fd/2") == before
print(count)
"""


@pytest.mark.nightly
@needs_onnx
@needs_litert
def test_no_log_line_is_lost_and_nothing_is_written(tmp_path):
    task, _ = small_task("labels")
    home, files = tmp_path / "home", [tmp_path / "a.onnx", tmp_path / "a.tflite"]
    home.mkdir()
    albert_tf.export.onnx(task, files[0])
    albert_tf.export.litert(task, files[1])
    environment = {"HOME": str(home), "PYTHONPATH": str(ROOT), "MPLCONFIGDIR": "/tmp"}
    command = [sys.executable, "-c", LOADING, *map(str, files)]
    with open(tmp_path / "log", "w+b") as log:
        done = subprocess.run(command, stdout=-1, stderr=log, env=environment)
        log.seek(0)
        written = log.read().decode()
    assert done.returncode == 0, written
    # Native code writes its lines in several parts, between which others may be.
    found = {int(x) for x in re.findall(r"log line (\d+)\n", written)}
    count = int(done.stdout)
    assert count > 300 and found == {*range(count)}
    # ONNX Runtime would write a device id.
    assert {x.name for x in home.rglob("*") if x.is_file()} <= {"keras.json"}


# No file system of a test is read-only for root.
READ_ONLY = """
import sys, tempfile
tempfile._candidate_tempdir_list = list
import albert_tf_cli
sys.argv[0] = "albert-tf"
albert_tf_cli.main()
"""


@pytest.mark.nightly
@needs_onnx
def test_a_process_without_home_and_temporary_folder_answers(tmp_path):
    task, _ = small_task("labels")
    task.save_to_preset(tmp_path / "model")
    albert_tf.export.onnx(task, tmp_path / "model.onnx")
    answers = set()
    for path in (tmp_path / "model", tmp_path / "model.onnx"):
        command = [sys.executable, "-c", READ_ONLY, "predict", str(path), "很好"]
        environment = {"HOME": "/nonexistent", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, capture_output=True, env=environment)
        assert done.returncode == 0, done.stderr
        answers.add(done.stdout)
    assert len(answers) == 1
    assert albert_tf_lite.pipeline(tmp_path / "model.onnx")("很好")
