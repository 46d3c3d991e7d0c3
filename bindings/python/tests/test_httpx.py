"""Transports for other clients, of both generations of httpx."""

import asyncio
import gzip
import json

import httpx
import httpx2
import pytest
import wire
from provider import Reply
from wire import End

import fuseline
import fuseline.httpx

ASKED = {"model": wire.MODEL, "messages": [], "stream": True}


@pytest.fixture(params=[httpx, httpx2], ids=lambda package: package.__name__)
def package(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def send(request, package, provider):
    """Sends one request through a guarded transport; what was read of the answer, and its status."""

    def call(breaker, method="POST", path="/v1/chat/completions", asked=ASKED, timeouts=None, inner=None, timeout=5):
        url = provider.url + path
        content = json.dumps(asked).encode()
        if not request.param:
            transport = fuseline.httpx.Transport(breaker, inner or package.HTTPTransport(), timeouts=timeouts)
            with package.Client(transport=transport, timeout=timeout) as client:
                with client.stream(method, url, content=content) as response:
                    return response.status_code, b"".join(response.iter_bytes())

        async def run():
            transport = fuseline.httpx.AsyncTransport(breaker, inner or package.AsyncHTTPTransport(), timeouts=timeouts)
            async with package.AsyncClient(transport=transport, timeout=timeout) as client:
                async with client.stream(method, url, content=content) as response:
                    return response.status_code, b"".join([chunk async for chunk in response.aiter_bytes()])

        return asyncio.run(run())

    return call


def test_good_answers_are_successes_byte_for_byte(send, breaker, provider):
    provider.answer(Reply(words=3))
    whole = b"".join(wire.CHAT.stream(["so ", "so ", "All is well."]))
    breaker.acquire().failure("timeout")
    assert send(breaker) == (200, whole)
    assert breaker.snapshot().run == 0
    breaker.acquire().failure("timeout")
    assert send(breaker, "GET", "/v1/models", {})[0] == 200
    assert breaker.snapshot().run == 0


def test_errors_are_judged_by_their_body_and_given_on(send, breaker, provider):
    body = json.dumps({"error": {"type": "insufficient_quota", "message": "spent"}}).encode()
    provider.answer(Reply(status=429, body=body))
    assert send(breaker) == (429, body)
    assert (breaker.state, breaker.retry_after) == ("open", 600.0)
    with pytest.raises(fuseline.CircuitOpenError):
        send(breaker)
    assert provider.hits == 1


def test_a_callers_own_mistake_says_nothing(send, breaker, provider):
    breaker.acquire().failure("timeout")
    provider.answer(Reply(status=404))
    assert send(breaker)[0] == 404
    assert breaker.snapshot().run == 1


def test_a_stalled_stream_is_cut_off(send, provider):
    breaker = fuseline.Breaker("openai")
    provider.answer(Reply(script=[wire.CHAT.begin, wire.CHAT.word("so"), End.SILENCE]))
    with pytest.raises(fuseline.StreamError, match="sent no further content for 200ms"):
        send(breaker, timeouts={"stall": "200ms"})
    assert breaker.snapshot().kinds == {"stream_stall": 1}


def test_a_stream_without_its_end_raises(send, breaker, provider):
    provider.answer(Reply(script=[wire.CHAT.begin, wire.CHAT.word("so")]))
    with pytest.raises(fuseline.StreamError, match="ended before the answer was complete"):
        send(breaker)
    assert breaker.snapshot().kinds == {"stream_truncated": 1}


def test_what_happens_on_the_wire_counts(send, breaker, provider, package):
    provider.answer(Reply(instead=End.CUT))
    with pytest.raises(package.RemoteProtocolError):
        send(breaker)
    provider.answer(Reply(instead=End.SILENCE))
    with pytest.raises(package.ReadTimeout):
        send(breaker, timeout=0.1)
    seen = breaker.snapshot()
    assert [note.kind for note in seen.last_failures] == ["network", "timeout"]


def test_a_body_that_breaks_off_counts(send, breaker, provider, package):
    provider.answer(Reply(headers={"content-length": "999"}, body=b"{}"))

    # What is less than was announced never comes to its end.
    with pytest.raises((package.RemoteProtocolError, package.ReadTimeout)):
        send(breaker, asked={**ASKED, "stream": False}, timeout=0.2)
    assert sum(breaker.snapshot().kinds.values()) == 1


def test_a_coded_stream_is_settled_by_its_end(package, breaker):
    coded = gzip.compress(b"".join(wire.CHAT.stream(["so"])))
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    mock = package.MockTransport(lambda request: package.Response(200, headers=headers, stream=package.ByteStream(coded)))
    client = package.Client(transport=fuseline.httpx.Transport(breaker, mock))
    breaker.acquire().failure("timeout")
    assert b"so" in client.post("http://mistral/v1/chat/completions", json=ASKED).content
    assert breaker.snapshot().run == 0


def test_what_is_no_transport_is_refused(breaker):
    with pytest.raises(TypeError, match="transport is a str, must be an httpx.BaseTransport"):
        fuseline.httpx.Transport(breaker, "transport")


def test_own_transports_are_recognised_whatever_their_base_is_called(package, breaker, monkeypatch):
    monkeypatch.setattr(package.BaseTransport, "__module__", "openai")  # which is what its SDK does

    class Own(package.BaseTransport):
        def handle_request(self, request):
            return package.Response(503)

    client = package.Client(transport=fuseline.httpx.Transport(breaker, Own()))
    assert client.get("http://mistral/").status_code == 503
    assert breaker.snapshot().kinds == {"server_error": 1}
