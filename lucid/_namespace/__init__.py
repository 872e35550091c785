"""Public names of `lucid` that are written in Python. `lucid/__init__.py` loads a file when one of its names is used."""
