"""Memory formats of convolution weights."""

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d


def _convert(module, kinds, memory_format):
    for m in module.modules():
        if isinstance(m, kinds):
            m.weight.data = m.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """Give the weights of all 2-d convolutions in a module a memory format. Returns the module.

    >>> layer = lucid.nn.Conv2d(8, 4, 3)
    >>> _ = lucid.nn.utils.convert_conv2d_weight_memory_format(layer, lucid.channels_last)
    >>> layer.weight.is_contiguous(memory_format=lucid.channels_last)
    True
    """
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module, memory_format):
    """Give the weights of all 3-d convolutions in a module a memory format. Returns the module.

    >>> layer = lucid.nn.Conv3d(8, 4, 3)
    >>> _ = lucid.nn.utils.convert_conv3d_weight_memory_format(layer, lucid.channels_last_3d)
    >>> layer.weight.is_contiguous(memory_format=lucid.channels_last_3d)
    True
    """
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)


__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]
