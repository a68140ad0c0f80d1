"""Comparing a fetched release with what its authors published."""

import json
import re
import shutil
import struct

import numpy as np
import pytest
from checkpoint_files import GOLDEN, LAYOUT_OF, TOKENS, expected
from command_line import refused, run

import albert_tf
from albert_tf import published
from albert_tf.checkpoints import RELEASES, config_arguments, open_checkpoint
from albert_tf.checkpoints.releases import Release
from albert_tf.models import AlbertMaskedLM

# A name of the table, with the sizes and tensors of a golden checkpoint.
NAME = "albert_base_v1"
SOURCE = "https://example.com/card"
# Tensors of the optimizer, which are not weights.
STATE = re.compile("/adam_[mv]$|^global_step$")
TEXT = f"{TOKENS[5]}[MASK]{TOKENS[6]}"


@pytest.mark.parametrize("golden", ["google_groups", "albert_zh_postln"])
def test_checksums_are_those_that_tensorflow_stores(golden, tmp_path):
    layout = LAYOUT_OF[golden]
    opened = open_checkpoint(GOLDEN / golden)
    found = published.checksums_of(opened, layout)
    assert set(found) == {x for x in opened.shapes if not STATE.search(x)}
    index = (GOLDEN / golden / "model.ckpt-best.index").read_bytes()
    assert all(struct.pack("<I", checksum) in index for checksum in found.values())
    # The same in another layout, as mirrors have it.
    albert_tf.convert_checkpoint(GOLDEN / golden, tmp_path / "converted", "keras")
    converted = open_checkpoint(tmp_path / "converted")
    assert published.checksums_of(converted, layout) == found


def test_the_table_is_that_of_the_published_indexes(assets):
    table = published.read_published()["crc32c"]
    folders = {"albert_tiny_zh": "albert_tiny_zh_a"}
    folders |= {"albert_tiny_zh_489k": "albert_tiny_zh_b"}
    assert set(table) == {x for x, y in RELEASES.items() if y.index_sha256}
    for name, checksums in table.items():
        folder = assets / "released" / folders.get(name, name)
        (file,) = folder.glob("*.index.json")
        tensors = json.loads(file.read_text("utf-8"))["tensors"].items()
        weights = {x: y["crc32c"] for x, y in tensors if not STATE.search(x)}
        assert checksums == weights


@pytest.fixture
def made_up(monkeypatch, tmp_path):
    """A release in the cache, and what was published of it."""
    monkeypatch.setenv("ALBERT_TF_CACHE", str(tmp_path))
    folder = tmp_path / NAME
    shutil.copytree(GOLDEN / "google_v2", folder)
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n", "utf-8")
    arguments = config_arguments(folder / "albert_config.json")
    release = Release(NAME, "zh", "google", arguments, "vocab.txt", True, "http://x/y")
    monkeypatch.setitem(RELEASES, NAME, release)
    (filled,) = AlbertMaskedLM.from_checkpoint(folder).fill([TEXT], top_k=2)
    arrays = expected("google_v2")
    row = int(np.argmax(arrays["segment_ids"].any(axis=1) == 0))
    hidden = arrays["sequence_output"][row, 1:4, 1:4].tolist()
    ids, mask = (arrays[x][row].tolist() for x in ("input_ids", "input_mask"))
    tokens = {x["token_str"]: round(x["score"], 6) for x in filled}
    common = {"release": NAME, "source": SOURCE}
    table = {
        "tolerance": 1e-4,
        "answers": [
            {"text": TEXT, "tokens": tokens, **common},
            {"ids": ids, "mask": mask, "hidden": hidden, **common},
        ],
        "crc32c": {NAME: published.checksums_of(open_checkpoint(folder), "google")},
    }
    monkeypatch.setattr(published, "read_published", lambda: table)
    return folder


def test_a_download_is_compared_with_what_was_published(made_up):
    lines = run("download", NAME, "--check").stdout.splitlines()
    count = len(published.read_published()["crc32c"][NAME])
    assert f"{count} of {count} tensors have the published checksum." in lines
    assert [x.endswith(f"({SOURCE})") for x in lines[2:4]] == [True, True]
    assert lines[-1] == f"{NAME} is as it was published."

    # Another training of the same sizes.
    shutil.copy(made_up / "vocab.txt", made_up.parent)
    model = albert_tf.models.AlbertPretrainer.from_checkpoint(made_up)
    table = model.backbone.embedding.segment_table
    table.assign(table * -3.0)
    shutil.rmtree(made_up)
    vocabulary = made_up.parent / "vocab.txt"
    albert_tf.save_checkpoint(model, made_up, "google", vocabulary)
    error = refused("download", NAME, "--check")
    assert f"{made_up} is not {NAME} as it was published: 1 of {count} tensors" in error
    assert "token_type_embeddings" in error and "another answer, hidden state" in error
