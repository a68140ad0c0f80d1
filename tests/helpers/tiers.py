"""Parameters of which `make test` runs a few, and another tier the others."""

import pytest


def few(values, quick, others=pytest.mark.nightly):
    """Return the parameters of a test, `others` marking those not in `quick`."""
    return [pytest.param(x, marks=[] if x in quick else others) for x in values]
