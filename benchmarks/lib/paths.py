"""Folders and files that several benchmarks read or write."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
KNOWN_MODELS = ROOT / "benchmarks" / "pages" / "known_models.json"
EXAMPLES = ROOT / "examples"
MICRO = EXAMPLES / "albert_micro_zh"
