"""Discrete Fourier transforms, by the names of PyTorch's `torch.fft`. They are ops of the engine.

>>> import lucid
>>> lucid.fft.fft(lucid.tensor([1.0, 2.0, 3.0, 4.0])).abs()
tensor([10.0000,  2.8284,  2.0000,  2.8284])
>>> lucid.fft.irfft(lucid.fft.rfft(lucid.tensor([1.0, 2.0, 3.0, 4.0])))
tensor([1., 2., 3., 4.])
"""

from ._C import _namespaced

globals().update({key.removeprefix("fft."): op for key, op in _namespaced.items() if key.startswith("fft.")})
__all__ = sorted(key.removeprefix("fft.") for key in _namespaced if key.startswith("fft."))
