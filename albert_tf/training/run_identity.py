"""Identity of a run: what an interrupted run and the one that resumes it must share.

Whatever resumes keeps two things in the directory of its output: its identity, a dict
that JSON can hold, and what is complete. Another identity is refused, with the first
differences.

- Records, of text or labelled (`pretraining.records`): the identity is `manifest.json`.
  A shard is complete when it has its final name, which contains a hash of its settings
  and its text. All are complete when the manifest names them.
- A training, be it fine-tuning, pretraining or its labelled stage (`run_state`): the
  identity is `.training/identity.json`. Complete is what `.training/epochs.json` says,
  with the weights of that epoch and step. `.training/steps.json` has the number of
  steps that follows from minutes.
- The answers of a file (`albert-tf predict`, in `albert_tf_cli.streaming`, which does
  not import Keras): the identity is the first line of the journal. Complete are its
  other lines, one per block.

One process at a time writes to such a directory: `files.only_writer`.
"""

import re
from typing import Any

import keras

from albert_tf_lite.errors import AlbertError

# A value of `data_digest` or `file_digest`.
_DIGEST = re.compile("'[0-9a-f]{64}'")
# Differences in a message, and characters of a value.
_SHOWN, _CHARACTERS = 4, 40


def refuse_another_run(
    old: dict[str, Any], new: dict[str, Any], content: str, advice: str
) -> None:
    """Raise if the identity of an earlier run differs from that of the present one.

    Args:
        old, new: nested dicts.
        content: string, what the directory holds: the begin of the message.
        advice: string, the end of the message.
    """
    if differ := differences(old, new):
        raise AlbertError(f"{content} ({differ}). {advice}")


def differences(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Describe the first differences of nested dicts by dotted names, for a message."""
    first, second = _leaves(old), _leaves(new)
    described = [
        _described(name, first.get(name, "none"), second.get(name, "none"))
        for name in sorted(first.keys() | second.keys())
        if first.get(name) != second.get(name)
    ]
    return "; ".join(described[:_SHOWN])


def _leaves(nested: dict[str, Any]) -> dict[str, str]:
    """Return the values of nested dicts and lists by their dotted names."""
    leaves = keras.tree.flatten_with_path(nested)
    return {".".join(map(str, path)): repr(leaf) for path, leaf in leaves}


def _described(name: str, before: str, now: str) -> str:
    if _DIGEST.fullmatch(before) and _DIGEST.fullmatch(now):
        return f"other {name}"
    return f"{name}: {before:.{_CHARACTERS}}, now {now:.{_CHARACTERS}}"
