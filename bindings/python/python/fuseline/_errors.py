"""What can go wrong, as exceptions."""

from __future__ import annotations


class FuselineError(Exception):
    """The base of all exceptions of this package."""


class CircuitOpenError(FuselineError):
    """The breaker refused the call, which was not made.

    >>> import fuseline
    >>> breaker = fuseline.Breaker("openai")
    >>> breaker.force_open("5m")
    >>> try:
    ...     breaker.call(print, "never printed")
    ... except fuseline.CircuitOpenError as refused:
    ...     print(refused)
    ...     print(refused.reason, 299 < refused.retry_after <= 300)
    circuit `openai` is forced open, retry in 300 s
    forced True
    """

    def __init__(self, message: str, name: str, scope: str, reason: str, retry_after: float) -> None:
        super().__init__(message, name, scope, reason, retry_after)
        self.name = name
        """Whose breaker."""
        self.scope = scope
        """What that breaker guards: `provider`, `model` or `key`."""
        self.reason = reason
        """Why it refused: `open`, `probing`, `forced`, `saturated` or `ramping`."""
        self.retry_after = retry_after
        """Seconds from now until it is worth asking again."""

    def __str__(self) -> str:
        return str(self.args[0])


class StreamError(FuselineError):
    """A stream ended otherwise than it should: half an answer is never given out as one."""

    def __init__(self, message: str, ending: str, kind: str) -> None:
        super().__init__(message, ending, kind)
        self.ending = ending
        """How: `stream_stall`, `stream_silent`, `stream_truncated`, `stream_error` and so on."""
        self.kind = kind
        """What that is for the breaker: `stream_stall`, `stream_truncated`, `overloaded` and so on."""

    def __str__(self) -> str:
        return str(self.args[0])


class SettingsError(FuselineError, ValueError):
    """Settings that cannot work.

    >>> import fuseline
    >>> fuseline.Breaker("openai", probes=0, jitter=2)
    Traceback (most recent call last):
        ...
    fuseline.SettingsError: jitter is 2, must be 0 to 1; probes is 0, must be 1 to 64
    """

    __module__ = "fuseline"

    def __init__(self, problems: list[str]) -> None:
        super().__init__(problems)
        self.problems = problems
        """Every mistake: its key, its value, and what is allowed."""

    def __str__(self) -> str:
        return "; ".join(self.problems)


class RegistryError(FuselineError):
    """A breaker cannot be had: its name is taken by one with other settings, or there is no room."""

    def __init__(self, message: str, is_taken: bool = False) -> None:
        super().__init__(message, is_taken)
        self.is_taken = is_taken
        """Whether a breaker of this name exists with other settings."""

    def __str__(self) -> str:
        return str(self.args[0])


for _error in (FuselineError, CircuitOpenError, StreamError, RegistryError):
    _error.__module__ = "fuseline"
