"""Reports of `inspect_checkpoint`: layout, config, heads and kinds of tensors."""

import dataclasses
import json

import numpy as np
import pytest
from checkpoint_files import GOLDEN, LAYOUT_OF, config_of, copy, weights_of, write

from albert_tf import inspect_checkpoint, load_checkpoint


@pytest.mark.parametrize(
    ("name", "slots"),
    [("albert_zh_postln", 62), ("google_groups", 0), ("google_v2", 64)],
)
def test_golden_checkpoints(tmp_path, name, slots):
    folder = copy(name, tmp_path)
    (folder / "vocab_chinese.txt").write_text("[PAD]\n")
    report = inspect_checkpoint(folder)
    assert report.path == str(folder / "model.ckpt-best")
    assert report.layout == LAYOUT_OF[name]
    assert report.config == config_of(name)
    assert report.heads == ["masked_lm_head", "sop_head"]
    assert report.parameters == load_checkpoint(GOLDEN / name).count_params()
    assert report.missing == report.unused == report.damaged == []
    heads = 4 * sum(x.size for y, x in weights_of(name).items() if y[:4] == "cls/")
    assert report.dtypes == {"float32": 4 * report.parameters + heads}
    assert report.other == ["global_step"]
    assert len(report.optimizer_slots) == slots
    assert report.release is None
    assert report.vocabulary == str(folder / "vocab_chinese.txt")
    assert json.dumps(dataclasses.asdict(report))


def test_kinds_of_tensors(tmp_path):
    tensors = weights_of("google_v2")
    del tensors["bert/pooler/dense/bias"]
    del tensors["cls/seq_relationship/output_bias"]
    words = "bert/embeddings/word_embeddings"
    slots = ["beta1_power", "output_weights/adam_m"]
    slots += [f"{words}/{x}" for x in ("Adam", "Adam_1", "lamb_m", "lamb_v_1")]
    unused = ["bert/encoder/adam_adapter/kernel", "bert/lamb/kernel"]
    other = ["cls/squad/output_bias", "global_step", "loss/output_weights"]
    for name in slots + unused + other:
        tensors[name] = np.zeros(2, "float32")
    report = inspect_checkpoint(write(tmp_path, tensors, config_of("google_v2")))
    assert report.optimizer_slots == sorted(slots)
    assert report.unused == unused
    assert report.missing == ["bert/pooler/dense/bias"]
    assert report.heads == ["masked_lm_head"]
    # The rest of the sentence-order head is no complete head; scopes are dropped.
    rest = ["cls/seq_relationship/output_weights", *other[:2], "output_weights"]
    assert report.other == rest
