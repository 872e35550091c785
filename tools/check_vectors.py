#!/usr/bin/env python3
"""Vector kernels contain vector instructions.   usage: check_vectors.py BUILD_DIR

Every float32 row of scalar.def that says `simd` or `deep` has packed arithmetic: compilers differ in which conditions they turn
into blends, and a row that one of them leaves scalar is five times slower there. The matrix kernels are made of fused
multiply-adds: without them half the speed is gone. No other test would fail.
"""

import pathlib
import re
import subprocess
import sys

SKIP = 77
WIDE = {
    "avx2": ("ymm", 12),
    "avx512": ("zmm", 14),
}  # registers; a tile of accumulators per matrix kernel: 6 x 16, 14 x 32 floats
FEW = 3  # packed instructions: an add has a load with it, the sum and a store
SCALAR = {"where": "a choice, not arithmetic"}


def code(build, objects):
    """The instructions of the object files that the pattern names, as text; empty where this build has none."""
    paths = sorted(pathlib.Path(build).glob(objects))
    command = ["objdump", "-d", "--no-show-raw-insn", *paths]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout if paths else ""


def scalar_rows(text, register):
    """How many float32 kernels there are, and the ops of those without packed arithmetic."""
    found, same = {}, {}
    for function in re.split(r"\n(?=[0-9a-f]+ <)", text):
        named = re.match(r"[0-9a-f]+ <cpu_(\w+?)_f32(?:_whole)?(?:\.\w+)*>:", function)
        if named:
            packed = len(re.findall(rf"\tv\w+ .*{register}", function))
            found[named[1]] = max(found.get(named[1], 0), packed)
            for other in re.findall(r"\t(?:jmp|lea) .*<cpu_(\w+?)_f32(?:_whole)?>", function):
                if other != named[1]:
                    same[named[1]] = other  # folded with an equal one
    least = {op: max(n, found.get(same.get(op), 0)) for op, n in found.items()}
    return len(found), sorted(op for op, n in least.items() if n < FEW and op not in SCALAR)


def main(build):
    failed = False
    for isa, (register, least) in WIDE.items():
        loops, products = code(build, f"libkernels_{isa}.a.p/*loops.isa.c.o"), code(build, f"libunrolled_{isa}.a.p/*gemm*.o")
        if not loops or not products:
            print(f"no {isa} objects in this build: packed arithmetic was NOT counted")
            return SKIP
        count, scalar = scalar_rows(loops, register)
        fused, apart = (len(re.findall(pattern, products)) for pattern in (r"\tvfn?m(?:add|sub)\d+p[sd]", r"\tvmulp[sd]"))
        print(f"{isa}: {count} float32 kernels; without packed arithmetic: {', '.join(scalar) or 'none'}")
        print(
            f"{isa}: {fused} packed fused multiply-adds, {apart} products apart (at least {least} fused, and more than apart)"
        )
        failed |= not count or bool(scalar) or fused < least or apart > fused
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
