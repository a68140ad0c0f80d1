"""Plot how far each layer moves its input, with and without parameter sharing.

Reproduces figure 1 of the ALBERT paper (arXiv 1909.11942): L2 distance and cosine
(drawn as an angle) between the input and output of each layer, averaged over tokens.
"""

import argparse
import pathlib
import sys

import albert_tf
from albert_tf.data import read_labelled_texts
from albert_tf.models import AlbertBackbone
import keras
import matplotlib.pyplot as plt
import numpy as np

EXAMPLES = pathlib.Path(__file__).parents[1]


def load(path):
    """Load the encoder of a checkpoint and a matching preprocessor."""
    model = albert_tf.pipeline("text-embedding", path).model
    return model.backbone, model.preprocessor


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
    parser.add_argument("--checkpoint", default=str(EXAMPLES / "albert_micro_zh"))
    parser.add_argument("--unshared", help="checkpoint (default: random weights)")
    parser.add_argument("--texts", default=str(EXAMPLES / "reviews" / "dev.tsv"))
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

    for name, values in measured.items():
        print(f"{name}: layer, L2 distance, cosine, degrees")
        for layer, row in enumerate(values.T, start=1):
            print(f"{layer:>3}", *(f"{value:8.3f}" for value in row))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for axis, i, title in zip(axes, (0, 2), ("L2 distance", "degrees"), strict=True):
        for name, values in measured.items():
            axis.plot(range(1, 1 + len(values[i])), values[i], marker="o", label=name)
        axis.set(title=title, xlabel="layer", xticks=range(1, 1 + len(values[i])))
        axis.legend()
    figure.savefig(arguments.output, format="png")
    print(f"Figure written to {arguments.output}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"Error: {error}")
