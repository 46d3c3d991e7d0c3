"""What the OpenAI and the Anthropic SDK have in common: their clients, guarded.

A guarded client is of a class of its own, so that the copies that `with_options` makes are guarded too. Two methods are
laid over: `request`, which repeats a call until the SDK gives up, so that its retries are one call for the breaker, and
`_process_response`, which sees a good answer before it is parsed.
"""

from __future__ import annotations

import copy
import functools
from contextvars import ContextVar
from typing import Any, TypeVar, cast

from . import _settings
from ._breaker import Breaker
from ._http import Call, read_under
from ._registry import get_breaker
from ._settings import Timeouts

Client = TypeVar("Client")

_under_way: ContextVar[Call | None] = ContextVar("fuseline_call", default=None)


class Guard:
    """What a guarded client needs to know."""

    def __init__(self, breaker: Breaker, provider: str, limits: dict[str, float]) -> None:
        self._breaker = breaker
        self._provider = provider
        self._limits = limits

    def begin(self, client: Any, options: Any, is_streamed: bool) -> Call:
        permit = self._breaker.acquire(self._patience(client, options, is_streamed))
        return Call(permit, self._provider, self._limits)

    def _patience(self, client: Any, options: Any, is_streamed: bool) -> float:
        """How long the SDK waits for an answer at most: a probe's lease lasts as long."""
        if is_streamed:
            return self._limits.get("first_token", 60.0)
        given = getattr(options, "timeout", None)
        given = given if isinstance(given, (int, float)) or hasattr(given, "read") else client.timeout
        read = getattr(given, "read", given)
        return float(read) if isinstance(read, (int, float)) else 0.0

    def failed(self, call: Call, error: BaseException) -> None:
        """The SDK has given up; an error that came after the answer is none of the provider's."""
        judged = self._breaker._judge(error, call.provider)
        if judged is None:
            call.permit.cancel()
        elif isinstance(judged, str):
            call.permit.failure(judged)
        else:
            call.permit.verdict(judged)


def answered(response: Any) -> None:
    """A good answer has come, its body or only its head."""
    call = _under_way.get()
    if call is None or not response.is_success:
        return
    if response.is_closed:
        call.judge(response, response.content)
    else:
        read_under(response, call.body(response, is_decoded=True))


def wrap(
    sdk: Any, client: Client, breaker: Breaker | str | None, provider: str, timeouts: Timeouts | None
) -> Client:
    """A guarded copy of a client."""
    if not isinstance(client, (sdk._base_client.SyncAPIClient, sdk._base_client.AsyncAPIClient)):
        raise TypeError(f"client is a {type(client).__qualname__}, must be a client of the package {sdk.__name__}")
    name = breaker if isinstance(breaker, str) else provider
    of = breaker if isinstance(breaker, Breaker) else get_breaker(name)
    guard = Guard(of, provider, of._limits if timeouts is None else _settings.limits(timeouts))
    is_async = isinstance(client, sdk._base_client.AsyncAPIClient)
    shell: Any = copy.copy(client)
    shell.__class__ = (_async_class if is_async else _sync_class)(type(client), guard)
    return cast(Client, shell.copy())


def _sync_class(base: Any, guard: Guard) -> type:
    def request(self: Any, cast_to: Any, options: Any, **kwargs: Any) -> Any:
        call = guard.begin(self, options, bool(kwargs.get("stream")))
        token = _under_way.set(call)
        try:
            return base.request(self, cast_to, options, **kwargs)
        except BaseException as error:
            guard.failed(call, error)
            raise
        finally:
            _under_way.reset(token)

    def _process_response(self: Any, *, response: Any, **kwargs: Any) -> Any:
        answered(response)
        return base._process_response(self, response=response, **kwargs)

    return _class(base, request, _process_response)


def _async_class(base: Any, guard: Guard) -> type:
    async def request(self: Any, cast_to: Any, options: Any, **kwargs: Any) -> Any:
        call = guard.begin(self, options, bool(kwargs.get("stream")))
        token = _under_way.set(call)
        try:
            return await base.request(self, cast_to, options, **kwargs)
        except BaseException as error:
            guard.failed(call, error)
            raise
        finally:
            _under_way.reset(token)

    async def _process_response(self: Any, *, response: Any, **kwargs: Any) -> Any:
        answered(response)
        return await base._process_response(self, response=response, **kwargs)

    return _class(base, request, _process_response)


def _class(base: type, request: Any, process: Any) -> type:
    methods = {
        "request": functools.wraps(base.request)(request),  # type: ignore[attr-defined]
        "_process_response": functools.wraps(base._process_response)(process),  # type: ignore[attr-defined]
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
    }
    return type(base.__name__, (base,), methods)
