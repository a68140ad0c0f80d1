"""The figure of the ALBERT paper: its numbers against NumPy, and the script."""

import itertools
import pathlib
import runpy
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from albert_tf import save_checkpoint
from albert_tf.models import AlbertBackbone
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.tokenizers import WordPieceTokenizer

SCRIPT = pathlib.Path(__file__).parents[2] / "examples" / "layer_similarity.py"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"好坏很不太差"]
# Several lengths, and more texts than a batch of the script.
TEXTS = [VOCABULARY[5 + i % 6] * (1 + i * i % 11) for i in range(37)]


@pytest.fixture(scope="module")
def backbone():
    sizes = {"vocabulary_size": len(VOCABULARY), "num_layers": 4, "num_heads": 2}
    sizes |= {"embedding_dim": 4, "hidden_dim": 8, "intermediate_dim": 16}
    sizes |= {"num_attention_groups": 4, "num_ffn_groups": 4, "max_sequence_length": 16}
    backbone = AlbertBackbone(**sizes, embedding_projection="after_layer_norm")
    rng = np.random.default_rng(2)
    for weight in backbone.weights:
        around = 1.0 if weight.name == "gamma" else 0.0
        weight.assign(rng.normal(around, 0.5, weight.shape))
    return backbone


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the script and return what it prints."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, arguments)])
        runpy.run_path(str(SCRIPT), run_name="__main__")
        return capsys.readouterr().out

    yield run
    plt.close("all")


def measured_by_hand(backbone):
    """Measure one text and one token at a time, without padding."""
    model = backbone.with_intermediates()
    of_each_token = []
    for text in TEXTS:
        ids = np.array([[2, *map(VOCABULARY.index, text), 3]])
        inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
        states = [x.numpy()[0].astype(float) for x in model(inputs)["hidden_states"]]
        for position in range(ids.size):
            rows = []
            for a, b in itertools.pairwise(state[position] for state in states):
                cosine = a @ b / np.sqrt(a @ a) / np.sqrt(b @ b)
                angle = np.degrees(np.arccos(cosine))
                rows.append([sum((b - a) ** 2) ** 0.5, cosine, angle])
            of_each_token.append(np.transpose(rows))
    return np.mean(of_each_token, axis=0)


@pytest.mark.slow
def test_measures_of_two_checkpoints_are_those_of_numpy(backbone, run, tmp_path):
    expected = measured_by_hand(backbone)
    # Layers with such large weights move their input, each by another distance.
    assert np.ptp(expected, axis=1).min() > 1e-3
    measure = runpy.run_path(str(SCRIPT), run_name="script")["measure"]
    tokenizer = WordPieceTokenizer(VOCABULARY)
    preprocessor = AlbertTextClassifierPreprocessor(tokenizer, sequence_length=16)
    measured = measure(backbone, preprocessor, TEXTS)
    np.testing.assert_allclose(measured, expected, rtol=1e-4)

    save_checkpoint(backbone, tmp_path / "a", layout="google", tokenizer=tokenizer)
    rows = "".join(f"{i % 2}\t{text}\n" for i, text in enumerate(TEXTS))
    (tmp_path / "texts.tsv").write_text(f"label\ttext\n{rows}", "utf-8")
    printed = run("--unshared", tmp_path / "a", "--texts", tmp_path / "texts.tsv")
    assert printed.count("│") > 8
    assert (tmp_path / "layer_similarity.png").stat().st_size > 10_000
