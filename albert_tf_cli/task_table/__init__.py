"""The tasks of the command line, one module each.

A module is named after its task in `albert_tf.models.TASKS`, with underscores, and has
a `ROW` at its end. The functions of the row (`read`, `report`, `cells`, and where
needed `scores`, `tune`, `inputs`, `summary`) stand above it and import TensorFlow,
NumPy and `albert_tf` when they are called, so that `--help` does not. See `Row` for
their arguments. Each module of this folder is a row; nothing else lists them.
"""

import importlib
import pkgutil

_MODULES = (
    importlib.import_module(f"{__name__}.{module.name}")
    for module in pkgutil.iter_modules(__path__)
    if module.name != "row"
)
TASKS = {module.ROW.name: module.ROW for module in _MODULES}


def task_of(class_name):
    """Return the row of a class of models, `None` if it has none."""
    from albert_tf import models

    return TASKS.get(
        getattr(getattr(models, class_name or "", None), "name_of_task", None)
    )
