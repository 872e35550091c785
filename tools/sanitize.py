#!/usr/bin/env python3
"""Build with sanitizers and run the tests under them.   usage: sanitize.py MODE JOBS  or  sanitize.py fuzz FOLDER SECONDS

The C tests run with leak detection. Python is not built with sanitizers, so the runtime is preloaded and its own "leaks" are
not looked for; under the GIL ThreadSanitizer sees no races of Python either, so it runs the C tests only.
fuzz: tools/fuzz_readers.py with an ASan build, so that the C parts of the readers are watched too.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = ("test_faults", "test_lifetime", "test_tensor", "test_index_ops")
READERS = ("test_damage", "test_corpus")  # of files that are damaged
PACKAGES = {"linalg": ("test_factorisations",), "fft": ("test_fft",), "sparse": ("test_sparse",)}  # kernels of their own
PLACES = {"tensor": FILES, "serialization": READERS, **PACKAGES}
PYTHON_TESTS = ("tests/ops", *(f"tests/{folder}/{name}.py" for folder, names in PLACES.items() for name in names))
# Of the sample tables one dtype is enough here: test_faults has the gradients.
# gcc 13 stores vectors in its copies of stack frames as if these were aligned to 64 bytes, which they are not
ASAN = "detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0"
CHOSEN = " or ".join(("float32", *(name for names in PLACES.values() for name in names)))


def run(command, **environment):
    print("+", " ".join(map(str, command)), flush=True)
    if subprocess.run(command, cwd=ROOT, env=os.environ | environment).returncode:
        sys.exit(f"sanitize: {' '.join(map(str, command))} failed")


def runtime(name):
    """The path of a sanitizer's runtime library, as the compiler knows it."""
    return subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()


def main(mode, jobs):
    make = ["make", "--no-print-directory", f"MODE={mode}", f"JOBS={jobs}", f"PYTHON={sys.executable}"]
    run([*make, "build"])
    strict = {"UBSAN_OPTIONS": "print_stacktrace=1", "TSAN_OPTIONS": "halt_on_error=1"}
    run([*make, "c-test"], ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=0", **strict)
    if "asan" in mode:
        preload = " ".join([runtime("libasan.so"), runtime("libubsan.so")])
        tests = [t for t in PYTHON_TESTS if (ROOT / t).exists()]
        command = [sys.executable, "-m", "pytest", *tests, "-k", CHOSEN, *os.environ.get("PYTEST_ARGS", "").split()]
        command += ["-n", jobs] if importlib.util.find_spec("xdist") else []
        options = {"LD_PRELOAD": preload, "ASAN_OPTIONS": ASAN, **strict}
        options |= {"LUCID_FEW_SAMPLES": "2", "OMP_NUM_THREADS": "1"}
        run(command, PYTHONPATH=str(ROOT / "build" / mode / "pkg"), **options)
    print(f"sanitize: {mode} clean")


def fuzz(folder, seconds):
    """Preload libFuzzer before ASan's runtime, which defines empty versions of its coverage functions."""
    run(["make", "--no-print-directory", "MODE=asan", f"PYTHON={sys.executable}", "build"])
    library = ROOT / "build" / "asan" / "libfuzzer.so"
    fuzzer = pathlib.Path(importlib.util.find_spec("atheris").origin).parent.parent / "libclang_rt.fuzzer_no_main.a"
    run(["g++", "-shared", "-o", library, "-Wl,--whole-archive", fuzzer, "-Wl,--no-whole-archive"])
    options = {"LD_PRELOAD": f"{library} {runtime('libasan.so')}", "ASAN_OPTIONS": f"{ASAN}:verify_asan_link_order=0"}
    command = [sys.executable, "tools/fuzz_readers.py", folder, f"-max_total_time={seconds}", "-rss_limit_mb=6000"]
    run([*command, "-print_final_stats=1"], PYTHONPATH=str(ROOT / "build" / "asan" / "pkg"), **options)


if __name__ == "__main__":
    fuzz(*sys.argv[2:]) if sys.argv[1] == "fuzz" else main(*sys.argv[1:])
