"""The native part. Private: what is not exported by `fuseline` itself may change at any time."""

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Final, ParamSpec, Self, TypeVar, final

P = ParamSpec("P")
R = TypeVar("R")

VERSION: Final[str]

@final
class Clock:
    """A source of monotonic time: the system's, or one that a test moves by hand."""

    @staticmethod
    def system() -> Clock:
        """The system's monotonic clock, which steps of the wall clock do not move."""

    @staticmethod
    def manual() -> Clock:
        """A clock that stands until `advance` moves it."""

    def advance(self, by: float) -> None:
        """Moves a manual clock forward by so many seconds. A system clock ignores it."""

    def now(self) -> float:
        """Seconds since its origin."""

@final
class Handle:
    def __new__(cls, name: str, model: str | None, settings: str, clock: Clock | None) -> Self: ...

@final
class Permit:
    """Leave to make one call, and the duty to say how it went.

    It settles once: by the first of `success`, `failure`, `error`, `verdict` or `cancel`, or by the block that it is entered for.
    One that is dropped is cancelled: no counter moves, and a probe's slot is free again at once.
    """

    def success(self) -> bool:
        """The provider came through, just now. False where it is settled already."""

    def success_after(self, took: float) -> bool:
        """The provider came through after so many seconds, by the caller's own clock. False where it is settled already."""

    def failure(
        self, kind: str, *, retry_after: float | None = None, open_now: bool = False, code: int | None = None
    ) -> bool:
        """The call failed by this kind; whether that counts is the settings' to say. `retry_after` is the provider's own wait
        hint in seconds, which lengthens the cooldown that this failure begins; `open_now` opens whatever the counts say; `code`
        is a number for the explanation, such as the HTTP status. False where it is settled already."""

    def error(self, raised: BaseException) -> str | None:
        """Settles by what the breaker's rules say of an exception, and returns the kind that is recorded, if one is."""

    def verdict(self, verdict: Verdict) -> str | None:
        """Settles by a verdict, and returns the kind that is recorded, if one is."""

    def cancel(self) -> bool:
        """Gives it back: the call says nothing about the provider. False where it is settled already."""

    def progress(self) -> None:
        """A sign of life: a probe's lease begins anew."""

    def item(self) -> None:
        """An item of a stream has come: a sign of life, and in time a probe's proof."""

    @property
    def elapsed(self) -> float | None:
        """Seconds since it was given; none once it is settled."""

    @property
    def is_settled(self) -> bool:
        """Whether it is settled: what still comes is not counted."""

    @property
    def is_probe(self) -> bool:
        """Whether this is a probe of a half-open breaker."""

    @property
    def would_reject(self) -> str | None:
        """In shadow mode, why an enforcing breaker would have refused."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None, /
    ) -> bool: ...
    def __aenter__(self) -> Awaitable[Permit]: ...
    def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None, /
    ) -> Awaitable[None]: ...

class Breaker:
    def __new__(cls, handle: Handle, judge: Callable[[BaseException], str | Verdict | None]) -> Self: ...
    def call(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls a function, if the breaker lets it through. What it gives back is given on. A coroutine, a generator or an
        async generator that it gives back runs under the same permit, and settles it.

        Raises `CircuitOpenError`, or what the function raises.
        """

    def acquire(self, within: float = 0.0) -> Permit:
        """Asks for leave to make one call, and never waits. Where the call is given up after `within` seconds, a probe's lease
        lasts as long.

        Raises `CircuitOpenError`.
        """

    def __enter__(self) -> Permit:
        """Asks for leave to run the block, which settles by its exception, or well. The permit can settle before that."""

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None, /
    ) -> bool: ...
    def __aenter__(self) -> Awaitable[Permit]:
        """As `__enter__`."""

    def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None, /
    ) -> Awaitable[None]: ...
    @property
    def name(self) -> str:
        """Its name; with a model `provider/model`."""

    @property
    def scope(self) -> str:
        """What it guards: `provider` or `model`."""

    @property
    def state(self) -> str:
        """The state as the next call would find it. An `open` whose cooldown is over still reads `open`: only a call makes it
        half-open."""

    def is_available(self) -> bool:
        """Whether a call would be let through now. Asking changes nothing, and reserves nothing."""

    @property
    def retry_after(self) -> float | None:
        """Seconds until asking again is of use; none where it is of use now."""

    def now(self) -> float:
        """The present by its clock, in seconds."""

    def release(self) -> None:
        """Ends a forced state in a fresh `closed`. Does nothing where none is in force."""

    def reset(self) -> None:
        """A fresh `closed`, from any state."""

    def _snapshot(self) -> dict[str, Any]: ...
    def _history(self, after: int) -> list[dict[str, Any]]: ...
    def _force_open(self, lasting: float | None) -> None: ...
    def _force_closed(self, lasting: float | None) -> None: ...
    def _reconfigure(self, settings: str) -> None: ...

@final
class Registry:
    def __new__(cls, max_breakers: int, clock: Clock | None) -> Self: ...
    def get(self, name: str, model: str | None, settings: str) -> Handle: ...
    def find(self, name: str, model: str | None) -> Handle | None: ...
    def names(self) -> list[tuple[str, str | None]]: ...
    def remove(self, name: str, model: str | None) -> None: ...
    def events(self) -> Events: ...

@final
class Events:
    def drain(self) -> list[tuple[str, dict[str, Any], int]]: ...

@final
class Keeper:
    def __new__(
        cls,
        registry: Registry,
        state: str | None,
        fleet: str | None,
        authorities: bytes | None,
        prefix: str,
        replica: int,
    ) -> Self: ...
    def health(self) -> tuple[bool, int] | None: ...
    def close(self) -> None: ...

@final
class Verdict:
    """How an attempt went."""

    @property
    def kind(self) -> str | None:
        """What went wrong; none is a success."""

    @property
    def is_success(self) -> bool:
        """Whether the provider came through."""

    @property
    def scope(self) -> str:
        """What the evidence says is unhealthy: `provider`, `model` or `key`."""

    @property
    def provider_fault(self) -> bool:
        """Whether it speaks against the provider's health."""

    @property
    def retryable(self) -> bool:
        """Whether the same request to the same target may fare better."""

    @property
    def retry_after(self) -> float | None:
        """The provider's wait hint in seconds, as sent."""

    @property
    def evidence(self) -> str:
        """On what this rests, in a sentence."""

    def __repr__(self) -> str: ...

def classify(
    provider: str,
    status: int | None,
    headers: list[tuple[str, str]],
    body: bytes | None,
    events: list[tuple[str, str]] | None,
    fault: str | None,
    has_left: bool,
    asks: bool,
    at: float | None,
) -> Verdict: ...
@final
class Request:
    def __new__(cls, method: str, path: str, body: bytes) -> Self: ...
    @property
    def asks(self) -> bool: ...
    @property
    def streams(self) -> bool: ...
    @property
    def model(self) -> str | None: ...
    def is_readable(self, content_type: str) -> bool: ...

@final
class Watch:
    def __new__(
        cls,
        permit: Permit,
        request: Request,
        content_type: str,
        provider: str,
        *,
        first_token: float | None = None,
        stall: float | None = None,
        idle: float | None = None,
        total: float | None = None,
        min_tokens_per_second: float = 0.0,
        cancel_counts_after: float | None = None,
    ) -> Self: ...
    def asked(self) -> None: ...
    def chunk(self, chunk: bytes) -> bytes: ...
    def end(self) -> bytes: ...
    def broke(self, fault: str) -> bytes: ...
    def close(self) -> None: ...
    @property
    def is_over(self) -> bool: ...
    def time_left(self) -> float | None: ...
    def failure(self) -> tuple[str, str, str] | None: ...
