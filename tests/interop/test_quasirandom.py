"""Sobol sequences are PyTorch's, plain and scrambled."""

import pytest
import torch

import lucid


@pytest.mark.parametrize("dimension", [1, 2, 17, 400, 1111])
def test_numbers(dimension):
    theirs, ours = torch.quasirandom.SobolEngine(dimension), lucid.quasirandom.SobolEngine(dimension)
    assert ours.sobolstate.tolist() == theirs.sobolstate.tolist()
    for n in (1, 5, 16, 3):
        assert ours.draw(n).tolist() == theirs.draw(n).tolist()
    theirs.fast_forward(6), ours.fast_forward(6)
    assert ours.draw(70, dtype=lucid.float64).tolist() == theirs.draw(70, dtype=torch.float64).tolist()
    assert ours.reset().fast_forward(3).draw(2).tolist() == theirs.reset().fast_forward(3).draw(2).tolist()


@pytest.mark.parametrize("seed", [None, 7])
def test_scrambled_numbers(seed):
    engines = []
    for m in (torch, lucid):
        m.manual_seed(3)
        engines.append(m.quasirandom.SobolEngine(9, scramble=True, seed=seed))
    theirs, ours = engines
    assert ours.sobolstate.tolist() == theirs.sobolstate.tolist() and repr(ours) == repr(theirs)
    assert ours.draw_base2(3).tolist() == theirs.draw_base2(3).tolist()
    out, expected = lucid.empty(0), torch.empty(0)
    ours.draw(5, out=out), theirs.draw(5, out=expected)
    assert out.tolist() == expected.tolist()


def test_private_functions():
    states = []
    for m in (torch, lucid):
        state = m.zeros(4, 30, dtype=m.int64)
        m._sobol_engine_initialize_state_(state, 4)
        quasi = m.zeros(4, dtype=m.int64)
        m._sobol_engine_ff_(quasi, 5, state, 4, 0)
        points, last = m._sobol_engine_draw(quasi, 3, state, 4, 5, dtype=m.float32)
        states.append([state.tolist(), quasi.tolist(), points.tolist(), last.tolist()])
    assert states[0] == states[1]


def test_refused():
    Engine = lucid.quasirandom.SobolEngine
    for dimension in (0, 1112):
        with pytest.raises(ValueError, match="dimensionality"):
            Engine(dimension)
    with pytest.raises(ValueError, match="power of 2"):
        Engine(2).fast_forward(3).draw_base2(2)
    with pytest.raises(ValueError, match="2\\^30"):
        Engine(2).fast_forward(2**30 + 1)
