import keras
import tensorflow as tf

from albert_tf.files import complete_directory


def saved_model(classifier, directory, labels=None, pairs=None):
    """Write a SavedModel that takes strings, for TensorFlow Serving.

    It answers two signatures:

    - `serving_default`: `text`, a string tensor [batch], and for a model of
      pairs `text_b`, another. An empty `text_b` is no second text.
    - `tokens`: `token_ids`, `segment_ids`, `padding_mask`, int32 [batch, time].

    Both give `label` (string), `label_id` (int32) and `probabilities`
    (float32 [batch, num_classes]). Whoever loads it needs tensorflow and
    tensorflow_text, and of the latter only what TensorFlow Serving links.

    Args:
        classifier: an `AlbertTextClassifier` with a preprocessor.
        directory: string. For TensorFlow Serving its name is a version number,
            such as `"serving/1"`.
        labels: optional list of strings, the names of the classes. By default
            the classifier's `labels`, or the class numbers.

        pairs: optional bool. Whether the model takes pairs of texts. By default
            what the classifier was last fitted on.

    Raises:
        ValueError: if `labels` has not one name a class, or the classifier has
            no preprocessor.

    Example:
    ```python
    albert_tf.export.saved_model(classifier, "serving/1", labels=["差评", "好评"])
    answers = tf.saved_model.load("serving/1").signatures["serving_default"]
    answers(text=tf.constant(["很好"]))["label"]
    ```
    """
    labels = classifier.class_names if labels is None else list(labels)
    if len(labels) != classifier.num_classes:
        raise ValueError(
            f"`labels` must name each of the {classifier.num_classes} classes. "
            f"Received {len(labels)}: {labels}"
        )
    if classifier.preprocessor is None:
        raise ValueError(
            "This classifier takes ids, for it has no preprocessor, and cannot be "
            "exported to take strings. Give it one, with the vocabulary."
        )
    pairs = classifier.pairs if pairs is None else pairs
    module = _ServingModule(classifier, [str(label) for label in labels], pairs)
    with complete_directory(directory) as temporary:
        tf.saved_model.save(
            module,
            str(temporary),
            signatures=module.functions,
            options=tf.saved_model.SaveOptions(experimental_debug_stripper=True),
        )


class _ServingModule(tf.Module):
    """The graph, and the variables themselves, so that each is written once."""

    def __init__(self, classifier, labels, pairs):
        super().__init__()
        self._weights = [variable.value for variable in classifier.weights]
        texts = [tf.TensorSpec([None], tf.string, name="text")]
        if pairs:
            texts.append(tf.TensorSpec([None], tf.string, name="text_b"))
        ids = [
            tf.TensorSpec([None, None], tf.int32, name=name)
            for name in ("token_ids", "segment_ids", "padding_mask")
        ]

        @tf.function(input_signature=ids)
        def answer(token_ids, segment_ids, padding_mask):
            inputs = {
                "token_ids": token_ids,
                "segment_ids": segment_ids,
                "padding_mask": padding_mask,
            }
            outputs = classifier(inputs, training=False)
            if classifier.activation is keras.activations.linear:
                outputs = tf.nn.softmax(outputs)
            label_id = tf.argmax(outputs, axis=-1, output_type=tf.int32)
            return {
                "label": tf.gather(tf.constant(labels), label_id),
                "label_id": label_id,
                "probabilities": outputs,
            }

        # Calls the function above, so that the encoder stands in the graph once.
        @tf.function(input_signature=texts)
        def answer_texts(*texts):
            return answer(**classifier.preprocessor(texts))

        self.functions = {
            "serving_default": answer_texts,
            "tokens": answer,
        }
