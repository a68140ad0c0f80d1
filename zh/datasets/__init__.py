"""Chinese data sets as they are distributed, read for the tasks of `albert_tf`."""

from zh.datasets.loading import Examples, load
from zh.datasets.table import DATASETS, DataSet

__all__ = ["DATASETS", "DataSet", "Examples", "load"]
