"""LiteRT and ONNX files: Keras' numbers, weights once, run without TensorFlow."""

import functools
import json
import pathlib
import pickle
import re
import shutil
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sentence_piece_reference
import tensorflow as tf
from hostile_files import LFS_POINTER
from lite_tasks import (
    FORMATS,
    TASKS,
    near,
    needs_litert,
    needs_onnx,
    small_task,
    write_litert,
    write_onnx,
)
from processes import run_python
from small_classifier import TEXTS, VOCABULARY, randomised, small_backbone

import albert_tf
import albert_tf_lite
from albert_tf import models
from albert_tf.export import LiteRTModel, OnnxModel, engines, exported, litert, onnx
from albert_tf.export.engines import largest_difference
from albert_tf.tokenizers import SentencePieceTokenizer
from albert_tf_cli.shared.exported_files import open_network
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.exported_model import SETTINGS

ROOT = pathlib.Path(__file__).parents[2]
MICRO = ROOT / "examples" / "albert_micro_zh"

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* texts are longer"),
    # From Keras.
    pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`"),
]
LENGTHS = {write_litert: {"lengths": (64, 128)}, write_onnx: {}}
# LiteRT's converter takes seconds for each file.
FAST = ("tags",)
# Tasks whose files are ONNX only.
ONNX_ONLY = ("questions", "choices")


def tasks_in_formats():
    for parameter in FORMATS:
        is_onnx = parameter.values == (write_onnx,)
        for name in TASKS:
            if is_onnx or name not in ONNX_ONLY:
                marks = [] if is_onnx or name in FAST else [pytest.mark.nightly]
                marks += parameter.marks
                title = f"{name}-{parameter.id}"
                yield pytest.param(name, *parameter.values, marks=marks, id=title)


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


# --- The numbers ---


@pytest.mark.parametrize("name, write", tasks_in_formats())
def test_answers_are_those_of_keras(name, write, written):
    task, texts, _, model = written(name, write)

    assert largest_difference(task, model, texts) < 1e-5

    x = list(zip(*texts, strict=True)) if isinstance(texts, tuple) else texts
    pipeline = albert_tf.pipeline(model.task, task)
    assert near(model.answers(texts)) == pipeline(x)
    assert model.pairs == getattr(task, "pairs", False)
    if model.task in ("text-classification", "multi-label"):
        for top_k in (1, 2, None):
            assert near(model.answers(texts, top_k=top_k)) == pipeline(x, top_k=top_k)
        with pytest.raises(ValueError, match="`top_k` must be an int"):
            model.answers(texts, top_k=0)
    if name == "embedding":
        # Pairs are compared.
        pairs = texts, texts[::-1]
        assert near(model.answers(pairs)) == pipeline(list(zip(*pairs, strict=True)))
        assert model.answers((texts,)) == model.answers(texts)
    answers = model.predict(texts)
    if name == "tags":
        # Also of texts longer than a window.
        assert max(span[1] for row in answers["spans"] for span in row) > 14
    elif name not in ONNX_ONLY:
        expected = task.postprocess(tf.constant(task.predict(texts, verbose=0)))
        assert list(answers) == list(expected)
        for name, value in expected.items():
            if value.dtype.is_floating:
                np.testing.assert_allclose(answers[name], value, atol=1e-5)
                # Unlike for lost weights, the texts differ.
                assert np.ptp(answers[name], axis=0).min() > 1e-3
            else:
                np.testing.assert_array_equal(tf.constant(answers[name]), value)


@pytest.mark.parametrize("write", FORMATS[1:])
def test_low_rank_weights_are_merged(write, tmp_path):
    task, texts = small_task("labels")
    task.backbone.enable_lora(2, ["query_key_value", "output_dense"])
    rng = np.random.default_rng(1)
    for weight in task.backbone.trainable_weights:
        weight.assign(rng.normal(0, 0.3, weight.shape))
    model = write(task, tmp_path / "model")
    assert largest_difference(task, model, texts) < 1e-5


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(write_litert, marks=[needs_litert, pytest.mark.slow], id="litert"),
        pytest.param(write_onnx, marks=needs_onnx, id="onnx"),
    ],
)
def test_a_sentence_piece_model_travels_in_the_file(write, tmp_path):
    proto = sentence_piece_reference.train_model()
    size = SentencePieceTokenizer(proto).vocabulary_size()
    backbone = small_backbone(vocabulary_size=size, max_sequence_length=20)
    cls, labels = models.AlbertTokenClassifier, ["A", "B", "C"]
    task = randomised(cls.from_backbone(backbone, proto, labels=labels))
    model = write(task, tmp_path / "model", **LENGTHS[write])
    texts = sentence_piece_reference.TEXT.splitlines()[:3]
    found = [[span[:3] for span in row] for row in model.predict(texts)["spans"]]
    assert found == task.predict(texts, verbose=0)
    assert max(span[1] for row in found for span in row) > 40


@needs_onnx
def test_a_pipeline_exports_once_for_concurrent_calls(monkeypatch):
    written = []

    def counted(*args, **options):
        written.append(args)
        onnx(*args, **options)

    monkeypatch.setitem(engines.ENGINES, "onnx", (counted, OnnxModel))
    task, texts = small_task("labels")
    pipeline = albert_tf.pipeline("text-classification", task, engine="onnx")
    with ThreadPoolExecutor(3) as pool:
        first, *others = pool.map(pipeline, [texts] * 3)
    assert others == [first] * 2
    assert len(written) == 1
    # Unlike `exported`, which has the weights of the moment.
    before = exported(task)
    task.output_dense.bias.assign(task.output_dense.bias + 5.0)
    moved = exported(task).outputs(texts)
    np.testing.assert_allclose(moved, before.outputs(texts) + 5.0, atol=1e-4)


# --- Sizes and precisions ---


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(
            write_litert, marks=[pytest.mark.nightly, needs_litert], id="litert"
        ),
        pytest.param(write_onnx, marks=needs_onnx, id="onnx"),
    ],
)
def test_small_files_give_nearly_the_same_vectors(write, tmp_path):
    file = tmp_path / f"model.{'onnx' if write is write_onnx else 'tflite'}"
    embedder = models.AlbertTextEmbedder.from_checkpoint(MICRO)
    size = sum(4 * int(np.prod(weight.shape)) for weight in embedder.weights)
    # Weights are written once, also for several lengths of LiteRT.
    if write is write_onnx:
        write(embedder, file)
        assert file.stat().st_size == pytest.approx(size, rel=0.05)
    model = write(embedder, file, precision="int8", **LENGTHS[write])
    # ONNX has the token embeddings in 16 bits.
    assert file.stat().st_size < (0.4 if write is write_onnx else 0.3) * size
    lines = (ROOT / "examples/reviews/test.tsv").read_text("utf-8").splitlines()
    texts = [line.split("\t")[1] for line in lines[1:31]]
    expected = embedder.encode_text(texts)
    found = model.predict(texts)["embedding"]
    assert np.sum(expected * found, axis=1).min() > 0.98
    # No scale is shared with the other texts of a batch.
    alone = model.predict(texts, batch_size=1)["embedding"]
    np.testing.assert_allclose(alone, found, atol=1e-5)


@needs_onnx
@pytest.mark.parametrize(
    "name", ["labels", "multi-label", "tags", "questions", "choices"]
)
def test_an_int8_file_has_the_share_of_equal_answers(name, tmp_path):
    task, texts = small_task(name)
    whole = write_onnx(task, tmp_path / "whole.onnx").predict(texts)
    options = {"precision": "int8", "compare": texts}
    model = write_onnx(task, tmp_path / "int8.onnx", **options)
    found, count = model.predict(texts), len(texts[0] if name in ONNX_ONLY else texts)
    key = {"tags": "spans", "multi-label": "chosen", "questions": "start"}.get(
        name, "label_id"
    )
    pairs = zip(whole[key], found[key], strict=True)
    if name == "tags":
        pairs = ([[x[:3] for x in row] for row in pair] for pair in pairs)
    equal = [np.array_equal(*pair) for pair in pairs]
    expected = {"answers": np.mean(equal), "examples": count}
    assert model.settings["agreement"] == pytest.approx(expected)


# --- Without this package ---

# Imported as if these were not installed.
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
    print(json.dumps(getattr(albert_tf_lite, kind)(path).answers(request["texts"])))
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
    request = json.dumps({"files": files, "texts": TEXTS})
    output = run_python(RUN % (BLOCKED,), input=request, cwd=tmp_path, PYTHONPATH="")
    found = [json.loads(line) for line in output.splitlines()]
    assert found == [model.answers(TEXTS) for _, model in opened]


# --- Refusals ---


@pytest.mark.parametrize("write", FORMATS)
def test_wrong_texts_and_files_are_named(write, written, tmp_path):
    task, *_, path, model = written("labels", write)
    assert model.predict([])["probabilities"].shape == (0, 3)
    for texts, error, message in (
        ("好", TypeError, "list of strings. Received: '好'"),
        (["好", 3], TypeError, "Element 1 is 3"),
        ((["好"], ["好", "差"]), ValueError, r"lengths \[1, 2\]"),
    ):
        with pytest.raises(error, match=message):
            model.predict(texts)
    with pytest.raises(FileNotFoundError, match="nothing"):
        type(model)(tmp_path / "nothing")
    cut = tmp_path / "cut"
    cut.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    other = LiteRTModel if write is write_onnx else OnnxModel
    changed = tmp_path / "changed"
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 64
    changed.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged, or another tool has changed it"):
        type(model)(changed)
    with pytest.raises(ValueError, match="`batch_size` must be an integer, at least 1"):
        model.predict(["好"], batch_size=-3)
    with pytest.raises(FileExistsError, match=r"exists, and does not end in"):
        write(task, changed)
    # A truncated file, and one of the other format.
    for opens, file in ((type(model), cut), (other, path)):
        with pytest.raises(ValueError, match="it is truncated"):
            opens(file)


@needs_litert
def test_a_litert_file_without_checksum_is_opened_only_if_allowed(written, tmp_path):
    """LiteRT does not check a network, which may end the process."""
    *_, path, model = written("labels", write_litert)
    with zipfile.ZipFile(path) as archive:
        settings = json.loads(archive.read(SETTINGS))
        size = archive.infolist()[0].header_offset
    del settings["sha256"]
    unchecked = tmp_path / "unchecked.tflite"
    unchecked.write_bytes(path.read_bytes()[:size])
    with zipfile.ZipFile(unchecked, "a") as archive:
        archive.writestr(SETTINGS, json.dumps(settings))
    with pytest.raises(AlbertError, match="has no checksum.*allow_unchecked=True"):
        albert_tf_lite.pipeline(unchecked)
    opened = LiteRTModel(unchecked, threads=1, allow_unchecked=True)
    # Also in another process.
    for one in (opened, pickle.loads(pickle.dumps(opened))):
        assert one.answers(TEXTS) == near(model.answers(TEXTS))


@needs_onnx
def test_a_graph_reads_the_weights_of_a_checkpoint_beside_it(tmp_path):
    # So wide that the file has the head, too, and transposed.
    task, texts = small_task("labels", hidden_dim=400)
    albert_tf.save_checkpoint(task, tmp_path / "tf1", "albert_zh")
    weights = tmp_path / "tf1" / "albert_model.ckpt.data-00000-of-00001"
    whole, graph = tmp_path / "whole.onnx", tmp_path / "tf1" / "model.onnx"
    onnx(task, whole)
    onnx(task, graph, preset=graph.parent, weights=weights)
    assert whole.stat().st_size - graph.stat().st_size > weights.stat().st_size / 3
    moved = (tmp_path / "tf1").rename(tmp_path / "moved")
    outputs = albert_tf_lite.pipeline(moved).answerer.outputs(texts)
    assert np.array_equal(outputs, OnnxModel(whole).outputs(texts))
    for path, model, message in (
        (whole, task, "reads weights beside the graph only"),
        (moved / "b.onnx", small_task("labels", hidden_dim=64)[0], "lacks the weights"),
    ):
        with pytest.raises(ValueError, match=message):
            onnx(model, path, weights=moved / weights.name)
    # One of several heads, as the command line opens it.
    albert_tf.save_checkpoint(
        task.backbone, tmp_path / "heads", "albert_zh", heads={"good": task}
    )
    folder = tmp_path / "heads"
    onnx(task, folder / "good.onnx", preset=folder, weights=folder / weights.name)
    network = open_network(f"{folder}:good")
    assert np.array_equal(network.outputs(texts), outputs)
    assert open_network(str(folder)) is None
    # Another training of the same sizes, half of the file, the file under another name
    # or elsewhere.
    weights, content = moved / weights.name, (moved / weights.name).read_bytes()
    other = bytearray(content)
    other[len(other) // 2] ^= 1
    opens = OnnxModel, lambda path: albert_tf_lite.pipeline(path.parent)
    for changed, message in (
        (bytes(other), "does not hold the weights of .*model.onnx: its checksum"),
        (content[: len(content) // 2], "does not hold the weights of"),
        (LFS_POINTER, "data-00000-of-00001 is a pointer of Git LFS"),
        (None, "model.onnx needs its weights in albert_model.ckpt.data-0.*not exist"),
    ):
        weights.unlink()
        if changed is not None:
            weights.write_bytes(changed)
        else:
            weights.with_name("weights.bin").write_bytes(content)
        for open_file in opens:
            with pytest.raises(AlbertError, match=message):
                open_file(moved / "model.onnx")


@pytest.mark.slow
@needs_onnx
def test_a_network_beside_other_weights_of_any_layout_does_not_answer(tmp_path):
    backbone = small_backbone(embedding_projection="after_layer_norm")
    task = models.AlbertTextClassifier.from_backbone(backbone, VOCABULARY, 2)
    for layout in ("huggingface", "google", "keras"):
        folder = tmp_path / layout
        randomised(task, seed=0)
        albert_tf.save_checkpoint(task, folder, layout)
        onnx(task, folder / "model.onnx", preset=folder)
        assert open_network(str(folder)) is not None
        randomised(task, seed=1)
        with pytest.raises(AlbertError, match="holds other weights than the model"):
            onnx(task, folder / "model.onnx", preset=folder)
        albert_tf.save_checkpoint(task, tmp_path / "other" / layout, layout)
        shutil.copytree(tmp_path / "other" / layout, folder, dirs_exist_ok=True)
        with pytest.raises(AlbertError, match="is not of the model beside it"):
            albert_tf_lite.pipeline(folder)
    # A file that is cut off: the command line says that TensorFlow answers.
    content = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(content[:-100])
    with pytest.warns(UserWarning, match="it is truncated.*TensorFlow answers"):
        assert open_network(str(folder)) is None


@needs_onnx
def test_what_cannot_be_exported_is_named(tmp_path, monkeypatch):
    task, _ = small_task("labels")
    other, _ = small_task("labels", activation="elu")
    cls = models.AlbertSpellingCorrector
    corrector = cls.from_backbone(task.backbone, VOCABULARY)
    for write, model, options, message in (
        (onnx, task, {"precision": "float16"}, "must be one of float32, int8"),
        (onnx, other, {}, "elu .* cannot be exported to ONNX. Supported: gelu"),
        (onnx, corrector, {}, "written for text-classification, .* AlbertSpelling"),
        (onnx, task, {"compare": ["好"]}, "`compare` is for int8 files"),
        (litert, task, {"lengths": [4, 16]}, r"from 5. Received: \[4, 16\]"),
        (litert, task, {"batch_tokens": -1}, "`batch_tokens` must be a number from 0"),
        (litert, small_task("choices")[0], {}, "LiteRT files are not written for"),
        (litert, small_task("questions")[0], {}, "LiteRT files are not written for"),
    ):
        with pytest.raises(ValueError, match=message):
            write(model, tmp_path / "model", **options)
    with pytest.raises(ValueError, match="`engine` must be one of onnx, litert"):
        exported(task, "tflite")
    other.quantize("int8")
    with pytest.raises(ValueError, match="was quantized by Keras"):
        onnx(other, tmp_path / "model")
    other.preprocessor = None
    with pytest.raises(ValueError, match="has no preprocessor"):
        onnx(other, tmp_path / "model")
    monkeypatch.setattr("keras.backend.backend", lambda: "jax")
    with pytest.raises(ValueError, match="Keras runs on jax, but this export needs"):
        litert(task, tmp_path / "model")
    monkeypatch.undo()
    # As in TensorFlows to come.
    monkeypatch.setattr(tf, "lite", None)
    with pytest.raises(albert_tf.AlbertError, match="has no tf.lite, whose converter"):
        litert(task, tmp_path / "model")


@pytest.mark.parametrize(
    "module, extra, act",
    [
        ("ai_edge_litert", "albert-tf-lite[litert]", lambda path: LiteRTModel(path)),
        ("onnxruntime", "albert-tf-lite[onnx]", lambda path: OnnxModel(path)),
        ("onnx", "albert-tf[onnx]", lambda path: onnx(small_task("labels")[0], path)),
    ],
)
def test_missing_library_is_named_with_its_extra(
    module, extra, act, tmp_path, monkeypatch
):
    path = tmp_path / "model"
    path.write_bytes(b"anything")
    for name in [x for x in sys.modules if x.split(".")[0] == module] + [module]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=re.escape(f"pip install '{extra}'")):
        act(path)
    assert path.read_bytes() == b"anything"
