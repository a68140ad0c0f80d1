"""The table of heads: what a row is enough for, and which head a file holds."""

import itertools
import json

import keras
import keras_hub
import numpy as np
import pytest
from checkpoint_files import GOLDEN

from albert_tf.checkpoints import inspect_checkpoint, open_checkpoint
from albert_tf.checkpoints.heads import HEADS, Head, architectures, heads_in
from albert_tf.checkpoints.layout import CheckpointError, transposed
from albert_tf.checkpoints.layouts import GOOGLE, HUGGINGFACE
from albert_tf.checkpoints.weights import parts_of
from albert_tf.conversion import build, convert_checkpoint, save_checkpoint
from albert_tf.models import (
    AlbertBackbone,
    AlbertPretrainer,
    AlbertTextClassifier,
    AlbertTextRegressor,
    AlbertTokenClassifier,
)


class Tagger(keras_hub.models.Task):
    """A task that no file of the package knows."""

    backbone_cls = AlbertBackbone
    heads = ("tagger",)

    def __init__(self, backbone, num_classes, labels=None, dropout=0.1, **kwargs):
        self.backbone, self.preprocessor = backbone, None
        self.tag_dense = keras.layers.Dense(num_classes, name="tags")
        self.labels, self.dropout = labels, dropout
        outputs = self.tag_dense(backbone(backbone.input)["sequence_output"])
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    @classmethod
    def from_opened(cls, checkpoint):
        arguments = checkpoint.head_config("tagger")
        backbone = checkpoint.build_backbone(pooler=checkpoint.has_pooler)
        model = cls(backbone, checkpoint.num_classes("tagger"), **arguments)
        checkpoint.load_into(model)
        return model


TAGGER = Head(
    part="tagger",
    attribute="tag_dense",
    reads="sequence",
    axes={"kernel": "HC", "bias": "C"},
    fields=("labels", "dropout"),
    architectures=("AlbertForTokenClassification",),
    by_architecture=True,
)


@pytest.fixture
def tagger(monkeypatch):
    """A row, its names in two tables (those of `classifier`), and its task."""
    # In place of that of the package.
    monkeypatch.delitem(HEADS, "token_classifier")
    monkeypatch.setitem(HEADS, "tagger", TAGGER)
    names = {"kernel": transposed("classifier.weight"), "bias": "classifier.bias"}
    monkeypatch.setitem(HUGGINGFACE.weights, "tagger", names)
    names = {"kernel": transposed("output_weights"), "bias": "output_bias"}
    monkeypatch.setitem(GOOGLE.weights, "tagger", names)
    monkeypatch.setitem(build.BUILDERS, "tagger", Tagger.from_opened)
    backbone = open_checkpoint(GOLDEN / "google_v2").build_backbone(pooler=False)
    model = Tagger(backbone, 3, labels=["B", "I", "O"], dropout=0.2)
    random = np.random.default_rng(0)
    model.set_weights([random.normal(size=x.shape) for x in model.get_weights()])
    return model


@pytest.mark.parametrize("layout", ["huggingface", "google"])
def test_a_new_head_is_a_row_and_its_names(tagger, tmp_path, layout):
    assert parts_of(tagger)[-1] == "tagger"
    save_checkpoint(tagger, tmp_path / "there", layout)
    report = inspect_checkpoint(tmp_path / "there")
    assert (report.heads, report.num_classes) == (["tagger"], 3)
    assert report.config["architectures"] == ["AlbertForTokenClassification"]
    convert_checkpoint(tmp_path / "there", tmp_path / "back", "google")
    again = build.build_model(open_checkpoint(tmp_path / "back"))
    assert isinstance(again, Tagger)
    assert (again.labels, again.dropout) == (["B", "I", "O"], 0.2)
    for ours, theirs in zip(again.weights, tagger.weights, strict=True):
        assert np.array_equal(ours, theirs)


def test_of_two_heads_of_one_name_the_config_tells(tagger):
    pooler = HUGGINGFACE.names(["pooler"])
    names = HUGGINGFACE.names(["classifier"])
    both = {*pooler, *names}
    for given, found in (
        (["AlbertForSequenceClassification"], ["classifier"]),
        (["AlbertForTokenClassification"], ["tagger"]),
        (["AlbertForMultipleChoice"], ["choice_head"]),
        (["AlbertForSomethingElse"], []),
        (None, ["classifier"]),
    ):
        assert heads_in(HUGGINGFACE, both, {"architectures": given}) == found
    # A text classifier would read the pooler.
    assert heads_in(HUGGINGFACE, set(names), {}) == ["tagger"]


HEADS_ON_POOLED = {
    "classifier": (AlbertTextClassifier, {"num_classes": 3, "dropout": 0.2}),
    "of one class": (AlbertTextClassifier, {"num_classes": 1}),
    "multi-label": (
        AlbertTextClassifier,
        {
            "num_classes": 2,
            "labels": ["体育", "财经"],
            "multi_label": True,
            "thresholds": [0.25, 0.75],
        },
    ),
    "regressor": (AlbertTextRegressor, {"dropout": 0.2}),
}
POOLED_OTHERWISE = {
    "mean classifier": (
        AlbertTextClassifier,
        {"num_classes": 3, "pooling_mode": "mean"},
    ),
    "mean regressor": (AlbertTextRegressor, {"pooling_mode": "mean"}),
}


def test_transformers_would_pool_otherwise(tmp_path):
    """Its models read the pooler: what reads a mean is not written for them."""
    backbone = open_checkpoint(GOLDEN / "google_v2").build_backbone()
    for cls, arguments in POOLED_OTHERWISE.values():
        model = cls(backbone, **arguments)
        with pytest.raises(CheckpointError, match='no place for pooling_mode="mean"'):
            save_checkpoint(model, tmp_path, "huggingface")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("kind", "layout"),
    [
        *itertools.product(HEADS_ON_POOLED, ["huggingface"]),
        *itertools.product(POOLED_OTHERWISE, ["google"]),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (
                *itertools.product(HEADS_ON_POOLED, ["google", "keras"]),
                *itertools.product(POOLED_OTHERWISE, ["keras"]),
            )
        ),
    ],
)
def test_of_one_name_and_architecture_the_problem_tells(kind, layout, tmp_path):
    cls, arguments = {**HEADS_ON_POOLED, **POOLED_OTHERWISE}[kind]
    backbone = open_checkpoint(GOLDEN / "google_v2").build_backbone()
    model = cls(backbone, **arguments)
    random = np.random.default_rng(0)
    model.set_weights([random.normal(size=x.shape) for x in model.get_weights()])
    save_checkpoint(model, tmp_path / "there", layout)
    convert_checkpoint(tmp_path / "there", tmp_path / "back", "google")
    for folder in ("there", "back"):
        again = build.build_model(open_checkpoint(tmp_path / folder))
        assert type(again) is cls
        config = again.get_config()
        assert {name: config[name] for name in arguments} == arguments
        for ours, theirs in zip(again.weights, model.weights, strict=True):
            assert np.array_equal(ours, theirs)


def test_a_head_of_another_task_is_no_classifier(tmp_path):
    """It is reported, and nothing takes it for a classifier."""
    backbone = open_checkpoint(GOLDEN / "google_v2").build_backbone()
    save_checkpoint(AlbertTextClassifier(backbone, 3), tmp_path, "huggingface")
    config = json.loads((tmp_path / "config.json").read_text())
    config["architectures"] = ["AlbertForSomethingElse"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    report = inspect_checkpoint(tmp_path)
    assert report.heads == [] and "classifier.weight" in report.other
    assert open_checkpoint(tmp_path).num_classes("classifier") == 0


def test_what_a_model_is_saved_as():
    assert architectures(["embedding", "pooler"]) == ["AlbertModel"]
    for parts, name in (
        (["masked_lm_head"], "AlbertForMaskedLM"),
        (["masked_lm_head", "sop_head"], "AlbertForPreTraining"),
        (["sop_head", "classifier"], "AlbertForSequenceClassification"),
        (["token_classifier"], "AlbertForTokenClassification"),
        (["span_head"], "AlbertForQuestionAnswering"),
        (["pooler", "choice_head"], "AlbertForMultipleChoice"),
    ):
        assert architectures(parts) == [name]


@pytest.mark.parametrize("num_sop_classes", [0, 3])
def test_heads_of_a_task(num_sop_classes):
    backbone = open_checkpoint(GOLDEN / "google_v2").build_backbone()
    model = AlbertPretrainer(backbone, num_sop_classes=num_sop_classes)
    heads = ["masked_lm_head"] + ["sop_head"] * bool(num_sop_classes)
    opened = open_checkpoint(model)
    assert opened.heads == heads and parts_of(backbone)[-1] == "pooler"
    assert opened.num_classes("sop_head") == num_sop_classes
    assert opened.num_classes("masked_lm_head") == 0
    assert opened.head_config("masked_lm_head") == {}


def test_a_head_of_tokens_beside_a_pooler_is_saved(tmp_path):
    """As of a task on a backbone with random weights, which has one."""
    backbone = AlbertBackbone(
        **{"vocabulary_size": 50, "num_layers": 1, "num_heads": 2, "embedding_dim": 8},
        **{"hidden_dim": 12, "intermediate_dim": 20, "max_sequence_length": 16},
        embedding_projection="after_layer_norm",
    )
    save_checkpoint(
        AlbertTokenClassifier(backbone, ["PER"]), tmp_path, layout="huggingface"
    )
    assert open_checkpoint(tmp_path).heads == ["token_classifier"]
