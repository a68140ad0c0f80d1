"""The tasks that read files: their readers, scores, mistakes and columns."""

import itertools
import os
import warnings
from collections import Counter

import numpy as np

import albert_tf
from albert_tf.data.labels import check_single
from albert_tf_cli import common
from albert_tf_cli.tasks.task import Examples, Task, columns_of, whole_blocks, worst
from albert_tf_lite.answers import ANSWERS, cosines_of
from albert_tf_lite.errors import AlbertError
from albert_tf_lite.exported_model import ExportedModel
from albert_tf_lite.inputs import class_positions


def read_labelled(path, columns, known=None):
    """Read a table; with `known`, of pairs if the model takes pairs."""
    pairs = None if known is None else known["pairs"]
    names = columns.label, columns.text, columns.text_b
    return albert_tf.data.read_labelled_texts(
        path, *names, pairs=pairs, encoding=columns.encoding
    )


class _Classification(Task):
    """Base class of single-label and multi-label classification."""

    takes_columns = True

    def predict(self, model, x, batch_size):
        outputs = super().predict(model, x, batch_size)
        is_exported = isinstance(model, ExportedModel)
        settings = model.settings if is_exported else model.exported_settings()
        return ANSWERS[self.name].arrays(outputs, settings)

    def explain(self, model):
        from albert_tf.models import IntegratedGradients

        return IntegratedGradients(model)

    def _labels(self, names, known):
        """Return the labels of the model `known`, or those of the examples."""
        if known is None:
            return albert_tf.data.class_names(names)
        return list(map(str, known["labels"] or range(known["num_classes"])))

    def _names(self, examples):
        """Return the classes of each example."""
        return [[label] for label in examples.y]

    def class_counts(self, examples):
        counts = Counter(itertools.chain(*self._names(examples)))
        return {label: counts[label] for label in examples.arguments["labels"]}

    def class_examples(self, examples):
        found = dict.fromkeys(examples.arguments["labels"], "")
        for i, names in enumerate(self._names(examples)):
            for name in names:
                columns = columns_of(examples.x, i)
                found[name] = found[name] or " / ".join(columns.values())
        return found

    def _examples(self, found, y, labels):
        arguments = {"num_classes": len(labels), "labels": labels, "pairs": found.pairs}
        return Examples(found.x, y, arguments)


class TextClassification(_Classification):
    """One class per text, in the column `label`."""

    name = "text-classification"
    skips_invalid = True

    def read(self, path, columns, known=None, skip_invalid=False):
        found = read_labelled(path, columns, known)
        if known is None:
            check_single(found.labels, found.places)
        labels = self._labels(found.labels, known)
        found = found.without_invalid(labels) if skip_invalid else found
        if known is None and len(labels) == 1 and set(found.labels) == set(labels):
            raise AlbertError(
                f"All texts of {path} have the label {labels[0]!r}. Expected at least "
                "two classes. Check --label-column."
            )
        # Names, because numbers could be names, too.
        names = [labels[i] for i in found.class_ids(labels)]
        return self._examples(found, names, labels)

    def scores(self, examples, predicted):
        names = predicted["label"]
        scores = albert_tf.evaluation.classification_scores(examples.y, names)
        # Keras computes the accuracy, which the micro F1 equals.
        return {"macro_f1": scores["macro_f1"]}

    def report(self, model, examples, predicted):
        rows = albert_tf.evaluation.classification_report(
            examples.y, predicted["label"], model.class_names
        )
        return {**rows, **self.scores(examples, predicted)}

    def mistakes(self, model, examples, predicted):
        truth = class_positions(examples.y, model.class_names)
        found = albert_tf.evaluation.worst_mistakes(predicted["probabilities"], truth)
        return [
            {
                "example": row["index"] + 1,
                "label": model.class_names[row["label_id"]],
                "predicted": model.class_names[row["predicted_id"]],
                "probability": row["predicted_probability"],
                "of_label": row["label_probability"],
                **columns_of(examples.x, row["index"]),
            }
            for row in found
        ]


class MultiLabel(_Classification):
    """Any number of classes per text, such as "体育|娱乐"."""

    name = "multi-label"
    splits_labels = True

    def read(self, path, columns, known=None):
        found = read_labelled(path, columns, known)
        classes = None if known is None else self._labels((), known)
        names = found.label_lists(columns.label_separator, classes)
        labels = self._labels(itertools.chain(*names), known)
        if not labels:
            raise AlbertError(
                f"No text of {path} has a label. Write the labels of a text into one "
                'cell, such as "体育|娱乐", or check --label-column.'
            )
        common.import_tensorflow()
        from albert_tf.preprocessing.texts import multi_hot

        y = multi_hot(found.x, names, len(labels), labels)
        return self._examples(found, y, labels)

    def _names(self, examples):
        labels = np.array(examples.arguments["labels"], object)
        return [labels[np.asarray(row, bool)] for row in examples.y]

    def tune(self, model, dev, batch_size):
        from albert_tf.models import tune_thresholds

        tune_thresholds(model, dev.x, dev.y, batch_size)

    def scores(self, examples, predicted):
        return albert_tf.evaluation.multi_label_scores(examples.y, predicted["chosen"])

    def report(self, model, examples, predicted):
        names, chosen = model.class_names, predicted["chosen"]
        rows = albert_tf.evaluation.classification_report(examples.y, chosen, names)
        return {**rows, **self.scores(examples, predicted)}

    def columns(self, answer):
        return {
            "labels": "|".join(label["label"] for label in answer),
            "scores": "|".join(f"{label['score']:.4f}" for label in answer),
        }

    def mistakes(self, model, examples, predicted):
        truth, chosen = np.asarray(examples.y), predicted["chosen"]
        probabilities = predicted["probabilities"]
        given = np.maximum(np.where(truth, probabilities, 1 - probabilities), 1e-12)

        def named(i, wrong):
            ids = np.flatnonzero(wrong[i])
            return "|".join(
                f"{model.class_names[j]} {probabilities[i, j]:.4f}" for j in ids
            )

        rows = (
            {
                "example": i + 1,
                "missed": named(i, truth > chosen),
                "wrong": named(i, chosen > truth),
                # In nats, the sum over the classes.
                "loss": float(loss),
                **columns_of(examples.x, i),
            }
            for i, loss in enumerate(-np.log(given).sum(axis=1))
        )
        return worst(rows)


class Regression(Task):
    """A number per text or pair, such as the similarity of two texts."""

    name = "regression"
    takes_columns = True
    skips_invalid = True

    def read(self, path, columns, known=None, skip_invalid=False):
        found = read_labelled(path, columns, known)
        found = found.without_invalid() if skip_invalid else found
        return Examples(found.x, found.scores(), {"pairs": found.pairs})

    def predict(self, model, x, batch_size):
        return np.ravel(super().predict(model, x, batch_size))

    def scores(self, examples, predicted):
        return albert_tf.evaluation.regression_scores(examples.y, predicted)


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

    def class_counts(self, examples):
        counts = Counter(label for spans in examples.y for *_, label in spans)
        return {label: counts[label] for label in examples.arguments["labels"]}

    def class_examples(self, examples):
        found = dict.fromkeys(examples.arguments["labels"], "")
        for text, spans in zip(examples.x, examples.y, strict=True):
            for start, end, label in spans:
                found[label] = found[label] or text[start:end]
        return found

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
        return albert_tf.evaluation.scores.kind_of_answers(examples.x[1][:100])


class MultipleChoice(Task):
    """A context, a question and at least two choices."""

    name = "multiple-choice"

    def read(self, path, columns, known=None):
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
        table.find(*roles, pairs=False)
        cells = table.column("choices")
        rows = [x.split("|") if isinstance(x, str) else x for x in cells]
        choices = [self._checked(row, row) for row in rows]
        return (*table.cells(*roles[:-1]), choices)

    def _checked(self, choices, shown):
        if len(choices) < 2:
            raise AlbertError(
                "Expected at least two choices after context and question, separated "
                f"by tabs, in a column by |. Received: {shown!r}"
            )
        return choices


def has_own_form(path, columns, name):
    """Return whether a file is a directory, or JSON other than records with a field."""
    from albert_tf.data.reading import is_json, read_json, stream_lines

    if os.path.isdir(path):
        return True
    lines = filter(str.strip, stream_lines(path, columns.encoding))
    if not is_json(next(lines, "")):
        return False
    _, first = next(read_json(path, columns.encoding), (None, None))
    return not (isinstance(first, dict) and name in first)


class TextEmbedding(Task):
    """Pairs with their similarity; `predict` compares two texts per line."""

    name = "text-embedding"
    takes_columns = True
    skips_invalid = True

    def read(self, path, columns, known=None, skip_invalid=False):
        found = read_labelled(path, columns, {"pairs": True})
        found = found.without_invalid() if skip_invalid else found
        return Examples(found.x, found.scores())

    def predict(self, model, x, batch_size):
        predict = super().predict
        return cosines_of(*(predict(model, part, batch_size) for part in x))

    def scores(self, examples, predicted):
        scores = albert_tf.evaluation.regression_scores(examples.y, predicted)
        # Cosines have another range than the labels.
        return {name: scores[name] for name in ("pearson", "spearman")}

    def fields(self, model):
        return ("text", "text_pair")

    def inputs(self, fields, lines):
        # Without a tab in any line they are single texts, each of which has a vector.
        is_single = not any("\t" in line for line in lines)
        return super().inputs(fields[:1] if is_single else fields, lines)

    def cells(self, table, roles):
        # A pair unless there is one text, or one is named.
        table.find("text", pairs=False if table.given == {"text"} else None)
        is_pair = "text_b" in table.columns and table.given != {"text"}
        return table.cells(*roles[: 1 + is_pair])


class SpellingCorrection(Task):
    """A misspelt and a correct text of the same length."""

    name = "spelling-correction"

    def read(self, path, columns, known=None):
        return Examples(*albert_tf.data.read_spelling(path, columns.encoding))

    def cells(self, table, roles):
        # The correct texts, if there are such, stand beside the misspelt ones.
        both = ("original", "correct")
        is_pair = not table.has_header and len(table.header) == 2
        if table.given or not (is_pair or {*both} <= {*table.columns}):
            return super().cells(table, roles)
        table.find(*both)
        return table.cells("original")

    def predict(self, model, x, batch_size):
        return [answer["target"] for answer in model.correct(x, batch_size)]

    def scores(self, examples, predicted):
        return albert_tf.evaluation.spelling_scores(examples.x, examples.y, predicted)

    def columns(self, answer):
        errors = (
            f"{wrong}→{right}@{place}" for wrong, right, place in answer["errors"]
        )
        return {"target": answer["target"], "errors": " ".join(errors)}


class Summarization(Task):
    """An article and its summary, sentences of the article; scored by ROUGE."""

    name = "summarization"
    requires = ("rouge_score",)

    def read(self, path, columns, known=None):
        return Examples(*albert_tf.data.read_articles(path, columns.encoding))

    def roles(self, fields):
        return ("article",)

    def cells(self, table, roles):
        table.find(*roles, pairs=False)
        # Sentences of Chinese have no space between them.
        return (
            [
                x if isinstance(x, str) else (" " * x[0].isascii()).join(x)
                for x in table.column("article")
            ],
        )

    def scores(self, examples, predicted):
        summaries = [answer["summary"] for answer in predicted]
        return albert_tf.evaluation.rouge_scores(summaries, examples.y)

    def columns(self, answer):
        return {"summary": " ".join(answer["summary"].split())}
