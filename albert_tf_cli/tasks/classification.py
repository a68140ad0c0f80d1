"""Files of texts with one class or several."""

import dataclasses
import itertools

import numpy as np

import albert_tf
from albert_tf.data.labels.separators import check_single
from albert_tf_cli.shared.importing import import_tensorflow
from albert_tf_cli.shared.label_map import check_label_map, likely_option
from albert_tf_cli.tasks import baselines
from albert_tf_cli.tasks.pages import TEXTS, Page, all_labels, ranking
from albert_tf_cli.tasks.task import (
    Examples,
    OwnLabels,
    Task,
    read_labelled,
    text_columns,
    worst,
)
from albert_tf_lite.answers import ANSWERS
from albert_tf_lite.errors import AlbertError, listed
from albert_tf_lite.exported_model import ExportedModel
from albert_tf_lite.inputs import class_positions

# The most classes that a mistake of a multi-label model shows.
MOST_NAMES = 20
# The probability from which a model learns its own label of a text.
SURE = 0.8
# One text in so many gets no label of the model's own. A model is too sure of labels
# that it learned, and dev has too few examples to find its temperature.
REFERENCE_EACH = 10


class _Classification(Task):
    """Base class of single-label and multi-label classification."""

    takes_columns = True
    takes_label_map = True

    def predict(self, model, x, batch_size):
        outputs = super().predict(model, x, batch_size)
        is_exported = isinstance(model, ExportedModel)
        settings = model.settings if is_exported else model.exported_settings()
        return ANSWERS[self.name].arrays(outputs, settings)

    def explain(self, model):
        from albert_tf.tools import IntegratedGradients

        return IntegratedGradients(model)

    def _calibration(self, truth, probabilities):
        """Return the calibration scores of a report, and the bins of its plot."""
        return {
            **albert_tf.evaluation.calibration_scores(truth, probabilities),
            "reliability": albert_tf.evaluation.reliability_bins(truth, probabilities),
        }

    def _labels(self, names, arguments):
        """Return the labels of a model of the arguments, or those of the examples."""
        if arguments is None:
            return albert_tf.data.class_names(names)
        return list(map(str, arguments["labels"] or range(arguments["num_classes"])))

    def _names(self, examples):
        """Return the classes of each example."""
        return [[label] for label in examples.y]

    def class_texts(self, examples):
        for i, names in enumerate(self._names(examples)):
            text = " / ".join(text_columns(examples.x, i).values())
            yield from ((name, text) for name in names)

    def _examples(self, data, y, labels):
        arguments = {"num_classes": len(labels), "labels": labels, "pairs": data.pairs}
        return Examples(data.x, y, arguments)


class TextClassification(_Classification):
    """One class per text, in the column `label`."""

    name = "text-classification"
    skips_invalid = True
    page = Page(("probabilities",), all_labels, TEXTS)

    def read(self, path, columns, arguments=None, skip_invalid=False):
        data = read_labelled(path, columns, arguments)
        if arguments is None:
            check_single(data.labels, data.places)
        data = self._renamed(data, path, columns, arguments)
        labels = self._labels(data.labels, arguments)
        if skip_invalid:
            data = data.without_invalid(labels)
        if arguments is None and len(labels) == 1 and set(data.labels) == set(labels):
            raise AlbertError(
                f"All texts of {path} have the label {labels[0]!r}. Expected at least "
                "two classes. Name the right column with `label=`."
            )
        try:
            ids = data.class_ids(labels)
        except AlbertError as error:
            option = likely_option(set(data.labels), labels)
            raise AlbertError(f"{error}{option}") from None
        # Names, because numbers could be names, too.
        names = [labels[i] for i in ids]
        return self._examples(data, names, labels)

    def _renamed(self, data, path, columns, arguments):
        """Return the examples with the labels of `--label-map`."""
        names = {label for label in data.labels if isinstance(label, str)}
        classes = None if arguments is None else self._labels((), arguments)
        check_label_map(columns.label_map, names, path, classes)
        labels = [columns.label_map.get(label, label) for label in data.labels]
        return dataclasses.replace(data, labels=labels)

    def scores(self, examples, predicted):
        names = predicted["label"]
        scores = albert_tf.evaluation.classification_scores(examples.y, names)
        # Keras computes the accuracy, which the micro F1 equals.
        return {"macro_f1": scores["macro_f1"]}

    def own_labels(self, model, x, batch_size):
        from albert_tf.evaluation.calibration import MIN_EXAMPLES

        predicted = self.predict(model, x, batch_size)
        probabilities = predicted["probabilities"]
        answered = Examples(x, predicted["label"])
        is_reference = np.arange(len(answered)) % REFERENCE_EACH == 0
        if is_reference.sum() < MIN_EXAMPLES:
            is_reference[:] = False
        is_sure = probabilities.max(axis=-1) >= SURE
        sure = answered.select(np.flatnonzero(is_sure & ~is_reference))
        if not is_reference.any():
            return OwnLabels(sure, reference=None)
        others = answered.select(np.flatnonzero(is_reference))
        reference = dataclasses.replace(others, y=probabilities[is_reference])
        return OwnLabels(sure, reference)

    def is_as_good(self, model, former, dev, batch_size):
        now, before = (
            np.array(self.predict(x, dev.x, batch_size)["label"]) == np.array(dev.y)
            for x in (model, former)
        )
        lost, gained = (before & ~now).sum(), (now & ~before).sum()
        # Of answers that only one gives right, half are lost by chance.
        return bool(lost - gained <= np.sqrt(lost + gained))

    def calibrate_to(self, model, reference, batch_size):
        from albert_tf.evaluation.calibration import closest_temperature

        logits = model.predict(reference.x, batch_size=batch_size, verbose=0)
        model.temperature = closest_temperature(logits, reference.y)

    def baselines(self, train, dev):
        predictors = {baselines.CONSTANT: baselines.most_frequent(train.y)}
        if linear := baselines.linear_classes(train):
            predictors[baselines.LINEAR] = linear
        return predictors

    def baseline_scores(self, examples, predicted):
        return albert_tf.evaluation.classification_scores(examples.y, predicted)

    def report(self, model, examples, predicted):
        rows = albert_tf.evaluation.classification_report(
            examples.y, predicted["label"], model.class_names
        )
        truth = class_positions(examples.y, model.class_names)
        probabilities = predicted["probabilities"]
        return {
            **rows,
            **self.scores(examples, predicted),
            **self._calibration(truth, probabilities),
            "coverage": albert_tf.evaluation.coverage(truth, probabilities),
        }

    def mistakes(self, model, examples, predicted):
        truth = class_positions(examples.y, model.class_names)
        mistakes = albert_tf.evaluation.worst_mistakes(
            predicted["probabilities"], truth
        )
        return [
            {
                "example": row["index"] + 1,
                "label": model.class_names[row["label_id"]],
                "predicted": model.class_names[row["predicted_id"]],
                "probability": row["predicted_probability"],
                "of_label": row["label_probability"],
                **text_columns(examples.x, row["index"]),
            }
            for row in mistakes
        ]


def _checked_labels(answer, x):
    """Return the scores of all labels for a page, with marks at the predicted ones."""
    (predicted,), (scores,) = ranking(answer, x), all_labels(answer, x)
    marks = {name: "✓ " if name in predicted else "" for name in scores}
    return [{marks[name] + name: score for name, score in scores.items()}]


class MultiLabel(_Classification):
    """Any number of classes per text, such as "体育|娱乐"."""

    name = "multi-label"
    splits_labels = True
    page = Page(("probabilities",), _checked_labels, TEXTS)

    def read(self, path, columns, arguments=None):
        data = read_labelled(path, columns, arguments)
        classes = None if arguments is None else self._labels((), arguments)
        label_map = columns.label_map
        known = None if classes is None else [*classes, *label_map]
        names = data.label_lists(columns.label_separator, known)
        check_label_map(label_map, itertools.chain(*names), path, classes)
        names = [[label_map.get(name, name) for name in row] for row in names]
        labels = self._labels(itertools.chain(*names), arguments)
        if not labels:
            raise AlbertError(
                f"No text of {path} has a label. Write the labels of a text into one "
                'cell, such as "体育|娱乐", or check --label-column.'
            )
        if arguments is None and all(set(row) == set(labels) for row in names):
            raise AlbertError(
                f"All texts of {path} have the labels {listed(labels)}. Expected texts "
                "without them, too, with an empty label."
            )
        import_tensorflow()
        from albert_tf.trainers.labels import multi_hot

        y = multi_hot(data.x, names, len(labels), labels)
        return self._examples(data, y, labels)

    def _names(self, examples):
        labels = np.array(examples.arguments["labels"], object)
        return [labels[np.asarray(row, bool)] for row in examples.y]

    def tune(self, model, dev, batch_size):
        from albert_tf.tools import tune_thresholds

        tune_thresholds(model, dev.x, dev.y, batch_size)

    def scores(self, examples, predicted):
        return albert_tf.evaluation.multi_label_scores(examples.y, predicted["chosen"])

    def baselines(self, train, dev):
        from albert_tf.evaluation.scores import best_thresholds

        predictors = {baselines.CONSTANT: baselines.most_frequent_labels(train.y)}
        if probabilities := baselines.linear_labels(train):
            # Chosen on dev, as those of the model.
            thresholds = best_thresholds(dev.y, probabilities(dev.x))
            predictors[baselines.LINEAR] = lambda x: probabilities(x) >= thresholds
        return predictors

    def baseline_scores(self, examples, predicted):
        return self.scores(examples, {"chosen": predicted})

    def report(self, model, examples, predicted):
        names, chosen = model.class_names, predicted["chosen"]
        rows = albert_tf.evaluation.classification_report(examples.y, chosen, names)
        calibration = self._calibration(examples.y, predicted["probabilities"])
        return {**rows, **self.scores(examples, predicted), **calibration}

    def columns(self, answer):
        return {
            "labels": "|".join(label["label"] for label in answer),
            "scores": "|".join(f"{label['score']:.4f}" for label in answer),
        }

    def mistakes(self, model, examples, predicted):
        truth = np.asarray(examples.y)
        chosen = predicted["chosen"]
        probabilities = predicted["probabilities"]
        # The probability of what is true: that a class applies, or that it does not.
        given = np.maximum(np.where(truth, probabilities, 1 - probabilities), 1e-12)

        def named(i, wrong):
            ids = np.flatnonzero(wrong[i])
            names = [f"{model.class_names[j]} {probabilities[i, j]:.4f}" for j in ids]
            more = f"… ({len(names)})" if len(names) > MOST_NAMES else ""
            return "|".join(names[:MOST_NAMES]) + more

        def mistake(i, loss):
            return {
                "example": i + 1,
                "missed": named(i, truth > chosen),
                "wrong": named(i, chosen > truth),
                "loss": float(loss),
                **text_columns(examples.x, i),
            }

        # In nats, the sum over the classes.
        losses = -np.log(given).sum(axis=1)
        return worst(mistake(i, loss) for i, loss in enumerate(losses))
