"""The pretrainer: tied embeddings and the losses of both heads."""

import keras
import numpy as np
import pytest
from small_classifier import randomised, small_backbone

from albert_tf.checkpoints import open_checkpoint, save_checkpoint
from albert_tf.models import AlbertPretrainer, AlbertSentenceOrder
from albert_tf.models.task_of_checkpoint import build_model

RNG = np.random.default_rng(22)
INPUTS = {
    "token_ids": RNG.integers(120, size=(3, 17)),
    "segment_ids": (np.arange(17) >= np.array([[9], [17], [4]])).astype("int32"),
    "padding_mask": (np.arange(17) < np.array([[17], [11], [6]])).astype("int32"),
    "mask_positions": RNG.integers(6, size=(3, 5)),
}


def small(order="before_layer_norm", **kwargs):
    backbone = small_backbone(embedding_projection=order)
    return randomised(AlbertPretrainer(backbone, **kwargs))


def test_the_decoder_is_the_embedding_table(tmp_path):
    pretrainer = small("after_layer_norm")
    unused = next(i for i in range(120) if i not in INPUTS["token_ids"])
    before = pretrainer(INPUTS)["mlm_logits"]
    table = pretrainer.backbone.embedding.token_table
    changed = table.numpy()
    changed[unused] += 1.0
    table.assign(changed)
    moved = np.abs(pretrainer(INPUTS)["mlm_logits"] - before)
    assert moved[..., unused].min() > 1e-3
    assert np.delete(moved, unused, axis=-1).max() == 0.0
    pretrainer.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.masked_lm_head.embedding is loaded.backbone.embedding


def test_files_without_a_fine_tuned_head_give_the_same_kind(tmp_path):
    backbone = small_backbone(embedding_projection="after_layer_norm")
    kinds = {"backbone": backbone, "order": AlbertSentenceOrder(backbone)}
    for name, model in kinds.items():
        save_checkpoint(model, tmp_path / name)
        assert type(build_model(open_checkpoint(tmp_path / name))) is type(model)


def test_loss_and_accuracy_of_both_heads():
    pretrainer = small()
    outputs = pretrainer(INPUTS)
    hits = outputs["mlm_logits"].numpy().argmax(-1)
    labels = {
        "mlm_logits": np.where([[1], [0], [0]], hits, 5),
        "sop_logits": np.array([0, 1, 1]),
    }
    weights = np.array([2.0, 0.0, 0.5])
    expected, weighted, accuracies = 0.0, 0.0, {}
    for head, label in labels.items():
        logits = outputs[head].numpy().astype("float64")
        log_sum = np.log(np.exp(logits).sum(-1))
        picked = np.take_along_axis(logits, label[..., None], axis=-1)[..., 0]
        expected += np.mean(log_sum - picked)
        # The weight of an example counts for all its masked words.
        weighted += np.mean((log_sum - picked).T * weights)
        accuracies[f"{head}_accuracy"] = np.mean(logits.argmax(-1) == label)
    logs = pretrainer.evaluate(INPUTS, labels, verbose=0, return_dict=True)
    assert logs["loss"] == pytest.approx(expected, rel=1e-4)
    assert {name: logs[name] for name in accuracies} == pytest.approx(accuracies)
    logs = pretrainer.test_on_batch(INPUTS, labels, weights, return_dict=True)
    assert logs["loss"] == pytest.approx(weighted, rel=1e-4)
    # Without a sentence-order head the names are the same.
    pretrainer, labels = small(num_sop_classes=0), {"mlm_logits": hits}
    logs = pretrainer.evaluate(INPUTS, labels, verbose=0, return_dict=True)
    assert set(logs) == {"loss", "mlm_logits_accuracy"}
