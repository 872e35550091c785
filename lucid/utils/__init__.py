"""Data loading, activation checkpoints, timers (`benchmark`), event files for TensorBoard (`tensorboard`).

>>> loader = lucid.utils.data.DataLoader(range(4), batch_size=2)
>>> [batch.tolist() for batch in loader]
[[0, 1], [2, 3]]
"""

_SUBMODULES = ("_pytree", "benchmark", "checkpoint", "data", "dlpack", "hooks", "model_zoo", "tensorboard")


def __getattr__(name):
    if name in _SUBMODULES:
        from importlib import import_module

        return import_module(f"lucid.utils.{name}")
    from .. import _declared

    return _declared.look("utils", name)


def __dir__():
    return sorted({*globals(), *_SUBMODULES})
