#!/usr/bin/env python3
"""The engine compiled for AArch64 (its NEON kernels among the rest); its C tests run by qemu.   usage: check_neon.py [FOLDER]

Debian: apt-get install gcc-aarch64-linux-gnu qemu-user. Without them the gate is skipped, and says so.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import list_sources

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIP = 77
PREFIX = "aarch64-linux-gnu"
EMULATOR = ["qemu-aarch64", "-L", f"/usr/{PREFIX}"]
CROSS = f"""[binaries]
c = '{PREFIX}-gcc'
ar = '{PREFIX}-ar'
exe_wrapper = {EMULATOR}
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
"""
TIMEOUT = 600  # seconds: an emulator is some tens of times slower


def main(folder="build/neon"):
    missing = [t for t in (f"{PREFIX}-gcc", EMULATOR[0]) if not shutil.which(t)]
    if missing:
        print(f"{' and '.join(missing)} not installed: NEON was NOT checked")
        return SKIP
    build = ROOT / folder
    state = "\n".join([CROSS, *list_sources.everything()])  # files are found when meson is configured
    stamp = build / "configured"
    if not stamp.exists() or stamp.read_text() != state:
        shutil.rmtree(build, ignore_errors=True)
        build.mkdir(parents=True)
        (build / "cross.ini").write_text(CROSS)
        subprocess.run(
            ["meson", "setup", "--cross-file", build / "cross.ini", "-Dtests=true", "-Dwerror=true", build, ROOT],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        stamp.write_text(state)
    tests = sorted(p.stem for p in (ROOT / "tests/c").glob("test_*.c"))
    if subprocess.run(["ninja", "-C", build, "--quiet", *tests]).returncode:
        return 1
    failed = []
    for test in tests:
        for isa in ("", "base"):
            environment = os.environ | {"LUCID_ISA": isa, "LUCID_TEST_EMULATED": "1"}
            done = subprocess.run([*EMULATOR, build / test], env=environment, cwd=build, timeout=TIMEOUT)
            failed += [f"{test} {isa}".strip()] if done.returncode else []
    print(f"NEON: {len(tests)} C tests, with the widest and the baseline kernels" + (f"; FAILED: {failed}" if failed else ""))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
