"""Heads in checkpoint files, and the tasks that they belong to."""

import pytest
from checkpoint_files import GOLDEN, assert_same_weights
from tiers import few

from albert_tf import convert_checkpoint
from albert_tf.checkpoints import (
    CheckpointError,
    load_checkpoint,
    open_checkpoint,
    save_checkpoint,
)
from albert_tf.checkpoints.heads import heads_in
from albert_tf.checkpoints.layouts import HUGGINGFACE
from albert_tf.data.labels.tags import tag_names
from albert_tf.models import (
    AlbertMultiLabelClassifier,
    AlbertTextClassifier,
    AlbertTextRegressor,
    AlbertTokenClassifier,
)
from albert_tf.models.task_of_checkpoint import build_model


def test_of_heads_with_equal_names_the_config_decides():
    names = set(HUGGINGFACE.names(["classifier"]))
    both = names | set(HUGGINGFACE.names(["pooler"]))
    for given, found in (
        (["AlbertForSequenceClassification"], ["classifier"]),
        (["AlbertForTokenClassification"], ["token_classifier"]),
        (["AlbertForMultipleChoice"], ["choice_head"]),
        (["AlbertForSomethingElse"], []),
        (None, ["classifier"]),
    ):
        assert heads_in(HUGGINGFACE, both, {"architectures": given}) == found
    # A text classifier would read the pooler.
    assert heads_in(HUGGINGFACE, names, {}) == ["token_classifier"]


MULTI_LABEL = {"num_classes": 2, "labels": ["体育", "财经"]}
MULTI_LABEL |= {"thresholds": [0.25, 0.75], "temperature": 1.5}
TAGS = tag_names(["PER", "LOC"], "BIOES")
KINDS = {
    "tags": (AlbertTokenClassifier, {"tags": TAGS, "dropout": 0.2, "temperature": 2.0}),
    "one label": (
        AlbertMultiLabelClassifier,
        {"num_classes": 1, "labels": ["体育"], "dropout": 0.2},
    ),
    "multi-label": (AlbertMultiLabelClassifier, MULTI_LABEL),
    "mean": (
        AlbertTextClassifier,
        {"num_classes": 3, "pooling_mode": "mean", "temperature": 0.5},
    ),
    "mean regressor": (AlbertTextRegressor, {"pooling_mode": "mean"}),
}


@pytest.mark.parametrize("kind", few(KINDS, ("tags", "multi-label", "mean")))
def test_classifiers_and_regressors_keep_their_kind(kind, tmp_path):
    """The names of their weights are equal; the config tells them apart."""
    cls, arguments = KINDS[kind]
    backbone = load_checkpoint(GOLDEN / "google_v2", pooler=kind != "tags")
    model = cls(backbone, **arguments)
    layout = "huggingface"
    if "mean" in kind:
        # The models of transformers read the pooler.
        with pytest.raises(CheckpointError, match='no place for .*pooling_mode="mean"'):
            save_checkpoint(model, tmp_path / "there", layout)
        assert not list(tmp_path.iterdir())
        layout = "keras"
        done = convert_checkpoint(model, tmp_path / "body", "huggingface")
        assert done.left_out == [f'{cls.heads[0]} with pooling_mode="mean"']
    save_checkpoint(model, tmp_path / "there", layout)
    convert_checkpoint(tmp_path / "there", tmp_path / "back", "google")
    for folder in ("there", "back"):
        again = build_model(open_checkpoint(tmp_path / folder))
        assert type(again) is cls
        assert arguments.items() <= again.get_config().items()
        assert_same_weights(again, model)
