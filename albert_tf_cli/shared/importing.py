"""Import TensorFlow when a command needs it."""

from albert_tf_cli.shared.console import console


def import_tensorflow() -> None:
    """Import TensorFlow and all of `albert_tf`, with a status line on a terminal."""
    from albert_tf import quiet_import

    # Prints nothing unless standard output is a terminal.
    with console.status("Importing TensorFlow"):
        quiet_import.import_tensorflow()
        import albert_tf.tools  # noqa: F401
