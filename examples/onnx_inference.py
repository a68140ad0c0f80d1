"""Predict with ONNX Runtime, without TensorFlow: onnx_inference.py [MODEL TEXT...]

MODEL is a folder that `albert-tf finetune` wrote, or an exported .onnx file. Without
it, trains a classifier on toy data (headlines of ten topics), exports it and predicts
in another process.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
TEXTS = ["国足主帅谈本场比赛的换人", "央行下调存款利率", "三甲医院增开夜间门诊"]


def predict(model, texts):
    start = time.perf_counter()
    import albert_tf_lite

    classify = albert_tf_lite.pipeline(model)
    for text, answer in zip(texts, classify(texts), strict=True):
        print(f"{answer['label']}\t{answer['score']:.3f}\t{text}")
    imported = "with" if "tensorflow" in sys.modules else "without"
    print(f"{time.perf_counter() - start:.2f} s, {imported} TensorFlow")


def train_and_export(folder):
    import albert_tf
    from albert_tf.data import class_names, read_labelled_texts
    import keras

    data = read_labelled_texts(HERE / "data/topics/headlines.tsv")
    keras.utils.set_random_seed(1)
    classifier = albert_tf.models.AlbertTextClassifier.from_checkpoint(
        HERE / "albert_micro_zh", labels=class_names(data.labels)
    )
    classifier.fit(data.x, data.labels, epochs=8, verbose=2)
    # In int8; float32 is the default.
    albert_tf.export.onnx(classifier, f"{folder}/model.onnx", precision="int8")
    return f"{folder}/model.onnx"


if sys.argv[1:]:
    predict(sys.argv[1], sys.argv[2:])
else:
    with tempfile.TemporaryDirectory() as folder:
        model = train_and_export(folder)
        command = [sys.executable, __file__, model, *TEXTS]
        # Chinese in the pipe, whatever the code page of the system is.
        utf8 = {**os.environ, "PYTHONUTF8": "1"}
        output = subprocess.run(
            command, check=True, capture_output=True, encoding="utf-8", env=utf8
        )
    print(output.stdout, end="")
