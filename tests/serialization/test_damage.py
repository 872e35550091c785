"""Files that are damaged or mean harm: a clear error, bounded memory, nothing executed."""

import io
import json
import os
import pickle
import random
import signal
import struct
import zipfile

import numpy as np
import pytest
import torch

import lucid
from lucid.serialization import CorruptFileError
from lucid.serialization.archive import Reader
from lucid.serialization.files import Source

REFUSALS = (CorruptFileError, pickle.UnpicklingError, RuntimeError, TypeError, ValueError, NotImplementedError)


def saved(value, lib=lucid, **options):
    file = io.BytesIO()
    lib.save(value, file, **options)
    return file.getvalue()


def archive(**records):
    """A zip archive with records of one's own."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        for name, data in records.items():
            z.writestr(f"archive/{name.replace('__', '/').replace('DOT', '.')}", data)
    return file.getvalue()


def load(data, **options):
    return lucid.load(io.BytesIO(data), **options)


class Runs:
    """What a pickle would call if it were run."""

    def __init__(self, function, *args):
        self.reduced = function, args

    def __reduce__(self):
        return self.reduced


HARMFUL = {
    "system": Runs(os.system, "touch harmed"),
    "eval": Runs(eval, "open('harmed', 'w')"),
    "exec": Runs(exec, "open('harmed', 'w')"),
    "import": Runs(__import__, "this"),
    "open": Runs(open, "harmed", "w"),
    "getattr": Runs(getattr, str, "upper"),
    "torch": Runs(torch.hub.load, "a", "b"),
    "nested": [{"a": (Runs(os.mkdir, "harmed"),)}],
    "type": Runs(type, "X", (), {}),
}


@pytest.mark.parametrize("name", HARMFUL)
@pytest.mark.parametrize("protocol", [2, 4])
def test_harmful_pickles_are_refused(name, protocol, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain = pickle.dumps(HARMFUL[name], protocol)
    for data in (plain, archive(**{"data.pkl": plain, "version": b"3\n"})):
        with pytest.raises(pickle.UnpicklingError, match="weights"):
            load(data)
    assert not list(tmp_path.iterdir())


def test_calls_through_allowed_names_are_refused():
    """Names a file may use cannot be used for other ends."""
    programs = {
        "a memory bomb of bytes": b"c__builtin__\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
        "a tensor of no storage": b"ctorch._utils\n_rebuild_tensor_v2\n(K\x01K\x00)(t\x89}tR.",
        "calling a dtype": b"ctorch\nfloat32\n)R.",
        "calling a text": b"U\x01a)R.",
        "a state for a dict": b"}}b.",
        "a state for a number": b"K\x01}b.",
        "making a dict class": b"ccollections\nOrderedDict\n)\x81.",
        "nothing on the stack": b"R.",
        "no mark": b"K\x01t.",
        "an unknown memo": b"h\x05.",
        "a huge memo": b"K\x01r\xff\xff\xff\xffj\xfe\xff\xff\xff.",
        "a huge text": b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7fa.",
        "a huge number": b"\x8b\xff\xff\xff\x7fa.",
        "an unknown opcode": b"\xff.",
        "an old-style instance": b"(icollections\nOrderedDict\n.",
        "an extension": b"\x82\x01.",
        "no end": b"K\x01",
        "an unfinished name": b"ctorch",
        "appending to a text": b"U\x01a](K\x01e0K\x01a.",
        "an unhashable key": b"}]K\x01s.",
        "another persistent id": b"U\x01aQ.",
    }
    for name, program in programs.items():
        with pytest.raises(pickle.UnpicklingError):
            print(name, load(b"\x80\x02" + program))


def doubled(levels, make, times=2):
    """Nested lists or tuples that repeat the previous one: short in the file, exponential when printed or hashed."""
    before = {b"e": b"0](", b"t": b"0("}[make]
    return b")q\0" + b"".join(before + b"h%c" % i * times + make + b"q%c" % (i + 1) for i in range(levels))


def test_bombs_of_shared_parts():
    """Values that a file can make exponentially large are never printed, hashed or compared."""
    lists, keys = doubled(60, b"e"), doubled(7, b"t", 100)
    programs = {
        "a call of it": lists + b")R.",
        "an instance of it": lists + b")\x81.",
        "a persistent id": lists + b"Q.",
        "a default": b"ccollections\ndefaultdict\n" + lists + b"\x85R.",
        "an encoding": b"c_codecs\nencode\nU\1a" + lists + b"\x86R.",
        "a way to make tensors": b"ctorch._tensor\n_rebuild_from_type_v2\n(" + lists + b"ctorch\nTensor\n)}tR.",
        "a key": b"}" + keys + b"K\1s.",
        "an element": b"\x8f(" + keys + b"\x90.",
        "keys of an ordered dict": b"ccollections\nOrderedDict\n](" + keys + b"K\1\x86e\x85R.",
        "elements of a set": b"cbuiltins\nset\n](" + keys + b"e\x85R.",
        "a mark as result": b"(.",
        "a mark as element": b"](a.",
        "a mark in the memo": b"(q\0.",
    }
    old = b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}, 1))
    files = {name: b"\x80\2" + program for name, program in programs.items()}
    files |= {"a protocol": old[:15] + b"\x80\2" + lists + b".", "names of storages": old + b"\x80\2](" + keys + b"e."}
    previous = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("endless"))
    signal.alarm(60)
    try:
        for name, data in files.items():
            with pytest.raises((pickle.UnpicklingError, CorruptFileError)) as error:
                print(name, type(load(data)))
            assert len(str(error.value)) < 500
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def test_deep_nesting_does_not_overflow():
    deep = b"\x80\x02" + b"]" * 300_000 + b"a" * 299_999 + b"."
    value = load(deep)
    for _ in range(299_999):
        value = value[0]
    assert value == []
    key = b"\x80\x02}" + b")" + b"\x85" * 300_000 + b"K\x01s."
    with pytest.raises(pickle.UnpicklingError, match="key"):
        load(key)


FILES = {
    "zip": saved({"w": lucid.arange(40.0), "t": lucid.ones(3, 2).t(), "n": [1, "a"]}),
    "legacy": saved({"w": torch.arange(40.0), "n": [1, "a"]}, torch, _use_new_zipfile_serialization=False),
    "plain": pickle.dumps({"w": lucid.arange(4.0), "n": [1, "a"]}),
}


@pytest.mark.parametrize("kind", FILES)
def test_every_truncation_is_an_error(kind):
    data = FILES[kind]
    for size in range(0, len(data), max(1, len(data) // 500)):
        with pytest.raises(REFUSALS):
            load(data[:size])


@pytest.mark.parametrize("kind", FILES)
def test_flipped_bits_are_an_error_or_another_value_but_never_a_crash(kind):
    data, chance = FILES[kind], random.Random(1)
    for _ in range(1500):
        changed = bytearray(data)
        for _ in range(chance.choice([1, 1, 1, 3])):
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        try:
            load(bytes(changed))
        except REFUSALS:
            pass


def arrays():
    file = io.BytesIO()
    lucid.serialization.save_npz({"a": lucid.arange(40.0)}, file)
    return file.getvalue()


@pytest.mark.parametrize("data, name", [(FILES["zip"], "data/0"), (arrays(), "a.npy")], ids=["zip", "npz"])
def test_every_flipped_bit_of_a_tensor_is_noticed(data, name):
    data = bytearray(data)
    with Source(io.BytesIO(bytes(data))) as source:
        record = Reader(source).record(name)
    for at in range(record.offset, record.offset + record.size):
        data[at] ^= 16
        with pytest.raises(CorruptFileError, match="checksum"):
            load(bytes(data))
        data[at] ^= 16


def test_bytes_of_bools_are_0_or_1(tmp_path):
    """Other bytes in a file are true, and count as 1."""
    odd = torch.tensor([0, 1, 2, 255], dtype=torch.uint8).view(torch.bool)
    np.save(tmp_path / "x.npy", odd.numpy())
    (tmp_path / "x.safetensors").write_bytes(safetensors({"x": entry("BOOL", (4,))}, b"\0\1\2\xff"))
    torch.save({"x": odd}, tmp_path / "x.pt")
    torch.save({"x": odd}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    loaded = [lucid.load(tmp_path / "x.npy"), lucid.load(tmp_path / "old.pt")["x"]]
    for mmap in (False, True):
        loaded += [
            lucid.load(tmp_path / "x.pt", mmap=mmap)["x"],
            lucid.load_safetensors(tmp_path / "x.safetensors", mmap=mmap)["x"],
        ]
    assert [x.to(lucid.int32).tolist() for x in loaded] == [[0, 1, 1, 1]] * 6


def test_archives_that_lie():
    whole = FILES["zip"]
    with zipfile.ZipFile(io.BytesIO(whole)) as z:
        records = {i.filename.split("/", 1)[1]: z.read(i) for i in z.infolist()}

    def packed(method=zipfile.ZIP_STORED, folder="archive", **changes):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as z:
            for name, data in {**records, **changes}.items():
                if data is not None:
                    z.writestr(f"{folder}/{name}", data)
        return file.getvalue()

    assert load(packed())["n"] == [1, "a"]
    with pytest.raises(CorruptFileError, match="compressed"):
        load(packed(zipfile.ZIP_DEFLATED))
    with pytest.raises(CorruptFileError, match="no record"):
        load(packed(**{"data/0": None}))
    with pytest.raises(CorruptFileError, match="bytes where"):
        load(packed(**{"data/0": b"short"}))
    with pytest.raises(NotImplementedError, match="big-endian"):
        load(packed(byteorder=b"big"))
    traversal = io.BytesIO()
    with zipfile.ZipFile(traversal, "w") as z:
        z.writestr("../../evil", b"x")
        z.writestr("archive/data.pkl", b"x")
    with pytest.raises(CorruptFileError, match="folders"):
        load(traversal.getvalue())


def test_overlapping_records_are_refused():
    data = bytearray(saved({"a": lucid.ones(100), "b": lucid.ones(100)}))
    directory = data.index(b"PK\1\2")
    first = data.index(b"archive/data/0", directory)
    second = data.index(b"archive/data/1", directory)
    data[second - 4 : second] = data[first - 4 : first]  # the header's offset stands before the name
    with pytest.raises(CorruptFileError, match="overlaps"):
        load(bytes(data))


def test_a_zip_bomb_is_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("a.npy", b"\0" * (64 << 20))
    data = bytearray(file.getvalue())
    with pytest.raises(CorruptFileError, match="limit"):
        lucid.serialization.load_npz(io.BytesIO(bytes(data)), limit=1 << 20)
    at = data.index(b"PK\1\2") + 24
    data[at : at + 4] = struct.pack("<I", 0x7FFFFFFF)
    with pytest.raises(CorruptFileError, match="more than it can"):
        lucid.serialization.load_npz(io.BytesIO(bytes(data)))


def safetensors(header, values=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + values


def entry(dtype="F32", shape=(1,), begin=0, end=4):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\1\0\0",
        struct.pack("<Q", 1 << 60) + b"{}",
        struct.pack("<Q", 200_000_000) + b"{" + b" " * 100,
        safetensors(b"[]"),
        safetensors(b"{"),
        safetensors(b"\xff\xfe"),
        safetensors(b'{"a": {}, "a": {}}'),
        safetensors(b"[" * 100_000),
        safetensors({"a": entry()}),
        safetensors({"a": entry()}, b"12345"),
        safetensors({"a": entry(dtype="X")}, b"1234"),
        safetensors({"a": entry(shape=[2])}, b"1234"),
        safetensors({"a": entry(shape=[-1])}, b"1234"),
        safetensors({"a": entry(shape=[1.5])}, b"1234"),
        safetensors({"a": entry(shape=[1 << 62, 8])}, b"1234"),
        safetensors({"a": entry(shape=[1] * 70)}, b"1234"),
        safetensors({"a": entry(begin=4, end=8)}, b"12345678"),
        safetensors({"a": entry(), "b": entry()}, b"1234"),
        safetensors({"a": entry(begin=4, end=0)}, b"1234"),
        safetensors({"a": 3}, b"1234"),
        safetensors({"a": entry(shape=(1 << 62, 1 << 62, 0), end=0)}),
        safetensors("{}".encode("utf-16")),
        safetensors({"__metadata__": {"a": 1}}),
    ],
)
def test_damaged_safetensors(data, tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    for f in (path, io.BytesIO(data)):
        with pytest.raises(CorruptFileError):
            lucid.load_safetensors(f)


@pytest.mark.parametrize("file", ["../x.safetensors", "/etc/passwd", "a/b", "..", "", 3])
def test_an_index_cannot_name_other_folders(file, tmp_path):
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": file}}))
    with pytest.raises(CorruptFileError, match="own folder"):
        lucid.load_sharded(tmp_path)


def test_damaged_numpy_files():
    whole = io.BytesIO()
    lucid.serialization.save_npy(lucid.arange(4), whole)
    data = whole.getvalue()
    for size in range(len(data)):
        with pytest.raises(REFUSALS):
            lucid.serialization.load_npy(io.BytesIO(data[:size]))
    for old, new in (
        (b"(4,)", b"(-4,"),
        (b"(4,)", b"(9,)"),
        (b"{'d", b"[[["),
        (b"<i8", b"|O8"),
        (b"<i8", b">i8"),
        (b"False", b"'no' "),
    ):
        with pytest.raises(REFUSALS):
            lucid.serialization.load_npy(io.BytesIO(data.replace(old, new)))
