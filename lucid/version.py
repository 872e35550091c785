"""The version of the package."""

LUCID = __version__ = "0.1.0"  # under lucid.as_torch() __version__ is the one of PyTorch that Lucid follows
git_version = "unknown"
hip = xpu = None  # the versions of ROCm and oneAPI this was built with: none is needed to build
debug = False
op_schema = 1  # raised when an op changes its arguments or meaning: saved files and programs name it


def __getattr__(name):
    if name != "cuda":  # the version of CUDA that the driver has; None without a device
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._C import _cuda_info, _device_count

    if not _device_count(1):
        return None
    number = _cuda_info(0)["driver"]
    return f"{number // 1000}.{number % 1000 // 10}"
