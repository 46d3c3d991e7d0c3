"""`Breaker`: a circuit breaker around your calls."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from types import AsyncGeneratorType, GeneratorType
from typing import Any, ParamSpec, TypeVar, Unpack, cast

from . import _native, _settings, _streams, _view
from ._judge import ErrorTypes, Judge
from ._settings import Duration, Settings, Timeouts

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


class Breaker(_native.Breaker):
    """A circuit breaker. It is cheap to share between threads, tasks and event loops, and meant to be: make one where your
    client lives, or ask `get_breaker` for the process-wide one of a name.

    >>> import fuseline
    >>> breaker = fuseline.Breaker("openai", trip=[{"rule": "consecutive", "failures": 2}], cooldown="30s", jitter=0)
    >>> @breaker
    ... def ask(question):
    ...     raise TimeoutError("no answer")
    >>> for _ in range(2):
    ...     try:
    ...         ask("Why?")
    ...     except TimeoutError as error:
    ...         print(error)
    no answer
    no answer
    >>> breaker.state, breaker.is_available()
    ('open', False)
    >>> ask("Why?")
    Traceback (most recent call last):
        ...
    fuseline.CircuitOpenError: circuit `openai` is open, retry in 30 s

    Unless `jitter` is set, a cooldown is lengthened by chance, up to a tenth, so that the processes of a fleet do not come back
    in the same instant.
    """

    _limits: dict[str, float]
    _judge: Judge

    def __new__(
        cls,
        name: str,
        *,
        model: str | None = None,
        failures: ErrorTypes | None = None,
        ignore: ErrorTypes = (),
        timeouts: Timeouts | None = None,
        clock: _native.Clock | None = None,
        **settings: Unpack[Settings],
    ) -> Breaker:
        """A closed breaker of this name; with `model`, of one model of that provider.

        `failures` are the exception types that are failures. Unless they are given, those of networks, timeouts and SDKs are, by the
        rules of `fuseline.classify`; all others say nothing. What the rules know of a given type keeps its kind, so that a
        `bad_request` does not count even where it is among them; the rest is a `server_error`. Those in `ignore` never count.

        `timeouts` are the limits of streams, `clock` moves by hand in tests, and `settings` are the keys of `[breaker]` in the
        configuration file.

        Raises `SettingsError`, with every mistake in the settings.
        """
        limits = _settings.limits(timeouts)
        handle = _native.Handle(name, model, _settings.encode(settings), clock)
        return cls._of(handle, Judge(failures, ignore), limits)

    @classmethod
    def _of(cls, handle: _native.Handle, judge: Judge, limits: dict[str, float]) -> Breaker:
        breaker = super().__new__(cls, handle, judge)
        breaker._judge = judge
        breaker._limits = limits
        return breaker

    def __call__(self, function: F) -> F:
        """Guards a function: decorate it. Coroutine functions, generator functions and async generator functions stay what
        they are; a stream is settled at its end, and its items have the limits of `timeouts`.

        >>> import asyncio, fuseline
        >>> breaker = fuseline.Breaker("openai")
        >>> @breaker
        ... async def tokens():
        ...     yield "Hi"
        >>> async def read():
        ...     return [token async for token in tokens()]
        >>> asyncio.run(read())
        ['Hi']
        """
        guarded: Callable[..., Any]
        if inspect.isasyncgenfunction(function):
            guarded = _streams.async_generator(self.acquire, function, self._limits)
        elif inspect.iscoroutinefunction(function):
            acquire = self.acquire

            @functools.wraps(function)
            async def guarded(*args: Any, **kwargs: Any) -> Any:
                permit = acquire()
                try:
                    result = await function(*args, **kwargs)
                except BaseException as error:
                    permit.error(error)
                    raise
                permit.success()
                return result

        elif inspect.isgeneratorfunction(function):
            guarded = _streams.generator(self.acquire, function, self._limits)
        else:
            call = super().call

            @functools.wraps(function)
            def guarded(*args: Any, **kwargs: Any) -> Any:
                return call(function, *args, **kwargs)

        return cast(F, guarded)

    def _finish(self, permit: _native.Permit, begun: Any) -> Any:
        """What `call` was given back has only begun: the same, under the permit."""

        def given() -> _native.Permit:
            return permit

        if isinstance(begun, AsyncGeneratorType):
            return _streams.async_generator(given, _already(begun), self._limits)()
        if isinstance(begun, GeneratorType):
            return _streams.generator(given, _already(begun), self._limits)()
        return _streams.coroutine(permit, cast("Coroutine[Any, Any, Any]", begun))

    def snapshot(self) -> _view.Snapshot:
        """Everything there is to see at this instant."""
        return _view.snapshot(self._snapshot())

    def history(self, after: int = 0) -> list[_view.Transition]:
        """Its transitions after number `after`, oldest first; the last 20 are kept.

        >>> import fuseline
        >>> breaker = fuseline.Breaker("openai", trip=[{"rule": "consecutive", "failures": 1}])
        >>> breaker.acquire().failure("overloaded", code=529)
        True
        >>> print(breaker.history()[-1].why)
        consecutive 1/1, overloaded; last failures: overloaded 529
        """
        return [_view.transition(fields) for fields in self._history(after)]

    def force_open(self, lasting: Duration | None = None) -> None:
        """Refuses all calls, for so long or until `release`."""
        self._force_open(None if lasting is None else _settings.seconds("lasting", lasting))

    def force_closed(self, lasting: Duration | None = None) -> None:
        """Lets all calls pass, for so long or until `release`."""
        self._force_closed(None if lasting is None else _settings.seconds("lasting", lasting))

    def reconfigure(self, **settings: Unpack[Settings]) -> None:
        """Other settings from now on. The state, the run of failures and a running cooldown stay; a window that changed
        starts empty."""
        self._reconfigure(_settings.encode(settings))

    def __repr__(self) -> str:
        return f"<Breaker {self.name!r}: {self.state}>"


def _already(begun: Any) -> Callable[[], Any]:
    def make() -> Any:
        return begun

    return make
