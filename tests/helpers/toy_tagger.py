"""A task with something for each token and something for the text, as later ones."""

import keras
import keras_hub
import tensorflow as tf

from albert_tf.models.batching import PADDING_TARGET
from albert_tf.models.task import AlbertTask
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor


@keras.saving.register_keras_serializable(package="albert_tf_tests")
class ToyTagger(AlbertTask, keras_hub.models.Task):
    """`tags` [batch, time, num_tags] and `score` [batch, 1]."""

    preprocessor_cls = AlbertTextClassifierPreprocessor

    def __init__(self, backbone, num_tags=2, preprocessor=None, **kwargs):
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.num_tags = num_tags
        self.tag_dense = self.dense_head(num_tags, "tags")
        self.score_dense = self.dense_head(1, "score")
        hidden = backbone(backbone.input)["sequence_output"]
        outputs = {
            "tags": self.tag_dense(hidden),
            "score": self.score_dense(hidden[:, 0]),
        }
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    def default_loss(self):
        tags = keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=PADDING_TARGET
        )
        return {"tags": tags, "score": keras.losses.MeanSquaredError()}

    def targets(self, x, y, packed=None):
        tags, scores = y
        return {
            "tags": tf.ragged.constant(tags, tf.int32),
            "score": tf.constant(scores, tf.float32),
        }

    def answers(self, outputs):
        return {"tags": tf.argmax(outputs["tags"], -1), "score": outputs["score"]}

    def get_config(self):
        return {**super().get_config(), "num_tags": self.num_tags}
