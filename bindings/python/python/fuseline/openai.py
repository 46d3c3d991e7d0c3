"""The clients of the `openai` package, guarded."""

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
    provider: str = "openai",
    timeouts: Timeouts | None = None,
) -> Client:
    """A copy of an `OpenAI` or `AsyncOpenAI` client of which every call and every stream is guarded. It shares the
    connections of the one that was given, which stays as it is.

    The breaker, or the name of a process-wide one, is that of the provider unless given. A refused call raises `CircuitOpenError`;
    all else is as it was: the SDK's own retries are one call for the breaker, and its exceptions are judged by our rules. A
    streamed answer that stalls, is cut off or ends before it is complete raises `StreamError`; `timeouts` are its limits.
    `provider` is whose rules say what an error means, where the client talks to another one.

    >>> import openai, fuseline.openai
    >>> client = fuseline.openai.wrap(openai.OpenAI(api_key="..."))
    >>> type(client).__name__
    'OpenAI'
    """
    import openai

    return _sdk.wrap(openai, client, breaker, provider, timeouts)
