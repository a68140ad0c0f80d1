"""Plot how far each layer moves its input, with and without parameter sharing.

Reproduces figure 1 of the ALBERT paper (arXiv 1909.11942): L2 distance and cosine
(drawn as an angle) between the input and output of each layer, averaged over tokens.
"""

import argparse
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.table import Table

from albert_tf.backbone.presets import check_fits
from albert_tf.checkpoints import load_checkpoint, open_checkpoint
from albert_tf.data.tables import read_labelled_texts
from albert_tf.models import AlbertBackbone
from albert_tf.preprocessing import AlbertTextClassifierPreprocessor

HERE = pathlib.Path(__file__).parent


def load(path):
    """Load the encoder of a checkpoint and a matching preprocessor."""
    checkpoint = open_checkpoint(path)
    tokenizer = checkpoint.tokenizer()
    if tokenizer is None:
        raise FileNotFoundError(
            f"{path} has no vocabulary. Add its vocab.txt or .model."
        )
    backbone = load_checkpoint(checkpoint, pooler=False)
    length = min(128, backbone.max_sequence_length)
    preprocessor = AlbertTextClassifierPreprocessor(tokenizer, sequence_length=length)
    check_fits(preprocessor, backbone)
    return backbone, preprocessor


def measure(backbone, preprocessor, texts):
    """Measure L2 distance, cosine and degrees per layer, an array [3, layers]."""
    model = backbone.with_intermediates()
    measures = []
    for start in range(0, len(texts), 32):
        features = preprocessor(texts[start : start + 32])
        is_token = features["padding_mask"].numpy() == 1
        # [layers + 1, tokens, hidden]; float64, for the angle of a cosine near 1.
        states = np.stack(model(features)["hidden_states"])[:, is_token].astype(float)
        distance = np.linalg.norm(np.diff(states, axis=0), axis=-1)
        units = states / np.linalg.norm(states, axis=-1, keepdims=True)
        cosine = np.clip((units[:-1] * units[1:]).sum(-1), -1, 1)
        measures.append(np.stack([distance, cosine, np.degrees(np.arccos(cosine))]))
    return np.concatenate(measures, axis=-1).mean(axis=-1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--checkpoint", default=str(HERE / "albert_micro_zh"))
    parser.add_argument("--unshared", help="checkpoint (default: random weights)")
    parser.add_argument("--texts", default=str(HERE / "reviews" / "dev.tsv"))
    parser.add_argument("--output", default="layer_similarity.png")
    arguments = parser.parse_args()
    x = read_labelled_texts(arguments.texts).x
    texts = [*x[0], *x[1]] if isinstance(x, tuple) else x
    shared, preprocessor = load(arguments.checkpoint)
    measured = {"shared": measure(shared, preprocessor, texts)}
    if arguments.unshared:
        other, preprocessor = load(arguments.unshared)
    else:
        keras.utils.set_random_seed(1)
        config = shared.get_config()
        config["num_attention_groups"] = config["num_ffn_groups"] = shared.num_layers
        other = AlbertBackbone.from_config(config)
    if min(other.num_attention_groups, other.num_ffn_groups) < other.num_layers:
        raise ValueError(f"--unshared {arguments.unshared}: layers share parameters.")
    name = "unshared" if arguments.unshared else "unshared, random weights"
    measured[name] = measure(other, preprocessor, texts)

    table = Table("parameters", "layer", "L2 distance", "cosine", "degrees")
    for name, values in measured.items():
        for layer, row in enumerate(values.T, start=1):
            table.add_row(name, str(layer), *(f"{value:.3f}" for value in row))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for axis, i, title in zip(axes, (0, 2), ("L2 distance", "degrees"), strict=True):
        for name, values in measured.items():
            axis.plot(range(1, 1 + len(values[i])), values[i], marker="o", label=name)
        axis.set(title=title, xlabel="layer", xticks=range(1, 1 + len(values[i])))
        axis.legend()
    figure.savefig(arguments.output, format="png")
    Console().print(table)
    print(f"Figure written to {arguments.output}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"Error: {error}")
