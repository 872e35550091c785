"""Packages that are written for PyTorch give its numbers on Lucid. `make test-packages` installs them."""

import pytest

from . import pairs

pytestmark = pytest.mark.skipif(
    not pairs.PYTHON.exists(), reason=f"{pairs.PYTHON} is not there: make packages-venv installs the packages"
)


@pytest.mark.parametrize("name", pairs.uses())
def test_use_gives_pytorchs_numbers(name):
    theirs, ours = pairs.run(name, on_lucid=False), pairs.run(name, on_lucid=True)
    assert "lucid" in ours["version"] and "lucid" not in theirs["version"]
    assert pairs.difference(theirs["result"], ours["result"]) <= pairs.TOLERANCE
