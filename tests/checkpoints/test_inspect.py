import dataclasses

import numpy as np
import pytest
from checkpoint_files import GOLDEN, config_of, copy, is_weight, weights_of, write

from albert_tf import inspect_checkpoint, load_checkpoint


@pytest.mark.parametrize(
    ("name", "layout", "slots"),
    [
        ("albert_zh_postln", "albert_zh", 62),
        ("google_groups", "google", 0),
        ("google_v2", "google", 64),
    ],
)
def test_golden_checkpoints(name, layout, slots):
    report = inspect_checkpoint(GOLDEN / name)
    assert report.path == str(GOLDEN / name / "model.ckpt-best")
    assert report.layout == layout
    assert report.config == config_of(name)
    assert report.heads == ["masked_lm_head", "sop_head"]
    assert report.missing == report.unused == []
    assert report.other == ["global_step"]
    assert len(report.optimizer_slots) == slots
    assert not any(is_weight(slot) for slot in report.optimizer_slots)
    assert report.release is None
    assert report.vocabulary is None


def test_parameters_are_those_of_the_backbone():
    name = "google_groups"
    parameters = inspect_checkpoint(GOLDEN / name).parameters
    assert parameters == load_checkpoint(GOLDEN / name).count_params()


def test_vocabulary_beside_is_found(tmp_path):
    folder = copy("google_v2", tmp_path)
    (folder / "vocab_chinese.txt").write_text("[PAD]\n")
    report = inspect_checkpoint(folder)
    assert report.vocabulary == str(folder / "vocab_chinese.txt")


def test_tensors_are_sorted_into_their_kinds(tmp_path):
    tensors = weights_of("google_v2")
    del tensors["bert/pooler/dense/bias"]
    del tensors["cls/seq_relationship/output_bias"]
    others = [
        "classifier/output_bias",
        "cls/squad/output_bias",
        "global_step",
        "loss/output_weights",
    ]
    slots = [
        "bert/embeddings/word_embeddings/Adam",
        "bert/embeddings/word_embeddings/Adam_1",
        "bert/embeddings/word_embeddings/lamb_m",
        "bert/embeddings/word_embeddings/lamb_v_1",
        "beta1_power",
        "beta2_power",
        "output_weights/adam_m",
    ]
    unknown = ["bert/encoder/adam_adapter/kernel", "bert/lamb/kernel"]
    for name in others + slots + unknown:
        tensors[name] = np.zeros((2,), "float32")
    report = inspect_checkpoint(write(tmp_path, tensors, config_of("google_v2")))
    assert report.optimizer_slots == sorted(slots)
    assert report.unused == unknown
    assert report.missing == ["bert/pooler/dense/bias"]
    assert report.heads == ["masked_lm_head"]
    # What is left of the sentence-order head is no complete head.
    assert report.other == [
        "cls/seq_relationship/output_weights",
        "cls/squad/output_bias",
        "global_step",
        # As the table calls them, whatever scope they were in.
        "output_bias",
        "output_weights",
    ]


def test_a_report_can_be_turned_into_json_fields():
    report = dataclasses.asdict(inspect_checkpoint(GOLDEN / "google_v2"))
    assert {type(x) for x in report.values()} <= {str, dict, int, list, type(None)}
