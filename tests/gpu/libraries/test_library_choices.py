"""cuBLASLt's choices are kept in the cache folder (engine/backend/cuda/dnn/choices.c): processes on the stand-in of the
library, which counts how often it is asked to choose and refuses algorithms that it does not know."""

import json
import os
import struct
import subprocess
import sys

import pytest

from tests.gpu.test_emulated import COMPILER, HERE, emulator, libraries, run  # noqa: F401  fixtures

pytestmark = [pytest.mark.skipif(not COMPILER, reason="no C++ compiler"), pytest.mark.xdist_group("choices")]  # one fixture
HEADER, ENTRY, MOST = struct.Struct("<8s4Qq"), 15 * 8 + 64 + 8, 4096  # magic, bytes, hash, version, runtime, model
START, PRIME = 1469598103934665603, 1099511628211

WORK = """
import ctypes, json, os, sys
import lucid
import lucid.nn.functional as F
how, device, *lengths = sys.argv[1:]
counts = ctypes.CDLL(os.environ["LUCID_CUDA_PATH"] + "/libcublasLt.so.13") if lucid.cuda.device_count() else None
for turn, n in enumerate(map(int, lengths)):
    if how == "waits" and turn == 1:
        print("waits", flush=True), sys.stdin.readline()
    for at in range(int(device) + 1):
        x, w, b = ((lucid.arange(r * c) % 3 - 1).reshape(r, c).half() for r, c in ((24, 16), (n, 16), (1, n)))
        on = [t.to(f"cuda:{at}") for t in (x, w, b[0])]
        for _ in range(2):
            assert lucid.equal(F.linear(*on).cpu(), F.linear(x, w, b[0])), n
made, chosen, refused = (counts.emulated_library_calls(of) for of in (0, 2, 3))
assert made == 2 * (int(device) + 1) * len(lengths), (made, refused)
print(json.dumps([chosen, refused]), flush=True)
if how == "dies":
    os._exit(0)
"""
LENGTHS = [8 * n for n in range(1, 12)]


@pytest.fixture
def cache(libraries, tmp_path):  # noqa: F811
    """An environment with an empty cache folder."""
    return libraries | {"LUCID_CACHE_DIR": str(tmp_path / "cache")}


def command(lengths, how="ends", last_device=0):
    return ["-c", WORK, how, str(last_device), *map(str, lengths)]


def asked(environment, lengths=LENGTHS, how="ends", last_device=0):
    """How often cuBLASLt was asked to choose, and how often it refused."""
    return tuple(json.loads(run(command(lengths, how, last_device), environment)))


def files(environment):
    folder = environment["LUCID_CACHE_DIR"]
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if ".choices" in name)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def hash_of(data):
    h = START
    for byte in data:
        h = (h ^ byte) * PRIME & 0xFFFFFFFFFFFFFFFF
    return h


def entries(data):
    """Of a whole file."""
    magic, n, checked, *_ = HEADER.unpack_from(data)
    body = data[HEADER.size :]
    assert magic == b"LUCIDLT1" and n == len(body) and n % ENTRY == 0 and checked == hash_of(body)
    return [body[i : i + ENTRY] for i in range(0, n, ENTRY)]


def with_entries(data, all):
    body = b"".join(all)
    magic, _, _, *library = HEADER.unpack_from(data)
    return HEADER.pack(magic, len(body), hash_of(body), *library) + body


def test_the_next_process_asks_for_nothing(cache):
    n = len(LENGTHS)
    assert asked(cache) == (n, 0)
    (path,) = files(cache)
    assert len(entries(read(path))) == n
    before = os.stat(path).st_mtime_ns
    assert asked(cache) == (0, 0) and os.stat(path).st_mtime_ns == before
    assert asked(cache, [*LENGTHS, 512]) == (1, 0)
    assert asked(cache, [*LENGTHS, 512]) == (0, 0) and files(cache) == [path]


def test_a_process_that_dies_has_kept_half_of_them(cache):
    assert asked(cache, how="dies") == (11, 0)
    assert len(entries(read(files(cache)[0]))) == 8
    assert asked(cache) == (3, 0) and asked(cache) == (0, 0)


def test_equal_devices_share_choices(cache):
    assert asked(cache | {"EMULATOR_DEVICES": "2"}, last_device=1) == (len(LENGTHS), 0)


def cut_within(data):
    return data[: len(data) // 2]


def cut_after_entries(data):
    return data[: HEADER.size + 3 * ENTRY]


def changed(at):
    return lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def of_other_model(data):
    *rest, model = HEADER.unpack_from(data)
    return HEADER.pack(*rest, model + 10000) + data[HEADER.size :]


def of_other_version(data):
    *rest, version, runtime, model = HEADER.unpack_from(data)
    return HEADER.pack(*rest, version + 1, runtime, model) + data[HEADER.size :]


DAMAGE = {
    "empty": lambda data: b"",
    "not a file of ours": lambda data: b"not a file of choices",
    "its header is cut": lambda data: data[:20],
    "cut": cut_within,
    "cut between entries": cut_after_entries,
    "longer": lambda data: data + b"\0" * ENTRY,
    "another magic": changed(7),
    "a bit of an entry": changed(HEADER.size + 3 * ENTRY + 130),
    "the last bit": lambda data: data[:-1] + bytes([data[-1] ^ 128]),
    "another architecture": of_other_model,
    "another version": of_other_version,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_made_again(cache, damage):
    lengths = LENGTHS[:5]
    assert asked(cache, lengths) == (5, 0)
    (path,) = files(cache)
    whole = read(path)
    write(path, DAMAGE[damage](whole))
    assert asked(cache, lengths) == (5, 0)
    assert sorted(entries(read(path))) == sorted(entries(whole))
    assert asked(cache, lengths) == (0, 0) and files(cache) == [path]


def test_each_version_of_the_library_has_a_file(cache):
    newer = cache | {"EMULATOR_CUBLAS_VERSION": "130200"}
    assert asked(cache) == asked(newer) == (len(LENGTHS), 0)
    assert len(files(cache)) == 2 and asked(cache) == asked(newer) == (0, 0)


def test_what_the_library_refuses_is_chosen_again(cache):
    n = len(LENGTHS)
    assert asked(cache | {"EMULATOR_CUBLAS_REFUSES": "1"}) == (n, 0)
    assert asked(cache) == (n, n)  # each once: the library says no, and is asked
    assert asked(cache) == (0, 0)


def test_what_cannot_be_is_not_restored(cache):
    assert asked(cache, LENGTHS[:3]) == (3, 0)
    (path,) = files(cache)
    data = read(path)
    first, second, third = entries(data)
    first = first[:-8] + struct.pack("<Q", 33 << 20)  # more workspace than any product may ask for
    second = struct.pack("<q", 1) + second[8:]  # of another model
    write(path, with_entries(data, [first, second, third]))
    assert asked(cache, LENGTHS[:3]) == (2, 0)


def test_a_file_has_a_limit_and_keeps_what_is_used(cache):
    assert asked(cache, LENGTHS[:2]) == (2, 0)
    (path,) = files(cache)
    data = read(path)
    known = entries(data)
    old = [known[0][: 3 * 8] + struct.pack("<q", 10**6 + i) + known[0][4 * 8 :] for i in range(MOST)]
    write(path, with_entries(data, old))
    assert asked(cache, LENGTHS[:2]) == (2, 0)
    after = entries(read(path))
    assert len(after) == MOST and set(known) < set(after) and len(set(after) & set(old)) == MOST - 2
    assert asked(cache, LENGTHS[:2]) == (0, 0)


def test_processes_side_by_side(cache):
    """Whichever wrote last, the file is whole, and nothing of it is refused."""
    ranges = [[8 * n + 512 * k for n in range(1, 30)] for k in range(4)]
    started = [
        subprocess.Popen([sys.executable, *command(lengths)], env=cache, stdout=subprocess.PIPE, cwd=HERE.parents[1])
        for lengths in ranges
    ]
    assert [json.loads(process.communicate(timeout=300)[0]) for process in started] == [[29, 0]] * 4
    (path,) = files(cache)
    kept = len(entries(read(path)))
    assert kept >= 29
    everything = sum(ranges, [])
    assert asked(cache, everything) == (4 * 29 - kept, 0) and asked(cache, everything) == (0, 0)


def test_a_process_adds_to_what_others_wrote_meanwhile(cache):
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    slow = subprocess.Popen([sys.executable, *command([8, 16], "waits")], env=cache, cwd=HERE.parents[1], **pipes)
    assert slow.stdout.readline() == "waits\n"
    assert asked(cache, [24, 32]) == (2, 0)
    assert slow.communicate("go on\n", timeout=300)[0] == "[2, 0]\n"
    assert asked(cache, [8, 16, 24, 32]) == (0, 0)


def test_without_a_folder_nothing_changes(cache, tmp_path):
    (tmp_path / "file").touch()
    nowhere = cache | {"LUCID_CACHE_DIR": str(tmp_path / "file" / "cache")}
    assert asked(nowhere) == asked(nowhere) == (len(LENGTHS), 0)
    assert sorted(os.listdir(tmp_path)) == ["file"] and read(tmp_path / "file") == b""


GRADIENTS = """
import ctypes, json, os
import lucid
import lucid.nn.functional as F
x, g, b = (lucid.ones(*s, device="cuda", dtype=lucid.float16) for s in ((72, 24), (72, 16), (24,)))
w, c = (lucid.ones(*s, device="cuda", dtype=lucid.float16, requires_grad=True) for s in ((16, 24), (16,)))
F.linear(g.mT, x.mT, b)  # the product of the same two matrices, with another epilogue
F.linear(x, w, c).backward(g)
assert w.grad.cpu().tolist() == [[72.0] * 24] * 16 and c.grad.cpu().tolist() == [72.0] * 16
counts = ctypes.CDLL(os.environ["LUCID_CUDA_PATH"] + "/libcublasLt.so.13")
print(json.dumps([counts.emulated_library_calls(of) for of in (0, 2, 3, 6)]))
"""


def test_gradients_of_biases_are_kept_too(cache):
    """Under the epilogue's number, which is a part of the key."""
    assert json.loads(run(["-c", GRADIENTS], cache)) == [3, 3, 0, 1]
    keys = [struct.unpack("<15q", entry[: 15 * 8]) for entry in entries(read(files(cache)[0]))]
    assert sorted(key[13] for key in keys) == [4, 4, 512]
    assert len({key[:13] + key[14:] for key in keys}) == 2
    assert json.loads(run(["-c", GRADIENTS], cache)) == [3, 0, 0, 1]
