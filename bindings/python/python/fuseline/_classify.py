"""`classify`: what an answer means, by the rules that ship with Fuseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from . import _native
from ._judge import known, pairs


def classify(
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    *,
    provider: str = "",
    events: Iterable[tuple[str, str]] | None = None,
    fault: str | None = None,
    has_left: bool = False,
    asks: bool = True,
    at: float | None = None,
) -> _native.Verdict:
    """The verdict on an exchange as far as it came.

    `provider` is a name of the rules such as `openai`; without one the common rules must do. `events` are the names and data of a
    stream's events. `fault` is what happened on the wire: `dns`, `refused`, `tls`, `connect_timeout`, `stale_connection`,
    `not_processed`, `reset`, `deadline` or `stall`. `has_left` says that the caller left, `asks` whether a model was asked for an
    answer, `at` what time it is (seconds since 1970), for hints that are dates.

    >>> import fuseline
    >>> verdict = fuseline.classify(429, {"retry-after": "20"}, b'{"error": {"type": "insufficient_quota"}}', provider="openai")
    >>> verdict.kind, verdict.retryable, verdict.retry_after
    ('quota_exhausted', False, 20.0)
    """
    told = None if events is None else list(events)
    return _native.classify(provider, status, pairs(headers or {}), body, told, fault, has_left, asks, at)


def classify_error(error: BaseException) -> _native.Verdict | None:
    """What the rules say of an exception of a network, an HTTP client or an SDK; none of any other.

    >>> import fuseline
    >>> fuseline.classify_error(ConnectionRefusedError()).kind
    'network'
    >>> fuseline.classify_error(KeyError("text")) is None
    True
    """
    said = known(error)
    return said if isinstance(said, _native.Verdict) else None
