"""The libraries of the extra `evaluation`."""

from albert_tf_lite.extra import import_extra

__all__ = ["import_extra"]
