"""Multi-head attention with projections: too many arguments and branches for one op."""

import math
import warnings

from .. import _C
from .._C import _namespaced

_linear = _namespaced["nn.functional.linear"]
_attend = _namespaced["nn.functional.scaled_dot_product_attention"]


def _expect(holds, message):
    if not holds:
        raise AssertionError(message)


def _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether there is a batch dimension; raises for inconsistent ranks."""
    rank = query.dim()
    _expect(rank in (2, 3), f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor")
    kind = "batched (3-D)" if rank == 3 else "unbatched (2-D)"
    _expect(
        key.dim() == rank and value.dim() == rank,
        f"For {kind} `query`, expected `key` and `value` to be {rank}-D but found {key.dim()}-D and {value.dim()}-D tensors",
    )
    _expect(
        key_padding_mask is None or key_padding_mask.dim() == rank - 1,
        f"For {kind} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D",
    )
    _expect(
        attn_mask is None or attn_mask.dim() in (2, 3), f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D"
    )
    if rank == 2 and attn_mask is not None and attn_mask.dim() == 3:
        wanted = (num_heads, query.shape[0], key.shape[0])
        _expect(tuple(attn_mask.shape) == wanted, f"Expected `attn_mask` shape to be {wanted} but got {tuple(attn_mask.shape)}")
    return rank == 3


def _added(mask, name, dtype):
    """A mask as an additive one: -inf where a bool mask is True."""
    if mask is None or mask.is_floating_point():
        return mask
    _expect(mask.dtype == _C.bool, f"only bool and floating types of {name} are supported")
    return _C.zeros_like(mask, dtype=dtype).masked_fill(mask, -math.inf)


def added_masks(mask, padding, dtype):
    """Both masks of an attention as additive masks.

    >>> from lucid.nn._attention import added_masks
    >>> added_masks(lucid.tensor([[False, True]]), None, lucid.float32)
    (tensor([[0., -inf]]), None)
    """
    if mask is not None and padding is not None and mask.dtype != padding.dtype:
        warnings.warn(
            "Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type for both instead.", stacklevel=3
        )
    return _added(mask, "attn_mask", dtype), _added(padding, "key_padding_mask", dtype)


def _projected(query, key, value, weights, biases):
    width = query.shape[-1]
    for x, w, b, name in zip((query, key, value), weights, biases, ("query", "key", "value")):
        wanted = (width, x.shape[-1])
        _expect(tuple(w.shape) == wanted, f"expecting {name} weights shape of {wanted}, but got {tuple(w.shape)}")
        _expect(b is None or tuple(b.shape) == (width,), f"expecting {name} bias shape of {(width,)}")
    return tuple(_linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))


def _projected_together(query, key, value, weight, bias):
    """The same with the three weights in one: one product where the operands are one."""
    width = query.shape[-1]
    if key is value and query is key:
        return _linear(query, weight, bias).split(width, -1)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    if key is value:
        both = None if bias is None else bias[width:]
        return (_linear(query, weight[:width], biases[0]), *_linear(key, weight[width:], both).split(width, -1))
    return tuple(_linear(x, w, b) for x, w, b in zip((query, key, value), weight.chunk(3), biases))


def _heads(x, static, name, count, width):
    """(length, batch, embedding) as (batch x heads, length, width); or what was given in that form."""
    if static is None:
        return x.reshape(x.shape[0], count, width).transpose(0, 1)
    _expect(static.shape[0] == count, f"expecting {name}.size(0) of {count}, but got {static.shape[0]}")
    _expect(static.shape[2] == width, f"expecting {name}.size(2) of {width}, but got {static.shape[2]}")
    return static


def heads_of(qkv, num_heads, mask=None, dropout_p=0.0, causal=False):
    """Attention over (batch, length, 3 x embedding), which holds queries, keys and values: (batch, length, embedding).

    >>> from lucid.nn._attention import heads_of
    >>> tuple(heads_of(lucid.ones(2, 5, 24), 2).shape)
    (2, 5, 8)
    """
    batch, length, width = qkv.shape
    q, k, v = qkv.view(batch, length, 3, num_heads, width // (3 * num_heads)).permute(2, 0, 3, 1, 4).unbind(0)
    return _attend(q, k, v, mask, dropout_p, causal).transpose(1, 2).reshape(batch, length, width // 3)


def attend_heads(x, num_heads, in_weight, in_bias, mask=None, padding=None, dropout_p=0.0, causal=False):
    """Attention of (batch, length, embedding) to itself before its last projection; masks are additive.

    mask: (length, length) or (batch x heads, length, length); padding: (batch, length). causal: the mask is the causal one,
    and need not be read.

    >>> from lucid.nn._attention import attend_heads
    >>> tuple(attend_heads(lucid.ones(2, 5, 8), 2, lucid.ones(24, 8), None).shape)
    (2, 5, 8)
    """
    batch, length, _ = x.shape
    causal = causal and padding is None
    if mask is not None:
        wanted = (length, length) if mask.dim() == 2 else (batch * num_heads, length, length)
        if tuple(mask.shape) != wanted:
            raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {tuple(mask.shape)}, but should be {wanted}.")
        mask = None if causal else mask if mask.dim() == 2 else mask.view(batch, num_heads, length, length)
    if padding is not None:
        wanted = (batch, length)
        _expect(tuple(padding.shape) == wanted, f"Expected key_padding_mask of shape {wanted}, but got {tuple(padding.shape)}")
        padding = padding.view(batch, 1, 1, length)
        mask = padding if mask is None else mask + padding
    return heads_of(_linear(x, in_weight, in_bias), num_heads, mask, dropout_p, causal)


def _one_more(mask):
    return None if mask is None else _C.constant_pad_nd(mask, [0, 1])


@_C.overridable
def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """Attention of several heads: projections of query, key and value (length, batch, embedding), attention, a projection.

    Returns the result and, if need_weights, the attention weights. Without them no matrix of all queries by all keys is made.

    >>> x, w = lucid.ones(3, 1, 4), lucid.ones(4, 4)
    >>> out, weights = lucid.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 4, 2, lucid.ones(12, 4), None, None, None, False, 0.0, w, None)
    >>> tuple(out.shape), tuple(weights.shape)
    ((3, 1, 4), (1, 3, 3))
    """
    batched = _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same_key, same_value = key is query, value is key
        query = query.unsqueeze(1)
        key = query if same_key else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, embedding = query.shape
    keys = key.shape[0]
    if key_padding_mask is not None and attn_mask is not None and key_padding_mask.dtype != attn_mask.dtype:
        warnings.warn(
            "Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type for both instead.", stacklevel=2
        )
    key_padding_mask = _added(key_padding_mask, "key_padding_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the hint says it all
    else:
        attn_mask = _added(attn_mask, "attn_mask", query.dtype)
        is_causal = is_causal and key_padding_mask is None
    _expect(embedding == embed_dim_to_check, f"was expecting embedding dimension of {embed_dim_to_check}, but got {embedding}")
    width, count = embedding // num_heads, batch * num_heads
    _expect(width * num_heads == embedding, f"embed_dim {embedding} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        _expect(
            key.shape[:2] == value.shape[:2],
            f"key's sequence and batch dims {tuple(key.shape[:2])} do not match value's {tuple(value.shape[:2])}",
        )
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        for name, weight in zip("qkv", weights):
            _expect(weight is not None, f"use_separate_proj_weight is True but {name}_proj_weight is None")
        q, k, v = _projected(query, key, value, weights, (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3))
    else:
        _expect(key.shape == value.shape, f"key shape {tuple(key.shape)} does not match value shape {tuple(value.shape)}")
        _expect(in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _projected_together(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        wanted = (length, keys) if attn_mask.dim() == 2 else (count, length, keys)
        if tuple(attn_mask.shape) != wanted:
            raise RuntimeError(
                f"The shape of the {attn_mask.dim()}D attn_mask is {tuple(attn_mask.shape)}, but should be {wanted}."
            )
        attn_mask = attn_mask if attn_mask.dim() == 3 else attn_mask.unsqueeze(0)
    _expect((bias_k is None) == (bias_v is None), "bias_k and bias_v are set together or not at all")
    if bias_k is not None:
        _expect(static_k is None, "bias cannot be added to static key.")
        _expect(static_v is None, "bias cannot be added to static value.")
        k, v = _C.cat([k, bias_k.repeat(1, batch, 1)]), _C.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    q = _heads(q, None, "query", count, width)
    k, v = _heads(k, static_k, "static_k", count, width), _heads(v, static_v, "static_v", count, width)
    if add_zero_attn:
        nothing = _C.zeros(count, 1, width, dtype=k.dtype, device=k.device)
        k, v = _C.cat([k, nothing], 1), _C.cat([v, nothing], 1)
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    keys = k.shape[1]
    if key_padding_mask is not None:
        wanted = (batch, keys)
        _expect(
            tuple(key_padding_mask.shape) == wanted,
            f"Expected key_padding_mask of shape {wanted}, but got {tuple(key_padding_mask.shape)}",
        )
        padding = key_padding_mask.reshape(batch, 1, 1, keys).expand(-1, num_heads, -1, -1).reshape(count, 1, keys)
        attn_mask = padding if attn_mask is None else attn_mask + padding
    dropout_p = dropout_p if training else 0.0
    if not need_weights:
        if attn_mask is not None:
            attn_mask = attn_mask.unsqueeze(0) if attn_mask.shape[0] == 1 else attn_mask.reshape(batch, num_heads, -1, keys)
        q, k, v = (x.reshape(batch, num_heads, x.shape[1], width) for x in (q, k, v))
        out = _attend(q, k, v, attn_mask, dropout_p, is_causal).permute(2, 0, 1, 3)
        out = _linear(out.reshape(length, batch, embedding), out_proj_weight, out_proj_bias)
        return (out if batched else out.squeeze(1)), None
    _expect(not is_causal or attn_mask is not None, "is_causal needs attn_mask where weights are wanted")
    q, k = q * math.sqrt(1.0 / width), k.transpose(-2, -1)
    weights = (_C.bmm(q, k) if attn_mask is None else _C.baddbmm(attn_mask, q, k)).softmax(-1)
    if dropout_p > 0:
        weights = _C.dropout(weights, dropout_p, True)
    out = _C.bmm(weights, v).transpose(0, 1).reshape(length, batch, embedding)
    out = _linear(out, out_proj_weight, out_proj_bias)
    weights = weights.reshape(batch, num_heads, length, keys)
    if average_attn_weights:
        weights = weights.mean(1)
    return (out, weights) if batched else (out.squeeze(1), weights.squeeze(0))
