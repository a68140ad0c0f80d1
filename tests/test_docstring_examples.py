"""The examples in the docstrings of the public interface run.

Names of checkpoints stand for the bundled one, names of files for small ones, and free
names, such as `classifier`, for a model of `MODELS` or a value of `VALUES`.
"""

import ast
import doctest
import functools
import importlib
import json
import pathlib
import re
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_corpus import write_corpus

import albert_tf
import zh
from albert_tf.trainers import trainer

ROOT = pathlib.Path(__file__).parents[1]
MICRO = "examples/albert_micro_zh"
# The reason why an example does not run here.
EXCEPTIONS = {
    "compare_with_published": "downloads",
    "download_release": "downloads",
    "pretrain": "trains for 10,000 steps",
    "pretrain_labelled": "trains for 10,000 steps",
    "SentencePieceTokenizer": "needs the released 30k-clean.model",
}
# Take seconds, and other tests cover what they do.
SLOW = ["litert", "onnx", "exported", "saved_model", "prune_vocabulary"]
SLOW += ["bucket_by_length", "contrastive_pairs", "verify_conversion"]
SLOW += ["adapt", "AlbertDistiller", "transformers_js", "IntegratedGradients"]


def examples():
    """Yield module, name and code of each example of a public class or function."""
    for package in ("albert_tf", "zh"):
        for file in sorted((ROOT / package).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            module = ".".join(parts).removesuffix(".__init__")
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if not isinstance(node, ast.ClassDef | ast.FunctionDef):
                    continue
                _, _, text = (ast.get_docstring(node) or "").partition("\nExample:\n")
                code = re.search(r"```python\n(.*?)```|(>>>.*?)(?:\n\n|\Z)", text, re.S)
                if code:
                    yield module, node.name, code[1] or code[2] + "\n"


EXAMPLES = list(examples())
ANSWER = {"text": "5464公里", "answer_start": 3}
QUESTION = {"question": "黄河有多长？", "answers": [ANSWER]}
PARAGRAPH = {"context": "黄河长5464公里。", "qas": [QUESTION]}
CHOICE = {"question": "几点？", "choice": ["七点", "八点"], "answer": "八点"}
OCNLI = {"sentence1": "怎么还款", "sentence2": "如何还钱", "label": "neutral"}
FILES = {
    "train.tsv": "label\ttext\n好评\t房间很干净\n差评\t太吵了\n",
    "reviews.csv": "text\n房间很干净\n太吵了\n",
    "train.txt": "小 B-PER\n明 I-PER\n来 O\n",
    "train.jsonl": '{"article": "他走了。天黑了。没有人。", "summary": "他走了。"}\n',
    "cmrc2018_train.json": json.dumps({"data": [{"paragraphs": [PARAGRAPH]}]}),
    "c3-d-train.json": json.dumps([[["女：八点。"], [CHOICE], "1"]]),
    "ocnli/train.json": json.dumps(OCNLI),
    "ocnli/dev.json": json.dumps(OCNLI),
}
IDS = np.array([[2, 10, 11, 3]])
TEXTS = ["房间很干净", "太吵了", "很好吃", "不新鲜"]
VALUES = {
    **{"texts": TEXTS, "corpus": TEXTS, "first": TEXTS[:3], "second": TEXTS[1:]},
    **{"article": "他走了。天黑了。", "articles": ["他走了。天黑了。"]},
    **{"class_ids": [1, 0, 1, 0], "truth": [1, 0, 1, 0], "predicted": [1, 0, 0, 0]},
    **{"labels": ["好评", "差评"] * 2, "spans": [[(0, 2, "PER")], [], [], []]},
    **{"long_texts": ["房间很干净。" * 20], "scores": [5.0, 0.5, 2.5]},
    "inputs": {"token_ids": IDS, "segment_ids": 0 * IDS, "padding_mask": 0 * IDS + 1},
    "mask_positions": np.array([[1, 2]]),
    "probabilities": np.array([[0.1, 0.9], [0.8, 0.2]] * 2),
    **{"sources": ["我再家等你"], "targets": ["我在家等你"], "summaries": ["他走了。"]},
}
# `model` is that of the name of the example.
MODELS = {
    "classifier": ("AlbertTextClassifier", {"labels": ["差评", "好评"]}),
    "corrector": ("AlbertSpellingCorrector", {}),
    "embedder": ("AlbertTextEmbedder", {}),
    "nli": ("AlbertTextClassifier", {"labels": ["entailment", "contradiction"]}),
    "read_choices": ("AlbertMultipleChoice", {}),
    "read_squad": ("AlbertQuestionAnswering", {}),
    "regressor": ("AlbertTextRegressor", {}),
    "student": ("AlbertTextClassifier", {"num_classes": 2}),
    "summarizer": ("AlbertSummarizer", {}),
    "tagger": ("AlbertTokenClassifier", {"labels": ["PER", "LOC", "ORG"]}),
    "teacher": ("AlbertTextClassifier", {"num_classes": 2}),
}


# Few at a time: a trained one takes 20 MB.
@functools.lru_cache(maxsize=3)
def free_name(name):
    if name == "backbone":
        return albert_tf.load_checkpoint(MICRO)
    if name == "pretrainer":
        return albert_tf.models.AlbertPretrainer.from_checkpoint(MICRO)
    if name == "dataset":
        return tf.data.Dataset.from_tensor_slices((TEXTS, [1, 0, 1, 0])).batch(2)
    if name not in MODELS:
        return VALUES.get(name)
    cls, options = MODELS[name]
    cls = getattr(albert_tf.models, cls)
    return cls.from_checkpoint(MICRO, sequence_length=16, **options)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write the files that examples read into the working directory.

    `fit` trains for one epoch, not for the 30 of so few examples.
    """
    monkeypatch.setattr(trainer, "fine_tuning_epochs", lambda examples: 1)
    monkeypatch.chdir(tmp_path)
    for folder in ("ocnli", "corpus"):
        (tmp_path / folder).mkdir()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for file, content in FILES.items():
        (tmp_path / file).write_text(content, "utf-8")
    shutil.make_archive("ocnli_public", "zip", "ocnli")
    write_corpus(tmp_path / "corpus" / "a.txt", documents=4)


def parameters():
    """Yield each example, those that train and some others as slow tests."""
    for module, name, code in EXAMPLES:
        if name in EXCEPTIONS:
            continue
        is_slow = name in SLOW or ".fit(" in code
        marks = [pytest.mark.slow] if is_slow else []
        yield pytest.param(module, name, code, id=name, marks=marks)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("module", "name", "code"), parameters())
def test_an_example_runs(module, name, code, files):
    code = code.replace('"albert_tiny_zh"', f'"{MICRO}"')
    if '"my_model"' in code:
        free_name("classifier").save_to_preset("my_model")
    if 'Records("records"' in code:
        settings = albert_tf.pretraining.PretrainingData(
            f"{MICRO}/vocab.txt", sequence_length=32
        )
        albert_tf.pretraining.make_pretraining_data("corpus/*.txt", "records", settings)
    if name == "read_spelling":
        pathlib.Path("train.tsv").write_text("我再家等你\t我在家等你\n", "utf-8")
    lines = doctest.DocTestParser().get_examples(code)
    source = "".join(line.source for line in lines) or code
    found = [x for x in ast.walk(ast.parse(source)) if isinstance(x, ast.Name)]
    free = {x.id for x in found} - {x.id for x in found if isinstance(x.ctx, ast.Store)}
    values = {x: free_name(name if x == "model" else x) for x in free}
    namespace = vars(albert_tf.tokenizers) | vars(importlib.import_module(module))
    namespace |= {"albert_tf": albert_tf, "keras": keras, "np": np, "tf": tf, "zh": zh}
    namespace |= {x: value for x, value in values.items() if value is not None}
    if not lines:
        exec(compile(code, name, "exec"), namespace)
        return
    report = []
    test = doctest.DocTest(lines, namespace, name, None, None, None)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
    assert not report, "".join(report)


def test_every_task_has_an_example():
    shown = {name for _, name, _ in EXAMPLES}
    models = (getattr(albert_tf.models, x) for x in albert_tf.models.__all__)
    tasks = {x.__name__ for x in models if hasattr(x, "from_checkpoint")}
    assert tasks - shown <= {"AlbertTask"}
    assert EXCEPTIONS.keys() <= shown and set(SLOW) <= shown
