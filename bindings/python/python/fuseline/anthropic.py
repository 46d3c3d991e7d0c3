"""The clients of the `anthropic` package, guarded."""

from __future__ import annotations

from typing import TypeVar

from . import _sdk
from ._breaker import Breaker
from ._settings import Timeouts

__all__ = ["wrap"]

Client = TypeVar("Client")


def wrap(
    client: Client,
    breaker: Breaker | str | None = None,
    *,
    provider: str = "anthropic",
    timeouts: Timeouts | None = None,
) -> Client:
    """A copy of an `Anthropic` or `AsyncAnthropic` client of which every call and every stream is guarded. It shares the
    connections of the one that was given, which stays as it is.

    The breaker, or the name of a process-wide one, is that of the provider unless given. A refused call raises `CircuitOpenError`;
    all else is as it was: the SDK's own retries are one call for the breaker, and its exceptions are judged by our rules. A
    streamed answer that stalls, is cut off or ends before it is complete raises `StreamError`; `timeouts` are its limits.
    `provider` is whose rules say what an error means, where the client talks to another one.

    >>> import anthropic, fuseline.anthropic
    >>> client = fuseline.anthropic.wrap(anthropic.Anthropic(api_key="..."))
    >>> type(client).__name__
    'Anthropic'
    """
    import anthropic

    return _sdk.wrap(anthropic, client, breaker, provider, timeouts)
