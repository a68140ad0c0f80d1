"""Compare float32 and int8 ONNX files of fine-tuned models: speed, agreement, size.

    python -m benchmarks.speed.int8 MODEL FILE [MODEL FILE ...]
        [--examples 500] [--rounds 5]

MODEL is a directory of `albert-tf finetune`, FILE labelled texts that its training has
not seen. Both files run on one thread in turn, the texts in batches and one by one.
`one batch` is the largest change of a probability between the two, also for the int8
file of ONNX Runtime's `quantize_dynamic`, which has one scale per batch.
"""

import argparse
import functools
import pathlib
import tempfile
import warnings

from albert_tf import pipeline
from albert_tf.export import OnnxModel
from albert_tf_lite.exported_model import SETTINGS
import numpy as np
import onnx
from onnxruntime import quantization

from albert_tf_cli.shared.column_options import ColumnOptions
from albert_tf_cli.tasks import task_named
from albert_tf_cli.tasks.reading import checked_reader, read_remembered
from benchmarks.lib.harness import compared, console, in_turn, table_of, write_results

COLUMNS = ("MB", "accuracy", "as float32", "one batch", "texts/s", "ratio", "cpu_ratio")
ALONE = 64


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="MODEL FILE")
    parser.add_argument("--examples", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    jobs = {}
    pairs = zip(arguments.files[::2], arguments.files[1::2], strict=True)
    for folder, file in pairs:
        name = pathlib.Path(folder).name
        rows, settings = measured(folder, file, arguments)
        console.print(table_of(rows, COLUMNS), name, settings)
        jobs[name] = {"rows": rows, **settings}
        # After each model, because long texts take minutes.
        write_results("int8", {"jobs": jobs})


def measured(folder, file, arguments):
    """Return the rows of the files of a model, and the number of examples."""
    answer = pipeline(path=folder)
    trained = answer.model
    read = checked_reader(task_named(answer.task))
    examples = read_remembered(
        folder, ColumnOptions(), lambda x: read(file, x, trained.get_config())
    )
    examples = examples.select(range(min(len(examples), arguments.examples)))
    alone = examples.select(range(min(len(examples), ALONE)))
    with tempfile.TemporaryDirectory() as temporary:
        models = written(trained, pathlib.Path(temporary))
        runs = {
            name: functools.partial(model.predict, examples.x)
            for name, model in models.items()
        }
        rows = compared(in_turn(runs, arguments.rounds), to="float32")
        expected = models["float32"].predict(examples.x)
        for name, model in models.items():
            answers = model.predict(examples.x)
            labels = answers["label"]
            together = answers["probabilities"][: len(alone)]
            one_by_one = model.predict(alone.x, 1)["probabilities"]
            row = rows[name]
            row["MB"] = pathlib.Path(model.path).stat().st_size / 1e6
            row["accuracy"] = float(np.mean(labels == np.array(examples.y)))
            row["as float32"] = float(np.mean(labels == expected["label"]))
            row["one batch"] = float(np.abs(together - one_by_one).max())
            row["texts/s"] = len(examples) / row["seconds"]
    return rows, {"examples": len(examples)}


def written(task, folder):
    """Return the models of the files by name."""
    from albert_tf.export import onnx as write

    paths = {
        "float32": folder / "float32.onnx",
        "int8": folder / "int8.onnx",
        "int8, a scale per batch": folder / "dynamic.onnx",
    }
    for precision in ("float32", "int8"):
        write(task, paths[precision], precision=precision)
    model = onnx.load(paths["float32"])
    # Without the checksum of the other file.
    settings = {x.key: x.value for x in model.metadata_props if x.key == SETTINGS}
    dynamic = paths["int8, a scale per batch"]
    quantization.quantize_dynamic(
        model,
        dynamic,
        op_types_to_quantize=["MatMul", "Gather"],
        weight_type=quantization.QuantType.QInt8,
        per_channel=True,
        # As albert-tf: 7 bits, for processors without VNNI.
        reduce_range=True,
    )
    model = onnx.load(dynamic)
    onnx.helper.set_model_props(model, settings)
    onnx.save(model, dynamic)
    return {name: OnnxModel(path, threads=1) for name, path in paths.items()}


if __name__ == "__main__":
    main()
