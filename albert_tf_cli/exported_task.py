"""An exported model where the table of tasks takes a task."""


class ExportedTask:
    """Predicts by a file, and is for the rest the task that it was made from.

    Args:
        task: a task that LiteRT and ONNX files are written for.
        exported: a `LiteRTModel`, an `OnnxModel` or a `ServedModel` of it.
    """

    def __init__(self, task, exported):
        self._task = task
        self._exported = exported

    def __getattr__(self, name):
        return getattr(self._task, name)

    def predict(self, x, batch_size=None, **kwargs):
        """What `predict` of the task gives, from the answers of the file."""
        answers = self._exported.predict(x)
        if "spans" in answers:
            return [[span[:3] for span in spans] for spans in answers["spans"]]
        for name in ("score", "embedding"):
            if name in answers:
                return answers[name]
        return _outputs(self._task, answers["probabilities"])

    def encode_text(self, texts, batch_size=None, **kwargs):
        return self.predict(texts)


def _outputs(classifier, probabilities):
    """What a classifier gives where these are the probabilities."""
    import keras
    import numpy as np

    if classifier.activation is not keras.activations.linear:
        return probabilities
    smallest = np.finfo("float32").tiny
    outputs = np.log(np.maximum(probabilities, smallest))
    if classifier.multi_label:
        outputs -= np.log(np.maximum(1 - probabilities, smallest))
    return outputs
