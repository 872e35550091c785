"""A network and adapters that both libraries build, with weights computed from the keys' names."""

import math
import zlib

CASES = {
    "plain": dict(r=2, lora_alpha=6),
    "rank stabilised": dict(r=4, lora_alpha=6, use_rslora=True),
    "magnitudes": dict(r=2, lora_alpha=3, use_dora=True),
    "magnitudes, linear alone": dict(r=3, target_modules=["lin", "head"], use_dora=True, bias="lora_only"),
    "biases": dict(r=2, bias="all"),
    "biases of its layers": dict(r=2, bias="lora_only"),
    "whole modules": dict(r=2, target_modules=["lin"], modules_to_save=["head"]),
    "patterns": dict(r=2, rank_pattern={"lin": 3}, alpha_pattern={"emb": 5}),
    "expression": dict(r=2, target_modules=r".*(lin|conv)"),
    "own biases": dict(r=2, target_modules=["lin"], lora_bias=True),
}
IDS = [[1, 4, 6, 2], [3, 3, 0, 5]]


def config_of(name):
    return {"target_modules": ["emb", "lin", "conv"], **CASES[name]}


def network(nn):
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.lin, self.conv = nn.Embedding(7, 6), nn.Linear(6, 5), nn.Conv2d(1, 2, 3, padding=1)
            self.head = nn.Linear(10, 3)

        def forward(self, ids):
            x = self.conv(self.lin(self.emb(ids)).unsqueeze(1))
            return self.head(x.transpose(1, 2).flatten(2))

    return Network()


def values(key, count):
    key = key.removeprefix("base_model.model.").replace("base_layer.", "").replace("original_module.", "")
    seed = zlib.crc32(key.encode()) % 1000
    around = 0.8 if "magnitude" in key else 0.0
    return [around + 0.3 * math.sin(seed + 1.3 * i) for i in range(count)]


def fill(lib, model):
    with lib.no_grad():
        for key, tensor in model.state_dict().items():
            tensor.copy_(lib.tensor(values(key, tensor.numel()), dtype=lib.float64).view(tensor.shape))
    return model
