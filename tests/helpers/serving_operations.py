"""Operations that SavedModels use, and those that a TensorFlow registers.

    PYTHON tests/helpers/serving_operations.py MODEL...

prints the latter as JSON for the TensorFlow of PYTHON: its version, that of its graphs,
and the attributes it knows of each operation that the models use. `tests/export/
serving_operations.json` is from 2.20, which the newest TensorFlow Serving has.
"""

import json
import pathlib
import sys

from tensorflow.core.protobuf import saved_model_pb2

TABLE = pathlib.Path(__file__).parents[1] / "export" / "serving_operations.json"


def graph_of(directory):
    content = (pathlib.Path(directory) / "saved_model.pb").read_bytes()
    return saved_model_pb2.SavedModel.FromString(content).meta_graphs[0].graph_def


def operations_of(directory):
    """`{operation: attributes}` of a graph and its functions."""
    graph = graph_of(directory)
    functions = graph.library.function
    found = {}
    for node in [*graph.node, *(node for x in functions for node in x.node_def)]:
        # No registry knows hidden attributes.
        known = (name for name in node.attr if not name.startswith("_"))
        found.setdefault(node.op, set()).update(known)
    names = {function.signature.name for function in functions}
    return {name: found[name] for name in found.keys() - names}


if __name__ == "__main__":
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  registers its operations
    from tensorflow.python.framework import op_def_registry

    names = sorted(set().union(*map(operations_of, sys.argv[1:])))
    known = {name: op_def_registry.get(name) for name in names}
    report = {
        "tensorflow": tf.__version__,
        "graph_version": tf.version.GRAPH_DEF_VERSION,
        "operations": {
            name: sorted(attribute.name for attribute in x.attr)
            for name, x in known.items()
            # Deprecated operations fail from the version in their definition.
            if x is not None and not x.HasField("deprecation")
        },
    }
    print(json.dumps(report, indent=1))
