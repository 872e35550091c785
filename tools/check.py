#!/usr/bin/env python3
"""Run every gate and end in a summary line. A gate that cannot run here says so; it never passes silently.

usage: check.py BUILD_DIR [GATE...]
"""

import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIP = 77
PYTHON = sys.executable
TOOLS = pathlib.Path(PYTHON).parent


def tool(name):
    beside = TOOLS / name
    return str(beside) if beside.exists() else shutil.which(name)


def tracked(*patterns):
    listing = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return listing.stdout.split()


def run(*command):
    return subprocess.run(command, cwd=ROOT).returncode


def script(name, *args):
    return lambda: run(PYTHON, f"tools/check_{name}.py", *args)


def clang_format():
    if not tool("clang-format"):
        print("clang-format is not installed: C formatting was NOT checked")
        return SKIP
    return run(tool("clang-format"), "--dry-run", "--Werror", *tracked("*.c", "*.h", "*.cuh"))


def ruff():
    if not tool("ruff"):
        print("ruff is not installed: Python formatting was NOT checked")
        return SKIP
    return run(tool("ruff"), "check", "--quiet", ".") or run(tool("ruff"), "format", "--check", "--quiet", ".")


def clang_warnings():
    if not shutil.which("clang"):
        print("clang is not installed: its warnings were NOT checked")
        return SKIP
    return run("make", "--no-print-directory", "build", "MODE=clang", f"PYTHON={PYTHON}")


def gates(build):
    return {
        "layers": script("layers"),
        "rooms": script("rooms"),
        "text": script("text"),
        "ops": script("ops"),
        "duplication": script("duplication"),
        "clang-format": clang_format,
        "ruff": ruff,
        "clang warnings": clang_warnings,
        "size": script("size", build),
        "vectors": script("vectors", build),
        "CUDA texts": script("cuda_text", build),
        "stubs": script("stubs", build),
        "types": script("types", build),
        "dispatch": script("dispatch"),
        "NEON": script("neon"),
    }


def main(build, *chosen):
    results = {}
    for name, gate in gates(build).items():
        if chosen and name not in chosen:
            continue
        print(f"== {name}", flush=True)
        start = time.monotonic()
        code = gate()
        results[name] = "passed" if code == 0 else "SKIPPED" if code == SKIP else "FAILED"
        print(f"   {results[name]} in {time.monotonic() - start:.1f} s", flush=True)
    named = {r: [n for n, result in results.items() if result == r] for r in ("FAILED", "SKIPPED")}
    passed = sum(r == "passed" for r in results.values())
    print(f"check: {passed} passed" + "".join(f", {len(n)} {r}: {', '.join(n)}" for r, n in named.items() if n))
    return bool(named["FAILED"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
