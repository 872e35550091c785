"""Random programs, eager and compiled: the same bits. `python -m tests.jit.fuzz --programs 20000` runs many more."""

import warnings

import pytest

import lucid
from tests import few
from tests.jit.programs import Program

SEEDS = 400


@pytest.mark.parametrize("first", range(0, 100 if few.wanted() else SEEDS, 50))
def test_random_programs(first):
    limits = lucid._C._plan_limits(0, 0, 0, 0) if first % 100 else None  # half of them use memory as large programs do
    try:
        compare_programs(first)
    finally:
        if limits:
            lucid._C._plan_limits(*limits)


def compare_programs(first):
    count = dict(programs=0, gradients=0, answered=0, eager=0, why={})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + 50):
            program = Program(seed, sizes=seed % 5 == 0)
            if program.failure(count):
                small = program.smaller()
                pytest.fail(small.report(small.failure()), pytrace=False)
    assert count["answered"] > 50 and count["gradients"] > 5  # the plans were really used
