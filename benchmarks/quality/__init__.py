"""Measure scores."""
