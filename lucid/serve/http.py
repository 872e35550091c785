"""HTTP/1.1 for small servers: requests with limits on size and time, answers whole or as events."""

import asyncio
import json

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

    def __init__(self, status, message, param=None):
        super().__init__(message)
        self.status, self.message, self.param = status, message, param

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
        self.keep = True

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
        self.keep = False  # until the request is understood
        lines = head.decode("latin-1").split("\r\n")
        parts = lines[0].split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
            raise HttpError(400, "not a request of HTTP/1.1")
        fields = {}
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
            raise HttpError(411, "a body needs Content-Length")
        text = fields.get("content-length", "0" if method != "POST" else None)
        if text is None:
            raise HttpError(411, "a body needs Content-Length")
        if not text.isdecimal():
            raise HttpError(400, "Content-Length is not a number")
        if int(text) > self.max_body:
            raise HttpError(413, f"a body of {text} bytes; at most {self.max_body}")
        if fields.get("expect", "").lower() == "100-continue":
            self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            return await asyncio.wait_for(self.reader.readexactly(int(text)), self.timeout)
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

    async def answer(self, status, content, kind="application/json"):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        keep = "keep-alive" if self.keep else "close"
        head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\n"
        head += f"Content-Length: {len(data)}\r\nConnection: {keep}\r\n\r\n"
        await self.write(head.encode() + data)

    async def start_events(self):
        """Begin an answer of events; it ends with the connection."""
        self.keep = False
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
        await self.write(head.encode())

    async def event(self, content):
        data = content if isinstance(content, str) else json.dumps(content)
        await self.write(f"data: {data}\n\n".encode())

    def is_gone(self):
        return self.writer.is_closing() or self.reader.at_eof()


async def listen(handle, host, port, max_body, timeout):
    """A server that calls handle(connection, method, path, body) for every request.

    >>> import asyncio
    >>> async def nothing(connection, method, path, body):
    ...     await connection.answer(200, {})
    >>> async def main():
    ...     server = await lucid.serve.http.listen(nothing, "127.0.0.1", 0, 100, 1.0)
    ...     server.close()
    >>> asyncio.run(main())
    """

    async def client(reader, writer):
        connection = Connection(reader, writer, max_body, timeout)
        try:
            while connection.keep:
                try:
                    request = await connection.request()
                    if request is None:
                        break
                    await handle(connection, *request)
                except HttpError as error:
                    await connection.answer(error.status, error.body())
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(client, host, port, limit=_HEADER_LIMIT, backlog=1024)
