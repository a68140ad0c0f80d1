"""Train sentence embeddings and search with them: sentence_embeddings.py [FILE]

FILE (.tsv, .csv or .jsonl, such as STS-B) has two sentences and their similarity per
line; the last fifth is for testing. By default, the model learns which questions to an
online shop have the same meaning.
"""

import itertools
import pathlib
import sys

import keras
import numpy as np

import albert_tf
from albert_tf.data import contrastive_pairs, read_labelled_texts
from albert_tf.evaluation import regression_scores

HERE = pathlib.Path(__file__).parent


def all_pairs(rows):
    """Return all pairs of questions, scored 1 for the same meaning and 0 otherwise.

    With binary scores, a share p of them 1, Spearman is at most sqrt(3 p (1 - p)).
    """
    pairs = [
        (a[0], b[0], float(a[1] == b[1])) for a, b in itertools.combinations(rows, 2)
    ]
    first, second, scores = map(list, zip(*pairs, strict=True))
    return (first, second), scores


if sys.argv[1:]:
    data = read_labelled_texts(sys.argv[1], pairs=True)
    (first, second), scores = data.x, data.scores()
    cut = len(scores) * 4 // 5
    train = (first[:cut], second[:cut]), scores[:cut]
    test = (first[cut:], second[cut:]), scores[cut:]
    corpus = sorted(set(second))
else:
    data = read_labelled_texts(HERE / "data/intents/questions.tsv")
    rows = list(zip(data.x, data.labels, strict=True))
    learned = [row for i, row in enumerate(rows) if i % 9 < 6]
    train = contrastive_pairs(*zip(*learned, strict=True), rounds=10)
    test = all_pairs([row for i, row in enumerate(rows) if i % 9 >= 6])
    corpus = data.x

keras.utils.set_random_seed(1)
embedder = albert_tf.models.AlbertTextEmbedder.from_checkpoint(HERE / "albert_micro_zh")


def spearman():
    first, second = map(embedder.encode_text, test[0])
    return regression_scores(test[1], np.sum(first * second, axis=1))["spearman"]


before = spearman()
embedder.fit(*train, epochs=2, batch_size=64, verbose=2)
after = spearman()
print(f"Spearman before {before:.4f}, after {after:.4f}")

query = "衣服小了想换大的" if not sys.argv[1:] else "一个人在弹琴"
for found in embedder.search(query, corpus, top_k=3):
    print(f"{found['score']:.3f}\t{found['text']}")
