"""A convolutional network learns digits: a training script as one writes it for PyTorch.

python examples/mnist.py --data FOLDER     with the four IDX files of MNIST in the folder (.gz or not)
python examples/mnist.py                   with the small digits that come with the examples, enlarged to 28x28
"""

import argparse
import gzip
import pathlib
import struct
from collections.abc import Iterator

import digits

import lucid
from lucid import Tensor, nn, optim
from lucid.nn import functional as F
from lucid.utils.data import DataLoader, TensorDataset

MEAN, DEVIATION = 0.1307, 0.3081


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3), nn.Conv2d(16, 32, 3)
        self.dropout1, self.dropout2 = nn.Dropout(0.25), nn.Dropout(0.5)
        self.fc1, self.fc2 = nn.Linear(32 * 12 * 12, 64), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.dropout1(x).flatten(1)
        return self.fc2(self.dropout2(F.relu(self.fc1(x))))


def read_idx(folder: pathlib.Path, name: str) -> Tensor:
    """An IDX file as a tensor of bytes: two zeros, the type (8: bytes), the number of dimensions, their sizes, the data."""
    path = pathlib.Path(folder, name)
    data = path.read_bytes() if path.exists() else gzip.decompress(path.with_name(name + ".gz").read_bytes())
    zeros, kind, dims = struct.unpack(">HBB", data[:4])
    if zeros != 0 or kind != 8 or not 1 <= dims <= 4:
        raise ValueError(f"{path} is not an IDX file of bytes")
    shape = struct.unpack(f">{dims}I", data[4 : 4 + 4 * dims])
    return lucid.frombuffer(bytearray(data), dtype=lucid.uint8, offset=4 + 4 * dims).view(shape)


def load_mnist(folder: pathlib.Path) -> Iterator[digits.Digits]:
    """(images, labels) to train on and to test with."""
    for part in ("train", "t10k"):
        images, labels = read_idx(folder, f"{part}-images-idx3-ubyte"), read_idx(folder, f"{part}-labels-idx1-ubyte")
        yield (images.unsqueeze(1).float() / 255 - MEAN) / DEVIATION, labels.long()


def load_digits() -> Iterator[digits.Digits]:
    """The same of the digits that come with the examples."""
    for pixels, labels in digits.load():
        images = F.interpolate(pixels.view(-1, 1, 8, 8), size=(20, 20), mode="bilinear")
        yield (F.pad(images, (4, 4, 4, 4)) - MEAN) / DEVIATION, labels


def train(args: argparse.Namespace, model: Net, loader: DataLoader, optimizer: optim.Optimizer, epoch: int) -> None:
    model.train()
    for number, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
        if number % args.log_interval == 0:
            print(f"epoch {epoch}  {number * len(target):6}/{len(loader.dataset)}  loss {loss.item():.4f}", flush=True)
        if args.dry_run:
            break


@lucid.no_grad()
def test(model: Net, loader: DataLoader) -> float:
    """Prints the mean loss; the share of right answers."""
    model.eval()
    loss, correct = 0.0, 0
    for data, target in loader:
        output = model(data)
        loss += F.cross_entropy(output, target, reduction="sum").item()
        correct += (output.argmax(dim=1) == target).sum().item()
    count = len(loader.dataset)
    print(f"test: mean loss {loss / count:.4f}, {correct}/{count} right ({correct / count:.1%})", flush=True)
    return correct / count


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder of MNIST's IDX files")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--test-batch-size", type=int, default=500)
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--lr", type=float, default=1.0)
    parser.add_argument("--gamma", type=float, default=0.7, help="the learning rate is multiplied by this after every epoch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=10, help="batches from line to line")
    parser.add_argument("--dry-run", action="store_true", help="one batch, to see whether it works")
    parser.add_argument("--save-model", help="file for the weights at the end; PyTorch reads it too")
    args = parser.parse_args(arguments)

    lucid.manual_seed(args.seed)
    training, testing = load_mnist(args.data) if args.data else load_digits()
    train_loader = DataLoader(TensorDataset(*training), batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(TensorDataset(*testing), batch_size=args.test_batch_size)
    model = Net()
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=args.gamma)
    share = 0.0
    for epoch in range(1, (1 if args.dry_run else args.epochs) + 1):
        train(args, model, train_loader, optimizer, epoch)
        share = test(model, test_loader)
        scheduler.step()
    if args.save_model:
        lucid.save(model.state_dict(), args.save_model)
    return share


if __name__ == "__main__":
    main()
