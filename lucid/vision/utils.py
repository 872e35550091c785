"""Grids of pictures, and pictures as files. PNG is written by this file; other formats need Pillow.

>>> from lucid.vision.utils import make_grid
>>> make_grid(lucid.rand(6, 1, 8, 8), nrow=3).shape
lucid.Size([3, 22, 32])
"""

from .. import _C


def make_grid(tensor, nrow=8, padding=2, normalize=False, value_range=None, scale_each=False, pad_value=0.0):
    """Pictures (n, channels, height, width), or a list of them, side by side: nrow in a row. Grey ones get three channels.

    normalize: values are moved to 0 ... 1, by value_range or else their own range (scale_each: each picture's own).

    >>> from lucid.vision.utils import make_grid
    >>> make_grid([lucid.zeros(1, 1, 1), lucid.ones(1, 1, 1)], padding=1, pad_value=0.5)[0].tolist()
    [[0.5, 0.5, 0.5, 0.5, 0.5], [0.5, 0.0, 0.5, 1.0, 0.5], [0.5, 0.5, 0.5, 0.5, 0.5]]
    """
    if isinstance(tensor, (list, tuple)) and all(isinstance(t, _C.Tensor) for t in tensor) and tensor:
        tensor = _C.stack(list(tensor))
    if not isinstance(tensor, _C.Tensor):
        raise TypeError(f"tensor or list of tensors expected, got {type(tensor)}")
    if tensor.ndim not in (2, 3, 4):
        raise ValueError(f"pictures are (n, channels, height, width), not of shape {tuple(tensor.shape)}")
    if nrow < 1 or padding < 0:
        raise ValueError(f"nrow is at least 1 and padding at least 0, not {nrow} and {padding}")
    tensor = tensor[(None,) * (4 - tensor.ndim)] if tensor.ndim < 4 else tensor
    tensor = _C.cat([tensor] * 3, 1) if tensor.shape[1] == 1 else tensor
    if normalize:
        if value_range is not None and not isinstance(value_range, tuple):
            raise TypeError("value_range has to be a tuple (min, max) if specified. min and max are numbers")
        tensor = tensor.clone()
        for part in tensor if scale_each else [tensor]:
            low, high = value_range or (float(part.min()), float(part.max()))
            part.clamp_(low, high).sub_(low).div_(max(high - low, 1e-5))
    n, c, h, w = tensor.shape
    if n == 1:
        return tensor[0]
    columns = min(nrow, n)
    rows = -(-n // columns)
    grid = tensor.new_full((c, (h + padding) * rows + padding, (w + padding) * columns + padding), pad_value)
    for i in range(n):
        y, x = (i // columns) * (h + padding) + padding, (i % columns) * (w + padding) + padding
        grid[:, y : y + h, x : x + w] = tensor[i]
    return grid


def png(image):
    """The bytes of a PNG file of a picture (1 or 3 channels, height, width) of type uint8.

    >>> from lucid.vision.utils import png
    >>> png(lucid.zeros(1, 2, 2, dtype=lucid.uint8))[1:4]
    b'PNG'
    """
    import struct
    import zlib

    if image.dtype != _C.uint8 or image.ndim != 3 or image.shape[0] not in (1, 3):
        raise TypeError(f"a picture of type uint8 with 1 or 3 channels is expected, not {image.dtype}{list(image.shape)}")
    c, h, w = image.shape
    rows = image.detach().cpu().permute(1, 2, 0).reshape(h, w * c)
    raw = bytes(memoryview(_C.cat([_C.zeros(h, 1, dtype=_C.uint8), rows], 1).contiguous().reshape(-1)))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", w, h, 8, 2 if c == 3 else 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw, 6)) + chunk(b"IEND", b"")


def save_image(tensor, fp, format=None, **kwargs):  # noqa: A002 (torchvision's name)
    """Write a picture, or a grid of pictures with the settings of `make_grid`, of values 0 ... 1, to a file or file object.

    >>> import io
    >>> from lucid.vision.utils import save_image
    >>> file = io.BytesIO()
    >>> save_image(lucid.rand(4, 3, 8, 8), file, format="png", nrow=2)
    >>> file.getvalue()[1:4]
    b'PNG'
    """
    grid = make_grid(tensor, **kwargs)
    image = (grid * 255 + 0.5).clamp(0, 255).to(_C.uint8)
    name = "" if hasattr(fp, "write") else str(fp)
    kind = (format or name.rpartition(".")[2]).lower()
    if kind == "png":
        data = png(image)
        if not name:
            fp.write(data)
            return
        with open(fp, "wb") as file:
            file.write(data)
        return
    from .transforms.functional import to_pil_image

    to_pil_image(image).save(fp, format=format)
