"""Files that a stranger could have made to stop a process or to fill its memory.

Each function of `FILES` writes one into a folder and returns its path.
"""

import functools
import io
import json
import pathlib
import shutil
import struct
import tarfile
import tempfile
import zipfile

import h5py
import numpy as np
import pytest
import safetensors.numpy
from archives import write_archive
from checkpoint_files import GOLDEN, config_of
from mutations import index_blocks, with_block
from small_classifier import small_classifier

from albert_tf.checkpoints import load_checkpoint, save_checkpoint

DEEP = "[" * 100_000
# Git leaves such a file in place of one that it did not download.
LFS_POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    b"size 109540\n"
)


@functools.cache
def preset():
    """Return the files of a small preset, by name."""
    with tempfile.TemporaryDirectory() as folder:
        small_classifier(2, labels=["坏", "好"]).save_to_preset(folder)
        files = [x for x in pathlib.Path(folder).rglob("*") if x.is_file()]
        return {str(x.relative_to(folder)): x.read_bytes() for x in files}


def write_preset(folder, **changes):
    """Write a preset, and change values of the config of its backbone."""
    for name, content in preset().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    for name in ("config.json", "task.json"):
        text = (folder / name).read_text("utf-8")
        for key, value in changes.items():
            number = json.loads(preset()["config.json"])["config"][key]
            text = text.replace(f'"{key}": {number}', f'"{key}": {value}')
        (folder / name).write_text(text, "utf-8")
    return folder


def preset_with(**changes):
    return lambda folder: write_preset(folder, **changes)


def bundle_with(**changes):
    """A checkpoint of Google's code with another config."""

    def write(folder):
        shutil.copytree(GOLDEN / "google_v2", folder, dirs_exist_ok=True)
        (file,) = folder.glob("*config*.json")
        config = {**config_of("google_v2"), **changes}
        file.write_text(json.dumps(config), "utf-8")
        return folder

    return write


def bundle_with_file(pattern, content):
    """The same with another file."""

    def write(folder):
        bundle_with()(folder)
        (file,) = folder.glob(pattern)
        file.write_bytes(content)
        return folder

    return write


def index_of_noise(folder):
    """An index with right checksums, in which an entry is no protocol buffer."""
    bundle_with()(folder)
    (file,) = folder.glob("*.index")
    content = file.read_bytes()
    start, size = index_blocks(content)[0]
    block = bytearray(content[start : start + size])
    # The length of the first shape, beyond the end of its entry.
    block[block.index(b"\x08\x01\x12\x04") + 3] = 127
    file.write_bytes(with_block(content, start, block))
    return folder


def safetensors_wide(folder):
    save_checkpoint(load_checkpoint(GOLDEN / "google_v2"), folder, "huggingface")
    # Files of transformers do not hold the sizes of their config.
    weights = folder / "model.safetensors"
    safetensors.numpy.save_file(safetensors.numpy.load_file(weights), weights)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    text = json.dumps({**config, "hidden_size": 2_000_000})
    (folder / "config.json").write_text(text, "utf-8")
    return folder


def safetensors_header(folder):
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 2**60) + b"{}")
    (folder / "config.json").write_text("{}")
    return folder


def keras_file(folder):
    path = folder / "model.keras"
    small_classifier(2).backbone.save(path)
    with zipfile.ZipFile(path) as archive:
        files = {x: archive.read(x) for x in archive.namelist()}
    config = files["config.json"].replace(b'"hidden_dim": 12', b'"hidden_dim": 2000004')
    assert config != files["config.json"]
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**files, "config.json": config}.items():
            archive.writestr(name, content)
    return path


def keras_bomb(folder):
    path = folder / "model.keras"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", "{}")
        with archive.open("model.weights.h5", "w", force_zip64=True) as file:
            for _ in range(200):
                file.write(bytes(10**6))
    return path


def weights_never_written(folder):
    write_preset(folder)
    with h5py.File(folder / "model.weights.h5", "w") as file:
        file.create_dataset("layers/x/vars/0", (10**6, 10**6), "float32", chunks=True)
    return folder


def kerashub_deep(folder):
    config = dict(vocabulary_size=9, num_heads=1, embedding_dim=4, hidden_dim=4)
    config |= dict(intermediate_dim=4, num_layers=10**7)
    fields = {"module": "keras_hub.src.models.albert.albert_backbone"}
    fields |= {"class_name": "AlbertBackbone", "config": config}
    fields |= {"registered_name": "keras_hub>AlbertBackbone"}
    (folder / "config.json").write_text(json.dumps(fields))
    (folder / "metadata.json").write_text("{}")
    with h5py.File(folder / "model.weights.h5", "w") as file:
        file["layers/x/vars/0"] = np.ones(3)
    return folder


def tar_bomb(folder):
    path = folder / "model.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for i in range(20):
            member = tarfile.TarInfo(f"{i}.index")
            member.size = 10**7
            archive.addfile(member, io.BytesIO(bytes(member.size)))
    return path


def zip_bomb(folder):
    path = folder / "model.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(20):
            archive.writestr(f"{i}.index", bytes(10**7))
    return path


def tar_of(*members):
    def write(folder):
        path = folder / "model.tar"
        with tarfile.open(path, "w") as archive:
            for name, link in members:
                member = tarfile.TarInfo(name)
                if link:
                    member.type, member.linkname = tarfile.SYMTYPE, link
                archive.addfile(member, io.BytesIO(b""))
        return path

    return write


def zip_upwards(folder):
    path = folder / "model.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../escaped.index", "x")
    return path


def zip_folder_for_config(folder):
    """An archive with a folder in place of the config."""
    files = {x.name: x.read_bytes() for x in (GOLDEN / "google_v2").glob("model.*")}
    return write_archive(folder / "model.zip", {**files, "albert_config.json/x": b""})


def long_vocabulary(folder):
    write_preset(folder)
    (file,) = folder.glob("assets/tokenizer/*.txt")
    with file.open("a") as lines:
        lines.writelines(f"w{i}\n" for i in range(3_000_000))
    return folder


def onnx_nested(folder):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    number = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    other = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    node = onnx.helper.make_node("Identity", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "g", [number], [other])
    opset = onnx.helper.make_opsetid("", 17)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)
    onnx.helper.set_model_props(model, {"albert_tf.json": DEEP})
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def litert_bomb(folder):
    pytest.importorskip("ai_edge_litert")
    path = folder / "model.tflite"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("albert_tf.json", b" " * 10**8)
    return path


# The file, and a regular expression of the one line with which it is refused.
FILES = {
    "wide": (bundle_with(hidden_size=2_000_000), "many fewer than a model"),
    "deep": (bundle_with(num_hidden_layers=10**7), "num_hidden_layers=10000000"),
    "groups": (bundle_with(num_hidden_groups=10**7), "10,000,000 separate blocks"),
    "repetitions": (
        bundle_with(inner_group_num=10**9),
        "1,000,000,000 separate blocks",
    ),
    "huge_number": (bundle_with(vocab_size=10**30), "vocab_size=1000"),
    "negative": (bundle_with(hidden_size=-48), "hidden_size=-48"),
    "not_a_number": (
        bundle_with(hidden_dropout_prob=float("nan")),
        "hidden_dropout_prob=nan",
    ),
    "nested_value": (bundle_with(num_hidden_layers={"a": [2]}), "num_hidden_layers="),
    "nested_json": (bundle_with_file("*config*.json", DEEP.encode()), "not a JSON"),
    "numbers_of_a_config": (
        bundle_with_file("*config*.json", b"[" + b"1," * 10**6 + b"1]"),
        "must hold a JSON object",
    ),
    "index_of_noise": (index_of_noise, "is damaged"),
    "safetensors_wide": (safetensors_wide, "many fewer than a model"),
    "safetensors_header": (safetensors_header, "is damaged"),
    "preset_wide": (preset_with(hidden_dim=2_000_004), "many fewer than a model"),
    "preset_deep": (preset_with(num_layers=10**7), "num_layers=1e.07"),
    "preset_text": (preset_with(num_layers='"two"'), "num_layers"),
    "kerashub_deep": (kerashub_deep, "num_layers=1e.07"),
    "keras_wide": (keras_file, "many fewer than a model"),
    "keras_bomb": (keras_bomb, "more than 20 times"),
    "weights_never_written": (weights_never_written, "more than 20 times"),
    "zip_bomb": (zip_bomb, "more than 20 times"),
    "tar_bomb": (tar_bomb, "more than 20 times"),
    "tar_link": (tar_of(("model.ckpt.index", "/etc/passwd")), "is damaged"),
    # Each link looks as if it stayed in the folder.
    "tar_chain": (tar_of(("a", "."), ("b", "a/.."), ("b/x.index", None)), "is damaged"),
    "tar_upwards": (tar_of(("../../escaped.index", None)), "is damaged"),
    "zip_upwards": (zip_upwards, r"no checkpoint in .*model.zip"),
    "zip_folder_for_config": (zip_folder_for_config, "no config beside"),
    "long_vocabulary": (long_vocabulary, "bytes, the model 120 tokens"),
    "onnx_nested": (onnx_nested, "settings in .* are damaged"),
    "litert_bomb": (litert_bomb, "more than 20 times"),
}
