"""Layers with corrections of low rank. Each keeps the layer it corrects, and small matrices by the name of the adapter.

    linear      y = x W' + b + s (x A') B'            in one pass: nn.functional.lora_linear
    embedding   y = W[i] + s A'[i] B'
    conv        y = conv(x, W) + s conv1x1(conv(x, A), B)

With DoRA the corrected weight is scaled row by row to learnt magnitudes m: (m / |W + s B A|) (W + s B A). The norm counts as a
constant in the gradient, as in the paper (Liu et al., 2024, section 4.3).

Beside weights in halves the matrices are float32 unless told otherwise: small steps would be rounded away. Beside weights in 8
or 4 bits they train too, but do not merge.
"""

import math

from .. import _C, linalg, nn
from ..autograd import no_grad
from ..generation.coding import QuantizedLinear
from ..models.text.gpt2 import Conv1D
from ..nn import functional as F


class _Magnitude(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.weight = nn.Parameter(value)


class LoraLayer(nn.Module):
    """A layer and its corrections. `active_adapters` are added; `merge` puts them into the weight, `unmerge` takes them out.

    >>> layer = lucid.lora.layers.Linear(lucid.nn.Linear(4, 3))
    >>> layer.add_adapter("default", lucid.lora.LoraConfig(r=2))
    >>> x = lucid.ones(1, 4)
    >>> bool((layer(x) == layer.base_layer(x)).all())
    True
    """

    def __init__(self, base_layer):
        super().__init__()
        self.base_layer = base_layer
        self.lora_dropout, self.lora_A, self.lora_B = nn.ModuleDict(), nn.ModuleDict(), nn.ModuleDict()
        self.lora_embedding_A, self.lora_embedding_B = nn.ParameterDict(), nn.ParameterDict()
        self.lora_magnitude_vector = nn.ModuleDict()
        self.scaling, self.active_adapters, self.merged_adapters, self.disabled = {}, [], [], False

    @property
    def weight(self):
        return self.base_layer.weight

    @property
    def bias(self):
        return getattr(self.base_layer, "bias", None)

    @property
    def adapters(self):
        return list(self.scaling)

    def full_weight(self):
        """The weight that is corrected, in numbers."""
        return self.base_layer.dequantized() if isinstance(self.base_layer, QuantizedLinear) else self.weight

    def add_adapter(self, name, config, path="", single=True):
        """Make the matrices of an adapter; the first one becomes active. single: in float32 beside weights in halves."""
        if name in self.scaling:
            raise ValueError(f"there is an adapter {name!r} already")
        dropout = nn.Dropout(config.lora_dropout) if config.lora_dropout else nn.Identity()
        self.lora_dropout[name] = dropout.train(self.training)
        self.scaling[name] = config.scaling(path)
        self._make(name, config.rank_of(path), config)
        self._start(name, config.init_lora_weights)
        if config.use_dora:
            self._make_magnitude(name)
        dtype = self.weight.dtype
        if isinstance(self.base_layer, QuantizedLinear) or (single and dtype in (_C.float16, _C.bfloat16)):
            dtype = _C.float32
        for parameter in self.parameters_of(name):
            parameter.data = parameter.data.to(device=self.weight.device, dtype=dtype)
        if not self.active_adapters:
            self.active_adapters = [name]

    def _make_magnitude(self, name):
        with no_grad():
            weight = self.full_weight()
            self.lora_magnitude_vector[name] = _Magnitude(self._norm(weight + self.delta(name).to(weight.device)))

    def parameters_of(self, name):
        """The parameters of one adapter."""
        for group in (self.lora_A, self.lora_B, self.lora_magnitude_vector):
            if name in group:
                yield from group[name].parameters()
        for group in (self.lora_embedding_A, self.lora_embedding_B):
            if name in group:
                yield group[name]

    def delete_adapter(self, name):
        if name in self.merged_adapters:
            self.unmerge()
        del self.scaling[name]
        for group in (
            self.lora_dropout,
            self.lora_A,
            self.lora_B,
            self.lora_embedding_A,
            self.lora_embedding_B,
            self.lora_magnitude_vector,
        ):
            if name in group:
                del group[name]
        self.active_adapters = [n for n in self.active_adapters if n != name]

    def _factor(self, name, corrected):
        """What DoRA scales the corrected weight by, one number per output, as it stands in the weight."""
        return self.lora_magnitude_vector[name].weight / self._norm(corrected).detach()

    def merge(self, names=None, safe=False):
        """Put adapters (the active ones unless named) into the weight. safe: not if the result is not finite."""
        if isinstance(self.base_layer, QuantizedLinear):
            raise ValueError("an adapter does not merge into weights in 8 or 4 bits: merge first, then quantize")
        with no_grad():
            for name in names or self.active_adapters:
                if name in self.scaling and name not in self.merged_adapters:
                    corrected = self.weight.data + self.delta(name)
                    if safe and not bool(corrected.isfinite().all()):
                        raise ValueError(f"adapter {name!r} merged would give values that are not finite: it seems broken")
                    if name in self.lora_magnitude_vector:
                        if self.merged_adapters:
                            raise ValueError(
                                "an adapter with magnitudes merges into the plain weight alone, not into other adapters"
                            )
                        factor = self._as_weight(self._factor(name, corrected))
                        self._undo = (self.weight.data, factor)
                        corrected = corrected * factor
                    self.base_layer.weight.data = corrected.to(self.weight.dtype)
                    self._merge_bias(name, 1)
                    self.merged_adapters.append(name)

    def unmerge(self):
        """Take all merged adapters out of the weight again, up to rounding."""
        with no_grad():
            while self.merged_adapters:
                name = self.merged_adapters.pop()
                if name in self.lora_magnitude_vector:
                    self.base_layer.weight.data = self._undo[0]
                else:
                    self.base_layer.weight.data = (self.weight.data - self.delta(name)).to(self.weight.dtype)
                self._merge_bias(name, -1)

    def _matrices(self, name):
        return self.lora_A[name].weight, self.lora_B[name].weight

    def rank_of(self, name):
        return self._matrices(name)[0].shape[0]

    def combine(self, name, parts, how):
        """Set an adapter's matrices from others': parts are (name, weight)."""
        a, b = self._matrices(name)
        found = [(*(m.flatten(1) for m in self._matrices(n)), weight * self.scaling[n]) for n, weight in parts]
        if how == "cat":
            down, up = _C.cat([factor * x for x, _, factor in found]), _C.cat([y for _, y, _ in found], 1)
        elif how == "linear":
            down = sum(math.copysign(math.sqrt(abs(factor)), factor) * x for x, _, factor in found)
            up = sum(math.sqrt(abs(factor)) * y for _, y, factor in found)
        else:
            u, s, v = linalg.svd(sum(factor * (y @ x) for x, y, factor in found).float(), full_matrices=False)
            rank = min(a.shape[0], s.shape[0])
            down, up = _C.zeros(a.flatten(1).shape, device=a.device), _C.zeros(b.flatten(1).shape, device=b.device)
            down[:rank], up[:, :rank] = v[:rank], u[:, :rank] * s[:rank]
        a.copy_((down / self.scaling[name]).view(a.shape))
        b.copy_(up.view(b.shape))

    def _merge_bias(self, name, sign):
        bias = getattr(self.lora_B[name], "bias", None) if name in self.lora_B else None
        if bias is None:
            return
        if self.bias is None:
            raise ValueError("lora_bias cannot be merged into a layer without a bias")
        self.base_layer.bias.data = (self.bias.data + sign * self.scaling[name] * bias.data).to(self.bias.dtype)

    def _plain(self):
        """Whether the base layer alone answers; merged adapters are taken out when adapters are switched off."""
        if self.disabled and self.merged_adapters:
            self.unmerge()
        return self.disabled or bool(self.merged_adapters) or not self.active_adapters

    def _each(self):
        return [name for name in self.active_adapters if name in self.scaling]

    def forward(self, x):
        if self._plain():
            return self.base_layer(x)
        result = self.base_layer(x)
        dtype = result.dtype
        for name in self._each():
            drops = self.training and not isinstance(self.lora_dropout[name], nn.Identity)
            seen = self.lora_dropout[name](x)
            low = self._low(name, seen.to(self.lora_A[name].weight.dtype))
            if name not in self.lora_magnitude_vector:
                result = result + low
                continue
            bias = self.bias
            if drops:
                base = self._base_without_bias(seen)
            else:
                base = result if bias is None else result - self._as_result(bias)
            factor = self._as_result(self._factor(name, self.full_weight() + self.delta(name)))
            result = result + (factor - 1) * base + factor * low
        return result.to(dtype)


class Linear(LoraLayer):
    """A fully connected layer, `nn.Linear` or GPT-2's `Conv1D`, with corrections.

    >>> layer = lucid.lora.layers.Linear(lucid.nn.Linear(4, 3))
    >>> layer.add_adapter("a", lucid.lora.LoraConfig(r=2, init_lora_weights=False))
    >>> x = lucid.ones(1, 4)
    >>> before = layer(x)
    >>> layer.merge()
    >>> bool((layer(x) - before).abs().max() < 1e-6)
    True
    """

    def __init__(self, base_layer):
        super().__init__(base_layer)
        self.transposed = isinstance(base_layer, Conv1D)
        coded = isinstance(base_layer, QuantizedLinear)
        shape = base_layer.weight.shape if not coded else (base_layer.out_features, base_layer.in_features)
        self.in_features, self.out_features = shape if self.transposed else shape[::-1]

    def _make(self, name, r, config):
        self.lora_A[name] = nn.Linear(self.in_features, r, bias=False)
        self.lora_B[name] = nn.Linear(r, self.out_features, bias=config.lora_bias)

    def _start(self, name, how):
        a, b = self.lora_A[name], self.lora_B[name]
        if how is True:
            nn.init.kaiming_uniform_(a.weight, a=math.sqrt(5))
        elif how == "gaussian":
            nn.init.normal_(a.weight, std=1 / a.weight.shape[0])
        if how is not False:
            nn.init.zeros_(b.weight)
            if b.bias is not None:
                nn.init.zeros_(b.bias)

    def delta(self, name):
        """What the adapter adds to the weight, in its shape."""
        product = self.lora_B[name].weight @ self.lora_A[name].weight * self.scaling[name]
        return product.t() if self.transposed else product

    def _norm(self, weight):
        return weight.norm(dim=0 if self.transposed else 1)

    def _as_weight(self, factor):
        return factor if self.transposed else factor.unsqueeze(1)

    def _as_result(self, values):
        return values

    def _low(self, name, x):
        return self.lora_B[name](self.lora_A[name](x)) * self.scaling[name]

    def _base_without_bias(self, x):
        weight = self.full_weight()
        return F.linear(x, weight.t() if self.transposed else weight)

    def forward(self, x):
        names = [] if self._plain() else self._each()
        if len(names) == 1 and type(self.base_layer) in (nn.Linear, Conv1D):
            a, b = self.lora_A[names[0]], self.lora_B[names[0]]
            drops = self.training and not isinstance(self.lora_dropout[names[0]], nn.Identity)
            alike = x.dtype == self.weight.dtype == a.weight.dtype
            if not drops and b.bias is None and names[0] not in self.lora_magnitude_vector and alike:
                weight = self.weight.t() if self.transposed else self.weight
                return F.lora_linear(x, weight, self.bias, a.weight.t(), b.weight.t(), float(self.scaling[names[0]]))
        return super().forward(x)


class Embedding(LoraLayer):
    """An embedding with corrections.

    >>> layer = lucid.lora.layers.Embedding(lucid.nn.Embedding(5, 4))
    >>> layer.add_adapter("a", lucid.lora.LoraConfig(r=2))
    >>> tuple(layer.lora_embedding_A["a"].shape), tuple(layer(lucid.tensor([1, 2])).shape)
    ((2, 5), (2, 4))
    """

    def _make(self, name, r, config):
        if config.lora_bias:
            raise ValueError("lora_bias has no meaning for an embedding")
        count, width = self.weight.shape
        self.lora_embedding_A[name] = nn.Parameter(_C.randn(r, count))
        self.lora_embedding_B[name] = nn.Parameter(_C.randn(width, r))

    def _start(self, name, how):
        if how is not False:
            nn.init.zeros_(self.lora_embedding_A[name])
            nn.init.normal_(self.lora_embedding_B[name])

    def _matrices(self, name):
        return self.lora_embedding_A[name], self.lora_embedding_B[name]

    def delta(self, name):
        return (self.lora_embedding_B[name] @ self.lora_embedding_A[name]).t() * self.scaling[name]

    def _norm(self, weight):
        return weight.norm(dim=0)

    def _as_weight(self, factor):
        return factor

    _as_result = _as_weight

    def forward(self, x):
        if self._plain():
            return self.base_layer(x)
        base, result = self.base_layer, self.base_layer(x)
        for name in self._each():
            rows = F.embedding(
                x, self.lora_embedding_A[name].t(), base.padding_idx, None, 2.0, base.scale_grad_by_freq, base.sparse
            )
            low = rows @ self.lora_embedding_B[name].t() * self.scaling[name]
            if name in self.lora_magnitude_vector:
                result = self._factor(name, self.weight + self.delta(name)) * (result + low)
            else:
                result = result + low
        return result.to(self.weight.dtype)


class Conv2d(LoraLayer):
    """A convolution with corrections: one of rank many channels, then one of a single pixel.

    >>> layer = lucid.lora.layers.Conv2d(lucid.nn.Conv2d(3, 4, 3, padding=1))
    >>> layer.add_adapter("a", lucid.lora.LoraConfig(r=2))
    >>> tuple(layer(lucid.ones(1, 3, 5, 5)).shape)
    (1, 4, 5, 5)
    """

    def _make(self, name, r, config):
        base = self.base_layer
        if base.groups != 1:
            raise NotImplementedError("adapters of convolutions with groups")
        self.lora_A[name] = nn.Conv2d(
            base.in_channels,
            r,
            base.kernel_size,
            base.stride,
            base.padding,
            base.dilation,
            bias=False,
            padding_mode=base.padding_mode,
        )
        self.lora_B[name] = nn.Conv2d(r, base.out_channels, 1, bias=config.lora_bias)

    _start = Linear._start

    def delta(self, name):
        a, b = self.lora_A[name].weight, self.lora_B[name].weight
        return (b.flatten(1) @ a.flatten(1)).view(self.weight.shape) * self.scaling[name]

    def _norm(self, weight):
        return weight.flatten(1).norm(dim=1).view(1, -1, 1, 1)

    def _as_weight(self, factor):
        return factor.view(-1, 1, 1, 1)

    def _as_result(self, values):
        return values.view(1, -1, 1, 1)

    _low = Linear._low

    def _base_without_bias(self, x):
        return self.base_layer._conv_forward(x, self.weight, None)


class ModulesToSave(nn.Module):
    """A module trained whole: the original, and a copy per adapter; the active adapter's copy answers.

    >>> both = lucid.lora.layers.ModulesToSave(lucid.nn.Linear(2, 2))
    >>> both.add_adapter("default")
    >>> both.modules_to_save["default"] is both.original_module
    False
    """

    def __init__(self, module):
        super().__init__()
        self.original_module, self.modules_to_save = module, nn.ModuleDict()
        self.active_adapters, self.disabled = [], False

    def add_adapter(self, name):
        import copy

        self.modules_to_save[name] = copy.deepcopy(self.original_module)
        if not self.active_adapters:
            self.active_adapters = [name]

    def delete_adapter(self, name):
        del self.modules_to_save[name]
        self.active_adapters = [n for n in self.active_adapters if n != name]

    def active_module(self):
        names = [] if self.disabled else [n for n in self.active_adapters if n in self.modules_to_save]
        return self.modules_to_save[names[0]] if names else self.original_module

    def forward(self, *args, **options):
        return self.active_module()(*args, **options)

    def __getattr__(self, name):  # what others read of the module: its weight
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name in ("original_module", "modules_to_save"):
                raise
            return getattr(self.active_module(), name)


KINDS = ((nn.Linear, Linear), (Conv1D, Linear), (QuantizedLinear, Linear), (nn.Embedding, Embedding), (nn.Conv2d, Conv2d))


def layer_for(module):
    """The layer with corrections for a module, or None.

    >>> lucid.lora.layers.layer_for(lucid.nn.ReLU()) is None
    True
    """
    return next((layer(module) for kind, layer in KINDS if isinstance(module, kind)), None)
