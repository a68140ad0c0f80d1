"""Texts with entities, and questions on texts with an answer or with choices."""

import warnings

from albert_tf_cli.common import shown
from albert_tf_cli.tasks.task import Examples, Task, worst
from albert_tf_lite.errors import AlbertError


class TokenClassification(Task):
    """Entities: spans of a text with a label."""

    name = "token-classification"

    def read(self, path, columns, known=None):
        from albert_tf.data import read_tagged_texts

        data = read_tagged_texts(path)
        labels = data.labels if known is None else known["labels"]
        if not labels:
            raise AlbertError(f"No text of {path} has an entity.")
        if other := sorted(set(data.labels) - set(labels)):
            raise AlbertError(
                f"{path} has the labels {other}. Expected only {list(labels)}."
            )
        return Examples(data.x, data.spans, {"labels": labels})

    def summary(self, arguments):
        return f"{len(arguments['labels'])} labels: {shown(arguments['labels'])}."

    def scores(self, examples, predicted):
        values = self.report(None, examples, predicted)
        return {name: values[name] for name in ("precision", "recall", "f1")}

    def report(self, model, examples, predicted):
        from albert_tf.evaluation import entity_scores

        spans = [[span[:3] for span in found] for found in predicted]
        return entity_scores(examples.y, spans)

    def cells(self, answer):
        return [" ".join(f"{x['word']}/{x['entity_group']}" for x in answer)]

    def predict(self, model, x, batch_size):
        return model.predict_spans(x, batch_size, verbose=0)

    def mistakes(self, model, examples, predicted):
        def named(text, spans):
            return " ".join(
                f"{text[start:end]}/{label}@{start}"
                + "".join(f" ({score:.4f})" for score in scores)
                for start, end, label, *scores in spans
            )

        rows = []
        for i, (text, spans) in enumerate(zip(examples.x, examples.y, strict=True)):
            found, right = {span[:3] for span in predicted[i]}, set(spans)
            missed = [span for span in spans if span not in found]
            wrong = [span for span in predicted[i] if span[:3] not in right]
            # 1 for each missed entity, and the score of each wrong one.
            loss = len(missed) + sum(float(score) for *_, score in wrong)
            row = {"missed": named(text, missed), "wrong": named(text, wrong)}
            rows.append({"example": i + 1, **row, "loss": loss, "text": text})
        return worst(rows)


class QuestionAnswering(Task):
    """A question and its context; scored by the script of SQuAD or CMRC 2018."""

    name = "question-answering"

    def read(self, path, columns, known=None):
        from albert_tf.data import read_squad

        found = read_squad(path)
        data = found.for_training()
        if data.moved or data.absent or data.skipped:
            warnings.warn(
                f"{path}: {data.moved} answers had a wrong answer_start, which was "
                f"corrected; {data.absent} answers are not in their context; "
                f"{data.skipped} questions have no valid answer and are skipped.",
                stacklevel=2,
            )
        if not len(data):
            raise AlbertError(f"{path} has no question with its answer in the context.")
        return Examples(data.x, data.answers)

    def tune(self, model, dev, batch_size):
        if not all(dev.y):
            kind = self._scoring_script(dev)
            model.tune_null_threshold(dev.x, dev.y, kind, batch_size)

    def scores(self, examples, predicted):
        from albert_tf.evaluation import cmrc_scores, squad_scores

        answers = [answer["answer"] for answer in predicted]
        truth = [[text for _, text in answers] for answers in examples.y]
        is_cmrc = self._scoring_script(examples) == "cmrc"
        return (cmrc_scores if is_cmrc else squad_scores)(answers, truth)

    def report(self, model, examples, predicted):
        names = {"cmrc": "CMRC 2018, in percent", "squad": "SQuAD, in percent"}
        script = names[self._scoring_script(examples)]
        return {"script": script, **self.scores(examples, predicted)}

    def _scoring_script(self, examples):
        from albert_tf.evaluation.scores import kind_of_answers

        # A sample of the contexts is enough to recognise Chinese.
        return kind_of_answers(examples.x[1][:100])


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

    def report(self, model, examples, predicted):
        import numpy as np

        chances = [1 / len(choices) for choices in examples.x[2]]
        return {
            "accuracy": float(np.mean(predicted.argmax(-1) == examples.y)),
            "chance": float(np.mean(chances)),
            "total": len(examples),
        }

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
