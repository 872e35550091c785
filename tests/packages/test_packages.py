"""Packages that are written for PyTorch give its numbers on Lucid. `make test-packages` installs them."""

import pytest

import lucid
from tests.gpu.test_emulated import emulator  # noqa: F401  a fixture

from . import pairs

pytestmark = pytest.mark.skipif(
    not pairs.PYTHON.exists(), reason=f"{pairs.PYTHON} is not there: make packages-venv installs the packages"
)


@pytest.mark.parametrize("name", pairs.uses())
def test_use_gives_pytorchs_numbers(name):
    theirs, ours = pairs.run(name, on_lucid=False), pairs.run(name, on_lucid=True)
    assert "lucid" in ours["version"] and "lucid" not in theirs["version"]
    assert pairs.difference(theirs["result"], ours["result"]) <= pairs.TOLERANCE


ON_A_GPU = [use for use in pairs.uses() if pairs.home(use) == "uses"]

# They draw on the device itself, or work on the CPU whatever the default device is.
NOT_ON_A_GPU = {"pyro__distributions", "peft__lora_on_a_transformer", "accelerate__training", "accelerate__save_and_load"}

FIND_IT_THEMSELVES = {"transformers__trainer", "lightning__fit_on_the_accelerator", "accelerate__mixed_precision"}


@pytest.mark.parametrize("name", [use for use in ON_A_GPU if use not in NOT_ON_A_GPU])
def test_use_on_a_gpu(name, request):
    """With CUDA as the default device: on a GPU, or on the emulation of one. The numbers are those of PyTorch on the CPU."""
    more = {} if lucid.cuda.is_available() else request.getfixturevalue("emulator")
    driver = {key: value for key, value in more.items() if key.startswith(("LUCID_CU", "LUCID_CACHE", "EMULATOR"))}
    device = "" if name in FIND_IT_THEMSELVES else "cuda"
    theirs, ours = pairs.run(name, on_lucid=False), pairs.run(name, on_lucid=True, device=device, more=driver)
    assert pairs.difference(theirs["result"], ours["result"]) <= pairs.TOLERANCE
