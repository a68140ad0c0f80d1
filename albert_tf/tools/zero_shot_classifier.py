"""Zero-shot classification, by a model of natural language inference."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from albert_tf.checkpoints import Checkpoint
from albert_tf.models.albert_text_classifier import AlbertTextClassifier
from albert_tf_lite.answers import rank_classes
from albert_tf_lite.errors import AlbertError, listed
from albert_tf_lite.inputs import as_label, as_list, as_texts, complete

# The names of the two labels in data sets.
ENTAILMENT = ("entailment", "entail", "蕴含", "蕴涵")
CONTRADICTION = ("contradiction", "contradict", "not_entailment", "矛盾")
TEMPLATE = "这句话是关于{}的。"


class ZeroShotClassifier:
    """Zero-shot classification with a model of natural language inference.

    A text is the premise, and the template with a class in it the hypothesis. The
    probability of entailment is the score of the class, as in transformers' pipeline.

    Args:
        classifier: an `AlbertTextClassifier` of pairs that gives logits, fine-tuned on
            data such as OCNLI or CMNLI.
        hypothesis_template: string with `{}` in the place of the class.
        entailment, contradiction: optional strings, these labels of the classifier; by
            default the first of `ENTAILMENT` and `CONTRADICTION` that it has.

    Raises:
        AlbertError: if the template has no `{}`, or the classifier no such labels.

    Example:
    ```python
    ZeroShotClassifier(nli).predict(["球队昨晚赢了"], ["体育", "财经"])  # [1, 2]
    ```

    Reference:
        [Benchmarking Zero-shot Text Classification](https://arxiv.org/abs/1909.00161).
    """

    name_of_task = "zero-shot-classification"
    fields = ("text",)
    optional_fields = ()
    heads = ()
    # The class whose models it uses.
    wrapped_cls = AlbertTextClassifier

    def __init__(
        self,
        classifier: AlbertTextClassifier,
        hypothesis_template: str = TEMPLATE,
        entailment: str | None = None,
        contradiction: str | None = None,
    ):
        if "{}" not in hypothesis_template:
            raise AlbertError(
                "`hypothesis_template` has no {} for the class: "
                f"{hypothesis_template!r}"
            )
        is_single = classifier.name_of_task == AlbertTextClassifier.name_of_task
        if not (is_single and classifier.gives_logits):
            raise AlbertError(
                "`classifier` must return logits for single classes, without "
                "`activation` and not multi-label."
            )
        self.classifier, self.hypothesis_template = classifier, hypothesis_template
        names = [name.lower() for name in classifier.class_names]
        self.entailment_id = _find(names, ENTAILMENT, entailment)
        self.contradiction_id = _find(names, CONTRADICTION, contradiction)

    @classmethod
    def has_heads_in(cls, checkpoint: Checkpoint) -> bool:
        """Return whether a checkpoint has a classifier with both labels."""
        labels = checkpoint.head_config("classifier").get("labels") or ()
        names = {str(x).lower() for x in labels}
        return cls.wrapped_cls.has_heads_in(checkpoint) and not (
            names.isdisjoint(ENTAILMENT) or names.isdisjoint(CONTRADICTION)
        )

    def predict(
        self,
        texts: Iterable[str],
        candidate_labels: Iterable[str],
        multi_label: bool = False,
        batch_size: int | None = None,
    ) -> np.ndarray:
        """Return the probabilities of the classes, float64 [texts, classes].

        Args:
            texts: list of strings.
            candidate_labels: list of strings, the classes, such as "体育".
            multi_label: bool. Judge each class alone, as entailed or contradicted (a
                single class always is); else their probabilities sum to 1.
            batch_size: optional int, pairs of a text and a class.
        """
        premises = as_texts(texts)
        labels = _names(candidate_labels)
        hypotheses = [self.hypothesis_template.replace("{}", x) for x in labels]
        # The first text with each class, then the second one with each.
        pairs = (
            [text for text in premises for _ in labels],
            hypotheses * len(premises),
        )
        logits = self.classifier.predict(pairs, batch_size=batch_size, verbose=0)
        shape = (len(premises), len(labels), logits.shape[1])
        logits = logits.astype("float64").reshape(shape)
        entailed = logits[:, :, self.entailment_id]
        if multi_label or len(labels) == 1:
            both = np.logaddexp(entailed, logits[:, :, self.contradiction_id])
            return np.exp(entailed - both)
        return np.exp(entailed - np.logaddexp.reduce(entailed, axis=1, keepdims=True))

    def answers(
        self,
        x: Iterable[str],
        batch_size: int | None = None,
        candidate_labels: Iterable[str] = (),
        hypothesis_template: str | None = None,
        multi_label: bool = False,
    ) -> list[dict[str, Any]]:
        """Return `sequence`, the text, `labels`, the likeliest first, and `scores`."""
        texts = as_texts(x)
        labels = _names(candidate_labels)
        model = self
        if hypothesis_template is not None:
            model = ZeroShotClassifier(self.classifier, hypothesis_template)
        probabilities = model.predict(texts, labels, multi_label, batch_size)
        answers = []
        ranked = rank_classes(labels, probabilities, None)
        for text, classes in zip(texts, ranked, strict=True):
            answers.append(
                {
                    "sequence": text,
                    "labels": [one["label"] for one in classes],
                    "scores": [one["score"] for one in classes],
                }
            )
        return answers


def _names(labels):
    """Return the candidate labels as a list of strings."""
    names = [] if isinstance(labels, str) else as_list(labels, "candidate_labels")
    if not names:
        raise AlbertError(
            f"`candidate_labels` must be a list of strings. Received: {labels!r}"
        )
    return [str(as_label(x)) for x in complete(names, "candidate_labels")]


def _find(names, usual, name):
    """Return the position of a label among those of the classifier."""
    for wanted in usual if name is None else [name.lower()]:
        if wanted in names:
            return names.index(wanted)
    raise AlbertError(
        f"The classifier has no label {name or usual}, only {listed(names, 10)}. "
        f"Name its label with `{usual[0]}=`."
    )
