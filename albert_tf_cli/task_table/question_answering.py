"""Questions on texts whose answers stand in them: files of the SQuAD form."""

import warnings

from albert_tf_cli.task_table.row import Examples, Report, Row, pairs_of
from albert_tf_lite.errors import AlbertError


def read(path, columns, known=None):
    from albert_tf.data import read_squad

    found = read_squad(path)
    data = found.for_training()
    told = {
        "answers were not where their answer_start says, and were found": data.moved,
        "answers are not in their context": data.absent,
        "questions have no answer that is, and are left out": data.skipped,
    }
    counts = [f"{count} {what}" for what, count in told.items() if count]
    if counts:
        warnings.warn(f"{path}: {'; '.join(counts)}.", stacklevel=2)
    if not len(data):
        raise AlbertError(f"{path} has no question whose context holds its answer.")
    return Examples(data.x, data.answers, count=len(data), unit="questions")


def _texts(examples):
    return [[text for _, text in answers] for answers in examples.y]


def _kind(examples):
    from albert_tf.evaluation import kind_of_answers

    # Some contexts tell.
    return kind_of_answers(examples.x[1][:100])


def tune(model, examples, batch_size):
    if not all(examples.y):
        model.tune_null_threshold(examples.x, examples.y, _kind(examples), batch_size)


def scores(model, examples, batch_size):
    from albert_tf.evaluation import answer_scores

    found = model.predict(examples.x, batch_size=batch_size, verbose=0)
    predicted = [answer["answer"] for answer in found]
    return answer_scores(predicted, _texts(examples), _kind(examples))


def report(model, examples, batch_size):
    values = {"scores": _kind(examples), **scores(model, examples, batch_size)}
    by_script = {"cmrc": "CMRC 2018", "squad": "SQuAD"}[values["scores"]]
    lines = [f"As the script of {by_script} scores, in percent:"]
    lines += [
        f"{name.replace('_', ' ')} {value:.2f}"
        for name, value in values.items()
        if isinstance(value, float)
    ]
    return Report(values, [*lines, f"{values['total']} questions"])


def inputs(model, lines):
    expected = "This model takes a question and its context with a tab between them."
    return pairs_of(lines, expected)


def cells(answer):
    return [answer["answer"], f"{answer['score']:.4f}"]


ROW = Row(
    name="question-answering",
    maximise="f1",
    read=read,
    report=report,
    cells=cells,
    scores=scores,
    tune=tune,
    inputs=inputs,
)
