"""Files of questions with choices."""

import numpy as np

import albert_tf
from albert_tf_cli.tasks import baselines
from albert_tf_cli.tasks.pages import Page, all_labels
from albert_tf_cli.tasks.task import Examples, Task, has_own_form, whole_blocks
from albert_tf_lite.errors import AlbertError

_EXAMPLES = (("男：几点考试？女：九点，别迟到。", "考试几点开始？", "五点\n九点"),)


class MultipleChoice(Task):
    """A context, a question and at least two choices."""

    name = "multiple-choice"
    page = Page(("probabilities",), all_labels, _EXAMPLES)

    def read(self, path, columns, arguments=None):
        found = albert_tf.data.read_choices(path, columns.encoding)
        if found.labels is None:
            raise AlbertError(
                f"{path} lacks the answers of its questions. Pass a labelled file."
            )
        return Examples(found.x, found.labels)

    def report(self, model, examples, predicted):
        chances = [1 / len(choices) for choices in examples.x[2]]
        return {
            "accuracy": float(np.mean(predicted.argmax(-1) == examples.y)),
            "chance": float(np.mean(chances)),
            "total": len(examples),
        }

    def baselines(self, train, dev):
        return {baselines.CONSTANT: baselines.most_frequent(train.y)}

    def baseline_scores(self, examples, predicted):
        return {"accuracy": float(np.mean(predicted == np.asarray(examples.y)))}

    def unlabelled_fields(self, train):
        return ("context", "question", "choices")

    def inputs(self, fields, lines):
        *parts, choices = super().inputs(fields, lines)
        return (*parts, [self._checked(x.split("\t"), x) for x in choices])

    def blocks(self, path, columns, fields, size):
        if has_own_form(path, columns, "question"):
            found = albert_tf.data.read_choices(path, columns.encoding)
            yield from whole_blocks(found.x, found.ids, fields, size)
            return
        yield from super().blocks(path, columns, fields, size)

    def cells(self, table, roles):
        table.find(*roles)
        cells = table.column("choices")
        rows = [x.split("|") if isinstance(x, str) else x for x in cells]
        choices = [self._checked(row, row) for row in rows]
        return (*map(table.strings, roles[:-1]), choices)

    def _checked(self, choices, shown):
        if len(choices) < 2:
            raise AlbertError(
                "Expected at least two choices after context and question, separated "
                f"by tabs, in a column by |. Received: {shown!r}"
            )
        return choices
