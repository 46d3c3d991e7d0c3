"""Transports for `httpx` clients of any provider: every request guarded, every answer judged by our rules.

Of httpx's second generation (`httpx2`, on which the current SDKs stand) as well as of its first. Where an OpenAI or Anthropic
client is at hand, `fuseline.openai.wrap` and `fuseline.anthropic.wrap` do more: they count an SDK's own retries as one call.

    client = httpx.Client(transport=fuseline.httpx.Transport("mistral", httpx.HTTPTransport()))
"""

from __future__ import annotations

import functools
from typing import Any

from . import _settings
from ._breaker import Breaker
from ._http import Body, Call, module_of
from ._registry import get_breaker
from ._settings import Timeouts

__all__ = ["AsyncTransport", "Transport"]


class _Guarded:
    def __init__(
        self,
        breaker: Breaker | str,
        transport: Any,
        *,
        provider: str | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        """Puts a breaker (or the name of a process-wide one) before a transport.

        `provider` is whose rules beside the common ones say what an error means; the breaker's name unless given. `timeouts`
        are the limits of streamed answers; those of the breaker unless given.
        """
        self._breaker = get_breaker(breaker) if isinstance(breaker, str) else breaker
        self._inner = transport
        self._httpx = module_of(transport)
        self._provider = self._breaker.name.partition("/")[0] if provider is None else provider
        self._limits = self._breaker._limits if timeouts is None else _settings.limits(timeouts)

    @property
    def breaker(self) -> Breaker:
        """The breaker."""
        return self._breaker

    def _begin(self, request: Any) -> Call:
        read = request.extensions.get("timeout", {}).get("read")
        permit = self._breaker.acquire(read or 0.0)
        return Call(permit, self._provider, self._limits)

    def _whole(self, response: Any, content: bytes, call: Call) -> Any:
        """An error: it is judged by what it says, and given on as it was read."""
        call.judge(response, content)
        response.stream = self._httpx.ByteStream(content)
        return response


class Transport(_Guarded):
    """A transport for `httpx.Client`. A refused request raises `CircuitOpenError`.

    >>> import fuseline.httpx, httpx2 as httpx
    >>> down = httpx.MockTransport(lambda request: httpx.Response(503))
    >>> breaker = fuseline.Breaker("mistral", trip=[{"rule": "consecutive", "failures": 2}])
    >>> client = httpx.Client(transport=fuseline.httpx.Transport(breaker, down))
    >>> [client.get("http://mistral/v1/models").status_code for _ in range(2)]
    [503, 503]
    >>> breaker.state
    'open'
    """

    def handle_request(self, request: Any) -> Any:
        """Sends a request, if the breaker lets it through."""
        call = self._begin(request)
        try:
            response = self._inner.handle_request(request)
            response.request = request
            if response.is_error:
                return self._whole(response, b"".join(response.stream), call)
        except BaseException as error:
            call.permit.error(error)
            raise
        response.stream = _streams(self._httpx)[0](response.stream, call.body(response, is_decoded=False))
        return response

    def close(self) -> None:
        """Closes the transport behind it."""
        self._inner.close()

    def __enter__(self) -> Transport:
        self._inner.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._inner.__exit__(*raised)


class AsyncTransport(_Guarded):
    """A transport for `httpx.AsyncClient`; see `Transport`."""

    async def handle_async_request(self, request: Any) -> Any:
        """Sends a request, if the breaker lets it through."""
        call = self._begin(request)
        try:
            response = await self._inner.handle_async_request(request)
            response.request = request
            if response.is_error:
                content = b"".join([chunk async for chunk in response.stream])
                return self._whole(response, content, call)
        except BaseException as error:
            call.permit.error(error)
            raise
        response.stream = _streams(self._httpx)[1](response.stream, call.body(response, is_decoded=False))
        return response

    async def aclose(self) -> None:
        """Closes the transport behind it."""
        await self._inner.aclose()

    async def __aenter__(self) -> AsyncTransport:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._inner.__aexit__(*raised)


@functools.cache
def _streams(httpx: Any) -> tuple[type, type]:
    """The two classes of bodies: httpx asks for those of its own."""

    class Stream(httpx.SyncByteStream):  # type: ignore[misc]
        def __init__(self, inner: Any, body: Body) -> None:
            self._inner = inner
            self._body = body

        def __iter__(self) -> Any:
            return self._body.read(iter(self._inner))

        def close(self) -> None:
            self._inner.close()
            self._body.close()

    class AsyncStream(httpx.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, inner: Any, body: Body) -> None:
            self._inner = inner
            self._body = body

        def __aiter__(self) -> Any:
            return self._body.aread(aiter(self._inner))

        async def aclose(self) -> None:
            await self._inner.aclose()
            self._body.close()

    return Stream, AsyncStream
