"""An inference server with the standard library alone: threads answer requests with one model.

usage: python examples/server.py [PORT]      then, with rows of 64 pixels of 0 ... 16 in digit.json:

    curl -d @digit.json localhost:8000

Forward passes are thread-safe and run without the interpreter's lock. A bad request gets a text that says what was wrong.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import curve
import digits

import lucid
from lucid import Tensor, nn, optim
from lucid.nn import functional as F


def trained(epochs: int = 20) -> nn.Sequential:
    """A network for digits of 8 x 8 pixels; a real server would load one: model.load_state_dict(lucid.load(path))."""
    (x, labels), _ = digits.load()
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(1, epochs + 1):
        total, batches = 0.0, 0
        for batch in lucid.randperm(len(x)).split(64):
            loss = F.cross_entropy(model(x[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, batches = total + loss.item(), batches + 1
        curve.progress(epoch, epochs, f"loss {total / batches:.4f}")
    return model.eval()


def answer(model: nn.Sequential, body: bytes) -> list[dict[str, float]]:
    """For each row of 64 pixels of 0 ... 16 the digit and its probability."""
    rows: Tensor = lucid.tensor(json.loads(body), dtype=lucid.float32)
    if rows.ndim != 2 or rows.shape[1] != 64:
        raise ValueError(f"a list of rows of 64 numbers is expected, not shape {tuple(rows.shape)}")
    with lucid.inference_mode():
        best = model(rows / 16).softmax(dim=1).max(dim=1)
    return [{"digit": d, "probability": p} for d, p in zip(best.indices.tolist(), best.values.tolist())]


def serve(model: nn.Sequential, port: int) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            try:
                status, said = 200, json.dumps(answer(model, self.rfile.read(int(self.headers.get("Content-Length", 0)))))
            except (ValueError, TypeError, RuntimeError) as error:
                status, said = 400, json.dumps({"error": str(error)})
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def main(port: int = 8000) -> None:
    lucid.manual_seed(0)
    with serve(trained(), port) as server:
        print(f"http://127.0.0.1:{server.server_port} answers; end it with Ctrl-C")
        server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 8000)
