class SavesWithoutPreprocessor:
    """A task without preprocessor that KerasHub 0.25 saves too.

    That version (the last for Python 3.10) writes everything and then fails on the
    preprocessor that is not there. Later ones do not.
    """

    def save_to_preset(self, preset_dir, **kwargs):
        try:
            super().save_to_preset(preset_dir, **kwargs)
        except AttributeError:
            if self.preprocessor is not None:
                raise
