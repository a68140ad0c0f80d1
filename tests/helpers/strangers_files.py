"""Every kind of file that the package reads: how a valid one is written, and read.

`tests/test_strangers_files.py` changes the files by `mutations` and reads them.
"""

import functools
import json
import shutil

import keras
import numpy as np
import safetensors.numpy
from archives import write_archive
from checkpoint_files import GOLDEN, TOKENS
from lite_tasks import small_task, write_litert, write_onnx
from made_records import LENGTH, write
from named_heads import write_named_heads
from sentence_piece_reference import train_model
from small_classifier import TEXTS, VOCABULARY, small_backbone, small_classifier
from strangers_data import DATA, Case, contents_of, only_file, text_file

import albert_tf
import albert_tf_lite
import zh
from albert_tf import models
from albert_tf.checkpoints import inspect_checkpoint, open_checkpoint, save_checkpoint
from albert_tf.checkpoints.config import config_arguments
from albert_tf.models.task_of_checkpoint import build_model
from albert_tf.pretraining import (
    LabelledRecords,
    LabelledSet,
    PretrainingRecords,
    build_heads,
    build_network,
    make_labelled_data,
    read_weights,
    write_weights,
)
from albert_tf.pretraining.labelled.head_files import write_heads
from albert_tf.pretraining.training.sequences import draw
from albert_tf.tokenizers import SentencePieceTokenizer, WordPieceTokenizer
from albert_tf.training.fine_tuning import FineTuning, fine_tune
from albert_tf_cli.shared.early_checks import read_metrics
from albert_tf_cli.shared.journal import append, open_journal, read_journal
from albert_tf_lite.sentence_piece import SentencePieceTokenizer as LiteTokenizer

# === Checkpoints ===


@functools.cache
def layout(name):
    def write_layout(folder):
        model = models.AlbertPretrainer.from_checkpoint(GOLDEN / "google_v2")
        saved = model.backbone if name == "kerashub" else model
        save_checkpoint(saved, folder, name, WordPieceTokenizer(TOKENS))

    return write_layout


def shards(folder):
    layout("huggingface")(folder)
    file = folder / "model.safetensors"
    tensors = safetensors.numpy.load_file(file)
    file.unlink()
    names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    places = {name: names[i % 2] for i, name in enumerate(sorted(tensors))}
    for name in names:
        part = {x: y for x, y in tensors.items() if places[x] == name}
        safetensors.numpy.save_file(part, folder / name)
    text = json.dumps({"weight_map": places})
    (folder / "model.safetensors.index.json").write_text(text)


def transformers_tokenizer(folder):
    """A folder as transformers 5 writes it, without a vocab.txt."""
    layout("huggingface")(folder)
    (folder / "vocab.txt").unlink()
    vocab = {token: number for number, token in enumerate(TOKENS)}
    fields = {
        "normalizer": {"type": "BertNormalizer", "lowercase": True},
        "added_tokens": [{"id": 7, "content": TOKENS[7], "normalized": False}],
        "model": {"type": "WordPiece", "vocab": vocab, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(fields))
    (folder / "added_tokens.json").write_text(json.dumps({TOKENS[9]: 9}))


def sentence_transformers(folder):
    backbone = small_backbone(embedding_projection="after_layer_norm")
    save_checkpoint(backbone, folder, "huggingface", WordPieceTokenizer(VOCABULARY))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 6}')
    (folder / "1_Pooling").mkdir()
    pooling = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    modules = [
        {"type": f"sentence_transformers.models.{kind}", "path": path}
        for kind, path in (("Transformer", ""), ("Pooling", "1_Pooling"))
    ]
    (folder / "modules.json").write_text(json.dumps(modules))


def write_preset(folder):
    small_classifier(2, labels=["坏", "好"]).save_to_preset(folder)


def archive(name):
    def write_file(folder):
        files = contents_of(layout("google"))
        write_archive(folder / name, {f"model/{x}": y for x, y in files.items()})

    return write_file


def english(folder):
    tokenizer = SentencePieceTokenizer(train_model())
    backbone = small_backbone(vocabulary_size=tokenizer.vocabulary_size())
    save_checkpoint(backbone, folder, "albert_zh", tokenizer)


def read_checkpoint(folder):
    """Read all that a checkpoint has: what is inspected, and what a task needs."""
    report = inspect_checkpoint(folder)
    opened = open_checkpoint(folder)
    opened.tokenizer()
    for name in report.named_heads:
        open_checkpoint(folder, head=name)
    build_model(opened)
    return report


def read_classifier(folder):
    task = models.AlbertTextClassifier.from_checkpoint(folder, num_classes=2)
    return task.preprocessor.tokenizer(["好a"]).to_list()


def read_tokenizer(folder):
    return open_checkpoint(folder).tokenizer()(["好a"]).to_list()


def read_embedder(folder):
    return models.AlbertTextEmbedder.from_checkpoint(folder).pooling_mode


def read_preset(folder):
    return models.AlbertTextClassifier.from_preset(str(folder)).labels


def read_pieces(folder):
    path = folder / "spiece.model"
    text = "the river, 2018, 5"
    ids = SentencePieceTokenizer(path)([text]).to_list()[0]
    lite = LiteTokenizer(path.read_bytes())
    lite.tokenize_with_offsets(text)
    return ids, lite.tokenize(text)


def read_vocabulary(folder):
    return WordPieceTokenizer(folder / "vocab.txt")(["好a"]).to_list()


# === Exported files ===


@functools.cache
def exported(write_model, name, task="labels"):
    def write_file(folder):
        model, _ = small_task(task)
        options = {"lengths": (16,)} if name.endswith(".tflite") else {}
        write_model(model, folder / name, **options)

    return write_file


def answer(path):
    pipeline = albert_tf_lite.pipeline(path, threads=1)
    return pipeline(["很好", ""]), repr(pipeline)


def write_network_beside(folder):
    classifier = small_classifier(2, labels=["坏", "好"])
    classifier.save_to_preset(folder)
    albert_tf.export.onnx(classifier, folder / "model.onnx", preset=folder)


# === States of runs ===


class _Stop(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 2:
            raise KeyboardInterrupt


def resume(folder, callbacks=()):
    """Train, from the state in a folder if it has one."""
    keras.utils.set_random_seed(0)
    classifier = small_classifier(2)
    classifier.compile(learning_rate=1e-3)
    examples = (TEXTS, [0, 1, 0, 1, 1, 1, 0])
    fine_tune(
        *(classifier, examples, examples, folder),
        FineTuning(epochs=3, batch_size=7),
        callbacks,
    )


def write_state(folder):
    try:
        resume(folder, [_Stop()])
    except KeyboardInterrupt:
        return
    raise AssertionError("the training was not interrupted")


BLOCKS = [[{"label": "好", "score": 0.5}] * 2, [{"label": "坏", "score": 0.75}]]
JOURNAL = ".found.csv.answers"


def read_answers(folder, kept=False):
    """Read the answers of a journal, and compute the others."""
    with open_journal(str(folder / "found.csv"), {"model": "x"}, [2, 1]) as (file, n):
        for block in BLOCKS[n:]:
            append(file, block)
        answers = list(read_journal(file))
        if kept:
            shutil.copy(folder / JOURNAL, folder / "kept")
    assert [len(x) for x in answers] == [2, 1]


def write_journal(folder):
    read_answers(folder, kept=True)
    (folder / "kept").rename(folder / JOURNAL)


def network():
    sizes = {"num_layers": 1, "num_heads": 2, "embedding_dim": 4, "hidden_dim": 8}
    sizes |= {"intermediate_dim": 8, "max_sequence_length": LENGTH}
    return build_network(albert_tf.models.AlbertBackbone(60, **sizes))


def heads(folder):
    described = {
        "mood": {"task": "text-classification", "pairs": False, "labels": ["a", "b"]},
        "score": {"task": "regression", "pairs": True, "labels": None},
        "names": {"task": "token-classification", "tags": ["O", "B-X", "I-X"]},
        "answers": {"task": "question-answering", "labels": None},
    }
    layers = {
        name: keras.layers.Dense(n)
        for name, n in zip(described, (2, 1, 3, 2), strict=True)
    }
    for layer in layers.values():
        layer.build((None, 12))
    write_heads(described, layers, folder)


def records(folder):
    write(folder / "records", 12, 1)


def labelled(folder):
    write(folder / "records", 12, 1)
    texts = [chr(0x4E00 + i) * 3 for i in range(8)]
    classes = ["a", "b"] * 4
    sets = [
        LabelledSet("s", "mood", "text-classification", texts, classes),
        LabelledSet("t", "names", "token-classification", texts, [[(0, 1, "X")]] * 8),
    ]
    vocabulary = folder / "records" / "vocab.txt"
    make_labelled_data(sets, folder / "labelled", vocabulary, LENGTH)
    shutil.rmtree(folder / "records")


def read_records(folder):
    opened = PretrainingRecords(folder / "records")
    rows = np.arange(len(opened))[:4]
    opened.masks()
    return draw(opened, rows, LENGTH, np.random.default_rng(1))


def read_labelled(folder):
    opened = LabelledRecords(folder / "labelled")
    return {kind: opened.allowed(kind) for kind in opened.targets}


CHECKPOINTS = {
    "Google's config": Case(layout("google"), read_checkpoint, "*.json"),
    "TensorFlow index": Case(layout("google"), read_checkpoint, "*.index"),
    "TensorFlow data": Case(layout("google"), read_checkpoint, "*.data-*"),
    "vocab.txt": Case(layout("google"), read_vocabulary, "vocab.txt"),
    "vocab.txt of a checkpoint": Case(layout("google"), read_classifier, "vocab.txt"),
    "named heads": Case(write_named_heads, read_checkpoint, "*.json"),
    "Hugging Face": Case(layout("huggingface"), read_classifier, "*.json"),
    "safetensors": Case(layout("huggingface"), read_checkpoint, "*.safetensors"),
    "safetensors index": Case(shards, read_checkpoint, "*.index.json"),
    "tokenizer.json": Case(transformers_tokenizer, read_tokenizer, "*token*.json"),
    "sentence-transformers": Case(sentence_transformers, read_embedder, "[!v]*.json"),
    "SentencePiece": Case(english, read_pieces, "spiece.model"),
    "preset": Case(write_preset, read_preset, "*.json"),
    "preset, opened": Case(write_preset, read_checkpoint, "*.json"),
    "preset's weights": Case(write_preset, read_preset, "*.h5"),
    "preset's vocabulary": Case(write_preset, read_preset, "assets/*"),
    "KerasHub's preset": Case(layout("kerashub"), read_checkpoint, "*.json"),
    "keras file": Case(
        lambda folder: small_classifier(2).save(folder / "a.keras"),
        only_file(read_checkpoint),
    ),
    "zip": Case(archive("a.zip"), only_file(read_checkpoint)),
    "tar.gz": Case(archive("a.tar.gz"), only_file(read_checkpoint)),
}
OTHERS = {
    "ONNX": Case(exported(write_onnx, "a.onnx"), only_file(answer)),
    "ONNX tags": Case(exported(write_onnx, "a.onnx", "tags"), only_file(answer)),
    "ONNX beside a preset": Case(write_network_beside, answer, "*.onnx"),
    "LiteRT": Case(exported(write_litert, "a.tflite"), only_file(answer)),
    "state of a training": Case(write_state, resume, ".training/*"),
    "journal": Case(write_journal, read_answers, JOURNAL),
    "npz": Case(
        lambda folder: write_weights(network(), folder / "a.npz"),
        only_file(read_weights),
    ),
    "heads": Case(heads, lambda folder: build_heads(small_backbone(), folder)),
    "records": Case(records, read_records),
    "labelled records": Case(labelled, read_labelled),
    "--config": Case(
        layout("google"), lambda x: config_arguments(x / "albert_config.json"), "*.json"
    ),
    "user dictionary": Case(
        text_file("words.txt", "吃鸡蛋 3 n\n好吃 2\n"),
        only_file(lambda path: zh.Jieba(str(path))("我想吃鸡蛋")),
    ),
    "metrics.json": Case(
        text_file("metrics.json", {"dev": {"accuracy": 0.5}}),
        lambda x: read_metrics(str(x)),
    ),
}
CASES = {**DATA, **CHECKPOINTS, **OTHERS}
