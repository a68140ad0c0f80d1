"""The figure of the ALBERT paper: its numbers, and the script as one runs it."""

import importlib.util
import itertools
import pathlib
import runpy
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.image import imread

from albert_tf import save_checkpoint
from albert_tf.models import AlbertBackbone
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.tokenizers import WordPieceTokenizer

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "layer_similarity.py"
DEMO = ROOT / "examples" / "albert_micro_zh"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"好坏很不太差"]
# Unlike in length, and more than the script takes at once.
TEXTS = [VOCABULARY[5 + i % 6] * (1 + i * i % 11) for i in range(37)]
DISTANCE, COSINE, DEGREES = range(3)


@pytest.fixture(scope="module")
def script():
    """The module `examples/layer_similarity.py`."""
    spec = importlib.util.spec_from_file_location("layer_similarity", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def new_backbone(**kwargs):
    sizes = {
        "vocabulary_size": len(VOCABULARY),
        "num_layers": 3,
        "num_heads": 2,
        "embedding_dim": 4,
        "hidden_dim": 8,
        "intermediate_dim": 16,
        "max_sequence_length": 16,
        "embedding_projection": "after_layer_norm",
    }
    backbone = AlbertBackbone(**{**sizes, **kwargs})
    rng = np.random.default_rng(2)
    for weight in backbone.weights:
        around = 1.0 if weight.name == "gamma" else 0.0
        weight.assign(rng.normal(around, 0.5, weight.shape))
    return backbone


def new_preprocessor():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    return AlbertTextClassifierPreprocessor(tokenizer, sequence_length=16)


# === The numbers ===


def measured_by_hand(backbone):
    """A text and a token at a time, without padding."""
    model = backbone.with_intermediates()
    of_each_token = []
    for text in TEXTS:
        ids = np.array([[2, *map(VOCABULARY.index, text), 3]])
        inputs = {
            "token_ids": ids,
            "segment_ids": np.zeros_like(ids),
            "padding_mask": np.ones_like(ids),
        }
        states = [x.numpy()[0].astype(float) for x in model(inputs)["hidden_states"]]
        for position in range(ids.size):
            rows = []
            for a, b in itertools.pairwise(state[position] for state in states):
                distance = sum((b - a) ** 2) ** 0.5
                cosine = a @ b / np.sqrt(a @ a) / np.sqrt(b @ b)
                rows.append([distance, cosine, np.degrees(np.arccos(cosine))])
            of_each_token.append(np.transpose(rows))
    return np.mean(of_each_token, axis=0)


@pytest.mark.parametrize(
    "kwargs", [{}, {"num_ffn_groups": 3}, {"normalize_first": True}]
)
def test_means_are_those_of_numpy(script, kwargs):
    backbone = new_backbone(**kwargs)
    measured = script.measure(backbone, new_preprocessor(), TEXTS)
    assert measured.shape == (3, backbone.num_layers)
    np.testing.assert_allclose(measured, measured_by_hand(backbone), rtol=1e-4)
    # Of weights this large the layers do move their input, and not all alike.
    assert np.ptp(measured, axis=1).min() > 1e-3
    assert measured[DEGREES].min() > 1


def test_a_layer_that_does_nothing(script):
    backbone = new_backbone(normalize_first=True)
    for half in ("attention_blocks", "feed_forward_blocks"):
        for block in getattr(backbone, half).values():
            for weight in block.output_dense.weights:
                weight.assign(np.zeros(weight.shape))
    measured = script.measure(backbone, new_preprocessor(), TEXTS)
    assert measured[DISTANCE].tolist() == [0.0] * 3
    assert measured[COSINE] == pytest.approx([1.0] * 3)
    assert measured[DEGREES] == pytest.approx([0.0] * 3, abs=1e-5)


# === The script ===


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Checkpoints of our own: one that shares nothing, one without vocabulary."""
    folder = tmp_path_factory.mktemp("layer_similarity")
    backbone = new_backbone(num_layers=5, num_attention_groups=5, num_ffn_groups=5)
    for name in ("unshared", "no_vocabulary", "other_vocabulary"):
        save_checkpoint(backbone, folder / name, layout="google")
    text = "\n".join(VOCABULARY)
    (folder / "unshared" / "vocab.txt").write_text(text, encoding="utf-8")
    (folder / "other_vocabulary" / "vocab.txt").write_text(text + "\n开", "utf-8")
    lines = [f"{i % 2}\t{text}" for i, text in enumerate(TEXTS)]
    (folder / "texts.tsv").write_text("\n".join(["label\ttext", *lines]), "utf-8")
    pairs = [f"{line}\t好" for line in lines]
    (folder / "pairs.tsv").write_text(
        "\n".join(["label\ttext\ttext_b", *pairs]), "utf-8"
    )
    return folder


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Runs the script; returns what it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, arguments)])
        runpy.run_path(str(SCRIPT), run_name="__main__")
        return capsys.readouterr().out

    yield run
    plt.close("all")


def rows_of(printed):
    """Name and layer to numbers, of the table."""
    cells = [line.split("│")[1:-1] for line in printed.splitlines() if "│" in line]
    stripped = [[cell.strip() for cell in row] for row in cells]
    return {(name, int(layer)): list(map(float, x)) for name, layer, *x in stripped}


def assert_both_are_drawn(path):
    picture = imread(path)[..., :3] * 255
    # Matplotlib's first two colours, in both halves.
    for half in np.array_split(picture, 2, axis=1):
        for colour in ((31, 119, 180), (255, 127, 14)):
            assert (np.abs(half - colour).max(-1) < 2).sum() > 20


@pytest.mark.slow
def test_the_shipped_checkpoint_as_one_runs_it(tmp_path):
    result = subprocess.run(
        [sys.executable, SCRIPT], cwd=tmp_path, capture_output=True, timeout=300
    )
    assert result.returncode == 0, result.stderr.decode()
    rows = rows_of(result.stdout.decode())
    names = ("shared", "unshared, random weights")
    assert list(rows) == [(name, layer) for name in names for layer in (1, 2, 3)]
    for distance, cosine, degrees in rows.values():
        assert distance > 0
        assert 0 < degrees < 90
        # The mean of a cosine is not that of the angle, but for angles so alike.
        assert cosine == pytest.approx(np.cos(np.radians(degrees)), abs=0.01)
    assert [file.name for file in tmp_path.iterdir()] == ["layer_similarity.png"]
    assert_both_are_drawn(tmp_path / "layer_similarity.png")


def test_two_checkpoints_of_unlike_depth(script, folder, run, tmp_path):
    arguments = ("--unshared", folder / "unshared", "--texts", folder / "texts.tsv")
    picture = tmp_path / ("long" * 50) / "a [b].png"
    picture.parent.mkdir()
    printed = run(*arguments, "--output", picture)
    rows = rows_of(printed)
    assert len(rows) == 3 + 5
    backbone, preprocessor = script.load(str(folder / "unshared"))
    expected = script.measure(backbone, preprocessor, TEXTS)
    for layer in range(5):
        assert rows["unshared", layer + 1] == pytest.approx(
            expected[:, layer], abs=1e-3
        )
    for axis, row in zip(plt.gcf().axes, (DISTANCE, DEGREES), strict=True):
        shared, unshared = axis.lines
        assert shared.get_xdata().tolist() == [1, 2, 3]
        assert unshared.get_ydata() == pytest.approx(expected[row], rel=1e-5)
    assert printed.endswith(f"Drawn to {picture}\n")
    assert_both_are_drawn(picture)


def test_both_texts_of_pairs_are_read(script, folder, run):
    printed = run("--unshared", folder / "unshared", "--texts", folder / "pairs.tsv")
    backbone, preprocessor = script.load(str(folder / "unshared"))
    expected = script.measure(backbone, preprocessor, [*TEXTS, *["好"] * len(TEXTS)])
    assert rows_of(printed)["unshared", 1] == pytest.approx(expected[:, 0], abs=1e-3)


@pytest.mark.slow
def test_random_weights_are_the_same_each_time(folder, run):
    arguments = ("--texts", folder / "texts.tsv")
    assert run(*arguments) == run(*arguments)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--checkpoint", "missing", "no checkpoint at .*missing"),
        ("--checkpoint", "no_vocabulary", "no vocabulary beside .*no_vocabulary"),
        ("--checkpoint", "other_vocabulary", "vocabulary has 12 tokens, the model 11"),
        ("--unshared", DEMO, "--unshared .*albert_micro_zh: its layers share weights"),
        ("--texts", "missing.tsv", "missing.tsv does not exist"),
        ("--output", "missing/a.png", "No such file or directory: '.*missing/a.png'"),
    ],
)
def test_bad_arguments_end_in_one_line(folder, run, option, value, message):
    arguments = {"--texts": folder / "texts.tsv", option: folder / value}
    with pytest.raises(SystemExit, match=f"^Error: .*{message}") as exit:
        run(*(part for pair in arguments.items() for part in pair))
    assert "\n" not in exit.value.code
