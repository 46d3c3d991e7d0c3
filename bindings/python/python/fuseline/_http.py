"""One HTTP call under its permit: the answer judged by our rules, and its body read under our eyes."""

from __future__ import annotations

import functools
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

from . import _native, _watchdog
from ._errors import StreamError
from ._judge import fault_of, pairs

EVENT_STREAM = "text/event-stream"
_PLAIN = {"", "identity"}


class Call:
    """A call under way. It settles its permit by an answer, by the end of a body, or by an exception."""

    def __init__(self, permit: _native.Permit, provider: str, limits: dict[str, float]) -> None:
        self.permit = permit
        self.provider = provider
        self.limits = limits

    def judge(self, response: Any, body: bytes | None) -> None:
        """Settles by a whole answer."""
        request = _request(response)
        verdict = _native.classify(
            self.provider, response.status_code, pairs(response.headers), body, None, None, False, request.asks, None
        )
        self.permit.verdict(verdict)

    def body(self, response: Any, is_decoded: bool) -> Body:
        """The body of a good answer that is still to be read; it settles the permit."""
        content_type = response.headers.get("content-type", "")
        request = _request(response)
        is_clear = is_decoded or response.headers.get("content-encoding", "").strip().lower() in _PLAIN
        if is_clear and request.is_readable(content_type):
            watch = _native.Watch(self.permit, request, content_type, self.provider, **self.limits)
            stream = response.extensions.get("network_stream")
            is_alone = response.extensions.get("http_version") != b"HTTP/2"
            return Body(watch=watch, stream=stream if is_alone else None)
        return Body(permit=self.permit, is_stream=content_type.lower().startswith(EVENT_STREAM))


def _request(response: Any) -> _native.Request:
    request = response.request
    try:
        content = request.content
    except Exception:  # an upload that is streamed
        content = b""
    return _native.Request(request.method, request.url.path, content)


class Body:
    """A body under a permit: watched for what its events say, or only for its end."""

    def __init__(
        self,
        watch: _native.Watch | None = None,
        stream: Any = None,
        permit: _native.Permit | None = None,
        is_stream: bool = False,
    ) -> None:
        self._watch = watch
        self._stream = stream
        self._permit = permit
        self._is_stream = is_stream
        # Httpx closes a response whose end has been read, before anybody is told of the end.
        self._is_reading = False

    def read(self, source: Iterator[bytes]) -> Iterator[bytes]:
        """The same bytes; an incomplete answer ends in an exception."""
        watch = self._watch
        if watch is None:
            yield from self._read_plain(source)
            return
        cause: Exception | None = None
        try:
            with _watchdog.over(self, self._stream):
                while True:
                    watch.asked()
                    if watch.is_over:
                        break
                    self._is_reading = True
                    try:
                        chunk = next(source)
                    except StopIteration:
                        out = watch.end()
                    except Exception as error:
                        cause = error
                        out = self._broke(watch, error)
                    else:
                        out = watch.chunk(chunk)
                    finally:
                        self._is_reading = False
                    if out:
                        yield out
            self._finish(watch, cause)
        finally:
            watch.close()

    async def aread(self, source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """As `read`."""
        watch = self._watch
        if watch is None:
            async for chunk in self._aread_plain(source):
                yield chunk
            return
        import anyio  # what every async client of this kind stands on

        cause: Exception | None = None
        try:
            while True:
                watch.asked()
                if watch.is_over:
                    break
                out = b""
                self._is_reading = True
                try:
                    with anyio.move_on_after(watch.time_left()):
                        out = watch.chunk(await anext(source))
                except StopAsyncIteration:
                    out = watch.end()
                except Exception as error:
                    cause = error
                    out = self._broke(watch, error)
                finally:
                    self._is_reading = False
                if out:
                    yield out
            self._finish(watch, cause)
        finally:
            watch.close()

    def _broke(self, watch: _native.Watch, error: Exception) -> bytes:
        # Whoever shut the connection down did so because a limit had passed.
        watch.asked()
        if watch.is_over:
            return b""
        fault = fault_of(error) or "reset"
        return watch.broke("stall" if fault == "deadline" else fault)

    def _finish(self, watch: _native.Watch, cause: Exception | None) -> None:
        failure = watch.failure()
        if failure is None:
            return
        if cause is not None and failure[1] == "stream_broken":
            raise cause
        raise StreamError(*failure) from cause

    def _read_plain(self, source: Iterator[bytes]) -> Iterator[bytes]:
        permit = self._permit
        assert permit is not None
        try:
            self._is_reading = True
            for chunk in source:
                self._is_reading = False
                self._alive(permit)
                yield chunk
                self._is_reading = True
            permit.success()
        except Exception as error:
            permit.failure(self._kind(error))
            raise
        finally:
            permit.cancel()

    async def _aread_plain(self, source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        permit = self._permit
        assert permit is not None
        try:
            self._is_reading = True
            async for chunk in source:
                self._is_reading = False
                self._alive(permit)
                yield chunk
                self._is_reading = True
            permit.success()
        except Exception as error:
            permit.failure(self._kind(error))
            raise
        finally:
            permit.cancel()

    def _alive(self, permit: _native.Permit) -> None:
        if self._is_stream:
            permit.item()
        else:
            permit.progress()

    def _kind(self, error: Exception) -> str:
        is_late = fault_of(error) == "deadline"
        if self._is_stream:
            return "stream_stall" if is_late else "stream_truncated"
        return "timeout" if is_late else "network"

    def time_left(self) -> float | None:
        """Seconds until a limit passes; none while nobody waits for more: that time is the reader's own."""
        return self._watch.time_left() if self._watch is not None and self._is_reading else None

    def close(self) -> None:
        """Nobody reads on, unless somebody is about to be told of the end."""
        if self._is_reading:
            return
        if self._watch is not None:
            self._watch.close()
        if self._permit is not None:
            self._permit.cancel()


def read_under(response: Any, body: Body) -> None:
    """From now on whoever reads this response's bytes reads them through the body."""
    kind: Any = type(response)
    response.__class__ = _watched(kind)
    response._fuseline_body = body


@functools.cache
def _watched(base: Any) -> type:
    """A class of responses that are read under a body: attributes of the instance would make it refer to itself, and a stream
    that is dropped would stay open until the garbage is collected."""

    class Watched(base):  # type: ignore[misc]
        _fuseline_body: Body

        def iter_bytes(self, chunk_size: int | None = None) -> Iterator[bytes]:
            return self._fuseline_body.read(super().iter_bytes(chunk_size))

        def aiter_bytes(self, chunk_size: int | None = None) -> AsyncIterator[bytes]:
            return self._fuseline_body.aread(super().aiter_bytes(chunk_size))

        def close(self) -> None:
            super().close()
            self._fuseline_body.close()

        async def aclose(self) -> None:
            await super().aclose()
            self._fuseline_body.close()

    Watched.__name__, Watched.__qualname__, Watched.__module__ = base.__name__, base.__qualname__, base.__module__
    return Watched


def module_of(transport: Any) -> Any:
    """The httpx, of whichever generation, that a transport belongs to. Names of modules do not tell: SDKs relabel what they
    export again."""
    for name in ("httpx2", "httpx"):
        httpx = sys.modules.get(name)
        if httpx is not None and isinstance(transport, (httpx.BaseTransport, httpx.AsyncBaseTransport)):
            return httpx
    what = type(transport).__qualname__
    raise TypeError(f"transport is a {what}, must be an httpx.BaseTransport or httpx.AsyncBaseTransport")
