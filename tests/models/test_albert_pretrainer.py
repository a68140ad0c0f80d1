from unittest import mock

import keras
import keras_hub
import numpy as np
import pytest

from albert_tf.models import AlbertBackbone, AlbertPretrainer

SMALL = {
    "vocabulary_size": 120,
    "num_layers": 3,
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
    return {
        "mlm_logits": rng.integers(120, size=(3, 5)),
        "sop_logits": np.array([0, 1, 1]),
    }


def difference(a, b):
    return max(np.abs(a[name] - b[name]).max() for name in a)


def test_a_changed_table_changes_the_logits_of_its_token_alone(inputs):
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


def test_mask_positions_pick_the_hidden_states(inputs):
    pretrainer = small()
    hidden = pretrainer.backbone(
        {name: x for name, x in inputs.items() if name != "mask_positions"}
    )["sequence_output"]
    picked = np.stack(
        [
            [text[at] for at in positions]
            for text, positions in zip(
                hidden.numpy(), inputs["mask_positions"], strict=True
            )
        ]
    )
    order = np.broadcast_to(np.arange(5), (3, 5))
    expected = pretrainer.masked_lm_head(picked, order)
    logits = pretrainer(inputs)["mlm_logits"]
    assert np.abs(logits - expected).max() < 1e-5


def test_loss_is_the_sum_of_both_cross_entropies_and_fit_lowers_it(inputs, labels):
    pretrainer = small()
    outputs = pretrainer(inputs)
    expected = 0.0
    for head, label in labels.items():
        logits = outputs[head].numpy().astype("float64")
        log_sum = np.log(np.exp(logits).sum(-1))
        picked = np.take_along_axis(logits, label[..., None], axis=-1)[..., 0]
        expected += np.mean(log_sum - picked)
    pretrainer.compile(run_eagerly=True)
    history = pretrainer.fit(inputs, labels, epochs=3, verbose=0).history
    assert history["loss"][0] == pytest.approx(expected, rel=1e-5)
    assert history["loss"][0] - 1e-3 > history["loss"][1] > history["loss"][2] + 1e-3


def test_accuracy_of_both_heads_is_counted(inputs, labels):
    pretrainer = small()
    pretrainer.compile(run_eagerly=True)
    outputs = pretrainer(inputs)
    hits = outputs["mlm_logits"].numpy().argmax(-1)
    hits[1:] = labels["mlm_logits"][1:]
    labels = {**labels, "mlm_logits": hits}
    logs = pretrainer.evaluate(inputs, labels, verbose=0, return_dict=True)
    for head, label in labels.items():
        expected = np.mean(outputs[head].numpy().argmax(-1) == label)
        assert logs[f"{head}_accuracy"] == pytest.approx(expected)


def test_compile_takes_what_keras_takes(inputs, labels):
    pretrainer = small(compile=False)
    pretrainer.compile(keras.optimizers.SGD(0.0), metrics=None, run_eagerly=True)
    before = pretrainer.get_weights()
    logs = pretrainer.fit(inputs, labels, verbose=0).history
    assert set(logs) == {"loss", "mlm_logits_loss", "sop_logits_loss"}
    for old, new in zip(before, pretrainer.get_weights(), strict=True):
        assert np.array_equal(old, new)


def test_compile_keeps_weighted_metrics(inputs, labels):
    pretrainer = small(compile=False)
    top = keras.metrics.SparseTopKCategoricalAccuracy(3, name="top")
    pretrainer.compile(weighted_metrics={"mlm_logits": top}, run_eagerly=True)
    logs = pretrainer.evaluate(inputs, labels, verbose=0, return_dict=True)
    assert {name for name in logs if "loss" not in name} == {"mlm_logits_top"}


def test_metrics_have_the_same_names_without_order(inputs, labels):
    labels = {"mlm_logits": labels["mlm_logits"]}
    pretrainer = small(num_sop_classes=0)
    pretrainer.compile(run_eagerly=True)
    logs = pretrainer.evaluate(inputs, labels, verbose=0, return_dict=True)
    assert set(logs) == {"loss", "mlm_logits_accuracy"}


@pytest.mark.parametrize(
    ("backend", "given", "compiled"),
    [
        ("tensorflow", {}, False),
        ("tensorflow", {"jit_compile": True}, True),
        # As Keras decides.
        ("jax", {}, "auto"),
    ],
)
def test_jit_compile(monkeypatch, backend, given, compiled):
    pretrainer = small(compile=False)
    monkeypatch.setattr(keras.backend, "backend", lambda: backend)
    with mock.patch.object(keras_hub.models.Task, "compile") as compile:
        pretrainer.compile(**given)
    assert compile.call_args.kwargs.get("jit_compile", "auto") == compiled


def test_keras_file_round_trip_keeps_the_tie(inputs, tmp_path):
    pretrainer = small("after_layer_norm")
    pretrainer.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is AlbertPretrainer
    assert loaded.masked_lm_head.embedding is loaded.backbone.embedding
    assert difference(pretrainer(inputs), loaded(inputs)) == 0.0


@pytest.mark.parametrize("part", ["whole", "backbone"])
def test_a_preset_of_mixed_precision_can_be_read(inputs, tmp_path, part):
    model = small(dtype="mixed_bfloat16")
    model = model.backbone if part == "backbone" else model
    model.save_to_preset(tmp_path)
    assert getattr(model, "backbone", model).dtype_policy.name == "mixed_bfloat16"
    loaded = type(model).from_preset(str(tmp_path))
    assert loaded.dtype_policy.name == "float32"
    for first, second in zip(model.weights, loaded.weights, strict=True):
        assert np.array_equal(first, second)
    half = type(model).from_preset(str(tmp_path), dtype="mixed_bfloat16")
    assert getattr(half, "backbone", half).compute_dtype == "bfloat16"
