"""The transformer: encoder, decoder and both together."""

import copy

from ... import _C
from .. import functional as F
from ..init import xavier_uniform_
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm


def _activation(activation):
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(F, activation)


def _clones(module, n):
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


def _causal_mask(n, device=None, dtype=None):
    return _C.triu(_C.full((n, n), float("-inf"), dtype=dtype or _C.get_default_dtype(), device=device), diagonal=1)


def _is_causal(mask, given, size=None):
    """Whether a mask hides what comes later and nothing else, if the caller did not say."""
    if given is not None or mask is None:
        return bool(given)
    n = size if size is not None else mask.size(-2)
    causal = _causal_mask(n, mask.device, mask.dtype if mask.is_floating_point() else None)
    return mask.size() == causal.size() and bool((mask == causal).all())


def _additive(mask, name, like, other=None, other_name="", check_other=True):
    """A mask as numbers to be added, of the dtype of the attention; None stays None."""
    if mask is None:
        return None
    if mask.dtype != _C.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if check_other and other is not None and mask.dtype != (other if isinstance(other, _C.dtype) else other.dtype):
        import warnings

        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.", stacklevel=3
        )
    if mask.is_floating_point():
        return mask
    return _C.zeros_like(mask, dtype=like).masked_fill_(mask, float("-inf"))


class _Layer(Module):
    """What encoder and decoder layers share: the feed-forward block, and where the norms are."""

    __constants__ = ["norm_first"]

    def _feed_forward_parts(self, d_model, dim_feedforward, dropout, bias, options):
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **options)

    def _feed_forward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _norms_and_dropouts(self, n, d_model, layer_norm_eps, dropout, bias, norm_first, options):
        self.norm_first = norm_first
        for i in range(1, n + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options))
        for i in range(1, n + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))

    def _chain(self, x, *blocks):
        """x plus every block of it, normalised before the block or after the sum."""
        for i, block in enumerate(blocks, 1):
            norm, dropout = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
            x = x + dropout(block(norm(x))) if self.norm_first else norm(x + dropout(block(x)))
        return x

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("activation", F.relu)


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network.

    >>> layer = lucid.nn.TransformerEncoderLayer(d_model=8, nhead=2, batch_first=True)
    >>> tuple(layer(lucid.ones(3, 5, 8)).shape)
    (3, 5, 8)
    """

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **options)
        self._feed_forward_parts(d_model, dim_feedforward, dropout, bias, options)
        self._norms_and_dropouts(2, d_model, layer_norm_eps, dropout, bias, norm_first, options)
        self.activation = _activation(activation)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        padding = _additive(src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask, "src_mask")
        mask = _additive(src_mask, "src_mask", src.dtype, check_other=False)

        def attend(x):
            return self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal)[0]

        return self._chain(src, attend, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's output, and a feed-forward network.

    >>> layer = lucid.nn.TransformerDecoderLayer(d_model=8, nhead=2)
    >>> tuple(layer(lucid.ones(5, 3, 8), lucid.ones(7, 3, 8)).shape)
    (5, 3, 8)
    """

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        options = {"device": device, "dtype": dtype}
        heads = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **options}
        self.self_attn = MultiheadAttention(d_model, nhead, **heads)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **heads)
        self._feed_forward_parts(d_model, dim_feedforward, dropout, bias, options)
        self._norms_and_dropouts(3, d_model, layer_norm_eps, dropout, bias, norm_first, options)
        self.activation = _activation(activation)

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=False,
        memory_is_causal=False,
    ):
        def attend(x):
            return self.self_attn(
                x, x, x, attn_mask=tgt_mask, key_padding_mask=tgt_key_padding_mask, is_causal=tgt_is_causal, need_weights=False
            )[0]

        def look(x):
            return self.multihead_attn(
                x,
                memory,
                memory,
                attn_mask=memory_mask,
                key_padding_mask=memory_key_padding_mask,
                is_causal=memory_is_causal,
                need_weights=False,
            )[0]

        return self._chain(tgt, attend, look, self._feed_forward)


class TransformerEncoder(Module):
    """Encoder layers one after the other.

    >>> layer = lucid.nn.TransformerEncoderLayer(d_model=8, nhead=2)
    >>> tuple(lucid.nn.TransformerEncoder(layer, num_layers=2)(lucid.ones(5, 3, 8)).shape)
    (5, 3, 8)
    """

    __constants__ = ["norm"]

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers, self.num_layers, self.norm = _clones(encoder_layer, num_layers), num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        padding = _additive(src_key_padding_mask, "src_key_padding_mask", src.dtype, mask, "mask")
        mask = _additive(mask, "mask", src.dtype, check_other=False)
        batch_first = getattr(getattr(self.layers[0], "self_attn", None), "batch_first", False) if len(self.layers) else False
        length = src.size(1 if src.dim() == 3 and batch_first else 0)
        is_causal = _is_causal(mask, is_causal, length)
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=is_causal, src_key_padding_mask=padding)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Decoder layers one after the other.

    >>> layer = lucid.nn.TransformerDecoderLayer(d_model=8, nhead=2)
    >>> tuple(lucid.nn.TransformerDecoder(layer, num_layers=2)(lucid.ones(5, 3, 8), lucid.ones(7, 3, 8)).shape)
    (5, 3, 8)
    """

    __constants__ = ["norm"]

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers, self.num_layers, self.norm = _clones(decoder_layer, num_layers), num_layers, norm

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        batch_first = getattr(getattr(self.layers[0], "self_attn", None), "batch_first", False) if len(self.layers) else False
        tgt_is_causal = _is_causal(tgt_mask, tgt_is_causal, tgt.size(1 if tgt.dim() == 3 and batch_first else 0))
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder.

    >>> model = lucid.nn.Transformer(d_model=8, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16)
    >>> tuple(model(lucid.ones(7, 3, 8), lucid.ones(5, 3, 8)).shape)
    (5, 3, 8)
    """

    def __init__(
        self,
        d_model=512,
        nhead=8,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        custom_encoder=None,
        custom_decoder=None,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        options = {"device": device, "dtype": dtype}
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm():
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)

        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            encoder_layer = TransformerEncoderLayer(*layer, **options)
            self.encoder = TransformerEncoder(encoder_layer, num_encoder_layers, norm())
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            decoder_layer = TransformerDecoderLayer(*layer, **options)
            self.decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm())
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def _reset_parameters(self):
        for p in self.parameters():
            if p.dim() > 1:
                xavier_uniform_(p)

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """A mask that hides what comes later: -inf above the diagonal.

        >>> lucid.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return _causal_mask(sz, device, dtype)

    def forward(
        self,
        src,
        tgt,
        src_mask=None,
        tgt_mask=None,
        memory_mask=None,
        src_key_padding_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        src_is_causal=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        batched = src.dim() == 3
        at = 0 if self.batch_first else 1
        if batched and src.size(at) != tgt.size(at):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )


__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"]
