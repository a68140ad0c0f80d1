"""LiteRT and ONNX files: Keras' numbers, weights once, run without TensorFlow."""

import functools
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import sentence_piece_reference
import tensorflow as tf
from lite_tasks import (
    FORMATS,
    TASKS,
    needs_litert,
    needs_onnx,
    small_task,
    write_litert,
    write_onnx,
)
from small_classifier import TEXTS, randomised, small_backbone

from albert_tf.export import LiteRTModel, OnnxModel, litert, onnx
from albert_tf.export.engines import largest_difference
from albert_tf.models import AlbertMaskedLM, AlbertTextEmbedder, AlbertTokenClassifier
from albert_tf.tokenizers import SentencePieceTokenizer

ROOT = pathlib.Path(__file__).parents[2]
MICRO = ROOT / "examples" / "albert_micro_zh"

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* texts are longer"),
    # Of Keras.
    pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`"),
]
ONE_LENGTH = {write_litert: {"lengths": (128,)}, write_onnx: {}}
LENGTHS = {write_litert: {"lengths": (64, 128)}, write_onnx: {}}
# LiteRT's converter takes seconds for each file; tests/lite has all tasks in ONNX.
FAST = {write_litert: {"labels", "tags"}, write_onnx: {"google pairs", "tags"}}


def tasks_in_formats():
    for parameter in FORMATS:
        (write,) = parameter.values
        for name in TASKS:
            marks = [] if name in FAST[write] else [pytest.mark.nightly]
            yield pytest.param(
                *(name, write),
                marks=[*parameter.marks, *marks],
                id=f"{name}-{parameter.id}",
            )


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A function of a task's name and format: the task, its texts, the file, opened."""
    folder = tmp_path_factory.mktemp("written")

    @functools.cache
    def write_once(name, write):
        task, texts = small_task(name)
        path = folder / f"{name}.{write.__name__}"
        return task, texts, path, write(task, path)

    return write_once


def reviews(count):
    lines = (ROOT / "examples/reviews/test.tsv").read_text("utf-8").splitlines()
    return [line.split("\t")[1] for line in lines[1 : count + 1]]


def float_bytes(task):
    return sum(4 * int(np.prod(weight.shape)) for weight in task.weights)


# --- The numbers ---


@pytest.mark.parametrize("name, write", tasks_in_formats())
def test_answers_are_those_of_keras(name, write, written):
    task, texts, _, model = written(name, write)

    assert largest_difference(task, model, texts) < 1e-5

    answers = model.predict(texts)
    if "spans" in answers:
        expected = task.predict_spans(texts, verbose=0)
        assert [[span[:3] for span in row] for row in answers["spans"]] == [
            [span[:3] for span in row] for row in expected
        ]
        # Also of texts longer than a window.
        assert max(span[1] for row in expected for span in row) > 14
        return
    outputs = task.predict(texts, verbose=0)
    expected = task.answers(tf.constant(outputs))
    assert list(answers) == list(expected)
    for name, value in expected.items():
        value = value.numpy()
        if value.dtype.kind == "f":
            np.testing.assert_allclose(answers[name], value, atol=1e-5)
            # Not all the same, as of weights that were lost.
            assert np.ptp(answers[name], axis=0).min() > 1e-3
        elif value.dtype.kind == "O":
            assert np.char.encode(answers[name], "utf-8").tolist() == value.tolist()
        else:
            np.testing.assert_array_equal(answers[name], value)
        assert answers[name].dtype.kind in (value.dtype.kind, "U")


@pytest.mark.parametrize("write", FORMATS)
def test_no_texts_and_wrong_texts(write, written):
    *_, model = written("labels", write)
    nothing = model.predict([])
    assert nothing["probabilities"].shape == (0, 3) and nothing["label"].shape == (0,)
    for texts, error, message in (
        ("好", TypeError, "list of strings. Received: '好'"),
        (["好", 3], TypeError, "Received: .*3"),
        ((["好"], ["好", "差"]), ValueError, "1 and 2 texts"),
    ):
        with pytest.raises(error, match=message):
            model.predict(texts)
    *_, tagger = written("tags", write)
    with pytest.raises(ValueError, match="takes 1 list"):
        tagger.predict((TEXTS, TEXTS))


@needs_litert
def test_a_text_runs_in_the_shortest_signature_and_is_cut_to_the_longest(
    written, tmp_path
):
    task, *_, unlimited = written("labels", write_litert)
    # What is longer than the preprocessor gives is not written.
    assert unlimited.lengths == [16, 29]
    model = write_litert(task, tmp_path / "model", lengths=(12, 8))
    assert model.lengths == [8, 12]
    with pytest.warns(UserWarning, match="1 of 2 texts are longer than the 12"):
        long, _ = model.predict(["好" * 25, "好"])["probabilities"]
    (cut,) = model.predict(["好" * 10])["probabilities"]
    np.testing.assert_array_equal(long, cut)


@pytest.mark.parametrize("write", FORMATS[1:])
def test_half_precision_and_low_rank_weights_are_written_in_float32(write, tmp_path):
    task, texts = small_task("tags", dtype="mixed_bfloat16")
    same, _ = small_task("tags")
    assert largest_difference(same, write(task, tmp_path / "half"), texts) < 1e-5
    task, texts = small_task("labels")
    task.backbone.enable_lora(2, ["query_key_value", "output_dense"])
    rng = np.random.default_rng(1)
    for weight in task.backbone.trainable_weights:
        weight.assign(rng.normal(0, 0.3, weight.shape))
    unadapted, _ = small_task("labels")
    model = write(task, tmp_path / "model")
    assert largest_difference(task, model, texts) < 1e-5
    assert largest_difference(unadapted, model, texts) > 1e-3


@pytest.mark.parametrize("write", FORMATS)
def test_a_sentence_piece_model_travels_in_the_file(write, tmp_path):
    proto = sentence_piece_reference.train_model()
    size = SentencePieceTokenizer(proto).vocabulary_size()
    backbone = small_backbone(vocabulary_size=size, max_sequence_length=20)
    kind = AlbertTokenClassifier
    task = randomised(kind.from_backbone(backbone, proto, labels=["A", "B", "C"]))
    model = write(task, tmp_path / "model", **ONE_LENGTH[write])
    texts = sentence_piece_reference.TEXT.splitlines()[:3]
    found = [[span[:3] for span in row] for row in model.predict(texts)["spans"]]
    assert found == task.predict(texts, verbose=0)
    assert max(span[1] for row in found for span in row) > 40


# --- Sizes and precisions ---


@pytest.fixture(scope="module")
def embedder():
    return AlbertTextEmbedder.from_checkpoint(MICRO)


@needs_onnx
def test_weights_are_written_once(embedder, tmp_path):
    write_onnx(embedder, tmp_path / "model")
    size = (tmp_path / "model").stat().st_size
    assert size == pytest.approx(float_bytes(embedder), rel=0.05)


@pytest.mark.parametrize("write", FORMATS)
@pytest.mark.parametrize(
    "precision, share, least",
    [
        ("int8", 0.3, 0.98),
        pytest.param("float16", 0.52, 0.9999, marks=pytest.mark.slow),
    ],
)
def test_small_files_give_nearly_the_same_vectors(
    write, precision, share, least, embedder, tmp_path
):
    if (write, precision) == (write_onnx, "float16"):
        pytest.skip("ONNX files are not written in half precision")
    options = {"precision": precision, **LENGTHS[write]}
    model = write(embedder, tmp_path / "model", **options)
    # Once, for all lengths of LiteRT.
    assert (tmp_path / "model").stat().st_size < share * float_bytes(embedder)
    texts = reviews(30)
    expected = embedder.encode_text(texts)
    found = model.predict(texts)["embedding"]
    assert np.sum(expected * found, axis=1).min() > least
    # They are told apart as well as by Keras.
    assert np.abs(found @ found.T - expected @ expected.T).max() < 0.05


# --- Without this package ---

# What must be unneeded is as if it were not installed.
BLOCKED = ("tensorflow", "tensorflow_text", "keras", "keras_hub", "albert_tf")
RUN = """
import importlib.abc, json, sys

class NotInstalled(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in %r:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled())
import albert_tf_lite

request = json.load(sys.stdin)
for kind, path in request["files"]:
    answers = getattr(albert_tf_lite, kind)(path).predict(request["texts"])
    lists = {k: v if type(v) is list else v.tolist() for k, v in answers.items()}
    print(json.dumps(lists))
"""


@needs_litert
@needs_onnx
def test_files_are_run_without_tensorflow(written, tmp_path):
    opened = [
        written(name, write)[2:]
        for name in ("labels", "tags")
        for write in (write_litert, write_onnx)
    ]
    files = [[type(model).__name__, str(path)] for path, model in opened]
    # The folder of the package, copied.
    shutil.copytree(ROOT / "albert_tf_lite", tmp_path / "albert_tf_lite")
    done = subprocess.run(
        [sys.executable, "-c", RUN % (BLOCKED,)],
        input=json.dumps({"files": files, "texts": TEXTS}),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for one, (_, model) in zip(found, opened, strict=True):
        expected = model.predict(TEXTS)
        assert list(one) == list(expected)
        if "spans" in one:
            assert one["spans"] == json.loads(json.dumps(expected["spans"]))
        else:
            assert one["label"] == expected["label"].tolist()
            np.testing.assert_allclose(
                one["probabilities"], expected["probabilities"], atol=1e-6
            )


# --- Refusals ---


@pytest.mark.parametrize("write", FORMATS)
def test_wrong_files_are_named(write, written, tmp_path):
    *_, path, model = written("labels", write)
    with pytest.raises(FileNotFoundError, match="nothing"):
        type(model)(tmp_path / "nothing")
    content = path.read_bytes()
    for name, data in {"text": b"notes", "cut": content[: len(content) // 2]}.items():
        (tmp_path / name).write_bytes(data)
        # A file of the other format is refused, too.
        for kind in (type(model), LiteRTModel, OnnxModel):
            with pytest.raises(ValueError, match=f"{name} is truncated, or was not"):
                kind(tmp_path / name)
    with pytest.raises(ValueError, match="is truncated, or was not"):
        (LiteRTModel if write is write_onnx else OnnxModel)(path)


@pytest.mark.parametrize(
    "module, extra, act",
    [
        ("ai_edge_litert", "litert", lambda path: LiteRTModel(path)),
        ("onnxruntime", "onnx", lambda path: OnnxModel(path)),
        ("onnx", "onnx", lambda path: onnx(small_task("labels")[0], path)),
    ],
)
def test_missing_library_is_named_with_its_extra(
    module, extra, act, tmp_path, monkeypatch
):
    path = tmp_path / "model"
    path.write_bytes(b"anything")
    for name in [x for x in sys.modules if x.split(".")[0] == module] + [module]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf"albert-tf\[{extra}\]"):
        act(path)
    assert path.read_bytes() == b"anything"


@pytest.mark.parametrize("write", [litert, onnx])
def test_what_cannot_be_written_is_refused(write, tmp_path):
    path = tmp_path / "model"
    task, _ = small_task("labels")
    with pytest.raises(ValueError, match="float32.*int8.*Received: 'int4'"):
        write(task, path, precision="int4")
    with pytest.raises(ValueError, match="AlbertMaskedLM"):
        write(AlbertMaskedLM.from_checkpoint(MICRO), path)
    if write is litert:
        with pytest.raises(ValueError, match="numbers from 5"):
            litert(task, path, lengths=(4, 32))
    else:
        mish, _ = small_task("labels", activation="mish")
        with pytest.raises(ValueError, match="mish.*cannot be exported to ONNX"):
            onnx(mish, path)
    task.quantize("int8")
    with pytest.raises(ValueError, match="quantized by Keras"):
        write(task, path)
    task.preprocessor = None
    with pytest.raises(ValueError, match="no preprocessor"):
        write(task, path)
    assert list(tmp_path.iterdir()) == []


@needs_onnx
def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    task, _ = small_task("labels")
    path = tmp_path / "model"
    path.write_bytes(b"the model of yesterday")

    def write_bytes(self, data):
        with open(self, "wb") as file:
            file.write(data[:100])
        raise OSError("No space left on device")

    monkeypatch.setattr(pathlib.Path, "write_bytes", write_bytes)
    with pytest.raises(OSError, match="No space left"):
        onnx(task, path)
    assert [x.name for x in tmp_path.iterdir()] == ["model"]
    assert path.read_bytes() == b"the model of yesterday"
