"""One checkpoint with several named heads: writing, choosing, converting."""

import functools
import json
import shutil
import warnings

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
from checkpoint_files import assert_same_weights, read, write
from named_heads import CASES, LABELS, SIZES, write_named_heads
from small_classifier import OTHERS, TEXTS, randomised, small_backbone
from tiers import few

import albert_tf
from albert_tf import convert_checkpoint, inspect_checkpoint, verify_conversion
from albert_tf.checkpoints import CheckpointError, open_checkpoint, save_checkpoint
from albert_tf.checkpoints.layouts import LAYOUTS
from albert_tf.files import split_head
from albert_tf.models import (
    AlbertMultiLabelClassifier,
    AlbertPretrainer,
    AlbertQuestionAnswering,
    AlbertTextClassifier,
    AlbertTextEmbedder,
    AlbertTextRegressor,
    AlbertTokenClassifier,
)
from albert_tf.models.task_of_checkpoint import build_model

pytestmark = pytest.mark.filterwarnings("ignore:.*max_input_chars_per_word")
FIRST = "named-entities_2"


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """Return a function that returns folder, pretrainer and tasks of a layout."""

    @functools.cache
    def made(layout):
        folder = tmp_path_factory.mktemp(layout) / "my_model"
        return folder, *write_named_heads(folder, layout)

    return made


@pytest.fixture
def written(checkpoints):
    # The layout of the bundled checkpoint.
    return checkpoints("albert_zh")


def stored(folder):
    """Return the tensors of a checkpoint and the fields of its config."""
    if (folder / "config.json").exists():
        config, file = folder / "config.json", folder / "model.safetensors"
        tensors = safetensors.numpy.load_file(file)
    else:
        config, file = folder / "albert_config.json", folder / "albert_model.ckpt"
        tensors = read(file)
    return tensors, json.loads(config.read_text("utf-8"))


def outputs(task):
    x = (TEXTS, OTHERS) if task.pairs or task.fields[0] == "question" else TEXTS
    return tf.nest.flatten(task(task.preprocessor.features(x)))


def assert_same_task(again, task):
    assert type(again) is type(task)
    ours, theirs = again.get_config(), task.get_config()
    for name in ("backbone", "preprocessor", "name"):
        ours.pop(name), theirs.pop(name)
    assert ours == theirs
    for a, b in zip(outputs(again), outputs(task), strict=True):
        np.testing.assert_array_equal(a, b)


# === On disk ===


# `albert_zh` has the files of `google`.
@pytest.mark.parametrize("layout", few(SIZES, {*SIZES} - {"albert_zh"}))
def test_each_head_is_that_of_its_task(layout, checkpoints):
    folder, pretrainer, tasks = checkpoints(layout)
    with warnings.catch_warnings():
        # Named heads are no foreign heads.
        warnings.simplefilter("error")
        whole = build_model(open_checkpoint(folder))
    assert_same_weights(whole, pretrainer)
    for name, task in tasks.items():
        assert_same_task(build_model(open_checkpoint(folder, head=name)), task)
    assert len(tasks) == len(CASES)


@pytest.mark.parametrize(("layout", "point"), [("google", "/"), ("huggingface", ".")])
def test_a_head_is_stored_as_in_a_checkpoint_of_its_own(
    layout, point, checkpoints, tmp_path
):
    folder, _, tasks = checkpoints(layout)
    save_checkpoint(tasks["inference"], tmp_path / "alone", layout)
    (both, heads), (alone, config) = map(stored, (folder, tmp_path / "alone"))
    for name in LAYOUTS[layout].names(["classifier"]):
        named = f"heads{point}inference{point}{name}"
        np.testing.assert_array_equal(both[named], alone[name])
    fields = heads["heads"]["inference"]
    assert fields.items() <= config.items()
    assert fields["id2label"] == {"0": "蕴含", "1": "中立", "2": "矛盾"}
    assert fields["classifier_pairs"] and "classifier_pooling" not in fields
    # Models of transformers would not read the mean, but they ignore named heads.
    assert heads["heads"]["sentiment"]["classifier_pooling"] == "mean"


def test_there_and_back(checkpoints, tmp_path):
    folder, _, tasks = checkpoints("google")
    done = convert_checkpoint(folder, tmp_path / "b", "huggingface")
    kernel = ("heads/answers/cls/squad/output_weights",)
    assert (kernel, ("heads.answers.qa_outputs.weight",), (12, 2)) in done.moved
    assert done.left_out == []
    convert_checkpoint(tmp_path / "b", tmp_path / "c", "google")
    (before, config), (after, again) = map(stored, (folder, tmp_path / "c"))
    assert before.keys() == after.keys() and config == again
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)
    # One head becomes an ordinary checkpoint.
    path = f"{tmp_path / 'b'}:inference"
    assert convert_checkpoint(path, tmp_path / "d", "google").left_out == []
    assert not any(x.startswith("heads") for y in stored(tmp_path / "d") for x in y)
    assert_same_task(build_model(open_checkpoint(tmp_path / "d")), tasks["inference"])
    # Verification compares each head.
    before["heads/topics/output_bias"] += 1
    prefix = "albert_model.ckpt"
    write(tmp_path / "e", before, config, prefix)
    differences = verify_conversion(tmp_path / "e", tmp_path / "b")
    assert {f"{x}/logits" for x in CASES if x != "answers"} <= differences.keys()
    assert {x for x, y in differences.items() if y > 0} == {"topics/logits"}


def test_a_head_without_name_stays_beside_named_ones(checkpoints, tmp_path):
    """Its fields in the config do not apply to the named heads."""
    _, _, tasks = checkpoints("google")
    main, others = tasks["topics"], ("inference", FIRST)
    save_checkpoint(main, tmp_path / "a", heads={x: tasks[x] for x in others})
    opened = open_checkpoint(tmp_path / "a")
    assert_same_task(build_model(opened), main)
    assert opened.heads == ["classifier"] and "heads" not in opened.config
    for name in others:
        assert_same_task(build_model(opened.with_head(name)), tasks[name])


# === Choosing ===


def test_a_path_may_name_the_head(written, tmp_path, monkeypatch):
    folder, _, tasks = written
    prefix = folder / "albert_model.ckpt"
    for path in (f"{folder}:{FIRST}", f"{prefix}:{FIRST}", f"{prefix}.index:{FIRST}"):
        assert open_checkpoint(path).head == FIRST
        assert open_checkpoint(path, head=FIRST).head == FIRST
        with pytest.raises(ValueError, match="names the head named-entities_2, and"):
            open_checkpoint(path, head="topics")
    archive = shutil.make_archive(str(tmp_path / "model"), "zip", folder)
    again = AlbertTokenClassifier.from_checkpoint(f"{archive}:{FIRST}")
    assert_same_task(again, tasks[FIRST])
    again = AlbertMultiLabelClassifier.from_preset(f"{folder}:topics")
    assert_same_task(again, tasks["topics"])
    again = AlbertMultiLabelClassifier.from_preset(str(folder), head="topics")
    assert_same_task(again, tasks["topics"])
    # The encoder is that of every head.
    assert albert_tf.load_checkpoint(f"{folder}:topics").num_layers == 1
    # An existing path that has a colon.
    monkeypatch.chdir(tmp_path)
    shutil.copytree(folder, tmp_path / "my:topics")
    assert open_checkpoint("my:topics").head is None
    assert open_checkpoint("my:topics:topics").head == "topics"
    assert open_checkpoint(open_checkpoint(folder), head="topics").head == "topics"


def test_only_a_checkpoint_has_a_head():
    for path, parts in {
        "albert_micro_zh:topics": ("albert_micro_zh", "topics"),
        "albert_tiny_zh:topics": ("albert_tiny_zh", "topics"),
        "hf://user/name@main:topics": ("hf://user/name@main", "topics"),
        "hf://user/name": None,
        r"C:\model": None,
        "C:model": None,
        "C:/model": None,
        "lost:topics": None,
        "albert_micro_zh": None,
        "albert_micro_zh:": None,
    }.items():
        assert split_head(path) == (parts or (path, None))


def test_a_task_starts_from_its_only_head(written, recwarn):
    folder, _, tasks = written
    for cls, name in (
        (AlbertMultiLabelClassifier, "topics"),
        (AlbertTokenClassifier, FIRST),
        (AlbertTextRegressor, "similarity"),
        (AlbertQuestionAnswering, "answers"),
    ):
        assert_same_task(cls.from_checkpoint(folder), tasks[name])
    # The head with the same labels is chosen, and its weights follow their order.
    model = AlbertTextClassifier.from_checkpoint(folder, labels=LABELS[::-1])
    own = tasks["sentiment"]
    assert model.pooling_mode == "mean" and model.labels == LABELS[::-1]
    np.testing.assert_array_equal(outputs(model)[0][:, ::-1], outputs(own)[0])
    model = AlbertTokenClassifier.from_checkpoint(folder, labels=["LOC", "PER"])
    assert_same_task(model, tasks[FIRST])
    # Other labels start a new head, which replaces none.
    new = AlbertTextClassifier.from_checkpoint(folder, labels=["好", "坏"])
    assert np.abs(outputs(new)[0]).max() < 0.5 * np.abs(outputs(own)[0]).max()
    assert AlbertTextClassifier.from_checkpoint(folder, num_classes=2).labels is None
    AlbertTokenClassifier.from_checkpoint(folder, labels=["ORG"])
    AlbertTextEmbedder.from_checkpoint(folder)
    assert not recwarn.list
    with pytest.warns(UserWarning, match="has 2 classes, not .*好.*new head"):
        AlbertTextClassifier.from_checkpoint(f"{folder}:sentiment", labels=["好", "坏"])


# === Refusals ===


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (
            "nothing",
            "no head named 'nothing'. Its named heads: sentiment, ",
        ),
        ("topics", "is a multi-label classifier"),
        (None, "several heads. Choose one: .*my_model:sentiment, .*my_model:inference"),
    ],
)
def test_heads_that_do_not_fit_are_refused(written, head, message):
    with pytest.raises(ValueError, match=message):
        AlbertTextClassifier.from_checkpoint(written[0], head=head)


def test_an_incomplete_head_is_named(written, tmp_path):
    shutil.copytree(written[0], tmp_path / "a")
    file = tmp_path / "a" / "albert_config.json"
    fields = json.loads(file.read_text("utf-8"))
    fields["heads"]["lost"] = fields["heads"]["topics"]
    file.write_text(json.dumps(fields))
    with pytest.raises(CheckpointError, match=r"head lost of .*incomplete.*has \[\]"):
        open_checkpoint(tmp_path / "a", head="lost")
    assert inspect_checkpoint(tmp_path / "a").named_heads["lost"] == {"head": None}
    assert open_checkpoint(tmp_path / "a", head="topics").heads == ["classifier"]
    # The others are found without their names, too.
    with pytest.warns(UserWarning, match="The head lost of .* It is left out"):
        tagger = AlbertTokenClassifier.from_checkpoint(tmp_path / "a")
    assert tagger.starts_trained
    for wrong in ({"a b": {}}, {"topics": 3}):
        file.write_text(json.dumps({**fields, "heads": wrong}))
        with pytest.raises(CheckpointError, match="Expected a name of letters"):
            open_checkpoint(tmp_path / "a")
    # Another program's field.
    file.write_text(json.dumps({**fields, "heads": 12}))
    assert open_checkpoint(tmp_path / "a").named_heads == []


def test_what_is_no_named_head_is_not_written(checkpoints, tmp_path):
    _, pretrainer, tasks = checkpoints("google")
    backbone = pretrainer.backbone
    other = AlbertTextClassifier(
        randomised(small_backbone(num_layers=1, **SIZES["google"]), 5), 2
    )
    without = small_backbone(num_layers=1, **SIZES["google"], pooler=False)
    for layout, heads, message in (
        ("google", {"a b": tasks["topics"]}, "letters, digits, _ and -"),
        ("google", {"a": pretrainer}, "The head a must be one of sop_head, classifier"),
        ("google", {"a": backbone}, "Received: a model without a head"),
        ("google", {"a": other}, "backbone of the head a differs .*token_table"),
        ("keras", tasks, "no place for named heads. Choose one of sentiment, infer"),
        ("kerashub", tasks, "no place for named heads"),
    ):
        with pytest.raises(ValueError, match=message):
            save_checkpoint(backbone, tmp_path / "x", layout, heads=heads)
    with pytest.raises(ValueError, match="reads the pooler, which the model lacks"):
        save_checkpoint(without, tmp_path / "x", heads={"a": tasks["inference"]})
    assert not list(tmp_path.iterdir())


def test_inspection_and_conversion_to_a_preset_list_named_heads(written, tmp_path):
    folder, pretrainer, tasks = written
    report = inspect_checkpoint(folder)
    assert list(report.named_heads) == list(CASES)
    assert report.named_heads["sentiment"] == {
        **{"head": "classifier", "num_classes": 2, "labels": LABELS},
        "pooling_mode": "mean",
    }
    assert report.named_heads[FIRST]["labels"][:2] == ["O", "B-PER"]
    assert report.other == report.unused == report.damaged == []
    files = read(folder / "albert_model.ckpt")
    assert report.dtypes == {"float32": sum(x.nbytes for x in files.values())}
    done = convert_checkpoint(folder, tmp_path / "a", "keras")
    assert done.left_out == [f"the head {name}" for name in tasks]
    model = AlbertPretrainer.from_checkpoint(tmp_path / "a")
    assert_same_weights(model, pretrainer)
