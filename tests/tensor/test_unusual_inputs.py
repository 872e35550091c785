"""Functions of neural networks on inputs that are empty, out of range, of the wrong shape or not finite: as PyTorch.

A line is a function of nn.functional and its arguments, case by case, or a statement. x(...) makes floats of a shape, c(...)
constants, D(...) doubles, v(...) floats and i(...) integers from a list. Gradients of x and v are compared too, where PyTorch
has them.
S(), L(), R() and P(...) stand for state and parameters of recurrent layers. What PyTorch leaves unwritten (margin losses of no
samples, bags whose offsets decrease) is not here.
"""

import math

import pytest
import torch

import lucid

INF, NAN = math.inf, math.nan
# PyTorch's vectors and its last elements differ in gelu of infinity and in gradients at NaN
E = [-1e38, -1000.0, -200.0, -100.0, -88.5, -20.0, -6.6, -3.0, -0.0, 0.0, 1e-40, 3.0, 6.6, 20.0, 88.5, 100.0, 1e38]
SMOOTH = (
    "gelu silu mish softplus selu elu celu sigmoid tanh logsigmoid softsign tanhshrink hardswish hardsigmoid "
    "hardtanh relu6 relu leaky_relu"
)
CASES = """
max_pool1d: x(0, 3, 8), 2 | x(2, 3, 4), 5 | x(3, 8), 2, padding=2 | x(8), 2
max_pool1d: i([[[3, 1, 2, 2]]]), 2, return_indices=True | i([[[3, 1, 2, 2]]]), 2 | i([[[3, 1]]]).bool(), 2, return_indices=True
max_pool2d: x(0, 3, 8, 8), 2 | x(2, 0, 8, 8), 2 | x(2, 3, 0, 8), 2 | x(2, 3, 8, 8), 9 | x(2, 3, 8, 8), 0 | x(2, 3, 8, 8), -1
max_pool2d: x(2, 3, 8, 8), (2, 2, 2) | x(2, 3, 8, 8), 2, stride=0 | x(2, 3, 8, 8), 2, stride=-1 | x(2, 3, 8, 8), 2, padding=-1
max_pool2d: x(2, 3, 8, 8), 2, padding=2 | x(2, 3, 8, 8), 2, dilation=0 | x(2, 3, 8, 8), 3, dilation=5 | x(8, 8), 2 | x(8), 2
max_pool2d: x(1, 2, 3, 8, 8), 2 | v([[[NAN, 1.0, 2.0], [3.0, INF, -INF], [-1.0, -2.0, -3.0]]]), 2, 1 | x(2, 3, 8, 8), 2**62
max_pool2d: x(2, 3, 8, 8), 2, stride=2**62 | x(2, 3, 8, 8), 2, padding=2**62 | x(2, 3, 8, 8), 2, dilation=2**62
max_pool2d: x(2, 4, 6, 6).to(memory_format=CL), 2
max_pool2d: x(2, 3, 8, 8), 2, stride=2**31-1 | x(2, 3, 8, 8), 2, stride=2**31 | x(2, 3, 8, 8), 1, dilation=2**31-1
max_pool2d: x(2, 3, 8, 8), 2, dilation=() | x(2, 3, 8, 8), 2, ()
max_pool3d: x(0, 3, 8, 8, 8), 2 | x(2, 3, 4, 4, 4), (2, 5, 2) | x(8, 8, 8), 2
avg_pool1d: x(0, 3, 8), 2 | x(8), 2
avg_pool2d: x(0, 3, 8, 8), 2 | x(2, 0, 8, 8), 2 | x(2, 3, 0, 8), 2 | x(2, 3, 8, 8), 9 | x(2, 3, 8, 8), 0
avg_pool2d: x(2, 3, 8, 8), 2, stride=0 | x(2, 3, 8, 8), 2, padding=-1 | x(2, 3, 8, 8), 2, padding=2
avg_pool2d: x(2, 3, 8, 8), 2, divisor_override=0 | x(2, 3, 8, 8), 2, divisor_override=-3 | v([[[NAN, 1.0], [3.0, INF]]]), 1
avg_pool2d: x(8, 8), 2 | x(8), 2 | x(), 2 | x(2, 3, 8, 8), 2**62 | x(2, 3, 8, 8), 2, stride=2**62
avg_pool2d: x(2, 3, 8, 8), 2, padding=2**62 | x(2, 3, 8, 8), 2, divisor_override=2**62 | x(2, 4, 6, 6).to(memory_format=CL), 2
avg_pool3d: x(0, 3, 8, 8, 8), 2 | x(8, 8, 8), 2
lp_pool1d: x(3, 8), 2.0, (2,) | x(3, 8), INF, (2,) | x(3, 8), 2.0, (2, 2) | x(3, 8), 2.0, 2, (1,)
lp_pool1d: x(0, 3, 8), 2.0, 2 | x(8), 2., 2
lp_pool2d: x(0, 3, 8, 8), 2.0, 2 | x(2, 3, 8, 8), 2.0, 9 | x(2, 3, 8, 8), INF, 2 | x(8, 8), 2., 2 | x(2, 3, 8, 8), 2.0, 2**62
lp_pool2d: x(2, 3, 8, 8), 2.0, (2,) | x(2, 3, 8, 8), 2.0, (2, 2, 2) | x(2, 3, 8, 8), 0, 2 | x(2, 3, 8, 8), 2.0, 2, (2,)
adaptive_avg_pool2d: x(2, 3, 4, 4, 2), 1 | x(8, 8), 1 | x(8), 1 | i([[[1, 2]]]), 1 | x(0, 4, 4), 2 | x(3, 4, 4), (None, 2, 2)
adaptive_max_pool2d: c(0, 4, 4), 2 | x(3, 4, 4), (None, 2, 2)
adaptive_avg_pool3d: x(2, 4, 4, 4), (None, 2) | x(2, 4, 4, 4), 1
adaptive_avg_pool1d: x(0, 3, 8), 2 | x(8), 2 | x(8), (2,) | x(3, 8), (2, 2) | x(3, 3, 3, 8), 2
adaptive_avg_pool2d: x(0, 3, 8, 8), 2 | x(2, 3, 0, 8), 2 | x(2, 3, 8, 8), -1 | x(2, 3, 8, 8), (1, 2, 3) | x(8, 8), 2 | x(8), 2
adaptive_avg_pool2d: x(8, 8), (2,) | x(8, 8), (2, 2) | x(8, 8), (2, 2, 2) | x(3, 8, 8), (2, 2, 2) | x(3, 8, 8), (2,)
adaptive_avg_pool2d: x(3, 8, 8), (2,None) | x(3, 3, 8), () | x(2, 3, 8, 8), 2**62 | x(2, 4, 6, 6).to(memory_format=CL), 2
adaptive_max_pool1d: x(0, 3, 8), 2 | x(8), 2 | x(8), (2,) | x(3, 8), (2, 2) | x(3, 3, 3, 8), 2
adaptive_max_pool2d: x(0, 3, 8, 8), 2 | x(2, 3, 0, 8), 2 | x(2, 3, 8, 8), -1 | v([[[NAN, 1.0], [3.0, INF]]]), 1 | x(8, 8), 2
adaptive_max_pool2d: x(8), 2 | x(8, 8), (2,) | x(8, 8), (2, 2) | x(3, 3, 3, 3, 8), 2 | x(3, 3, 8), (2,) | x(3, 3, 8), ()
adaptive_max_pool2d: x(2, 3, 8, 8), 2**62 | x(2, 4, 6, 6).to(memory_format=CL), 2
adaptive_max_pool3d: x(2, 3, 8, 8), 2 | x(8, 8, 8), 2
fractional_max_pool2d: x(2, 3, 8, 8), 2, output_size=9 | x(2, 3, 8, 8), 2 | x(2, 3, 8, 8), 9, output_size=2
fractional_max_pool2d: x(2, 3, 8, 8), 2, output_ratio=0.5 | x(2, 3, 8, 8), 2, output_ratio=(0.5, 0.5)
fractional_max_pool2d: x(2, 3, 8, 8), 2, output_ratio=(0.5, 0.5, 0.5) | x(2, 3, 8, 8), 2, output_ratio=1.5
fractional_max_pool3d: x(1, 3, 4, 4, 4), 2, output_size=3 | x(1, 3, 4, 4, 4), 1, output_size=4
avg_pool3d: x(1, 3, 2, 4, 4), 3, padding=1 | x(1, 3, 4, 4, 4), 5, padding=2, ceil_mode=True
adaptive_avg_pool2d: x(2, 3, 0, 4), 1 | x(2, 3, 0, 4), 2 | x(2, 0, 4, 4), 1
adaptive_avg_pool3d: x(2, 0, 4, 4, 4), 2 | x(2, 0, 4, 4, 4), 1
adaptive_avg_pool1d: x(3, 0), 1 | x(3, 0), 2
fractional_max_pool2d: x(2, 3, 8, 8), 2, output_ratio=NAN | x(2, 3, 8, 8), 2, output_ratio=(0.5, NAN)
fractional_max_pool2d: x(2, 3, 8, 8), 2, output_ratio=(0.5, 1.5) | x(2, 3, 8, 8), 2, output_ratio=(0.5, -0.5)
fractional_max_pool2d: x(2, 3, 8, 8), (2,2,2), output_size=(2,2) | x(2, 3, 8, 8), 2, output_size=2, output_ratio=0.5
fractional_max_pool2d: x(2, 3, 8, 8), 2, output_size=0 | x(2, 3, 8, 8), 2, output_size=-1 | x(8, 8), 2, output_size=2
fractional_max_pool2d: x(8, 8), 2, output_ratio=(0.5,0.5) | x(8), 2, output_ratio=(0.5,0.5)
fractional_max_pool2d: x(2, 3, 8, 8), 2**62, output_size=2 | x(2, 3, 8, 8), 2, output_size=2**62
fractional_max_pool2d: x(2, 3, 8, 8), 2, output_size=(2,)
fractional_max_pool2d: x(2, 3, 8, 8), (2,), output_size=2 | x(2, 3, 8, 8), 2, output_size=()
fractional_max_pool3d: x(2, 3, 8, 8, 8), 2, output_ratio=(0.5,) | x(2, 3, 8, 8, 8), 2, output_ratio=0.5
fractional_max_pool3d: x(2, 3, 8, 8, 8), 2, output_size=(2,)
max_unpool2d: x(1, 1, 2, 2), i([[[[0, 3], [12, 16]]]]), 2 | x(1, 1, 2, 2), i([[[[0, 3], [12, -1]]]]), 2
max_unpool2d: x(1, 1, 2, 2), i([[[[0, 3], [12, 15]]]]), 2, output_size=(9, 9) | x(1, 1, 2, 2), i([[[[0, 3]]]]), 2
max_unpool2d: x(0, 1, 2, 2), i([]).reshape(0, 1, 2, 2), 2 | x(1, 1, 2, 2), i([[[[0, 1], [2, 3]]]]), 2**62
max_unpool2d: x(1, 1, 2, 2), i([[[[0, 1], [2, 3]]]]), 2, padding=2**62
max_unpool2d: x(1, 1, 2, 2), i([[[[0, 1], [2, 3]]]]), 2, output_size=(2**62, 4)
max_unpool2d: *F.max_pool2d(x(2, 4, 6, 6).to(memory_format=CL), 2, return_indices=True), 2
max_unpool2d: x(1, 1, 2, 2), i([[[[0, 1], [2, 3]]]]), (2,) | x(1, 1, 2, 2), i([[[[0, 1], [2, 3]]]]), 2, ()
max_unpool2d: x(1, 1, 2, 2), i([[[[0, 1], [2, 3]]]]), 2, (2, 2, 7) | x(1, 1, 2, 2).long(), i([[[[0, 1], [2, 3]]]]), 2
max_unpool2d: c(1, 1, 2, 2), i([[[[0, 1], [2, 3]]]]), 0 | x(1, 1, 2, 2), i([[[[0, 1], [2, 3]]]]), 2, output_size=(4,)
max_unpool1d: x(1, 1, 2), i([[[0, 4]]]), 2
max_unpool3d: x(1, 1, 1, 1, 2), i([[[[[0, 99]]]]]), 2
unfold: x(0, 3, 8, 8), 2 | x(2, 3, 8, 8), 9 | x(2, 3, 8, 8), 0 | x(2, 3, 8, 8), 2, stride=0 | x(2, 3, 8, 8), 2, dilation=0
unfold: x(2, 3, 8, 8), 2, padding=-1 | x(2, 3, 0, 8), 2 | x(8, 8), 2 | x(2, 3, 8, 8), 2**62
unfold: x(2, 3, 8, 8), 2, stride=2**31 | x(2, 3, 8, 8), 2, stride=(1, 2**63-1) | x(2, 3, 8, 8), 1, dilation=2**62
unfold: x(2, 3, 8, 8), 2, padding=2**31, stride=2**32
unfold: x(2, 3, 8, 8), (2,) | x(2, 3, 8, 8), 2, dilation=(1,) | x(2, 3, 8, 8), () | x(2, 3, 8, 8), (2, 3)
fold: x(2, 12, 4), (3, 3), 2 | x(2, 12, 5), (3, 3), 2 | x(2, 13, 4), (3, 3), 2 | x(0, 12, 4), (3, 3), 2
fold: x(2, 12, 4), (3, 3), 2, stride=0 | x(2, 12, 4), (1, 1), 2 | x(2, 12, 4), (-3, 3), 2 | x(2, 12, 4), (2**62, 3), 2
fold: x(2, 12, 4), (3, 3), 2**62 | x(2, 12, 4), (3, 3), 2, stride=2**62 | x(2, 12, 4), (3, 3), 2, dilation=2**62
fold: x(2, 12, 1), (3, 3), 2, stride=2**63-1 | x(2, 12, 2), (3, 3), 2, stride=(2**62, 1)
fold: x(2, 12, 9), (3, 3), 1, dilation=2**62
fold: x(2, 12, 4), (3,), 2 | x(2, 12, 4), 3, 2 | x(2, 12, 4), (3, 3), (2,)
pixel_shuffle: x(2, 8, 3, 3), 2 | x(2, 6, 3, 3), 2 | x(2, 8, 3, 3), 0 | x(2, 8, 3, 3), -2 | x(3, 3), 2 | x(2, 8, 3, 3), 2**62
pixel_shuffle: x(2, 4, 6, 6).to(memory_format=CL), 2
pixel_unshuffle: x(2, 2, 4, 4), 2 | x(2, 2, 3, 4), 2 | x(2, 2, 4, 4), 0 | x(2, 2, 4, 4), -2 | x(2, 8, 4, 4), 2**62
pixel_unshuffle: c(0, 2, 4, 4), 2 | c(2, 0, 4, 4), 2 | c(2, 2, 0, 4), 2 | c(0, 2, 3, 4), 2
pixel_shuffle: c(0, 4, 2, 2), 2 | c(2, 0, 2, 2), 2 | c(2, 4, 0, 2), 2 | c(0, 3, 2, 2), 2
pixel_unshuffle: x(2, 4, 6, 6).to(memory_format=CL), 2
channel_shuffle: x(2, 4, 3, 3), 2 | x(2, 4, 3, 3), 3 | x(2, 4, 3, 3), 0 | x(2, 4, 3, 3), -2 | x(0, 4, 3, 3), 2 | x(4, 3), 2
channel_shuffle: x(2, 8, 3, 3), 2**62 | x(2, 4, 6, 6).to(memory_format=CL), 2
interpolate: x(2, 3, 4, 4), size=5 | x(2, 3, 4, 4), size=[5] | x(2, 3, 4, 4), size=(5,) | x(2, 3, 4), size=[5]
interpolate: x(2, 3, 4, 4), size=(5, 6) | x(2, 3, 4, 4), size=(5, 6, 7) | x(2, 3, 4, 4), size=[]
interpolate: x(2, 3, 4, 4), scale_factor=[2.0] | x(2, 3, 4, 4), scale_factor=(2.0, 1.5) | x(2, 3, 4, 4), scale_factor=2
interpolate: x(2, 3, 4, 4), size=5, scale_factor=2.0 | x(2, 3, 4, 4), size=(5, 5), scale_factor=2.0
interpolate: x(2, 3, 4, 4), size=5, scale_factor=(2.0, 2.0) | x(2, 3, 4, 4) | x(2, 3, 4, 4), size=0 | x(2, 3, 4, 4), size=-1
interpolate: x(2, 3, 4, 4), scale_factor=0.0 | x(2, 3, 4, 4), scale_factor=0.1 | x(2, 3, 4, 4), scale_factor=-1.0
interpolate: x(2, 3, 4, 4), scale_factor=NAN | x(0, 3, 4, 4), size=5 | x(2, 0, 4, 4), size=5 | x(2, 3, 0, 4), size=5
interpolate: x(0, 3, 4, 4), size=5, mode='bilinear' | x(2, 3, 4, 4), size=5, mode='linear' | x(2, 3, 4), size=5, mode='bilinear'
interpolate: x(2, 3, 4, 4), size=5, mode='cubic' | x(2, 3, 4, 4), size=5, align_corners=True
interpolate: x(2, 3, 4, 4), size=5, mode='nearest', antialias=True
interpolate: x(2, 3, 4, 4), size=5, mode='bilinear', recompute_scale_factor=True
interpolate: x(2, 3, 4, 4), size=1, mode='bilinear', align_corners=True | x(4, 4), size=5
interpolate: v([[[NAN, 1.0, INF, -INF]]]), size=7, mode='linear' | v([[[[NAN, 1.0], [INF, -INF]]]]), size=3, mode='bicubic'
interpolate: x(2, 3, 4, 4), size=3, mode='area' | x(2, 3, 4, 4), size=[3], mode='area' | x(2, 3, 4, 4), size=2**62
interpolate: x(2, 3, 4, 4), size=(1, 2**62) | x(2, 3, 4, 4), scale_factor=float(2**62)
interpolate: x(2, 3, 4, 4), scale_factor=float(2**62), mode='bilinear'
interpolate: x(2, 4, 6, 6).to(memory_format=CL), size=3, mode='bilinear'
interpolate: x(2, 4, 6, 6).to(memory_format=CL), size=3, mode='nearest'
interpolate: x(2, 4, 6, 6).to(memory_format=CL), size=3, mode='bicubic'
upsample: x(2, 3, 4, 4), size=[5] | x(2, 3, 4, 4), size=5
upsample_nearest: x(2, 3, 4, 4), [5]
upsample_bilinear: x(2, 3, 4, 4), size=[5] | x(2, 3, 4, 4), scale_factor=2
grid_sample: x(2, 3, 4, 4), x(2, 5, 5, 2), align_corners=False | x(2, 3, 4, 4), x(3, 5, 5, 2), align_corners=False
grid_sample: x(2, 3, 4, 4), x(2, 5, 5, 3), align_corners=False | x(2, 3, 4, 4), x(2, 5, 2), align_corners=False
grid_sample: x(0, 3, 4, 4), x(0, 5, 5, 2), align_corners=False | x(2, 0, 4, 4), x(2, 5, 5, 2), align_corners=False
grid_sample: x(2, 3, 0, 4), x(2, 5, 5, 2), align_corners=False | x(2, 3, 4, 4), x(2, 0, 5, 2), align_corners=False
grid_sample: x(2, 3, 4, 4), x(2, 5, 5, 2), mode='cubic', align_corners=False
grid_sample: x(2, 3, 4, 4), x(2, 5, 5, 2), padding_mode='reflect', align_corners=False
grid_sample: x(2, 3, 4, 4, 4), x(2, 5, 5, 5, 3), mode='bicubic', align_corners=False
grid_sample: x(1, 1, 4, 4), v([[[[INF, 0.0], [-INF, INF], [1e30, -1e30]]]]), padding_mode='border', align_corners=False
grid_sample: x(1, 1, 2, 2, 2), v([[[[[NAN, 0.0, 0.0], [0.0, INF, 0.5], [0.0, 0.0, -INF]]]]]), align_corners=False
grid_sample: x(1, 1, 2, 2, 2), v([[[[[NAN, 0.0, 0.0], [0.0, INF, 0.5]]]]]), padding_mode='border', align_corners=False
grid_sample: x(1, 1, 2, 2, 2), v([[[[[NAN, 0.0, 0.0], [0.0, INF, 0.5]]]]]), padding_mode='reflection', align_corners=False
grid_sample: x(2, 4, 6, 6).to(memory_format=CL), x(2, 3, 3, 2), align_corners=False
affine_grid: x(2, 2, 3), [2, 3, 4, 4], align_corners=False | x(2, 2, 3), [3, 3, 4, 4], align_corners=False
affine_grid: x(2, 3, 3), [2, 3, 4, 4], align_corners=False | x(2, 2, 3), [2, 3, 0, 4], align_corners=False
affine_grid: x(2, 2, 3), [2, 3, -4, 4], align_corners=False | x(2, 2, 3), [2, 3, 4], align_corners=False
affine_grid: x(0, 2, 3), [0, 3, 4, 4], align_corners=False | i([[[1, 0, 0], [0, 1, 0]]]), [1, 3, 4, 4], align_corners=False
affine_grid: x(2, 2, 3), [2, 3, 2**62, 4], align_corners=False | x(2, 2, 3), [2, 2**62, 4, 4], align_corners=False
pad: x(0, 4), (1, 1), mode='reflect' | x(0, 4), (1, 1), mode='replicate' | x(0, 4), (1, 1), mode='circular'
pad: x(2, 3, 4), (1, 1), value=1j | x(0, 4, 4), (1, 1, 1, 1), mode='reflect'
pad: x(2, 3, 4), (1, 2), mode='reflect' | x(2, 3, 4), (4, 0), mode='reflect' | x(2, 3, 4), (-1, 2), mode='reflect'
pad: x(2, 3, 4), (5, 0), mode='circular' | x(2, 3, 4), (4, 4), mode='circular' | x(2, 3, 4), (-1, 3), mode='circular'
pad: x(2, 3, 4), (9, 9), mode='replicate' | x(2, 3, 4), (-2, -2), mode='replicate' | x(2, 3, 4), (-3, -3), mode='constant'
pad: x(2, 3, 4), (-2, -2), mode='constant' | x(2, 3, 4), (1,), mode='constant'
pad: x(2, 3, 4), (1, 1, 1, 1, 1, 1, 1, 1), mode='constant' | x(2, 3, 4), (1, 1), mode='mirror'
pad: x(2, 3, 4), (1, 1), mode='reflect', value=1.0 | x(0, 3, 4), (1, 1), mode='reflect' | x(2, 3, 0), (1, 1), mode='replicate'
pad: x(2, 3, 0), (1, 1), mode='constant', value=2.0 | x(4), (1, 1), mode='reflect' | x(2, 3, 4, 4), (1, 2, 3, 1), mode='reflect'
pad: x(2, 3, 4, 4), (1, 2, 3, 1), mode='circular' | x(2, 3, 4, 4, 5), (1, 2, 3, 1, 2, 0), mode='replicate'
pad: x(2, 3, 4, 4, 5), (1, 2, 3, 1, 2, 0), mode='reflect' | x(2, 3, 4), (2**62, 0) | x(2, 3, 4), (2**62, 0), mode='replicate'
pad: x(2, 3, 4), (2**62, 0), mode='reflect' | x(2, 3, 4), (2**62, 0), mode='circular' | x(2, 3, 4), (2**62, -(2**62))
pad: x(2, 4, 6, 6).to(memory_format=CL), (1, 1, 1, 1) | x(2, 4, 6, 6).to(memory_format=CL), (1, 1, 1, 1), mode='reflect'
pad: x(2, 4, 6, 6).to(memory_format=CL), (1, 1, 1, 1), mode='replicate'
pad: x(2, 4, 6, 6).to(memory_format=CL), (1, 1, 1, 1), mode='circular'
pad: x(2, 4, 6, 6).to(memory_format=CL), (1, 1), mode='reflect' | x(2, 4, 6, 6).to(memory_format=CL), (1, 1), mode='replicate'
pad: x(2, 4, 6, 6, 6).to(memory_format=m.channels_last_3d), (1, 1, 1, 1, 1, 1), mode='reflect'
pad: x(2, 4, 6, 6, 6).to(memory_format=m.channels_last_3d), (1, 1, 1, 1, 1, 1), mode='replicate'
pad: x(2, 4, 6, 6, 6).to(memory_format=m.channels_last_3d), (1, 1, 1, 1, 1, 1), mode='circular'
pad: x(2, 1, 6, 6).to(memory_format=CL), (1, 1, 1, 1), mode='reflect'
pad: x(2, 3, 4), 1 | x(2, 3, 4), ()
pad: x(2, 4, 6, 6).to(memory_format=CL), (-1, 2, 1, 1), mode='reflect'
pad: x(2, 4, 6, 6).to(memory_format=CL), (0, -1, 0, 0), mode='replicate'
layer_norm: x(2, 3, 4), (4,) | x(2, 3, 4), (3,) | x(2, 3, 4), () | x(0, 4), (4,) | x(2, 0), (0,) | x(2, 4), (4,), x(3)
layer_norm: x(2, 4), (4,), x(4), x(5) | v([[NAN, 1.0, 2.0], [INF, 1.0, 2.0], [1.0, 1.0, 1.0]]), (3,) | x(2, 4), (4,), eps=-1.0
layer_norm: x(2, 1), (1,) | x(2, 3), (2**62,)
layer_norm: x(2, 3), 3
rms_norm: x(2, 3, 4), (4,) | x(2, 3, 4), (3,) | x(0, 4), (4,) | x(2, 4), (4,), x(3)
rms_norm: v([[NAN, 1.0, 2.0], [INF, 1.0, 2.0], [0.0, 0.0, 0.0]]), (3,) | x(3), (2, 3) | x(2, 3), (2, 2, 3) | x(2, 3), ()
rms_norm: x(2, 3), (2**62,)
batch_norm: x(2, 3, 4), None, None, training=True | x(1, 3), None, None, training=True | x(1, 3, 1), None, None, training=True
batch_norm: x(2, 3), None, None | x(2, 3), c(2), c(2) | x(2, 3), c(3), c(3).abs(), x(4) | x(2, 3), c(3), c(3).abs(), x(3), x(2)
batch_norm: x(0, 3), None, None, training=True | x(0, 3), c(3), c(3).abs() | x(2, 0, 4), None, None, training=True
batch_norm: v([[NAN, 1.0], [INF, 2.0], [1.0, 3.0]]), None, None, training=True
batch_norm: x(2, 3), c(3), c(3).abs(), training=True, momentum=2.0 | x(3), None, None, training=True | x(3), c(3), c(3).abs()
batch_norm: x(3), c(1), c(1).abs() | x(), c(1), c(1).abs() | x(), None, None, training=True
batch_norm: x(3), c(3), c(3).abs(), training=True | x(2, 3), x(3), x(3).abs() | x(2, 3), x(3), x(3) | x(2, 3), x(3), c(3).abs()
batch_norm: x(2, 3), c(3), x(3).abs() | x(2, 3), x(3), x(3).abs(), training=True | c(2, 3), x(3), x(3).abs(), training=True
batch_norm: c(2, 3), x(3), x(3).abs() | c(2, 3), x(3)*1, x(3).abs(), training=True | x(2, 3), x(3)*1, x(3).abs(), training=True
batch_norm: c(2, 3), x(3), x(3), training=True | x(2, 4, 6, 6).to(memory_format=CL), None, None, training=True
batch_norm: x(2, 3), c(1).expand(3), c(1).abs().expand(3), training=True | x(2, 3), c(1).expand(3), c(3).abs()
group_norm: x(2, 6, 4), 3 | x(2, 6, 4), 4 | x(2, 6, 4), -2 | x(2, 6, 4), 3, x(3) | x(0, 6, 4), 3 | x(2, 6, 0), 3 | x(1, 2), 2
group_norm: x(6), 3 | x(2, 6, 4), 0 | x(2, 6, 4), -1 | x(2, 6, 4), 7 | x(), 1 | x(2, 0, 4), 0 | x(6), 0 | x(2, 6, 4), 2**62
group_norm: x(2, 4, 6, 6).to(memory_format=CL), 2
batch_norm: x(2, 0, 4), c(0), c(0), x(0), x(0), training=True | x(2, 0, 4), c(0), c(0), training=True
instance_norm: x(0, 3, 4), c(3), c(3), x(3), x(3)
rms_norm: x(2, 3), (1, 1, 3), x(3) | x(2, 3), (1, 1, 3) | x(2, 3), (2,), x(3)
normalize: x(2, 3), 1j | x(2, 3), None | x(2, 3), dim=None | x(2, 3), dim=()
fractional_max_pool3d: x(1, 2, 6, 6, 6), 2, output_ratio=(0.5, 0.4, 0.6, 0.5)
instance_norm: x(2, 3, 4), c(3), None | x(2, 3, 4), None, c(3) | x(2, 3, 4), c(3), None, use_input_stats=False
batch_norm: x(2, 3, 4), c(3), None | x(2, 3, 4), None, c(3) | x(2, 3, 4), c(3), None, training=True
instance_norm: x(2, 3, 4) | x(2, 3, 1) | x(2, 3) | x(0, 3, 4) | x(2, 3, 4), use_input_stats=False | x(2, 3, 4), c(2), c(2)
instance_norm: x(2, 3, 4), x(3), x(3).abs() | x(2, 3, 4), x(3)*1, x(3).abs()
instance_norm: x(2, 3, 4), x(3), x(3).abs(), use_input_stats=False | x(3) | x() | x(3), use_input_stats=False
instance_norm: x(3), c(3), c(3).abs(), use_input_stats=False | x(2, 4, 6, 6).to(memory_format=CL)
instance_norm: x(2, 3, 4), c(1).expand(3), c(1).abs().expand(3), use_input_stats=False
instance_norm: x(2, 3, 4), c(1).expand(3), c(1).abs().expand(3)
local_response_norm: x(2, 3, 4), 2 | x(2, 3), 2 | x(2, 3, 4), 0 | x(0, 3, 4), 2 | x(2, 3, 4), 9 | x(2, 3, 4), 2**62
local_response_norm: x(2, 4, 6, 6).to(memory_format=CL), 2
normalize: x(2, 3) | v([[0.0, 0.0], [NAN, 1.0], [INF, 1.0]]) | x(2, 3), dim=3 | x(0, 3) | x(2, 3), p=0.0 | x(2, 3), p=INF
normalize: x(2, 3), dim=2**62
softmax: x(2, 3), 2 | x(2, 0), 1 | x(0, 3), 0 | v([[-INF, -INF], [NAN, 1.0], [INF, 1.0], [-INF, 1.0]]), 1
softmax: v([[-INF, -INF], [NAN, 1.0], [INF, 1.0], [-INF, 1.0]]), 0 | x(), 0 | i([1, 2]), 0 | x(2, 3), 2**62
log_softmax: v([[-INF, -INF], [NAN, 1.0], [INF, 1.0], [-INF, 1.0]]), 1
log_softmax: v([[-INF, -INF], [NAN, 1.0], [INF, 1.0], [-INF, 1.0]]), 0 | x(2, 3), -3
softmin: v([[-INF, -INF], [NAN, 1.0], [INF, 1.0], [-INF, 1.0]]), 1
gelu: v(E), approximate='tanh' | v([-INF]) | v([-INF] * 16) | x(3), approximate='sigmoid' | v(E) | v(E * 5)
silu: v([-INF]) | v([-INF] * 16) | v(E) | v(E * 5)
softshrink: v(E) | x(3), -1.0
hardshrink: v(E)
threshold: v(E), 1.0, 2.0 | x(3), 1., 2., True
glu: v(E * 2) | x(3, 3) | x(3, 4), 2 | x(0, 4) | x() | x(2, 4), 2**62
prelu: x(2, 3), x(3) | x(2, 3), x(2) | x(2, 3), x(1, 3) | x(), x(2) | x(0, 3), x(3) | x(2, 4, 6, 6).to(memory_format=CL), x(4)
rrelu: x(3), 0.5, 0.1, True | x(3), training=True, inplace=True
hardtanh: x(3), 1.0, -1.0 | v(E) | v(E * 5)
softplus: v(E), beta=0 | v(E), beta=-1 | v(E) | v(E * 5)
celu: v(E), 0.0 | v(E), -2.0 | v(E) | v(E * 5)
elu: v(E), -2.0 | v(E) | v(E * 5)
leaky_relu: v(E), -0.5 | v(E) | v(E * 5)
relu: x(0) | v(E) | v(E * 5) | x(3), inplace=True | x(2, 4, 6, 6).to(memory_format=CL)
dropout: x(3), 1.5 | x(3), -0.5 | x(3), 1.0 | c(3).long(), 1.0 | x(3), 0.0 | x(0), 0.5 | x(3), NAN | x(3), NAN, training=False
dropout: x(3), training=False, inplace=True | x(3), 0.5, True, True | x(2, 3)[0], 0.5, True, True | x(2, 3)[0], 0.5, False, True
alpha_dropout: x(3), 1.5 | x(3), 1.0 | x(3), NAN | x(3), NAN, True
dropout2d: x(3), 0.5 | x(2, 3, 4), NAN | x(2, 4, 6, 6).to(memory_format=CL)
dropout1d: x(3), 0.5 | x(2, 3), NAN
dropout3d: x(2, 3), 0.5 | x(2, 3, 4, 4), NAN
feature_alpha_dropout: x(3), -0.1 | x(3, 3), NAN, True
gumbel_softmax: x(0, 3) | x(2, 3), dim=2**62
mish: v(E) | v(E * 5)
selu: v(E) | v(E * 5)
sigmoid: v(E) | v(E * 5)
tanh: v(E) | v(E * 5)
logsigmoid: v(E) | v(E * 5)
softsign: v(E) | v(E * 5)
tanhshrink: v(E) | v(E * 5)
hardswish: v(E) | v(E * 5)
hardsigmoid: v(E) | v(E * 5)
relu6: v(E) | v(E * 5)
cross_entropy: x(2, 3), i([0, 3]) | x(2, 3), i([0, -1]) | x(2, 3), i([0, -100]) | x(2, 3), i([-100, -100])
cross_entropy: x(2, 3), i([-100, -100]), reduction='sum' | x(2, 3), i([0, 5]), ignore_index=5 | x(2, 3), i([0, 1, 2])
cross_entropy: x(0, 3), i([]).long() | x(0, 3), i([]).long(), reduction='sum' | x(0, 3), i([]).long(), reduction='none'
cross_entropy: x(2, 0), i([0, 0]) | x(3), i(1) | x(3), i(3) | x(2, 3), i([0, 1]), label_smoothing=2.0
cross_entropy: x(2, 3), i([0, 1]), label_smoothing=-0.1 | x(2, 3), i([0, 1]), weight=v([1.0, 2.0]).detach()
cross_entropy: x(2, 3), i([0, 1]), weight=v([0.0, 0.0, 1.0]).detach() | x(2, 3), x(2, 3).softmax(1) | x(2, 3), x(2, 2)
cross_entropy: x(2, 3), v([0.0, 1.0]) | x(2, 3), i([[0, 1], [1, 2]]) | x(2, 3), i([0, 1]), reduction='average'
cross_entropy: v([[NAN, 1.0], [INF, 1.0], [-INF, 1.0]]), i([0, 1, 1]), reduction='none' | x(2, 3, 2), i([[0, 1], [2, 3]])
cross_entropy: x(2, 3), i([0, 1]), weight=x(3) | x(2, 3), x(2, 3).softmax(1), weight=x(3)
cross_entropy: x(2, 3), x(2, 3).softmax(1), weight=c(3) | x(2, 3), i([0, 1]), weight=x(3), label_smoothing=0.1
cross_entropy: c(2, 3), i([0, 1]), weight=x(3) | c(2, 3), i([0, 1]), weight=x(3), reduction='none' | x(), i(0) | x(), x()
cross_entropy: x(2, 3), i([0, 2**62]) | x(2, 3), i([0, 1]), ignore_index=2**62
nll_loss: x(2, 3), i([0, 3]) | x(2, 3), i([0, -1]) | x(2, 3, 4), i([0, 1]) | x(0, 3), i([]).long()
nll_loss: x(0, 3), i([]).long(), reduction='sum' | x(3), i(4) | x(2, 3), v([0.0, 1.0]) | x(2, 3), i([0, 1]), weight=x(3)
nll_loss: x(2, 3, 4, 4), i([[[0]*4]*4]*2), weight=x(3) | x(2, 3, 4), i([[0]*4]*2), weight=x(3) | x(2, 3), i([0, 2**62])
multi_margin_loss: x(2, 3), i([0, 3]) | x(2, 3), i([0, -1]) | x(2, 3), i([0, 1]), p=3
multi_margin_loss: x(2, 3), i([0, 1]), weight=v([1.0]).detach() | x(2, 3), i([0, 1]), weight=x(3) | x(2, 3), i([0, 1]), p=2**62
multi_margin_loss: x(2, 3), i([0, 2**62])
multilabel_margin_loss: x(2, 3), i([[0, -1, 1], [2, 1, -1]]) | x(2, 3), i([[0, 3, 1], [2, 1, -1]])
multilabel_margin_loss: x(2, 3), i([[0, -2, 1], [2, 1, -1]]) | x(2, 3), i([[0, 1], [2, 1]])
multilabel_margin_loss: x(2, 3), i([[0, 1, -1], [0, -1, -1]]) | x(1, 3), i([[0, 2**62, 1]])
multilabel_soft_margin_loss: x(2, 3), x(2, 3) | x(0, 3), x(0, 3) | x(2, 3), c(2, 3), x(3)
binary_cross_entropy: v([0.5, 1.5]), v([0.0, 1.0]) | v([0.5, -0.5]), v([0.0, 1.0]) | v([0.5, NAN]), v([0.0, 1.0])
binary_cross_entropy: v([0.0, 1.0]), v([1.0, 0.0]) | v([0.0, 1.0]), v([0.0, 1.0]) | v([0.5, 0.5]), v([0.0]) | x(0), x(0)
binary_cross_entropy: x(3).sigmoid(), x(3), x(3) | x(3).sigmoid(), x(3) | x(3).sigmoid(), c(3), x(3) | v([.5]), v([2.])
binary_cross_entropy: v([.5]), v([-1.]) | v([.5]), v([NAN])
binary_cross_entropy_with_logits: v([INF, -INF, 1e30, NAN]), v([1.0, 0.0, 1.0, 0.0]), reduction='none'
binary_cross_entropy_with_logits: v([INF, -INF, 1e30]), v([0.0, 1.0, 0.5]), reduction='none' | x(2, 3), x(2)
binary_cross_entropy_with_logits: x(2, 3), x(2, 3), pos_weight=x(2) | x(0), x(0) | x(3), x(3) | x(3), c(3), x(3)
binary_cross_entropy_with_logits: x(3), c(3), c(3), pos_weight=x(3) | x(3), x(3), c(3), pos_weight=x(3)
binary_cross_entropy_with_logits: x(3), x(3), x(3), pos_weight=x(3) | x(2, 3), (c(2, 3) > 0)
binary_cross_entropy_with_logits: x(2, 3), i([[1, 0, 1], [0, 1, 0]]) | i([[1, 0]]), i([[1, 1]])
binary_cross_entropy_with_logits: x(2, 3), i([[1, 0, 1], [0, 1, 0]]), pos_weight=c(3)
binary_cross_entropy_with_logits: x(2, 3), i([[1, 0, 1], [0, 1, 0]]), reduction='none'
kl_div: x(2, 3), v([[0.0, -1.0, 0.5], [NAN, 1.0, 0.0]]), reduction='none' | x(0, 3), x(0, 3), reduction='batchmean'
kl_div: x(2, 3), x(2, 4) | x(3), x(3).softmax(0) | x(3), x(3), log_target=True | x(2, 3), (c(2, 3) > 0)
kl_div: x(2, 3), i([[1, 0, 1], [0, 1, 0]]), log_target=True
mse_loss: x(2, 3), x(2, 4) | x(2, 3), x(3) | x(0), x(0) | v([INF, NAN]), v([INF, 1.0]) | x(3), x(3) | x(3), c(3), weight=x(3)
l1_loss: x(2, 3), x(2, 4) | x(0), x(0) | x(3), x(3) + 1 | x(3), c(3) + 1, weight=x(3)
smooth_l1_loss: x(3), x(3).detach() + 1, beta=-1.0 | x(3), x(3).detach() + 1, beta=0.0 | x(0), x(0) | x(3), x(3) + 1
huber_loss: x(3), x(3).detach() + 1, delta=0.0 | x(3), x(3).detach() + 1, delta=-1.0 | x(3), x(3) + 1
huber_loss: x(3), c(3) + 1, weight=x(3)
poisson_nll_loss: v([0.0, -1.0, 2.0]), v([1.0, 2.0, 3.0]), log_input=False, full=True | x(3), x(3), reduction='average'
poisson_nll_loss: x(3), x(3) | x(3), x(3).abs() + 2, full=True
gaussian_nll_loss: x(3), x(3), v([1.0, -1.0, 1.0]) | x(3), x(3), v([1.0, 0.0, 1.0]) | x(2, 3), x(2, 3), x(4).abs()
gaussian_nll_loss: x(3), x(3), x(3).abs()
hinge_embedding_loss: x(3), v([1.0, -1.0, 0.5]) | x(3), v([1.0, -1.0]) | x(3), x(3) | x(3), v([1., -1., 1.])
soft_margin_loss: x(3), v([1.0, -1.0]) | x(3), x(3) | c(3), x(3)
margin_ranking_loss: x(3), x(3), v([1.0, -1.0]) | x(2, 3), x(3), v([1.0, -1.0, 1.0]) | x(3), x(3), v([1., -1., 1.])
cosine_embedding_loss: x(2, 3), x(2, 3), i([1, -1]) | x(2, 3), x(2, 3), i([1, -1, 1]) | x(2, 3), x(2, 3), i([1, 2])
cosine_embedding_loss: x(2, 3) * 0, x(2, 3), i([1, -1]) | x(2, 3), x(2, 3), v([1., -1.])
triplet_margin_loss: x(2, 3), x(2, 3), x(2, 3), margin=-1.0 | x(2, 3), x(2, 3), x(2, 4) | x(2, 3), x(3), x(2, 3)
triplet_margin_loss: x(0, 3), x(0, 3), x(0, 3) | x(2, 3), x(2, 3)+1, x(2, 3)+2
ctc_loss: x(4, 2, 3).log_softmax(2), i([[1, 2], [1, 1]]), i([4, 4]), i([2, 2])
ctc_loss: x(4, 2, 3).log_softmax(2), i([[1, 2], [1, 1]]), i([4, 4]), i([0, 0])
ctc_loss: x(4, 2, 3).log_softmax(2), i([[1, 2], [1, 1]]), i([5, 4]), i([2, 2])
ctc_loss: x(4, 2, 3).log_softmax(2), i([[1, 2], [1, 1]]), i([4, 4]), i([3, 2])
ctc_loss: x(4, 2, 3).log_softmax(2), i([[1, 2], [1, 1]]), i([4, 4]), i([-1, 2])
ctc_loss: x(4, 2, 3).log_softmax(2), i([[1, 2], [1, 1]]), i([4, 4]), i([2, 2]), blank=3
ctc_loss: x(4, 2, 3).log_softmax(2), i([[1, 2], [1, 1]]), i([4, 4]), i([2, 2]), blank=-1
ctc_loss: x(4, 2, 3).log_softmax(2), i([[1, 2], [1, 1]]), i([4]), i([2, 2])
ctc_loss: x(2, 2, 3).log_softmax(2), i([[1, 2, 1], [1, 1, 1]]), i([2, 2]), i([3, 3])
ctc_loss: x(2, 2, 3).log_softmax(2), i([[1, 2, 1], [1, 1, 1]]), i([2, 2]), i([3, 3]), zero_infinity=True
ctc_loss: x(4, 0, 3).log_softmax(2), i([]).long().reshape(0, 2), i([]).long(), i([]).long()
ctc_loss: x(4, 2, 3).log_softmax(2), i([[1, 1], [1, 1]]), i([4, 2**62]), i([2, 2])
ctc_loss: x(4, 2, 3).log_softmax(2), i([[1, 1], [1, 1]]), i([4, 4]), i([2, 2**62])
ctc_loss: x(4, 2, 3).log_softmax(2), i([[1, 1], [1, 1]]), i([4, 4]), i([2, 2]), blank=2**62
embedding: i([0, 3]), x(3, 2) | i([0, -1]), x(3, 2) | i([]).long(), x(3, 2) | i([]).long(), x(0, 2) | i([0]), x(0, 2)
embedding: v([0.0, 1.0]), x(3, 2) | i([0, 1]), x(3) | i([0, 1]), x(3, 2), padding_idx=3 | i([0, 1]), x(3, 2), padding_idx=-4
embedding: i([0, 1]), x(3, 2), padding_idx=-3 | i([0, 1, 1, 2, 1]), x(3, 2), scale_grad_by_freq=True | i([0, 1]), x(3, 0)
embedding: i([0]), x(3, 2), max_norm=0.1 | i([0, 2**62]), x(3, 2) | i([0, 1]), x(3, 2), padding_idx=2**62
embedding_bag: i([0, 1, 3]), x(3, 2), i([0, 1]) | i([0, 1, -1]), x(3, 2), i([0, 1]) | i([0, 1, 2]), x(3, 2), i([1, 2])
embedding_bag: i([0, 1, 2]), x(3, 2), i([0, 4]) | i([0, 1, 2]), x(3, 2), i([0, 0, 3])
embedding_bag: i([0, 1, 2]), x(3, 2), i([0, 0, 3]), mode='sum' | i([0, 1, 2]), x(3, 2), i([0, 0, 3]), mode='max'
embedding_bag: i([]).long(), x(3, 2), i([0, 0]), mode='max' | i([]).long(), x(3, 2), i([0, 0]) | i([[0, 1], [2, 2]]), x(3, 2)
embedding_bag: i([[0, 1], [2, 2]]), x(3, 2), i([0]) | i([0, 1]), x(3, 2) | i([[0, 1], [2, 2]]), x(3, 2), mode='median'
embedding_bag: i([[0, 1], [2, 2]]), x(3, 2), per_sample_weights=x(2, 2)
embedding_bag: i([[0, 1], [2, 2]]), x(3, 2), mode='sum', per_sample_weights=x(2, 2)
embedding_bag: i([[0, 1], [2, 2]]), x(3, 2), mode='sum', per_sample_weights=x(2, 3)
embedding_bag: i([[0, 1], [2, 2]]), x(3, 2), padding_idx=3 | i([[0, 1], [2, 2]]), x(3, 2), padding_idx=2
embedding_bag: i([0, 1, 2]), x(3, 2), i([0, 2, 3]), include_last_offset=True
embedding_bag: i([[0, 1], [2, 2]]), x(3, 2), mode='sum', scale_grad_by_freq=True
embedding_bag: i([0, 1, 1, 2, 2, 2, 4, 4, 4, 4]), x(5, 2), i([0, 3, 7]), mode='sum', scale_grad_by_freq=True
embedding_bag: i([4, 1, 2, 4, 2, 4, 1, 4, 4, 4]), x(5, 2), i([0, 3, 7]), mode='mean', scale_grad_by_freq=True
embedding_bag: i([4, 1, 2, 4, 2, 4, 1, 4]), x(5, 2), i([0, 3]), mode='sum', scale_grad_by_freq=True, padding_idx=1
embedding_bag: i([4, 1, 2, 4]), x(5, 2), i([0, 3]), mode='sum', scale_grad_by_freq=True, per_sample_weights=x(4)
embedding_bag: i([[0, 1], [2, 2]]), x(3, 2), mode='max', scale_grad_by_freq=True | i([[0, 1]]), x(3, 2), padding_idx=2**62
one_hot: i([0, 2]), 3 | i([0, 3]), 3 | i([0, -1]), 3 | i([0, -1]) | i([]).long() | i([]).long(), 3 | i([0, 1]), 0
one_hot: i([0, 1]), -2 | v([0.0, 1.0]), 3 | i([0, 1]), 2**62
cosine_similarity: x(2, 3), x(2, 3) | x(2, 3) * 0, x(2, 3) | x(2, 3), x(2, 4) | x(2, 3), x(2, 3), dim=2 | x(0, 3), x(0, 3)
cosine_similarity: v([[NAN, 1.0], [INF, 1.0]]), v([[1.0, 1.0], [1.0, 1.0]]) | x(2, 3), x(2, 3), dim=2**62
pairwise_distance: x(2, 3), x(2, 3) | x(2, 3), x(2, 4) | x(0, 3), x(0, 3) | x(2, 3), x(2, 3) + 1, p=0.0
pairwise_distance: x(2, 3), x(2, 3) + 1, p=INF
pdist: x(3, 2) | x(1, 2) | x(3, 0) | x(3) | x(3, 2), p=-1.0 | x(3, 2), p=0.0 | x(3, 2), p=INF
m.cdist: x(2, 3), x(2, 4) | x(0, 3), x(2, 3) | x(2, 0), x(2, 0) | x(2, 3), x(2, 3), p=-1.0
bilinear: x(2, 3), x(2, 4), x(5, 3, 4) | x(2, 3), x(2, 4), x(5, 4, 3) | x(2, 3), x(3, 4), x(5, 3, 4)
bilinear: x(2, 3), x(2, 4), x(5, 3, 4), x(4) | x(0, 3), x(0, 4), x(5, 3, 4) | x(3), x(4), x(5, 3, 4) | x(2, 3), x(2, 4), x(5, 3)
bilinear: x(2, 3), x(2, 4), x(0, 3, 4) | x(2, 3), c(2, 4).double(), x(5, 3, 4)
adaptive_avg_pool3d: x(8, 8, 8), 2 | x(3, 8, 8), (2,2,None) | x(3, 8, 8, 8), (2,)
lp_pool3d: x(8, 8, 8), 2., 2
m.dropout: x(3), NAN, True | x(3), 2., True
m.feature_dropout: x(3, 3), NAN, True
fractional_max_pool3d: x(2, 3, 8, 8, 8), 2, output_ratio=0.5 | x(2, 3, 8, 8, 8), 2, output_ratio=(0.5, 0.5, 0.5)
fractional_max_pool3d: x(2, 3, 8, 8, 8), 2, output_ratio=(0.5, 0.5)
triplet_margin_with_distance_loss: x(2, 3), x(2, 3)+1, x(2, 3)+2
m.batch_norm: x(3), None, None, None, None, True, 0.1, 1e-5, True | x(3), c(3), None, None, None, True, 0.1, 1e-5, True
m.batch_norm: x(3), None, None, c(3), c(3).abs(), False, 0.1, 1e-5, True | x(), None, None, None, None, True, 0.1, 1e-5, True
m.group_norm: x(2, 6, 4), 0 | x(2, 0, 4), 0
conv1d: x(2, 3, 8), x(4, 2, 3) | x(2, 3, 8), x(4, 3, 9) | x(2, 3, 8), x(4, 3, 3), x(3) | x(2, 3, 8), x(4, 3, 3), stride=0
conv1d: x(2, 3, 8), x(4, 3, 3), stride=-1 | x(2, 3, 8), x(4, 3, 3), padding=-1 | x(2, 3, 8), x(4, 3, 3), dilation=0
conv1d: x(2, 3, 8), x(4, 3, 3), groups=0 | x(2, 3, 8), x(4, 3, 3), groups=-1 | x(2, 3, 8), x(4, 1, 3), groups=3
conv1d: x(2, 3, 8), x(4, 3, 3), groups=2 | x(2, 3, 8), x(4, 3, 3), padding='full'
conv1d: x(2, 3, 8), x(4, 3, 3), padding='same', stride=2 | x(2, 3, 8), x(4, 3, 4), padding='same'
conv1d: x(2, 3, 8), x(4, 3, 4), padding='same', dilation=2 | x(2, 3, 8), x(4, 3, 3), padding='valid', stride=2
conv1d: x(3, 8), x(4, 3, 3) | x(8), x(4, 3, 3) | x(2, 2, 3, 8), x(4, 3, 3) | x(2, 3, 8), x(4, 3) | x(2, 3, 8), x(4, 3, 3, 3)
conv1d: x(0, 3, 8), x(4, 3, 3) | x(2, 0, 8), x(4, 0, 3) | x(2, 3, 8), x(0, 3, 3) | x(2, 3, 0), x(4, 3, 3)
conv1d: x(2, 3, 8), x(4, 3, 0) | x(2, 3, 8), x(4, 3, 3), padding=2**62 | x(2, 3, 8), x(4, 3, 3), dilation=2**62
conv1d: x(2, 3, 8), x(4, 3, 3), stride=2**63 | x(2, 3, 8), x(4, 3, 3), stride=(1, 1) | x(2, 3, 8), x(4, 3, 3), padding=(1, 1)
conv1d: x(2, 3, 8), x(4, 3, 3), stride=() | x(2, 3, 8), c(4, 3, 3).double() | x(2, 3, 8), c(4, 3, 3), c(4).double()
conv1d: i([[[1, 2, 3]]]), i([[[1, 1]]]) | x(2, 3, 8), i([[[1, 1]]]) | v([[[NAN, 1., 2., INF]]]), v([[[1., 0.]]])
conv1d: x(2, 3, 0), x(4, 3, 3), padding=2 | x(0, 3, 0), x(4, 3, 3), padding=2 | x(2, 0, 0), x(4, 0, 3), padding=2
conv2d: x(2, 3, 8, 8), x(4, 3, 9, 3) | x(2, 3, 8, 8), x(4, 3, 3, 3), stride=(0, 1)
conv2d: x(2, 3, 8, 8), x(4, 3, 3, 3), padding=(0, -1) | x(2, 3, 8, 8), x(4, 3, 3, 3), padding=(1, 2, 3)
conv2d: x(2, 3, 8, 8), x(4, 3, 3, 3), padding=(1,) | x(0, 3, 8, 8), x(4, 3, 3, 3) | x(2, 3, 8, 8), x(6, 1, 3, 3), groups=3
conv2d: x(2, 3, 8, 8), x(5, 1, 3, 3), groups=3 | x(2, 0, 8, 8), x(0, 0, 3, 3) | x(2, 3, 8, 8).half(), c(4, 3, 3, 3)
conv2d: x(2, 3, 8, 8).bfloat16(), c(4, 3, 3, 3).half() | x(2, 3, 8, 8), x(4, 3, 3, 3), padding='same', dilation=(1, 3)
conv2d: x(2, 3, 8, 8), x(4, 3, 2, 4), padding='same' | x(3, 8, 8), x(4, 3, 2, 4), padding='same'
conv2d: x(2, 3, 8, 8), x(4, 3, 3, 3), padding='same', dilation=0 | x(), x(4, 3, 3, 3) | x(2, 3, 8, 8), x()
conv2d: x(2, 4, 5, 5).to(memory_format=CL), x(6, 4, 3, 3) | x(2, 4, 5, 5).to(memory_format=CL), x(4, 1, 3, 3), groups=4
conv2d: x(2, 3, 0, 4), x(4, 3, 3, 3), padding=2
conv2d: x(2, 3, 8, 8), x(4, 3, 3, 3), stride=(1, 2**62) | x(2, 3, 8, 8), x(3, 1, 3, 3), stride=2**63-1, groups=3
conv2d: x(2, 3, 8, 8), x(4, 3, 1, 1), stride=2**62, dilation=2**62
conv3d: x(2, 3, 4, 4, 4), x(4, 3, 2, 2, 5) | x(2, 3, 4, 4, 4), x(4, 3, 2, 2, 2), stride=0
conv3d: x(2, 3, 4, 4, 4), x(4, 3, 2, 2, 2), groups=5 | x(0, 3, 4, 4, 4), x(4, 3, 2, 2, 2)
conv3d: x(2, 3, 0, 4, 4), x(4, 3, 3, 3, 3), padding=2
conv_transpose1d: x(1, 1, 4), v([[[INF, 1.0, 2.0]]]) | c(2, 1, 4), v([[[1.0, NAN, 2.0]]]), stride=2, padding=1
conv_transpose2d: c(2, 2, 5, 5), v([[[[1.0, 2.0], [INF, 3.0]]], [[[1.0, NAN], [2.0, 3.0]]]]), padding=1
conv_transpose1d: x(1, 1, 4).half(), v([[[1.0, 2.0, INF]]]).half() | x(0, 3, 4), x(3, 2, 3), output_padding=1
adaptive_avg_pool1d: i([[[1, 2]]]), 1 | i([[[1, 2]]]), 2 | x(1, 2, 4).to(m.complex64), 1
conv_transpose1d: x(2, 3, 8), x(4, 2, 3) | x(2, 3, 8), x(3, 2, 3) | x(2, 3, 8), x(3, 2, 3), x(3)
conv_transpose1d: x(2, 3, 8), x(3, 2, 3), output_padding=1 | x(2, 3, 8), x(3, 2, 3), output_padding=2, stride=2
conv_transpose1d: x(2, 3, 8), x(3, 2, 3), output_padding=1, stride=2 | x(2, 3, 8), x(3, 2, 3), output_padding=-1, stride=2
conv_transpose1d: x(2, 3, 8), x(3, 2, 3), output_padding=1, dilation=2 | x(2, 3, 8), x(3, 2, 3), padding=9
conv_transpose1d: x(2, 3, 8), x(3, 2, 3), padding=-1 | x(2, 3, 8), x(3, 2, 3), stride=0 | x(2, 3, 8), x(3, 2, 3), stride=-1
conv_transpose1d: x(2, 3, 8), x(3, 2, 3), dilation=0 | x(2, 3, 8), x(3, 2, 3), groups=0 | x(2, 3, 8), x(3, 2, 3), groups=2
conv_transpose1d: x(2, 4, 8), x(4, 2, 3), groups=2 | x(2, 4, 8), x(4, 2, 3), x(4), groups=2
conv_transpose1d: x(2, 4, 8), x(4, 2, 3), x(2), groups=2 | x(0, 3, 8), x(3, 2, 3) | x(2, 3, 0), x(3, 2, 3)
conv_transpose1d: x(2, 0, 8), x(0, 2, 3) | x(2, 3, 8), x(3, 2, 0) | x(2, 3, 8), x(3, 2, 3), stride=2**62
conv_transpose1d: x(2, 3, 8), x(3, 2, 3), padding=2**62 | x(2, 3, 8), x(3, 2, 3), padding=2**63-1
conv_transpose1d: x(2, 3, 8), x(3, 2, 3), dilation=2**62 | x(2, 3, 8), x(3, 2, 3), output_padding=2**62
conv_transpose1d: x(2, 3, 8), x(3, 2, 3), output_padding=2**62, stride=2**63-1 | x(3, 8), x(3, 2, 3) | x(8), x(3, 2, 3)
conv_transpose1d: x(2, 3, 8), x(3, 2, 3), padding='same'
conv_transpose1d: x(2, 3, 2), x(3, 2, 3), x(2), padding=2 | x(1, 3, 2), x(3, 2, 3), padding=2
conv_transpose1d: x(0, 3, 0), x(3, 2, 3), padding=1
conv_transpose1d: c(2, 3, 2).double(), c(3, 2, 3).double(), padding=2 | x(1, 4, 2), x(4, 2, 3), padding=2, groups=2
conv_transpose1d: x(2, 3, 1), x(3, 2, 3), stride=2**62 | x(2, 3, 8), x(3, 2, 1), dilation=2**63-1 | x(2, 3, 4), x(3, 0, 3)
conv_transpose2d: x(2, 3, 4, 4), x(3, 2, 3, 3), output_padding=(0, 1), stride=2
conv_transpose2d: x(2, 3, 4, 4), x(3, 2, 3, 3), output_padding=(0, 2), stride=2 | x(0, 3, 4, 4), x(3, 2, 3, 3)
conv_transpose2d: x(2, 3, 4, 4), x(3, 2, 3, 3), padding=(9, 0) | x(2, 4, 5, 5).to(memory_format=CL), x(4, 2, 3, 3)
conv_transpose2d: x(0, 3, 0, 4), x(3, 2, 3, 3) | x(2, 3, 4, 2), x(3, 2, 3, 3), padding=(0, 2) | x(0, 3, 4, 4), x(3, 0, 3, 3)
conv_transpose2d: x(1, 3, 4, 4), x(3, 2, 5, 5), padding=4 | x(2, 3, 1, 4), x(3, 2, 3, 3), stride=(2**62, 1)
conv_transpose3d: x(2, 3, 2, 2, 2), x(3, 2, 2, 2, 2), output_padding=1 | x(0, 3, 2, 2, 2), x(3, 2, 2, 2, 2)
conv_transpose3d: x(2, 3, 2, 2, 2), x(3, 2, 3, 3, 3), padding=(2, 0, 0)
linear: x(2, 3), x(4, 3), x(5) | x(2, 3), x(4, 2) | x(3), x(4, 3), x(4) | x(), x(4, 3) | x(2, 3), x(3) | x(2, 3), x(2, 4, 3)
linear: x(0, 3), x(4, 3), x(4) | x(2, 0), x(4, 0), x(4) | x(2, 3), x(0, 3), x(0) | x(2, 3), c(4, 3).double()
linear: x(2, 3), c(4, 3), c(4).double() | i([[1, 2]]), i([[1, 2]]) | x(2, 3), x(4, 3), x(1) | x(2, 3), x(4, 3), x()
linear: x(2, 3), None | x(2, 3), [[1.]]
linear: x(2, 3), x(4, 3), x(2, 4) | x(2, 3), x(4, 3), x(2, 1) | x(2, 3), x(4, 3), x(3, 4) | x(5, 2, 3), x(4, 3), x(5, 2, 4)
linear: x(5, 2, 3), x(4, 3), x(5, 1) | x(3), x(4, 3), x(1, 4) | x(2, 3), x(3), x(1) | x(3), x(3), x()
linear: x(0, 3), x(4, 3), x(0, 4)
linear: x(5, 2, 3).transpose(0, 1), x(4, 3), x(5, 4) | x(2, 3), x(4, 3), x(1, 2, 4) | x(2, 5, 3), x(3), x(5)
scaled_dot_product_attention: x(2, 2, 3, 4), x(2, 2, 3, 4), x(2, 2, 3, 4), attn_mask=c(3, 3), is_causal=True
scaled_dot_product_attention: c(2, 2, 3, 4), c(2, 2, 3, 4), c(2, 2, 3, 4), attn_mask=c(3, 3), is_causal=True
scaled_dot_product_attention: x(2, 3, 4), x(2, 3, 4), x(2, 3, 4), attn_mask=c(3, 3), is_causal=True
scaled_dot_product_attention: c(2, 2, 3, 4), c(2, 2, 3, 4), c(2, 2, 3, 4), dropout_p=-0.5
scaled_dot_product_attention: c(2, 2, 3, 4), c(2, 2, 3, 4), c(2, 2, 3, 4), dropout_p=NAN
scaled_dot_product_attention: x(2, 3, 4), x(2, 3, 4), x(2, 3, 4), dropout_p=-0.5
scaled_dot_product_attention: x(2, 3, 4), x(2, 3, 4), x(2, 3, 4), dropout_p=NAN
scaled_dot_product_attention: c(0, 2, 3, 4), c(0, 2, 3, 4), c(0, 2, 3, 4), dropout_p=2.0
scaled_dot_product_attention: x(2, 2, 0, 4), x(2, 2, 3, 4), x(2, 2, 3, 4), attn_mask=c(3, 3)
scaled_dot_product_attention: x(2, 2, 3, 4), x(2, 2, 0, 4), x(2, 2, 0, 5), attn_mask=c(3, 7)
scaled_dot_product_attention: x(2, 2, 3, 0), x(2, 2, 3, 0), x(2, 2, 3, 4), attn_mask=c(3, 7)
scaled_dot_product_attention: x(1, 2, 0, 4), x(2, 2, 3, 4), x(2, 2, 3, 4), attn_mask=c(3, 3), is_causal=True
scaled_dot_product_attention: x(2, 2, 3, 4), x(2, 2, 3, 4), x(2, 2, 3, 4), attn_mask=c(3)
scaled_dot_product_attention: x(2, 3, 4), x(2, 3, 4), x(2, 3, 4), attn_mask=c(3)
scaled_dot_product_attention: x(0, 2, 3, 4), x(2, 2, 3, 4), x(2, 2, 3, 4)
scaled_dot_product_attention: x(2, 3, 0, 4), x(2, 2, 3, 5), x(2, 2, 3, 4), attn_mask=c(3, 3)
m.dropout_: x(3), 0.5, False | x(3), 0.5, True | x(3), 0.0, True
m.embedding_renorm_: x(3, 2), i([0]), 1., 2.
m.lstm: x(6, 3), i([2, 2, 1, 1]), *L() | x(6, 3), i([2, 2, 2, 1]), *L() | x(6, 3), i([3, 2, 1]), *L()
m.lstm: x(6, 3), i([2, 2, 2, -1, 1]), *L() | x(6, 3), i([-2, 2, 2, 2, 2]), *L() | x(6, 3), i([[2, 2], [1, 1]]), *L()
m.lstm: x(6, 3), v([2.0, 2.0, 1.0, 1.0]), *L() | x(6, 3), i([2, 2, 1, 1]).int(), *L() | x(6, 3), i([2, 2**62, 1, 1]), *L()
m.lstm: x(6, 3), i([2**62, 2**62, 2**62, 2**62+6]), *L() | x(6, 3), i([0, 0]), *L() | x(6, 4), i([2, 2, 1, 1]), *L()
m.lstm: x(6, 2, 3), i([2, 2, 1, 1]), *L() | x(6), i([2, 2, 1, 1]), *L() | x(), i([2, 2, 1, 1]), *L()
m.lstm: x(6, 3), i([2, 2, 1, 1]), (x(1, 3, 5), x(1, 3, 5)), P(20), True, 1, 0.0, False, False
m.lstm: x(6, 3), i([2, 2, 1, 1]), (x(1, 1, 5), x(1, 1, 5)), P(20), True, 1, 0.0, False, False
m.lstm: x(6, 3), i([2, 2, 1, 1]), (x(2, 5), x(2, 5)), P(20), True, 1, 0.0, False, False
m.lstm: x(6, 3), i([2, 2, 1, 1]), (x(1, 2, 5), x(1, 2, 5)), [], True, 1, 0.0, False, False
m.lstm: x(6, 3), i([2, 2, 1, 1]), (x(1, 2, 5), x(1, 2, 5)), P(20), True, 1, 0.0, False, True
m.lstm: x(6, 3), i([2, 2, 1, 1]), (x(1, 2, 5), x(1, 2, 5)), P(20), True, 2, 0.0, False, False
m.lstm: x(6, 3), i([2, 2, 0, 1, 1]), *L() | x(6, 3), i([2, 2, 2, 0]), *L() | x(6, 3), i([1, 2, 2, 1]), *L()
m.lstm: x(6, 3), i([0, 2, 2, 2]), *L() | x(0, 3), i([0]), *L()
m.lstm: D(4, 1, 3), (D(1, 2, 5), D(2, 2, 5)), [D(20, 3), D(20, 5), D(20), D(20)], True, 1, 0.0, False, False, False
m.lstm: D(4, 2, 3), (D(1, 3, 5), D(1, 3, 5)), [D(20, 3), D(20, 5), D(20), D(20)], True, 1, 0.0, False, False, False
m.lstm: D(4, 2, 3), (D(1, 2, 5), D(1, 2, 5)), [D(20, 3), D(20, 5), D(1), D()], True, 1, 0.0, False, False, False
m.gru: x(4, 2, 3), *S(), False | x(0, 2, 3), *S(), False | x(4, 0, 3), x(1, 0, 5), *R(), False | x(4, 2, 4), *S(), False
m.gru: x(4, 2), *S(), False | x(4, 2, 3, 1), *S(), False | x(3), *S(), False | x(), *S(), False
m.gru: x(4, 2, 3), x(1, 3, 5), *R(), False | x(4, 2, 3), x(2, 2, 5), *R(), False | x(4, 2, 3), x(1, 2, 4), *R(), False
m.gru: x(4, 2, 3), x(2, 5), *R(), False | x(4, 2, 3), x(0, 2, 5), *R(), False | x(4, 2, 3), [], *R(), False
m.gru: x(4, 2, 3), (x(1, 2, 5),), *R(), False | x(4, 2, 3), (x(1, 2, 5), x(1, 2, 5)), *R(), False
m.gru: x(4, 2, 3), x(1, 2, 5), [], True, 1, 0.0, False, False, False
m.gru: x(4, 2, 3), x(1, 2, 5), [x(15, 3)], True, 1, 0.0, False, False, False
m.gru: x(4, 2, 3), x(1, 2, 5), [x(16, 3), x(15, 5), x(15), x(15)], True, 1, 0.0, False, False, False
m.gru: x(4, 2, 3), x(1, 2, 5), [x(15, 3), x(15, 5), x(14), x(15)], True, 1, 0.0, False, False, False
m.gru: x(4, 2, 3), x(1, 2, 5), [x(45), x(15, 5), x(15), x(15)], True, 1, 0.0, False, False, False
m.gru: x(4, 2, 3), x(1, 2, 5), [x(), x(15, 5), x(15), x(15)], True, 1, 0.0, False, False, False
m.gru: x(4, 2, 3), x(1, 2, 5), P(15), True, 2, 0.0, False, False, False
m.gru: x(4, 2, 3), x(1, 2, 5), P(15), True, 0, 0.0, False, False, False
m.gru: x(4, 2, 3), x(1, 2, 5), P(15), True, -1, 0.0, False, False, False
m.gru: x(4, 2, 3), x(1, 2, 5), P(15), False, 1, 0.0, False, False, False
m.gru: x(4, 2, 3), x(1, 2, 5), P(15), True, 1, 0.0, False, True, False
m.gru: x(4, 2, 3), x(1, 2, 5), P(15), True, 1, 2.0, True, False, False
m.gru: x(4, 2, 3), x(1, 2, 5), P(15), True, 1, NAN, True, False, False | x(4, 2, 3), *S(), True
m.gru: x(4, 2, 3), x(1, 2, 5), P(15), True, 2**31, 0.0, False, False, False
m.gru: x(4, 2, 3), x(1, 2, 5), P(15), True, 2**62, 0.0, False, False, False | c(4, 2, 3).double(), *S(), False
m.gru: i([[[1, 2, 3], [1, 2, 3]]]), *S(), False | c(4, 2, 3).half(), *S(), False
m.gru: v([[[NAN, 1.0, 2.0], [INF, 1.0, 2.0]]]), *S(), False | x(4, 2, 3), c(1, 2, 5).double(), *R(), False
m.gru: x(4, 2, 3), x(1, 2, 5), [c(15, 3).double(), x(15, 5), x(15), x(15)], True, 1, 0.0, False, False, False
m.gru: x(6, 3), i([2, 2, 1, 1]), *S() | x(6, 3), i([2, 2, 2, 1]), *S() | x(6, 3), i([3, 2, 1]), *S() | x(6, 3), i([6]), *S()
m.gru: x(6, 3), i([2, 2, 2, -1, 1]), *S() | x(6, 3), i([-2, 2, 2, 2, 2]), *S() | x(6, 3), v([2.0, 2.0, 1.0, 1.0]), *S()
m.gru: x(6, 3), i([2, 2, 1, 1]).int(), *S() | x(6, 3), i([2, 2**62, 1, 1]), *S()
m.gru: x(6, 3), i([2**62, 2**62, 2**62, 2**62+6]), *S() | x(6, 3), i([0, 0]), *S() | x(6, 4), i([2, 2, 1, 1]), *S()
m.gru: x(6, 2, 3), i([2, 2, 1, 1]), *S() | x(6), i([2, 2, 1, 1]), *S() | x(), i([2, 2, 1, 1]), *S()
m.gru: x(6, 3), i([2, 2, 1, 1]), x(1, 3, 5), *R() | x(6, 3), i([2, 2, 1, 1]), x(1, 1, 5), *R()
m.gru: x(6, 3), i([2, 2, 1, 1]), x(2, 5), *R() | x(6, 3), i([2, 2, 1, 1]), x(1, 2, 5), [], True, 1, 0.0, False, False
m.gru: c(6, 3).double(), i([2, 2, 1, 1]), *S() | x(6, 3), i([2, 2, 1, 1]), x(1, 2, 5), P(15), True, 1, 0.0, False, True
m.gru: x(6, 3), i([2, 2, 1, 1]), x(1, 2, 5), P(15), True, 2, 0.0, False, False
m.gru: x(6, 3), i([2, 2, 0, 1, 1]), *S() | x(6, 3), i([1, 2, 3]), *S() | x(6, 3), i([2, 1, 2, 1]), *S()
m.gru: x(6, 3), i([2, 2]), *S()
m.gru: c(6, 3), i([1, 2, 2, 1]), c(2, 2, 5), [c(15, 3), c(15, 5), c(15), c(15)] * 2, True, 1, 0.0, False, True
m.gru: x(4, 1, 3), x(1, 2, 5), *R(), False | x(4, 2, 3), x(1, 1, 5), *R(), False
m.gru: x(4, 2, 3), x(1, 2, 5), [x(3, 3), x(15, 5), x(), x(2, 15)], True, 1, 0.0, False, False, False
m.gru_cell: x(2, 3), x(2, 5), x(15, 3), x(15, 5), x(15), x(15) | x(0, 3), x(0, 5), x(15, 3), x(15, 5), x(15), x(15)
m.gru_cell: x(2, 4), x(2, 5), x(15, 3), x(15, 5), x(15), x(15) | x(3, 3), x(2, 5), x(15, 3), x(15, 5), x(15), x(15)
m.gru_cell: x(2, 3), x(2, 4), x(15, 3), x(15, 5), x(15), x(15) | x(2, 3), x(5), x(15, 3), x(15, 5), x(15), x(15)
m.gru_cell: x(2, 3), x(2, 1, 5), x(15, 3), x(15, 5), x(15), x(15) | x(2, 3), [], x(15, 3), x(15, 5), x(15), x(15)
m.gru_cell: x(2, 3), x(2, 5), x(15, 3), x(15, 5) | x(2, 3), x(2, 5), x(15, 3), x(16, 5), x(15), x(15)
m.gru_cell: x(2, 3), x(2, 5), x(15, 3), x(15, 5), x(14), x(15) | x(2, 3), x(2, 5), x(15, 3), x(15, 4), x(15), x(15)
m.gru_cell: x(2, 3), x(2, 5), x(15, 3), x(15, 5), x(15) | c(2, 3).double(), x(2, 5), x(15, 3), x(15, 5), x(15), x(15)
m.gru_cell: x(3), x(5), *P(15) | x(2, 3), x(2, 5), x(15, 3), x(15, 5), x(2, 15), x(1)
m.lstm_cell: x(2, 3), (x(2, 5), x(1, 5)), *P(20) | x(2, 3), (x(2, 5), x(2, 5)), x(20, 3), x(20, 5), x(1), x(20)
m.rnn_tanh_cell: x(2, 3), x(2, 5), *P(4) | x(2, 3), x(2, 5), x(5, 3), x(5, 5), x(1), x(5)
m.rnn_relu: v([[[NAN, 1.0, 2.0], [INF, -INF, 2.0]]] * 3), x(1, 2, 5), P(5), True, 1, 0.0, False, False, False
m.rnn_relu_cell: v([[NAN, 1.0, 2.0], [-INF, 1.0, 2.0]]), x(2, 5), *P(5)
m.zeros: (2**63, 1)
linear_cross_entropy: x(4, 3), x(5, 3), i([0, 1, 2, 4]) | x(4, 3), x(5, 3), i([0, 1, 2, 4]), linear_bias=x(5), reduction='sum'
linear_cross_entropy: x(4, 3), x(5, 3), i([0, 1, 2, 4]), linear_bias=x(5), reduction='none'
linear_cross_entropy: x(4, 3), x(5, 3), i([0, 1, -100, 4]), label_smoothing=0.1 | x(4, 3), x(5, 3), i([0, 1, 2, 5])
linear_cross_entropy: x(4, 3), x(5, 3), i([0, 1, 2, 4]), weight=c(5).abs()
linear_cross_entropy: x(4, 3), x(5, 3), i([0, 1, 2, 4]), weight=x(5).abs() | x(4, 3), x(5, 2), i([0, 1, 2, 4])
linear_cross_entropy: x(4, 3), x(5, 3), i([0, 1, 2]) | x(0, 3), x(5, 3), i([]).long() | x(3), x(5, 3), i(1)
linear_cross_entropy: x(4, 3), x(5, 3), x(4, 5).softmax(1) | x(4, 3), x(5, 3), i([0, 1, 2, 4]), reduction='bogus'
linear_cross_entropy: x(2, 4, 3), x(5, 3), i([[0, 1, 2, 4], [0, 1, 2, 4]])
mse_loss: x(3), None | None, x(3) | x(3), 1.5 | x(3), target=[1] | x(3), None, reduction=1 | x(3), None, bogus=1 | x(3)
smooth_l1_loss: x(3), None | True, x(3)
huber_loss: x(3), None | c(3), c(3).double() | c(3), c(3).half() | i([1, 2]), c(2) | c(3), c(3) > 0
binary_cross_entropy: c(3), None
margin_ranking_loss: x(3), None, x(3) | x(3), x(3), 1
gaussian_nll_loss: None, x(3), c(3).abs() | x(3), x(3), 1 | x(3), x(3), 1.5
poisson_nll_loss: x(3), c(3), reduction='x'
multilabel_soft_margin_loss: x(3, 3), True
soft_margin_loss: x(3), c(3).double() | i([1, 2]), c(2) | c(3).to(m.complex64), c(3) | c(3) > 0, c(3)
multi_margin_loss: i([[1, 2, 3]]), i([0]) | x(2, 3), i([0, 2]), p=2.0 | x(2, 3), i([0, 2]), p=NAN
cross_entropy: x(2, 3), i([0, 2]).to(m.uint8), c(3), label_smoothing=0.1
cross_entropy: x(2, 3), i([0, 2]).to(m.uint8), label_smoothing=0.1
softshrink: x(3), INF | x(3), NAN | x(3), 1e39 | c(3).double(), 1e39 | c(3).half(), 7e4 | c(3).bfloat16(), 7e4
glu: None | 1 | v([[1e-40, 1e30], [-1e38, 1e30]]) | v([[-1e38, 1e30]]) * 3
binary_cross_entropy_with_logits: x(2), v([1.0, INF]) | c(2).double(), c(2) | c(2), c(2).double() | x(2), c(2), c(2).double()
binary_cross_entropy_with_logits: x(2), c(2), c(3, 2) | x(2), c(2), pos_weight=c(3, 2) | i([1, 2]), c(2) | x(2), c(2), c(1)
binary_cross_entropy: c(2).sigmoid(), c(2).sigmoid(), c(3, 2) | c(2).sigmoid(), c(2).sigmoid(), c(2).double()
soft_margin_loss: x(1), c(3) | x(2, 3), c(3) | c(3), c(3) > 0
smooth_l1_loss: x(3), c(3), beta=NAN
triplet_margin_loss: x(2, 3), x(2, 3), x(2, 3), margin=NAN | x(2, 3), x(2, 3), x(2, 3), margin=0
multi_margin_loss: v([[1.0, NAN, 2.0]]), i([0]) | x(2, 3), i([0, 2]), weight=1
hinge_embedding_loss: i([1, 2]), c(2) | i([1, 2]), i([1, -1]), 1.5, reduction='sum'
multilabel_margin_loss: 2, i([0]), reduction='x'
linear_cross_entropy: x(2, 3), x(4, 3), i([0, 3]), label_smoothing=-1.0 | x(2, 3), x(4, 3), i([0, 3]), label_smoothing=1.5
linear_cross_entropy: 1, 2, 3
ctc_loss: v([[[NAN, 1.0, 2.0]], [[0.5, 1.0, 2.0]]]), i([[1]]), i([2]), i([1]) | x(5, 1, 4), i([[1, 3]]), i([5]), i([2]), blank=3
ctc_loss: x(5, 1, 4), i([[1, 3]]).to(m.uint8), i([5]), i([2]) | x(5, 1, 4), c(1, 2).abs() + 1, i([5]), i([2])
ctc_loss: x(5, 4), i([1, 3]), 5, 2 | x(5, 4), i([1, 3]), (5,), (2,) | i([[1]]), i([1]), (1,), (1,) | x(), i([1]), (1,), (1,)
cosine_similarity: x(2, 3), x(2, 3), 1, -1.0 | x(2, 3), x(2, 3), 1, NAN | x(2, 3), x(2, 3), 1, INF
rrelu: x(3), 0.1, INF | x(3), NAN, 0.5 | x(3), 0.5, 0.1
mish: v([INF, 1.0, -INF])
selu: v([NAN, 1.0, INF])
celu: v([-1.0, 1.0]), INF
relu: x(3), inplace=None | x(3), inplace=0 | c(3), inplace=1 | x(3), inplace='a'
nll_loss: x(2, 3), i([0, 2]), size_average=2**40
cross_entropy: v([[NAN, 1.0], [1.0, 2.0], [INF, 0.5]]), i([-100, 1, -100]) | v([[[NAN, 1.0], [1.0, 2.0]]]), i([[-100, 1]])
linear_cross_entropy: v([[NAN, 1.0], [1.0, 2.0]]), x(3, 2), i([-100, 1])
multi_margin_loss: x(2, 3), i([0, 2]), weight=c(3).double()
kl_div: c(3).to(m.complex64), c(3)
triplet_margin_with_distance_loss: x(2, 3), x(2, 3), x(2, 3), distance_function=0
softplus: x(3), 1j | x(3), 1e300 | c(3).double(), 1e300
leaky_relu: x(3), 1e300 | x(3), INF
threshold: i([1, 2]), INF, 1 | i([1, 2]), 1, NAN
cross_entropy: x(1, 2, 2), i([[0, 1]]).to(m.uint8)
threshold: x(3), 1j, 2.0
F.threshold_(c(3, 1).expand(3, 2), 0.1, 20.0)
m.cdist: v([[1.0, NAN]]), v([[2.0, 1.0]]), 0.0 | x(2, 3), x(2, 3), compute_mode=None | x(2, 3), x(2, 3), compute_mode='x'
pdist: v([[1.0, NAN], [2.0, 1.0], [INF, 1.0]]), 0.0 | v([[1.0, NAN], [2.0, 1.0], [INF, 1.0]]), 1.0
pdist: v([[1.0, NAN], [2.0, 1.0]]), INF
m.cdist: v([[1.0, NAN], [INF, 2.0]]), v([[2.0, 1.0], [INF, 0.0]]), 1.0
m.cdist: v([[1.0, NAN], [INF, 2.0]]), v([[2.0, 1.0], [INF, 0.0]]), INF
m.cdist: v([[NAN]]), v([[1.0]]), INF
grid_sample: v([[[[NAN, 1.0], [2.0, NAN]]]]), v([[[[0.5, 0.5], [-0.3, 0.2]]]]), mode='nearest', align_corners=False
bilinear: x(2, 3), x(2, 4), x(5, 3, 4), x()
m.addr: c(2, 3), c(2), c(3), alpha=True | c(2, 3), c(2), c(3), beta=1j
m.gru_cell: x(2, 3), x(2, 5), x(15), x(15, 5)
m.nn.GRU(3, 5, bias=1)
m.nn.GRU(3, 5, batch_first=1)
m.nn.GRU(0, 5)
embedding_bag: i([1, 2]), x(3, 2), i([0]), mode=1 | i([1, 2]), x(3), i([0]), mode=1 | i([[1, 2]]), x(3, 2), 1
embedding_bag: i([1, 2]), x(3, 2), 1 | i([1, 2]), x(3, 2), i([0]), per_sample_weights=x(2)
embedding_bag: i([1]), x(3, 2), i([0]), per_sample_weights=[1]
m.nn.utils.rnn.unpad_sequence: c(2, 3, 2), i([4, 2]), batch_first=True | c(2, 3, 2), i([-1, 2]), True | c(2, 3, 2), i([1]), True
m.nn.utils.rnn.pad_sequence: [c(2), c(3)], 1 | [c(2), c(3)], padding_side=1 | [c(2), 3] | [c(2, 2), c(3, 2)], padding_value=NAN
normalize: None
embedding_bag: None, x(3, 2) | i([1]), 1
mse_loss: x(3), x(3), reduction=1 | x(3), x(3), reduction=None
huber_loss: i([1, 2]), x(2)
nll_loss: i([[1, 2]]), i([0]) | c(4, 3), i(1) | c(3), i([0, 1, 2, 3]) | c(3), i([0]) | c(0, 3), i(1)
cross_entropy: c(4, 3), i(1) | c(3), i([0, 1]) | c(4, 3) > 0, i([0, 1, 2, 0])
binary_cross_entropy: c(2).sigmoid(), i([0, 1]) | c(2).sigmoid(), D(2).sigmoid() | c(2).sigmoid(), c(2) > 0
embedding_bag: i([[], []]), x(5, 4) | i([]).reshape(0, 3), x(5, 4)
prelu: v([[NAN, 1.0, -INF], [INF, -1.0, NAN]]), x(3)
bilinear: x(2, 3), x(2, 4), x(5, 3, 4), D(5)
batch_norm: v([[NAN, 1.0], [INF, 2.0], [1.0, 3.0]]), c(2), c(2).abs(), x(2), x(2)
batch_norm: v([[[NAN] + [1.0] * 40, [INF] + [2.0] * 40]]), c(2), c(2).abs(), x(2), x(2)
max_pool1d: x(2, 3, 8), 2, return_indices=1 | x(2, 3, 8), 2, return_indices=None
max_unpool2d: x(1, 1, 2, 2), i([[[[0, 3], [12, 15]]]]), 2, output_size=4
affine_grid: x(2, 2, 3), 1, align_corners=False
interpolate: x(2, 3, 4, 4), size=5, scale_factor=2.0, mode='sum' | x(2, 3, 4, 4), mode='sum'
cross_entropy: x(3, 4), i([0, 1, 2]), reduction=1 | x(3, 4), None | x(3, 4), 1
gaussian_nll_loss: x(3), 1.0, x(3).abs() | x(3), x(3), 1.0 | x(3), x(3), None
multilabel_soft_margin_loss: x(3, 4), 1.0 | x(3, 4), None
ctc_loss: x(5, 2, 4).log_softmax(2), i([[1, 2], [1, 3]]), i([5, 5]), i([2, 2]), reduction=1
m.zeros(3).view(2**63)
m.zeros(2**63)
m.ones(3) + 2**63
F.max_pool2d(v([[[-INF, -INF], [-INF, -INF]]]), 2, return_indices=True)[1]
F.adaptive_avg_pool2d(x(2, 3, 8, 8), 0).detach()
F.adaptive_max_pool2d(x(2, 3, 8, 8), 0).detach()
F.pixel_shuffle(x(0, 8, 3, 3), 2).detach()
F.pixel_shuffle(x(2, 8, 0, 3), 2).detach()
F.embedding_bag(i([]).long(), x(3, 2), i([]).long()).detach()
F.pdist(x(0, 2)).detach()
x(1, 3).t_()
x(3, 3).fill_diagonal_(1.)
x(3, 3).renorm_(2, 0, 1.)
x(3, 3).tril_()
m.ones(3)[2**63]
m.ones(3)[-2**63]
m.zeros(3).sum(2**63)
m.zeros(3).narrow(0, 2**63, 1)
m.zeros(3).reshape((2**63,))
x(3).: uniform_() | normal_() | bernoulli_() | index_put_((i([0]),), c(1)) | zero_() | clamp_(0) | masked_fill_(c(3) > 0, 1.)
x(3).: squeeze_() | copy_(c(3)) | addcmul_(c(3), c(3)) | put_(i([0]), c(1)) | resize_(5) | random_() | cauchy_()
x(3).: geometric_(0.5) | log_normal_() | exponential_() | lerp_(c(3), 0.5) | floor_divide_(2) | fmod_(2)
x(3).: index_fill_(0, i([0]), 1.) | sort()[0].relu_() | __setitem__(0, 1.) | __iadd__(1) | xlogy_(2) | addmv_(c(3, 2), c(2))
x(3).: swapaxes_(0, 0) | transpose_(0, 0) | masked_scatter_(c(3) > 0, c(3)) | scatter_(0, i([0]), 1.)
x(3).: scatter_reduce_(0, i([0]), c(1), 'sum') | nan_to_num_() | logit_() | polygamma_(1) | mvlgamma_(1) | fix_() | sinc_()
x(3).: cumsum_(0)
"""
CASES += "\n".join(f"F.{name}(v([-INF, NAN] * {times})).detach()" for name in SMOOTH.split() for times in (1, 20))


class Operands:
    """The makers of operands for one library; those that want gradients are kept."""

    def __init__(self, library):
        self.library, self.leaves = library, []

    def kept(self, t):
        self.leaves.append(t.requires_grad_())
        return t

    def c(self, *shape):
        values = [((7 * k + 3) % 19 - 9) / 4 for k in range(math.prod(shape))]
        return self.library.tensor(values, dtype=self.library.float32).reshape(shape)

    def x(self, *shape):
        return self.kept(self.c(*shape))

    def v(self, values):
        return self.kept(self.library.tensor(values, dtype=self.library.float32))

    def i(self, values):
        return self.library.tensor(values, dtype=self.library.int64)

    def parameters(self, n):
        return [self.x(n, 3), self.x(n, 5), self.x(n), self.x(n)]

    def names(self):
        m = self.library
        rest = (True, 1, 0.0, False, False)
        return {
            "P": self.parameters,
            "CL": m.channels_last,
            "S": lambda: (self.x(1, 2, 5), self.parameters(15), *rest),
            "L": lambda: ((self.x(1, 2, 5), self.x(1, 2, 5)), self.parameters(20), *rest),
            "R": lambda: (self.parameters(15), *rest),
            "m": m,
            "F": m.nn.functional,
            "x": self.x,
            "v": self.v,
            "i": self.i,
            "c": self.c,
            "D": lambda *shape: self.c(*shape).double(),
            "INF": INF,
            "NAN": NAN,
            "E": E,
        }


def statements(line):
    """Those of a line "name: arguments | arguments"; a line without such a name is one."""
    name, colon, calls = line.partition(": ")
    if name.endswith("."):  # methods
        return [name + call for call in calls.split(" | ")]
    if not colon or not name.replace(".", "").isidentifier():
        return [line]
    return [f"{name if '.' in name else 'F.' + name}({arguments})" for arguments in calls.split(" | ")]


def outcome(statement, library):
    """Values of the results and of the gradients; or what error there was."""
    operands = Operands(library)
    try:
        library.manual_seed(1)
        results = eval(statement, operands.names())
        results = results if isinstance(results, (list, tuple)) else [results]
        values = [result.detach() for result in results]
        total = [result.sum() for result in results if result.requires_grad]
        if total:
            grads = library.autograd.grad(sum(total), operands.leaves, allow_unused=True)
            values += [None if g is None else g.detach() for g in grads]
        return values
    except Exception as error:  # noqa: BLE001 (whatever PyTorch raises is the specification)
        return error


KINDS = (ZeroDivisionError, IndexError, TypeError, ValueError, AssertionError, RuntimeError, AttributeError)


def check(statement):
    theirs, mine = outcome(statement, torch), outcome(statement, lucid)
    if isinstance(theirs, Exception):
        kind = next(kind for kind in KINDS if isinstance(theirs, kind))
        if kind is AttributeError:  # an accident of functions that PyTorch writes in Python
            kind = (AttributeError, TypeError, ValueError)
        assert isinstance(mine, kind), (statement, mine, theirs)
        return
    assert not isinstance(mine, Exception), (statement, mine)
    assert len(mine) == len(theirs)
    assert "CL" not in statement or mine[0].stride() == theirs[0].stride(), statement  # channels stay the last
    for a, b in zip(mine, theirs):
        assert (a is None) == (b is None), (statement, a, b)
        if b is None:
            continue
        assert tuple(a.shape) == tuple(b.shape), statement
        assert str(a.dtype).split(".")[-1] == str(b.dtype).split(".")[-1], statement
        a = torch.tensor(a.tolist(), dtype=b.dtype).reshape(b.shape)
        torch.testing.assert_close(
            a, b, rtol=1e-5, atol=1e-6, equal_nan=True, msg=lambda text, statement=statement: f"{statement}: {text}"
        )


@pytest.mark.parametrize("line", CASES.strip().splitlines())
@pytest.mark.filterwarnings("ignore")
def test_as_pytorch(line):
    for statement in statements(line):
        check(statement)
