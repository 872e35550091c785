"""Sampling at positions."""

from ..sample import (
    S,
    T,
)  # no float16, bfloat16: PyTorch computes positions in them; tests/compat compares with the exact result

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
MODES, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
SAMPLES += [S("grid_sample", IMAGE, GRID, m, p, a) for m in MODES for p in PADDINGS for a in (False, None)]
SAMPLES += [S("grid_sample", VOLUME, CUBE, m, align_corners=True) for m in MODES]
FAR = [[[[float("nan"), 0.0], [1e30, -1e30], [float("inf"), 0.5], [-float("inf"), 2.0]]]]
SAMPLES += [S("grid_sample", T(1, 2, 3, 4), T(values=FAR), "bilinear", "zeros", a, grad=False, id="far") for a in (False, True)]
SAMPLES += [
    S("grid_sample", IMAGE, GRID, "linear"),
    S("grid_sample", IMAGE, GRID, padding_mode="wrap"),
    S("grid_sample", T(2, 19, 5, 4), T(2, 9, 15, 2, low=-1.2, high=1.2), align_corners=False, id="channels and tiles"),
    S("grid_sample", T(2, 3, 1, 1), GRID, "bilinear", "reflection", True, id="one pixel"),
    S("grid_sample", T(0, 3, 5, 4), T(0, 3, 6, 2), align_corners=True, id="no images", grad=False),
]
SAMPLES += [S("affine_grid", T(2, 2, 3), (2, 3, 5, 4), a) for a in (None, False, True)]
SAMPLES += [S("affine_grid", T(2, 3, 4), (2, 3, 2, 5, 1), a) for a in (False, True)]
SAMPLES += [S("affine_grid", T(2, 2, 3), s, False) for s in ((2, 3, 5), (2, 3, 0, 4), (2, 3, 2, 3, 4), (1, 3, 5, 4))]
SAMPLES += [S("affine_grid", T(2, 3), (2, 3, 5, 4), False), S("affine_grid", T(2, 2, 3, dtype="int64"), (2, 3, 5, 4), False)]
