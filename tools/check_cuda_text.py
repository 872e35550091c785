#!/usr/bin/env python3
"""Every CUDA kernel text compiles with NVRTC for Hopper, one of each file for Turing, Ampere and Blackwell, without a GPU; and
the registers of its kernels suffice for their blocks (kernels/types.cuh).

usage: check_cuda_text.py BUILD_DIR

NVRTC compiles one text at a time in a process, and keeps memory of each: the work is spread over processes. Texts that have
compiled before are not compiled again (BUILD_DIR/cuda_texts.txt).
"""

import ctypes
import hashlib
import importlib.util
import multiprocessing
import os
import pathlib
import re
import sys

SKIP = 77
EVERY, SOME = "sm_90", ("sm_75", "sm_80", "sm_100")  # the architectures that take all texts, and a part
NOT_ON_TURING = b"cp.async"  # flash.c does not start it there
REGISTERS, THREADS = 65536, 512  # of a block; THREADS: of a kernel that is no BLOCK_KERNEL_OF


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


def one_of_each(sources):
    """The first text of each combination of kernels, and of the types with code of their own."""
    found = {}
    for text in sources:
        types = re.findall(rb"^typedef (\w+) [TU];", text, re.M)
        own = frozenset(t for t in types if t in (b"bf16", b"f16", b"c64"))
        found.setdefault((tuple(re.findall(rb"KERNEL\((\w+)", text)), own), text)
    return list(found.values())


def too_wide(text, log):
    """Conditions, in the text's own names, on the threads of its kernels, from the assembler's log of their registers."""
    for name, used in re.findall(r"entry function '(\w+)'.*?Used (\d+) registers", log, re.S):
        each = (int(used) + 7) // 8 * 8
        said = re.search(rf"\bBLOCK_KERNEL(_OF\((.+), |\(){name},".encode(), text)
        if said and each * THREADS > REGISTERS:
            threads = said[2].decode() if said[2] else THREADS
            yield f'static_assert(({threads}) * {each} <= {REGISTERS}, "{name} uses {used} registers in each thread");'


def compile_text(nvrtc, text, architecture):
    """What is wrong with it, or None."""
    failed, log = compiled(nvrtc, text, architecture)
    conditions = "" if failed else "\n".join(too_wide(text, log))
    if conditions:
        failed, log = compiled(nvrtc, text + conditions.encode(), architecture)
    return log if failed else None


def compiled(nvrtc, text, architecture):
    """Whether it failed, and the log."""
    program = ctypes.c_void_p()
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"lucid.cu", 0, None, None):
        return True, "no program"
    given = f"--gpu-architecture={architecture}".encode(), b"--fmad=false", b"--std=c++17", b"--ptxas-options=-v"
    failed = nvrtc.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return bool(failed), log.value.decode()


def compile_job(job):
    """In a process of its own, which loads NVRTC once."""
    if "nvrtc" not in globals():
        globals()["nvrtc"] = find_nvrtc()
    return compile_text(nvrtc, *job)  # noqa: F821


def key(nvrtc, job):
    version = (ctypes.c_int * 2)()
    nvrtc.nvrtcVersion(ctypes.byref(version), ctypes.byref(version, 4))
    text, architecture = job
    return hashlib.sha256(f"{version[0]}.{version[1]} {architecture} ".encode() + text).hexdigest()


def main(build):
    nvrtc = find_nvrtc()
    if not nvrtc:
        print("NVRTC is not installed (pip install nvidia-cuda-nvrtc): the CUDA texts were NOT compiled")
        return SKIP
    sources = list(texts(ctypes.CDLL(str(pathlib.Path(build, "liblucid.so").resolve()))))
    some = one_of_each(sources)
    # The newest architecture first: a text that takes minutes there does not keep the other processes waiting at the end.
    jobs = [
        (text, architecture)
        for architecture in reversed(SOME)
        for text in some
        if architecture != "sm_75" or NOT_ON_TURING not in text
    ] + [(text, EVERY) for text in sources]
    known = pathlib.Path(build, "cuda_texts.txt")
    before = set(known.read_text().split()) if known.exists() else set()
    keys = {job: key(nvrtc, job) for job in jobs}
    new = [job for job in jobs if keys[job] not in before]
    good = [keys[job] for job in jobs if keys[job] in before]
    with multiprocessing.get_context("spawn").Pool(os.cpu_count(), maxtasksperchild=64) as pool:
        for (text, architecture), log in zip(new, pool.imap(compile_job, new, chunksize=4)):
            if log:
                lines = text.decode().splitlines()
                print(f"for {architecture}:")
                print("\n".join(line for line in lines if re.match("typedef .* [TUVWXYR];|#define (VARIANT|WALK)", line)))
                print(log[:2000])
                break
            good.append(keys[text, architecture])
    known.write_text("\n".join(good) + "\n")
    if len(good) < len(jobs):
        return 1
    print(f"{len(sources)} CUDA programs compile for {EVERY}, {len(some)} of them for {', '.join(SOME)}")
    return 0 if sources else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
