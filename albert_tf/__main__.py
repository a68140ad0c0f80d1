"""`python -m albert_tf`: the command line `albert-tf`."""

import runpy

runpy.run_module("albert_tf_cli", run_name="__main__", alter_sys=True)
