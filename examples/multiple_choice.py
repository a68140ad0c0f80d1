"""Answer multiple-choice questions on short Chinese dialogues.

Trains on 240 questions of `data/choices`, in about a minute. Their wrong choices are of
another kind than the right one. For other data, name a folder with train.json and
dev.json, or with folders train and dev, in the format of C3 or RACE:

    python examples/multiple_choice.py c3/
"""

import pathlib
import sys

import keras
import numpy as np

from albert_tf.data import read_choices
from albert_tf.models import AlbertMultipleChoice

HERE = pathlib.Path(__file__).parent
DIALOGUE = "女：你怎么来的？\n男：路上堵车，我坐地铁来的。"
QUESTION, CHOICES = "男的是怎么来的？", ["饺子", "地铁", "图书馆"]


def read(folder, name):
    file = folder / f"{name}.json"
    return read_choices(file if file.exists() else folder / name)


def main(folder):
    keras.utils.set_random_seed(1)
    train, dev = read(folder, "train"), read(folder, "dev")

    model = AlbertMultipleChoice.from_checkpoint(HERE / "albert_micro_zh")
    model.compile(learning_rate=1e-3)
    # Train for at least about 220 steps, even on few questions.
    epochs = max(2, 220 * 8 // len(train))
    model.fit(train.x, train.labels, batch_size=8, epochs=epochs, verbose=2)

    right = model.predict(dev.x, verbose=0).argmax(-1) == dev.labels
    chance = np.mean([1 / len(choices) for choices in dev.choices])
    print(
        f"accuracy {right.mean():.3f} of {len(dev)} questions, by chance {chance:.3f}"
    )
    logits = model.predict(([DIALOGUE], [QUESTION], [CHOICES]), verbose=0)
    probabilities = model.answers(logits)["probabilities"].numpy()[0]
    for choice, probability in zip(CHOICES, probabilities, strict=True):
        print(f"{probability:.3f}  {choice}")
    return right.mean(), chance


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if sys.argv[1:] else HERE / "data" / "choices")
