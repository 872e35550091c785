"""Tuning writes files into the working directory: each test has one of its own, and no choice of another test. These are the
tests of the CPU: a CUDA device is hidden from them (tests/gpu/test_lightning.py has its own)."""

import pytest

import lightning_core as lc
from lucid import _C


@pytest.fixture(autouse=True, scope="package")
def no_cuda():
    _C._lightning()._hide_cuda(True)
    yield
    _C._lightning()._hide_cuda(False)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("CJ_MATMUL_TUNE_CACHE_FILE", "CJ_MATMUL_SMALL_TUNE_CACHE_FILE", "CJ_ATTN_TUNE_CACHE_FILE"):
        monkeypatch.delenv(name, raising=False)
    lc.matmul_reset_tuning()
    yield
    lc.runtime_trace_enable(False)
    lc.runtime_trace_clear()
    lc.matmul_reset_tuning()
