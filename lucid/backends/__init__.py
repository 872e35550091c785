"""Switches of the libraries PyTorch computes with. On CUDA devices those of cuDNN and of products work (`cudnn`,
`cuda.matmul`); on the CPU Lucid has its own kernels: settings are kept and can be read, but change nothing; queries answer for
this build.

>>> lucid.backends.cudnn.benchmark = True
>>> lucid.backends.cudnn.benchmark
True
>>> lucid.backends.cudnn.benchmark = False
"""

import contextlib

from . import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]


def __allow_nonbracketed_mutation():
    """A context in which settings can be assigned, as they always can be here.

    >>> with getattr(lucid.backends, "__allow_nonbracketed_mutation")():
    ...     lucid.backends.cudnn.benchmark = False
    """
    return contextlib.nullcontext()


def __getattr__(name):
    from .. import _declared

    return _declared.look("backends", name)
