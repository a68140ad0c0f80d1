"""Training on records, with the TensorFlow or JAX backend of Keras.

`Run` holds the settings. A `BatchPlan` chooses the sequences of each call of the
device, `PretrainingBatches` draws them, and `PretrainingModel` masks them and returns
the losses of its network. `training_loop` trains and resumes; `pretrain` joins all.
"""
