"""Articles and their summaries, made of sentences of the article."""

from albert_tf_cli.task_table.row import Examples, Report, Row


def read(path, columns, known=None):
    from albert_tf.data import read_articles

    articles, summaries = read_articles(path)
    return Examples(articles, summaries, count=len(articles), unit="articles")


def scores(model, examples, batch_size):
    from albert_tf.evaluation import rouge_scores

    found = model.predict(examples.x, batch_size=batch_size, verbose=0)
    return rouge_scores([answer["summary"] for answer in found], examples.y)


def baselines(examples):
    """The ROUGE of the first sentences, and of those nearest to the centroid."""
    from albert_tf.evaluation import centroid_scores, rouge_scores
    from albert_tf.models.albert_summarizer import SENTENCES
    from albert_tf.preprocessing.sentences import choose_sentences, sentences_of

    kinds = {
        "first sentences": lambda row: [-float(i) for i in range(len(row))],
        "centroid": centroid_scores,
    }
    values = {}
    for name, score in kinds.items():
        summaries = []
        for row in sentences_of(examples.x):
            chosen = choose_sentences(row, score(row), SENTENCES)
            summaries.append("".join(row[i] for i in chosen))
        values[name] = rouge_scores(summaries, examples.y)
    return values


def report(model, examples, batch_size):
    rows = {"model": scores(model, examples, batch_size), **baselines(examples)}
    lines = [
        f"{name}: " + ", ".join(f"{kind} {value:.4f}" for kind, value in row.items())
        for name, row in rows.items()
    ]
    return Report({**rows.pop("model"), "baselines": rows}, lines)


def cells(answer):
    return [" ".join(answer["summary"].split())]


def inputs(model, lines):
    return lines


ROW = Row(
    name="summarization",
    read=read,
    report=report,
    cells=cells,
    scores=scores,
    inputs=inputs,
)
