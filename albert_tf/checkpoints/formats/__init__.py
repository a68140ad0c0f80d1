"""The forms of a checkpoint on disk, a subclass of `Checkpoint` each."""
