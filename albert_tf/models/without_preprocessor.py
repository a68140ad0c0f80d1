import contextlib


@contextlib.contextmanager
def preprocessor_may_lack(task):
    """Save a task without preprocessor, which KerasHub 0.25 fails to.

    That version (the last for Python 3.10) writes everything and then fails on the
    preprocessor that is not there. Later ones do not.
    """
    try:
        yield
    except AttributeError:
        if getattr(task, "preprocessor", None) is not None:
            raise


class SavesWithoutPreprocessor:
    """A task that can be saved without preprocessor."""

    def save_to_preset(self, preset_dir, **kwargs):
        with preprocessor_may_lack(self):
            super().save_to_preset(preset_dir, **kwargs)
