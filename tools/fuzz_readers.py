#!/usr/bin/env python3
"""Fuzz the readers of lucid.serialization with damaged files, guided by coverage (needs the atheris package).

usage: fuzz_readers.py [CORPUS_FOLDER] [-max_total_time=600] [other options of libFuzzer]

The first byte chooses the reader, the rest is the file. A reader may refuse (its documented errors) or return; anything else,
and any process started or file removed, is a finding. Seeds: a whole file of each kind, and the corpus kept in
tests/serialization/corpus.zip, which the tests replay. `sanitize.py fuzz` runs this with an ASan build of Lucid.
"""

import io
import pathlib
import pickle
import struct
import sys
import zipfile

import atheris

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))
with atheris.instrument_imports(include=["lucid.serialization"]):
    import lucid
    from lucid import serialization
    from lucid.serialization import legacy, torch_format  # `load` imports them when they are needed: they would not be watched
    from tests.serialization.test_corpus import READERS, REFUSALS


def one(data):
    if not data:
        return
    try:
        READERS[data[0] % len(READERS)](io.BytesIO(data[1:]))
    except REFUSALS:
        pass


def seeds(folder):
    """A whole file of each kind, small, and what was kept."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(ROOT / "tests" / "serialization" / "corpus.zip") as kept:
        kept.extractall(folder)
    value = {"w": lucid.ones(2, 2).t(), "p": lucid.nn.Parameter(lucid.ones(1)), "n": [1, (2.5, "a", None, True, b"x")]}
    for number, write in enumerate(
        (
            lambda f: lucid.save(value, f),
            lambda f: f.write(pickle.dumps({"a": lucid.ones(2)})),
            lambda f: f.write(pickle.dumps(value["n"], 2)),
        )
    ):
        file = io.BytesIO()
        write(file)
        (folder / f"load-{number}").write_bytes(b"\0" + file.getvalue())
    for number, save in enumerate((serialization.save_safetensors, None, serialization.save_npz), 1):
        file = io.BytesIO()
        if save:
            save({"a": lucid.ones(2), "b": lucid.ones(1, dtype=lucid.int8)}, file)
        else:
            serialization.save_npy(lucid.ones(2, 3), file)
        (folder / f"reader-{number}").write_bytes(bytes([number]) + file.getvalue())
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", (folder / "reader-2").read_bytes()[1:])
    (folder / "reader-3-packed").write_bytes(b"\3" + packed.getvalue())
    for protocol in (2, 4):
        file = io.BytesIO()
        torch_format.write({**value, "d": lucid.float16, "c": {1, 2}, "s": lucid.Size([1])}, file, protocol)
        with zipfile.ZipFile(file) as archive:
            (folder / f"reader-4-{protocol}").write_bytes(b"\4" + archive.read("archive/data.pkl"))
    (folder / "load-legacy").write_bytes(b"\0" + old_file())


def old_file():
    """A file as PyTorch wrote them before its zip format: one tensor of two numbers."""
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0aX\3\0\0\0cpuK\2NtQ"
    tensor += b"K\0K\2\x85K\1\x85\x89ccollections\nOrderedDict\n)RtR."
    system = {"protocol_version": legacy.PROTOCOL, "little_endian": True}
    parts = [pickle.dumps(part, 2) for part in (legacy.MAGIC, legacy.PROTOCOL, system)]
    return b"".join([*parts, b"\x80\2", tensor, pickle.dumps(["a"], 2), struct.pack("<qff", 2, 1.0, 2.0)])


def watch(event, arguments):
    """Readers may import Python's modules and nothing else that touches the system."""
    if event.startswith(("os.system", "subprocess.", "socket.", "os.exec", "os.spawn", "shutil.", "os.remove", "os.mkdir")):
        raise AssertionError(f"a reader did {event} {arguments!r:.200}")


if __name__ == "__main__":
    options = [a for a in sys.argv[1:] if a.startswith("-")]
    folders = [a for a in sys.argv[1:] if not a.startswith("-")] or ["build/fuzz"]
    seeds(pathlib.Path(folders[0]))
    sys.addaudithook(watch)
    atheris.Setup([sys.argv[0], *options, *folders], one)
    atheris.Fuzz()
