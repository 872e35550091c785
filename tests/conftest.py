"""Which Lucid is tested, and that no test module leaves engine memory behind.

A build under test is named by PYTHONPATH (the Makefile does that); it goes before the source tree, which pytest puts in front.
"""

import gc
import os
import random
import sys

sys.path[:0] = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]

import pytest  # noqa: E402

import lucid  # noqa: E402


def live_blocks():
    """Tensors, storages, nodes: whatever the engine allocated and has not freed."""
    for _ in range(3):  # finalizers may leave new garbage
        gc.collect()
    return lucid._C.live_blocks()


def pytest_collection_finish():
    """What is there already (PyTorch, forty thousand tests) is not walked again by every gc.collect(): a second each."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def nothing_leaks():
    before, counted = live_blocks(), lucid.memory_stats()["allocated_bytes"]
    gc.freeze()
    yield
    after, still = live_blocks(), lucid.memory_stats()["allocated_bytes"]
    assert after <= before, f"{after - before} engine blocks are still alive after this module"
    assert after != before or still <= counted, f"{still - counted} bytes are counted as in use after this module"


def pytest_runtest_setup(item):
    """Every test draws from the same random streams, whatever ran before it in this process."""
    lucid.manual_seed(0)
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(0)  # torch.manual_seed asks every kind of device: 0.3 ms


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item):
    """pytest keeps a test's arguments until the next one: the last of a module would keep tensors."""
    getattr(item, "funcargs", {}).clear()


def pytest_report_header():
    isa = os.environ.get("LUCID_ISA", "the widest this CPU has")
    return f"lucid from {os.path.dirname(lucid._C.__file__)}, kernel table: {isa}"
