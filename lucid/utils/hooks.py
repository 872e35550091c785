"""The handle that registering a hook returns.

>>> handle = lucid.nn.Identity().register_forward_hook(print)
>>> isinstance(handle, lucid.utils.hooks.RemovableHandle)
True
"""

from ..nn.modules._base.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
