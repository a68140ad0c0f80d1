"""Named heads: several heads in one checkpoint, each selected by its name.

A named head is stored as a checkpoint with that head alone would store it: its
variables below `heads/NAME/` (`heads.NAME.` in the Hugging Face layout), and its config
fields in `{"heads": {NAME: {...}}}`. All heads share the encoder and the pooler.
"""

import re
from collections.abc import Collection, Iterable
from typing import Any

from albert_tf.checkpoints.heads import HEAD_FIELDS, HEADS
from albert_tf.checkpoints.layout import CheckpointError, Layout
from albert_tf.files import HEAD_NAME
from albert_tf_lite.errors import AlbertError

FIELD = "heads"
# The masked language model needs the rows of the vocabulary, which pruning removes.
PARTS = [part for part in HEADS if part != "masked_lm_head"]


def check_name(name: str) -> None:
    """Raise if a head cannot have a name."""
    if not isinstance(name, str) or not re.fullmatch(HEAD_NAME, name):
        raise AlbertError(
            f"The name of a head must consist of letters, digits, _ and -. Received: "
            f"{name!r:.80}"
        )


def head_prefix(layout: Layout, name: str) -> str:
    """Return what precedes the names of the variables of a named head."""
    return f"{FIELD}{layout.separator}{name}{layout.separator}"


def read_named_heads(
    layout: Layout, config: dict[str, Any], source: str
) -> dict[str, dict[str, Any]]:
    """Return the config fields of each named head in a config, called `source`."""
    heads = config.get(FIELD)
    # A config of other code may have a field of this name.
    if layout.separator is None or not isinstance(heads, dict):
        return {}
    for name, fields in heads.items():
        if not re.fullmatch(HEAD_NAME, name) or not isinstance(fields, dict):
            raise CheckpointError(
                f"{source} has the head {name!r:.80} under {FIELD!r}. Expected a name "
                "of letters, digits, _ and -, and the config fields of the head."
            )
    return heads


def select_config(
    config: dict[str, Any], heads: dict[str, dict[str, Any]], name: str | None
) -> dict[str, Any]:
    """Return a config with the fields of one named head, or without named heads."""
    if not heads:
        return config
    if name is None:
        return _without(config, [FIELD])
    # The fields of a head without a name do not apply.
    shared = _without(config, [FIELD, *HEAD_FIELDS])
    return {**shared, **heads[name]}


def _without(rows: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return a dict without some of its keys."""
    return {name: value for name, value in rows.items() if name not in names}


def select_names(
    layout: Layout, names: dict[str, str], heads: Iterable[str], name: str | None
) -> dict[str, str]:
    """Return the names in the tables that a named head has, or a file without it.

    A named head has those of the encoder and the pooler, and its own without prefix.
    """
    if not heads:
        return names
    prefixes = tuple(head_prefix(layout, head) for head in heads)
    shared = {x: y for x, y in names.items() if not x.startswith(prefixes)}
    if name is None:
        return shared
    selected = {}
    prefix = head_prefix(layout, name)
    for in_table, in_file in names.items():
        if in_table.startswith(prefix):
            selected[in_table.removeprefix(prefix)] = in_file
    # The heads without a name are other ones.
    return {**selected, **_without(shared, layout.names(HEADS))}
