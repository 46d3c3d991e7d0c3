"""The official SDKs, sync and async, streamed and not, against the scripted provider."""

import asyncio
import contextlib
import dataclasses
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
import pytest
import wire
from provider import Reply
from wire import End

import fuseline
import fuseline.anthropic
import fuseline.openai

QUESTION = [{"role": "user", "content": "How are things?"}]
SHORT = {"first_token": 0.3, "stall": 0.3, "idle": 5}


@dataclass(frozen=True)
class Sdk:
    """One SDK. `start` begins a call, `text` is that of an event, `whole` that of an answer."""

    name: str
    module: Any
    clients: tuple[type, type]
    wrap: Callable
    base: str
    wire: wire.Wire
    spent: tuple[int, dict]
    start: Callable
    text: Callable
    whole: Callable


OPENAI = Sdk(
    name="openai",
    module=openai,
    clients=(openai.OpenAI, openai.AsyncOpenAI),
    wrap=fuseline.openai.wrap,
    base="/v1",
    wire=wire.CHAT,
    spent=(429, {"error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "spent"}}),
    start=lambda client, stream: client.chat.completions.create(model=wire.MODEL, messages=QUESTION, stream=stream),
    text=lambda event: (event.choices[0].delta.content or "") if event.choices else "",
    whole=lambda answer: answer.choices[0].message.content,
)
ANTHROPIC = Sdk(
    name="anthropic",
    module=anthropic,
    clients=(anthropic.Anthropic, anthropic.AsyncAnthropic),
    wrap=fuseline.anthropic.wrap,
    base="",
    wire=wire.MESSAGES,
    spent=(
        400,
        {"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}},
    ),
    start=lambda client, stream: client.messages.create(
        model=wire.MODEL, messages=QUESTION, max_tokens=64, stream=stream
    ),
    text=lambda event: event.delta.text if event.type == "content_block_delta" else "",
    whole=lambda answer: answer.content[0].text,
)


class Caller:
    """Calls one SDK one way, from outside of any event loop."""

    def __init__(self, sdk, is_async, url, breaker, timeouts=None, max_retries=0, **options):
        self.sdk, self.is_async, self.breaker = sdk, is_async, breaker
        self._options = {"base_url": url + sdk.base, "api_key": "key", "max_retries": max_retries, **options}
        self._timeouts = timeouts
        self._client = None if is_async else self.client()

    def client(self):
        client = self.sdk.clients[self.is_async](**self._options)
        return self.sdk.wrap(client, self.breaker, timeouts=self._timeouts)

    def ask(self, stream=False, left_after=None):
        """One call: its text. With `left_after` the stream is left after so many events."""
        if self.is_async:
            return asyncio.run(self._ask_async(stream, left_after))
        answer = self.sdk.start(self._client, stream)
        if not stream:
            return self.sdk.whole(answer)
        text = ""
        with answer:
            for number, event in enumerate(answer):
                text += self.sdk.text(event)
                if number == left_after:
                    break
        return text

    async def _ask_async(self, stream, left_after):
        async with self.client() as client:
            answer = await self.sdk.start(client, stream)
            if not stream:
                return self.sdk.whole(answer)
            text = ""
            async with answer:
                number = 0
                async for event in answer:
                    text += self.sdk.text(event)
                    if number == left_after:
                        break
                    number += 1
            return text


@pytest.fixture(params=[OPENAI, ANTHROPIC], ids=lambda sdk: sdk.name)
def sdk(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def is_async(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["plain", "streamed"])
def stream(request):
    return request.param


@pytest.fixture
def caller(sdk, is_async, provider, breaker):
    def make(**options):
        return Caller(sdk, is_async, provider.url, breaker, **options)

    return make


def test_a_good_answer_is_a_success(caller, breaker, provider, stream, sdk):
    breaker.acquire().failure("timeout")
    assert caller().ask(stream).endswith("All is well.")
    seen = breaker.snapshot()
    assert (seen.run, seen.rules[0].hits, provider.hits) == (0, 0, 1), "the success ended the run"


def test_an_outage_opens_and_a_probe_closes(caller, breaker, provider, clock, stream, sdk):
    call = caller()
    provider.answer(Reply(status=503))
    for _ in range(2):
        with pytest.raises(sdk.module.InternalServerError):
            call.ask(stream)
    assert breaker.state == "open"
    with pytest.raises(fuseline.CircuitOpenError) as refused:
        call.ask(stream)
    assert (refused.value.reason, refused.value.retry_after) == ("open", 10.0)
    assert provider.hits == 2, "nothing is sent to an open provider"

    clock.advance(10)
    provider.answer(Reply())
    call.ask(stream)
    assert breaker.state == "half_open"
    call.ask(stream)
    assert (breaker.state, provider.hits) == ("closed", 4)
    assert breaker.snapshot().kinds == {}


def test_the_sdks_own_retries_are_one_call(caller, breaker, provider, stream, sdk):
    provider.answer(Reply(status=500, headers={"retry-after-ms": "1"}))
    with pytest.raises(sdk.module.InternalServerError):
        caller(max_retries=2).ask(stream)
    assert (provider.hits, breaker.snapshot().run) == (3, 1)


def test_retries_that_come_through_are_a_success(caller, breaker, provider, stream, sdk):
    once = Reply(status=500, headers={"retry-after-ms": "1"})
    provider.answer(once, once, Reply())
    assert caller(max_retries=2).ask(stream).endswith("All is well.")
    assert (provider.hits, breaker.snapshot().run) == (3, 0)


def test_report_36_a_hint_beyond_patience_opens_at_once_for_as_long(caller, breaker, provider, stream, sdk):
    provider.answer(Reply(status=429, headers={"retry-after": "90"}))
    with pytest.raises(sdk.module.RateLimitError):
        caller().ask(stream)
    assert (breaker.state, breaker.retry_after) == ("open", 90.0)
    assert breaker.snapshot().why.why.cause == "open_now"


def test_a_short_hint_counts_and_opens_nothing(caller, breaker, provider, stream, sdk):
    provider.answer(Reply(status=429, headers={"retry-after": "5"}))
    with pytest.raises(sdk.module.RateLimitError):
        caller().ask(stream)
    assert (breaker.state, breaker.snapshot().kinds) == ("closed", {"rate_limit": 1})


def test_a_spent_quota_opens_at_once_for_ten_minutes(caller, breaker, provider, stream, sdk):
    status, body = sdk.spent
    provider.answer(Reply(status=status, body=json.dumps(body).encode()))
    with pytest.raises(sdk.module.APIStatusError):
        caller().ask(stream)
    assert (breaker.state, breaker.retry_after) == ("open", 600.0)
    assert breaker.snapshot().why.why.kind == "quota_exhausted"


def test_a_callers_own_mistake_says_nothing(caller, breaker, provider, stream, sdk):
    breaker.acquire().failure("timeout")
    provider.answer(Reply(status=400), Reply(status=401), Reply(status=404))
    for _ in range(3):
        with pytest.raises(sdk.module.APIStatusError):
            caller().ask(stream)
    assert breaker.snapshot().run == 1, "neither a failure nor a success"


def test_a_refused_connection_is_a_failure(sdk, is_async, breaker, stream):
    call = Caller(sdk, is_async, "http://127.0.0.1:9", breaker)
    with pytest.raises(sdk.module.APIConnectionError):
        call.ask(stream)
    assert breaker.snapshot().kinds == {"network": 1}


def test_silence_before_the_answer_is_a_timeout(caller, breaker, provider, stream, sdk):
    provider.answer(Reply(instead=End.SILENCE))
    with pytest.raises(sdk.module.APITimeoutError):
        caller(timeout=0.2).ask(stream)
    assert breaker.snapshot().kinds == {"timeout": 1}


def test_an_answer_without_content_is_a_failure(caller, breaker, provider, sdk):
    empty = sdk.wire.whole("")
    if sdk is ANTHROPIC:
        empty["content"] = []
    provider.answer(Reply(body=json.dumps(empty).encode()))
    with contextlib.suppress(IndexError):
        caller().ask()
    assert breaker.snapshot().kinds == {"empty_response": 1}


def script(sdk, *ending):
    return Reply(script=[sdk.wire.begin, sdk.wire.word("so "), sdk.wire.word("far "), *ending])


def test_a_stall_in_mid_stream_is_cut_off_and_counts(clock, sdk, is_async, provider):
    # Silence is told by the breaker's clock: the system's.
    breaker = fuseline.Breaker("openai", trip=[{"rule": "consecutive", "failures": 2}])
    provider.answer(script(sdk, End.SILENCE))
    call = Caller(sdk, is_async, provider.url, breaker, timeouts=SHORT)
    began = time.monotonic()
    with pytest.raises(fuseline.StreamError) as stalled:
        call.ask(stream=True)
    assert time.monotonic() - began < 3
    assert (stalled.value.ending, stalled.value.kind) == ("stream_stall", "stream_stall")
    assert breaker.snapshot().kinds == {"stream_stall": 1}


def test_the_readers_own_time_is_not_the_streams(sdk, is_async, provider):
    breaker = fuseline.Breaker("openai")
    provider.answer(Reply(words=2, gap=0.01))
    caller = Caller(sdk, is_async, provider.url, breaker, timeouts=SHORT | {"first_token": 5})

    def slow(event):
        time.sleep(0.35)
        return sdk.text(event)

    caller.sdk = dataclasses.replace(sdk, text=slow)
    assert caller.ask(stream=True) == "so All is well."
    assert breaker.snapshot().kinds == {}


def test_pings_are_no_content(sdk, is_async, provider):
    breaker = fuseline.Breaker("openai")
    pings = [step for _ in range(20) for step in (sdk.wire.ping, 0.1)]
    provider.answer(Reply(script=[sdk.wire.begin, *pings, End.SILENCE]))
    with pytest.raises(fuseline.StreamError) as silent:
        Caller(sdk, is_async, provider.url, breaker, timeouts=SHORT).ask(stream=True)
    assert (silent.value.ending, silent.value.kind) == ("stream_silent", "stream_stall")


def test_a_stream_that_is_cut_off_raises_and_counts(caller, breaker, provider, sdk):
    provider.answer(script(sdk, End.CUT))
    with pytest.raises((sdk.module.APIConnectionError, sdk.module.APIError, Exception)) as cut:
        caller().ask(stream=True)
    assert not isinstance(cut.value, AssertionError)
    assert breaker.snapshot().kinds == {"stream_truncated": 1}


def test_a_stream_without_its_end_marker_raises_and_counts(caller, breaker, provider, sdk):
    provider.answer(script(sdk))
    with pytest.raises(fuseline.StreamError) as short:
        caller().ask(stream=True)
    assert (short.value.ending, short.value.kind) == ("stream_truncated", "stream_truncated")
    assert breaker.snapshot().kinds == {"stream_truncated": 1}


def test_an_error_in_a_stream_has_the_kind_that_it_names(caller, breaker, provider, sdk):
    provider.answer(script(sdk, sdk.wire.failure(sdk.wire.overloaded, "Overloaded")))
    with pytest.raises((sdk.module.APIError, fuseline.StreamError)):
        caller().ask(stream=True)
    assert breaker.snapshot().kinds == {"overloaded": 1}


def test_a_stream_that_is_left_says_nothing(caller, breaker, provider, sdk):
    breaker.acquire().failure("timeout")
    provider.answer(Reply(words=50, gap=0.01))
    caller().ask(stream=True, left_after=3)
    assert breaker.snapshot().run == 1


def test_a_probe_that_is_left_frees_its_slot(caller, breaker, provider, clock, sdk):
    for _ in range(2):
        breaker.acquire().failure("timeout")
    clock.advance(10)
    provider.answer(Reply(words=50, gap=0.01))
    caller().ask(stream=True, left_after=3)
    assert (breaker.state, breaker.is_available()) == ("half_open", True)


def test_a_task_that_is_cancelled_says_nothing(sdk, provider, breaker, stream):
    breaker.acquire().failure("timeout")
    provider.answer(Reply(instead=End.SILENCE))
    caller = Caller(sdk, True, provider.url, breaker)

    async def cancelled():
        task = asyncio.create_task(caller._ask_async(stream, None))
        while provider.hits == 0:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert breaker.snapshot().run == 1


def test_copies_of_a_client_are_guarded_too(sdk, is_async, provider, breaker):
    breaker.force_open()
    client = Caller(sdk, is_async, provider.url, breaker).client()
    assert isinstance(client, sdk.clients[is_async])
    copied = client.with_options(timeout=5)
    with pytest.raises(fuseline.CircuitOpenError):
        answer = sdk.start(copied, False)
        if is_async:
            asyncio.run(answer)
    assert provider.hits == 0


def test_the_client_that_was_given_stays_as_it_is(sdk, provider, breaker):
    client = sdk.clients[0](base_url=provider.url + sdk.base, api_key="key", max_retries=0)
    sdk.wrap(client, breaker)
    breaker.force_open()
    assert sdk.whole(sdk.start(client, False)) == "All is well."


def test_raw_and_streaming_responses_settle_too(sdk, provider, breaker):
    client = sdk.wrap(sdk.clients[0](base_url=provider.url + sdk.base, api_key="key"), breaker)
    of = client.chat.completions if sdk is OPENAI else client.messages
    asked = {"model": wire.MODEL, "messages": QUESTION} | ({} if sdk is OPENAI else {"max_tokens": 9})
    breaker.acquire().failure("timeout")
    assert of.with_raw_response.create(**asked).parse()
    assert breaker.snapshot().run == 0
    breaker.acquire().failure("timeout")
    with of.with_streaming_response.create(**asked) as response:
        assert json.loads(response.read())
    assert breaker.snapshot().run == 0


def test_what_is_no_client_is_refused(sdk):
    with pytest.raises(TypeError, match=f"client is a str, must be a client of the package {sdk.name}"):
        sdk.wrap("client")


def test_without_a_breaker_it_is_the_process_wide_one_of_the_provider(sdk):
    sdk.wrap(sdk.clients[0](api_key="key"))
    assert fuseline.find_breaker(sdk.name) is not None


def test_many_streams_at_once_have_limits_of_their_own(provider):
    """One thread watches over all of them; only those that are silent are cut off."""
    breaker = fuseline.Breaker("openai", mode="shadow")
    slow = Reply(words=6, gap=0.1)
    provider.answer(lambda seen: slow if seen.asked["messages"][0]["content"] == "slow" else script(OPENAI, End.SILENCE))
    client = fuseline.openai.wrap(
        openai.OpenAI(base_url=provider.url + "/v1", api_key="key", max_retries=0), breaker, timeouts=SHORT | {"first_token": 5}
    )
    came = []

    def call(what):
        question = [{"role": "user", "content": what}]
        try:
            stream = client.chat.completions.create(model=wire.MODEL, messages=question, stream=True)
            came.append((what, "".join(OPENAI.text(event) for event in stream)))
        except fuseline.StreamError as error:
            came.append((what, error.ending))

    threads = [threading.Thread(target=call, args=(what,)) for what in ["slow", "silent"] * 5]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(came) == [("silent", "stream_stall")] * 5 + [("slow", "so so so so so All is well.")] * 5


def test_the_helpers_for_streams_are_guarded_too(sdk, provider, breaker):
    client = sdk.wrap(sdk.clients[0](base_url=provider.url + sdk.base, api_key="key", max_retries=0), breaker)
    of = client.chat.completions if sdk is OPENAI else client.messages
    asked = {"model": wire.MODEL, "messages": QUESTION} | ({} if sdk is OPENAI else {"max_tokens": 9})

    def read():
        with of.stream(**asked) as stream:
            return [event.type for event in stream]

    breaker.acquire().failure("timeout")
    assert read()
    assert breaker.snapshot().run == 0
    provider.answer(script(sdk))
    with pytest.raises(fuseline.StreamError):
        read()
    assert breaker.snapshot().kinds == {"stream_truncated": 1}


def test_responses_are_guarded_in_their_own_dialect(provider, breaker):
    client = fuseline.openai.wrap(openai.OpenAI(base_url=provider.url + "/v1", api_key="key", max_retries=0), breaker)

    def read():
        return [event.type for event in client.responses.create(model=wire.MODEL, input="Why?", stream=True)]

    breaker.acquire().failure("timeout")
    assert read()[-1] == "response.completed"
    assert breaker.snapshot().run == 0
    failure = wire.RESPONSES.failure(wire.RESPONSES.overloaded, "Overloaded")
    provider.answer(Reply(script=[wire.RESPONSES.begin, wire.RESPONSES.word("so"), failure]))
    with pytest.raises((openai.APIError, fuseline.StreamError)):
        read()
    assert breaker.snapshot().kinds == {"overloaded": 1}
