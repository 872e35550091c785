"""Downloads of weights, by PyTorch's old name.

>>> lucid.utils.model_zoo.load_url is lucid.hub.load_state_dict_from_url
True
"""

from ..hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
