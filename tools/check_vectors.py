#!/usr/bin/env python3
"""Every float32 row of scalar.def that says `simd` has packed arithmetic in the wide builds.

usage: check_vectors.py BUILD_DIR

Compilers differ in which conditions they can turn into blends: a row that one of them leaves scalar is five times slower there,
with no test failing.
"""

import pathlib
import re
import subprocess
import sys

SKIP = 77
REGISTERS = {"avx2": "ymm", "avx512": "zmm"}
FEW = 3  # packed instructions: an add has a load with it, the sum and a store
SCALAR = {"where": "a choice, not arithmetic"}


def kernels(path):
    """The code of each float32 kernel, by op."""
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True).stdout
    for function in re.split(r"\n(?=[0-9a-f]+ <)", code):
        named = re.match(r"[0-9a-f]+ <cpu_(\w+)_f32(?:\.\w+)*>:", function)
        if named:
            yield named[1], function


def main(build):
    failed = False
    for isa, register in REGISTERS.items():
        objects = sorted(pathlib.Path(build, f"libkernels_{isa}.a.p").glob("*cpu_loops.c.o"))
        if not objects:
            print(f"no {isa} objects in this build: packed arithmetic was NOT counted")
            return SKIP
        found = {}
        for op, function in kernels(objects[0]):
            packed = len(re.findall(rf"\tv\w+ .*{register}", function))
            same = re.search(r"\tjmp .*<cpu_\w+_f32>", function)  # folded with an equal one
            found[op] = max(found.get(op, 0), FEW if same else packed)
        scalar = sorted(op for op, n in found.items() if n < FEW and op not in SCALAR)
        print(f"{isa}: {len(found)} float32 kernels; without packed arithmetic: {', '.join(scalar) or 'none'}")
        failed |= bool(scalar) or not found
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
