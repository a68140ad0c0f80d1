"""`python -m albert_tf.cli`."""

from albert_tf.cli import main

main()
