"""Pictures: transforms for training, readers of local data sets, grids and files of images.

>>> from lucid.vision import transforms as T
>>> augment = T.Compose([T.RandomCrop(28, padding=2), T.RandomHorizontalFlip(), T.Normalize([0.5], [0.5])])
>>> augment(lucid.rand(1, 28, 28)).shape
lucid.Size([1, 28, 28])
"""

_SUBMODULES = ("datasets", "transforms", "utils")
_LATER = {"make_grid": "utils", "save_image": "utils"}


def __getattr__(name):
    from importlib import import_module

    if name in _SUBMODULES:
        return import_module(f"lucid.vision.{name}")
    if name in _LATER:
        return getattr(import_module(f"lucid.vision.{_LATER[name]}"), name)
    raise AttributeError(f"module 'lucid.vision' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_SUBMODULES, *_LATER})
