"""`Chain`: several targets, each behind its breaker, tried in order."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Generic, TypeVar

from . import _native
from ._breaker import Breaker
from ._errors import CircuitOpenError
from ._registry import get_breaker
from ._settings import Duration, seconds

T = TypeVar("T")

# With these the request is at fault, or nobody: another target would do no better.
_FINAL = {None, "bad_request", "not_found", "content_policy", "validation", "parse", "cancelled", "local"}
_SHORTEST = 0.001  # a refusal may end within the millisecond
_CANCEL_COUNTS_AFTER = 20.0


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What a call along a chain came to."""

    value: T
    breaker: str | None
    """Whose target gave it; none where it comes from the cache."""
    age: float | None
    """How old it is in seconds, where it comes from the cache: say so to whoever reads it."""


class Cache:
    """The last good results by request, bounded by bytes and by age: the oldest leave first.

    The key is everything on which a result may depend: the request, and who asks. **Two users who must not see each other's
    results need two keys.** `size` tells how many bytes a key and its result hold; unless it is given, texts and bytes are
    measured, and anything else by its `repr`.
    """

    def __init__(
        self,
        *,
        ttl: Duration = "10m",
        max_bytes: int = 64 << 20,
        size: Callable[[Any, Any], int] | None = None,
    ) -> None:
        self._ttl = seconds("ttl", ttl)
        self._max_bytes = max_bytes
        self._size = size or (lambda key, value: _bytes_of(key) + _bytes_of(value))
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[float, int, Any]] = OrderedDict()
        self._bytes = 0

    def keep(self, key: Hashable, value: Any) -> None:
        """Keeps a result; one that is larger than all the room is not kept."""
        size = self._size(key, value)
        with self._lock:
            self._drop(key)
            if size > self._max_bytes:
                return
            while self._bytes + size > self._max_bytes:
                self._drop(next(iter(self._kept)))
            self._kept[key] = (time.monotonic(), size, value)
            self._bytes += size

    def recall(self, key: Hashable) -> tuple[Any, float] | None:
        """The result kept under this key and its age in seconds, if it is not too old."""
        with self._lock:
            if key not in self._kept:
                return None
            since, _, value = self._kept[key]
            age = time.monotonic() - since
            if age > self._ttl:
                self._drop(key)
                return None
            return value, age

    def _drop(self, key: Hashable) -> None:
        _, size, _ = self._kept.pop(key, (0.0, 0, None))
        self._bytes -= size

    def __len__(self) -> int:
        return len(self._kept)


def _bytes_of(value: Any) -> int:
    return sys.getsizeof(value if isinstance(value, (str, bytes)) else repr(value))


class Chain(Generic[T]):
    """Targets in the order of preference, each with its breaker (or the name of a process-wide one). A call goes to the first
    whose breaker lets it through; if that fails, to the next.

    | a target | then |
    |---|---|
    | refuses (its circuit is open) | the next is tried, at no cost |
    | comes through | that is the result |
    | raises what says nothing about it, or what says that the request is at fault | that is raised |
    | fails otherwise | the next is tried; after the last one, that is raised |

    A target is whatever tells your function where to go: a model's name, a client.

    >>> import fuseline
    >>> def ask(model):
    ...     if model == "large":
    ...         raise ConnectionResetError("gone")
    ...     return f"an answer of {model}"
    >>> chain = fuseline.Chain([(fuseline.Breaker("openai"), "large"), (fuseline.Breaker("groq"), "small")])
    >>> chain.call(ask)
    'an answer of small'
    """

    def __init__(
        self,
        targets: Iterable[tuple[Breaker | str, T]],
        *,
        max_wait: Duration = 0.0,
        budget: Duration | None = None,
        cache: Cache | None = None,
    ) -> None:
        """`max_wait`: where every target refuses, waits up to so long in all for the first that may let calls through again.
        `budget`: a call takes no longer than that; no further target is tried after it, and a coroutine is cancelled by it.
        `cache`: gives the last good result under the call's key where every target has failed or refused, or the budget is spent."""
        self._links = [(get_breaker(of) if isinstance(of, str) else of, target) for of, target in targets]
        if not self._links:
            raise ValueError("targets is empty, must be one or more of (breaker, target)")
        self._max_wait = seconds("max_wait", max_wait)
        self._budget = None if budget is None else seconds("budget", budget)
        self._cache = cache

    def is_available(self) -> bool:
        """Whether a call would be let through to some target now."""
        return any(breaker.is_available() for breaker, _ in self._links)

    def call(self, function: Callable[[T], Any], *, key: Hashable = None) -> Any:
        """The value of `answer`."""
        answer = self.answer(function, key=key)
        return answer.value if isinstance(answer, Answer) else _value(answer)

    def answer(self, function: Callable[[T], Any], *, key: Hashable = None) -> Any:
        """Calls a function with one target after the other until one comes through, and returns an `Answer`. With a coroutine
        function it is to be awaited. At most one call a target. Without a key nothing is kept. A generator that the function gives
        back is the answer as it is: it settles at its end, and no other target goes on with it.

        Raises the last exception, or `CircuitOpenError` with the shortest wait where every target refused.
        """
        run = _Run(self, key)
        if inspect.iscoroutinefunction(function):
            return self._answer_async(run, function)
        while True:
            for breaker, target in run.links():
                permit = run.ask(breaker)
                if permit is None:
                    continue
                try:
                    value = function(target)
                except BaseException as error:
                    if run.is_final(permit.error(error), error):
                        raise
                    continue
                if isinstance(value, CoroutineType):
                    value.close()
                    raise TypeError("function gave a coroutine, must be a coroutine function (async def) for that")
                if isinstance(value, (GeneratorType, AsyncGeneratorType)):
                    return Answer(breaker._finish(permit, value), breaker.name, None)
                return run.good(breaker, permit, value)
            wait = run.exhausted()
            if isinstance(wait, Answer):
                return wait
            time.sleep(wait)

    async def _answer_async(self, run: _Run, function: Callable[[T], Awaitable[Any]]) -> Answer[Any]:
        while True:
            for breaker, target in run.links():
                permit = run.ask(breaker)
                if permit is None:
                    continue
                limit = asyncio.timeout(run.left())
                try:
                    async with limit:
                        value = await function(target)
                except BaseException as error:
                    if limit.expired() and isinstance(error, TimeoutError):
                        run.out_of_budget(permit, error)
                        break
                    if run.is_final(permit.error(error), error):
                        raise
                    continue
                return run.good(breaker, permit, value)
            wait = run.exhausted()
            if isinstance(wait, Answer):
                return wait
            await asyncio.sleep(wait)


async def _value(answer: Awaitable[Answer[Any]]) -> Any:
    return (await answer).value


class _Run:
    """One call along a chain: what is left of its time, and what has come so far."""

    def __init__(self, chain: Chain[Any], key: Hashable) -> None:
        self._chain = chain
        self._key = key
        self._wait = chain._max_wait
        self._end = None if chain._budget is None else time.monotonic() + chain._budget
        self._soonest: CircuitOpenError | None = None
        self._failed: BaseException | None = None

    def left(self) -> float | None:
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def links(self) -> Iterator[tuple[Breaker, Any]]:
        self._soonest = None
        for link in self._chain._links:
            if self._failed is not None and self.left() == 0.0:
                return
            yield link

    def ask(self, breaker: Breaker) -> _native.Permit | None:
        try:
            return breaker.acquire()
        except CircuitOpenError as refused:
            if self._soonest is None or refused.retry_after < self._soonest.retry_after:
                self._soonest = refused
            return None

    def is_final(self, kind: str | None, error: BaseException) -> bool:
        self._failed = error
        return kind in _FINAL

    def out_of_budget(self, permit: _native.Permit, error: TimeoutError) -> None:
        """The time was up: the target's failure only if it had its share of it."""
        self._failed = error
        if (permit.elapsed or 0.0) >= _CANCEL_COUNTS_AFTER:
            permit.failure("timeout")
        permit.cancel()

    def good(self, breaker: Breaker, permit: _native.Permit, value: Any) -> Answer[Any]:
        permit.success()
        if self._chain._cache is not None and self._key is not None:
            self._chain._cache.keep(self._key, value)
        return Answer(value, breaker.name, None)

    def exhausted(self) -> Answer[Any] | float:
        """No target has come through: how long to wait for another round, or the kept answer."""
        if self._failed is None and self._soonest is not None:
            wait = max(self._soonest.retry_after, _SHORTEST)
            left = self.left()
            if wait <= self._wait and (left is None or wait <= left):
                self._wait -= wait
                return wait
        cache = self._chain._cache
        kept = cache.recall(self._key) if cache is not None and self._key is not None else None
        if kept is not None:
            return Answer(kept[0], None, kept[1])
        raise self._failed or self._soonest or RuntimeError("no target was asked")
