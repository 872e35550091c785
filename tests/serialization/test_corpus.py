"""Files that guided fuzzing found worth keeping (tools/fuzz_readers.py): every reader refuses them or returns."""

import io
import pathlib
import pickle
import zipfile

import lucid
from lucid import serialization
from lucid.serialization.archive import Writer


def load_pickle(file):
    """The file as the pickle of an archive whose checksums are right and that has two storages."""
    archive = io.BytesIO()
    writer = Writer(archive)
    writer.add("data.pkl", file.read())
    writer.add("data/0", bytes(64))
    writer.add("data/1", bytes(range(16)))
    writer.close()
    archive.seek(0)
    return lucid.load(archive)


READERS = (
    lucid.load,
    serialization.load_safetensors,
    serialization.load_npy,
    lambda file: serialization.load_npz(file, limit=1 << 20),
    load_pickle,
)
REFUSALS = (RuntimeError, pickle.UnpicklingError, TypeError, ValueError, NotImplementedError)


def test_the_corpus():
    with zipfile.ZipFile(pathlib.Path(__file__).with_name("corpus.zip")) as archive:
        files = [archive.read(name) for name in archive.namelist()]
    read = 0
    for data in files:
        for reader in READERS:  # the first byte names one: it is tried first by the fuzzer, and all of them here
            try:
                reader(io.BytesIO(data[1:]))
                read += 1
            except REFUSALS:
                pass
    assert len(files) > 50 and 0 < read < len(files) * len(READERS)
