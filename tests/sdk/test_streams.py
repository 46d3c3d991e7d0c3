"""Streams as real SDKs see them: a failure is an exception, after the text that came before it, and never a finish; what
looks odd and is whole is a finish like any other."""

import threading
import time

import pytest
import trustme
from callers import CHAT, MESSAGES, RESPONSES, Python
from conftest import FROM_SPARE
from gateway import until
from provider import Provider, Reply
from wire import BEGUN, End, chat_chunk

SDK_RETRIES = 2  # as many as each of the SDKs makes where nobody says otherwise
STALL = 1.0
LIMITS = f'first_token = "5s"\nstall = "{STALL}s"\nidle = "5s"'
HELD = 'retries = 0\nhold_back = "2s"'


@pytest.fixture(params=[CHAT, RESPONSES, MESSAGES], ids=lambda api: api.name)
def api(request):
    return request.param


@pytest.fixture(params=["python", "node"])
def caller(request):
    return Python() if request.param == "python" else request.getfixturevalue("node")


@pytest.fixture
def dialect(api):
    return api.dialect


def whole(wire):
    """Sixty words and a proper end."""
    return list(wire.stream(["so "] * 60))


def begun(wire, words):
    """A stream that has come so far."""
    return [wire.begin, *[step for _ in range(words) for step in (wire.word("so "), 0.002)]]


def assert_one_failure(gateway, kind):
    """It is charged once, to the model, as what it was."""
    failed = [breaker for breaker in gateway.breakers("primary") if breaker["run"]]
    assert [(breaker["scope"], breaker["run"]) for breaker in failed] == [("model", 1)]
    assert [failure["kind"] for failure in failed[0]["last_failures"]] == [kind]


def assert_raised(heard, api, caller, words, *says):
    """The text came up to the failure, nothing says that it is whole, and the exception tells what happened. Anthropic's
    Python SDK calls it one of the status, which is 200; the others have no status in the middle of a stream."""
    assert (heard.begun, heard.text, heard.finish) == (1, "so " * words, None)
    assert heard.raised, "no exception"
    expected = ("APIStatusError", 200) if (api, caller.name) == (MESSAGES, "python") else ("APIError", None)
    assert (heard.raised.classes[0], heard.raised.status) == expected
    for part in says:
        assert part in heard.raised.message


def assert_refused(heard, api, status):
    """Nothing of a stream was seen: the exception is that of the status."""
    assert (heard.begun, heard.text, heard.finish) == (0, "", None)
    assert heard.raised.status == status
    own = {504: "GatewayTimeoutError", 529: "OverloadedError"}.get(status) if api is MESSAGES else None
    assert heard.raised.classes[0] == (own or "InternalServerError")


def assert_whole(heard, api, text):
    assert heard.raised is None
    assert heard.text == text
    assert heard.finish == api.finish
    assert heard.begun == 1


def assert_nobody_failed(gateway):
    assert all(breaker["run"] == 0 for breaker in gateway.breakers("primary"))


@pytest.mark.parametrize("begins", [False, True], ids=["first", "after_the_beginning"])
def test_report_49_overloaded_before_any_content_is_an_error_status(serve, api, caller, primary, begins):
    """The SDKs raise by status what they would raise from the event without one."""
    gateway = serve(primary.url)
    overloaded = api.wire.failure(api.wire.overloaded, "We are overloaded")
    primary.answer(Reply(script=[api.wire.begin, overloaded] if begins else [overloaded]))
    heard = caller.call(api, gateway.url)
    assert_refused(heard, api, 529 if api is MESSAGES else 503)
    assert "We are overloaded" in heard.raised.message
    assert_one_failure(gateway, "overloaded")


def test_report_51_an_error_after_20_of_60_events_is_raised(serve, api, caller, primary):
    """The provider's own event arrives as it was sent. The Python SDK of OpenAI hands that of the responses API on as an
    event; the Node SDK, which goes by the event's name, raises it."""
    gateway = serve(primary.url)
    failure = api.wire.failure("api_error", "The engine failed")
    primary.answer(Reply(script=[*begun(api.wire, 20), failure, *begun(api.wire, 40)]))
    heard = caller.call(api, gateway.url)
    if api is RESPONSES and caller.name == "python":
        assert (heard.told, heard.raised) == ("The engine failed", None)
        assert (heard.text, heard.finish) == ("so " * 20, None)
    else:
        assert_raised(heard, api, caller, 20, "The engine failed")
    assert_one_failure(gateway, "server_error")


@pytest.mark.parametrize("ending", [[], [End.CUT], [End.RESET]], ids=["ended", "closed", "reset"])
def test_report_53_and_56_a_cut_at_event_40_of_60_is_raised(serve, api, caller, primary, ending):
    gateway = serve(primary.url)
    primary.answer(Reply(script=[*begun(api.wire, 40), *ending]))
    heard = caller.call(api, gateway.url, SDK_RETRIES)
    assert_raised(heard, api, caller, 40, "before the answer was complete")
    assert primary.hits == 1, "what has begun is repeated by nobody"
    assert_one_failure(gateway, "stream_truncated")


@pytest.mark.parametrize("pings", [False, True], ids=["silent", "pinging"])
def test_report_43_and_45_a_stall_is_raised(serve, api, caller, primary, pings):
    gateway = serve(primary.url, timeouts=LIMITS)
    primary.answer(Reply(script=[*begun(api.wire, 20), *([api.wire.ping, 0.2] * 50 if pings else [End.SILENCE])]))
    start = time.monotonic()
    heard = caller.call(api, gateway.url)
    assert STALL < time.monotonic() - start < STALL + 2
    assert_raised(heard, api, caller, 20, "no further content for 1s", "limit stall")
    until(lambda: primary.left, "the upstream is closed")
    assert_one_failure(gateway, "stream_stall")


@pytest.mark.parametrize("begins", [False, True], ids=["head_only", "no_content"])
def test_report_43_silence_before_any_content_is_a_504(serve, api, caller, primary, begins):
    gateway = serve(primary.url, timeouts='first_token = "1s"')
    primary.answer(Reply(script=[*([api.wire.begin] if begins else []), End.SILENCE]))
    heard = caller.call(api, gateway.url, SDK_RETRIES)
    assert_refused(heard, api, 504)
    assert primary.hits == 1, "the SDK is told not to repeat it"
    until(lambda: primary.left, "the upstream is closed")
    assert_one_failure(gateway, "stream_stall")


def test_report_43_no_head_is_a_504(serve, api, caller, primary):
    gateway = serve(primary.url, timeouts='first_token = "1s"')
    primary.answer(Reply(gate=threading.Event()))
    heard = caller.call(api, gateway.url, SDK_RETRIES)
    assert_refused(heard, api, 504)
    assert primary.hits == 1
    assert_one_failure(gateway, "timeout")


@pytest.mark.parametrize("is_cut", [False, True], ids=["malformed", "cut"])
def test_report_57_a_broken_tool_call_is_raised(serve, api, caller, primary, is_cut):
    gateway = serve(primary.url)
    rest = [End.CUT] if is_cut else [api.wire.garbage, api.wire.finish, api.wire.marker]
    primary.answer(Reply(script=[*begun(api.wire, 3), api.wire.tool, *rest]))
    heard = caller.call(api, gateway.url)
    says = "before the answer was complete" if is_cut else "an event that is no JSON"
    assert_raised(heard, api, caller, 3, says)
    assert heard.tool == BEGUN
    assert_one_failure(gateway, "stream_truncated")


@pytest.mark.parametrize("api", [CHAT, MESSAGES], ids=lambda api: api.name, indirect=True)
def test_report_56_no_end_marker_after_a_finish_reason_is_a_finish(serve, api, caller, primary):
    """Neither `[DONE]` nor `message_stop` is missed by the SDKs."""
    gateway = serve(primary.url)
    primary.answer(Reply(script=[*begun(api.wire, 60), api.wire.finish]))
    assert_whole(caller.call(api, gateway.url), api, "so " * 60)
    assert_nobody_failed(gateway)


@pytest.mark.parametrize("ending", [End.CUT, End.RESET], ids=["closed", "reset"])
def test_a_rude_close_after_the_end_marker_is_a_finish(serve, api, caller, primary, ending):
    gateway = serve(primary.url)
    primary.answer(Reply(script=[*begun(api.wire, 60), api.wire.finish, api.wire.marker, ending]))
    assert_whole(caller.call(api, gateway.url), api, "so " * 60)
    assert_nobody_failed(gateway)


@pytest.fixture
def behind_tls(tmp_path):
    """A provider behind TLS; who vouches for it is in `ca.pem`."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    provider = Provider(certificate=authority.issue_cert("127.0.0.1"))
    yield provider
    provider.close()


@pytest.mark.parametrize("ending", [End.CUT, End.RESET], ids=["closed", "reset"])
def test_a_rude_close_of_tls_after_the_end_marker_is_a_finish(serve, api, caller, behind_tls, ending):
    gateway = serve(behind_tls.url, top='ca_file = "ca.pem"')
    behind_tls.answer(Reply(script=[*begun(api.wire, 60), api.wire.finish, api.wire.marker, ending]))
    assert_whole(caller.call(api, gateway.url), api, "so " * 60)
    assert_nobody_failed(gateway)


def test_a_rude_close_of_tls_before_the_end_marker_is_raised(serve, api, caller, behind_tls):
    gateway = serve(behind_tls.url, top='ca_file = "ca.pem"')
    behind_tls.answer(Reply(script=[*begun(api.wire, 40), End.CUT]))
    assert_raised(caller.call(api, gateway.url), api, caller, 40, "before the answer was complete")
    assert_one_failure(gateway, "stream_truncated")


@pytest.mark.parametrize("api", [CHAT], ids=lambda api: api.name, indirect=True)
@pytest.mark.parametrize("choices", [{"choices": []}, {"choices": None}, {}], ids=["empty", "null", "absent"])
def test_report_59_a_usage_only_last_chunk_is_a_finish(serve, api, caller, primary, choices):
    gateway = serve(primary.url)
    usage = chat_chunk(**choices, usage={"prompt_tokens": 3, "completion_tokens": 60, "total_tokens": 63})
    primary.answer(Reply(script=[*begun(api.wire, 60), api.wire.finish, usage, api.wire.marker]))
    heard = caller.call(api, gateway.url)
    assert_whole(heard, api, "so " * 60)
    assert_nobody_failed(gateway)
    assert heard.tokens == 63


def test_pings_before_the_first_token_are_waited_out(serve, api, caller, primary):
    """They last longer than a stall, which is none before the first token."""
    gateway = serve(primary.url, timeouts=LIMITS)
    primary.answer(Reply(script=[api.wire.begin, *[api.wire.ping, 0.3] * 5, *whole(api.wire)[1:]]))
    assert_whole(caller.call(api, gateway.url), api, "so " * 60)
    assert_nobody_failed(gateway)


@pytest.mark.long
def test_twenty_seconds_of_pings_before_the_first_token_are_waited_out(serve, api, caller, primary):
    gateway = serve(primary.url)
    primary.answer(Reply(script=[api.wire.begin, *[api.wire.ping, 1.0] * 20, *whole(api.wire)[1:]]))
    assert_whole(caller.call(api, gateway.url, patience=60.0), api, "so " * 60)
    assert_nobody_failed(gateway)


def test_an_event_that_is_no_json_is_left_out(serve, api, caller, primary):
    """Any of the SDKs would raise on it, and lose the text that follows."""
    gateway = serve(primary.url)
    good = whole(api.wire)
    primary.answer(Reply(script=[*good[:30], api.wire.garbage, *good[30:]]))
    assert_whole(caller.call(api, gateway.url), api, "so " * 60)
    assert_nobody_failed(gateway)


def test_an_sdk_does_not_multiply_our_retries(serve, api, caller, primary):
    gateway = serve(primary.url, route="retries = 1")
    primary.answer(Reply(status=500))
    heard = caller.call(api, gateway.url, SDK_RETRIES)
    assert_refused(heard, api, 500)
    assert "scripted 500" in heard.raised.message
    assert primary.hits == 2


FAILURES = {
    "overloaded_first": lambda wire: [wire.failure(wire.overloaded, "We are overloaded")],
    "error_after_20_of_60": lambda wire: [*begun(wire, 20), wire.failure("api_error", "It failed"), *begun(wire, 40)],
    "cut_after_40": lambda wire: [*begun(wire, 40), End.CUT],
    "silence_after_20": lambda wire: [*begun(wire, 20), End.SILENCE],
    "pings_without_end": lambda wire: [wire.begin, *[wire.ping, 0.2] * 50],
    "pings_and_an_end": lambda wire: [wire.begin, *[wire.ping, 0.1] * 5],
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_held_stream_that_fails_is_answered_whole_by_the_fallback(serve, api, caller, primary, spare, name):
    gateway = serve(primary.url, spare.url, route=HELD, timeouts='first_token = "1s"\nstall = "1s"')
    primary.answer(Reply(script=FAILURES[name](api.wire)))
    assert_whole(caller.call(api, gateway.url), api, "so so so so " + FROM_SPARE)
    assert (primary.hits, spare.hits) == (1, 1)


def test_529_on_every_call_is_answered_whole_by_the_fallback(serve, api, caller, primary, spare):
    gateway = serve(primary.url, spare.url, route=HELD)
    primary.answer(Reply(status=529))
    for _ in range(7):
        assert_whole(caller.call(api, gateway.url), api, "so so so so " + FROM_SPARE)
    assert (primary.hits, spare.hits) == (5, 7), "the breaker opens at the fifth"


@pytest.mark.long
def test_45_seconds_of_pings_are_answered_whole_by_the_fallback(serve, api, caller, primary, spare):
    gateway = serve(primary.url, spare.url, route=HELD)
    primary.answer(Reply(script=[api.wire.begin, *[api.wire.ping, 1.0] * 45]))
    assert_whole(caller.call(api, gateway.url, patience=60.0), api, "so so so so " + FROM_SPARE)
    assert (primary.hits, spare.hits) == (1, 1)
