"""The server: answers as generation gives them, whole and streamed; bad requests; a crowd of good, slow and rude clients."""

import asyncio
import contextlib
import gc
import io
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import urllib.request
import weakref

import pytest

import lucid
from lucid import generate as command
from lucid import generation, models
from lucid.serve.server import Server

TOKENIZERS = json.loads((pathlib.Path(__file__).parents[1] / "models" / "tokenizers.json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    file = TOKENIZERS["byte level"]["file"]
    (path / "tokenizer.json").write_text(json.dumps(file))
    lucid.manual_seed(0)
    size = len(models.Tokenizer(file, own=True))
    config = models.GPT2Config(
        vocab_size=size, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64,
        bos_token_id=0, eos_token_id=1, initializer_range=0.3,
    )  # fmt: skip
    models.GPT2LMHeadModel(config).save_pretrained(path)
    return path


def server_of(folder, **options):
    model, tokenizer, encoder = lucid.serve.load(folder)
    return Server(model, tokenizer, encoder, "tiny", **options)


def run(server, test):
    """The coroutine test(server) beside the running server."""

    async def both():
        await server.start()
        try:
            return await asyncio.wait_for(test(server), 120)
        finally:
            await server.stop()

    return asyncio.run(both())


async def send(server, method, path, body=None, raw=None):
    """(status, fields, body)"""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    data = raw if raw is not None else (b"" if body is None else json.dumps(body).encode())
    writer.write(
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data
    )
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode().lower(), body


async def ask(server, path, **body):
    status, _, answer = await send(server, "POST", path, body)
    return status, json.loads(answer)


def events(body):
    lines = [line[6:] for line in body.decode().split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def expected(folder, prompt, count, **options):
    model, tokenizer = command.load(folder)
    ids = tokenizer.encode(prompt)
    out = generation.generate(model, [ids], max_new_tokens=count, **options)[0, len(ids) :].tolist()
    return tokenizer.decode(out)


def test_completions(folder):
    text = expected(folder, "the quick", 12)

    async def test(server):
        status, answer = await ask(server, "/v1/completions", prompt="the quick", max_tokens=12, temperature=0)
        assert (
            status == 200
            and answer["choices"][0]["text"] == text
            and answer["choices"][0]["finish_reason"] in ("length", "stop")
        )
        assert answer["usage"]["completion_tokens"] <= 12 and answer["model"] == "tiny"
        _, head, body = await send(
            server, "POST", "/v1/completions",
            dict(prompt="the quick", max_tokens=12, temperature=0, stream=True, stream_options={"include_usage": True}),
        )  # fmt: skip
        parts = events(body)
        assert "text/event-stream" in head and "".join(p["choices"][0]["text"] for p in parts if p["choices"]) == text
        assert parts[-1]["usage"] == answer["usage"]
        options = dict(max_tokens=8, temperature=0.9, seed=5)
        _, one = await ask(server, "/v1/completions", prompt="low", **options)
        _, two = await ask(server, "/v1/completions", prompt="low", **options)
        assert one["choices"] == two["choices"]
        _, many = await ask(server, "/v1/completions", prompt=["low", "new"], n=2, echo=True, **options)
        assert [c["index"] for c in many["choices"]] == [0, 1, 2, 3]
        assert many["choices"][0]["text"] == "low" + one["choices"][0]["text"]
        assert many["choices"][3]["text"].startswith("new")
        if len(text) > 4:
            _, cut = await ask(server, "/v1/completions", prompt="the quick", max_tokens=12, temperature=0, stop=text[2:4])
            assert cut["choices"][0]["text"] == text[: text.index(text[2:4])]
            assert cut["choices"][0]["finish_reason"] == "stop"

    run(server_of(folder), test)


def test_chat_and_vectors(folder):
    async def test(server):
        messages = [{"role": "user", "content": "hello"}]
        status, answer = await ask(server, "/v1/chat/completions", messages=messages, max_tokens=6, temperature=0)
        assert status == 200 and answer["choices"][0]["message"]["role"] == "assistant"
        _, _, body = await send(
            server, "POST", "/v1/chat/completions", dict(messages=messages, max_tokens=6, temperature=0, stream=True)
        )
        text = "".join(p["choices"][0]["delta"]["content"] for p in events(body))
        assert text == answer["choices"][0]["message"]["content"]
        status, answer = await ask(server, "/v1/embeddings", input=["low", "lower"])
        rows = [row["embedding"] for row in answer["data"]]
        assert status == 200 and len(rows) == 2 and len(rows[0]) == 32
        assert sum(v * v for v in rows[0]) == pytest.approx(1.0, rel=1e-5)
        _, packed = await ask(server, "/v1/embeddings", input="low", encoding_format="base64")
        import base64

        data = base64.b64decode(packed["data"][0]["embedding"])
        assert list(struct.unpack("<32f", data)) == pytest.approx(rows[0], rel=1e-6)
        status, head, page = await send(server, "GET", "/")
        assert status == 200 and "text/html" in head and b"<form" in page
        status, _, body = await send(server, "GET", "/v1/models")
        assert json.loads(body)["data"][0]["id"] == "tiny"

    run(server_of(folder), test)


BAD = [
    (dict(prompt="a", max_tokens=0), "max_tokens"),
    (dict(prompt="a", max_tokens="many"), "max_tokens"),
    (dict(prompt="a", max_tokens=99999), "max_tokens"),
    (dict(prompt="a", temperature=-1), "temperature"),
    (dict(prompt="a", top_p=2), "top_p"),
    (dict(prompt="a", n=99), "n"),
    (dict(prompt="a", stop=[""]), "stop"),
    (dict(prompt="a", logprobs=99), "logprobs"),
    (dict(prompt="a", logprobs=True), "logprobs"),
    (dict(prompt="a", logprobs=1, echo=True), "logprobs"),
    (dict(prompt="a", echo="yes"), "echo"),
    (dict(prompt="a", stream=True, stream_options="usage"), "stream_options"),
    (dict(prompt="a", logit_bias={"a": 1}), "logit_bias"),
    (dict(prompt="a", logit_bias={"999999": 1}), "logit_bias"),
    (dict(prompt="a", logit_bias={"1": 1000}), "logit_bias"),
    (dict(prompt="a", beams=3), "beams"),
    (dict(prompt="a", stream="yes"), "stream"),
    (dict(prompt=[]), "prompt"),
    (dict(prompt=[-1]), "prompt"),
    (dict(prompt={"a": 1}), "prompt"),
    (dict(prompt="the " * 200), "prompt"),
    (dict(), "prompt"),
]


def test_bad_requests(folder):
    async def test(server):
        for body, param in BAD:
            status, answer = await ask(server, "/v1/completions", **body)
            assert status == 400 and answer["error"]["param"] == param, body
        for raw in (b"{", b"[1]", b"\xff\xfe", b"null", b"[" * 4000):
            status, _, answer = await send(server, "POST", "/v1/completions", raw=raw)
            assert status == 400 and "error" in json.loads(answer)
        for raw in (b'{"prompt": "\\ud800"}', b'{"prompt": "a", "temperature": NaN}', b'{"prompt": "a", "seed": 1e400}'):
            assert (await send(server, "POST", "/v1/completions", raw=raw))[0] == 400
        for messages in (None, [], "hi", [{"role": "user"}], [{"role": 1, "content": "a"}],
                         [{"role": "user", "content": [{"type": "image_url"}]}]):  # fmt: skip
            assert (await ask(server, "/v1/chat/completions", messages=messages))[0] == 400
        for texts in (None, [], [""], [1], ["a"] * 3000):
            assert (await ask(server, "/v1/embeddings", input=texts))[0] == 400
        assert (await send(server, "GET", "/nothing"))[0] == 404
        assert (await send(server, "GET", "/v1/completions"))[0] == 405
        assert (await send(server, "POST", "/v1/completions", raw=b"x" * 30000))[0] == 413
        for line, status in (
            (b"nonsense\r\n\r\n", 400),
            (b"POST /v1/completions HTTP/1.1\r\n\r\n", 411),
            (b"POST /v1/completions HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            (b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
            (b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
            (b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n", 413),
            (b"GET / HTTP/1.1\r\nbroken\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nX: " + b"a" * 40000 + b"\r\n\r\n", 431),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(line)
            assert int((await reader.read()).split()[1]) == status
            writer.close()
        status, answer = await ask(server, "/v1/completions", prompt="a", max_tokens=2)
        assert status == 200

    run(server_of(folder, max_body=20000, max_tokens=64), test)


def test_one_connection_many_requests(folder):
    async def test(server):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for _ in range(3):
            body = json.dumps(dict(prompt="low", max_tokens=3, temperature=0)).encode()
            writer.write(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.split("content-length: ")[1].split("\r\n")[0])
            assert "200 ok" in head and json.loads(await reader.readexactly(length))["choices"]
        writer.close()

    run(server_of(folder), test)


def test_crowd(folder):
    """200 requests at once, among them slow readers, clients that go away, and malformed ones: nothing is lost or kept."""
    prompts = ["the quick", "low", "new newer", "It's 2026 and we've counted"]
    texts = {p: expected(folder, p, 10) for p in prompts}

    async def good(server, i):
        prompt = prompts[i % 4]
        status, answer = await ask(server, "/v1/completions", prompt=prompt, max_tokens=10, temperature=0)
        assert status == 200 and answer["choices"][0]["text"] == texts[prompt]
        return "good"

    async def slow(server, i):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        body = json.dumps(dict(prompt=prompts[i % 4], max_tokens=10, temperature=0, stream=True)).encode()
        writer.write(b"POST /v1/completions HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
        await asyncio.sleep(0.05)
        writer.write(body)
        answer = b""
        while piece := await reader.read(97):
            answer += piece
            await asyncio.sleep(0.002)
        writer.close()
        parts = events(answer.partition(b"\r\n\r\n")[2])
        assert "".join(p["choices"][0]["text"] for p in parts) == texts[prompts[i % 4]]
        return "slow"

    async def rude(server, i):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        body = json.dumps(dict(prompt=prompts[i % 4], max_tokens=50, stream=bool(i % 2))).encode()
        writer.write(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body[: None if i % 3 else 9])
        await asyncio.sleep(0.01 * (i % 5))
        writer.transport.abort()
        return "rude"

    async def malformed(server, i):
        status, _, _ = await send(server, "POST", "/v1/completions", raw=b'{"prompt": ' + b"x" * i)
        assert status == 400
        return "malformed"

    async def test(server):
        kinds = [good, good, slow, rude, malformed]
        done = await asyncio.gather(*(kinds[i % 5](server, i) for i in range(200)))
        assert [done.count(k) for k in ("good", "slow", "rude", "malformed")] == [80, 40, 40, 40]
        for _ in range(100):  # what rude clients asked for ends too
            if not server.batcher.active and not server.batcher.waiting:
                break
            await asyncio.sleep(0.1)
        assert not server.batcher.active and not server.batcher.waiting
        assert server.batcher.passes < 0.8 * server.batcher.tokens  # requests shared passes

    server = server_of(folder, max_batch=16)
    gc.collect()
    run(server, test)
    assert not server.batcher.thread.is_alive()


def test_full_queue(folder):
    async def test(server):
        many = await asyncio.gather(*(ask(server, "/v1/completions", prompt="low", max_tokens=30) for _ in range(30)))
        statuses = [status for status, _ in many]
        assert set(statuses) == {200, 429}

    run(server_of(folder, max_batch=1, max_queue=3), test)


def test_encoder(tmp_path):
    file = TOKENIZERS["word piece"]["file"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(file))
    size = len(models.Tokenizer(file, own=True))
    config = models.BertConfig(
        vocab_size=size, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    models.BertModel(config).save_pretrained(tmp_path)

    async def test(server):
        status, answer = await ask(server, "/v1/embeddings", input=["the dog", "new"])
        assert status == 200
        row = lucid.tensor(answer["data"][1]["embedding"])
        assert (row - server.encoder.encode("new")).abs().max() < 1e-5
        assert (await ask(server, "/v1/completions", prompt="a"))[0] == 400

    run(server_of(tmp_path), test)


def test_commands(folder, tmp_path):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(err):
        assert command.main([str(folder), "the quick", "--max-new-tokens", "12"], out) == 0
        assert (
            command.main(
                [str(folder), "the quick", "--bits", "8", "--temperature", "1", "--seed", "3", "--quiet"], io.StringIO()
            )
            == 0
        )
        assert command.main(["/nowhere", "the quick"], io.StringIO()) == 1
    assert out.getvalue() == "the quick" + expected(folder, "the quick", 12) + "\n"
    draws = tmp_path / "draws"  # a file that asks for draws: --temperature, 0 unless given, decides
    shutil.copytree(folder, draws)
    (draws / "generation_config.json").write_text(json.dumps({"do_sample": True, "temperature": 9.0}))
    with contextlib.redirect_stderr(io.StringIO()):
        assert command.main([str(draws), "the quick", "--max-new-tokens", "12"], again := io.StringIO()) == 0
    assert again.getvalue() == out.getvalue()
    assert "tokens/s" in err.getvalue() and "cannot load /nowhere" in err.getvalue()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    process = subprocess.Popen(
        [sys.executable, "-m", "lucid.serve", str(folder), "--port", "0"], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        line = process.stdout.readline()
        assert "http://127.0.0.1:" in line
        import urllib.request

        url = line.split()[-1]
        with urllib.request.urlopen(f"{url}/health") as answer:
            assert json.load(answer)["status"] == "ok"
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


async def talk(server, data):
    """All bytes that come back for these; the client's side stays open."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(data)
    answer = await reader.read()
    writer.close()
    return answer


def test_log_probabilities(folder):
    model, tokenizer = command.load(folder)
    ids = tokenizer.encode("the quick")
    options = dict(max_new_tokens=6, suppress_tokens=[1], return_dict_in_generate=True, output_logits=True)
    out = generation.generate(model, [ids], **options)
    new = out.sequences[0, len(ids) :].tolist()
    logs = [logits[0].log_softmax(-1) for logits in out.logits]

    async def test(server):
        options = dict(max_tokens=6, temperature=0, logit_bias={"1": -100})
        _, answer = await ask(server, "/v1/completions", prompt="the quick", logprobs=2, **options)
        found = answer["choices"][0]["logprobs"]
        assert found["tokens"] == [tokenizer.decode([i], skip_special_tokens=False) for i in new]
        assert found["token_logprobs"] == pytest.approx([float(row[i]) for row, i in zip(logs, new)], abs=1e-4)
        for near, row in zip(found["top_logprobs"], logs):
            assert sorted(near.values(), reverse=True) == pytest.approx(row.topk(2).values.tolist(), abs=1e-4)
        assert found["text_offset"][:2] == [0, len(found["tokens"][0])]
        request = dict(prompt="the quick", logprobs=0, stream=True, **options)
        parts = [p["choices"][0]["logprobs"] for p in events((await send(server, "POST", "/v1/completions", request))[2])]
        assert [t for p in parts for t in p["tokens"]] == found["tokens"]
        assert [at for p in parts for at in p["text_offset"]] == found["text_offset"]
        messages = [{"role": "user", "content": [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]}]
        _, answer = await ask(server, "/v1/chat/completions", messages=messages, logprobs=True, top_logprobs=3, **options)
        content = answer["choices"][0]["logprobs"]["content"]
        assert "".join(row["token"] for row in content).startswith(answer["choices"][0]["message"]["content"])
        assert all(len(row["top_logprobs"]) == 3 and bytes(row["bytes"]).decode() == row["token"] for row in content)
        plain = [{"role": "user", "content": "hello"}]
        request = dict(messages=plain, logprobs=True, stream=True, **options)
        parts = [p["choices"][0] for p in events((await send(server, "POST", "/v1/chat/completions", request))[2])]
        assert parts[0]["delta"] == {"role": "assistant", "content": ""}
        streamed = [row for p in parts[1:] for row in p["logprobs"]["content"]]
        assert [row["token"] for row in streamed] == [row["token"] for row in content]
        status, _ = await ask(server, "/v1/chat/completions", messages=plain, top_logprobs=2)
        assert status == 400
        options["logit_bias"] = {str(i): -100 for i in {1, *new}}
        _, other = await ask(server, "/v1/completions", prompt="the quick", logprobs=0, **options)
        assert not (set(other["choices"][0]["logprobs"]["tokens"]) & set(found["tokens"])) - {"\N{REPLACEMENT CHARACTER}"}

    run(server_of(folder), test)


def test_http(folder):
    """HEAD has no body, chunked bodies are read, requests may be sent ahead, a defect is a 500, a long body gets its answer."""

    async def test(server):
        heads = await talk(server, b"HEAD /health HTTP/1.1\r\n\r\nGET /v1/models/tiny HTTP/1.1\r\nConnection: close\r\n\r\n")
        first, _, rest = heads.partition(b"\r\n\r\n")
        assert b"200 OK" in first and rest.startswith(b"HTTP/1.1 200 OK") and rest.endswith(b"}")
        assert json.loads(rest.partition(b"\r\n\r\n")[2])["id"] == "tiny"
        status, head, _ = await send(server, "OPTIONS", "/v1/completions")
        assert status == 405 and "allow: post" in head
        body = json.dumps(dict(prompt="low", max_tokens=3, temperature=0)).encode()
        chunks = b"".join(b"%x;note\r\n%s\r\n" % (len(part), part) for part in (body[:5], body[5:])) + b"0\r\nX: y\r\n\r\n"
        start = b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
        two = await talk(server, start + b"\r\n" + chunks + start + b"Connection: close\r\n\r\n" + chunks)
        assert two.count(b"HTTP/1.1 200 OK") == 2
        assert b"400" in (await talk(server, start + b"\r\n5\r\n" + body[:9] + b"\r\n")).split(b"\r\n")[0]
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /v1/completions HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n" + b" " * 3000000)
        assert b"413" in await reader.readline()
        writer.close()

        async def broken(*_):
            raise KeyError("oops")

        server._health = broken
        assert (await send(server, "GET", "/health"))[0] == 500
        assert (await ask(server, "/v1/completions", prompt="low", max_tokens=2))[0] == 200

    run(server_of(folder, max_body=20000), test)


@pytest.mark.parametrize("stream", [True, False])
def test_who_goes_away_frees_the_place(folder, stream):
    """Also while pieces come all the time; caches do not stay."""

    async def test(server):
        body = json.dumps(dict(prompt="low", max_tokens=50, stream=stream, logit_bias={"1": -100})).encode()
        slow = server.batcher._step

        def step():
            import time

            time.sleep(0.02)
            slow()

        server.batcher._step = step
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        while server.batcher.tokens < 4:
            await asyncio.sleep(0.005)
        caches = [weakref.ref(text.cache) for text in server.batcher.active]
        writer.transport.abort()
        while server.batcher.active:
            await asyncio.sleep(0.005)
        assert caches and server.batcher.tokens < 40
        await asyncio.sleep(0.1)
        gc.collect()
        assert all(cache() is None for cache in caches)

    run(server_of(folder), test)


def test_angles_of_the_longest_text(tmp_path):
    """With dynamic scaling a batch would turn all texts by the longest one's angles: each gets its own."""
    file = TOKENIZERS["byte level"]["file"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(file))
    lucid.manual_seed(0)
    config = models.LlamaConfig(
        vocab_size=len(models.Tokenizer(file, own=True)), hidden_size=32, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=4, max_position_embeddings=48, initializer_range=0.4, eos_token_id=None,
        rope_scaling={"rope_type": "dynamic", "factor": 4.0, "original_max_position_embeddings": 4},
    )  # fmt: skip
    models.LlamaForCausalLM(config).save_pretrained(tmp_path)
    prompts = ["low", "the quick brown fox jumps over the lazy dog", "new newer"]
    texts = [expected(tmp_path, prompt, 12) for prompt in prompts]

    async def test(server):
        asked = [ask(server, "/v1/completions", prompt=p, max_tokens=12, temperature=0) for p in prompts]
        assert [answer["choices"][0]["text"] for _, answer in await asyncio.gather(*asked)] == texts

    run(server_of(tmp_path), test)


def test_ends_of_generation_config(folder, tmp_path):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    model, tokenizer = command.load(folder)
    ids = tokenizer.encode("the quick")
    third = int(generation.generate(model, [ids], max_new_tokens=3)[0, -1])
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, third]}))

    async def test(server):
        _, answer = await ask(server, "/v1/completions", prompt="the quick", max_tokens=9, temperature=0)
        assert answer["choices"][0]["finish_reason"] == "stop" and answer["usage"]["completion_tokens"] <= 3

    run(server_of(tmp_path), test)


def test_other_encoders(tmp_path):
    file = TOKENIZERS["word piece"]["file"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(file))
    size = len(models.Tokenizer(file, own=True))
    small = dict(vocab_size=size, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    models.DistilBertModel(models.DistilBertConfig(**small)).save_pretrained(tmp_path)

    async def test(server):
        assert (await ask(server, "/v1/embeddings", input="the dog"))[0] == 200

    run(server_of(tmp_path), test)


def test_a_signal_ends_it_gently(folder):
    """Requests under way are answered, the exit is 0."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    process = subprocess.Popen(
        [sys.executable, "-m", "lucid.serve", str(folder), "--port", "0"], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        body = json.dumps(dict(prompt=["low"] * 8, n=8, max_tokens=50, logit_bias={"1": -100})).encode()
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            idle = socket.create_connection(("127.0.0.1", port), timeout=60)
            while json.loads(urllib.request.urlopen(f"http://127.0.0.1:{port}/health").read())["tokens"] < 8:
                pass
            process.send_signal(signal.SIGTERM)
            answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
        assert answer.startswith(b"HTTP/1.1 200 OK") and answer.count(b'"finish_reason"') == 64
        assert process.wait(60) == 0
        idle.close()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
