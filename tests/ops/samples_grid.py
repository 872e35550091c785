"""Sampling at positions."""

from .sample import S, T  # halves: PyTorch computes positions in them; tests/compat judges by the exact result

IMAGE, GRID = T(2, 3, 5, 4), T(2, 3, 6, 2, low=-1.4, high=1.4)
VOLUME, CUBE = T(2, 3, 3, 5, 4), T(2, 2, 3, 4, 3, low=-1.4, high=1.4)

SAMPLES = [
    S("grid_sampler_2d", IMAGE, GRID, mode, padding, align)
    for mode in range(3)
    for padding in range(3)
    for align in (False, True)
]
SAMPLES += [S("grid_sampler_3d", VOLUME, CUBE, m, p, a) for m in range(2) for p in range(3) for a in (False, True)]
SAMPLES += [
    S("grid_sampler", IMAGE, GRID, 0, 0, False),
    S("grid_sampler", VOLUME, CUBE, 0, 0, True, id="volume"),
    S("grid_sampler_2d", IMAGE, T(3, 3, 6, 2), 0, 0, True, id="another batch"),
    S("grid_sampler_2d", IMAGE, T(2, 3, 6, 3), 0, 0, True, id="three coordinates"),
    S("grid_sampler_2d", T(2, 3, 0, 4), GRID, 0, 0, True, id="empty image"),
    S("grid_sampler_2d", IMAGE, T(2, 0, 6, 2), 0, 0, True, id="no positions"),
]
