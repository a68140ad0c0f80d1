"""Questions on texts with several choices: files of the C3 and RACE forms."""

from albert_tf_cli.tasks.task import Examples, Report, Task
from albert_tf_lite.errors import AlbertError


class MultipleChoice(Task):
    """A context, a question and at least two choices."""

    name = "multiple-choice"

    def read(self, path, columns, known=None):
        from albert_tf.data import read_choices

        data = read_choices(path)
        if data.labels is None:
            raise AlbertError(
                f"{path} lacks the answers of its questions. Pass a labelled file."
            )
        return Examples(data.x, data.labels)

    def report(self, model, examples, batch_size):
        import numpy as np

        logits = model.predict(examples.x, batch_size=batch_size, verbose=0)
        accuracy = float(np.mean(logits.argmax(-1) == examples.y))
        chance = float(np.mean([1 / len(choices) for choices in examples.x[2]]))
        total = len(examples)
        values = {"accuracy": accuracy, "chance": chance, "total": total}
        return Report.of_scores(values)

    def inputs(self, model, lines):
        contexts, questions, choices = super().inputs(model, lines)
        rows = [row.split("\t") for row in choices]
        for line, row in zip(lines, rows, strict=True):
            if len(row) < 2:
                raise AlbertError(
                    "Expected at least two choices after context and question, "
                    f"separated by tabs. Received: {line!r}"
                )
        return contexts, questions, rows
