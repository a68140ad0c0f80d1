"""A second stage of pretraining on labelled texts, with a head for each kind of label.

`LabelledSet` and `make_labelled_data` make the records, which `LabelledRecords` opens.
Each batch of `LabelledBatches` has labelled texts, text with masked tokens and segments
in either order, and pairs of similar texts, whose vectors attract each other.
`LabelledModel` has the losses. `pretrain_labelled` trains it, as `pretrain` does, and
writes the heads (`head_files`), which become heads of tasks. Trained on TensorFlow or
JAX; making the records and the tasks needs TensorFlow.

References: [Muppet](https://arxiv.org/abs/2101.11038), whose losses are divided by the
logarithm of the number of classes; section 4 of
[SimCSE](https://arxiv.org/abs/2104.08821).
"""
