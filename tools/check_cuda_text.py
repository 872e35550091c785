#!/usr/bin/env python3
"""Every CUDA kernel text compiles with NVRTC; no GPU is needed for that.   usage: check_cuda_text.py BUILD_DIR"""

import ctypes
import importlib.util
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
    compiled = 0
    for text in texts(ctypes.CDLL(str(pathlib.Path(build, "liblucid.so").resolve()))):
        log = compile_text(nvrtc, text)
        if log:
            lines = text.decode().splitlines()
            print("\n".join(line for line in lines if re.match("typedef .* (T|ACC);|#define LOAD|__device__ inline", line)))
            print(log[:2000])
            return 1
        compiled += 1
    print(f"{compiled} CUDA programs compile")
    return 0 if compiled else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
