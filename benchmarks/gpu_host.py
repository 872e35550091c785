#!/usr/bin/env python3
"""What the host does for a call on the GPU, without a GPU: the emulated driver (tests/gpu/emulator) counts launches and runs
none. Microseconds of host time per call and per launch; a real driver adds 2 to 4 for each.   usage: gpu_host.py [case ...]

Libraries are not there: products and convolutions are own kernels, which the small cases use on a GPU too.
"""

import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parents[1] / "tests/gpu/emulator"
SOURCES = [TESTS / f"{name}.cpp" for name in ("emulator", "blocks", "compiler", "races")]
CASES = {
    "add of 64 floats": 20000,
    "MLP 784-256-10, 64 rows: Adam step": 1000,
    "LeNet-5, 64 images: forward": 1000,
    "LeNet-5, 64 images: Adam step": 500,
    "LoRA, 1 row, 512-8-512": 10000,
    "LSTM 32-64, 16 x 32: Adam step": 50,
}


def emulated():
    """Run this file again in a process that finds the emulated driver."""
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "libcuda.so.1")
        subprocess.run(["g++", "-std=c++17", "-shared", "-fPIC", "-O2", *SOURCES, "-o", library, "-ldl"], check=True)
        os.symlink(library, os.path.join(folder, "libnvrtc.so.13"))
        names = {"LUCID_CUDA_PATH": folder, "LUCID_CACHE_DIR": folder, "EMULATOR_CC": "g++", "EMULATOR_IDLE": "1"}
        names["EMULATOR_PRELUDE"] = str(TESTS / "prelude.h")
        return subprocess.run([sys.executable, *sys.argv], env=os.environ | names, check=False).returncode


def main(chosen):
    import gpu

    import lucid

    driver = ctypes.CDLL(os.path.join(os.environ["LUCID_CUDA_PATH"], "libcuda.so.1"))
    driver.emulated_launches.restype = ctypes.c_int64
    for name, count in CASES.items():
        if chosen and not any(word in name for word in chosen):
            continue
        run = gpu.CASES[name][0](lucid)
        for _ in range(5):
            run()
        best = float("inf")
        for _ in range(7):
            before, start = driver.emulated_launches(), time.perf_counter()
            for _ in range(count):
                run()
            best = min(best, (time.perf_counter() - start) / count * 1e6)
            launches = (driver.emulated_launches() - before) / count
        print(f"{name:40} {best:8.2f} us, {launches:4.0f} launches, {best / launches:5.2f} us each", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) if "EMULATOR_IDLE" in os.environ else emulated())
