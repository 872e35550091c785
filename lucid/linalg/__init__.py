"""Linear algebra: solving, inverting and factorising matrices and batches of them, eigenvalues, singular values, norms.

>>> A, b = lucid.tensor([[3.0, 1.0], [1.0, 2.0]]), lucid.tensor([9.0, 8.0])
>>> lucid.linalg.solve(A, b)
tensor([2., 3.])

Small matrices are factorised by kernels of our own, large ones by LAPACK, which is loaded when it is first needed: the package
`scipy-openblas32`, else a library of the system, else what the variable LUCID_LAPACK names. `python -m lucid` says which one.
"""

from .._C import LinAlgError, _namespaced, matmul, matrix_power
from ._tensors import cross, diagonal

globals().update({key.removeprefix("linalg."): op for key, op in _namespaced.items() if key.startswith("linalg.")})

__all__ = sorted(name for name in globals() if not name.startswith("_"))
