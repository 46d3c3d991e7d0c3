"""Coroutines and generators under a permit. What they give passes through; how they end settles it."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import nullcontext
from time import monotonic
from typing import Any

from . import _native
from ._errors import StreamError

Acquire = Callable[[], _native.Permit]
FIRST_TOKEN = 60.0
STALL = 30.0


async def coroutine(permit: _native.Permit, awaitable: Awaitable[Any]) -> Any:
    """Awaits under a permit."""
    try:
        result = await awaitable
    except BaseException as error:
        permit.error(error)
        raise
    permit.success()
    return result


def generator(acquire: Acquire, function: Callable[..., Any], limits: dict[str, float]) -> Callable[..., Any]:
    """A generator function whose generators run under a permit from their first item on.

    Nothing can interrupt one that waits; an item that came too late ends it."""
    first_token, stall = limits.get("first_token", FIRST_TOKEN), limits.get("stall", STALL)

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        permit = acquire()
        limit, asked = first_token, monotonic()
        try:
            source = function(*args, **kwargs)
            item = next(source)
            while True:
                if monotonic() - asked > limit:
                    source.close()
                    raise _late(limit, "stall" if limit is stall else "first_token")
                permit.item()
                try:
                    sent = yield item
                except GeneratorExit:
                    source.close()
                    raise
                except BaseException as thrown:
                    limit, asked = stall, monotonic()
                    item = source.throw(thrown)
                else:
                    limit, asked = stall, monotonic()
                    item = source.send(sent)
        except StopIteration as end:
            permit.success()
            return end.value
        except BaseException as error:
            permit.error(error)
            raise

    return guarded


def async_generator(acquire: Acquire, function: Callable[..., Any], limits: dict[str, float]) -> Callable[..., Any]:
    """An async generator function whose generators run under a permit from their first item on. One that waits for too
    long is cancelled."""
    first_token, stall = limits.get("first_token", FIRST_TOKEN), limits.get("stall", STALL)

    @functools.wraps(function)
    async def guarded(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        permit = acquire()
        try:
            source = function(*args, **kwargs)
            item = await _within(first_token, "first_token", source.asend(None))
            while True:
                permit.item()
                try:
                    sent = yield item
                except GeneratorExit:
                    await source.aclose()
                    raise
                except BaseException as thrown:
                    step = source.athrow(thrown)
                else:
                    step = source.asend(sent)
                item = await _within(stall, "stall", step)
        except StopAsyncIteration:
            permit.success()
        except BaseException as error:
            permit.error(error)
            raise

    return guarded


async def _within(limit: float, name: str, step: Awaitable[Any]) -> Any:
    timeout = _timeout(limit)
    try:
        async with timeout:
            return await step
    except TimeoutError:
        if isinstance(timeout, asyncio.Timeout) and timeout.expired():
            raise _late(limit, name) from None
        raise


def _timeout(limit: float) -> Any:
    """On a loop that is not asyncio's there is nobody to wake us."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return nullcontext()
    return asyncio.timeout(limit)


def _late(limit: float, name: str) -> StreamError:
    what, ending = ("further item", "stream_stall") if name == "stall" else ("item", "stream_silent")
    return StreamError(f"the stream gave no {what} for {limit:g} s (limit {name})", ending, "stream_stall")
