# %% [markdown]
# # Pretrain on your own text
#
# > 中文教程：[用自有语料预训练](../docs/tutorials/pretraining.zh.md)
#
# A checkpoint that has read your kind of text needs fewer labels. This notebook turns
# plain text into records, continues the pretraining of the bundled checkpoint on them,
# and shows what changed. It takes a few minutes on one core, which is enough to see
# the loss fall. Real pretraining takes hours.
#
# Start it in the folder `notebooks/`, after
# `pip install ./albert_tf_lite '.[cli,notebooks]'` in the folder above.
# The data are toy reviews, written for this repository.

# %%
import albert_tf  # first, because it hides TensorFlow's log lines

# isort: split
import tempfile
from pathlib import Path

import keras
import matplotlib.pyplot as plt
import pandas

import zh
from albert_tf.data import read_texts
from albert_tf.pretraining import (
    PretrainingData,
    PretrainingRecords,
    Run,
    make_pretraining_data,
    pretrain,
)
from albert_tf.pretraining.training.pretraining_batches import PretrainingBatches

EXAMPLES = Path("../examples")
OUTPUT = Path(tempfile.mkdtemp())
MICRO = EXAMPLES / "albert_micro_zh"

# %% [markdown]
# ## 1. Text
#
# A text file: a line is a sentence or a paragraph, and an empty line ends a document.
# Here each review is a document. The reviews of the test set are kept apart, to measure
# the loss on text that the model has not read.

# %%
for name in ("train", "test"):
    texts = read_texts(EXAMPLES / f"reviews/{name}.tsv")
    (OUTPUT / f"{name}.txt").write_text("\n\n".join(texts), "utf-8")
    print(f"{name}.txt: {len(texts)} reviews, {sum(map(len, texts)):,} characters")

# %% [markdown]
# ## 2. Records
#
# Sentences become pairs of segments, stored as flat arrays of token ids. jieba finds
# the words, so that whole words are masked later. The order of a pair and the masks
# are drawn anew for each batch. `keep_unpaired` also uses reviews of a single sentence.

# %%
settings = PretrainingData(
    str(MICRO / "vocab.txt"),
    sequence_length=64,
    segmenter=zh.Jieba(),
    split_sentences=zh.split_sentences,
    keep_unpaired=True,
)
for name in ("train", "test"):
    make_pretraining_data(OUTPUT / f"{name}.txt", OUTPUT / name, settings)
records, held_out = (PretrainingRecords(OUTPUT / name) for name in ("train", "test"))
print(len(records), "sequences to train on,", len(held_out), "held out")

# %% [markdown]
# A `Run` has the settings of the training. This is what the model sees: a batch has
# sequences of similar length, a few words are masked, and it predicts their tokens.

# %%
tokenizer = albert_tf.tokenizers.load_tokenizer(records.vocabulary)
STEPS, INTERVAL = 60, 6
run = Run(steps=STEPS, interval=INTERVAL, batch_tokens=2048, learning_rate=3e-4)
batch = PretrainingBatches(records, run)[0]
ids, starts = (batch[name][:4, 0] for name in ("token_ids", "word_starts"))
for row in records.masks()(ids, starts, seed=(0, 1))["token_ids"].numpy():
    print("".join(tokenizer.id_to_token(int(i)) for i in row if i))

# %% [markdown]
# ## 3. Train
#
# Both losses of ALBERT: masked tokens and sentence order. `pretrain` evaluates on the
# held-out records at each interval, saves its state, and resumes after an interruption.
# The command `albert-tf pretrain` does the same, also on a GPU with JAX.

# %%
keras.utils.set_random_seed(1)
model = albert_tf.models.AlbertPretrainer.from_checkpoint(MICRO)
model.compile(albert_tf.training.scheduled_optimizer("adamw", 3e-4))
done = pretrain(model, records, OUTPUT / "my_albert", run, dev=held_out, verbose=0)
history = done["history"]
steps = range(INTERVAL, STEPS + 1, INTERVAL)
names = ["mlm_logits_loss", "mlm_logits_accuracy", "sop_logits_accuracy"]
table = pandas.DataFrame({name: history[f"val_{name}"] for name in names}, steps)
table.rename_axis("step").iloc[[0, -1]].round(3)

# %%
figure, axis = plt.subplots(figsize=(4.5, 2.6), dpi=80)
axis.plot(steps, history["mlm_logits_loss"], label="training")
axis.plot(steps, table["mlm_logits_loss"], marker="o", label="held out")
axis.set(xlabel="step", title="loss of masked tokens")
axis.legend()
plt.show()

# %% [markdown]
# ## 4. The new checkpoint
#
# The model is saved as a TensorFlow 1 checkpoint, which the original code reads, too.
# Masked words show how little 60 steps change: the bundled model has read more than two
# billion tokens before.

# %%
albert_tf.save_checkpoint(
    model, OUTPUT / "checkpoint", layout="albert_zh", tokenizer=tokenizer
)
texts = ["快递员态度很[MASK]，东西也没坏。", "这款耳[MASK]音质不错。"]
rows = {}
for name, path in (("before", MICRO), ("after", OUTPUT / "checkpoint")):
    fill = albert_tf.pipeline("fill-mask", path, top_k=3)
    rows[name] = [
        " ".join(f"{x['token_str']} {x['score']:.2f}" for x in found)
        for found in fill(texts)
    ]
pandas.DataFrame({"text": texts, **rows})

# %% [markdown]
# ## Next
#
# - Fine-tune from it: `AlbertTextClassifier.from_checkpoint(path, labels=...)`, as in
#   [csv_classifier.ipynb](csv_classifier.ipynb).
# - From random weights: `AlbertBackbone(**zh.SIZES["albert_tiny_zh"])` in an
#   `AlbertPretrainer`; `examples/make_vocabulary.py` makes a vocabulary.
# - A large corpus: `albert-tf pretrain-data` and `albert-tf pretrain`, on all cores or
#   several machines ([pretraining](../docs/tutorials/pretraining.md)).
