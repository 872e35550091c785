"""Lightning Core's facade: `bridges` to other libraries, `checkpoint` files.

>>> import lightning_core_api
>>> lightning_core_api.checkpoint.checkpoint_compatibility_matrix()["lc_checkpoint_v2"]["write"]
True
"""

import importlib

__all__ = ["bridges", "checkpoint"]


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module 'lightning_core_api' has no attribute '{name}'")
    return importlib.import_module(f"lightning_core_api.{name}")
