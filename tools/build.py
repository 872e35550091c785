#!/usr/bin/env python3
"""Configure if needed, compile, and make the result importable.   usage: build.py [--mode MODE] [--jobs N] BUILD_DIR

BUILD_DIR/pkg holds the packages as an import sees them: links to the Python files, the extension and liblucid. The release
build is linked into lucid/ as well, so that `import lucid` works from the root of the tree.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import list_sources

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(*command):
    if not shutil.which(command[0]):
        sys.exit(f"{command[0]} is not installed: `pip install meson ninja`, or `make venv` for all that tests need")
    if subprocess.run(command, cwd=ROOT).returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}")


def configure(build, mode):
    """New files are found when meson is configured: do it again when the list, the Python or the compiler has changed."""
    state = "\n".join([sys.executable, sys.version, os.environ.get("CC", ""), *list_sources.everything()])
    stamp = build / "configured"
    if stamp.exists() and stamp.read_text() == state:
        return
    same_tools = stamp.exists() and stamp.read_text().splitlines()[:3] == state.splitlines()[:3]
    if build.exists() and not same_tools:
        shutil.rmtree(build)
    native = f"[binaries]\npython = '{sys.executable}'\n"
    build.mkdir(parents=True, exist_ok=True)
    (build / "native.ini").write_text(native)
    again = ["--reconfigure"] if same_tools else []
    options = [f"-Dmode={mode or 'release'}", "-Dtests=true", "-Dwerror=true"]
    run("meson", "setup", *again, *options, "--native-file", build / "native.ini", build, ROOT)
    stamp.write_text(state)


def link(target, name):
    if name.is_symlink() or name.exists():
        if name.is_symlink() and name.readlink() == target:
            return
        name.unlink()
    name.symlink_to(target)


def make_importable(build, into, package):
    into.mkdir(parents=True, exist_ok=True)
    for built in ("_C" + sysconfig.get_config_var("EXT_SUFFIX"), "liblucid.so"):
        link(pathlib.Path(os.path.relpath(build / built, into)), into / built)
    if package:
        sources = {p.name: p for p in (ROOT / "lucid").iterdir() if p.name != "__pycache__" and not p.is_symlink()}
        (into / "_C.pyi").unlink(missing_ok=True)  # of older builds: it would hide the stub package
        for old in into.iterdir():
            if old.is_symlink() and not old.exists():
                old.unlink()
        for name, path in sources.items():
            link(pathlib.Path(os.path.relpath(path, into)), into / name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--mode", default="")
    parser.add_argument("--jobs", default="2")
    args = parser.parse_args()
    build = ROOT / args.build
    if args.mode == "clang":
        os.environ["CC"] = "clang"
    configure(build, args.mode)
    run("ninja", "-C", build, "-j", args.jobs, "--quiet")
    make_importable(build, build / "pkg/lucid", package=True)
    for name in list_sources.PACKAGES[1:]:
        link(pathlib.Path(os.path.relpath(ROOT / name, build / "pkg")), build / "pkg" / name)
    if not args.mode:
        make_importable(build, ROOT / "lucid", package=False)


if __name__ == "__main__":
    main()
