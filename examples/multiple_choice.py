"""Answer multiple-choice questions on dialogues: multiple_choice.py [FOLDER]

FOLDER has train.json and dev.json, or folders train and dev, in the format of C3 or
RACE. The default is toy data: 240 questions to train on, whose wrong choices are of
another kind than the right one.
"""

import pathlib
import sys

import albert_tf
from albert_tf.data import read_choices
import keras
import numpy as np

HERE = pathlib.Path(__file__).parent
folder = pathlib.Path(sys.argv[1]) if sys.argv[1:] else HERE / "data/choices"

files = [next(folder.glob(f"{name}*")) for name in ("train", "dev")]
train, dev = map(read_choices, files)

keras.utils.set_random_seed(1)
model = albert_tf.models.AlbertMultipleChoice.from_checkpoint(HERE / "albert_micro_zh")
# Train for at least about 220 steps, even on few questions.
epochs = max(2, 220 * 8 // len(train))
model.fit(train.x, train.labels, 8, epochs, verbose=2)

accuracy = np.mean(model.predict(dev.x, verbose=0).argmax(-1) == dev.labels)
chance = np.mean([1 / len(choices) for choices in dev.choices])
print(f"accuracy {accuracy:.3f} of {len(dev)} questions, by chance {chance:.3f}")
answers = albert_tf.pipeline(path=model)(
    context="女：你怎么来的？\n男：路上堵车，我坐地铁来的。",
    question="男的是怎么来的？",
    choices=["饺子", "地铁", "图书馆"],
    top_k=None,
)
for answer in answers:
    print(f"{answer['score']:.3f}  {answer['label']}")
