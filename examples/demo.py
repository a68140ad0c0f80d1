"""The main job, step by step: what `make demo` runs.

A TensorFlow 1 checkpoint becomes a classifier of Chinese reviews, which becomes a
SavedModel, which answers in a process that knows nothing of this package. Each step
is a command you can copy. Your own sentence: make demo TEXT="房间很干净"
"""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HERE = pathlib.Path("examples")
OUTPUT = pathlib.Path("demo_output")
ALBERT_TF = pathlib.Path(sys.executable).with_name("albert-tf")

SENTENCES = [
    "房间很干净，服务员也热情，下次还来。",
    "等了一个半小时，面都坨了，再也不点了。",
    "虽然包装简陋，但是音质真不错，这个价位很值。",
    "客服不理人，用了两天就坏了。",
]


def run(title, *command, quiet=False):
    """Show a command and run it; `quiet` hides what TensorFlow says of itself."""
    command = [str(part) for part in command]
    shown = [pathlib.Path(command[0]).name, *command[1:]]
    print(f"\n\033[1m{title}\033[0m\n$ {shlex.join(shown)}\n", flush=True)
    result = subprocess.run(command, stderr=subprocess.PIPE if quiet else None)
    if result.returncode:
        sys.exit((result.stderr or b"").decode() + f"\nStep failed: {title}")


def main():
    os.chdir(ROOT)
    checkpoint, reviews = HERE / "albert_micro_zh", HERE / "reviews"
    model, serving = OUTPUT / "model", OUTPUT / "serving" / "1"
    text = os.environ.get("TEXT")
    sentences = [text] if text else SENTENCES

    if text and serving.exists():
        print("The model of the last run answers; `make clean` starts over.")
    else:
        shutil.rmtree(OUTPUT, ignore_errors=True)
        run("1. What the checkpoint holds", ALBERT_TF, "inspect", checkpoint)
        run(
            "2. Fine-tuning on 2,369 reviews of hotels, food and electronics",
            *(ALBERT_TF, "finetune", "--checkpoint", checkpoint, "--output", model),
            *("--train", reviews / "train.tsv", "--dev", reviews / "dev.tsv"),
            *("--test", reviews / "test.tsv", "--epochs", 5, "--batch-size", 16),
            # The seed with the best accuracy on dev, of three.
            *("--learning-rate", 5e-4, "--seed", 2),
        )
        run("3. The test set", ALBERT_TF, "evaluate", model, reviews / "test.tsv")
        run("4. A SavedModel that takes strings", ALBERT_TF, "export", model, serving)
    run(
        "5. Answers of a process that imports only tensorflow and tensorflow_text",
        *(sys.executable, HERE / "serve.py", serving, *sentences),
        quiet=True,
    )
    print(f"\nThe curves: {OUTPUT / 'model' / 'history.png'}")
    print('Your own sentence: make demo TEXT="房间很干净"')


if __name__ == "__main__":
    main()
