"""The version of the package."""

LUCID = __version__ = "0.1.0"  # under lucid.as_torch() __version__ is the one of PyTorch that Lucid follows
git_version = "unknown"
cuda = hip = xpu = None  # the versions of CUDA, ROCm and oneAPI this was built with: none is needed to build
debug = False
op_schema = 1  # raised when an op changes its arguments or meaning: saved files and programs name it
