"""HTTP/1.1 for small servers: requests with limits on size and time, answers whole or as events."""

import asyncio
import json
import traceback

_HEADER_LIMIT = 16 << 10
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    411: "Length Required",
    413: "Content Too Large",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class HttpError(Exception):
    """An answer with a status of 400 or more, as JSON in OpenAI's form.

    >>> lucid.serve.http.HttpError(404, "no such path").body()["error"]["message"]
    'no such path'
    """

    def __init__(self, status, message, param=None, allow=None):
        """allow: for 405, the methods that a path takes."""
        super().__init__(message)
        self.status, self.message, self.param, self.allow = status, message, param, allow

    def body(self):
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": None}}


class Connection:
    """One client: reads requests, writes answers; every wait ends after `timeout` seconds.

    >>> lucid.serve.http.Connection(None, None, 10, 1.0).keep
    True
    """

    def __init__(self, reader, writer, max_body, timeout):
        self.reader, self.writer, self.max_body, self.timeout = reader, writer, max_body, timeout
        self.keep, self.bare = True, False  # bare: answers have no body (HEAD)
        self.streams = False  # events have begun

    async def request(self):
        """(method, path, body), or None at the end of the connection."""
        try:
            head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), self.timeout)
        except asyncio.IncompleteReadError as error:
            if error.partial.strip():
                raise HttpError(400, "the request ended in its header") from None
            return None
        except asyncio.LimitOverrunError:
            self.keep = False
            raise HttpError(431, f"a header of more than {_HEADER_LIMIT} bytes") from None
        except (asyncio.TimeoutError, TimeoutError):
            return None
        self.keep = self.bare = False  # until the request is understood
        lines = head.decode("latin-1").split("\r\n")
        parts = lines[0].split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
            raise HttpError(400, "not a request of HTTP/1.1")
        self.bare, fields = parts[0] == "HEAD", {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if line and not colon:
                raise HttpError(400, "a header line without a colon")
            fields[name.strip().lower()] = value.strip()
        body = await self._body(parts[0], fields)
        self.keep = parts[2] == "HTTP/1.1" and fields.get("connection", "").lower() != "close"
        return parts[0], parts[1].partition("?")[0], body

    async def _body(self, method, fields):
        if "transfer-encoding" in fields:
            if fields["transfer-encoding"].lower() != "chunked" or "content-length" in fields:
                raise HttpError(400, "a body has either Content-Length or Transfer-Encoding: chunked")
            return await self._in_time(self._chunks(fields))
        text = fields.get("content-length", "0" if method != "POST" else None)
        if text is None:
            raise HttpError(411, "a body needs Content-Length")
        if not text.isdecimal():
            raise HttpError(400, "Content-Length is not a number")
        if int(text) > self.max_body:
            raise HttpError(413, f"a body of {text} bytes; at most {self.max_body}")
        self._go_on(fields)
        return await self._in_time(self.reader.readexactly(int(text)))

    def _go_on(self, fields):
        if fields.get("expect", "").lower() == "100-continue":
            self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def _chunks(self, fields):
        """A body whose length shows at its end."""
        self._go_on(fields)
        body = b""
        while True:
            line = (await self._line()).partition(b";")[0].strip()
            if not line or len(line) > 8 or not all(c in b"0123456789abcdefABCDEF" for c in line):
                raise HttpError(400, "a chunk of the body has no length")
            size = int(line, 16)
            if not size:
                break
            if len(body) + size > self.max_body:
                raise HttpError(413, f"a body of more than {self.max_body} bytes")
            body += await self.reader.readexactly(size)
            if await self._line():
                raise HttpError(400, "a chunk of the body is longer than it says")
        while await self._line():  # fields after the body say nothing here
            pass
        return body

    async def _line(self):
        try:
            return (await self.reader.readuntil(b"\r\n"))[:-2]
        except asyncio.LimitOverrunError:
            raise HttpError(400, "a line of the body's chunks is too long") from None

    async def _in_time(self, read):
        try:
            return await asyncio.wait_for(read, self.timeout)
        except asyncio.IncompleteReadError:
            raise HttpError(400, "the request ended in its body") from None
        except (asyncio.TimeoutError, TimeoutError):
            raise HttpError(408, "the body did not arrive in time") from None

    async def write(self, data):
        """Send bytes; a client that does not read for too long is dropped."""
        self.writer.write(data)
        try:
            await asyncio.wait_for(self.writer.drain(), self.timeout)
        except (asyncio.TimeoutError, TimeoutError):
            self.writer.transport.abort()
            raise ConnectionResetError("the client does not read") from None

    async def refuse(self, error):
        """Answer with an HttpError; amid events it is one of them."""
        if self.streams:
            return await self.event(error.body())
        await self.answer(error.status, error.body(), fields=f"Allow: {error.allow}\r\n" if error.allow else "")

    async def let_go(self):
        """Before the connection closes: a client that still sends would lose the answer."""
        try:
            if self.writer.can_write_eof():
                self.writer.write_eof()
            for _ in range(256):
                if not await asyncio.wait_for(self.reader.read(1 << 16), min(self.timeout, 1.0)):
                    break
        except (OSError, asyncio.TimeoutError, TimeoutError):
            pass

    async def answer(self, status, content, kind="application/json", fields=""):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        keep = "keep-alive" if self.keep else "close"
        head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n"
        head += f"{fields}Content-Length: {len(data)}\r\nConnection: {keep}\r\n\r\n"
        await self.write(head.encode() + (b"" if self.bare else data))

    async def start_events(self):
        """Begin an answer of events; it ends with the connection."""
        self.keep, self.streams = False, True
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
        await self.write(head.encode())

    async def event(self, content):
        data = content if isinstance(content, str) else json.dumps(content)
        await self.write(f"data: {data}\n\n".encode())

    def is_gone(self):
        return self.writer.is_closing() or self.reader.at_eof()


async def listen(handle, host, port, max_body, timeout):
    """A server that calls handle(connection, method, path, body) for every request; `clients` are the tasks that answer.

    >>> import asyncio
    >>> async def nothing(connection, method, path, body):
    ...     await connection.answer(200, {})
    >>> async def main():
    ...     server, clients = await lucid.serve.http.listen(nothing, "127.0.0.1", 0, 100, 1.0)
    ...     server.close()
    >>> asyncio.run(main())
    """

    clients = {}  # task: its connection

    async def client(reader, writer):
        connection = Connection(reader, writer, max_body, timeout)
        task = asyncio.current_task()
        try:
            while connection.keep:
                try:
                    clients.pop(task, None)  # waits for a request: nothing is lost if it ends
                    request = await connection.request()
                    if request is None:
                        break
                    clients[task] = connection
                    await handle(connection, *request)
                except HttpError as error:
                    await connection.refuse(error)
                    if not connection.keep:
                        await connection.let_go()
                except (ConnectionError, asyncio.CancelledError):
                    raise
                except Exception:  # noqa: BLE001 (a defect of the server ends one request)
                    traceback.print_exc()
                    connection.keep = False
                    await connection.refuse(HttpError(500, "the server failed at this request; its output says how"))
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            clients.pop(task, None)
            writer.close()

    server = await asyncio.start_server(client, host, port, limit=_HEADER_LIMIT, backlog=1024)
    return server, clients
