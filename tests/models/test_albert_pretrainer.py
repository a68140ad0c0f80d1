"""The pretrainer: tied embeddings, mask positions, both losses, its files."""

from unittest import mock

import keras
import keras_hub
import numpy as np
import pytest

from albert_tf.models import AlbertBackbone, AlbertPretrainer

SMALL = {
    "vocabulary_size": 120,
    "num_layers": 2,
    "num_heads": 4,
    "embedding_dim": 16,
    "hidden_dim": 48,
    "intermediate_dim": 96,
    "max_sequence_length": 64,
}


def small(order="before_layer_norm", dtype=None, **kwargs):
    backbone = AlbertBackbone(**SMALL, embedding_projection=order, dtype=dtype)
    pretrainer = AlbertPretrainer(backbone, **kwargs)
    rng = np.random.default_rng(21)
    for variable in pretrainer.weights:
        mean = 1.0 if variable.name == "gamma" else 0.0
        variable.assign(rng.normal(mean, 0.1, variable.shape))
    return pretrainer


@pytest.fixture(scope="module")
def inputs():
    rng = np.random.default_rng(22)
    return {
        "token_ids": rng.integers(120, size=(3, 17)),
        "segment_ids": (np.arange(17) >= np.array([[9], [17], [4]])).astype("int32"),
        "padding_mask": (np.arange(17) < np.array([[17], [11], [6]])).astype("int32"),
        "mask_positions": rng.integers(6, size=(3, 5)),
    }


@pytest.fixture(scope="module")
def labels():
    rng = np.random.default_rng(23)
    masked = rng.integers(120, size=(3, 5))
    return {"mlm_logits": masked, "sop_logits": np.array([0, 1, 1])}


def test_the_decoder_is_the_embedding_table(inputs):
    pretrainer = small()
    unused = next(i for i in range(120) if i not in inputs["token_ids"])
    before = pretrainer(inputs)["mlm_logits"]
    table = pretrainer.backbone.embedding.token_table
    changed = table.numpy()
    changed[unused] += 1.0
    table.assign(changed)
    moved = np.abs(pretrainer(inputs)["mlm_logits"] - before)
    assert moved[..., unused].min() > 1e-3
    assert np.delete(moved, unused, axis=-1).max() == 0.0


def test_loss_and_accuracy_of_both_heads(inputs, labels):
    pretrainer = small()
    outputs = pretrainer(inputs)
    hits = outputs["mlm_logits"].numpy().argmax(-1)
    labels = {**labels, "mlm_logits": np.where([[1], [0], [0]], hits, 5)}
    expected, accuracies = 0.0, {}
    for head, label in labels.items():
        logits = outputs[head].numpy().astype("float64")
        log_sum = np.log(np.exp(logits).sum(-1))
        picked = np.take_along_axis(logits, label[..., None], axis=-1)[..., 0]
        expected += np.mean(log_sum - picked)
        accuracies[f"{head}_accuracy"] = np.mean(logits.argmax(-1) == label)
    logs = pretrainer.evaluate(inputs, labels, verbose=0, return_dict=True)
    assert logs["loss"] == pytest.approx(expected, rel=1e-5)
    assert {name: logs[name] for name in accuracies} == pytest.approx(accuracies)
    losses = pretrainer.fit(inputs, labels, epochs=2, verbose=0).history["loss"]
    assert losses[1] < losses[0] - 1e-3
    # Without a sentence-order head the names are the same.
    pretrainer = small(num_sop_classes=0)
    labels = {"mlm_logits": labels["mlm_logits"]}
    logs = pretrainer.evaluate(inputs, labels, verbose=0, return_dict=True)
    assert set(logs) == {"loss", "mlm_logits_accuracy"}


def test_own_metrics_and_jit_compile(inputs, labels, monkeypatch):
    pretrainer = small(compile=False)
    top = keras.metrics.SparseTopKCategoricalAccuracy(3, name="top")
    pretrainer.compile(keras.optimizers.SGD(0.0), weighted_metrics={"mlm_logits": top})
    logs = pretrainer.evaluate(inputs, labels, verbose=0, return_dict=True)
    assert {name for name in logs if "loss" not in name} == {"mlm_logits_top"}
    # XLA is off by default on TensorFlow; on JAX Keras decides.
    for backend, given, expected in (
        ("tensorflow", {}, False),
        ("tensorflow", {"jit_compile": True}, True),
        ("jax", {}, "auto"),
    ):
        monkeypatch.setattr(keras.backend, "backend", lambda backend=backend: backend)
        with mock.patch.object(keras_hub.models.Task, "compile") as compiled:
            pretrainer.compile(**given)
        assert compiled.call_args.kwargs.get("jit_compile", "auto") == expected


def test_a_keras_file_keeps_the_tie(inputs, tmp_path):
    pretrainer = small("after_layer_norm")
    pretrainer.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.masked_lm_head.embedding is loaded.backbone.embedding
    for name, output in pretrainer(inputs).items():
        np.testing.assert_array_equal(loaded(inputs)[name], output)


def test_a_preset_of_mixed_precision_is_loaded_as_float32_or_mixed(tmp_path):
    model = small(dtype="mixed_bfloat16")
    model.save_to_preset(tmp_path)
    loaded = AlbertPretrainer.from_preset(str(tmp_path))
    assert loaded.dtype_policy.name == "float32"
    for first, second in zip(model.weights, loaded.weights, strict=True):
        assert np.array_equal(first, second)
    half = AlbertPretrainer.from_preset(str(tmp_path), dtype="mixed_bfloat16")
    assert half.backbone.compute_dtype == "bfloat16"
