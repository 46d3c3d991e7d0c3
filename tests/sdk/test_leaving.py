"""A caller who leaves closes the upstream and is nobody's failure."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import FROM_PRIMARY
from gateway import until
from provider import Reply

PATIENCE = "x-stainless-read-timeout"
ENDLESS = Reply(words=1_000_000, gap=0.02)


def leave_after_two_events(dialect, client) -> float:
    """Returns when it left."""
    stream = dialect.start(client, stream=True)
    for _, _ in zip(range(2), stream):
        pass
    stream.close()
    return time.monotonic()


def assert_nobody_failed(gateway):
    assert gateway.all_closed()
    for breaker in gateway.breakers("primary"):
        assert breaker["run"] == 0
        assert breaker["last_failures"] == []
    assert gateway.opened() == 0


def test_leaving_a_stream_closes_the_upstream_at_once(serve, dialect, primary):
    gateway = serve(primary.url)
    client = dialect.client(gateway.url)
    primary.answer(ENDLESS)
    left_at = leave_after_two_events(dialect, client)
    until(lambda: primary.left, "the provider sees its caller gone")
    assert primary.left[0] - left_at < 0.5
    assert_nobody_failed(gateway)


def test_leaving_before_the_answer_closes_the_upstream_too(serve, dialect, primary, stream):
    gateway = serve(primary.url)
    primary.answer(Reply(gate=threading.Event()))
    # The SDKs say how long they wait, and the gateway would give a stream up in the same moment.
    unsaid = dialect.sdk.DefaultHttpxClient(event_hooks={"request": [lambda request: request.headers.pop(PATIENCE)]})
    with pytest.raises(dialect.sdk.APITimeoutError):
        dialect.ask(dialect.client(gateway.url, timeout=0.3, http_client=unsaid), stream=stream)
    left_at = time.monotonic()
    until(lambda: primary.left, "the provider sees its caller gone")
    assert primary.left[0] - left_at < 0.5
    assert_nobody_failed(gateway)


def test_fifty_who_leave_open_nothing(serve, dialect, primary):
    gateway = serve(primary.url)
    client = dialect.client(gateway.url)
    primary.answer(ENDLESS)
    with ThreadPoolExecutor(10) as crowd:
        for leaving in [crowd.submit(leave_after_two_events, dialect, client) for _ in range(50)]:
            leaving.result()
    until(lambda: len(primary.left) == 50, "the provider sees all fifty gone")
    assert_nobody_failed(gateway)

    primary.answer(Reply(text=FROM_PRIMARY))
    assert dialect.ask(client) == FROM_PRIMARY
