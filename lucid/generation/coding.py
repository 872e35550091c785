"""Weights in 8 or 4 bits for inference: a linear layer reads a quarter or an eighth of the memory per token.

A weight is cut along its inputs into groups; a group keeps its largest value in one float32 scale. Products read the codes and
scale them on the way (`nn.functional.quantized_linear`); activations stay float32. Gradients of inputs and biases pass, so an
adapter (`lucid.lora`) can be trained beside such a layer.
"""

from .. import _C, nn
from ..autograd import no_grad
from ..models.text.gpt2 import Conv1D
from ..nn import functional as F

_LIMITS = {8: 127, 4: 7}
_BLOCK = 32  # codes that int4 keeps together


def quantize_weight(weight, bits=8, group_size=None):
    """(codes, scales) of a weight (n, k) for nn.functional.quantized_linear. group_size: unless given, k for 8 bits, 32 for 4.

    >>> w = lucid.tensor([[-1.0, 0.5, 0.25, 1.0]])
    >>> codes, scales = lucid.generation.quantize_weight(w)
    >>> codes
    tensor([[-127,   64,   32,  127]], dtype=lucid.int8)
    """
    if bits not in _LIMITS:
        raise ValueError(f"bits is 8 or 4, not {bits!r}")
    n, k = weight.shape
    group = group_size or (k if bits == 8 else _BLOCK)
    if k % group or (bits == 4 and group % _BLOCK):
        raise ValueError(f"{k} columns are not cut into groups of {group}" + (", a multiple of 32" if bits == 4 else ""))
    groups = weight.detach().float().contiguous().reshape(n, k // group, group)  # in the order of the product
    scales = groups.abs().amax(-1) / _LIMITS[bits]
    codes = (groups / scales.clamp(min=1e-30).unsqueeze(-1)).round().clamp(-_LIMITS[bits], _LIMITS[bits]).reshape(n, k)
    if bits == 8:
        return codes.to(_C.int8), scales
    halves = (codes + 8).to(_C.uint8).view(n, k // _BLOCK, 2, _BLOCK // 2)
    return (halves[:, :, 0] + halves[:, :, 1] * 16).reshape(n, k // 2), scales


class QuantizedLinear(nn.Module):
    """A linear layer whose weight is stored in codes of 8 or 4 bits.

    >>> layer = lucid.nn.Linear(64, 8)
    >>> coded = lucid.generation.QuantizedLinear.from_layer(layer, bits=4)
    >>> tuple(coded.weight.shape), coded.weight.dtype
    ((8, 32), lucid.uint8)
    >>> x = lucid.ones(1, 64)
    >>> bool((coded(x) - layer(x)).abs().max() < 0.3)
    True
    """

    def __init__(self, in_features, out_features, bias=True, bits=8, group_size=None):
        super().__init__()
        self.in_features, self.out_features, self.bits = in_features, out_features, bits
        self.group_size = group_size or (in_features if bits == 8 else _BLOCK)
        codes, scales = quantize_weight(_C.zeros(out_features, in_features), bits, self.group_size)
        self.register_buffer("weight", codes)
        self.register_buffer("scales", scales)
        self.bias = nn.Parameter(_C.zeros(out_features)) if bias else None

    @classmethod
    def from_layer(cls, layer, bits=8, group_size=None):
        """From nn.Linear or GPT-2's Conv1D; the relative error of the weight is kept as `error`."""
        weight = layer.weight.t() if isinstance(layer, Conv1D) else layer.weight
        made = cls.__new__(cls)
        nn.Module.__init__(made)
        made.out_features, made.in_features = weight.shape
        made.bits, made.group_size = bits, group_size or (weight.shape[1] if bits == 8 else _BLOCK)
        with no_grad():
            codes, scales = quantize_weight(weight, bits, made.group_size)
            made.register_buffer("weight", codes)
            made.register_buffer("scales", scales)
            made.bias = None if layer.bias is None else nn.Parameter(layer.bias.detach().float(), layer.bias.requires_grad)
            made.error = float((made.dequantized() - weight.float()).norm() / weight.float().norm().clamp(min=1e-30))
        return made.train(layer.training)

    @classmethod
    def put_into(cls, model, layers):
        """Empty layers in place of the linear layers of these paths: {path: (bits, group_size)}."""
        for path, (bits, group_size) in layers.items():
            old = model.get_submodule(path)
            n, k = old.weight.shape[::-1] if isinstance(old, Conv1D) else old.weight.shape
            model.set_submodule(path, cls(k, n, old.bias is not None, bits, group_size))

    def dequantized(self):
        """The weight (out_features, in_features) in float32."""
        return F.dequantize_weight(self.weight, self.scales, self.group_size)

    def _apply(self, fn, *args, **options):
        """To another device; scales and biases stay in float32 whatever the dtype of the model becomes."""
        scales, bias = self.scales, None if self.bias is None else self.bias.detach()
        super()._apply(fn, *args, **options)
        self.scales = scales.to(self.weight.device)
        if bias is not None:
            self.bias.data = bias.to(self.weight.device)
        return self

    def forward(self, x):
        return F.quantized_linear(x, self.weight, self.scales, self.bias, self.group_size)

    def extra_repr(self):
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{sizes}, bits={self.bits}, group_size={self.group_size}"


class QuantizationReport:
    """What quantize did: bytes before and after, the relative error of each weight by path, and the layers it left alone.

    >>> report = lucid.generation.quantize(lucid.nn.Sequential(lucid.nn.Linear(64, 64)))
    >>> report.bytes_before, report.bytes_after, max(report.errors.values()) < 0.01
    (16640, 4608, True)
    """

    def __init__(self, bits, bytes_before, bytes_after, errors, skipped):
        self.bits, self.bytes_before, self.bytes_after = bits, bytes_before, bytes_after
        self.errors, self.skipped = errors, skipped

    def __repr__(self):
        worst = max(self.errors.values(), default=0.0)
        sizes = f"{self.bytes_before / 1e6:.1f} MB to {self.bytes_after / 1e6:.1f} MB"
        return f"{len(self.errors)} layers in int{self.bits}, {sizes}, largest relative error {worst:.4f}"


def _bytes(model):
    seen = {t.data_ptr(): t.numel() * t.element_size() for t in [*model.parameters(), *model.buffers()]}
    return sum(seen.values())


def quantize(model, bits=8, group_size=None, skip=()):
    """Store the weights of a model's linear layers in 8 or 4 bits, in place; returns a QuantizationReport.

    skip: names of modules (the end of their path) that stay as they are. Embeddings stay too; a head that shares their
    weight gets codes of its own. Layers whose number of inputs does not fit the groups are left alone and reported.

    >>> config = lucid.models.GPT2Config(vocab_size=40, hidden_size=32, num_hidden_layers=1, num_attention_heads=2)
    >>> model = lucid.models.GPT2LMHeadModel(config).eval()
    >>> ids = lucid.tensor([[1, 2, 3]])
    >>> before = model(ids).logits
    >>> report = lucid.generation.quantize(model, bits=8)
    >>> len(report.errors), bool((model(ids).logits - before).abs().max() < 0.05)
    (5, True)
    """
    before, errors, skipped = _bytes(model), {}, []
    for path, layer in list(model.named_modules()):
        if not isinstance(layer, (nn.Linear, Conv1D)) or any(path == s or path.endswith(f".{s}") for s in skip):
            continue
        if not {"lora_A", "lora_B", "modules_to_save"}.isdisjoint(path.split(".")):
            continue  # of an adapter: it is trained
        inputs = layer.weight.shape[0 if isinstance(layer, Conv1D) else 1]
        group = group_size or (inputs if bits == 8 else _BLOCK)
        if inputs % group:
            skipped.append(path)
            continue
        made = QuantizedLinear.from_layer(layer, bits, group)
        errors[path] = made.error
        owner, _, name = path.rpartition(".")
        setattr(model.get_submodule(owner), name, made)
    return QuantizationReport(bits, before, _bytes(model), errors, skipped)
