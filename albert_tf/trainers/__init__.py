"""Examples, batches, training and prediction of any task."""
