"""A small GPT learns a text letter by letter and writes its own.

python examples/char_gpt.py                       the first chapter of Alice's Adventures in Wonderland
python examples/char_gpt.py --text FILE --steps 2000 --length 1000
"""

import argparse
import pathlib
import time

import curve

import lucid
from lucid import Tensor, nn, optim
from lucid.nn import functional as F

ALICE = pathlib.Path(__file__).parent / "data/alice.txt"


class Block(nn.Module):
    """Attention to what came before, then a small network for every letter; both add to what is there."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))

    def forward(self, x: Tensor) -> Tensor:  # (batch, letters, width)
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        drop = self.dropout if self.training else 0.0
        seen = F.scaled_dot_product_attention(q, k, v, dropout_p=drop, is_causal=True)
        x = x + F.dropout(self.out(seen.transpose(1, 2).reshape(b, t, w)), self.dropout, self.training)
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(
        self, letters: int, context: int, width: int = 96, layers: int = 3, heads: int = 4, dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.context = context
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads, dropout) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters)

    def forward(self, ids: Tensor) -> Tensor:  # (batch, letters) -> a score for every possible next letter
        return self.head(self.norm(self.blocks(self.letters(ids) + self.places.weight[: ids.shape[1]])))

    @lucid.no_grad()
    def write(self, ids: Tensor, length: int, temperature: float = 0.8) -> Tensor:
        """The ids and `length` more, each drawn from what the model expects next."""
        self.eval()
        for _ in range(length):
            scores = self(ids[:, -self.context :])[:, -1] / temperature
            ids = lucid.cat([ids, lucid.multinomial(scores.softmax(-1), 1)], dim=1)
        return ids


def train(model: GPT, text: Tensor, steps: int, batch: int) -> list[float]:
    """Losses: the mean over the letters of a batch, in nats."""
    optimizer = optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    places, losses = lucid.arange(model.context + 1), []
    start = time.perf_counter()
    model.train()
    for step in range(1, steps + 1):
        pieces = text[lucid.randint(0, len(text) - model.context, (batch, 1)) + places]
        loss = F.cross_entropy(model(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        rate = step * batch * model.context / (time.perf_counter() - start)
        curve.progress(step, steps, f"loss {sum(losses[-20:]) / len(losses[-20:]):.3f}  {rate:,.0f} letters/s")
    return losses


def main(arguments: list[str] | None = None) -> list[float]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", default=ALICE, type=pathlib.Path)
    parser.add_argument("--steps", default=1000, type=int)
    parser.add_argument("--batch", default=16, type=int)
    parser.add_argument("--context", default=64, type=int)
    parser.add_argument("--width", default=96, type=int)
    parser.add_argument("--layers", default=3, type=int)
    parser.add_argument("--length", default=500, type=int, help="letters to write")
    parser.add_argument("--start", default="Alice ", help="what the written text begins with")
    parser.add_argument("--seed", default=0, type=int)
    args = parser.parse_args(arguments)

    lucid.manual_seed(args.seed)
    text = args.text.read_text(encoding="utf-8")
    letters = sorted(set(text) | set(args.start))
    number = {letter: i for i, letter in enumerate(letters)}
    model = GPT(len(letters), args.context, args.width, args.layers)
    print(f"{len(text):,} letters, {len(letters)} different; {sum(p.numel() for p in model.parameters()):,} weights")
    losses = train(model, lucid.tensor([number[c] for c in text]), args.steps, args.batch)
    written = model.write(lucid.tensor([[number[c] for c in args.start]]), args.length)[0]
    print("".join(letters[i] for i in written.tolist()))
    return losses


if __name__ == "__main__":
    main()
