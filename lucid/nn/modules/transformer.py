"""The transformer: encoder, decoder and both together."""

import copy

from ... import _C
from .. import functional as F
from .._attention import attend_heads, heads_of
from ..init import xavier_uniform_
from ._base import hooks as _hooks
from .activation import GELU, ReLU
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear, NonDynamicallyQuantizableLinear
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
    """Whether a mask is the causal mask, if the caller did not say."""
    if given is not None or mask is None:
        return bool(given)
    n = size if size is not None else mask.size(-2)
    causal = _causal_mask(n, mask.device, mask.dtype if mask.is_floating_point() else None)
    return mask.size() == causal.size() and bool((mask == causal).all())


def _additive(mask, name, like, other=None, other_name="", check_other=True):
    """A mask as an additive one, of the dtype of the attention; None stays None."""
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


def _is_watched(module):
    return module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks


class _Layer(Module):
    """What encoder and decoder layers share: a block per attention and a feed-forward block, and where the norms are."""

    __constants__ = ["norm_first"]

    _attentions = ("self_attn",)

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
        for name in self._attentions:
            heads = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **options)
            setattr(self, name, heads)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **options)
        self.norm_first = norm_first
        blocks = range(1, len(self._attentions) + 2)
        for i in blocks:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options))
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _feed_forward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

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

    In eval mode, without recording and without hooks, the layer does not call its submodules: residuals and activations are
    fused into the products. The values are the same.

    >>> layer = lucid.nn.TransformerEncoderLayer(d_model=8, nhead=2, batch_first=True)
    >>> tuple(layer(lucid.ones(3, 5, 8)).shape)
    (3, 5, 8)
    """

    def _fused_activation(self):
        """The name of the activation where a linear layer can be fused with it; None for others."""
        if self.activation is F.relu or type(self.activation) is ReLU:
            return "relu"
        if self.activation is F.gelu:
            return "gelu"
        if type(self.activation) is GELU:
            return {"none": "gelu", "tanh": "gelu_tanh"}.get(self.activation.approximate)
        return None

    def _is_fast(self, src):
        """Whether the fused path applies: no training, no hooks, no replaced submodules."""
        attention = self.self_attn
        parts = (self.linear1, self.linear2, attention.out_proj, self.norm1, self.norm2)
        kinds = (Linear, Linear, NonDynamicallyQuantizableLinear, LayerNorm, LayerNorm)
        if self.training or attention.training or src.dim() != 3 or type(attention) is not MultiheadAttention:
            return False
        if any(type(part) is not kind for part, kind in zip(parts, kinds)) or self._fused_activation() is None:
            return False
        inside = (*parts, attention, self.dropout, self.dropout1, self.dropout2)
        if any(_is_watched(m) for m in inside) or _hooks.any_global() or src.shape[-1] != attention.embed_dim:
            return False
        return not _C._grad_enabled() or not (src.requires_grad or any(p.requires_grad for p in self.parameters()))

    def _fast(self, x, attend):
        """The layer in eval mode; attend: the attention before its last projection."""
        activation, first, second, norm1, norm2 = self._fused_activation(), self.linear1, self.linear2, self.norm1, self.norm2
        y = attend(norm1(x) if self.norm_first else x)
        y = F.fused_linear(y, self.self_attn.out_proj.weight, self.self_attn.out_proj.bias, residual=x)
        y = y if self.norm_first else norm1(y)
        hidden = F.fused_linear(norm2(y) if self.norm_first else y, first.weight, first.bias, activation)
        z = F.fused_linear(hidden, second.weight, second.bias, residual=y)
        return z if self.norm_first else norm2(z)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        padding = _additive(src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask, "src_mask")
        mask = _additive(src_mask, "src_mask", src.dtype, check_other=False)
        if is_causal and mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        if self._is_fast(src):
            attention = self.self_attn
            weights = (attention.num_heads, attention.in_proj_weight, attention.in_proj_bias)
            transposed = not attention.batch_first
            x = src.transpose(0, 1) if transposed else src
            x = self._fast(x, lambda x: attend_heads(x, *weights, mask, padding, 0.0, is_causal))
            return x.transpose(0, 1) if transposed else x

        def attend(x):
            return self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal)[0]

        return self._chain(src, attend, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's output, and a feed-forward network.

    >>> layer = lucid.nn.TransformerDecoderLayer(d_model=8, nhead=2)
    >>> tuple(layer(lucid.ones(5, 3, 8), lucid.ones(7, 3, 8)).shape)
    (5, 3, 8)
    """

    _attentions = ("self_attn", "multihead_attn")

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

    enable_nested_tensor: in eval mode without gradients, given only a padding mask, leave out positions of padding: they come
    out as zeros (PyTorch's behaviour, under PyTorch's conditions; a warning says if the layers do not meet them).
    mask_check: do so only if padding is at the ends of sequences; False takes it for granted.

    >>> layer = lucid.nn.TransformerEncoderLayer(d_model=8, nhead=2, batch_first=True)
    >>> encoder = lucid.nn.TransformerEncoder(layer, num_layers=2).eval()
    >>> with lucid.no_grad():
    ...     y = encoder(lucid.ones(1, 3, 8), src_key_padding_mask=lucid.tensor([[False, False, True]]))
    >>> tuple(y.shape), float(y[0, 2].abs().sum())
    ((1, 3, 8), 0.0)
    """

    __constants__ = ["norm"]

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers, self.num_layers, self.norm = _clones(encoder_layer, num_layers), num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        why_not = self._why_not_packed(encoder_layer)
        self.use_nested_tensor = bool(enable_nested_tensor) and not why_not
        if enable_nested_tensor and why_not:
            import warnings

            warnings.warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why_not}", stacklevel=2)

    @staticmethod
    def _why_not_packed(layer):
        """PyTorch's conditions against packing sequences. They matter because packing changes the output at padded
        positions."""
        if not isinstance(layer, TransformerEncoderLayer):
            return "encoder_layer was not TransformerEncoderLayer"
        attention = layer.self_attn
        reasons = {
            "encoder_layer.norm_first was True": layer.norm_first,
            "encoder_layer.self_attn.batch_first was not True(use batch_first for better inference performance)": (
                not attention.batch_first
            ),
            "encoder_layer.self_attn was passed bias=False": attention.in_proj_bias is None,
            "encoder_layer.activation_relu_or_gelu was not True": layer._fused_activation() is None,
            "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps": layer.norm1.eps != layer.norm2.eps,
            "encoder_layer.self_attn.num_heads is odd": attention.num_heads % 2 == 1,
        }
        return next((reason for reason, holds in reasons.items() if holds), "")

    def _lengths(self, src, mask, padding):
        """The length of each sequence without padding, if sequences are to be packed; else None."""
        if not self.use_nested_tensor or padding is None or mask is not None:
            return None
        own = TransformerEncoderLayer.forward
        if not all(type(layer).forward is own and layer._is_fast(src) and not _is_watched(layer) for layer in self.layers):
            return None
        valid = padding == 0
        lengths = valid.sum(1)
        if self.mask_check:
            prefix = _C.arange(src.shape[1], device=src.device) < lengths.unsqueeze(1)
            if bool((prefix != valid).any()):
                return None  # padding is not at the ends
        return lengths.tolist()

    def _packed(self, src, lengths):
        """All layers over the positions that are not padding, one after the other; padding comes out as zeros."""
        parts = [src[i, :n] for i, n in enumerate(lengths)]
        x = _C.cat(parts)
        for layer in self.layers:
            attention = layer.self_attn

            def attend(x, attention=attention):
                qkv = F.linear(x, attention.in_proj_weight, attention.in_proj_bias)
                return _C.cat([heads_of(part.unsqueeze(0), attention.num_heads)[0] for part in qkv.split(lengths)])

            x = layer._fast(x, attend)
        result = _C.zeros_like(src)
        for i, part in enumerate(x.split(lengths)):
            result[i, : lengths[i]] = part
        return result

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        padding = _additive(src_key_padding_mask, "src_key_padding_mask", src.dtype, mask, "mask")
        mask = _additive(mask, "mask", src.dtype, check_other=False)
        batch_first = getattr(getattr(self.layers[0], "self_attn", None), "batch_first", False) if len(self.layers) else False
        length = src.size(1 if src.dim() == 3 and batch_first else 0)
        is_causal = _is_causal(mask, is_causal, length)
        lengths = self._lengths(src, mask, padding)
        if lengths is not None:
            src = self._packed(src, lengths)
        else:
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

    >>> model = lucid.nn.Transformer(8, 2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16, batch_first=True)
    >>> tuple(model(lucid.ones(3, 7, 8), lucid.ones(3, 5, 8)).shape)
    (3, 5, 8)
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
        """The causal mask: -inf above the diagonal.

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
