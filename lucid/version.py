"""The version of the package."""

__version__ = "0.1.0"
cuda = hip = None  # the versions of CUDA and ROCm this was built with: neither is needed to build
debug = False
op_schema = 1  # raised when an op changes its arguments or meaning: saved files and programs name it
