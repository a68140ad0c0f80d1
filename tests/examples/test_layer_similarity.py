"""The figure of the ALBERT paper: its numbers against NumPy, and the script."""

import pathlib
import runpy
import sys

import numpy as np
import pytest
from small_classifier import (
    CHARACTERS,
    VOCABULARY,
    features_of,
    randomised,
    small_backbone,
)

from albert_tf import save_checkpoint
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor
from albert_tf.tokenizers import WordPieceTokenizer

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
SCRIPT = EXAMPLES / "advanced" / "layer_similarity.py"
# Several lengths, and more texts than a batch of the script.
TEXTS = [CHARACTERS[i % 6] * (1 + i * i % 11) for i in range(37)]


def measured_by_hand(backbone):
    """Measure one text at a time, without padding."""
    model = backbone.with_intermediates()
    of_tokens = []
    for text in TEXTS:
        inputs = features_of(text)
        states = [x.numpy()[0].astype(float) for x in model(inputs)["hidden_states"]]
        lengths = np.linalg.norm(states, axis=-1)
        products = np.sum(np.multiply(states[1:], states[:-1]), axis=-1)
        cosines = products / lengths[1:] / lengths[:-1]
        distances = np.linalg.norm(np.diff(states, axis=0), axis=-1)
        # [measures, layers, tokens]
        of_tokens.append([distances, cosines, np.degrees(np.arccos(cosines))])
    return np.concatenate(of_tokens, axis=-1).mean(axis=-1)


@pytest.mark.slow
def test_measures_of_two_checkpoints_are_those_of_numpy(monkeypatch, capsys, tmp_path):
    groups = {"num_attention_groups": 4, "num_ffn_groups": 4}
    google = {"embedding_projection": "after_layer_norm", "num_layers": 4}
    backbone = randomised(small_backbone(**google, **groups), spread=0.5)
    expected = measured_by_hand(backbone)
    # Layers with such large weights move their input, each by another distance.
    assert np.ptp(expected, axis=1).min() > 1e-3
    measure = runpy.run_path(str(SCRIPT), run_name="script")["measure"]
    tokenizer = WordPieceTokenizer(VOCABULARY)
    preprocessor = AlbertTextClassifierPreprocessor(tokenizer, sequence_length=16)
    measured = measure(backbone, preprocessor, TEXTS)
    np.testing.assert_allclose(measured, expected, rtol=1e-4)

    monkeypatch.chdir(tmp_path)
    save_checkpoint(backbone, "a", layout="google", tokenizer=tokenizer)
    rows = "".join(f"{i % 2}\t{text}\n" for i, text in enumerate(TEXTS))
    pathlib.Path("texts.tsv").write_text(f"label\ttext\n{rows}", "utf-8")
    options = ["--unshared", "a", "--texts", "texts.tsv"]
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *options])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    assert capsys.readouterr().out.count("\n") > 8
    assert pathlib.Path("layer_similarity.png").stat().st_size > 10_000
