"""Use models as functions from strings to dicts, as the pipelines of transformers.

The first three need no training. The classifier learns from toy data, 144 questions of
16 kinds to an online shop.
"""

import pathlib

import albert_tf
from albert_tf.data import class_names, read_labelled_texts
import keras

HERE = pathlib.Path(__file__).parent
MICRO = HERE / "albert_micro_zh"

fill = albert_tf.pipeline("fill-mask", MICRO, top_k=3)
for answer in fill("房间很干[MASK]，服务也热情。"):
    print(f"{answer['score']:.3f}\t{answer['sequence']}")

in_order = albert_tf.pipeline("sentence-order", MICRO)
answer = in_order(("行者举起金箍棒，劈头就打。", "那妖精慌了，化一阵清风走了。"))
print(f"{answer['score']:.3f}\t{answer['label']}")

embed = albert_tf.pipeline("text-embedding", MICRO)
pairs = [("衣服小了想换大的", "尺码不合适能换吗"), ("衣服小了想换大的", "发票怎么开")]
for pair, answer in zip(pairs, embed(pairs), strict=True):
    print(f"{answer['score']:.3f}", *pair, sep="\t")

data = read_labelled_texts(HERE / "data/intents/questions.tsv")
keras.utils.set_random_seed(1)
classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
    MICRO, labels=class_names(data.labels)
)
classifier.fit(data.x, data.labels, epochs=8, verbose=2)
# Also for the path of a saved model: pipeline("text-classification", "my_model").
classify = albert_tf.pipeline(path=classifier, top_k=2)
queries = ["东西坏了怎么修", "买错了可以退吗"]
answers = classify(queries)
for query, answer in zip(queries, answers, strict=True):
    found = (f"{x['label']} {x['score']:.3f}" for x in answer)
    print(query, *found, sep="\t")
