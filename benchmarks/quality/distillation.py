"""Accuracy of a small student by what it learns from its teacher, on ChnSentiCorp.

    python -m benchmarks.quality.distillation /path/of/chnsenticorp_clean.zip
        --teacher albert_base_zh

Fine-tunes the teacher, then trains students of the sizes of albert_micro_zh from the
same random weights: on the labels; on the teacher's outputs; on its outputs after its
hidden states (`AlbertDistiller.fit_hidden_states`); and with `--attention` after its
attention, too, for which the student has as many heads as the teacher. All students
see the texts as often: those with hidden states spend half of the epochs on them.

The student has the vocabulary of the teacher and is not pretrained.
"""

import argparse
import pathlib

from albert_tf.models import AlbertBackbone, AlbertTextClassifier
from albert_tf.tools import AlbertDistiller
import keras
import numpy as np

from benchmarks.lib.compared_texts import read_reviews
from benchmarks.lib.harness import console, table_of, write_results
from benchmarks.lib.paths import MICRO

LABELS = ["差评", "好评"]
# Of albert_micro_zh.
SIZES = {"num_layers": 4, "embedding_dim": 128}
WIDTH, HEADS = 320, 5


def build_student(teacher, arguments):
    keras.utils.set_random_seed(arguments.seed)
    heads, width = HEADS, WIDTH
    if arguments.attention:
        # The same width of a head.
        heads = teacher.backbone.num_heads
        width = WIDTH // HEADS * heads
    backbone = AlbertBackbone(
        teacher.backbone.vocabulary_size,
        num_heads=heads,
        hidden_dim=width,
        intermediate_dim=4 * width,
        max_sequence_length=arguments.sequence_length,
        **SIZES,
    )
    return AlbertTextClassifier.from_backbone(
        backbone,
        teacher.preprocessor.tokenizer,
        labels=LABELS,
        num_classes=len(LABELS),
        pooling_mode="mean",
    )


def learn(student, teacher, x, y, name, arguments):
    """Train a student in one of the ways."""
    epochs, rate = arguments.epochs, arguments.learning_rate
    if name == "labels":
        student.compile(learning_rate=rate)
        student.fit(x, y, epochs=epochs, verbose=2)
        return
    distiller = AlbertDistiller(teacher, student)
    distiller.compile(learning_rate=rate)
    if name != "outputs":
        distiller.fit_hidden_states(
            x,
            epochs=epochs // 2,
            learning_rate=rate,
            attention_scores=name == "attention",
            verbose=2,
        )
        epochs -= epochs // 2
    distiller.fit(x, epochs=epochs, verbose=2)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="chnsenticorp_clean.zip")
    parser.add_argument("--teacher", default=str(MICRO))
    parser.add_argument("--train", type=int, help="examples, by default all")
    parser.add_argument("--test", type=int, help="examples, by default all")
    parser.add_argument("--teacher-epochs", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--attention", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    arguments = read_arguments()
    x, y = read_reviews(arguments.data, "train.tsv", arguments.train)
    test_x, test_y = read_reviews(arguments.data, "test.tsv", arguments.test)
    keras.utils.set_random_seed(arguments.seed)
    teacher = AlbertTextClassifier.from_checkpoint(
        arguments.teacher, labels=LABELS, sequence_length=arguments.sequence_length
    )
    console.print(f"teacher: fit on {len(x):,} texts")
    teacher.fit(x, y, epochs=arguments.teacher_epochs, verbose=2)
    taught = teacher.predict(test_x, verbose=0).argmax(-1)
    rows = {
        "teacher": {
            "accuracy": float(np.mean(taught == test_y)),
            "agreement": 1.0,
            "parameters": teacher.count_params(),
        }
    }
    names = ["labels", "outputs", "hidden states"]
    if arguments.attention:
        names.append("attention")
    for name in names:
        console.print(f"student: {name}")
        student = build_student(teacher, arguments)
        learn(student, teacher, x, y, name, arguments)
        predicted = student.predict(test_x, verbose=0).argmax(-1)
        rows[name] = {
            "accuracy": float(np.mean(predicted == test_y)),
            "agreement": float(np.mean(predicted == taught)),
            "parameters": student.count_params(),
        }
    console.print(table_of(rows, ("accuracy", "agreement", "parameters")))
    settings = {**vars(arguments), "train": len(x), "test": len(test_x)}
    for name in ("data", "teacher"):
        settings[name] = pathlib.Path(settings[name]).name
    write_results("distillation", {"settings": settings, "rows": rows})


if __name__ == "__main__":
    main()
