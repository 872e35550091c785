#!/usr/bin/env python3
"""The version, from the one place it is written: lucid/version.py. For meson.build."""

import pathlib
import runpy

print(runpy.run_path(str(pathlib.Path(__file__).resolve().parent.parent / "lucid/version.py"))["__version__"])
