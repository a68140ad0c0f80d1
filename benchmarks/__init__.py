"""Benchmarks, and the pages that show their results.

Run a script from the root of the repository, such as
`python -m benchmarks.speed.classify`.
"""
