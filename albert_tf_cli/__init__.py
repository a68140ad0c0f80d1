"""The `albert-tf` command line, one module per group of commands."""

import importlib.util
import sys

for _name in ("typer", "rich"):
    if importlib.util.find_spec(_name) is None:
        sys.exit(
            f"The command line needs {_name}. Run: pip install 'albert-tf[cli]'",
        )

from albert_tf_cli.checkpoints import convert, download, inspect  # noqa: E402
from albert_tf_cli.common import Command, app, main  # noqa: E402
from albert_tf_cli.export import export  # noqa: E402
from albert_tf_cli.finetune import finetune  # noqa: E402
from albert_tf_cli.pretrain_data import pretrain_data  # noqa: E402
from albert_tf_cli.pretraining import pretrain  # noqa: E402
from albert_tf_cli.prune import prune  # noqa: E402
from albert_tf_cli.tasks import evaluate, predict  # noqa: E402

__all__ = ["app", "main"]

# The help lists them in the order of a project.
for _command in (
    *(download, inspect, convert),
    *(pretrain_data, pretrain),
    *(finetune, evaluate, predict),
    *(export, prune),
):
    app.command(cls=Command)(_command)
