"""Extract the most important sentence of short articles: summarization.py [FOLDER]

FOLDER has train.jsonl and dev.jsonl with one JSON object per line, which has `article`
and `summary`, as NLPCC 2017 and LCSTS are usually distributed. The default is toy data,
generated articles about twelve events.
"""

import pathlib
import sys

import albert_tf
from albert_tf.data import read_articles
from albert_tf.evaluation import rouge_scores
from albert_tf.preprocessing.articles import split_sentences
import keras
from sklearn.feature_extraction.text import TfidfVectorizer


def central_sentence(article):
    """Return the sentence nearest to the mean of all by TF-IDF, a baseline."""
    sentences = split_sentences(article)
    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(1, 2))
    vectors = vectorizer.fit_transform(sentences).toarray()
    return sentences[(vectors @ vectors.mean(axis=0)).argmax()]


HERE = pathlib.Path(__file__).parent
folder = pathlib.Path(sys.argv[1]) if sys.argv[1:] else HERE / "data" / "articles"
train, dev = (read_articles(folder / f"{name}.jsonl") for name in ("train", "dev"))

keras.utils.set_random_seed(1)
summarizer = albert_tf.models.AlbertSummarizer.from_checkpoint(HERE / "albert_micro_zh")
# For this small checkpoint only; the default learning rate suits released ones.
summarizer.compile(learning_rate=1e-3)
summarizer.fit(*train, epochs=3, batch_size=8, verbose=2)

articles, references = dev
found = summarizer.summarize(articles, sentences=1, verbose=0)
summaries = {
    "model": [answer["summary"] for answer in found],
    "TF-IDF centroid": [central_sentence(article) for article in articles],
    "first sentence": [split_sentences(article)[0] for article in articles],
}
scores = {name: rouge_scores(x, references) for name, x in summaries.items()}
for name, row in scores.items():
    print(f"{name:>15}", *(f"{kind} {value:.4f}" for kind, value in row.items()))
for start, end, score in found[0]["sentences"]:
    print(f"{score:.3f}", articles[0][start:end])
