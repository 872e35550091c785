"""Hooks of all modules, and the handle that registering a hook returns.

>>> handle = lucid.nn.hooks.register_module_forward_hook(lambda module, args, output: print(type(module).__name__))
>>> _ = lucid.nn.Identity()(3)
Identity
>>> handle.remove()
"""

from .modules._hooks import (
    RemovableHandle,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_load_state_dict_post_hook,
    register_module_load_state_dict_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

__all__ = [
    "RemovableHandle",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_load_state_dict_post_hook",
    "register_module_load_state_dict_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]
