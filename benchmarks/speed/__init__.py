"""Measure seconds, memory and sizes."""
