"""Every field of every config, wrong in every way: an error or the right numbers."""

import json
import time

import harm_files
import pytest
from harm_files import (
    CONFIG_FILES,
    DELETED,
    assert_harmless,
    assert_loads,
    assert_one_clear_error,
    changed,
    copy,
    faults,
    limits,
    replace,
)

import albert_tf

forms, weights, harm = harm_files.forms, harm_files.weights, harm_files.harm

WRONG = {
    "missing": DELETED,
    "null": None,
    "text": "12",
    "empty_text": "",
    "negative": -1,
    "zero": 0,
    "half": 2.5,
    "whole_float": 3.0,
    "huge": 10**9,
    "beyond_64_bits": 10**30,
    "true": True,
    "nan": float("nan"),
    "infinity": float("inf"),
    "list": [3],
    "object": {"x": 3},
}
SIZES = (
    "vocab_size",
    "num_hidden_layers",
    "num_attention_heads",
    "embedding_size",
    "hidden_size",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)
RATES = ("hidden_dropout_prob", "attention_probs_dropout_prob")
GROUPS = ("num_hidden_groups", "inner_group_num")
# What each form's config has besides the sizes and the rates.
OTHERS = {
    "google": (*GROUPS, "hidden_act"),
    "hub": (*GROUPS, "hidden_act"),
    "albert_zh": ("hidden_act", "ln_type"),
    "huggingface": (
        *GROUPS,
        "hidden_act",
        "model_type",
        "layer_norm_eps",
        "position_embedding_type",
    ),
}
# What the message says of a number that is too large, where it names no field.
TOO_LARGE = {
    "num_hidden_layers": "encoder blocks",
    "inner_group_num": "encoder blocks",
    "num_attention_heads": "attention heads",
    "num_hidden_groups": "grouped dense layer",
    "vocab_size": "vocab_size",
}
# Fields without which the original code has a default, which is what was written.
OPTIONAL = (
    *RATES,
    *GROUPS,
    "hidden_act",
    "ln_type",
    "model_type",
    "layer_norm_eps",
    "position_embedding_type",
)
CASES = [
    (form, field)
    for form, fields in OTHERS.items()
    for field in (*SIZES, *RATES, *fields)
]


def is_right(field, kind):
    """Whether the value may load; nothing is read from rates but for training."""
    if kind == "missing":
        return field in OPTIONAL
    return kind == "zero" and field in RATES


@pytest.mark.parametrize(("form", "field"), CASES)
def test_a_field(forms, weights, tmp_path, form, field):
    folder = copy(forms[form], tmp_path)
    path = folder / CONFIG_FILES[form]
    original = json.loads(path.read_text())
    problems = []
    for kind, value in WRONG.items():
        path.write_text(json.dumps(changed(original, {field: value})))
        try:
            if is_right(field, kind):
                assert_loads(folder, weights[form])
            else:
                match = f"{field}|{TOO_LARGE.get(field, field)}"
                assert_one_clear_error(
                    lambda: albert_tf.load_checkpoint(folder), match, folder
                )
        except AssertionError as error:
            problems.append(f"{field} {kind}: {error}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("form", OTHERS)
def test_fields_that_nobody_reads(forms, weights, tmp_path, form):
    folder = copy(forms[form], tmp_path)
    path = folder / CONFIG_FILES[form]
    original = json.loads(path.read_text())
    others = {
        "": 1,
        "词": "表",
        "auto_map": {"AutoModel": "evil.Model"},
        "x" * 9999: [],
    }
    path.write_text(json.dumps({**original, **others}))
    assert_loads(folder, weights[form])


@pytest.mark.parametrize("field", TOO_LARGE)
def test_a_huge_model_is_refused_at_once(forms, tmp_path, field):
    folder = copy(forms["google"], tmp_path)
    path = folder / CONFIG_FILES["google"]
    path.write_text(json.dumps({**json.loads(path.read_text()), field: 10**9}))
    start = time.monotonic()
    assert_harmless(folder, [], tmp_path, TOO_LARGE[field])
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("form", OTHERS)
def test_two_wrong_fields(forms, tmp_path, form):
    """One may hide the other; none of the errors may be of a library."""
    folder = copy(forms[form], tmp_path)
    path = folder / CONFIG_FILES[form]
    original = json.loads(path.read_text())
    pairs = [(a, b) for a in SIZES[:5] for b in SIZES[:5] if a < b]
    problems = []
    for first, second in pairs:
        for kind in ("null", "text", "zero", "huge", "list"):
            value = WRONG[kind]
            path.write_text(json.dumps({**original, first: value, second: value}))
            try:
                with limits():
                    albert_tf.load_checkpoint(folder)
            except Exception as error:
                problems += [f"{first}, {second} {kind}: {x}" for x in faults(error)]
            else:
                problems.append(f"{first}, {second} {kind}: no error")
    assert not problems, "\n".join(problems)


# === JSON that is no config ===

CONTENTS = {
    "empty": b"",
    "blank": b" \n\t\n",
    "null": b"null",
    "number": b"3",
    "text": b'"albert"',
    "list_of_fields": b'[["vocab_size", 40]]',
    "no_fields": b"{}",
    "not_utf8": b'{"vocab_size": "\xff"}',
    "utf16": '{"vocab_size": 40}'.encode("utf-16"),
    "nul": bytes(600),
    "comment": b'{"vocab_size": 40 // rows\n}',
    "python": b"{'vocab_size': 40}",
    "two_objects": b"{}{}",
    "deep": b'{"a":' * 50000,
    "long_number": b'{"vocab_size": ' + b"9" * 9999 + b"}",
    "web_page": b"<!DOCTYPE html>",
    "yaml": b"vocab_size: 40",
}


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("form", ["albert_zh", "hub_plain", "sharded"])
def test_contents(harm, form, name):
    file = CONFIG_FILES[form]
    harm(form, replace(file, CONTENTS[name]), "config.json")


@pytest.mark.parametrize("form", ["google", "huggingface"])
@pytest.mark.parametrize("share", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99])
def test_cut_short(harm, form, share):
    file = CONFIG_FILES[form]

    def damage(folder):
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content[: int(len(content) * share)])

    harm(form, damage, "config.json is not a JSON file")


@pytest.mark.parametrize("form", ["google", "albert_zh", "huggingface"])
def test_a_byte_order_mark(harm, form):
    """Some editors of Windows write one; it is no damage, but JSON knows none."""
    file = CONFIG_FILES[form]

    def damage(folder):
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(b"\xef\xbb\xbf" + content)

    harm(form, damage, "config.json is not a JSON file")
