"""Damaged and hostile files of every kind are read, or refused in one line.

The kinds are in `strangers_files`, the changes in `mutations`.
"""

import os
import time

import hypothesis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strangers_files import CASES, DATA
from strangers_reader import Reader, check_seed, write_changed

MINUTES = 10
# Kinds whose valid files are read in milliseconds, with more seeds, and those of which
# `make test` reads one file each.
FAST = (*DATA, "journal", "metrics.json", "--config")
QUICK = ("vocab.txt", "TensorFlow index", "tokenizer.json", "npz", "records", "ONNX")


def parameters():
    for name in CASES:
        marks = [] if name in FAST + QUICK else [pytest.mark.slow]
        yield pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", parameters())
def test_a_few_changed_files(name, tmp_path):
    for seed in range(15 if name in FAST else 2):
        check_seed(name, seed, tmp_path / "files")


@pytest.fixture(scope="module")
def reader():
    reader = Reader()
    yield reader
    reader.close()


@pytest.mark.nightly
@pytest.mark.parametrize("name", CASES)
def test_ten_minutes_of_changed_files(name, tmp_path, reader):
    """In a process of its own, which no file may end."""
    folder = tmp_path / "files"
    count, seed = 0, int(os.environ.get("ALBERT_TF_SEED", time.time()))
    print(f"{name}: ALBERT_TF_SEED={seed}")
    end = time.monotonic() + 60 * MINUTES / len(CASES)
    while time.monotonic() < end:

        @hypothesis.seed(seed)
        @settings(
            max_examples=10,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(st.randoms(use_true_random=False))
        def read_one(rng):
            nonlocal count
            count += 1
            write_changed(name, rng, folder)
            problem = reader.find_problem(name, folder)
            assert not problem, problem

        read_one()
        seed += 1
    print(f"{name}: {count} files")
