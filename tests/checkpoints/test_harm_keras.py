"""Damaged presets, KerasHub's and ours, and `.keras` files."""

import json
import os
import shutil
import zipfile

import h5py
import harm_files
import numpy as np
import pytest
from harm_files import (
    DELETED,
    EITHER,
    Hang,
    assert_harmless,
    assert_one_clear_error,
    changed,
    copy,
    cut,
    edit_bytes,
    edit_json,
    flip,
    folder_in_place_of,
    limits,
    remove,
    replace,
)

import albert_tf

forms, weights, harm = harm_files.forms, harm_files.weights, harm_files.harm

PRESETS = ("kerashub", "keras")
BACKBONE_H5 = "model.weights.h5"


def in_h5(change):
    """A damage of every dataset of the backbone: `change(file, name, dataset)`."""

    def damage(folder):
        with h5py.File(folder / BACKBONE_H5, "r+") as file:
            names = []
            file.visititems(
                lambda name, item: (
                    names.append(name) if isinstance(item, h5py.Dataset) else None
                )
            )
            change(file, names)

    return damage


def table_of(names, file):
    """The name of the token table: of 40 rows."""
    return next(x for x in names if file[x].shape == (40, 4))


def h5_replaced(change):
    def damage(file, names):
        name = table_of(names, file)
        value = file[name][...]
        del file[name]
        value = change(value)
        if value is not None:
            file[name] = value

    return in_h5(damage)


def nan(value):
    value[3, 2] = np.nan
    return value


def linked(kind):
    def damage(file, names):
        name = table_of(names, file)
        del file[name]
        if kind == "soft":
            file[name] = h5py.SoftLink("/nowhere")
        elif kind == "circle":
            file[name] = h5py.SoftLink(f"/{name}")
        elif kind == "file":
            file[name] = h5py.ExternalLink("/etc/passwd", "x")
        else:
            file.create_dataset(
                name, (40, 4), "float32", external=[("/etc/hostname", 0, 640)]
            )

    return in_h5(damage)


def huge(file, names):
    """A terabyte of nothing takes no place in the file."""
    name = table_of(names, file)
    del file[name]
    file.create_dataset(name, (2**38, 4), "float32", chunks=(1024, 4))


PRESET = {
    **{
        f"weights_cut_at_{share}": (edit_bytes(BACKBONE_H5, cut(share)), "")
        for share in (0, 0.01, 0.5, 0.99)
    },
    "weights_zeros": (edit_bytes(BACKBONE_H5, lambda x: bytes(len(x))), ""),
    "weights_web_page": (replace(BACKBONE_H5, "<html>404</html>"), ""),
    "weights_missing": (remove(BACKBONE_H5), BACKBONE_H5),
    "weights_a_folder": (folder_in_place_of(BACKBONE_H5), ""),
    "weights_flipped_in_the_head": (edit_bytes(BACKBONE_H5, flip(0)), ""),
    "table_missing": (h5_replaced(lambda x: None), ""),
    "table_transposed": (h5_replaced(np.transpose), ""),
    "table_short": (h5_replaced(lambda x: x[:-1]), ""),
    "table_scalar": (h5_replaced(lambda x: np.float32(1)), ""),
    "table_empty": (h5_replaced(lambda x: x[:0]), ""),
    "table_strings": (h5_replaced(lambda x: np.full(x.shape, b"a")), ""),
    "table_nan": (h5_replaced(nan), "not finite"),
    "table_float64": (h5_replaced(lambda x: x.astype("float64")), None),
    "table_huge": (in_h5(huge), ""),
    **{
        f"table_link_{kind}": (linked(kind), "")
        for kind in ("soft", "circle", "file", "outside")
    },
    "config_missing": (remove("config.json"), "config"),
    "config_cut": (edit_bytes("config.json", cut(0.5)), "config.json|is damaged"),
    "config_empty": (replace("config.json", ""), "config.json|is damaged"),
    "config_not_utf8": (
        replace("config.json", b"\xff"),
        "config.json|is damaged",
    ),
    "config_a_list": (replace("config.json", "[]"), "config.json|is damaged"),
    "config_null": (replace("config.json", "null"), "config.json|is damaged"),
    "config_deep": (replace("config.json", "[" * 99999), "config.json|is damaged"),
    "config_a_folder": (folder_in_place_of("config.json"), "config.json"),
    "config_of_no_class": (
        edit_json("config.json", {"registered_name": DELETED, "class_name": DELETED}),
        "",
    ),
    "config_of_another_class": (
        edit_json(
            "config.json",
            {
                "module": "keras.layers",
                "class_name": "Dense",
                "registered_name": None,
                "config": {"units": 3},
            },
        ),
        "",
    ),
    "config_of_a_function": (
        edit_json(
            "config.json",
            {"module": "os", "class_name": "system", "registered_name": None},
        ),
        "",
    ),
    "metadata_missing": (remove("metadata.json"), EITHER),
    "metadata_cut": (edit_bytes("metadata.json", cut(0.5)), EITHER),
    "metadata_a_list": (replace("metadata.json", "[]"), EITHER),
}


@pytest.mark.parametrize("name", PRESET)
@pytest.mark.parametrize("form", PRESETS)
def test_presets(harm, form, name):
    harm(form, *PRESET[name])


TASK = {
    "weights_missing": (remove("task.weights.h5"), "it has no task.weights.h5"),
    "weights_cut": (edit_bytes("task.weights.h5", cut(0.5)), "is damaged"),
    "weights_empty": (replace("task.weights.h5", b""), "is damaged"),
    "task_cut": (edit_bytes("task.json", cut(0.5)), "is damaged|task.json"),
    "task_a_list": (replace("task.json", "[]"), "is damaged|task.json"),
    "task_not_utf8": (replace("task.json", b"\xff"), "is damaged|task.json"),
    "task_a_folder": (folder_in_place_of("task.json"), "task.json"),
    "task_of_nothing": (
        edit_json("task.json", {"registered_name": DELETED}),
        "is damaged|task.json",
    ),
    "task_unknown": (
        edit_json("task.json", {"registered_name": "x>Y"}),
        "is damaged|task.json",
    ),
    "task_a_layer": (
        edit_json("task.json", {"registered_name": "Dense"}),
        "is damaged|task.json",
    ),
    "task_a_backbone": (
        edit_json("task.json", {"registered_name": "albert_tf>AlbertBackbone"}),
        EITHER,
    ),
    "tokenizer_cut": (edit_bytes("tokenizer.json", cut(0.5)), "tokenizer.json"),
    "assets_missing": (remove("assets"), "assets"),
    "vocabulary_empty": (replace("assets/tokenizer/vocabulary.txt", ""), "vocab"),
    "vocabulary_cut": (
        edit_bytes("assets/tokenizer/vocabulary.txt", cut(0.3)),
        "vocabulary.txt|tokenizer.json",
    ),
}
# The tokenizer of a backbone is read where the model is converted.
ONLY_CONVERTED = (
    "tokenizer_cut",
    "assets_missing",
    "vocabulary_empty",
    "vocabulary_cut",
)


@pytest.mark.parametrize("name", TASK)
def test_task_presets(harm, name):
    damage, error = TASK[name]
    if name in ONLY_CONVERTED:
        harm("keras", damage, None, error)
    else:
        harm("keras", damage, error)


# === Fields of the config, one by one ===

WRONG = (None, "x", -1, 0, 2.5, 10**9, True, [], {})
SIZES = (
    "vocabulary_size",
    "num_layers",
    "num_heads",
    "embedding_dim",
    "hidden_dim",
    "intermediate_dim",
    "max_sequence_length",
    "num_segments",
)


def field_errors(path, set_field):
    """What is wrong with the errors of each wrong value, in a list."""
    problems = []
    for value in (*WRONG, DELETED):
        set_field(value)
        try:
            assert_one_clear_error(lambda: albert_tf.load_checkpoint(path), "", path)
        except (AssertionError, Hang) as error:
            problems.append(f"{value!r}: {error}")
    return problems


@pytest.mark.parametrize("field", SIZES)
def test_sizes_in_the_config_of_keras_hub(forms, tmp_path, field):
    folder = copy(forms["kerashub"], tmp_path)
    original = (folder / "config.json").read_bytes()

    def set_field(value):
        (folder / "config.json").write_bytes(original)
        edit_json("config.json", {field: value}, inside=("config",))(folder)

    assert not (problems := field_errors(folder, set_field)), "\n".join(problems)


@pytest.mark.parametrize("field", SIZES)
def test_sizes_in_the_config_of_a_task(forms, tmp_path, field):
    """A task has its own copy of its backbone's config."""
    folder = copy(forms["keras"], tmp_path)
    original = (folder / "task.json").read_bytes()

    def set_field(value):
        (folder / "task.json").write_bytes(original)
        inside = ("config", "backbone", "config")
        edit_json("task.json", {field: value}, inside=inside)(folder)

    assert not (problems := field_errors(folder, set_field)), "\n".join(problems)


# === `.keras` files ===


def edit_zip(change):
    """A damage: `change` of {name of the member: content}."""

    def damage(path):
        with zipfile.ZipFile(path) as file:
            members = {name: file.read(name) for name in file.namelist()}
        with zipfile.ZipFile(path, "w") as file:
            for name, content in change(members).items():
                file.writestr(name, content)

    return damage


def edit_config(change):
    """A damage of the `config.json` in it."""

    def changed(members):
        config = json.loads(members["config.json"])
        members["config.json"] = json.dumps(change(config) or config)
        return members

    return edit_zip(changed)


def as_bytes(change):
    """A damage: `edit_bytes` of a file that is the checkpoint."""

    def damage(path):
        path.write_bytes(change(bytearray(path.read_bytes())))

    return damage


def as_folder(path):
    path.unlink()
    path.mkdir()


def without(name):
    return edit_zip(lambda x: {y: z for y, z in x.items() if y != name})


def of_a_class(**fields):
    return edit_config(lambda x: {**x, **fields})


FILE = {
    **{
        f"cut_at_{share}": (as_bytes(cut(share)), "checkpoint.keras")
        for share in (0, 0.001, 0.3, 0.7, 0.999)
    },
    **{
        f"flipped_at_{share}": (as_bytes(flip(share)), EITHER)
        for share in (0, 0.05, 0.3, 0.6, 0.9, 1)
    },
    "web_page": (as_bytes(lambda _: b"<html>404</html>"), "checkpoint.keras"),
    "a_folder": (as_folder, "checkpoint.keras"),
    "no_config": (without("config.json"), "checkpoint.keras"),
    "no_metadata": (without("metadata.json"), EITHER),
    "no_weights": (without("model.weights.h5"), "checkpoint.keras"),
    "nothing": (edit_zip(lambda _: {}), "checkpoint.keras"),
    "config_a_list": (edit_config(lambda _: [1]), "checkpoint.keras"),
    "config_deep": (
        edit_zip(lambda x: {**x, "config.json": "[" * 99999}),
        "checkpoint.keras",
    ),
    "config_not_utf8": (
        edit_zip(lambda x: {**x, "config.json": b"\xff"}),
        "checkpoint.keras",
    ),
    "weights_cut": (
        edit_zip(lambda x: {**x, "model.weights.h5": x["model.weights.h5"][:9999]}),
        "checkpoint.keras",
    ),
    "weights_empty": (
        edit_zip(lambda x: {**x, "model.weights.h5": b""}),
        "checkpoint.keras",
    ),
    "unknown_class": (
        of_a_class(module="nowhere", class_name="Model", registered_name="x>Y"),
        "checkpoint.keras",
    ),
    "another_model": (
        of_a_class(
            module="keras",
            class_name="Sequential",
            registered_name=None,
            config={"name": "x", "layers": []},
        ),
        "checkpoint.keras",
    ),
    "a_function": (
        of_a_class(module="os", class_name="function", config="system"),
        "checkpoint.keras",
    ),
    "no_fields": (of_a_class(config={}), "checkpoint.keras"),
}


@pytest.mark.parametrize("name", FILE)
def test_keras_files(harm, name):
    harm("keras_file", *FILE[name])


@pytest.mark.parametrize("field", SIZES)
def test_sizes_in_a_keras_file(forms, tmp_path, field):
    path = tmp_path / "checkpoint.keras"

    def set_field(value):
        def change(config):
            backbone = config["config"]["backbone"]
            backbone["config"] = changed(backbone["config"], {field: value})

        copy(forms["keras_file"], tmp_path)
        edit_config(change)(path)

    assert not (problems := field_errors(path, set_field)), "\n".join(problems)


LAMBDA = {
    "module": "keras.layers",
    "class_name": "Lambda",
    "registered_name": None,
    "config": {
        "name": "x",
        "function": {
            "class_name": "__lambda__",
            "config": {"code": "4wEAAAAA", "defaults": None, "closure": None},
        },
    },
}


def test_code_in_a_keras_file_is_not_run(forms, tmp_path):
    path = copy(forms["keras_file"], tmp_path)
    edit_config(lambda _: LAMBDA)(path)
    assert_harmless(path, [], tmp_path, "checkpoint.keras")


def test_a_file_that_leads_out_of_a_keras_file(forms, weights, tmp_path):
    path = copy(forms["keras_file"], tmp_path)
    name = f"assets/{'../' * 9}{tmp_path.relative_to('/')}/evil"
    edit_zip(lambda x: {**x, name: b"evil", "../evil": b"evil"})(path)
    before = {x for x in tmp_path.rglob("*")}
    try:
        with limits():
            albert_tf.load_checkpoint(path)
    except ValueError:
        assert_one_clear_error(lambda: albert_tf.load_checkpoint(path), "", path)
    assert {x for x in tmp_path.rglob("*")} == before
    assert not os.path.exists("../evil")


def test_a_model_of_something_else(tmp_path):
    import keras

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.save(tmp_path / "model.keras")
    assert_harmless(tmp_path / "model.keras", [], tmp_path, "no ALBERT in")


def test_a_preset_of_something_else(tmp_path):
    import keras_hub

    model = keras_hub.models.BertBackbone(
        vocabulary_size=9, num_layers=1, num_heads=1, hidden_dim=2, intermediate_dim=3
    )
    model.save_to_preset(str(tmp_path / "bert"))
    assert_harmless(tmp_path / "bert", [], tmp_path, "no ALBERT in")


def test_the_head_of_another_preset(forms, tmp_path):
    folder = copy(forms["keras"], tmp_path)
    shutil.copy(forms["kerashub"] / BACKBONE_H5, folder / BACKBONE_H5)
    assert_harmless(folder, [], tmp_path, "")
