"""A sample of what `fuzz_checkpoints.py` does at length."""

import random

import fuzz_checkpoints
import pytest


def test_a_sample_of_mutations(capsys):
    options = ["--mutations", "300", "--seed", "1", "--workers", "1"]
    failed = fuzz_checkpoints.main(options)
    assert not failed, capsys.readouterr().out


def test_the_same_seed_is_the_same_mutation():
    content = bytes(range(256)) * 9
    first, again, other = (
        fuzz_checkpoints.mutate(content, random.Random(seed)) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert content not in (first[0], other[0])


@pytest.mark.parametrize("mutation", fuzz_checkpoints.MUTATIONS)
@pytest.mark.parametrize("size", [1, 2, 9, 2000])
def test_mutations_of_any_size(mutation, size):
    for seed in range(20):
        content = bytearray(b"5" * size)
        assert mutation(content, random.Random(seed))
        assert abs(len(content) - size) <= max(size, 100)
