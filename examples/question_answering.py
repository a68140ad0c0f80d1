"""Extract answers to questions from texts: question_answering.py [FOLDER]

FOLDER has train.json and dev.json in SQuAD's format (SQuAD, CMRC 2018, DRCD). The
default is toy data, 363 questions of a few patterns to train on.
"""

import pathlib
import sys

import albert_tf
from albert_tf.data import read_squad
from albert_tf.evaluation import cmrc_scores
import keras

HERE = pathlib.Path(__file__).parent
folder = pathlib.Path(sys.argv[1]) if sys.argv[1:] else HERE / "data/questions"

train = read_squad(folder / "train.json").for_training()
dev = read_squad(folder / "dev.json")
print(f"{len(train)} questions; {train.moved} answer offsets corrected")

keras.utils.set_random_seed(1)
model = albert_tf.models.AlbertQuestionAnswering.from_checkpoint(
    HERE / "albert_micro_zh"
)
model.compile(learning_rate=1e-3)
# Train for at least about 160 steps, even on few questions.
epochs = max(2, 160 * 16 // len(train))
model.fit(train.x, train.answers, 16, epochs, verbose=2)

answers = model.predict(dev.x, verbose=0)
scores = cmrc_scores([answer["answer"] for answer in answers], dev.texts)
# A trivial baseline: the first characters of each context.
first = cmrc_scores([context[:4] for context in dev.contexts], dev.texts)
for name, row in (("ALBERT", scores), ("first characters", first)):
    print(f"{name:>16}  EM {row['exact_match']:.1f}  F1 {row['f1']:.1f}")
ask = albert_tf.pipeline(path=model)
context = "我的同学陈小雨😀今年24岁，在青岛当导游，最爱吃饺子。"
for question in ("陈小雨多大了？", "陈小雨做什么工作？", "陈小雨爱吃什么？"):
    found = ask(question=question, context=context)
    place = f"{found['start']}:{found['end']}"
    print(f"{question} {found['answer']} ({place}, {found['score']:.2f})")
