"""A sample of what `fuzz_checkpoints.py` does at length."""

import random

import fuzz_checkpoints
import pytest


@pytest.mark.slow
def test_a_sample_of_mutations(capsys):
    failed = fuzz_checkpoints.main(["--mutations", "150", "--seed", "1"])
    assert not failed, capsys.readouterr().out


def test_the_same_seed_is_the_same_mutation():
    content = bytes(range(256)) * 9
    first, again, other = (
        fuzz_checkpoints.mutate(content, random.Random(seed)) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert content not in (first[0], other[0])
