"""Which Lucid is tested, which tests run (--few), what a failure says, and that no test module leaves engine memory behind.

A build under test is named by PYTHONPATH (the Makefile does that); it goes before the source tree, which pytest puts in front.
"""

import gc
import os
import random
import shlex
import sys

sys.path[:0] = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]

import pytest  # noqa: E402

import lucid  # noqa: E402

from . import few  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SETTINGS = ("LUCID_ISA", "LUCID_NUM_THREADS", "LUCID_EXPLORE")  # of the environment, that decide what a test does


def live_blocks():
    """Tensors, storages, nodes: whatever the engine allocated and has not freed."""
    for _ in range(3):  # finalizers may leave new garbage
        gc.collect()
    lucid._C._clear_cache()  # plans of Fourier transforms
    return lucid._C.live_blocks()


def pytest_addoption(parser):
    parser.addoption(
        "--few", action="store_true", help="a part of the tests that covers every op, layer and optimizer (tests/few.py)"
    )


def pytest_configure(config):
    if config.getoption("--few"):
        os.environ["LUCID_FEW"] = "1"  # before test modules are imported, and for the processes they start


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getvalue("dist") == "loadgroup":
        from .scheduling import Scheduling

        return Scheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if config.getoption("--few"):
        chosen = few.choose(items)
        kept = set(map(id, chosen))
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
        items[:] = chosen


def command_for(item):
    """What runs this test alone, from the root of the tree."""
    settings = {name: os.environ[name] for name in SETTINGS if name in os.environ}
    build = os.path.dirname(os.path.dirname(lucid._C.__file__))
    settings["PYTHONPATH"] = os.path.relpath(build, ROOT)
    python = os.path.relpath(sys.executable, ROOT) if sys.executable.startswith(ROOT + os.sep) else sys.executable
    words = [
        *(f"{name}={value}" for name, value in settings.items()),
        python,
        "-m",
        "pytest",
        *["--few"] * few.wanted(),
        item.nodeid,
    ]
    return " ".join(map(shlex.quote, words))


def subject_of(item):
    """The op, sample and other parameters of a case, by name; empty if the test has none."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    words = []
    for name, value in params.items():
        if hasattr(value, "op") and hasattr(value, "substitute"):  # a sample
            words += [f"op {value.op}", f"sample {value}"]
        else:
            words.append(f"{name} {getattr(value, '__name__', value)!s:.80}")
    return ", ".join(words)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure names its subject and the command that repeats it."""
    report = (yield).get_result()
    if report.failed:
        subject = subject_of(item)
        report.sections.append(("to run it alone", (f"{subject}\n" if subject else "") + command_for(item)))


def pytest_collection_finish():
    """Freeze the objects that exist already (PyTorch, forty thousand tests): walking them would cost a second per
    gc.collect()."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def nothing_leaks(request):
    failed = request.session.testsfailed
    before, counted = live_blocks(), lucid.memory_stats()["allocated_bytes"]
    gc.freeze()
    yield
    if request.session.testsfailed != failed:  # what a failure reports keeps its tensors
        return
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
