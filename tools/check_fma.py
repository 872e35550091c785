#!/usr/bin/env python3
"""The matrix kernels are made of fused multiply-adds: without them half the speed is gone.   usage: check_fma.py BUILD_DIR"""

import pathlib
import re
import subprocess
import sys

SKIP = 77
LEAST = {"avx2": 12, "avx512": 14}  # at least a tile of accumulators per kernel; 6 x 16 and 14 x 32 floats


def main(build):
    failed = False
    for isa, least in LEAST.items():
        objects = sorted(pathlib.Path(build, f"libunrolled_{isa}.a.p").glob("*gemm*.o"))
        if not objects:
            print(f"no {isa} objects in this build: fused multiply-adds were NOT counted")
            return SKIP
        code = "".join(subprocess.run(["objdump", "-d", p], capture_output=True, text=True, check=True).stdout for p in objects)
        fused, apart = (len(re.findall(pattern, code)) for pattern in (r"\tvfn?m(?:add|sub)\d+p[sd]", r"\tvmulp[sd]"))
        failed |= fused < least or apart > fused
        print(
            f"{isa}: {fused} packed fused multiply-adds, {apart} products apart (at least {least} fused, and more than apart)"
        )
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
