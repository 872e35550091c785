#!/usr/bin/env python3
"""Size of an installation: extension and library stripped, Python files and headers.   usage: check_size.py BUILD_DIR"""

import pathlib
import subprocess
import sys
import tempfile

import list_sources

LIMIT = 9_800_000  # of the stripped binaries: kernels of deep learning, linear algebra, spectra, special functions, CUDA


def stripped(path, folder):
    out = pathlib.Path(folder, path.name)
    subprocess.run(["strip", "-o", out, path], check=True)
    return out.stat().st_size


def sizes(build):
    with tempfile.TemporaryDirectory() as folder:
        parts = {p.name.split(".")[0]: stripped(p, folder) for p in [*build.glob("_C.*.so"), build / "liblucid.so"]}
    texts = list_sources.package() + list_sources.public()
    parts["python and headers"] = sum((list_sources.ROOT / p).stat().st_size for p in texts)
    parts["generated"] = sum((build / p).stat().st_size for p in ("op_ids.gen.h", "op_calls.gen.h"))
    return parts


if __name__ == "__main__":
    parts = sizes(list_sources.ROOT / sys.argv[1])
    total, binaries = sum(parts.values()), parts["_C"] + parts["liblucid"]
    print(", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in parts.items()))
    print(f"installed {total / 1e6:.2f} MB; stripped binaries {binaries / 1e6:.2f} MB (limit {LIMIT / 1e6:.1f} MB)")
    sys.exit(binaries > LIMIT)
