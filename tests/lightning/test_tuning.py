"""Tuned choices and their files: format, older files, damage, several processes, the profile file."""

import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import lightning_core as lc
from lightning_core import _kept, _tuning

from .reference import attention, random

HEADER = "#lc_tune_cache,matmul,2"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    path = tmp_path / "tuned.csv"
    monkeypatch.setenv("CJ_MATMUL_TUNE_CACHE_FILE", str(path))
    lc.matmul_reset_tuning()
    return path


def multiply(m, k, n, device="metal"):
    a, b = random(m, k), random(k, n, seed=1)
    np.testing.assert_allclose(lc.matmul2d(a, b, device), a @ b, rtol=1e-4, atol=1e-4)


def rows(path):
    return {line.rpartition(",")[0]: line for line in path.read_text().splitlines()[2:]}


def test_every_new_shape_is_written_at_once(cache):
    for i, shape in enumerate([(3, 4, 5), (1, 4, 5), (40, 50, 60), (1030, 1030, 4)], 1):
        multiply(*shape)
        first, second, *lines = cache.read_text().splitlines()
        assert first == HEADER and second.startswith("#columns,m,k,n,") and len(lines) == i
        words = [int(w) for w in lines[-1].split(",")]
        assert len(words) == 6 and tuple(words[:3]) == shape
    before = cache.read_text()
    multiply(3, 4, 5)
    multiply(7, 7, 7, "cpu")
    multiply(8, 8, 8, "cuda")
    lc.MatMulMetalResidentSession(40, 50, 60).run_into(np.ones((40, 50)), np.ones((50, 60)), np.empty((40, 60), "f"))
    assert cache.read_text() == before
    assert not list(cache.parent.glob("*.tmp"))


OLD = {
    "no header": "3,4,5,16,0,0\n",
    "five columns": "3,4,5,16,0\n",
    "version 1": "#lc_tune_cache,matmul,1\n#columns,m,k,n,best_tile,use_mps\n3,4,5,16,0\n",
    "version 2": HEADER + "\n#columns,x\n3,4,5,16,0,0\n",
    "damaged": "\x00\xff\n3,4,5,16,0,0\n3,4\n,,,\n9,9,x,1,1,1\n-1,2,3,16,0,0\n" + "7" * 9000,
}


@pytest.mark.parametrize("name", OLD)
def test_older_and_damaged_files_are_read(cache, name):
    cache.write_bytes(OLD[name].encode("latin-1"))
    assert _tuning.matmul_way(3, 4, 5) == _tuning.SERIAL
    multiply(3, 4, 5)
    multiply(6, 6, 6)
    assert cache.read_text().splitlines()[0] == HEADER
    assert {line.split(",")[0] for line in cache.read_text().splitlines()[2:]} == {"3", "6"}


@pytest.mark.parametrize(
    "first", ["#lc_tune_cache,matmul,3", "#lc_tune_cache,attention,2", "#lc_tune_cache", "#lc_tune_cache,matmul,x"]
)
def test_unknown_versions_are_dropped(cache, first):
    cache.write_text(f"{first}\n#columns,m\n9,9,9,16,0,0\n")
    multiply(6, 6, 6)
    assert "9,9,9" not in cache.read_text() and "6,6,6" in cache.read_text()


def test_other_programs_rows_are_kept_and_reset_reads_again(cache, monkeypatch):
    multiply(6, 6, 6)
    cache.write_text(cache.read_text() + "9,9,9,16,0,0\n")
    multiply(5, 5, 5)
    assert {"9,9,9,16,0", "6,6,6"} & set(rows(cache)) == {"9,9,9,16,0"} and len(rows(cache)) == 3
    other = cache.with_name("other.csv")
    monkeypatch.setenv("CJ_MATMUL_TUNE_CACHE_FILE", str(other))
    multiply(4, 4, 4)
    assert not other.exists()
    lc.matmul_reset_tuning()
    multiply(4, 4, 4)
    assert len(rows(other)) == 1


def test_an_unwritable_path_is_no_error(tmp_path, monkeypatch):
    for path in (tmp_path / "no" / "such" / "folder.csv", tmp_path):
        monkeypatch.setenv("CJ_MATMUL_TUNE_CACHE_FILE", str(path))
        lc.matmul_reset_tuning()
        multiply(6, 6, 6)
    assert os.listdir(tmp_path) == []


def test_the_preset_files(tmp_path, monkeypatch):
    monkeypatch.setenv("CJ_MATMUL_SMALL_TUNE_PROFILE", "fast")
    multiply(1, 8, 8)
    lc.attention2d(*[random(4, 3)] * 3)
    assert set(os.listdir(tmp_path)) == {
        ".lightning_core_matmul_tune_cache.csv",
        ".lightning_core_matmul_mle2_tune_cache_fast.csv",
        ".lightning_core_attn_tune_cache.csv",
    }
    small = (tmp_path / ".lightning_core_matmul_mle2_tune_cache_fast.csv").read_text().splitlines()
    assert small[0] == "#lc_tune_cache,matmul_small,2" and small[2].startswith("1,8,8,")


def test_attention_rows(tmp_path, monkeypatch):
    path = tmp_path / "attn.csv"
    monkeypatch.setenv("CJ_ATTN_TUNE_CACHE_FILE", str(path))
    path.write_text("F,9,3,1,1,1,1\nT,9,3,1,1,1,1,2\nF,bad\nT,9,\x00,1,1,1,1,2\n")
    lc.matmul_reset_tuning()
    q = random(5, 3)
    for causal in (False, True):
        np.testing.assert_allclose(lc.attention2d(q, q, q, causal), attention(q, q, q, causal), rtol=1e-4, atol=1e-5)
    lines = path.read_text().splitlines()
    assert lines[0] == "#lc_tune_cache,attention,2"
    assert {line.rsplit(",", 3)[0] for line in lines[2:]} == {"F,9,3,1", "T,9,3,1,1", "F,5,3,0", "F,5,3,1"}
    assert _tuning.attention_way(9, 3, True) == _tuning.SERIAL


def test_a_file_that_others_change_between_two_shapes(cache):
    multiply(6, 6, 6)
    cache.with_name("tuned.csv.tmp").write_text("left by a process that was killed")
    multiply(7, 7, 7)
    assert os.listdir(cache.parent) == ["tuned.csv"]
    cache.unlink()
    multiply(8, 8, 8)
    assert len(rows(cache)) == 1
    text = cache.read_text()
    cache.write_text(text.replace("8,8,8", "9,9,9"))
    multiply(5, 5, 5)
    assert {key.split(",")[0] for key in rows(cache)} == {"9", "5"}


def in_a_child(work):
    """The status of a forked process that does it; one that waits for ever is ended."""
    child = os.fork()
    if not child:
        signal.alarm(60)
        work()
        os._exit(0)
    return os.waitpid(child, 0)[1]


def test_a_forked_process_does_not_keep_the_lock_on_a_folder(tmp_path):
    ends = os.pipe()
    with _tuning._locked(tmp_path):
        child = os.fork()
        if not child:
            os.read(ends[0], 1)
            os._exit(0)
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(handle)
        os.write(ends[1], b"x")
        os.waitpid(child, 0)


def test_locks_are_free_in_a_forked_process():
    inside, end = threading.Event(), threading.Event()
    kept = _kept.Kept(lambda key: key == "slow" and (inside.set() or end.wait()))
    thread = threading.Thread(target=kept.get, args=("slow",))
    thread.start()
    inside.wait()
    status = in_a_child(lambda: kept.get("quick"))
    end.set()
    thread.join()
    assert status == 0
    graph = lc.GraphIR()
    assert type(graph._lock) is type(kept._lock) is type(_tuning._lock) is _kept.Lock


WRITER = """
import sys, numpy as np, lightning_core as lc
for i in range(int(sys.argv[1]), 60, 2):
    lc.matmul2d(np.ones((3, i)), np.ones((i, 4)))
"""


def test_two_processes_at_once(cache):
    environment = os.environ | {"PYTHONPATH": str(pathlib.Path(lc.__file__).parent.parent), "OMP_NUM_THREADS": "1"}
    workers = [subprocess.Popen([sys.executable, "-c", WRITER, str(i)], env=environment) for i in (1, 2)]
    assert [w.wait() for w in workers] == [0, 0]
    assert {int(key.split(",")[1]) for key in rows(cache)} == set(range(1, 60))


def test_the_ways_agree():
    a, b, out = random(33, 20), random(20, 17, seed=1), np.empty((33, 17), "f")
    q, result = random(30, 8), np.empty((30, 8), "f")
    for way in (_tuning.ALL, _tuning.SERIAL, _tuning.DIRECT):
        _tuning._c._run_product(a, b, out, 33, 20, 17, way, 1)
        np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-5)
        _tuning._c._run_attention(q, q, q, result, 30, 8, True, way, 1)
        np.testing.assert_allclose(result, attention(q, q, q, True), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError):
        _tuning._c._run_product(a, b, out, 33, 20, 18, 0, 1)
    with pytest.raises(ValueError):
        _tuning._c._run_product(a, b, out, 33, 20, 17, 9, 1)


def test_switches_of_the_environment(cache, monkeypatch):
    for value, way in (("kernel", _tuning.DIRECT), ("1", _tuning.DIRECT), ("mps", _tuning.ALL), ("2", _tuning.ALL)):
        monkeypatch.setenv("CJ_MATMUL_MLE2_KERNEL", value)
        lc.matmul_reset_tuning()
        cache.unlink(missing_ok=True)
        assert _tuning.matmul_way(2, 8, 8) == way
    asked = []
    monkeypatch.setattr(_tuning, "_fastest", lambda run, ways, *rest: asked.append((ways, *rest)) or ways[0])
    monkeypatch.setattr(_tuning, "_other_ways", lambda work: [_tuning.SERIAL])
    monkeypatch.setenv("CJ_MATMUL_MPS_HYST_PCT", "7.5")
    assert _tuning.matmul_way(1200, 1300, 1400) == _tuning.ALL and not asked
    monkeypatch.setenv("CJ_MATMUL_DISABLE_PROMOTED_BUCKETS", "1")
    cases = {
        (): [_tuning.ALL, _tuning.SERIAL],
        ("CJ_MATMUL_TRY_KERNEL_ON_LARGE",): [_tuning.ALL],
        ("CJ_MATMUL_PREFER_MPS_ON_LARGE",): [_tuning.SERIAL],
    }
    monkeypatch.setenv("CJ_MATMUL_LARGE_OPS_THRESHOLD", "1000")
    for i, (off, ways) in enumerate(cases.items()):
        for name in off:
            monkeypatch.setenv(name, "off")
        _tuning.matmul_way(20, 20, 20 + i)
        assert asked.pop() == (ways, _tuning.ALL, 7.5)
        for name in off:
            monkeypatch.delenv(name)


READER = """
import os, lightning_core as lc
lc.matmul2d([[1]], [[1]])
print(*(os.environ.get(name) for name in ("CJ_A", "CJ_B", "OTHER")))
"""


def test_the_profile_file(tmp_path):
    (tmp_path / "model_runtime_profile.env").write_text("CJ_A=1\nCJ_B=2\nOTHER=3\n")
    (tmp_path / "mine.env").write_text("CJ_A=5\n")
    base = {"PYTHONPATH": str(pathlib.Path(lc.__file__).parent.parent), "CJ_B": "9"}

    def printed(**more):
        return subprocess.run(
            [sys.executable, "-c", READER], env=base | more, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert printed() == "1 9 None"
    assert printed(CJ_RUNTIME_PROFILE_ENV_FILE=str(tmp_path / "mine.env")) == "5 9 None"
    assert printed(CJ_RUNTIME_PROFILE_AUTOLOAD="0") == "None 9 None"
