"""Storages, streams and events: PyTorch's classes."""

import pytest
import torch

import lucid

LIBRARIES = (torch, lucid)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
NAMES = ("BFloat16 Bool Byte Char ComplexDouble ComplexFloat Double Float Half Int Long Short").split()


def both(function):
    return [function(lib) for lib in LIBRARIES]


@pytest.mark.parametrize("name", [f"{n}Storage" for n in NAMES])
def test_legacy_storages(name):
    def use(lib):
        cls = getattr(lib, name)
        s = cls([0, 1, 1])
        s[0] = s[1]
        other = getattr(lib, "ShortStorage" if name != "ShortStorage" else "LongStorage")
        return (
            str(cls.dtype).split(".")[1],
            len(cls(4)),
            s.tolist(),
            s.nbytes(),
            s.element_size(),
            isinstance(s, cls),
            isinstance(s, other),
            lib.is_storage(s),
            s.pickle_storage_type(),
            s.type().split(".")[-1],
            lib.empty(2, dtype=s.dtype).storage_type() is cls,
            isinstance(lib.empty(2, dtype=s.dtype).storage(), cls),
            s.float().tolist(),
            str(s.long().dtype).split(".")[1],
        )

    theirs, ours = both(use)
    assert ours == theirs


def test_untyped_bytes():
    def use(lib):
        s = lib.UntypedStorage([1, 2, 3, 4])
        part = s[1:3]
        part[0] = 9
        s[3] = 7
        made = lib.asarray(s[1:], dtype=lib.uint8)
        empty = lib.UntypedStorage(), lib.UntypedStorage(3), s.new()
        return s.tolist(), part.tolist(), made.tolist(), [e.nbytes() for e in empty], s[0], len(s), s.clone().tolist()

    theirs, ours = both(use)
    assert ours == theirs == ([1, 9, 3, 7], [9, 3], [9, 3, 7], [0, 3, 0], 1, 4, [1, 9, 3, 7])


def test_parts_keep_the_memory_and_share_it():
    part = lucid.UntypedStorage(list(range(200)))[100:]
    assert part.tolist() == list(range(100, 200))
    x = lucid.arange(4, dtype=lucid.int32)
    tail = x.untyped_storage()[8:]
    tail.fill_(0)
    assert x.tolist() == [0, 1, 0, 0] and lucid.empty(0, dtype=lucid.int32).set_(tail).tolist() == [0, 0]
    view = lucid.asarray(tail, dtype=lucid.uint8)
    view[0] = 5
    assert x.tolist() == [0, 1, 5, 0]


@pytest.mark.parametrize("lib", LIBRARIES)
def test_bad_indices(lib):
    s = lib.UntypedStorage([1, 2])
    with pytest.raises(IndexError):
        s[2]
    with pytest.raises(RuntimeError):
        s[::2]
    with pytest.raises(RuntimeError):
        s.copy_(lib.UntypedStorage(3))


@pytest.mark.parametrize("lib", LIBRARIES)
def test_from_file(lib, tmp_path):
    path = tmp_path / "data"
    path.write_bytes(bytes(range(20)))
    s = lib.UntypedStorage.from_file(str(path), shared=False, nbytes=12)
    assert len(s) == 12 and lib.asarray(s[4:8], dtype=lib.uint8).view(lib.int32).tolist() == [0x07060504]
    s[0] = 99
    assert path.read_bytes()[0] == 0
    shared = lib.UntypedStorage.from_file(str(path), True, 20)
    shared[1] = 77
    assert path.read_bytes()[:2] == b"\x00M"
    typed = lib.IntStorage.from_file(str(path), False, 2)
    assert len(typed) == 2 and typed[1] == 0x07060504


def test_from_buffer():
    def use(lib):
        data = bytes(range(16))
        cases = [
            (lib.ByteStorage, ()),
            (lib.ShortStorage, ("big",)),
            (lib.ShortStorage, ("little", 2, 3)),
            (lib.IntStorage, ("native", -1, 4)),
            (lib.DoubleStorage, ("big",)),
            (lib.ComplexFloatStorage, ("big",)),
            (lib.BoolStorage, ("little", 3)),
            (lib.LongStorage, ("little", 0)),
        ]
        made = [kind.from_buffer(data, *args).tolist() for kind, args in cases]
        for kind, args in [
            (lib.ShortStorage, ()),
            (lib.ShortStorage, ("middle",)),
            (lib.ShortStorage, ("big", -1, 1)),
            (lib.ShortStorage, ("big", 9)),
            (lib.ByteStorage, ("big", -1, 17)),
        ]:
            with pytest.raises((RuntimeError, ValueError)) as raised:
                kind.from_buffer(data, *args)
            made.append(raised.type.__name__)
        return made

    theirs, ours = both(use)
    assert ours == theirs
    source = bytearray(b"ab")
    made = lucid.ByteStorage._from_buffer(source)
    source[0] = 0
    assert made.tolist() == [97, 98]


def test_swap_and_copies():
    def use(lib):
        s = lib.UntypedStorage([1, 2, 3, 4])
        s.byteswap(lib.int16)
        t = lib.UntypedStorage(4).copy_(s)
        return s.tolist(), t.tolist(), t.fill_(3).tolist(), lib.tensor([1.0, 2.0]).storage().double().tolist()

    theirs, ours = both(use)
    assert ours == theirs


def test_what_cannot_be_done_says_so():
    s = lucid.UntypedStorage(4)
    assert s.resizable() is False and s.resize_(4) is s
    with pytest.raises(RuntimeError, match="not resizable"):
        s.resize_(8)
    with pytest.raises(RuntimeError, match="shared memory"):
        s.share_memory_()


@pytest.mark.parametrize("lib", LIBRARIES)
def test_streams_and_events(lib):
    stream, event = lib.Stream("cpu"), lib.Event("cpu")
    assert stream.device.type == "cpu" and stream.stream_id == 0 and event.device.type == "cpu"
    with pytest.raises(RuntimeError):
        lib.ones(2).record_stream(None)


def test_events_on_the_cpu():
    start, end = lucid.Event("cpu", enable_timing=True), lucid.Event("cpu", enable_timing=True)
    with pytest.raises(ValueError, match="recorded"):
        start.elapsed_time(end)
    start.record()
    end = lucid.Stream("cpu").record_event(end)
    assert start.elapsed_time(end) >= 0 and end.query()
    with pytest.raises(ValueError, match="enable_timing"):
        lucid.Event("cpu").elapsed_time(end)
    if not lucid.cuda.is_available():
        with pytest.raises(RuntimeError, match="(?i)cuda"):
            lucid.Stream("cuda")
    lucid.ones(2).record_stream(lucid.Stream("cpu"))
