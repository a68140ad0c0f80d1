"""Run the main workflow step by step, as `make demo` does.

Fine-tunes a classifier of Chinese reviews from a TensorFlow 1 checkpoint, exports it as
a SavedModel and predicts in a process that does not import this package. Without
tensorflow-text, as on Windows, it predicts with the model instead. Each step prints a
command that you can copy. For your own sentence: make demo TEXT="房间很干净"
"""

import importlib.util
import itertools
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

from rich.console import Console
from rich.table import Table

ROOT = pathlib.Path(__file__).resolve().parent.parent
HERE = pathlib.Path("examples")
OUTPUT = pathlib.Path("demo_output")
ALBERT_TF = shutil.which("albert-tf", path=pathlib.Path(sys.executable).parent)

# Sentences that are not in the reviews, with their true labels.
SENTENCES = {
    "房间很干净，服务员也热情，下次还来。": "好评",
    "等了一个半小时，面都坨了，再也不点了。": "差评",
    "服务态度差，不会再来了": "差评",
    "很好吃，推荐": "好评",
    "虽然包装简陋，但是音质真不错，这个价位很值。": "好评",
    "客服不理人，用了两天就坏了。": "差评",
    "房间很脏，再也不来": "差评",
    "物超所值，老婆很喜欢": "好评",
}
CONSOLE = Console(highlight=False)


def run(title, *command, **options):
    """Print a command and run it."""
    command = [str(part) for part in command]
    shown = [pathlib.Path(command[0]).stem, *command[1:]]
    CONSOLE.print(f"\n[bold]{title}[/bold]")
    print(f"$ {shlex.join(shown)}\n", flush=True)
    result = subprocess.run(command, encoding="utf-8", **options)
    if result.returncode:
        sys.exit((result.stderr or "") + f"\nStep failed: {title}")
    return result.stdout


def show(answers, expected):
    """Print the output of `serve.py` as a table that marks right and wrong labels."""
    table = Table("answer", "probability", "", "sentence")
    for line in answers.rstrip("\n").split("\n"):
        label, probability, text = line.split("\t", 2)
        truth = expected.get(text)
        mark = "" if truth is None else "right" if truth == label else f"wrong: {truth}"
        table.add_row(label, probability, mark, text)
    CONSOLE.print(table)


def main():
    os.chdir(ROOT)
    checkpoint, reviews = "albert_micro_zh", HERE / "reviews"
    model, serving = OUTPUT / "model", OUTPUT / "serving" / "1"
    report = OUTPUT / "report"
    text = os.environ.get("TEXT")
    expected = {text: None} if text else SENTENCES

    # Without it, a graph cannot split text into tokens.
    has_text_ops = importlib.util.find_spec("tensorflow_text") is not None
    # Chinese in pipes, too, whatever the code page of the system is.
    os.environ["PYTHONUTF8"] = "1"

    if text and (serving if has_text_ops else report).exists():
        print("Using the model of the last run. `make clean` starts over.")
    else:
        shutil.rmtree(OUTPUT, ignore_errors=True)
        run(
            "1. Classify reviews with the bundled checkpoint, without training",
            *(ALBERT_TF, "predict", f"{checkpoint}:sentiment", *list(SENTENCES)[-2:]),
        )
        run("2. Inspect the checkpoint", ALBERT_TF, "inspect", checkpoint)
        # With few labels, pretraining pays most.
        OUTPUT.mkdir()
        with open(reviews / "train.tsv", encoding="utf-8") as lines:
            few = "".join(itertools.islice(lines, 1001))
        train = OUTPUT / "train.tsv"
        train.write_text(few, encoding="utf-8")
        run(
            "3. Fine-tune it on 1,000 toy reviews of hotels, food and electronics",
            *(ALBERT_TF, "finetune", "--checkpoint", checkpoint, "--output", model),
            *("--train", train, "--dev", reviews / "dev.tsv"),
            *("--test", reviews / "test.tsv", "--epochs", 2),
        )
        run(
            "4. Evaluate on the test set and write an error report",
            *(ALBERT_TF, "evaluate", model, reviews / "test.tsv", "--report", report),
        )
        if has_text_ops:
            title = "5. Export a SavedModel for strings"
            run(title, ALBERT_TF, "export", model, serving)
    if has_text_ops:
        answers = run(
            "6. Predict in a process that imports only tensorflow and tensorflow_text",
            *(sys.executable, HERE / "serve.py", serving, *expected),
            # TensorFlow logs details of the machine to standard error.
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        show(answers, expected)
    else:
        print(
            "\nSkipped: a SavedModel for strings needs tensorflow-text, which is not "
            "installed."
        )
        run("5. Predict with the model", ALBERT_TF, "predict", model, *expected)
    print(f"Learning curves: {model / 'history.png'}")
    print(f"Error report of the test set: {report / 'report.html'}")
    print('Try your own sentence: make demo TEXT="房间很干净"')
    print(f"A page to try it: pip install '.[demo]' && albert-tf demo {model}")


if __name__ == "__main__":
    main()
