"""The paths of OpenAI's API over a Batcher."""

import asyncio
import base64
import json
import struct
import time
import uuid

from ..generation.config import end_tokens
from .batching import Batcher, Text
from .http import HttpError, listen
from .page import PAGE

_NUMBER = (int, float)
# field: (types, least, most); what a request may say about sampling
_SAMPLING = {
    "temperature": (_NUMBER, 0, 100),
    "top_p": (_NUMBER, 0, 1),
    "top_k": (int, 0, 1 << 20),
    "min_p": (_NUMBER, 0, 1),
    "presence_penalty": (_NUMBER, -2, 2),
    "frequency_penalty": (_NUMBER, -2, 2),
    "repetition_penalty": (_NUMBER, 0.01, 100),
    "seed": (int, -(1 << 63), (1 << 63) - 1),
    "max_tokens": (int, 1, 1 << 30),
    "max_completion_tokens": (int, 1, 1 << 30),
    "n": (int, 1, 16),
}
_ABOUT = {
    "model",
    "user",
    "metadata",
    "store",
    "stream",
    "stream_options",
    "stop",
}  # says nothing about the text, or is read below


class Server:
    """A model behind a port.

    >>> server = lucid.serve.server.Server(None, None, None, "nothing")
    >>> server.batcher.close()
    """

    def __init__(
        self, model, tokenizer, encoder, name, max_batch=16, max_queue=512, max_tokens=2048, max_body=1 << 20, timeout=60.0
    ):
        self.model, self.tokenizer, self.encoder, self.name = model, tokenizer, encoder, name
        self.max_tokens, self.max_body, self.timeout = max_tokens, max_body, timeout
        self.batcher = Batcher(model, max_batch, max_queue)
        self.listener = self.port = None
        self.clients = {}
        self.requests, self.began = 0, int(time.time())

    async def start(self, host="127.0.0.1", port=0):
        self.listener, self.clients = await listen(self.handle, host, port, self.max_body, self.timeout)
        self.port = self.listener.sockets[0].getsockname()[1]

    async def stop(self, grace=0.0):
        """No new connections; requests under way get so many seconds to end, then an error, and that is waited for."""
        self.listener.close()
        for connection in self.clients.values():
            connection.keep = False
        if grace and self.clients:
            await asyncio.wait(list(self.clients), timeout=grace)
        await asyncio.get_running_loop().run_in_executor(None, self.batcher.close)
        if self.clients:
            await asyncio.wait(list(self.clients), timeout=1.0)

    async def handle(self, connection, method, path, body):
        paths = {
            "/": ("GET", self._page),
            "/health": ("GET", self._health),
            "/v1/models": ("GET", self._models),
            "/v1/completions": ("POST", self._completions),
            "/v1/chat/completions": ("POST", self._chat),
            "/v1/embeddings": ("POST", self._embeddings),
        }
        if path == f"/v1/models/{self.name}":
            paths[path] = ("GET", self._this_model)
        if path not in paths:
            raise HttpError(404, f"no such path: {path}; there are {', '.join(paths)}")
        wanted, answer = paths[path]
        if method != wanted and not (method == "HEAD" and wanted == "GET"):
            raise HttpError(405, f"{path} takes {wanted}", allow=wanted if wanted == "POST" else "GET, HEAD")
        self.requests += 1
        await answer(connection, _parsed(body) if wanted == "POST" else None)

    async def _page(self, connection, _):
        await connection.answer(200, PAGE, "text/html; charset=utf-8")

    async def _health(self, connection, _):
        b = self.batcher
        await connection.answer(
            200, {"status": "ok", "active": len(b.active), "waiting": len(b.waiting), "passes": b.passes, "tokens": b.tokens}
        )

    async def _models(self, connection, _):
        await connection.answer(200, {"object": "list", "data": [self._about()]})

    async def _this_model(self, connection, _):
        await connection.answer(200, self._about())

    def _about(self):
        return {"id": self.name, "object": "model", "created": self.began, "owned_by": "local"}

    # ---- texts ----

    async def _completions(self, connection, request):
        known = {"prompt", "echo", "suffix", "logprobs", "best_of", "logit_bias", *_ABOUT, *_SAMPLING}
        self._check(request, known, {"suffix": None, "best_of": 1}, ("echo",))
        count = request.get("logprobs")
        if count is not None and (type(count) is not int or not 0 <= count <= 20):
            raise HttpError(400, "logprobs is a number from 0 to 20", "logprobs")
        if count is not None and request.get("echo"):
            raise HttpError(400, "logprobs of an echoed prompt are not implemented", "logprobs")
        prompts = request.get("prompt")
        if isinstance(prompts, str) or (isinstance(prompts, list) and prompts and isinstance(prompts[0], int)):
            prompts = [prompts]
        if not isinstance(prompts, list) or not prompts or len(prompts) > 64:
            raise HttpError(400, "prompt is a text, token ids, or a list of up to 64 of them", "prompt")
        rows = [self._ids(p) for p in prompts]
        echo = [self.tokenizer.decode(ids) if request.get("echo") else "" for ids in rows]

        offsets = {}

        def piece(index, text, reason, records):
            logs = None if count is None else self._logprobs_of_text(records, offsets, index)
            return {"index": index, "text": text, "logprobs": logs, "finish_reason": reason}

        kind = "text_completion"
        await self._generate(connection, request, rows, "cmpl", kind, kind, piece, piece, echo=echo, logprobs=count)

    async def _chat(self, connection, request):
        known = {"messages", "logprobs", "top_logprobs", "logit_bias", "tools", "response_format", *_ABOUT, *_SAMPLING}
        self._check(request, known, {"tools": [], "response_format": {"type": "text"}}, ("logprobs",))
        count = request.get("top_logprobs") or 0
        if type(count) is not int or not 0 <= count <= 20 or (count and not request.get("logprobs")):
            raise HttpError(400, "top_logprobs is a number from 0 to 20, beside logprobs: true", "top_logprobs")
        messages = request.get("messages")
        good = isinstance(messages, list) and messages and all(isinstance(m, dict) for m in messages)
        messages = [{**m, "content": _joined(m.get("content"))} for m in messages] if good else []
        if not messages or not all(isinstance(m.get("role"), str) and isinstance(m["content"], str) for m in messages):
            raise HttpError(400, "messages is a list of objects with texts as role and content", "messages")
        try:
            ids = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True)
        except Exception as error:  # noqa: BLE001 (the template refuses these messages)
            raise HttpError(400, f"the chat template refuses these messages: {error}", "messages") from None

        def logs(records):
            return {"content": [self._logprob_of_chat(record) for record in records]} if request.get("logprobs") else None

        def whole(index, text, reason, records):
            message = {"role": "assistant", "content": text}
            return {"index": index, "message": message, "logprobs": logs(records), "finish_reason": reason}

        def part(index, text, reason, records):
            return {"index": index, "delta": {"content": text}, "logprobs": logs(records), "finish_reason": reason}

        def first(index):
            delta = {"role": "assistant", "content": ""}
            return {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}

        row, count = self._fits(ids), count if request.get("logprobs") else None
        kinds = ("chat.completion", "chat.completion.chunk")
        await self._generate(connection, request, [row], "chatcmpl", *kinds, whole, part, first=first, logprobs=count)

    def _spelled(self, token):
        return self.tokenizer.decode([token], skip_special_tokens=False)

    def _logprobs_of_text(self, records, offsets, index):
        begin, places, texts = offsets.get(index, 0), [], [self._spelled(token) for token, _, _ in records]
        for text in texts:
            places.append(begin)
            begin += len(text)
        offsets[index] = begin
        others = [{self._spelled(token): value for token, value in near} for _, _, near in records]
        values = [value for _, value, _ in records]
        return {"tokens": texts, "token_logprobs": values, "top_logprobs": others, "text_offset": places}

    def _logprob_of_chat(self, record):
        def one(token, value):
            text = self._spelled(token)
            return {"token": text, "logprob": value, "bytes": list(text.encode("utf-8", "replace"))}

        token, value, near = record
        return {**one(token, value), "top_logprobs": [one(*other) for other in near]}

    def _ids(self, prompt):
        if isinstance(prompt, str):
            return self._fits(self.tokenizer.encode(prompt) if self.tokenizer else [])
        size = self.model.config.vocab_size if self.model else 0
        if not isinstance(prompt, list) or not all(type(i) is int and 0 <= i < size for i in prompt):
            raise HttpError(400, f"token ids are integers from 0 to {size - 1}", "prompt")
        return self._fits(prompt)

    def _fits(self, ids):
        if self.model is None:
            raise HttpError(400, f"{self.name} is an encoder: it has /v1/embeddings only", "model")
        room = self.model.config.max_position_embeddings
        if not ids:
            start = self.tokenizer.bos_token_id if self.tokenizer else None
            start = start if start is not None else getattr(self.model.config, "bos_token_id", None)
            if start is None or start >= self.model.config.vocab_size:
                raise HttpError(400, "the prompt is empty", "prompt")
            return [start]
        if len(ids) >= room:
            raise HttpError(400, f"a prompt of {len(ids)} tokens; the model has room for {room}", "prompt")
        return ids

    def _check(self, request, known, only, flags=()):
        for name, value in request.items():
            if name not in known:
                raise HttpError(400, f"unknown field {name!r}", name)
            if name in only and value not in (only[name], None, False, 0):
                raise HttpError(400, f"{name} is not implemented", name)
            if name in _SAMPLING and value is not None:
                types, least, most = _SAMPLING[name]
                if isinstance(value, bool) or not isinstance(value, types) or not least <= value <= most:
                    raise HttpError(400, f"{name} is a number from {least} to {most}", name)
        for name in ("stream", *flags):
            if not isinstance(request.get(name), (bool, type(None))):
                raise HttpError(400, f"{name} is true or false", name)
        about = request.get("stream_options")
        if about is not None and not (isinstance(about, dict) and isinstance(about.get("include_usage", False), bool)):
            raise HttpError(400, "stream_options is an object, with include_usage true or false", "stream_options")
        bias, size = request.get("logit_bias") or {}, self.model.config.vocab_size if self.model else 0
        if not isinstance(bias, dict) or not all(
            key.isdecimal() and len(key) < 10 and int(key) < size and isinstance(value, _NUMBER) and -100 <= value <= 100
            for key, value in bias.items()
        ):
            raise HttpError(400, f"logit_bias has token ids below {size} and numbers from -100 to 100", "logit_bias")
        stop = request.get("stop")
        stop = [stop] if isinstance(stop, str) else stop or []
        if not isinstance(stop, list) or len(stop) > 16 or not all(isinstance(s, str) and s for s in stop):
            raise HttpError(400, "stop is a text or a list of up to 16", "stop")

    def _texts(self, request, rows, results, loop, logprobs):
        """The Texts of a request: n for every prompt. They put (index, piece, reason, records) into results."""
        limit = request.get("max_completion_tokens") or request.get("max_tokens") or min(256, self.max_tokens)
        if limit > self.max_tokens:
            raise HttpError(400, f"max_tokens is at most {self.max_tokens} here", "max_tokens")
        names = ("top_p", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty")
        options = {name: request[name] for name in names if request.get(name) is not None}
        options["top_k"] = request.get("top_k") or 0
        temperature = request.get("temperature")
        temperature = 1.0 if temperature is None else temperature
        if temperature > 0:
            options.update(do_sample=True, temperature=float(temperature))
        if options.get("top_p") == 0:
            options.update(top_p=1e-6)
        if request.get("logit_bias"):
            options.update(sequence_bias={(int(key),): value for key, value in request["logit_bias"].items()})
        stop = request.get("stop")
        stop = [stop] if isinstance(stop, str) else stop or []
        ends = end_tokens(self.model)
        room, texts, count = self.model.config.max_position_embeddings, [], request.get("n") or 1
        for i in range(len(rows) * count):
            row = rows[i // count]
            seed = request.get("seed")

            def emit(piece, reason, i=i):
                loop.call_soon_threadsafe(results.put_nowait, (i, piece, reason, texts[i].taken()))

            seeds = None if seed is None else [(seed + i) % (1 << 63)]
            most = min(limit, room - len(row) + 1)
            texts.append(Text(row, self.tokenizer, most, emit, ends, stop, logprobs, seed=seeds, **options))
        return texts

    async def _generate(
        self, connection, request, rows, prefix, kind, chunk_kind, whole, part, first=None, echo=None, logprobs=None
    ):
        loop, results = asyncio.get_running_loop(), asyncio.Queue()
        texts = self._texts(request, rows, results, loop, logprobs)
        if not self.batcher.submit(*texts):
            raise HttpError(429, "too many requests wait already; try again later")
        count = len(texts) // len(rows)
        head = {"id": f"{prefix}-{uuid.uuid4().hex}", "created": int(time.time()), "model": self.name}
        pieces, reasons = [(echo[i // count] if echo else "") for i in range(len(texts))], [None] * len(texts)
        stream, records = bool(request.get("stream")), [[] for _ in texts]
        try:
            if stream:
                await connection.start_events()
                for i, text in enumerate(pieces):
                    if text or first:
                        choice = first(i) if first else part(i, text, None, [])
                        await connection.event({**head, "object": chunk_kind, "choices": [choice]})
            while not all(reasons):
                i, piece, reason, new = await self._next(connection, results)
                if reason and reason.startswith("error"):
                    if stream:
                        await connection.event(HttpError(500, reason).body())
                        return
                    raise HttpError(500, reason)
                if reason == "cancelled":
                    raise HttpError(503, "the server stops")
                pieces[i], reasons[i] = pieces[i] + piece, reason
                records[i] += new
                if stream and (piece or reason):
                    await connection.event({**head, "object": chunk_kind, "choices": [part(i, piece, reason, new)]})
            new = sum(t.new_tokens for t in texts)
            given = sum(map(len, rows))
            usage = {"prompt_tokens": given, "completion_tokens": new, "total_tokens": given + new}
            if stream:
                if (request.get("stream_options") or {}).get("include_usage"):
                    await connection.event({**head, "object": chunk_kind, "choices": [], "usage": usage})
                await connection.event("[DONE]")
                return
        finally:
            for text in texts:
                text.cancel()
        choices = [whole(i, text, reasons[i], records[i]) for i, text in enumerate(pieces)]
        await connection.answer(200, {**head, "object": kind, "choices": choices, "usage": usage})

    @staticmethod
    async def _next(connection, results):
        """The next piece; a client that went away meanwhile ends the request."""
        while True:
            if connection.is_gone():  # also while pieces come: nobody waits for them
                raise ConnectionResetError("the client went away")
            try:
                return await asyncio.wait_for(results.get(), 0.5)
            except (asyncio.TimeoutError, TimeoutError):
                pass

    # ---- vectors ----

    async def _embeddings(self, connection, request):
        for name in request:
            if name not in ("input", "model", "encoding_format", "user", "dimensions"):
                raise HttpError(400, f"unknown field {name!r}", name)
        texts = request.get("input")
        texts = [texts] if isinstance(texts, str) else texts
        if not isinstance(texts, list) or not texts or len(texts) > 2048 or not all(isinstance(t, str) and t for t in texts):
            raise HttpError(400, "input is a text or a list of up to 2048 texts, none empty", "input")
        form = request.get("encoding_format") or "float"
        if form not in ("float", "base64"):
            raise HttpError(400, "encoding_format is float or base64", "encoding_format")
        if request.get("dimensions") is not None:
            raise HttpError(400, "dimensions is not implemented", "dimensions")
        loop = asyncio.get_running_loop()
        answer = loop.create_future()

        def done(result, error):
            def deliver():
                if not answer.done():
                    answer.set_exception(error) if error else answer.set_result(result)

            loop.call_soon_threadsafe(deliver)

        if not self.batcher.call(lambda: self._vectors(texts).tolist(), done):
            raise HttpError(429, "too many requests wait already; try again later")
        try:
            rows = await answer
        except ValueError as error:
            raise HttpError(400, str(error), "input") from None
        except RuntimeError as error:
            raise HttpError(503 if self.batcher.closed else 500, str(error)) from None
        count = sum(len(self.tokenizer.encode(t)) for t in texts)
        data = [{"object": "embedding", "index": i, "embedding": _packed(row, form)} for i, row in enumerate(rows)]
        usage = {"prompt_tokens": count, "total_tokens": count}
        await connection.answer(200, {"object": "list", "model": self.name, "data": data, "usage": usage})

    def _vectors(self, texts):
        if self.encoder is not None:
            return self.encoder.encode(texts)
        from .. import _C

        rows = []  # of a decoder: the mean of its last hidden states, of length 1
        for text in texts:
            ids = self.tokenizer.encode(text)
            if len(ids) > self.model.config.max_position_embeddings:
                raise ValueError(
                    f"a text of {len(ids)} tokens; the model has room for {self.model.config.max_position_embeddings}"
                )
            row = self.model.base_model(_C.tensor([ids])).last_hidden_state[0].mean(0)
            rows.append(row / row.norm().clamp(min=1e-12))
        return _C.stack(rows)


def _joined(content):
    """The text of a message: a text, or the texts of its parts."""
    parts = content if isinstance(content, list) else None
    if parts and all(isinstance(p, dict) and p.get("type") == "text" and isinstance(p.get("text"), str) for p in parts):
        return "".join(part["text"] for part in parts)
    return content


def _packed(row, form):
    return row if form == "float" else base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode()


def _parsed(body):
    try:
        request = json.loads(body)
        json.dumps(request, ensure_ascii=False).encode()  # halves of characters ("\\ud800") are no text
    except (ValueError, RecursionError) as error:
        raise HttpError(400, f"the body is not JSON: {error}") from None
    if not isinstance(request, dict):
        raise HttpError(400, "the body is not a JSON object")
    return request
