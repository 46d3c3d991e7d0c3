"""What exceptions of other libraries are for a breaker. Those that are not installed are made here under their names."""

import asyncio
import http.client
import socket
import ssl
import urllib.error
from email.message import Message

import pytest

import fuseline


def made(package, *names, **fields):
    """An exception of a class of this package and name, whose bases have the further names."""
    kind = Exception
    for name in reversed(names):
        kind = type(name, (kind,), {"__module__": f"{package}.exceptions"})
    error = kind("made")
    for name, value in fields.items():
        setattr(error, name, value)
    return error


class Answer:
    """The answer that an HTTP client keeps."""

    def __init__(self, status, body=b"", **headers):
        self.status_code = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.content = body


SPENT = b'{"error": {"type": "insufficient_quota"}}'
AWS = {"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": {"HTTPStatusCode": 400, "HTTPHeaders": {}}}
CASES = [
    (TimeoutError(), "timeout"),
    (asyncio.TimeoutError(), "timeout"),
    (socket.timeout(), "timeout"),
    (ConnectionRefusedError(), "network"),
    (BrokenPipeError(), "network"),
    (socket.gaierror(-2, "unknown"), "network"),
    (ssl.SSLError("handshake"), "network"),
    (http.client.RemoteDisconnected(), "network"),
    (http.client.IncompleteRead(b""), "network"),
    (urllib.error.URLError(ConnectionRefusedError()), "network"),
    (urllib.error.URLError(TimeoutError()), "timeout"),
    (urllib.error.HTTPError("http://x", 503, "down", Message(), None), "server_error"),
    (made("httpx", "ReadTimeout", "TimeoutException"), "timeout"),
    (made("httpx2", "ConnectTimeout", "TimeoutException"), "timeout"),
    (made("httpx", "ReadError", "NetworkError"), "network"),
    (made("httpx", "PoolTimeout", "TimeoutException"), None),
    (made("requests", "ReadTimeout", "Timeout"), "timeout"),
    (made("requests", "ConnectionError"), "network"),
    (made("requests", "HTTPError", response=Answer(529)), "overloaded"),
    (made("urllib3", "ProtocolError"), "network"),
    (made("aiohttp", "ServerDisconnectedError", "ClientConnectionError"), "network"),
    (made("aiohttp", "ClientResponseError", status=503, headers={}), "server_error"),
    (made("google", "ServerError", "APIError", code=503), "server_error"),
    (made("botocore", "ClientError", response=AWS), "rate_limit"),
    (made("openai", "RateLimitError", response=Answer(429, SPENT)), "quota_exhausted"),
    (made("litellm", "RateLimitError", status_code=429), "rate_limit"),
    (made("litellm", "BadRequestError", status_code=400), "bad_request"),
    (fuseline.StreamError("cut", "stream_truncated", "stream_truncated"), "stream_truncated"),
    (fuseline.CircuitOpenError("open", "x", "provider", "open", 1.0), "local"),
    (OSError(28, "no space left"), None),
    (KeyError("text"), None),
    (ValueError("no JSON"), None),
    (made("app", "Busy", status=True), None),
    (made("app", "Busy", code=12), None),
]


@pytest.mark.parametrize(("error", "kind"), CASES, ids=lambda value: repr(value)[:40])
def test_exceptions_are_judged_by_what_they_tell(error, kind, make):
    breaker = make(mode="shadow")
    assert breaker.acquire().error(error) == kind


def test_hints_of_exceptions_are_heard(breaker):
    breaker.acquire().error(made("requests", "HTTPError", response=Answer(429, retry_after="120")))
    assert (breaker.state, breaker.retry_after) == ("open", 120.0)


def test_a_nested_breakers_refusal_does_not_count(make):
    inner, outer = make("inner"), make("outer")
    inner.force_open()
    for _ in range(5):
        with pytest.raises(fuseline.CircuitOpenError):
            outer.call(inner.call, print)
    assert outer.state == "closed"


def test_a_given_type_keeps_the_kind_that_is_known_of_it(make):
    breaker = make(failures=Exception)
    assert breaker.acquire().error(made("litellm", "BadRequestError", status_code=400)) == "bad_request"
    assert breaker.acquire().error(KeyError()) == "server_error"
    assert breaker.snapshot().kinds == {"server_error": 1}
