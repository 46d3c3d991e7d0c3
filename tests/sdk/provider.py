"""A provider on loopback that answers as a test says, and remembers who asked and who left.

It is written apart from `fuseline mock`, on purpose: the gateway meets a second HTTP implementation here.
"""

import asyncio
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain, repeat

import trustme
import wire
from wire import End

TO_ARRIVE = 0.05


@dataclass
class Reply:
    """One answer. Without a body it is a good one, in the dialect of the request's path, streamed if so asked.

    A script is a stream's: the bytes of each chunk, pauses in seconds, and at its end, unless it ends well, how. `instead`
    of an answer the request meets this end, without a byte; `after` so many seconds the answer begins.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    text: str = "All is well."
    words: int = 5
    gap: float = 0.0
    gate: threading.Event | None = field(default=None, repr=False)
    script: Iterable[bytes | float | End] | None = None
    instead: End | None = None
    after: float = 0.0


@dataclass
class Seen:
    """One request's head and body, and when it had arrived."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float = field(default_factory=time.monotonic)

    @property
    def asked(self) -> dict:
        return json.loads(self.body or b"{}")


Choice = Callable[[Seen], Reply]


class Provider:
    """Listens from construction to `close`, behind TLS if it has a certificate. `heads` are all requests seen, `left` the
    times at which callers left early."""

    def __init__(self, *replies: Reply | Choice, certificate: trustme.LeafCert | None = None):
        self.heads: list[Seen] = []
        self.left: list[float] = []
        self.answer(*replies or (Reply(),))
        self._tls: ssl.SSLContext | None = None
        if certificate:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate.configure_cert(self._tls)
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        started.wait()

    def answer(self, *replies: Reply | Choice):
        """From now on these, one a request; the last repeats."""
        self._replies = list(replies)

    @property
    def hits(self) -> int:
        return len(self.heads)

    def close(self):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self, started: threading.Event):
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve(started))

    async def _serve(self, started: threading.Event):
        self._stop = asyncio.Event()
        connections: set[asyncio.Task] = set()

        def accept(reader, writer):
            task = asyncio.ensure_future(self._connection(reader, writer))
            connections.add(task)
            task.add_done_callback(connections.discard)

        server = await asyncio.start_server(accept, "127.0.0.1", 0, backlog=256, ssl=self._tls)
        host, port = server.sockets[0].getsockname()
        self.url = f"{'https' if self._tls else 'http'}://{host}:{port}"
        started.set()
        await self._stop.wait()
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        begun = b""
        try:
            while seen := await self._request(reader, begun):
                self.heads.append(seen)
                reply = self._replies[0] if len(self._replies) == 1 else self._replies.pop(0)
                reply = reply(seen) if callable(reply) else reply
                begun = await self._answer_unless_left(reply, seen, reader, writer)
                if begun is None:
                    self.left.append(time.monotonic())
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, begun: bytes) -> Seen | None:
        """The next request, whose first byte may have been read already."""
        try:
            head = (begun + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.rstrip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return Seen(path=first.split(" ")[1], headers=headers, body=body)

    async def _answer_unless_left(self, reply, seen, reader, writer) -> bytes | None:
        """None if the caller closed the connection before the answer was out, else what it has sent since."""
        answering = asyncio.ensure_future(self._answer(reply, seen, writer))
        watching = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({answering, watching}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done() and watching.result() == b"":
                return None
            await answering
            watching.cancel()
            (begun,) = await asyncio.gather(watching, return_exceptions=True)
            return begun if isinstance(begun, bytes) else b""
        except ConnectionError:
            return None
        finally:
            answering.cancel()
            watching.cancel()

    async def _answer(self, reply: Reply, seen: Seen, writer: asyncio.StreamWriter):
        while reply.gate and not reply.gate.is_set():
            await asyncio.sleep(0.002)
        await asyncio.sleep(reply.after)
        if reply.instead:
            await _end(writer, reply.instead)
            return
        dialect = wire.of(seen.path)
        script = reply.script
        if script is None and reply.status == 200 and reply.body is None and seen.asked.get("stream"):
            words = chain(repeat("so ", reply.words - 1), [reply.text])
            script = (step for event in dialect.stream(words) for step in (event, reply.gap))
        if script is not None:
            await _stream(writer, script)
            return
        body = reply.body
        if body is None and reply.status == 200:
            body = json.dumps(dialect.whole(reply.text)).encode()
        elif body is None:
            body = json.dumps(dialect.error(reply.status)).encode()
        headers = {"content-type": "application/json", "content-length": len(body)} | reply.headers
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {reply.status} Scripted\r\n{lines}\r\n".encode() + body)
        await writer.drain()


async def _stream(writer: asyncio.StreamWriter, script: Iterable[bytes | float | End]):
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    for step in script:
        match step:
            case End():
                await _end(writer, step)
                return
            case bytes() if step:
                writer.write(b"%x\r\n%b\r\n" % (len(step), step))
                await writer.drain()
            case float() if step:
                await asyncio.sleep(step)
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _end(writer: asyncio.StreamWriter, how: End):
    if how is End.SILENCE:
        await asyncio.Event().wait()
    await asyncio.sleep(TO_ARRIVE)
    if how is End.RESET:
        # Lingering for no time, a socket is closed by a reset.
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    # Not `close`, which would say goodbye in TLS.
    writer.transport.abort()
