"""Files that guided fuzzing found worth keeping (tools/fuzz_readers.py): every reader refuses them or returns."""

import io
import pathlib
import pickle

import lucid
from lucid import serialization

READERS = (
    lucid.load,
    serialization.load_safetensors,
    serialization.load_npy,
    lambda file: serialization.load_npz(file, limit=1 << 20),
)
REFUSALS = (RuntimeError, pickle.UnpicklingError, TypeError, ValueError, NotImplementedError)


def test_the_corpus():
    files = sorted((pathlib.Path(__file__).parent / "corpus").iterdir())
    read = 0
    for file in files:
        data = file.read_bytes()
        for reader in READERS:  # the first byte names one: it is tried first by the fuzzer, and all of them here
            try:
                reader(io.BytesIO(data[1:]))
                read += 1
            except REFUSALS:
                pass
    assert len(files) > 50 and 0 < read < len(files) * len(READERS)
