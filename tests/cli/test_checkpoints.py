"""`albert-tf inspect | convert | download`."""

import json
import re
import shutil

import pytest
from command_line import refused, run
from conftest import GOLDEN
from named_heads import write_named_heads
from small_classifier import VOCABULARY, small_backbone, small_classifier

import albert_tf
from albert_tf.checkpoints import RELEASES
from albert_tf.models import AlbertMultipleChoice, AlbertQuestionAnswering


def printed(*command):
    return run(*command).stdout


# === inspect ===


def test_inspect_prints_a_table_or_json(tmp_path):
    lines = printed("inspect", GOLDEN / "google_groups").splitlines()
    lines = [line.strip() for line in lines]
    rows = dict(re.split("  +", x, maxsplit=1) for x in lines if "  " in x)
    assert (rows["layout"], rows["missing"]) == ("google", "none")
    assert rows["heads"] == "masked_lm_head, sop_head"
    assert rows["parameters"] == "0.082 M (82,016)"
    assert rows["dtypes"] == "float32=0.332 MB"
    # By one of its files, with a config from elsewhere.
    shutil.copytree(GOLDEN / "albert_zh_preln", tmp_path / "a")
    config = next((tmp_path / "a").glob("*.json")).rename(tmp_path / "my.json")
    index = tmp_path / "a" / "model.ckpt-best.index"
    report = json.loads(printed("inspect", index, "--config", config, "--json"))
    assert report["layout"] == "albert_zh" and report["config"]["ln_type"] == "preln"
    assert report["missing"] == report["unused"] == []


def test_inspect_measures_texts(tmp_path):
    def measured(model, file):
        return json.loads(printed("inspect", model, file, "--json"))["texts"].items()

    # One token per character. The vocabulary lacks 這 and 們.
    model, file = tmp_path / "model", tmp_path / "a.txt"
    small_classifier(2, sequence_length=20).save_to_preset(model)
    file.write_text(f"很好\n不太差這\n{'好' * 40}\n們們\n\n", "utf-8")
    expected = {"count": 5, "tokens": 48, "unknown": 3, "median_length": 4}
    expected |= {"commonest_unknown": {"們": 2, "這": 1}, "longest": 42}
    expected |= {"sequence_length": 20, "longer": 1}
    assert measured(model, file) >= expected.items()
    shown = " ".join(printed("inspect", model, file).split())
    for part in (
        "texts 5, 48 tokens unknown 6.25% of the tokens: 們 2, 這 1",
        "advice If they are Traditional Chinese",
        "lengths median 4, 95% up to 34, longest 42",
        "truncated 1 (20.0%), longer than 20 tokens",
    ):
        assert part in shown
    small_classifier(2, pairs=True).save_to_preset(tmp_path / "pairs")
    file = tmp_path / "b.tsv"
    file.write_text("text\ttext_b\n很好\t不這\n差\t\n", "utf-8")
    expected = {"tokens": 5, "unknown": 1, "advice": None, "longest": 7}
    assert measured(tmp_path / "pairs", file) >= expected.items()
    # Each choice follows the context, and a question has at most half of a window.
    backbone = small_backbone(max_sequence_length=20)
    for name, cls, row, expected in (
        (
            "choices",
            AlbertMultipleChoice,
            {"context": "很好", "question": "不", "choices": ["好", "太差", "了"]},
            {"tokens": 7, "longest": 8, "longer": 0},
        ),
        (
            "answers",
            AlbertQuestionAnswering,
            {"question": "好" * 9, "context": "很好"},
            {"longest": 14, "longer": 0, "question_length": 8, "longer_questions": 1},
        ),
    ):
        task = cls.from_backbone(backbone, VOCABULARY, sequence_length=20)
        task.save_to_preset(tmp_path / name)
        file = tmp_path / f"{name}.jsonl"
        file.write_text(json.dumps(row), "utf-8")
        assert measured(tmp_path / name, file) >= expected.items()
    shown = " ".join(printed("inspect", tmp_path / name, file).split())
    assert "truncated questions 1 (100.0%), longer than 8 tokens" in shown
    (tmp_path / "c.txt").touch()
    assert "c.txt has no texts" in refused("inspect", model, tmp_path / "c.txt")


# === convert ===


def test_convert_and_verify(tmp_path):
    name, to = "google_groups", "huggingface"
    out = printed("convert", GOLDEN / name, tmp_path / "to", "--to", to, "--verify")
    assert f"to ({to})" in re.sub(r"\s+", " ", out)
    assert "left_out" in out and len(out.splitlines()) < 20
    differences = re.findall(r"difference of \w+_(?:output|logits)\s+(\S+)", out)
    assert len(differences) == 4 and max(map(float, differences)) < 1e-5
    loaded = albert_tf.load_checkpoint(tmp_path / "to")
    original = albert_tf.load_checkpoint(GOLDEN / name)
    assert loaded.count_params() == original.count_params()


# === Named heads ===


def test_commands_take_a_named_head(tmp_path):
    model, name = tmp_path / "model", f"{tmp_path / 'model'}:named-entities_2"
    _, tasks = write_named_heads(model)
    out = " ".join(printed("inspect", model).split())
    assert (
        "head sentiment text-classification; 2 labels: 差评, 好评; pooling mean" in out
    )
    assert "head topics multi-label; 3 labels: 体育, 财经, 科技; pooling cls" in out
    assert "head answers question-answering" in out
    assert "heads token_classifier" in " ".join(printed("inspect", name).split())
    error = refused("predict", model, "很好")
    assert f"has several heads. Choose one: {model}:sentiment, {model}:infer" in error
    answer = printed("predict", f"{model}:sentiment", "很好吃", "--json")
    expected = albert_tf.pipeline(path=tasks["sentiment"])("很好吃")
    assert json.loads(answer)["label"] == expected["label"]
    out = printed("convert", name, tmp_path / "alone", "--to", "keras", "--verify")
    assert "difference of logits" in out
    assert refused("convert", f"{model}:lost", tmp_path / "x", "--to", "keras")
    # Heads stay beside a smaller vocabulary.
    (tmp_path / "a.txt").write_text("很好吃\n不太差\n", "utf-8")
    corpus = ("--corpus", tmp_path / "a.txt")
    out = printed("prune", model, tmp_path / "small", *corpus)
    # Where the path is long, this is on two lines.
    assert "small (albert_zh)" in " ".join(out.split())
    small = albert_tf.pipeline(path=f"{tmp_path / 'small'}:sentiment")
    assert small.model.backbone.vocabulary_size < 120
    assert small("很好吃")["score"] == pytest.approx(expected["score"], abs=1e-6)
    error = refused("prune", model, tmp_path / "x", *corpus, "--to", "keras")
    assert "has no place for named heads. Choose one of sentiment" in error


# === download ===


def test_download_lists_the_releases():
    lines = printed("download").splitlines()
    assert [line.split()[0] for line in lines if line[0] != " "] == [*RELEASES]
    assert all(len(line) <= 80 for line in lines)
    assert "Did you mean albert_tiny_zh?" in refused("download", "albert_tiny_zhh")
