"""Fill in [MASK] tokens and score texts: fill_mask.py [FILE]

Continues the pretraining of a checkpoint with whole-word masks on the lines of FILE, by
default toy data (questions to an online shop). Prints loss, perplexity and predictions
before and after. Also predicts the order of two sentences.
"""

import pathlib
import sys

import albert_tf
from albert_tf.data import read_labelled_texts
import keras
import numpy as np
import zh

HERE = pathlib.Path(__file__).parent
if sys.argv[1:]:
    lines = pathlib.Path(sys.argv[1]).read_text("utf-8").rstrip("\n").split("\n")
else:
    lines = read_labelled_texts(HERE / "data/intents/questions.tsv").x
test, train = lines[::9], [line for i, line in enumerate(lines) if i % 9]

keras.utils.set_random_seed(1)
model = albert_tf.models.AlbertMaskedLM.from_checkpoint(
    HERE / "albert_micro_zh", segmenter=zh.Jieba()
)


def show():
    loss, accuracy = model.evaluate(test, verbose=0)
    perplexity = np.exp(np.nanmean(np.log(model.pseudo_perplexity(test))))
    print(f"loss {loss:.3f}, accuracy {accuracy:.3f}, perplexity {perplexity:.1f}")
    for text in ("怎么申请退[MASK]", "房间很干[MASK]，服务也热情。"):
        for answer in model.fill(text, top_k=3):
            print(f"  {answer['score']:.3f}\t{answer['sequence']}")
    return loss, perplexity


before = show()
model.compile(learning_rate=5e-4)
model.fit(train, epochs=15, batch_size=16, verbose=2)
after = show()

order = albert_tf.models.AlbertSentenceOrder.from_checkpoint(HERE / "albert_micro_zh")
first, second = "行者举起金箍棒，劈头就打。", "那妖精慌了，化一阵清风走了。"
forward, backward = order.sentence_order([first, second], [second, first])
print(f"in order {forward:.3f}, swapped {backward:.3f}")
