"""Networks written once, for Lucid and for PyTorch: `lib` is either. Benchmarks time them, tests compare their training."""

from types import SimpleNamespace


def networks(lib):
    """Constructors of networks made of the layers of `lib`."""
    nn, F = lib.nn, lib.nn.functional

    def tiny():
        return nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))

    def mlp():
        return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))

    class LeNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.c1, self.c2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
            self.f1, self.f2, self.f3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.c1(x)), 2)
            x = F.max_pool2d(F.relu(self.c2(x)), 2)
            return self.f3(F.relu(self.f2(F.relu(self.f1(x.flatten(1))))))

    class Block(nn.Module):
        def __init__(self, width, heads, dropout, gelu):
            super().__init__()
            self.heads, self.dropout, self.gelu = heads, dropout, gelu
            self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, d = x.shape
            drop = self.dropout if self.training else 0.0
            q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
            mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=drop, is_causal=True).transpose(1, 2).reshape(b, t, d)
            x = x + F.dropout(self.out(mixed), self.dropout, self.training)
            return x + F.dropout(self.down(F.gelu(self.up(self.n2(x)), approximate=self.gelu)), self.dropout, self.training)

    class GPT(nn.Module):
        def __init__(self, vocabulary=65, width=128, layers=4, heads=4, context=64, dropout=0.0, gelu="none", tied=False):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.blocks = nn.Sequential(*[Block(width, heads, dropout, gelu) for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=not tied)
            if tied:
                self.head.weight = self.tokens.weight

        def forward(self, tokens):
            return self.head(self.norm(self.blocks(self.tokens(tokens) + self.places.weight[: tokens.shape[1]])))

    class LSTM(nn.Module):
        def __init__(self, features=32, hidden=64, classes=10, **settings):
            super().__init__()
            self.layer, self.head = nn.LSTM(features, hidden, batch_first=True, **settings), nn.Linear(hidden, classes)

        def forward(self, x):
            return self.head(self.layer(x)[0][:, -1])

    class Residual(nn.Module):
        def __init__(self, before, channels, stride):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels)
            self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels)
            self.down = None
            if stride != 1 or before != channels:
                self.down = nn.Sequential(nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

        def forward(self, x):
            y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
            return F.relu(y + (x if self.down is None else self.down(x)), inplace=True)

    def resnet_18(classes=1000):
        layers, before = [], 64
        for channels, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            layers += [Residual(before, channels, stride), Residual(channels, channels, 1)]
            before = channels
        stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
        return nn.Sequential(*stem, *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))

    class Bottleneck(nn.Module):
        def __init__(self, before, channels, stride):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(before, channels, 1, bias=False), nn.BatchNorm2d(channels)
            self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels)
            self.conv3, self.bn3 = nn.Conv2d(channels, 4 * channels, 1, bias=False), nn.BatchNorm2d(4 * channels)
            self.down = None
            if stride != 1 or before != 4 * channels:
                self.down = nn.Sequential(nn.Conv2d(before, 4 * channels, 1, stride, bias=False), nn.BatchNorm2d(4 * channels))

        def forward(self, x):
            y = F.relu(self.bn1(self.conv1(x)), inplace=True)
            y = F.relu(self.bn2(self.conv2(y)), inplace=True)
            return F.relu(self.bn3(self.conv3(y)) + (x if self.down is None else self.down(x)), inplace=True)

    def resnet_50(classes=1000):
        layers, before = [], 64
        for channels, stride, n in ((64, 1, 3), (128, 2, 4), (256, 2, 6), (512, 2, 3)):
            layers += [Bottleneck(before if i == 0 else 4 * channels, channels, stride if i == 0 else 1) for i in range(n)]
            before = 4 * channels
        stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
        return nn.Sequential(*stem, *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, classes))

    return SimpleNamespace(tiny=tiny, mlp=mlp, lenet=LeNet, gpt=GPT, lstm=LSTM, resnet_18=resnet_18, resnet_50=resnet_50)


def training_step(lib, model, optimizer, x, y):
    """A function that makes one step and returns the loss."""
    cross_entropy = lib.nn.functional.cross_entropy

    def step():
        optimizer.zero_grad()
        loss = cross_entropy(model(x).flatten(0, -2), y.flatten())
        loss.backward()
        optimizer.step()
        return loss

    return step
