# %% [markdown]
# # Find people, places and organisations
#
# > 中文文档：[序列标注](../docs/tasks/token_classification.zh.md)
#
# A token classifier finds entities in text and returns where they are in your own
# string. This notebook trains one on 131 sentences, looks at what it finds and what it
# misses, and saves it. It takes a few minutes on one core.
#
# Start it in the folder `notebooks/`, after
# `pip install ./albert_tf_lite '.[cli,notebooks]'` in the folder above.
# The data are toy sentences about fictional people, written for this
# repository.

# %%
import albert_tf  # first, because it hides TensorFlow's log lines

# isort: split
import html
import tempfile
from pathlib import Path

import keras
import pandas
from IPython.display import HTML

from albert_tf.data import read_tagged_texts
from albert_tf.evaluation import entity_scores

EXAMPLES = Path("../examples")
OUTPUT = Path(tempfile.mkdtemp())

# %% [markdown]
# ## 1. Read the sentences
#
# `read_tagged_texts` reads JSON lines of doccano and CLUENER, and columns of tags
# (CoNLL, MSRA, People's Daily). Whatever the file, entities are spans in characters:
# `(start, end, label)`.

# %%
train = read_tagged_texts(EXAMPLES / "data/entities/train.jsonl")
dev = read_tagged_texts(EXAMPLES / "data/entities/dev.jsonl")
print(len(train.x), "sentences to train on,", len(dev.x), "to test on:", train.labels)
print(train.x[0], train.spans[0])

# %% [markdown]
# A small function shows entities in colour:

# %%
COLOURS = {"PER": "#ffd7d7", "LOC": "#d7f0d7", "ORG": "#d7e3ff"}


def show(text, spans):
    """Return the text as HTML with its entities in colour."""
    parts, end = [], 0
    for start, stop, label in sorted(spans):
        name = html.escape(text[start:stop])
        mark = f'<mark style="background:{COLOURS[label]}">{name}'
        parts += [html.escape(text[end:start]), f"{mark} <small>{label}</small></mark>"]
        end = stop
    return f"<p>{''.join(parts)}{html.escape(text[end:])}</p>"


HTML("".join(show(*x) for x in zip(train.x[:3], train.spans[:3], strict=True)))

# %% [markdown]
# ## 2. Train
#
# `fit` takes the texts and their spans. The model learns BIO tags of tokens, and
# `predict` returns spans again. The default learning rate suits many texts. For a
# hundred, a higher one and more epochs are better.

# %%
keras.utils.set_random_seed(1)
tagger = albert_tf.models.AlbertTokenClassifier.from_checkpoint(
    EXAMPLES / "albert_micro_zh", labels=train.labels
)
tagger.compile(learning_rate=1e-3)
history = tagger.fit(train.x, train.spans, epochs=18, batch_size=16, verbose=0).history
print("loss", ", ".join(f"{x:.3f}" for x in history["loss"][::3]))

# %% [markdown]
# ## 3. Evaluate
#
# An entity is right if start, end and label are:

# %%
found = tagger.predict(dev.x, verbose=0)
scores = entity_scores(dev.spans, found)
table = pandas.DataFrame({**scores["types"], "all": scores}).T
table[["precision", "recall", "f1", "count"]].astype(float).round(3)

# %% [markdown]
# Sentences with mistakes, each as labelled and as predicted. The model has read 131
# sentences, and often cuts names that it has not seen:

# %%
rows = zip(dev.x, dev.spans, found, strict=True)
wrong = [x for x in rows if sorted(x[1]) != sorted(x[2])]
print(f"{len(wrong)} of {len(dev.x)} sentences have a mistake")
HTML("<hr>".join(show(text, y) + show(text, z) for text, y, z in wrong[:3]))

# %% [markdown]
# ## 4. Use it
#
# Offsets count characters of your own string, whatever it contains: spaces, emoji,
# full-width letters. A pipeline returns dicts with the keys of transformers. The last
# entity is wrong, because 李 is the name and 老师 a title, and its high score hides it:
# read the mistakes above before you trust scores.

# %%
ner = albert_tf.pipeline(path=tagger)
text = "昨天，彭丽从成都飞到北京，去江南大学看望李老师。"
entities = ner(text)
assert all(text[x["start"] : x["end"]] == x["word"] for x in entities)
pandas.DataFrame(entities).round(3)

# %% [markdown]
# Save it. `albert_tf.pipeline("ner", path)` loads it again; the file in ONNX answers
# without TensorFlow.

# %%
tagger.save_to_preset(OUTPUT / "my_tagger")
albert_tf.export.onnx(tagger, OUTPUT / "my_tagger.onnx")
loaded = albert_tf.export.OnnxModel(OUTPUT / "my_tagger.onnx")
loaded.predict([text])["spans"][0]

# %% [markdown]
# ## Next
#
# - Your own labels: annotate in doccano, export JSON lines, and replace the two files.
# - Real data: [accuracy](../docs/about/benchmarks.md#accuracy) has scores on the
#   People's Daily (50,658 sentences).
# - [Token classification](../docs/tasks/token_classification.md) has the command line,
#   the formats and the details.
