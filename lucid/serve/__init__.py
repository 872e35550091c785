"""`python -m lucid.serve FOLDER`: a small server for one model, with the paths of OpenAI's API, on the standard library.

POST /v1/completions, /v1/chat/completions (both can stream) and /v1/embeddings; GET /v1/models, /health, and a page to type
into at /. Requests that arrive while others run join them in one batch (`lucid.serve.batching`).

>>> lucid.serve.options(["folder", "--port", "9000"]).port
9000
"""

import argparse
import asyncio
import signal
import sys


def options(argv=None):
    """The command line as an object.

    >>> lucid.serve.options(["folder"]).host
    '127.0.0.1'
    """
    parser = argparse.ArgumentParser(prog="python -m lucid.serve", description="Serve a language model or an encoder.")
    parser.add_argument("folder")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0: any that is free; the line at the start says which")
    parser.add_argument("--max-batch", type=int, default=16, help="texts generated at once")
    parser.add_argument("--max-queue", type=int, default=512, help="requests that wait; more get status 429")
    parser.add_argument("--max-tokens", type=int, default=2048, help="the most new tokens a request may ask for")
    parser.add_argument("--max-body", type=int, default=1 << 20, help="bytes of a request's body")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds a client may take to send or to read")
    parser.add_argument("--grace", type=float, default=10.0, help="seconds that requests under way get when the server ends")
    parser.add_argument("--bits", type=int, choices=(4, 8), help="store the weights in so many bits")
    parser.add_argument("--threads", type=int)
    return parser.parse_args(argv)


def load(folder, bits=None, threads=None):
    """(decoder or None, tokenizer, encoder or None) of a folder.

    >>> lucid.serve.load("nowhere")
    Traceback (most recent call last):
    FileNotFoundError: nowhere/config.json
    """
    from .. import generate, models

    found = models.AutoModelForCausalLM.find(models.AutoConfig.from_pretrained(folder))
    if found is None or not issubclass(found, models.GenerationMixin):  # an encoder
        encoder = models.SentenceEncoder.from_pretrained(folder)
        return None, encoder.tokenizer, encoder
    model, tokenizer = generate.load(folder, bits, None, threads)
    return model, tokenizer, None


def main(argv=None):
    chosen = options(argv)
    try:
        model, tokenizer, encoder = load(chosen.folder, chosen.bits, chosen.threads)
    except (OSError, ValueError, RuntimeError) as error:
        print(f"cannot load {chosen.folder}: {error}", file=sys.stderr)
        return 1
    import os

    from .server import Server

    name = os.path.basename(os.path.abspath(chosen.folder))
    server = Server(
        model,
        tokenizer,
        encoder,
        name,
        max_batch=chosen.max_batch,
        max_queue=chosen.max_queue,
        max_tokens=chosen.max_tokens,
        max_body=chosen.max_body,
        timeout=chosen.timeout,
    )

    async def run():
        await server.start(chosen.host, chosen.port)
        print(f"serving {name} at http://{chosen.host}:{server.port}", flush=True)
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ended.set)
        await ended.wait()
        for number in (signal.SIGTERM, signal.SIGINT):  # a second one ends at once
            loop.remove_signal_handler(number)
        await server.stop(chosen.grace)

    try:
        asyncio.run(run())
    except KeyboardInterrupt:
        pass
    return 0
