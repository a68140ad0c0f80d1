"""Extract answers to questions from Chinese texts.

Trains on about 330 questions of `data/questions`, in about a minute. For other data,
name a folder with train.json and dev.json in SQuAD's format (SQuAD, CMRC 2018, DRCD):

    python examples/question_answering.py cmrc2018/
"""

import pathlib
import sys

import keras

from albert_tf.data import read_squad
from albert_tf.evaluation import cmrc_scores
from albert_tf.models import AlbertQuestionAnswering

HERE = pathlib.Path(__file__).parent
CONTEXT = "我的同学陈小雨😀今年24岁，在青岛当导游，最爱吃饺子。"
QUESTIONS = ["陈小雨多大了？", "陈小雨做什么工作？", "陈小雨爱吃什么？"]


def main(folder):
    keras.utils.set_random_seed(1)
    train = read_squad(folder / "train.json").for_training()
    dev = read_squad(folder / "dev.json")
    print(f"{len(train)} questions; {train.moved} answer offsets corrected")

    model = AlbertQuestionAnswering.from_checkpoint(HERE / "albert_micro_zh")
    model.compile(learning_rate=1e-3)
    # Train for at least about 160 steps, even on few questions.
    epochs = max(2, 160 * 16 // len(train))
    model.fit(train.x, train.answers, batch_size=16, epochs=epochs, verbose=2)

    answers = model.predict(dev.x, verbose=0)
    scores = cmrc_scores([answer["answer"] for answer in answers], dev.texts)
    # A trivial baseline: the first characters of each context.
    first = cmrc_scores([context[:4] for context in dev.contexts], dev.texts)
    for name, row in (("ALBERT", scores), ("first characters", first)):
        print(f"{name:>16}  EM {row['exact_match']:.1f}  F1 {row['f1']:.1f}")
    found = model.predict((QUESTIONS, [CONTEXT] * len(QUESTIONS)), verbose=0)
    for question, answer in zip(QUESTIONS, found, strict=True):
        place = f"{answer['start']}:{answer['end']}"
        print(f"{question} {answer['answer']} ({place}, {answer['score']:.2f})")
    return scores, first


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if sys.argv[1:] else HERE / "data" / "questions")
