"""A small checkpoint with several named heads, and the tasks they are from."""

import numpy as np
from small_classifier import VOCABULARY, randomised, small_backbone

from albert_tf import models
from albert_tf.checkpoints import save_checkpoint

LABELS = ["差评", "好评"]
TOPICS = ["体育", "财经", "科技"]
INFERENCE = ["蕴含", "中立", "矛盾"]
CASES = {
    "sentiment": (
        models.AlbertTextClassifier,
        {"num_classes": 2, "labels": LABELS, "pooling_mode": "mean"},
    ),
    # Reads the pooler.
    "inference": (
        models.AlbertTextClassifier,
        {"num_classes": 3, "labels": INFERENCE, "pairs": True, "dropout": 0.2},
    ),
    "topics": (
        models.AlbertMultiLabelClassifier,
        {"num_classes": 3, "labels": TOPICS, "thresholds": [0.2, 0.5, 0.7]}
        | {"temperature": 1.5},
    ),
    "similarity": (
        models.AlbertTextRegressor,
        {"pairs": True, "pooling_mode": "mean"},
    ),
    "named-entities_2": (models.AlbertTokenClassifier, {"labels": ["PER", "LOC"]}),
    "answers": (models.AlbertQuestionAnswering, {}),
}
# Arguments of a backbone by layout; the bundled checkpoint has albert_zh.
SIZES = {
    "google": {"embedding_projection": "after_layer_norm"},
    "huggingface": {"embedding_projection": "after_layer_norm"},
    "albert_zh": {"normalize_first": True},
}


def named_tasks(layout):
    """Return a pretrainer, and tasks by name on its backbone."""
    backbone = small_backbone(num_layers=1, **SIZES[layout])
    pretrainer = randomised(models.AlbertPretrainer(backbone), 0)
    tasks = {
        name: cls.from_backbone(backbone, VOCABULARY, **arguments)
        for name, (cls, arguments) in CASES.items()
    }
    draw, shared = np.random.default_rng(0), {id(x) for x in backbone.weights}
    for weight in (x for task in tasks.values() for x in task.trainable_variables):
        if id(weight) not in shared:
            weight.assign(draw.normal(0, 0.3, weight.shape))
    return pretrainer, tasks


def write_named_heads(folder, layout="albert_zh"):
    """Write a checkpoint with pretraining heads and named heads; return its tasks."""
    pretrainer, tasks = named_tasks(layout)
    tokenizer = tasks["sentiment"].preprocessor.tokenizer
    save_checkpoint(pretrainer, folder, layout, tokenizer, heads=tasks)
    return pretrainer, tasks
