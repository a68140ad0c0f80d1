"""`python -m albert_tf_cli`."""

from albert_tf_cli import main

main()
