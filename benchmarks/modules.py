"""The overhead of nn.Module: calls, attributes, walks, copies, beside PyTorch.

usage: python benchmarks/modules.py [--markdown] [FILTER]
"""

import sys

import torch
from compare import Row, alternate, show
from dispatch import start_up

import lucid

THIRD = 1 / 3
# title, statement, ratio at most (None: no target). empty: a module whose forward returns its argument; net: 3 Linear of 4 in a
# Sequential; deep: 50 layers of Linear and ReLU; hooked: empty with a forward hook
CASES = [
    ("a call of an empty module", "empty(x)", THIRD),
    ("the same with a keyword", "empty(input=x)", THIRD),
    ("the same with a forward hook", "hooked(x)", None),
    ("a parameter as an attribute", "layer.weight", THIRD),
    ("a module as an attribute", "net.first", THIRD),
    ("a plain attribute", "layer.in_features", None),
    ("an attribute that is not there", "getattr(layer, 'nothing', None)", None),
    ("setting a plain attribute", "layer.tag = 3", None),
    ("setting a buffer", "counted.seen = seen", None),
    ("`parameters()` of 100 tensors", "list(deep.parameters())", None),
    ("`named_parameters()` of 100 tensors", "list(deep.named_parameters())", None),
    ("`modules()`, 101 of them", "list(deep.modules())", None),
    ("`state_dict()` of 100 tensors", "deep.state_dict()", None),
    ("`load_state_dict()` of 100 tensors", "deep.load_state_dict(state)", None),
    ("`train()` of 101 modules", "deep.train()", None),
    ("`zero_grad()` of 100 tensors", "deep.zero_grad()", None),
    ("`clip_grad_norm_` of 100 tensors", "clip(graded, 1.0)", None),
    ("`Linear(4, 4)`", "Linear(4, 4)", None),
    ("`deepcopy` of a Linear", "deepcopy(layer)", None),
    ("`functional_call` of a Linear", "call(layer, given, x)", None),
    ("TransformerEncoderLayer in eval mode, 1 x 4 x 128", "with no_grad(): encoder.layers[0](few)", 1.0),
    ("the same, 8 x 64 x 128", "with no_grad(): encoder.layers[0](large)", 1.0),
    ("2 of them, half of 8 x 64 padding", "with no_grad(): encoder(large, src_key_padding_mask=padding)", 1.0),
]


def names(m):
    from copy import deepcopy

    class Empty(m.nn.Module):
        def forward(self, input):  # noqa: A002
            return input

    net = m.nn.Sequential()
    net.first = m.nn.Linear(4, 4)
    hooked, counted = Empty(), m.nn.Module()
    hooked.register_forward_hook(lambda module, args, output: None)
    counted.register_buffer("seen", m.zeros(1))
    deep = m.nn.Sequential(*(m.nn.Linear(4, 4) if i % 2 else m.nn.ReLU() for i in range(100)))
    layer = m.nn.Linear(4, 4)
    deep.requires_grad_(False)
    graded = [m.nn.Parameter(m.ones(4, 4)) for _ in range(100)]
    for p in graded:
        p.grad = m.ones(4, 4)
    encoder = m.nn.TransformerEncoder(m.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True), 2).eval()
    lengths = 8 * m.arange(1, 9).unsqueeze(1)
    return {
        "encoder": encoder, "few": m.ones(1, 4, 128), "large": m.ones(8, 64, 128), "padding": m.arange(64) >= lengths,
        "no_grad": m.no_grad, "x": m.ones(4), "empty": Empty(),
        "hooked": hooked, "counted": counted, "net": net, "deep": deep, "layer": layer,
        "seen": m.zeros(1), "state": deep.state_dict(), "graded": graded, "clip": m.nn.utils.clip_grad_norm_,
        "Linear": m.nn.Linear, "deepcopy": deepcopy, "call": m.func.functional_call,
        "given": {"weight": m.ones(4, 4), "bias": m.ones(4)},
    }  # fmt: skip


def rows(wanted):
    ours, theirs = names(lucid), names(torch)
    for title, statement, ratio in CASES:
        if wanted in title:
            mine, other = alternate(statement, ours, theirs)
            yield Row(title, mine, other, ratio, None, "s")
    if not wanted:
        bare = start_up("pass", 15)
        taken = start_up("import lucid.nn, lucid.optim", 15) - bare
        yield Row("import of nn and optim, over bare Python", taken, start_up("import torch", 2) - bare, None, 60e-3, "s")


def main(*arguments):
    wanted = [a for a in arguments if not a.startswith("--")]
    torch.set_num_threads(1)
    lucid.set_num_threads(1)
    show(list(rows(wanted[0] if wanted else "")), "--markdown" in arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
