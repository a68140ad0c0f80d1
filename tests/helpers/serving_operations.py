"""Operations that SavedModels use, and those that a TensorFlow registers.

    PYTHON tests/helpers/serving_operations.py MODEL...

prints it as JSON of the TensorFlow of PYTHON: its version, that of its graphs, and of
each operation that the models use the attributes it knows. `tests/export/
serving_operations.json` is what 2.20 prints, the newest TensorFlow Serving's.
"""

import json
import pathlib
import sys

from tensorflow.core.protobuf import saved_model_pb2

TABLE = pathlib.Path(__file__).parents[1] / "export" / "serving_operations.json"


def graph_of(directory):
    path = pathlib.Path(directory) / "saved_model.pb"
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    (meta_graph,) = model.meta_graphs
    return meta_graph.graph_def


def operations_of(directory):
    """`{operation: attributes}` of a graph and its functions, hidden attributes left
    out, which no registry knows."""
    graph = graph_of(directory)
    functions = graph.library.function
    nodes = [*graph.node, *(node for x in functions for node in x.node_def)]
    names = {function.signature.name for function in functions}
    found = {}
    for node in nodes:
        if node.op not in names:
            known = (name for name in node.attr if not name.startswith("_"))
            found.setdefault(node.op, set()).update(known)
    return found


def known_operations(names):
    """`{operation: attributes}` of those that this TensorFlow knows."""
    import tensorflow_text  # noqa: F401  registers its operations
    from tensorflow.python.framework import op_def_registry

    found = {name: op_def_registry.get(name) for name in sorted(names)}
    return {
        name: sorted(attr.name for attr in definition.attr)
        for name, definition in found.items()
        # Deprecated operations fail from the version in their definition.
        if definition is not None and not definition.HasField("deprecation")
    }


def main():
    import tensorflow as tf

    names = set().union(*map(operations_of, sys.argv[1:]))
    report = {
        "tensorflow": tf.__version__,
        "graph_version": tf.version.GRAPH_DEF_VERSION,
        "operations": known_operations(names),
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
