"""Whatever happens while a checkpoint is written, the old one is there."""

import os
import random
import resource
import signal
import subprocess
import sys
import time

import pytest

import lucid

KILLS = int(os.environ.get("LUCID_KILLS", "25"))  # 200 where there is time
WRITER = """
import sys, lucid
path = sys.argv[1]
big = {str(i): lucid.full((50_000,), float(i)) for i in range(20)}
print("ready", flush=True)
for turn in range(100_000):
    big["turn"] = turn
    lucid.save(big, path)
"""


def check(path):
    """The file is whole: of one turn, with its values."""
    loaded = lucid.load(path)
    assert all(loaded[str(i)].sum().item() == 50_000.0 * i for i in range(20))
    return loaded["turn"]


def test_killed_at_any_moment(tmp_path):
    path = tmp_path / "checkpoint.pt"
    lucid.save({**{str(i): lucid.full((50_000,), float(i)) for i in range(20)}, "turn": -1}, path)
    chance = random.Random(0)
    for _ in range(KILLS):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(chance.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        check(path)
    left = [p.name for p in tmp_path.iterdir() if p != path]
    assert all(name.startswith(".checkpoint.pt.") and name.endswith(".tmp") for name in left)


FULL_DISK = """
import resource, signal, sys, lucid
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    getattr(lucid, sys.argv[3])({"x": lucid.ones(100_000)}, sys.argv[1])
except OSError as error:
    print("refused", error.errno)
"""


@pytest.mark.parametrize("save", ["save", "save_safetensors"])
@pytest.mark.parametrize("limit", [0, 100, 5_000, 300_000])
def test_a_full_disk(limit, save, tmp_path):
    path = tmp_path / "checkpoint"
    path.write_bytes(b"the old file")
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path), str(limit), save], capture_output=True, text=True, check=True
    )
    assert "refused" in done.stdout
    assert path.read_bytes() == b"the old file" and [p.name for p in tmp_path.iterdir()] == ["checkpoint"]


class Fails:
    def __reduce__(self):
        raise KeyError("cannot be pickled")


def test_an_error_while_pickling(tmp_path):
    path = tmp_path / "checkpoint.pt"
    lucid.save(1, path)
    for value in (Fails(), {"x": lucid.ones(3), "y": Fails()}):
        with pytest.raises(KeyError):
            lucid.save(value, path)
    assert lucid.load(path) == 1 and [p.name for p in tmp_path.iterdir()] == ["checkpoint.pt"]


def test_a_folder_that_cannot_be_written(tmp_path):
    with pytest.raises(FileNotFoundError):
        lucid.save(1, tmp_path / "none" / "x.pt")
    with pytest.raises(IsADirectoryError):
        lucid.save(1, tmp_path)


def test_no_descriptor_is_left_open(tmp_path):
    path = tmp_path / "x.pt"
    count = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        lucid.save([lucid.ones(10)], path)
        lucid.load(path)
        lucid.load(path, mmap=True)
        with pytest.raises(KeyError):
            lucid.save(Fails(), path)
    assert len(os.listdir("/proc/self/fd")) == count


def test_memory_of_a_mapped_file_is_not_read(tmp_path):
    path = tmp_path / "x.pt"
    lucid.save({"x": lucid.zeros(16 << 20)}, path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    loaded = lucid.load(path, mmap=True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 << 10  # KiB; the file has 64 MiB
    assert loaded["x"].shape == (16 << 20,)
