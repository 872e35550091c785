"""What a checker must know about Lucid, and what it must refuse: for tools/check_types.py, never run.

`assert_type` fixes the types that programs rely on. A line with `type: ignore[...]` has a mistake that mypy must report: if it
does not, mypy complains about the comment.
"""

from collections.abc import Iterator

from typing_extensions import assert_type

import lucid
from lucid import Tensor, nn, optim
from lucid.nn import functional as F
from lucid.utils.data import DataLoader, Dataset, TensorDataset

x = lucid.randn(4, 3, requires_grad=True)
assert_type(x, Tensor)
assert_type(x + 1, Tensor)
assert_type(2.0 * x, Tensor)
assert_type(x @ x.T, Tensor)
assert_type(-x > 0, Tensor)
assert_type(x[0, 1:], Tensor)
assert_type(x.shape[0], int)
assert_type(x.size(0), int)
assert_type(x.size(), lucid.Size)
assert_type(x.grad, Tensor | None)
assert_type(x.view(2, -1).permute(1, 0).reshape(3, 4), Tensor)
assert_type(x.sum(dim=(0, 1), keepdim=True), Tensor)
assert_type(x.max(dim=1).values, Tensor)
assert_type(lucid.topk(x, 2).indices, Tensor)
assert_type(x.split(2), tuple[Tensor, ...])
assert_type(x.requires_grad, bool)
assert_type(x.float().double().to("cpu"), Tensor)
assert_type(lucid.cat([x, x], dim=1), Tensor)
assert_type(lucid.linalg.svd(x).S, Tensor)
assert_type(lucid.fft.rfft(x), Tensor)
assert_type(lucid.special.erf(x), Tensor)
assert_type(lucid.einsum("ij,kj->ik", x, x), Tensor)
assert_type(lucid.is_tensor(x), bool)
assert_type(F.cross_entropy(x, lucid.tensor([0, 1, 2, 0])), Tensor)
assert_type(F.conv2d(lucid.ones(1, 1, 4, 4), lucid.ones(1, 1, 3, 3), padding=1), Tensor)
assert_type(x.dtype, lucid.dtype)
x.backward(gradient=lucid.ones_like(x), retain_graph=True)
x.register_hook(lambda g: 2 * g)


class Net(nn.Module):
    def __init__(self, hidden: int = 8) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, hidden), nn.ReLU(inplace=True), nn.Dropout(0.1))
        self.rnn = nn.LSTM(hidden, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, 2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y, (h, _) = self.rnn(self.body(x))
        assert_type(h, Tensor)
        return self.head(y[:, -1])


class Squares(Dataset):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> int:
        return index**2


@lucid.no_grad()
def evaluate(model: Net, batches: DataLoader) -> float:
    return sum(float(model(x).sum()) for (x,) in batches)


def batches() -> Iterator[Tensor]:
    for (x,) in DataLoader(TensorDataset(lucid.ones(8, 2, 3)), batch_size=2, shuffle=True):
        yield x


model = Net().to("cpu").train()
assert_type(model, Net)
optimizer = optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=10)
with lucid.autocast("cpu"), lucid.enable_grad():
    loss = model(lucid.ones(2, 4, 3)).sum()
optimizer.zero_grad(set_to_none=True)
optimizer.step()
schedule.step()
nn.utils.clip_grad_norm_(model.parameters(), 1.0)
model.load_state_dict(lucid.load("model.pt"))
lucid.save(model.state_dict(), "model.pt")
assert_type(model.head.weight, nn.Parameter)
for name, parameter in model.named_parameters():
    assert_type(name, str)
    nn.init.normal_(parameter, std=0.02)

lucid.zeros(2, dtpye=lucid.float32)  # type: ignore[call-overload]
lucid.stack([1, 2])  # type: ignore[list-item]
lucid.softmax(x)  # type: ignore[call-arg]
x.no_such_method()  # type: ignore[attr-defined]
x.view("2")  # type: ignore[arg-type]
lucid.no_such_function(x)  # type: ignore[attr-defined]
nn.Linear(3, "4")  # type: ignore[arg-type]
nn.Linear(3, 4, bais=False)  # type: ignore[call-arg]
nn.no_such_layer  # type: ignore[attr-defined]
F.relu(3)  # type: ignore[arg-type]
F.no_such_function(x)  # type: ignore[attr-defined]
optim.AdamW(3)  # type: ignore[arg-type]
optim.SGD(model.parameters(), lr="fast")  # type: ignore[arg-type]
x + "a"  # type: ignore[operator]
