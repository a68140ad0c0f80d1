# %% [markdown]
# # From a CSV file to a classifier, with pandas
#
# > 中文教程：[从 CSV 到分类器](../docs/tutorials/csv_classifier.zh.md)
#
# You have a table of texts and labels and want a model that labels new texts. This
# notebook reads the table with pandas, trains, looks at the mistakes, and saves a model
# that answers without TensorFlow. It takes a few minutes on an idle core; the times
# below are of a machine that was busy with other work.
#
# Start it in the folder `notebooks/`, after
# `pip install ./albert_tf_lite '.[cli,notebooks]'` in the folder above.
# The data are toy reviews, written for this repository.

# %%
import albert_tf  # first, because it hides TensorFlow's log lines

# isort: split
import csv
import tempfile
from pathlib import Path

import keras
import matplotlib.pyplot as plt
import pandas
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import albert_tf_lite

EXAMPLES = Path("../examples")
OUTPUT = Path(tempfile.mkdtemp())

# %% [markdown]
# ## 1. Read and look
#
# The bundled file is separated by tabs and has no quotes. For an ordinary CSV file,
# `pandas.read_csv("reviews.csv")` is enough.

# %%
options = {"sep": "\t", "quoting": csv.QUOTE_NONE}
train = pandas.read_csv(EXAMPLES / "reviews/train.tsv", **options)
dev = pandas.read_csv(EXAMPLES / "reviews/dev.tsv", **options)
test = pandas.read_csv(EXAMPLES / "reviews/test.tsv", **options)
train.head()

# %% [markdown]
# Count the labels, and measure the texts in characters. For Chinese, a token is a
# character. The bundled model reads up to 512 tokens, of which two are `[CLS]` and
# `[SEP]`, so it would truncate texts of more than 510 characters.

# %%
train.groupby("label").text.agg(
    reviews="count",
    median_length=lambda x: x.str.len().median(),
    longest=lambda x: x.str.len().max(),
)

# %% [markdown]
# ## 2. Train
#
# `from_checkpoint` loads the bundled checkpoint, with its head for these labels.
# For other texts, pass the name of a release instead, such as `"albert_tiny_zh"`.
# `fit` is that of Keras, and takes strings and the names of the labels. A fresh
# classifier is compiled already: AdamW, warm-up, and a learning rate for its size.
# The first evaluation shows what the bundled head knows before it sees these reviews.

# %%
keras.utils.set_random_seed(1)
classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
    "albert_micro_zh", labels=["差评", "好评"]
)
dev_examples = (dev.text.tolist(), dev.label.tolist())
before = classifier.evaluate(*dev_examples, verbose=0, return_dict=True)
history = classifier.fit(
    train.text.tolist(),
    train.label.tolist(),
    validation_data=dev_examples,
    epochs=3,
    verbose=2,
).history

# %%
figure, axis = plt.subplots(figsize=(4.5, 2.6), dpi=80)
on_dev = [before["accuracy"], *history["val_accuracy"]]
axis.plot(range(1, 4), history["accuracy"], marker="o", label="train")
axis.plot(range(4), on_dev, marker="o", label="dev")
axis.set(xlabel="epoch", ylabel="accuracy", xticks=range(4))
axis.legend()
plt.show()

# %% [markdown]
# ## 3. Evaluate
#
# A pipeline turns the model into a function from strings to dicts. Its labels are
# strings, so they go straight into a data frame.

# %%
classify = albert_tf.pipeline(path=classifier)
answers = pandas.DataFrame(classify(test.text.tolist()))
test = test.assign(predicted=answers.label, score=answers.score.round(3))
is_right = test.predicted == test.label
print(f"accuracy {is_right.mean():.3f}")
pandas.crosstab(test.label, test.predicted)

# %% [markdown]
# Other columns show where the model is weak:

# %%
is_right.groupby(test.domain).agg(["mean", "count"]).round(3)

# %% [markdown]
# Always compare with a simple baseline. On few or easy texts, TF-IDF of characters and
# logistic regression may be as good as a small network:

# %%
baseline = make_pipeline(
    TfidfVectorizer(analyzer="char", ngram_range=(1, 2)), LogisticRegression()
).fit(train.text, train.label)
print(f"TF-IDF baseline: accuracy {baseline.score(test.text, test.label):.3f}")

# %% [markdown]
# The most confident mistakes are worth reading: some are hard, and in real data some
# are wrong labels.

# %%
mistakes = test[~is_right].nlargest(5, "score")
pandas.set_option("display.max_colwidth", None)
mistakes[["label", "predicted", "score", "text"]]

# %% [markdown]
# ## 4. Save, and predict without TensorFlow
#
# A preset keeps model, vocabulary and labels. With `model.onnx` beside it,
# `albert_tf_lite` answers in a second, without importing TensorFlow.
# `albert-tf finetune` writes both.

# %%
model = OUTPUT / "my_model"
classifier.save_to_preset(model)
albert_tf.export.onnx(classifier, model / "model.onnx", preset=model)
classify = albert_tf_lite.pipeline(model)
classify(["房间很干净，下次还住", "等了一个小时，菜还是冷的"])

# %% [markdown]
# Label a whole table and write it as CSV:

# %%
new = test[["text"]].head(3)
found = new.join(pandas.DataFrame(classify(new.text.tolist())), how="left")
found.to_csv(OUTPUT / "found.csv", index=False)
print((OUTPUT / "found.csv").read_text("utf-8"), end="")

# %% [markdown]
# ## Next
#
# - Files larger than memory: `albert-tf predict my_model big.csv --output found.csv`
#   ([large files](../docs/guides/large_files.md)).
# - Scores too low: [A CSV to a classifier](../docs/tutorials/csv_classifier.md) lists
#   what to try.
# - Put the model behind an address: [serving.ipynb](serving.ipynb).
