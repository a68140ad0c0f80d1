"""What models answer, as dicts of plain Python: what `predict --json` prints.

Each function is given a model, x as its `predict` takes it, and a batch size, and gives
a value for each example. Its further arguments are the options of the pipeline.
"""

from __future__ import annotations

import numpy as np

from albert_tf.models.zero_shot_classifier import TEMPLATE, ZeroShotClassifier
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.plain_answers import (
    best_of,
    check_top_k,
    chosen_of,
    cosines_of,
    entities_of,
    orders_of,
    ranked,
    scores_of,
)

# Of a summary, here as in most papers on news.
SENTENCES = 3


def classify(model, x, batch_size=None, top_k=1, engine=None):
    """`label` and `score` of the likeliest class; of more than one a list."""
    outputs = model.predict(x, batch_size=batch_size, engine=engine, verbose=0)
    probabilities = np.asarray(model.answers(outputs)["probabilities"])
    return ranked(model.class_names, probabilities, top_k)


def classify_multi_label(model, x, batch_size=None, top_k="auto", engine=None):
    """`label` and `score` of each class that the text has, or of the likeliest."""
    outputs = model.predict(x, batch_size=batch_size, engine=engine, verbose=0)
    found = model.answers(outputs)
    values = (np.asarray(found[name]) for name in ("probabilities", "chosen"))
    return chosen_of(model.class_names, *values, top_k)


def classify_zero_shot(
    model,
    x,
    batch_size=None,
    candidate_labels=(),
    hypothesis_template=TEMPLATE,
    multi_label=False,
):
    """`sequence`, the text, `labels`, the likeliest first, and their `scores`."""
    rows = ZeroShotClassifier(model, hypothesis_template).predict(
        x, candidate_labels, multi_label=multi_label, batch_size=batch_size
    )
    return [
        {
            "sequence": text,
            "labels": [one["label"] for one in found],
            "scores": [one["score"] for one in found],
        }
        for text, found in zip(x, ranked(candidate_labels, rows, None), strict=True)
    ]


def regress(model, x, batch_size=None, engine=None):
    """`score`, the number."""
    outputs = model.predict(x, batch_size=batch_size, engine=engine, verbose=0)
    return scores_of(outputs)


def find_entities(model, x, batch_size=None):
    """A list of `entity_group`, `word`, `start`, `end` and `score`."""
    found = model.predict(x, batch_size=batch_size, scores=True, verbose=0)
    return entities_of(x, found)


def answer_questions(
    model, x, batch_size=None, top_k=1, null_threshold="auto", max_answer_length=None
):
    """`answer`, `start`, `end` and `score`; of more than one answer a list."""
    if top_k is None:
        raise AlbertError(
            "`top_k` of answers should be a number; there is no end of all."
        )
    check_top_k(top_k)
    return model.predict(
        x,
        batch_size=batch_size,
        n_best=top_k,
        null_threshold=null_threshold,
        max_answer_length=max_answer_length,
        verbose=0,
    )


def choose(model, x, batch_size=None, top_k=1):
    """`label`, the text of the choice, `label_id`, its place, and `score`."""
    logits = model.predict(x, batch_size=batch_size, verbose=0)
    rows = model.answers(logits)["probabilities"].numpy()
    answers = []
    for choices, row in zip(x[2], rows, strict=True):
        order = np.argsort(-row[: len(choices)], kind="stable").tolist()
        answers.append(
            [
                {"label": choices[i], "label_id": i, "score": float(row[i])}
                for i in order
            ]
        )
    return best_of(answers, top_k)


def embed(model, x, batch_size=None, engine=None):
    """`embedding`, the vector of a text, a list; of a pair `score`, their cosine."""
    options = {"batch_size": batch_size, "engine": engine}
    if isinstance(x, tuple):
        return scores_of(cosines(model, x, **options))
    vectors = model.encode_text(x, **options)
    return [{"embedding": vector} for vector in vectors.tolist()]


def cosines(model, pairs, batch_size=None, engine=None):
    """The cosine of the vectors of each pair, a float array [pairs]."""
    options = {"batch_size": batch_size, "engine": engine}
    return cosines_of(*(model.encode_text(part, **options) for part in pairs))


def correct(model, x, batch_size=None):
    """`source`, `target` and `errors`: wrong character, right one, position."""
    return model.correct(x, batch_size=batch_size)


def fill(model, x, batch_size=None, top_k=5, targets=None):
    """Lists of `score`, `token`, `token_str`, `sequence`, `start` and `end`."""
    check_top_k(top_k)
    return model.fill(x, top_k=top_k, targets=targets, batch_size=batch_size)


def tell_order(model, x, batch_size=None):
    """`label`, "in_order" or "swapped", and `score`."""
    return orders_of(model.sentence_order(*x, batch_size=batch_size))


def summarize(model, x, batch_size=None, sentences=SENTENCES, max_characters=None):
    """`summary`, a string, and `sentences`, lists of start, end and score."""
    return model.predict(
        x,
        batch_size=batch_size,
        sentences=sentences,
        max_characters=max_characters,
        verbose=0,
    )
