"""The examples in the docstrings of the public interface run.

Names of checkpoints stand for the bundled one, names of files for small ones, and free
names, such as `classifier`, for the objects of `OBJECTS`.
"""

import ast
import doctest
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

ROOT = pathlib.Path(__file__).parents[1]
MICRO = "examples/albert_micro_zh"
# The reason why an example does not run here.
EXCEPTIONS = {
    "download_release": "downloads",
    "pretrain": "trains for 10,000 steps",
    "load_tokenizer": "needs the released 30k-clean.model",
    "SentencePieceTokenizer": "needs the released 30k-clean.model",
    "cmrc_scores": "prints 66.66666666666666",
    "WholeWordMaskGenerator": "takes no list, because Keras does not",
}
# Take seconds, and other tests cover what they do.
SLOW = (
    *("litert", "onnx", "exported", "saved_model", "prune_vocabulary"),
    *("bucket_by_length", "contrastive_pairs", "verify_conversion", "AlbertDistiller"),
)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def examples():
    """Yield module, name and code of each example of a public class or function."""
    for package in ("albert_tf", "zh"):
        for file in sorted((ROOT / package).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            module = ".".join(parts).removesuffix(".__init__")
            for name, docstring in docstrings(ast.parse(file.read_text("utf-8"))):
                _, heading, text = docstring.partition("\nExample:\n")
                if code := re.search(
                    r"```python\n(.*?)```|(>>>.*?)(?:\n\n|\Z)", text, re.S
                ):
                    yield module, name, code[1] or code[2] + "\n"


def docstrings(node, prefix=""):
    for child in ast.iter_child_nodes(node):
        is_named = isinstance(child, ast.ClassDef | ast.FunctionDef)
        if is_named and not child.name.startswith("_"):
            yield prefix + child.name, ast.get_docstring(child) or ""
            yield from docstrings(child, f"{prefix}{child.name}.")


EXAMPLES = list(examples())


# === What the examples read ===

REVIEWS = "label\ttext\n好评\t房间很干净\n差评\t太吵了\n好评\t很好吃\n差评\t不新鲜\n"
TEXTS = ["房间很干净", "太吵了", "很好吃", "不新鲜"]
ANSWER = {"text": "5464公里", "answer_start": 3}
PARAGRAPH = {
    "context": "黄河长5464公里。",
    "qas": [{"question": "黄河有多长？", "answers": [ANSWER]}],
}
CHOICE = {"question": "几点？", "choice": ["七点", "八点"], "answer": "八点"}
FILES = {
    "train.tsv": REVIEWS,
    "reviews.csv": "text\n房间很干净\n太吵了\n",
    "train.txt": "小 B-PER\n明 I-PER\n来 O\n",
    "train.jsonl": '{"article": "他走了。天黑了。没有人。", "summary": "他走了。"}\n'
    * 2,
    "cmrc2018_train.json": json.dumps({"data": [{"paragraphs": [PARAGRAPH]}]}),
    "c3-d-train.json": json.dumps([[["女：八点。"], [CHOICE], "1"]]),
    "vocab.txt": f"{MICRO}/vocab.txt",
    "albert_config.json": f"{MICRO}/albert_config.json",
}
# Files of the same name with another content.
FILES_OF = {"read_spelling": {"train.tsv": "我再家等你\t我在家等你\n"}}


def write_files(folder, name):
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "README.md").write_text("一句话。\n\n两句话。\n", "utf-8")
    for file, content in {**FILES, **FILES_OF.get(name, {})}.items():
        if content.startswith("examples/"):
            shutil.copy(ROOT / content, folder / file)
        else:
            (folder / file).write_text(content, "utf-8")
    train = {"sentence1": "怎么还款", "sentence2": "如何还钱", "label": "neutral"}
    (folder / "ocnli").mkdir()
    for split in ("train", "dev"):
        rows = f"{json.dumps(train)}\n" * 2
        (folder / "ocnli" / f"{split}.json").write_text(rows)
    shutil.make_archive(folder / "ocnli_public", "zip", folder / "ocnli")
    (folder / "corpus").mkdir()
    write_corpus(folder / "corpus" / "a.txt", documents=4)


def task(name, **options):
    cls = getattr(albert_tf.models, name)
    return cls.from_checkpoint(MICRO, sequence_length=16, **options)


def model_of(name):
    """Return the task for a reader of its data."""
    if name == "read_choices":
        return task("AlbertMultipleChoice")
    return task("AlbertQuestionAnswering")


def inputs():
    ids = np.array([[2, 10, 11, 3]])
    return {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}


NLI = ["entailment", "neutral", "contradiction"]
OBJECTS = {
    "article": lambda _: "他走了。天黑了。没有人。",
    "articles": lambda _: ["他走了。天黑了。没有人。"],
    "backbone": lambda _: albert_tf.load_checkpoint(MICRO),
    "class_ids": lambda _: [1, 0, 1, 0],
    "classifier": lambda _: task("AlbertTextClassifier", labels=["差评", "好评"]),
    "corpus": lambda _: TEXTS,
    "corrector": lambda _: task("AlbertSpellingCorrector"),
    "dataset": lambda _: tf.data.Dataset.from_tensor_slices(
        (TEXTS, [1, 0, 1, 0])
    ).batch(2),
    "dev_labels": lambda _: [["体育"], ["财经", "娱乐"]],
    "dev_texts": lambda _: ["球队赢了", "新片上映"],
    "embedder": lambda _: task("AlbertTextEmbedder"),
    "first": lambda _: TEXTS[:3],
    "inputs": lambda _: inputs(),
    "labels": lambda _: ["好评", "差评", "好评", "差评"],
    "long_texts": lambda _: ["房间很干净。" * 20],
    "mask_positions": lambda _: np.array([[1, 2]]),
    "model": model_of,
    "nli": lambda _: task("AlbertTextClassifier", labels=NLI),
    "predicted": lambda _: [1, 0, 0, 0],
    "pretrainer": lambda _: albert_tf.models.AlbertPretrainer.from_checkpoint(MICRO),
    "probabilities": lambda _: np.array([[0.1, 0.9], [0.8, 0.2]] * 2),
    "regressor": lambda _: task("AlbertTextRegressor"),
    "scores": lambda _: [5.0, 0.5, 2.5],
    "second": lambda _: TEXTS[1:],
    "sources": lambda _: ["我再家等你"],
    "spans": lambda _: [[(0, 2, "PER")], [], [], []],
    "student": lambda _: task("AlbertTextClassifier", num_classes=2),
    "summaries": lambda _: ["他走了。"],
    "summarizer": lambda _: task("AlbertSummarizer"),
    "tagger": lambda _: task("AlbertTokenClassifier", labels=["PER", "LOC", "ORG"]),
    "targets": lambda _: ["我在家等你"],
    "teacher": lambda _: task("AlbertTextClassifier", num_classes=2),
    "texts": lambda _: TEXTS,
    "tokenizer": lambda _: albert_tf.tokenizers.WordPieceTokenizer("vocab.txt"),
    "truth": lambda _: [1, 0, 1, 0],
}


def prepared(code, name):
    """Return the code with the bundled checkpoint, having written what it reads."""
    if '"my_model"' in code:
        OBJECTS["classifier"](name).save_to_preset("my_model")
    if 'Records("records")' in code:
        settings = albert_tf.pretraining.PretrainingData(
            "vocab.txt", sequence_length=32
        )
        albert_tf.pretraining.make_pretraining_data("corpus/*.txt", "records", settings)
    return code.replace('"albert_tiny_zh"', f'"{MICRO}"')


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("module", "name", "code"),
    [
        pytest.param(*x, id=x[1], marks=[pytest.mark.slow] * (x[1] in SLOW))
        for x in EXAMPLES
        if x[1] not in EXCEPTIONS
    ],
)
def test_an_example_runs(module, name, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, name)
    code = prepared(code, name)
    namespace = {
        **vars(albert_tf.tokenizers),
        **vars(importlib.import_module(module)),
        **{"albert_tf": albert_tf, "keras": keras, "np": np, "tf": tf, "zh": zh},
    }
    if code.startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(code, namespace, name, None, None)
        source = "".join(example.source for example in test.examples)
    else:
        source = code
    used = {x.id for x in ast.walk(ast.parse(source)) if isinstance(x, ast.Name)}
    namespace |= {x: OBJECTS[x](name) for x in used & OBJECTS.keys()}
    if source is code:
        exec(compile(code, name, "exec"), namespace)
        return
    test.globs.update(namespace)
    report = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    assert not report, "".join(report)


def test_every_task_has_an_example():
    shown = {name for _, name, _ in EXAMPLES}
    models = (getattr(albert_tf.models, x) for x in albert_tf.models.__all__)
    tasks = {x.__name__ for x in models if hasattr(x, "from_checkpoint")}
    assert tasks - shown <= {"AlbertTask"}
    assert EXCEPTIONS.keys() <= shown and set(SLOW) <= shown
