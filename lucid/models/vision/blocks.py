"""Blocks that several families of image networks share."""

from ... import _C, nn
from ...nn import functional as F


def divisible(value, divisor=8, least=None, limit=0.9):
    """The nearest multiple of divisor, at least `least`, not below `limit` times the value.

    >>> from lucid.models.vision.blocks import divisible
    >>> divisible(37), divisible(11.9), divisible(3)
    (40, 16, 8)
    """
    result = max(least or divisor, int(value + divisor / 2) // divisor * divisor)
    return result + divisor if result < limit * value else result


def conv3x3(inputs, outputs, stride=1, groups=1, dilation=1):
    """A 3x3 convolution without bias that keeps the size.

    >>> from lucid.models.vision.blocks import conv3x3
    >>> tuple(conv3x3(2, 4, stride=2)(lucid.zeros(1, 2, 8, 8)).shape)
    (1, 4, 4, 4)
    """
    return nn.Conv2d(inputs, outputs, 3, stride, dilation, dilation, groups, bias=False)


def conv1x1(inputs, outputs, stride=1):
    """A 1x1 convolution without bias.

    >>> from lucid.models.vision.blocks import conv1x1
    >>> tuple(conv1x1(2, 4).weight.shape)
    (4, 2, 1, 1)
    """
    return nn.Conv2d(inputs, outputs, 1, stride, bias=False)


def same_pads(shape, kernel, stride):
    """TensorFlow's padding of a map (..., height, width), as F.pad takes it: what is odd comes at the end.

    >>> from lucid.models.vision.blocks import same_pads
    >>> same_pads((7, 8), (3, 3), (2, 2))
    [0, 1, 1, 1]
    """
    pads = []
    for size, k, step in zip(shape[:-3:-1], kernel[::-1], stride[::-1]):
        total = max((-(-size // step) - 1) * step + k - size, 0)
        pads += [total // 2, total - total // 2]
    return pads


class SameConv2d(nn.Conv2d):
    """A convolution padded as TensorFlow does: with stride 2 an even side gets its one row of zeros at the end.

    >>> from lucid.models.vision.blocks import SameConv2d
    >>> SameConv2d(1, 1, 3, 2)(lucid.zeros(1, 1, 8, 8)).shape[-2:]
    lucid.Size([4, 4])
    """

    def forward(self, x):
        pads = same_pads(x.shape, self.kernel_size, self.stride)
        if pads[0] == pads[1] and pads[2] == pads[3]:
            return F.conv2d(x, self.weight, self.bias, self.stride, (pads[2], pads[0]), self.dilation, self.groups)
        return super().forward(F.pad(x, pads))


class ConvNormAct(nn.Sequential):
    """Convolution, normalisation, activation, under the keys 0 and 1 as torchvision has them; act None: no activation.

    >>> from lucid.models.vision.blocks import ConvNormAct
    >>> list(ConvNormAct(3, 8).state_dict())[:2]
    ['0.weight', '1.weight']
    """

    def __init__(self, inputs, outputs, kernel=3, stride=1, groups=1, norm=nn.BatchNorm2d, act=nn.ReLU, dilation=1, bias=None):
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        padding = tuple((k - 1) // 2 * dilation for k in kernel)
        bias = norm is None if bias is None else bias
        layers = [nn.Conv2d(inputs, outputs, kernel, stride, padding, dilation, groups, bias=bias)]
        if norm is not None:
            layers.append(norm(outputs))
        if act is not None:
            layers.append(act())
        super().__init__(*layers)
        self.out_channels = outputs


class NamedConvNormAct(nn.Module):
    """The same under the keys conv and bn, as timm and torchvision's older networks have it.

    >>> from lucid.models.vision.blocks import NamedConvNormAct
    >>> list(NamedConvNormAct(3, 8).state_dict())[:2]
    ['conv.weight', 'bn.weight']
    """

    def __init__(self, inputs, outputs, kernel=1, stride=1, padding=None, groups=1, dilation=1, act=F.relu, eps=1e-5):
        super().__init__()
        if padding is None:
            padding = (kernel - 1) // 2 * dilation
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, dilation, groups, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=eps)
        self.act = act

    def forward(self, x):
        x = self.bn(self.conv(x))
        return x if self.act is None else self.act(x)


class SqueezeExcite(nn.Module):
    """Channels weighed by what the whole image shows of them: mean, two 1x1 convolutions, a gate.

    >>> from lucid.models.vision.blocks import SqueezeExcite
    >>> tuple(SqueezeExcite(8, 2)(lucid.ones(1, 8, 3, 3)).shape)
    (1, 8, 3, 3)
    """

    def __init__(self, channels, inner, act=F.relu, gate=_C.sigmoid, names=("fc1", "fc2")):
        super().__init__()
        self.names, self.act, self.gate = names, act, gate
        setattr(self, names[0], nn.Conv2d(channels, inner, 1))
        setattr(self, names[1], nn.Conv2d(inner, channels, 1))

    def forward(self, x):
        first, second = (getattr(self, name) for name in self.names)
        return x * self.gate(second(self.act(first(x.mean((2, 3), keepdim=True)))))


class DropPath(nn.Module):
    """Drops a branch for a whole image while training (stochastic depth); what stays is scaled up.

    >>> from lucid.models.vision.blocks import DropPath
    >>> DropPath(0.5).eval()(lucid.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, drop_prob=0.0):
        super().__init__()
        if not 0 <= drop_prob < 1:
            raise ValueError(f"drop_prob is at least 0 and below 1, not {drop_prob}")
        self.drop_prob = drop_prob

    def forward(self, x):
        if not self.training or self.drop_prob == 0:
            return x
        kept = 1 - self.drop_prob
        mask = _C.empty((x.shape[0],) + (1,) * (x.ndim - 1), dtype=x.dtype, device=x.device).bernoulli_(kept)
        return x * (mask / kept)

    def extra_repr(self):
        return f"drop_prob={self.drop_prob}"


class ChannelNorm(nn.LayerNorm):
    """Layer normalisation over the channels of a map (batch, channels, height, width).

    >>> from lucid.models.vision.blocks import ChannelNorm
    >>> ChannelNorm(2)(lucid.tensor([[[[1.0]], [[3.0]]]])).flatten().round()
    tensor([-1.,  1.], grad_fn=<RoundBackward0>)
    """

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class MLP(nn.Module):
    """Two fully connected layers with an activation between them, as fc1 and fc2.

    >>> from lucid.models.vision.blocks import MLP
    >>> tuple(MLP(4, 16)(lucid.zeros(1, 4)).shape)
    (1, 4)
    """

    def __init__(self, width, inner, act=F.gelu, dropout=0.0, outer=None):
        super().__init__()
        self.fc1 = nn.Linear(width, inner)
        self.fc2 = nn.Linear(inner, outer or width)
        self.act, self.drop = act, nn.Dropout(dropout)

    def forward(self, x):
        return self.drop(self.fc2(self.drop(self.act(self.fc1(x)))))


class Attention(nn.Module):
    """Self-attention of tokens (batch, length, width) by one matrix for queries, keys and values, as timm has it.

    >>> from lucid.models.vision.blocks import Attention
    >>> tuple(Attention(8, 2)(lucid.zeros(1, 3, 8)).shape)
    (1, 3, 8)
    """

    def __init__(self, width, heads, bias=True, dropout=0.0, projection_dropout=0.0):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.proj = nn.Linear(width, width)
        self.proj_drop = nn.Dropout(projection_dropout)

    def forward(self, x, mask=None):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, mask, self.dropout if self.training else 0.0)
        return self.proj_drop(self.proj(y.transpose(1, 2).reshape(batch, length, width)))


def start_convolutions(model, mode="fan_out", linear_std=0.01):
    """First values as most convolutional networks have them: He's for convolutions, ones and zeros for normalisations.

    linear_std: the spread of fully connected layers; None leaves them as they are.

    >>> from lucid.models.vision.blocks import start_convolutions
    >>> layer = lucid.nn.Linear(2, 2)
    >>> start_convolutions(layer)
    >>> layer.bias.tolist()
    [0.0, 0.0]
    """
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Linear) and linear_std is not None:
            nn.init.normal_(module.weight, 0, linear_std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def start_narrow(model, std=0.02):
    """First values as transformers of images have them: narrow normal weights cut at two, zero biases.

    >>> from lucid.models.vision.blocks import start_narrow
    >>> layer = lucid.nn.Linear(2, 2)
    >>> start_narrow(layer)
    >>> layer.bias.tolist()
    [0.0, 0.0]
    """
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.trunc_normal_(module.weight, std=std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def drop_rates(last, depths):
    """Rates of stochastic depth that grow evenly from 0 to last, in stages of these depths.

    >>> from lucid.models.vision.blocks import drop_rates
    >>> drop_rates(0.2, (1, 2))
    [[0.0], [0.1, 0.2]]
    """
    count = sum(depths)
    rates = iter([last * i / max(count - 1, 1) for i in range(count)])
    return [[next(rates) for _ in range(depth)] for depth in depths]
