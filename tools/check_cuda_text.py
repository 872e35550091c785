#!/usr/bin/env python3
"""Every CUDA kernel text compiles with NVRTC; no GPU is needed for that.   usage: check_cuda_text.py BUILD_DIR"""

import concurrent.futures
import ctypes
import importlib.util
import os
import pathlib
import re
import sys

SKIP = 77
ARCHITECTURE = b"--gpu-architecture=sm_90"


def find_nvrtc():
    """The library of the nvidia-cuda-nvrtc wheel, or the system's."""
    spec = importlib.util.find_spec("nvidia")
    folders = [pathlib.Path(p) for p in spec.submodule_search_locations] if spec else []
    candidates = [str(p) for folder in folders for p in sorted(folder.glob("*/lib/libnvrtc.so.*")) if "builtins" not in p.name]
    for builtins in [str(p) for folder in folders for p in sorted(folder.glob("*/lib/libnvrtc-builtins.so.*"))]:
        ctypes.CDLL(builtins)  # the compiler looks for it by name only
    for name in [*candidates, "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def texts(library):
    library.lc_cuda_kernel_text.restype = ctypes.c_char_p
    i = 0
    while text := library.lc_cuda_kernel_text(i):
        yield text
        i += 1


def compile_text(nvrtc, text):
    """The log if it does not compile, else None."""
    program = ctypes.c_void_p()
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"lucid.cu", 0, None, None):
        return "no program"
    options = (ctypes.c_char_p * 3)(ARCHITECTURE, b"--fmad=false", b"--std=c++17")
    failed = nvrtc.nvrtcCompileProgram(program, 3, options)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode() if failed else None


def main(build):
    nvrtc = find_nvrtc()
    if not nvrtc:
        print("NVRTC is not installed (pip install nvidia-cuda-nvrtc): the CUDA texts were NOT compiled")
        return SKIP
    sources = list(texts(ctypes.CDLL(str(pathlib.Path(build, "liblucid.so").resolve()))))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for text, log in zip(sources, pool.map(lambda text: compile_text(nvrtc, text), sources)):
            if log:
                lines = text.decode().splitlines()
                print("\n".join(line for line in lines if re.match("typedef .* [TUVWXYR];|#define (VARIANT|WALK)", line)))
                print(log[:2000])
                pool.shutdown(cancel_futures=True)
                return 1
    print(f"{len(sources)} CUDA programs compile")
    return 0 if sources else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
