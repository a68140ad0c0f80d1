"""Damaged `pytorch_model.bin`s: no code runs, an error or the right numbers."""

import os
import pickle

import harm_files
import pytest
from harm_files import (
    EITHER,
    HF_WORDS,
    WEIGHTS,
    assert_harmless,
    changed,
    copy,
    cut,
    edit_bytes,
    flip,
    read_safetensors,
)

forms, weights, harm = harm_files.forms, harm_files.weights, harm_files.harm

BIN = "pytorch_model.bin"


class Payload:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch '{self.marker}'",)


@pytest.mark.parametrize("form", ["bare", "in_a_dict", "in_a_tensor_s_place"])
def test_code_in_a_pickle_does_not_run(forms, tmp_path, form):
    folder = copy(forms["huggingface"], tmp_path)
    (folder / WEIGHTS).unlink()
    payload = Payload(tmp_path / "it_ran")
    content = {"bare": payload, "in_a_dict": {"a": 1, "b": payload}}.get(
        form, {HF_WORDS: payload}
    )
    (folder / BIN).write_bytes(pickle.dumps(content))
    assert_harmless(folder, [], tmp_path, BIN)
    assert not (tmp_path / "it_ran").exists()


def with_torch(change, damage_file=None, zip_format=True):
    """A damage: the tensors in a `.bin` instead, changed, and then its bytes."""

    def damage(folder):
        import torch

        tensors = {x: torch.tensor(y) for x, y in read_safetensors(folder).items()}
        (folder / WEIGHTS).unlink()
        torch.save(
            change(tensors, torch),
            folder / BIN,
            _use_new_zipfile_serialization=zip_format,
        )
        if damage_file:
            edit_bytes(BIN, damage_file)(folder)

    return damage


TORCH = {
    "whole": (with_torch(lambda x, _: x), None),
    "old_format": (with_torch(lambda x, _: x, zip_format=False), None),
    "a_list": (with_torch(lambda x, _: list(x.values())), "no state dict"),
    "a_number": (with_torch(lambda x, _: 3), "no state dict"),
    "nested": (with_torch(lambda x, _: {"model": x}), "no state dict"),
    "numbers_as_names": (
        with_torch(lambda x, _: dict(enumerate(x.values()))),
        BIN,
    ),
    "int_tensor": (
        with_torch(lambda x, torch: changed(x, {HF_WORDS: lambda y: y.int()})),
        f"{HF_WORDS}.*int",
    ),
    "complex_tensor": (
        with_torch(lambda x, torch: changed(x, {HF_WORDS: lambda y: y + 0j})),
        f"{HF_WORDS}",
    ),
    "sparse_tensor": (
        with_torch(lambda x, torch: changed(x, {HF_WORDS: lambda y: y.to_sparse()})),
        f"{HF_WORDS}",
    ),
    "meta_tensor": (
        with_torch(lambda x, torch: changed(x, {HF_WORDS: lambda y: y.to("meta")})),
        f"{HF_WORDS}",
    ),
    "transposed_view": (
        with_torch(lambda x, torch: changed(x, {HF_WORDS: lambda y: y.T})),
        "is not the config",
    ),
    "nan": (
        with_torch(lambda x, torch: changed(x, {HF_WORDS: lambda y: y * torch.nan})),
        f"{HF_WORDS}.*not finite",
    ),
    "cut": (with_torch(lambda x, _: x, cut(0.6)), f"{BIN} is damaged"),
    "empty": (with_torch(lambda x, _: x, cut(0)), f"{BIN} is damaged"),
    "flipped": (with_torch(lambda x, _: x, flip(0.5)), EITHER),
    "web_page": (with_torch(lambda x, _: x, lambda _: b"<html>"), f"{BIN} is damaged"),
}


@pytest.mark.parametrize("name", TORCH)
def test_pytorch_model(harm, name):
    pytest.importorskip("torch")
    harm("huggingface", *TORCH[name])
