"""Without a fallback an open breaker says so in the caller's dialect, and says when to come back."""

import math
import time

import openai
import pytest
from conftest import FROM_PRIMARY
from dialects import OPENAI
from provider import Reply
from wire import MODEL

THRESHOLD = 5


def open_the_only_one(dialect, gateway, primary):
    primary.answer(Reply(status=503))
    client = dialect.client(gateway.url)
    for _ in range(THRESHOLD):
        with pytest.raises(dialect.errors[503]) as raised:
            dialect.ask(client)
        assert "scripted 503" in raised.value.response.text, "the provider's own answer"
    assert gateway.the_broken()["state"] == "open"
    return client


@pytest.mark.parametrize(("cooldown_ms", "should_retry"), [(7_300, "true"), (60_000, "false")])
def test_a_rejection_is_a_503_in_the_callers_dialect(serve, dialect, primary, stream, cooldown_ms, should_retry):
    gateway = serve(primary.url, breaker=f'cooldown = "{cooldown_ms}ms"')
    client = open_the_only_one(dialect, gateway, primary)
    hits = primary.hits

    before = gateway.the_broken()["retry_after_ms"]
    with pytest.raises(dialect.errors[503]) as raised:
        dialect.ask(client, stream=stream)
    after = gateway.the_broken()["retry_after_ms"]
    assert primary.hits == hits, "nothing was sent"
    answer = raised.value.response
    assert answer.status_code == 503
    wait_ms = int(answer.headers["retry-after-ms"])
    assert after <= wait_ms <= before <= cooldown_ms
    assert int(answer.headers["retry-after"]) == max(1, math.ceil(wait_ms / 1000))
    assert answer.headers["x-should-retry"] == should_retry
    error = dialect.refusal(raised.value)
    assert error["message"]
    assert error["attempts"] == []
    (skipped,) = error["skipped"]
    assert (skipped["target"], skipped["reason"]) == (f"primary/{MODEL}", "open")
    assert abs(skipped["wait_ms"] - wait_ms) <= 1
    if dialect.name == "openai":
        assert error["code"] == "circuit_open"


def test_an_sdk_waits_as_told_and_finds_the_provider_back(serve, dialect, primary):
    # Its own backoff would spend both retries within 1.5 s, so only the hint leads to an answer.
    gateway = serve(primary.url, breaker='cooldown = "3s"')
    open_the_only_one(dialect, gateway, primary)
    primary.answer(Reply(text=FROM_PRIMARY))
    hits = primary.hits

    left_ms = gateway.the_broken()["retry_after_ms"]
    start = time.monotonic()
    assert dialect.ask(dialect.client(gateway.url, max_retries=2)) == FROM_PRIMARY
    assert (time.monotonic() - start) * 1000 > left_ms - 100
    assert primary.hits == hits + 1


def test_an_sdk_does_not_repeat_what_makes_no_sense(serve, dialect, primary):
    gateway = serve(primary.url, breaker='cooldown = "60s"')
    open_the_only_one(dialect, gateway, primary)
    rejected = gateway.metric("breaker_rejected_total")

    with pytest.raises(dialect.errors[503]):
        dialect.ask(dialect.client(gateway.url, max_retries=2))
    assert gateway.metric("breaker_rejected_total") == rejected + 1, "one request, no retry"
    assert primary.hits == THRESHOLD


@pytest.mark.parametrize("dialect", [OPENAI], indirect=True)
def test_report_152_an_sdk_asks_once_where_the_quota_is_spent(serve, dialect, primary):
    gateway = serve(primary.url)
    primary.answer(Reply(status=429, body=b'{"error": {"type": "insufficient_quota", "code": "insufficient_quota"}}'))
    client = dialect.client(gateway.url, max_retries=2)
    for asked in (1, 2):
        with pytest.raises(openai.RateLimitError):
            dialect.ask(client)
        assert gateway.metric("calls_total") == asked, "one request at the gateway for each call"
    assert primary.hits == 1


def test_report_152_an_sdk_asks_once_with_a_key_that_is_wrong(serve, dialect, primary):
    gateway = serve(primary.url)
    primary.answer(Reply(status=401))
    with pytest.raises(dialect.errors[401]):
        dialect.ask(dialect.client(gateway.url, max_retries=2))
    assert (gateway.metric("calls_total"), primary.hits) == (1, 1)
