"""What an exception says about the provider: the tables, and the judge that reads them."""

from __future__ import annotations

import functools
from typing import Any

from . import _native
from ._errors import CircuitOpenError, SettingsError, StreamError

ErrorTypes = type[Exception] | tuple[type[Exception], ...]

# Exceptions of libraries that are not imported here, by package and class; a class is known by those it comes from, the
# most special first.
_FAULTS = {
    ("httpx", "ConnectTimeout"): "connect_timeout",
    ("httpx", "PoolTimeout"): None,  # our own pool is full
    ("httpx", "TimeoutException"): "deadline",
    ("httpx", "ConnectError"): "refused",
    ("httpx", "NetworkError"): "reset",
    ("httpx", "RemoteProtocolError"): "reset",
    ("httpx", "ProxyError"): "refused",
    ("httpcore", "ConnectTimeout"): "connect_timeout",
    ("httpcore", "PoolTimeout"): None,
    ("httpcore", "TimeoutException"): "deadline",
    ("httpcore", "ConnectError"): "refused",
    ("httpcore", "NetworkError"): "reset",
    ("httpcore", "RemoteProtocolError"): "reset",
    ("openai", "APITimeoutError"): "deadline",
    ("openai", "APIConnectionError"): "reset",
    ("anthropic", "APITimeoutError"): "deadline",
    ("anthropic", "APIConnectionError"): "reset",
    ("requests", "ConnectTimeout"): "connect_timeout",
    ("requests", "Timeout"): "deadline",
    ("requests", "ConnectionError"): "reset",
    ("requests", "ChunkedEncodingError"): "reset",
    ("urllib3", "ConnectTimeoutError"): "connect_timeout",
    ("urllib3", "TimeoutError"): "deadline",
    ("urllib3", "NewConnectionError"): "refused",
    ("urllib3", "ProtocolError"): "reset",
    ("aiohttp", "ServerTimeoutError"): "deadline",
    ("aiohttp", "ClientConnectorError"): "refused",
    ("aiohttp", "ClientConnectionError"): "reset",
    ("aiohttp", "ClientPayloadError"): "reset",
    ("botocore", "ConnectTimeoutError"): "connect_timeout",
    ("botocore", "ReadTimeoutError"): "deadline",
    ("botocore", "ConnectionError"): "reset",
    ("grpc", "AioRpcError"): "reset",
    ("asyncio", "TimeoutError"): "deadline",
    ("asyncio", "IncompleteReadError"): "reset",
    ("http", "RemoteDisconnected"): "reset",
    ("http", "IncompleteRead"): "reset",
    ("ssl", "SSLError"): "tls",
    ("socket", "gaierror"): "dns",
    ("builtins", "TimeoutError"): "deadline",
    ("builtins", "ConnectionRefusedError"): "refused",
    ("builtins", "ConnectionError"): "reset",
}
# Of the second generation of a library are the same classes.
_SAME = {"httpx2": "httpx", "httpcore2": "httpcore"}
# What an exception of these says is told by what caused it, if that is known.
_WRAPPERS = {"openai", "anthropic"}


class Judge:
    """Says of an exception what it is for a breaker: nothing, a kind, or a verdict."""

    def __init__(self, failures: ErrorTypes | None, ignore: ErrorTypes) -> None:
        self.failures = None if failures is None else _types("failures", failures)
        self.ignore = _types("ignore", ignore)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Judge) and (self.failures, self.ignore) == (other.failures, other.ignore)

    def __call__(self, error: BaseException, provider: str | None = None) -> str | _native.Verdict | None:
        if not isinstance(error, Exception) or isinstance(error, self.ignore):
            return None
        if self.failures is None:
            return known(error, provider)
        if isinstance(error, self.failures):
            return known(error, provider) or "server_error"
        return None


def _types(key: str, given: Any) -> tuple[type[Exception], ...]:
    types = (given,) if isinstance(given, type) else tuple(given)
    for kind in types:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise SettingsError([f"{key} is {given!r}, must be an exception type or a tuple of them"])
    return types


def known(error: BaseException, provider: str | None = None) -> str | _native.Verdict | None:
    """What our rules say of an exception; none if it is none of a network, an SDK or an HTTP client."""
    if isinstance(error, CircuitOpenError):
        return "local"
    if isinstance(error, StreamError):
        return error.kind
    if (answer := _answer(error)) is not None:
        status, headers, body = answer
        package = type(error).__module__.partition(".")[0]
        asked = provider if provider is not None else (package if package in _WRAPPERS else "")
        return _native.classify(asked, status, headers, body, None, None, False, True, None)
    fault = fault_of(error)
    return None if fault is None else _by_fault(fault)


def fault_of(error: BaseException) -> str | None:
    """What happened on the wire, if the exception tells of that."""
    package = type(error).__module__.partition(".")[0]
    if package in _WRAPPERS and error.__cause__ is not None:
        if (fault := fault_of(error.__cause__)) is not None:
            return fault
    kind: Any = type(error)
    name = _known_base(kind)
    if name is not None:
        return _FAULTS[name]
    reason = getattr(error, "reason", None)  # what `urllib` wraps
    return fault_of(reason) if isinstance(reason, Exception) else None


def _by_fault(fault: str) -> _native.Verdict:
    return _native.classify("", None, [], None, None, fault, False, True, None)


@functools.lru_cache(maxsize=256)
def _known_base(kind: Any) -> tuple[str, str] | None:
    """The first of an exception's classes that is in the table."""
    for base in kind.__mro__:
        package = base.__module__.partition(".")[0]
        name = (_SAME.get(package, package), base.__name__)
        if name in _FAULTS:
            return name
    return None


def _answer(error: BaseException) -> tuple[int, list[tuple[str, str]], bytes | None] | None:
    """Status, headers and body of an answer that an exception carries."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # botocore
        meta = response.get("ResponseMetadata", {})
        status, headers, body = meta.get("HTTPStatusCode"), meta.get("HTTPHeaders", {}), None
        if code := response.get("Error", {}).get("Code"):
            headers = {**headers, "x-amzn-errortype": code}
    elif response is not None:
        status = getattr(response, "status_code", None) or getattr(response, "status", None)
        headers, body = getattr(response, "headers", None), _content(response)
    else:
        fields = (getattr(error, name, None) for name in ("status_code", "status", "code"))
        status = next((field for field in fields if isinstance(field, int)), None)
        headers, body = getattr(error, "headers", None), None
    if not isinstance(status, int) or isinstance(status, bool) or not 300 <= status <= 599:
        return None
    return status, pairs(headers), body


def _content(response: Any) -> bytes | None:
    try:
        content = response.content
    except Exception:  # a body that nobody has read
        return None
    return content if isinstance(content, bytes) else None


def pairs(headers: Any) -> list[tuple[str, str]]:
    """Headers of whatever library as pairs of texts."""
    items = getattr(headers, "multi_items", None) or getattr(headers, "items", None)
    found = items() if callable(items) else []
    return [(name, value) for name, value in found if isinstance(name, str) and isinstance(value, str)]
