"""With and without LAPACK, after fork, from several threads, and what `python -m lucid` says."""

import os
import subprocess
import sys
import threading

import pytest

import lucid

from .matrices import drawn

L = lucid.linalg
HERE = os.path.dirname(__file__)


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, timeout=500
    )


def test_own_kernels_do_any_size():
    """The tests of residuals again, in a process that may not load a library."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", os.path.join(HERE, "test_factorisations.py")]
    command += ["-k", "(qr or svd or lu or eigh or cholesky or systems or least) and (float32 or complex128)"]
    done = subprocess.run(command, env=os.environ | {"LUCID_LAPACK": "none"}, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-3000:]


def test_without_a_library_the_package_is_named():
    done = run("import lucid; assert lucid._C._lapack_path() == ''; lucid.linalg.eig(lucid.eye(3))", LUCID_LAPACK="none")
    assert "scipy-openblas32" in done.stderr and "NotImplementedError" in done.stderr


def test_a_wrong_library_is_said():
    done = run("import lucid; print(lucid._C._lapack_path())", LUCID_LAPACK="/nowhere/liblapack.so")
    assert "LUCID_LAPACK=/nowhere/liblapack.so" in done.stderr and done.returncode == 0


@pytest.mark.parametrize("isa", ["base", "avx2", "avx512"])
def test_every_kernel_table(isa):
    code = """
import lucid
lucid.manual_seed(0)
for n in (3, 4, 7, 16, 20):
    a = lucid.randn(50, n, n, dtype=lucid.float64) + 3 * n**0.5 * lucid.eye(n, dtype=lucid.float64)
    eye = lucid.eye(n, dtype=lucid.float64)
    s = a @ a.mT
    q, r = lucid.linalg.qr(a)
    l = lucid.linalg.cholesky(s)
    w, v = lucid.linalg.eigh(s)
    u, d, vh = lucid.linalg.svd(a)
    p, lo, up = lucid.linalg.lu(a)
    small = [lucid.linalg.inv(a) @ a - eye, lucid.linalg.solve(a, a) - eye, q @ r - a, l @ l.mT / n**2 - s / n**2]
    small += [(v * w.unsqueeze(-2)) @ v.mT / n**2 - s / n**2, (u * d.unsqueeze(-2)) @ vh - a, p @ lo @ up - a]
    small += [lucid.linalg.det(a) / lucid.linalg.slogdet(a).logabsdet.exp() / lucid.linalg.slogdet(a).sign - 1]
    assert all(float(x.abs().max()) < 1e-11 for x in small), [float(x.abs().max()) for x in small]
print(lucid._C._isa())
"""
    done = run(code, LUCID_ISA=isa)
    if done.returncode and "LUCID_ISA" in done.stderr:
        pytest.skip("this machine has no such table")
    assert done.returncode == 0, done.stderr


def test_after_fork():
    a = lucid.from_numpy(drawn((120, 120), "float64"))
    before = L.svdvals(a)
    pid = os.fork()
    if pid == 0:
        same = lucid.allclose(L.svdvals(a), before) and lucid.allclose(
            L.inv(a) @ a, lucid.eye(120, dtype=lucid.float64), atol=1e-8
        )
        os._exit(0 if same else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_from_several_threads():
    matrices = [lucid.from_numpy(drawn((n, n), "float64", n)) for n in (3, 30, 90, 150)]
    expected = [L.inv(a) for a in matrices]
    wrong = []

    def work():
        for _ in range(5):
            wrong.extend(1 for a, e in zip(matrices, expected) if not lucid.allclose(L.inv(a), e))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_results_of_a_batch_do_not_depend_on_threads():
    a = lucid.from_numpy(drawn((500, 12, 12), "float32"))
    threads = lucid.get_num_threads()
    try:
        results = []
        for n in (1, 2):
            lucid.set_num_threads(n)
            results.append([L.inv(a), L.qr(a).Q, L.det(a), L.lu_factor(a).LU])
        assert all(bool((x == y).all()) for x, y in zip(*results))
    finally:
        lucid.set_num_threads(threads)


def test_report():
    done = subprocess.run([sys.executable, "-m", "lucid"], capture_output=True, text=True)
    assert done.returncode == 0 and f"lucid:           {lucid.__version__}" in done.stdout and "LAPACK:" in done.stdout
