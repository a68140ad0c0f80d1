"""Measure the seconds and memory from a new process to its first answer.

    python -m benchmarks.speed.start [--rounds 3]

Each round is a new process that imports TensorFlow, tensorflow-text, KerasHub and
albert_tf, loads `examples/albert_micro_zh` and predicts twice. Further processes run
`albert-tf predict` with a directory of `albert-tf finetune`, once with its ONNX file
and once without, and with int8 files exported from it. `megabytes` is the peak memory
of such a process.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import sys
import tempfile

from benchmarks.lib.paths import EXAMPLES, MICRO
from benchmarks.lib.processes import run

STAGES = """
import json, os, resource, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
found = {}

def stage(name, function):
    wall, cpu = time.perf_counter(), time.process_time()
    value = function()
    found[name] = (time.perf_counter() - wall, time.process_time() - cpu)
    return value

for module in ("tensorflow", "tensorflow_text", "keras_hub", "albert_tf"):
    stage(f"import {module}", lambda: __import__(module))
imported = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
classes = sys.modules["albert_tf"].models
model = stage("load", lambda: classes.AlbertTextClassifier.from_checkpoint(
    sys.argv[1], num_classes=2))
stage("first answer", lambda: model.predict(["房间很干净"], verbose=0))
stage("second answer", lambda: model.predict(["服务太差了，不好"], verbose=0))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found["memory"] = (imported / 1e3, peak / 1e3)
print(json.dumps(found))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    command = str(pathlib.Path(sys.executable).with_name("albert-tf"))
    train = EXAMPLES / "data" / "spam" / "messages.tsv"
    model, plain = folder / "model", folder / "without_onnx"
    options = ("--checkpoint", MICRO, "--train", train, "--epochs", "1")
    run(command, "finetune", *options, "--output", model)
    shutil.copytree(model, plain)
    (plain / "model.onnx").unlink()
    commands = {"a model of finetune": model, "the same without model.onnx": plain}
    for kind, ending in (("onnx", "onnx"), ("litert", "tflite")):
        file = folder / f"int8.{ending}"
        commands[f"{kind} int8"] = file
        run(command, "export", model, file, "--format", kind, "--precision", "int8")
    rounds = []
    answers = {name: [] for name in commands}
    for _ in range(arguments.rounds):
        stages = run(sys.executable, "-c", STAGES, MICRO).output
        rounds.append(json.loads(stages))
        for name, path in commands.items():
            answers[name].append(run(command, "predict", path, "房间很干净"))
    memory = [stages.pop("memory") for stages in rounds]
    rows = {}
    for name in rounds[0]:
        times = [stages[name] for stages in rounds]
        rows[name] = {
            "seconds": statistics.median(wall for wall, _ in times),
            "cpu_seconds": statistics.median(cpu for _, cpu in times),
        }
    for name, finished in answers.items():
        rows[f"albert-tf predict, {name}"] = {
            "seconds": statistics.median(x.seconds for x in finished),
            "megabytes": statistics.median(x.megabytes for x in finished),
        }

    # Imported last: it imports the packages whose imports are timed above.
    from benchmarks.lib.harness import console, table_of, write_results

    imported = statistics.median(megabytes for megabytes, _ in memory)
    peak = statistics.median(megabytes for _, megabytes in memory)
    console.print(table_of(rows, ("seconds", "cpu_seconds", "megabytes")))
    console.print(f"Memory: {imported:.0f} MB imported, {peak:.0f} MB at the peak")
    write_results(
        "start", {"rows": rows, "megabytes": {"imported": imported, "peak": peak}}
    )


if __name__ == "__main__":
    main()
