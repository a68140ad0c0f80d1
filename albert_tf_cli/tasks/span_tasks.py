"""Files of entities, and of questions about contexts."""

import dataclasses
import warnings

import albert_tf
from albert_tf_cli.shared.label_map import check_label_map
from albert_tf_cli.tasks import baselines
from albert_tf_cli.tasks.pages import Page, marked
from albert_tf_cli.tasks.task import Examples, Task, has_own_form, whole_blocks, worst
from albert_tf_lite.errors import AlbertError, listed
from albert_tf_lite.exported_model import ExportedModel

_SENTENCES = (("李芳在杭州的东方电子厂上班。",), ("记者王磊从成都发回了报道。",))
_STORY = "罗明月今年30岁，住在西安，是一名律师。周末的时候，罗明月喜欢爬山。"
_QUESTIONS = (("罗明月多大了？", _STORY), ("罗明月喜欢什么？", _STORY))


def _marked_entities(answer, x):
    return [{"text": x["text"], "entities": answer(x)}]


class TokenClassification(Task):
    """Entities: spans of a text with a label."""

    name = "token-classification"
    takes_label_map = True
    page = Page(("marked",), _marked_entities, _SENTENCES)

    def read(self, path, columns, arguments=None):
        data = albert_tf.data.read_tagged_texts(path, columns.encoding, columns.sheet)
        data = self._renamed(data, path, columns, arguments)
        labels = data.labels if arguments is None else arguments["labels"]
        if not labels:
            raise AlbertError(f"No text of {path} has an entity.")
        if other := sorted(set(data.labels) - set(labels)):
            raise AlbertError(
                f"{path} has the labels {listed(other, 10)}. Expected only "
                f"{listed(labels, 10)}."
            )
        return Examples(data.x, data.spans, {"labels": labels})

    def _renamed(self, data, path, columns, arguments):
        """Return the texts with the labels of `--label-map`."""
        label_map = columns.label_map
        classes = None if arguments is None else arguments["labels"]
        check_label_map(label_map, data.labels, path, classes)
        spans = [
            [(start, end, label_map.get(label, label)) for start, end, label in row]
            for row in data.spans
        ]
        return dataclasses.replace(data, spans=spans)

    def blocks(self, path, columns, fields, size):
        from albert_tf.data.sets.tagged_texts import has_tags, read_entities

        if columns.text is not None or not has_tags(path, columns.encoding):
            yield from super().blocks(path, columns, fields, size)
            return
        texts = [row.text for row in read_entities(path, columns.encoding)]
        yield from whole_blocks(texts, [None] * len(texts), fields, size)

    def class_texts(self, examples):
        for text, spans in zip(examples.x, examples.y, strict=True):
            yield from ((label, text[start:end]) for start, end, label in spans)

    def scores(self, examples, predicted):
        values = self.report(None, examples, predicted)
        return {name: values[name] for name in ("precision", "recall", "f1")}

    def baselines(self, train, dev):
        return {baselines.DICTIONARY: baselines.dictionary(train.x, train.y)}

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

        def mistake(number, text, right, answered):
            spans = {span[:3] for span in answered}
            missed = [span for span in right if span not in spans]
            wrong = [span for span in answered if span[:3] not in right]
            return {
                "example": number,
                "missed": named(text, missed),
                "wrong": named(text, wrong),
                # 1 for each missed entity, and the score of each wrong one.
                "loss": len(missed) + sum(float(score) for *_, score in wrong),
                "text": text,
            }

        mistakes = []
        for i, answered in enumerate(predicted):
            mistakes.append(mistake(i + 1, examples.x[i], examples.y[i], answered))
        return worst(mistakes)


def _ranked_answers(answer, x):
    best, *others = answer(x, top_k=3)
    spans = [(best["start"], best["end"], f"{best['score']:.2f}")]
    # The empty answer is "—". An answer may occur twice: the best score stays.
    scores = {row["answer"] or "—": row["score"] for row in [*others[::-1], best]}
    return [scores, marked(x["context"], spans if best["answer"] else [])]


class QuestionAnswering(Task):
    """A question and its context; scored by the script of SQuAD or CMRC 2018."""

    name = "question-answering"
    page = Page(("probabilities", "marked"), _ranked_answers, _QUESTIONS)

    def read(self, path, columns, arguments=None):
        data = albert_tf.data.read_squad(path, columns.encoding).for_training()
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

    def blocks(self, path, columns, fields, size):
        if columns.text is not None or not has_own_form(path, columns, fields[0]):
            yield from super().blocks(path, columns, fields, size)
            return
        found = albert_tf.data.read_squad(path, columns.encoding, has_answers=False)
        x = found.x if "question" in fields else found.x[1]
        yield from whole_blocks(x, found.ids, fields, size)

    def unlabelled_fields(self, train):
        return ("context",)

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
        return albert_tf.evaluation.answer_scores.kind_of_answers(examples.x[1][:100])
