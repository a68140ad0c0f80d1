"""What pretraining buys: fine-tuning from checkpoints and from random weights.

Each run is `albert-tf finetune`, a process of its own; prints the accuracy on the test
data, mean and standard deviation over the seeds.

Run: python benchmarks/pretraining_gain.py --task reviews examples/reviews \\
    --from pretrained examples/albert_micro_zh --random albert_micro_zh
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ALBERT_TF = pathlib.Path(sys.executable).with_name("albert-tf")
RECIPE = {"--batch-size": 16, "--sequence-length": 128}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--task",
        nargs=2,
        action="append",
        required=True,
        metavar=("NAME", "DIRECTORY"),
        help="with train.tsv, dev.tsv and test.tsv",
    )
    parser.add_argument(
        "--from",
        dest="checkpoints",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "CHECKPOINT"),
    )
    parser.add_argument("--random", help="a size or config file")
    parser.add_argument("--vocab", help="for --random; by default the checkpoint's")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    # One for all: the runs differ in the weights that they start from alone.
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    arguments = parser.parse_args()
    starts = {name: ["--checkpoint", path] for name, path in arguments.checkpoints}
    if arguments.random:
        vocabulary = arguments.vocab
        if vocabulary is None and arguments.checkpoints:
            vocabulary = pathlib.Path(arguments.checkpoints[0][1]) / "vocab.txt"
        if vocabulary is None:
            parser.error("--random needs --vocab, or a --from that has one")
        options = ["--config", arguments.random, "--vocab", vocabulary]
        starts["random weights"] = options
    if not starts:
        parser.error("give --from or --random, or both: what to start from")
    print(f"{'':24}" + "".join(f"{name:>24}" for name, _ in arguments.task))
    for name, options in starts.items():
        cells = []
        for _, folder in arguments.task:
            scores = [
                fine_tune(pathlib.Path(folder), options, seed, arguments)
                for seed in range(1, arguments.seeds + 1)
            ]
            spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
            cells.append(f"{statistics.mean(scores):.4f} ± {spread:.4f}")
        print(f"{name:24}" + "".join(f"{cell:>24}" for cell in cells), flush=True)


def fine_tune(data, options, seed, arguments):
    """The accuracy on the test data of one run."""
    with tempfile.TemporaryDirectory() as output:
        files = (
            (f"--{part}", data / f"{part}.tsv") for part in ("train", "dev", "test")
        )
        recipe = {
            **RECIPE,
            "--seed": seed,
            "--epochs": arguments.epochs,
            "--learning-rate": arguments.learning_rate,
            "--output": output,
            **dict(files),
        }
        command = [ALBERT_TF, "finetune", *options]
        command += [part for option in recipe.items() for part in option]
        command = [str(part) for part in command]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"Failed: {' '.join(command)}\n{done.stderr[-2000:]}")
        metrics = json.loads((pathlib.Path(output) / "metrics.json").read_text())
    return metrics["test"]["accuracy"]


if __name__ == "__main__":
    main()
