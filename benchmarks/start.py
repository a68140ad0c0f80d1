"""Measure the seconds and memory from a new process to its first answer.

    python benchmarks/start.py [--rounds 3]

Each round is a new process that imports TensorFlow, tensorflow-text, KerasHub and
albert_tf, loads `examples/albert_micro_zh` and predicts twice. Further processes run
`albert-tf predict` with the model and with ONNX and LiteRT files exported from it.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[1]
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
if len(sys.argv) > 2:
    model.save_to_preset(sys.argv[2])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found["memory"] = (imported / 1e3, peak / 1e3)
print(json.dumps(found))
"""


def run(*command):
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    micro = str(ROOT / "examples" / "albert_micro_zh")
    preset = str(pathlib.Path(tempfile.mkdtemp(), "preset"))
    run(sys.executable, "-c", STAGES, micro, preset)
    command = str(pathlib.Path(sys.executable).with_name("albert-tf"))
    commands = {preset: []}
    for kind, ending in (("onnx", "onnx"), ("litert", "tflite")):
        file = f"{preset}.{ending}"
        run(command, "export", preset, file, "--format", kind, "--precision", "int8")
        commands[file] = []
    rounds = []
    for _ in range(arguments.rounds):
        rounds.append(json.loads(run(sys.executable, "-c", STAGES, micro)[0]))
        for model, times in commands.items():
            times.append(run(command, "predict", model, "房间很干净")[1])
    memory = [found.pop("memory") for found in rounds]
    rows = {
        name: {
            "seconds": statistics.median(found[name][0] for found in rounds),
            "cpu_seconds": statistics.median(found[name][1] for found in rounds),
        }
        for name in rounds[0]
    }
    for model, times in commands.items():
        name = f"albert-tf predict {pathlib.Path(model).name}"
        rows[name] = {"seconds": statistics.median(times)}

    # Imported last: it imports the packages whose imports are timed above.
    from harness import console, table_of, write_results

    imported, peak = (statistics.median(column) for column in zip(*memory, strict=True))
    console.print(table_of(rows, ("seconds", "cpu_seconds")))
    console.print(f"Memory: {imported:.0f} MB imported, {peak:.0f} MB at the peak")
    write_results(
        "start", {"rows": rows, "megabytes": {"imported": imported, "peak": peak}}
    )


if __name__ == "__main__":
    main()
