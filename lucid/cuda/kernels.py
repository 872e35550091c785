"""The user's own kernels: CUDA C on tensors, compiled when first used and kept like the library's own.

>>> SOURCE = '''
... extern "C" __global__ void saxpy(float *y, const float *x, float a, long long n)
... {
...     long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
...     if (i < n) y[i] += a * x[i];
... }
... '''
>>> if lucid.cuda.is_available():
...     x, y = lucid.ones(1000, device="cuda"), lucid.zeros(1000, device="cuda")
...     lucid.cuda.run_kernel(SOURCE, "saxpy", (1000 + 255) // 256, 256, (y, x, 2.0, 1000))
...     assert y.sum().item() == 2000
"""

import ctypes

from .. import _C
from ._devices import index_of

__all__ = ["CompileError", "Kernel", "run_kernel"]

_CODES = {
    ctypes.c_float: "f",
    ctypes.c_double: "d",
    ctypes.c_bool: "b",
    ctypes.c_void_p: "p",
    **{getattr(ctypes, f"c_int{bits}"): "q" for bits in (8, 16, 32, 64)},
    **{getattr(ctypes, f"c_uint{bits}"): "Q" for bits in (8, 16, 32, 64)},
    ctypes.c_longlong: "q",
    ctypes.c_ulonglong: "Q",
}


class CompileError(RuntimeError):
    """NVRTC refused a source: what it said, with the lines. `log` has its text.

    >>> issubclass(lucid.cuda.CompileError, RuntimeError)
    True
    """

    def __init__(self, name, log):
        super().__init__(f"kernel '{name}' does not compile:\n{log}")
        self.name, self.log = name, log


def _three(sizes, what):
    sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(n, int) and n > 0 for n in sizes):
        raise ValueError(f"run_kernel: {what} is one to three positive numbers, not {sizes}")
    return sizes + (1,) * (3 - len(sizes))


def _argument(value, position, device):
    if isinstance(value, _C.Tensor):
        if value.device.type != "cuda" or value.device.index != device:
            raise ValueError(f"run_kernel: argument {position} is on {value.device}, the kernel runs on cuda:{device}")
        if value.layout != _C.strided:
            raise ValueError(f"run_kernel: argument {position} is sparse")
        return "p", value.data_ptr()
    if isinstance(value, bool):
        return "b", int(value)
    if isinstance(value, int):
        return ("q" if -(1 << 63) <= value < 1 << 63 else "Q"), value
    if isinstance(value, float):
        return "f", value
    if value is None:
        return "p", 0
    code = _CODES.get(type(value))
    if code is None:
        raise TypeError(
            f"run_kernel: argument {position} is a {type(value).__name__}: tensors, numbers and ctypes values are passed"
        )
    return code, value.value or 0


def run_kernel(source, name, grid, block, args, *, shared_memory=0, options=(), device=None):
    """Launch a kernel of a source in CUDA C on the current stream.

    name: an `extern "C" __global__` function. grid, block: a number or up to three. args: tensors (their address), None (a null
    pointer), int (any integer type, by its low bytes), float (a `float`), bool; `ctypes.c_double(x)` and the like say the type.
    A tensor's strides are not passed: call `contiguous()` before, or pass them. Writes are not recorded by autograd: inside
    `autograd.Function` they are a part of forward or backward. options: NVRTC's, "-DN=4". A source is compiled once per device
    and kept in the cache folder; what does not compile raises CompileError with the lines.

    >>> if lucid.cuda.is_available():
    ...     x = lucid.ones(3, device="cuda")
    ...     twice = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }'
    ...     lucid.cuda.run_kernel(twice, "twice", 1, 3, (x,))
    ...     assert x.tolist() == [2.0, 2.0, 2.0]
    """
    args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    tensors = [a for a in args if isinstance(a, _C.Tensor)]
    cuda = next((t.device.index for t in tensors if t.device.type == "cuda"), None)
    device = index_of(device) if device is not None or cuda is None else cuda
    passed = tuple(_argument(value, k, device) for k, value in enumerate(args))
    call = (device, source, name, tuple(options), _three(grid, "grid"), _three(block, "block"), shared_memory, passed)
    try:
        _C._cuda_run_kernel(*call)
    except _C.LucidError as error:
        if "compilation failed" in str(error):
            raise CompileError(name, _C._cuda_compile_log()) from None
        raise


class Kernel:
    """A kernel by its source and name, to be called with grid, block and arguments.

    >>> clear = lucid.cuda.Kernel('extern "C" __global__ void clear(float *x) { x[threadIdx.x] = 0; }', "clear")
    >>> if lucid.cuda.is_available():
    ...     x = lucid.ones(3, device="cuda")
    ...     clear(1, 3, x)
    ...     assert x.sum().item() == 0
    """

    def __init__(self, source, name, *, options=()):
        self.source, self.name, self.options = source, name, tuple(options)

    def __call__(self, grid, block, *args, shared_memory=0, device=None):
        run_kernel(self.source, self.name, grid, block, args, shared_memory=shared_memory, options=self.options, device=device)
