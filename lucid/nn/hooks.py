"""Hooks of all modules, and the handle that registering a hook returns.

>>> handle = lucid.nn.hooks.register_module_forward_hook(lambda module, args, output: print(type(module).__name__))
>>> _ = lucid.nn.Identity()(3)
Identity
>>> handle.remove()
"""

from .modules._base.hooks import *  # noqa: F403
from .modules._base.hooks import __all__  # noqa: F401
