"""Shared by the benchmarks: timing, processes, results, engines and data."""
