"""Every op of PyTorch's op database on `cuda` (op_db.py says how)."""

import pytest

import lucid
from tests.gpu import prepare_databases

if not lucid.cuda.is_available():  # not a skip for each of hundreds of ops
    pytest.skip("no CUDA device", allow_module_level=True)
pytest.importorskip("torch")
prepare_databases()

from tests.gpu import op_db  # noqa: E402


@pytest.mark.parametrize("name", sorted(op_db.OPS))
def test_op(name):
    total, found = op_db.failures(name)
    assert not found, f"{len(found)} of {total} cases\n" + "\n".join(op_db.described(name, found))
