"""PyTorch's operator database on its sparse samples: what it runs on COO or CSR tensors gives the same values here.

A sample that PyTorch itself refuses is left out. What Lucid refuses is listed: the list only gets shorter.
"""

import collections
import itertools
import warnings

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import lucid
from tests.compat.exchange import Exchange, Missing, counterpart

from .both import described

LAYOUTS = {"coo": torch.sparse_coo, "csr": torch.sparse_csr}
MOST = 12  # samples of an op
REFUSED = {"randn_like", *(f"masked.{name}" for name in ("sum", "prod", "amin", "amax", "mean"))}


def names():
    found = collections.defaultdict(list)
    for op in op_db:
        if op.supports_sparse:
            found["coo"].append(op)
        if op.supports_sparse_csr:
            found["csr"].append(op)
    return [
        pytest.param(layout, op, id=f"{layout}-{op.name}-{op.variant_test_name}") for layout in found for op in found[layout]
    ]


def to_lucid(value, exchange):
    if isinstance(value, torch.Tensor) and value.layout != torch.strided:
        s = value.detach()
        dtype = getattr(lucid, str(s.dtype).split(".")[1])
        if s.layout == torch.sparse_coo:
            index, values = exchange(s._indices()), exchange(s._values())
            return lucid.sparse_coo_tensor(index, values.to(dtype), tuple(s.shape), is_coalesced=s.is_coalesced())
        return lucid.sparse_csr_tensor(
            exchange(s.crow_indices()), exchange(s.col_indices()), exchange(s.values()), tuple(s.shape)
        )
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(to_lucid(v, exchange) for v in value)
    if isinstance(value, dict):
        return {k: to_lucid(v, exchange) for k, v in value.items()}
    return exchange(value)


def flattened(value, m):
    if isinstance(value, m.Tensor):
        value = value.detach()
        return described(value.to_dense() if value.layout != m.strided else value, m)
    return [flattened(v, m) for v in value] if isinstance(value, (list, tuple)) else value


def near(a, b, tolerance):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(near(x, y, tolerance) for x, y in zip(a, b))
    if isinstance(a, (float, complex)) and isinstance(b, (float, complex)):
        return a == b or abs(a - b) <= tolerance * max(1.0, abs(b)) or (a != a and b != b)
    return a == b


@pytest.mark.parametrize(("layout", "op"), names())
def test_samples(layout, op):
    dtype = torch.float32 if torch.float32 in op.dtypes else torch.complex64
    samples = getattr(op, f"sample_inputs_sparse_{layout}")
    ran = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            given = list(itertools.islice(samples("cpu", dtype), MOST))
        except Exception:  # noqa: BLE001  PyTorch's own samples of some ops do not work
            pytest.skip("no samples")
        for sample in given:
            if any(
                isinstance(v, torch.Tensor) and v.layout not in (*LAYOUTS.values(), torch.strided)
                for v in [sample.input, *sample.args]
            ):
                continue
            try:
                theirs = op.op(sample.input, *sample.args, **sample.kwargs)
            except Exception:  # noqa: BLE001, S112
                continue
            if "layout" in sample.kwargs:  # a sparse tensor from a factory
                continue
            exchange = Exchange(True)
            try:
                function = counterpart(op.op, op.name)
            except Missing:
                pytest.skip(f"{op.name} is not there")
            args = to_lucid((sample.input, *sample.args), exchange)
            kwargs = to_lucid(sample.kwargs, exchange)
            try:
                mine = function(*args, **kwargs)
            except NotImplementedError as error:
                if op.name in REFUSED:
                    continue
                raise AssertionError(f"{op.name}{sample.summary()}: {error}") from error
            assert near(flattened(mine, lucid), flattened(theirs, torch), 1e-4), f"{op.name} {sample.summary()}"
            ran += 1
    if not ran and op.name not in REFUSED:
        pytest.skip("PyTorch runs none of its samples")
