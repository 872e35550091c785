"""Which kernels of the CPU have none on CUDA: the gap, op by op. Asks the tables, so it needs no GPU.

usage: python -m tests.gpu.coverage [BUILD_DIR]
"""

import ctypes
import pathlib
import re
import sys

DTYPES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex32 complex64 complex128"
).split()


class Op(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("kernel", ctypes.c_int), ("name", ctypes.c_char_p)]


class Backend(ctypes.Structure):
    """The first fields of lc_backend (engine/backend/backend.h)."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("values", ctypes.c_bool),
        ("host_memory", ctypes.c_bool),
        ("fuses", ctypes.c_uint32),
        ("half", ctypes.c_uint32),
        ("last", ctypes.c_uint32),
        ("image_format", ctypes.c_int),
        ("has", ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_int, ctypes.c_int)),
    ]


def gap(build):
    """[(op, dtypes that only the CPU has, dtypes that both have)] of every op with such dtypes."""
    library = ctypes.CDLL(str(pathlib.Path(build, "liblucid.so").resolve()))
    library.lc_cuda_has_kernel.restype = ctypes.c_bool
    cpu = ctypes.POINTER(Backend).in_dll(library, "lc_backends").contents
    names = re.findall(
        r"X\((\w+)\)", next(line for line in pathlib.Path(build, "op_ids.gen.h").open() if "LC_OP_NAMES(X)" in line)
    )
    ops, found = (ctypes.POINTER(Op) * len(names)).in_dll(library, "lc_ops"), []
    for op in (ops[i].contents for i in range(len(names)) if ops[i]):
        here = [dt for dt in range(len(DTYPES)) if op.kernel == op.id and cpu.has(op.id, dt)]
        missing = [dt for dt in here if not library.lc_cuda_has_kernel(op.id, dt)]
        if missing:
            found.append((op.name.decode(), [DTYPES[dt] for dt in missing], [DTYPES[dt] for dt in here if dt not in missing]))
    return found


def main(build="build/release"):
    found = gap(build)
    for name, missing, present in found:
        print(f"{name:36} {'all: ' if not present else ''}{' '.join(missing)}")
    none = sum(not present for _, _, present in found)
    print(f"{len(found)} ops have kernels on the CPU that CUDA lacks; {none} of them have none at all")


if __name__ == "__main__":
    main(*sys.argv[1:])
