"""Files of entities, and of questions about contexts."""

import warnings

import albert_tf
from albert_tf_cli.tasks.task import Examples, Task, has_own_form, whole_blocks, worst
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.exported_model import ExportedModel


class TokenClassification(Task):
    """Entities: spans of a text with a label."""

    name = "token-classification"

    def read(self, path, columns, known=None):
        found = albert_tf.data.read_tagged_texts(path, columns.encoding)
        labels = found.labels if known is None else known["labels"]
        if not labels:
            raise AlbertError(f"No text of {path} has an entity.")
        if other := sorted(set(found.labels) - set(labels)):
            raise AlbertError(
                f"{path} has the labels {other}. Expected only {list(labels)}."
            )
        return Examples(found.x, found.spans, {"labels": labels})

    def blocks(self, path, columns, fields, size):
        from albert_tf.data.tagged import has_tags, tagged_rows

        if columns.text is not None or not has_tags(path, columns.encoding):
            yield from super().blocks(path, columns, fields, size)
            return
        texts = [text for _, text, _ in tagged_rows(path, columns.encoding)]
        yield from whole_blocks(texts, [None] * len(texts), fields, size)

    def class_texts(self, examples):
        for text, spans in zip(examples.x, examples.y, strict=True):
            yield from ((label, text[start:end]) for start, end, label in spans)

    def scores(self, examples, predicted):
        values = self.report(None, examples, predicted)
        return {name: values[name] for name in ("precision", "recall", "f1")}

    def report(self, model, examples, predicted):
        spans = [[span[:3] for span in found] for found in predicted]
        return albert_tf.evaluation.entity_scores(examples.y, spans)

    def columns(self, answer):
        entities = (f"{x['word']}/{x['entity_group']}" for x in answer)
        return {"entities": " ".join(entities)}

    def predict(self, model, x, batch_size):
        if isinstance(model, ExportedModel):
            return model.outputs(x, batch_size)
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
        found = albert_tf.data.read_squad(path, columns.encoding).for_training()
        if found.moved or found.absent or found.skipped:
            warnings.warn(
                f"{path}: {found.moved} answers had a wrong answer_start, which was "
                f"corrected; {found.absent} answers are not in their context; "
                f"{found.skipped} questions have no valid answer and are skipped.",
                stacklevel=2,
            )
        if not len(found):
            raise AlbertError(f"{path} has no question with its answer in the context.")
        return Examples(found.x, found.answers)

    def blocks(self, path, columns, fields, size):
        if columns.text is not None or not has_own_form(path, columns, "question"):
            yield from super().blocks(path, columns, fields, size)
            return
        found = albert_tf.data.read_squad(path, columns.encoding, has_answers=False)
        yield from whole_blocks(found.x, found.ids, fields, size)

    def predict(self, model, x, batch_size):
        if isinstance(model, ExportedModel):
            return model.answers(x, batch_size)
        return super().predict(model, x, batch_size)

    def tune(self, model, dev, batch_size):
        if not all(dev.y):
            kind = self._scoring_script(dev)
            model.tune_null_threshold(dev.x, dev.y, kind, batch_size)

    def scores(self, examples, predicted):
        answers = [answer["answer"] for answer in predicted]
        truth = [[text for _, text in answers] for answers in examples.y]
        if self._scoring_script(examples) == "cmrc":
            return albert_tf.evaluation.cmrc_scores(answers, truth)
        return albert_tf.evaluation.squad_scores(answers, truth)

    def report(self, model, examples, predicted):
        names = {"cmrc": "CMRC 2018, in percent", "squad": "SQuAD, in percent"}
        script = names[self._scoring_script(examples)]
        return {"script": script, **self.scores(examples, predicted)}

    def _scoring_script(self, examples):
        # A sample of the contexts is enough to recognise Chinese.
        return albert_tf.evaluation.answers.kind_of_answers(examples.x[1][:100])
