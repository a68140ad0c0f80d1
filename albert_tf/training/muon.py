import keras
from keras import ops

from albert_tf.training.lamb import FUSED
from albert_tf.training.optimizers import NOT_DECAYED


@keras.saving.register_keras_serializable(package="albert_tf")
class Muon(keras.optimizers.Muon):
    """Keras' Muon, with query, key and value each a matrix of its own.

    The momentum of a matrix inside the model is made orthogonal before it is applied;
    embeddings, vectors and the classes of sentence order are trained by Adam, with the
    same rate. `AttentionBlock` keeps three matrices in one variable; each is made
    orthogonal by itself. Biases and LayerNorm are not decayed.

    Args:
        learning_rate: float, or a `keras.optimizers.schedules.LearningRateSchedule`.
        weight_decay: optional float, of every matrix.
        **kwargs: as `keras.optimizers.Muon` takes them.

    Reference:
        [Muon is scalable for LLM training](https://arxiv.org/abs/2502.16982).
    """

    def __init__(self, learning_rate=1e-3, weight_decay=0.01, **kwargs):
        kwargs.setdefault("adam_weight_decay", weight_decay)
        kwargs.setdefault("exclude_layers", ["sop_logits"])
        super().__init__(learning_rate, weight_decay=weight_decay, **kwargs)
        self.exclude_from_weight_decay(var_names=NOT_DECAYED)

    def build(self, var_list):
        if self.built:
            return
        super().build(var_list)
        # Here, for `update_step` gets TensorFlow's variables, which have no path.
        self._parts = [3 if x.path.endswith(FUSED) else 1 for x in var_list]

    def _muon_update_step(self, gradient, variable, lr, m):
        parts = self._parts[self._get_variable_index(variable)]
        self.assign(m, self.momentum * m + gradient)
        g = gradient + self.momentum * m if self.nesterov else m
        rows, columns = g.shape
        matrices = ops.reshape(g, (rows, parts, columns // parts))
        update = self.zeropower_via_newtonschulz5(
            ops.transpose(matrices, (1, 0, 2)), self.ns_steps
        )
        update = ops.reshape(ops.transpose(update, (1, 0, 2)), (rows, columns))
        scale = self.rms_rate * max(rows, columns // parts) ** 0.5
        self.assign_sub(variable, lr * scale * update)
