"""Switches of the libraries PyTorch computes with. Lucid has kernels of its own and none of these libraries: what programs set
is kept, so that it can be read again, and changes nothing; questions are answered for this build.

>>> lucid.backends.cudnn.benchmark = True
>>> lucid.backends.cudnn.benchmark, lucid.backends.cudnn.is_available()
(True, False)
>>> lucid.backends.cudnn.benchmark = False
"""

from . import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]
