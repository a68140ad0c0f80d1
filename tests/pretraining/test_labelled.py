"""The stage on labelled texts: records, losses, learning, resuming and refusals."""

import json
import os
import sys

import keras
import numpy as np
import pytest
from made_records import LENGTH, VOCABULARY, write
from processes import run_python
from scipy.special import log_softmax

from albert_tf.backbone import AlbertBackbone
from albert_tf.pretraining import (
    LabelledRecords,
    LabelledSet,
    PretrainingRecords,
    make_labelled_data,
    pretrain_labelled,
    read_heads,
)
from albert_tf.pretraining.labelled import LabelledBatches, LabelledModel
from albert_tf.pretraining.model import build_network
from albert_tf.training.optimizers import scheduled_optimizer

CHARACTERS = [chr(0x4E00 + i) for i in range(VOCABULARY - 5)]
TOPICS = ["体育", "财经", "科技"]


def sets(count=60):
    """Texts of three to twelve characters, whose labels follow from the first two."""
    draw = np.random.default_rng(0)
    texts = [
        "".join(draw.choice(CHARACTERS, draw.integers(3, 13))) for _ in range(count)
    ]
    places = [CHARACTERS.index(x[0]) for x in texts]
    good = ["好评" if x < 23 else "差评" for x in places]
    a, b = ([TOPICS[i + x % 2] for x in places] for i in (0, 1))
    people, sites = (
        [[(i, i + 2, name)] for i in range(count) for _ in [0]] for name in ("PER", "LOC")
    )
    people = [[(0, 2, "PER")] if x < 23 else [] for x in places]
    sites = [[(1, 3, "LOC")] if x < 23 else [(0, 1, "PER")] for x in places]
    other = texts[1:] + texts[:1]
    answers = [[(1, x[1:3])] for x in texts]
    classes = "text-classification"
    return [
        LabelledSet("shops", "sentiment", classes, texts, good, balanced=True),
        LabelledSet("a", "topics", classes, texts[:30], a[:30], TOPICS[:2]),
        LabelledSet("b", "topics", classes, texts[:40], b[:40], TOPICS[1:]),
        LabelledSet("scores", "similarity", "regression", (texts, other), places),
        LabelledSet("people", "entities", "token-classification", texts, people, ["PER"]),
        LabelledSet("all", "entities", "token-classification", texts, sites),
        LabelledSet("answers", "answers", "question-answering", (other, texts), answers),
    ]


def write_data(folder, *chosen, masked=False, pairs=True):
    write(folder / "records", 60, 1, masked=masked)
    data = [x for x in sets() if not chosen or x.name in chosen]
    texts = data[0].x
    return make_labelled_data(
        *(data, folder / "labelled", folder / "records" / "vocab.txt", LENGTH),
        pairs=(texts, texts[1:] + texts[:1]) if pairs else None,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labelled")
    write_data(folder, masked=True)
    return folder


def opened(folder):
    return LabelledRecords(folder / "labelled"), PretrainingRecords(folder / "records")


def network():
    keras.utils.set_random_seed(1)
    sizes = {"num_layers": 2, "num_heads": 4, "embedding_dim": 32}
    sizes |= {"hidden_dim": 48, "intermediate_dim": 96, "max_sequence_length": LENGTH}
    return build_network(AlbertBackbone(VOCABULARY, **sizes, normalize_first=True))


if __name__ == "__main__":
    import pathlib, tempfile, time
    folder = pathlib.Path(tempfile.mkdtemp())
    print(json.dumps(write_data(folder, masked=True), ensure_ascii=False, indent=1))
    labelled, records = opened(folder)
    print(labelled.weights[:3], labelled.weights.sum(), len(labelled))
    for k, v in labelled.targets.items(): print(k, v[:30].tolist(), v[-30:].tolist())
    for k in labelled.targets: print(k, labelled.allowed(k).astype(int))
    b = LabelledBatches(labelled, records, 28*16)
    import keras
    print(keras.tree.map_structure(lambda x: (x.shape, x.dtype), b[0]))
    m = LabelledModel(network(), labelled, None)
    found = m(keras.tree.map_structure(lambda x: x[0], b[0]))
    for k, v in found.items(): print(k, float(v))
    print([x.path for x in m.weights][-30:])
    t=time.time()
    net = network()
    net.compile(scheduled_optimizer("adamw", 3e-3))
    done = pretrain_labelled(net, labelled, records, folder/"out", 40, 512, interval=20, learning_rate=3e-3, verbose=2)
    print(time.time()-t, read_heads(folder/"out").keys())
