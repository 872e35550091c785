"""Networks that MaskFormer and Mask2Former stand on, ResNet and Swin, under the keys that transformers gives its backbones."""

from .... import _C, nn
from ....nn import functional as F
from ..blocks import MLP, DropPath, drop_rates, start_convolutions, start_narrow
from ..classification.swin import Merging, WindowAttention, relative_positions


class _Conv(nn.Module):
    def __init__(self, inputs, outputs, kernel, stride=1, act=True):
        super().__init__()
        self.convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.normalization, self.act = nn.BatchNorm2d(outputs), act

    def forward(self, x):
        x = self.normalization(self.convolution(x))
        return F.relu(x) if self.act else x


class _Bottleneck(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        inner, changes = outputs // 4, stride != 1 or inputs != outputs
        self.shortcut = _Conv(inputs, outputs, 1, stride, act=False) if changes else nn.Identity()
        self.layer = nn.Sequential(_Conv(inputs, inner, 1), _Conv(inner, inner, 3, stride), _Conv(inner, outputs, 1, act=False))

    def forward(self, x):
        return F.relu(self.layer(x) + self.shortcut(x))


class ResNetBackbone(nn.Module):
    """ResNet's four maps, under transformers' keys.

    >>> from lucid.models.vision.segmentation.backbones import ResNetBackbone
    >>> [x.shape[1] for x in ResNetBackbone(3, (1, 1, 1, 1))(lucid.zeros(2, 3, 32, 32))]
    [256, 512, 1024, 2048]
    """

    channels = (256, 512, 1024, 2048)

    def __init__(self, inputs, layers):
        super().__init__()
        self.embedder, self.encoder, stages, before = nn.Module(), nn.Module(), [], 64
        self.embedder.embedder = _Conv(inputs, 64, 7, 2)
        for number, (outputs, depth) in enumerate(zip(self.channels, layers)):
            stage, blocks = nn.Module(), []
            for i in range(depth):
                blocks.append(_Bottleneck(before, outputs, 2 if number and not i else 1))
                before = outputs
            stage.layers = nn.Sequential(*blocks)
            stages.append(stage)
        self.encoder.stages = nn.ModuleList(stages)
        start_convolutions(self)

    def forward(self, x):
        x, found = F.max_pool2d(self.embedder.embedder(x), 3, 2, 1), []
        for stage in self.encoder.stages:
            x = stage.layers(x)
            found.append(x)
        return found


class _Window(WindowAttention):
    shifts_small = True

    def __init__(self, width, heads, window, shift):
        nn.Module.__init__(self)
        self.heads, self.window, self.shift, self.attention_dropout = heads, window, shift, 0.0
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(width, width) for _ in range(4))
        own = self.relative_position_bias = nn.Module()
        own.relative_position_bias_table = nn.Parameter(_C.zeros((2 * window - 1) ** 2, heads))
        own.register_buffer("relative_position_index", relative_positions(window, window), persistent=False)

    def bias(self):
        own, places = self.relative_position_bias, self.window**2
        table = own.relative_position_bias_table[own.relative_position_index]
        return table.view(places, places, self.heads).permute(2, 0, 1).unsqueeze(0)

    def three(self, x):
        layers = self.q_proj, self.k_proj, self.v_proj
        return [layer(x).unflatten(3, (self.heads, -1)).transpose(2, 3) for layer in layers]

    def out(self, y):
        return self.o_proj(y)


class _SwinLayer(nn.Module):
    def __init__(self, config, width, heads, shift, rate):
        super().__init__()
        self.layernorm_before, self.layernorm_after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = _Window(width, heads, config.swin_window_size, shift)
        self.mlp, self.drop_path = MLP(width, int(width * config.swin_mlp_ratio)), DropPath(rate)

    def forward(self, x):
        x = x + self.drop_path(self.attention(self.layernorm_before(x)))
        return x + self.drop_path(self.mlp(self.layernorm_after(x)))


class SwinBackbone(nn.Module):
    """Swin's four maps, under transformers' keys.

    >>> from lucid.models.vision.segmentation.backbones import SwinBackbone
    >>> config = lucid.models.Mask2FormerConfig(swin_embed_dim=8, swin_depths=(1, 1, 1, 1), swin_num_heads=(1, 1, 1, 1))
    >>> [x.shape[1] for x in SwinBackbone(config)(lucid.zeros(2, 3, 32, 32))]
    [8, 16, 32, 64]
    """

    def __init__(self, config):
        super().__init__()
        width, layers, self.channels = config.swin_embed_dim, [], []
        self.swin, self.hidden_states_norms = nn.Module(), nn.ModuleDict()
        self.swin.embeddings, self.swin.encoder = nn.Module(), nn.Module()
        self.swin.embeddings.patch_embeddings = nn.Module()
        self.swin.embeddings.patch_embeddings.projection = nn.Conv2d(config.in_channels, width, 4, 4)
        self.swin.embeddings.norm = nn.LayerNorm(width)
        stages = list(zip(config.swin_num_heads, drop_rates(config.swin_drop_path_rate, config.swin_depths)))
        for number, (heads, rates) in enumerate(stages):
            stage, shift = nn.Module(), config.swin_window_size // 2
            stage.blocks = nn.ModuleList(_SwinLayer(config, width, heads, i % 2 * shift, r) for i, r in enumerate(rates))
            self.hidden_states_norms[f"stage{number + 1}"] = nn.LayerNorm(width)
            self.channels.append(width)
            if number + 1 < len(stages):
                stage.downsample = Merging(width)
                width *= 2
            layers.append(stage)
        self.swin.encoder.layers, self.swin.layernorm = nn.ModuleList(layers), nn.LayerNorm(width)  # published, not used
        start_narrow(self)

    def forward(self, x):
        x, found = F.pad(x, (0, -x.shape[3] % 4, 0, -x.shape[2] % 4)), []
        x = self.swin.embeddings.norm(self.swin.embeddings.patch_embeddings.projection(x).permute(0, 2, 3, 1))
        for stage, norm in zip(self.swin.encoder.layers, self.hidden_states_norms.values()):
            for block in stage.blocks:
                x = block(x)
            found.append(norm(x).permute(0, 3, 1, 2))
            if hasattr(stage, "downsample"):
                x = stage.downsample(x)
        return found
