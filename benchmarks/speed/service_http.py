"""Compare the HTTP service of `examples/service/` with one of transformers.

    python -m benchmarks.speed.service_http FILE [--requests 2000] [--rounds 3]

FILE is a text per line. Both services are the same code with two workers, one thread
each, and the same model of the shape of albert_tiny with random weights: an ONNX file
in albert-tf-lite, in float32 and int8, and transformers on PyTorch. In each round each
is started anew and answers eight clients at a time. `MB` is the memory of its workers
after the warm-up and at the end. Needs torch and transformers.
"""

import argparse
import functools
import os
import pathlib
import re
import runpy
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.lib.paths import EXAMPLES, MICRO

SERVICE = EXAMPLES / "service"
VOCABULARY = MICRO / "vocab.txt"
PEER = """
import os, runpy, torch, transformers
service = runpy.run_path(os.environ["SERVICE"])

def open_model():
    torch.set_num_threads(1)
    answer = transformers.pipeline("text-classification", os.environ["MODEL"])
    return lambda texts: answer(texts, batch_size=32)

app = service["create_app"](open_model)
if __name__ == "__main__":
    service["serve"]("peer:app", os.path.dirname(__file__))
"""
PORT = 8123


def megabytes(process):
    """Return the memory of all workers."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    texts = [
        pathlib.Path(f"/proc/{child}/status").read_text("utf-8")
        for child in children.read_text("utf-8").split()
    ]
    return sum(int(re.search(r"VmRSS:\s*(\d+)", x)[1]) / 1e3 for x in texts)


def write_models(folder):
    """Write the same classifier as ONNX files and for transformers."""
    import albert_tf
    import zh

    tokens = VOCABULARY.read_text("utf-8").rstrip("\n").split("\n")
    sizes = {**zh.SIZES["albert_tiny_zh_google"], "vocabulary_size": len(tokens)}
    backbone = albert_tf.models.AlbertBackbone(**sizes)
    classifier = albert_tf.models.AlbertTextClassifier.from_backbone(
        backbone, str(VOCABULARY), num_classes=2, labels=["差评", "好评"]
    )
    for precision in ("float32", "int8"):
        path = folder / f"{precision}.onnx"
        albert_tf.export.onnx(classifier, path, precision=precision)
    albert_tf.save_checkpoint(classifier, folder / "model", layout="huggingface")


def measure(command, environment, run, requests):
    """Start a service, send requests and return the figures and the labels."""
    process = subprocess.Popen(command, env={**os.environ, **environment})
    try:
        start = time.perf_counter()
        while True:
            try:
                run(requests=8)
                break
            except OSError:
                if process.poll() is not None or time.perf_counter() - start > 120:
                    sys.exit("The service did not start.")
                time.sleep(0.1)
        first = time.perf_counter() - start
        run(requests=requests // 4)
        before = megabytes(process)
        seconds, answers, total = run(requests=requests)
        figures = {"start, s": first, "MB": before, "MB at the end": megabytes(process)}
    finally:
        process.terminate()
        process.wait()
    return seconds, total, figures, [x["label"] for (x,) in answers]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    texts = pathlib.Path(arguments.file).read_text("utf-8").rstrip("\n").split("\n")

    load = runpy.run_path(str(SERVICE / "load.py"))
    run = functools.partial(load["run"], f"127.0.0.1:{PORT}", texts)
    measured = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_models(folder)
        (folder / "peer.py").write_text(PEER, "utf-8")
        common = {
            "PORT": str(PORT),
            "WORKERS": "2",
            "OMP_NUM_THREADS": "1",
            "SERVICE": str(SERVICE / "service.py"),
        }
        services = {
            "albert-tf-lite": (SERVICE / "service.py", "float32.onnx"),
            "albert-tf-lite, int8": (SERVICE / "service.py", "int8.onnx"),
            "transformers": (folder / "peer.py", "model"),
        }
        for _ in range(arguments.rounds):
            for name, (script, model) in services.items():
                environment = {**common, "MODEL": str(folder / model)}
                command = (sys.executable, script)
                row = measure(command, environment, run, arguments.requests)
                measured.setdefault(name, []).append(row)
    rows = {}
    labels = {}
    for name, rounds in measured.items():
        summaries = []
        for seconds, total, figures, labels[name] in rounds:
            summaries.append({**load["summary"](seconds, total), **figures})
        rows[name] = {
            key: statistics.median(summary[key] for summary in summaries)
            for key in summaries[0]
        }
    pairs = zip(labels["albert-tf-lite"], labels["transformers"], strict=True)
    agreement = statistics.mean(ours == theirs for ours, theirs in pairs)

    # Imported last, because it imports TensorFlow.
    from benchmarks.lib.harness import console, table_of, write_results

    console.print(table_of(rows, tuple(rows["transformers"])))
    console.print(f"Equal labels: {agreement:.4f}")
    write_results("service_http", {"rows": rows, "equal labels": agreement})


if __name__ == "__main__":
    main()
