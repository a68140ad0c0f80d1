"""Search and classify with sentence embeddings: sentence_embeddings.py [FILE]

Like SetFit, trains the embeddings on pairs of texts with the same or different labels,
four texts per label, then scikit-learn's logistic regression on the embeddings. FILE
has one label and text per line. The default is toy data, nine questions of each of 16
kinds to an online shop.
"""

import collections
import pathlib
import sys

import albert_tf
from albert_tf.data import contrastive_pairs, read_labelled_texts
import keras
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

HERE = pathlib.Path(__file__).parent
file = sys.argv[1] if sys.argv[1:] else HERE / "data/intents/questions.tsv"
EXAMPLES = 4  # per label

data = read_labelled_texts(file)
train, test, seen = ([], []), ([], []), collections.Counter()
for text, label in zip(data.x, data.labels, strict=True):
    texts, labels = train if seen[label] < EXAMPLES else test
    texts.append(text)
    labels.append(label)
    seen[label] += 1

keras.utils.set_random_seed(1)
embedder = albert_tf.models.AlbertTextEmbedder.from_checkpoint(HERE / "albert_micro_zh")


def accuracy():
    head = LogisticRegression(C=100, max_iter=1000)
    head.fit(embedder.encode_text(train[0], verbose=0), train[1])
    return head, head.score(embedder.encode_text(test[0], verbose=0), test[1])


_, before = accuracy()
embedder.fit(*contrastive_pairs(*train, rounds=10), epochs=2, verbose=2)
head, after = accuracy()
baseline = make_pipeline(
    TfidfVectorizer(analyzer="char", ngram_range=(1, 2)),
    LogisticRegression(C=100, max_iter=1000),
).fit(*train)
print(
    f"accuracy before {before:.4f}, after {after:.4f}, "
    f"TF-IDF of characters {baseline.score(*test):.4f}"
)
query = "东西坏了怎么修"
print(query, head.predict(embedder.encode_text(query))[0], sep="\t")
for found in embedder.search(query, data.x, top_k=3):
    print(f"{found['score']:.3f}\t{found['text']}")
