"""Sixteen failures that callers of models meet, each as one SDK sees it that never retries by itself: one primary, one spare
of another model, limits of ten seconds, two seconds of every stream held back, and everything else as it is by default."""

import json
import math
import time
from dataclasses import dataclass

import openai
import pytest
from callers import paced
from provider import Reply, Seen
from wire import CHAT, MODEL, End, chat_chunk

TOKENS = 60
GAP = 0.015  # forty tokens take 0.6 s
SPARE_MODEL = "spare-model"
QUESTION = [{"role": "user", "content": "How are things?"}]
PRIMARY_TEXT, SPARE_TEXT = "so " * TOKENS, "well " * TOKENS
PROMPTS = {PRIMARY_TEXT: 11, SPARE_TEXT: 13}  # tokens of the question, as each of them counts


@dataclass
class Answer:
    """What the application has in the end, and after how many seconds."""

    text: str
    model: str
    finish: str | None
    usage: tuple[int, int, int] | None
    seconds: float


def usage_of(text: str) -> dict:
    return {"prompt_tokens": PROMPTS[text], "completion_tokens": TOKENS, "total_tokens": PROMPTS[text] + TOKENS}


def stream_of(text: str, model: str, gap: float = 0.0) -> list:
    """A good stream: one event before the tokens and three after them."""
    word = text.split()[0] + " "
    choice = {"index": 0, "delta": {"content": word}, "finish_reason": None}
    tokens = [chat_chunk(model=model, choices=[choice])] * TOKENS
    return [
        CHAT.begin,
        *[step for token in tokens for step in (token, gap)],
        chat_chunk(model=model, choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}]),
        chat_chunk(model=model, choices=[], usage=usage_of(text)),
        CHAT.marker,
    ]


def good(text: str):
    """The model that is asked answers, streamed if so asked, and says what it used."""

    def reply(seen: Seen) -> Reply:
        model = seen.asked["model"]
        if seen.asked.get("stream"):
            return Reply(script=stream_of(text, model))
        return Reply(body=json.dumps(CHAT.whole(text) | {"model": model, "usage": usage_of(text)}).encode())

    return reply


WELL = good(PRIMARY_TEXT)


def error(status: int, code: str, message: str, **headers: str) -> Reply:
    body = {"error": {"message": message, "type": "invalid_request_error", "param": "messages", "code": code}}
    return Reply(status=status, headers=headers, body=json.dumps(body).encode())


def begun(tokens: int) -> list:
    """A stream of the primary that has come so far."""
    return stream_of(PRIMARY_TEXT, MODEL, GAP)[: 1 + 2 * tokens]


@pytest.fixture
def serve_scenario(serve_two, primary, spare):
    """Starts the gateway of all scenarios, before two providers that are well."""
    primary.answer(WELL)
    spare.answer(good(SPARE_TEXT))

    def start(breaker: str = "", route: str = "", spare_model: str = SPARE_MODEL):
        limits = 'first_token = "10s"\nstall = "10s"'
        return serve_two(breaker, f'hold_back = "2s"\n{route}', limits, spare_model)

    return start


@pytest.fixture
def gateway(serve_scenario):
    return serve_scenario()


def ask(gateway, stream: bool = True) -> Answer:
    start = time.monotonic()
    with openai.OpenAI(base_url=gateway.url + "/v1", api_key="caller-key", max_retries=0) as client:
        if stream:
            answer = _read(client)
        else:
            whole = client.chat.completions.create(model=MODEL, messages=QUESTION)
            choice = whole.choices[0]
            answer = Answer(choice.message.content, whole.model, choice.finish_reason, _usage(whole.usage), 0.0)
    answer.seconds = time.monotonic() - start
    return answer


def _read(client: openai.OpenAI) -> Answer:
    answer = Answer("", "", None, None, 0.0)
    options = {"stream": True, "stream_options": {"include_usage": True}}
    for event in client.chat.completions.create(model=MODEL, messages=QUESTION, **options):
        answer.model = event.model
        for choice in event.choices:
            answer.text += choice.delta.content or ""
            answer.finish = choice.finish_reason or answer.finish
        answer.usage = _usage(event.usage) or answer.usage
    return answer


def _usage(usage) -> tuple[int, int, int] | None:
    return usage and (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)


def assert_whole(answer: Answer, *texts: str):
    """All of one of them, from the model that served, with the usage that this one told."""
    assert answer.text in texts
    assert answer.finish == "stop"
    assert answer.model == (MODEL if answer.text == PRIMARY_TEXT else SPARE_MODEL)
    prompt = PROMPTS[answer.text]
    assert answer.usage == (prompt, TOKENS, prompt + TOKENS)


def test_01_a_429_that_names_a_wait_is_repeated_after_it(gateway, primary, spare, stream):
    primary.answer(error(429, "rate_limit_exceeded", "Slow down", **{"retry-after": "2"}), WELL)
    assert_whole(ask(gateway, stream), PRIMARY_TEXT)
    first, second = (seen.at for seen in primary.heads)
    assert 2.0 <= second - first < 3.0
    assert spare.hits == 0


def test_02_a_429_without_a_hint_is_answered_by_the_spare(gateway, primary, spare, stream):
    primary.answer(error(429, "rate_limit_exceeded", "Slow down"))
    assert_whole(ask(gateway, stream), SPARE_TEXT)
    times = [seen.at for seen in primary.heads]
    assert sum(at - times[0] < 3 for at in times) <= 4
    assert primary.hits + spare.hits <= 6


def test_03_one_500_is_repeated_on_the_same_provider(gateway, primary, spare, stream):
    primary.answer(Reply(status=500), WELL)
    assert_whole(ask(gateway, stream), PRIMARY_TEXT)
    assert (primary.hits, spare.hits) == (2, 0)


def test_04_a_provider_that_is_down_is_replaced_by_the_spare(gateway, primary, spare, stream):
    primary.answer(Reply(status=503))
    assert_whole(ask(gateway, stream), SPARE_TEXT)
    assert (primary.hits, spare.hits) == (2, 1)


@pytest.mark.parametrize("pooled", [False, True], ids=["new", "pooled"])
def test_05_a_reset_before_any_byte_is_answered(gateway, primary, stream, pooled):
    if pooled:
        assert_whole(ask(gateway, stream), PRIMARY_TEXT)
    primary.answer(Reply(instead=End.RESET), WELL)
    answer = ask(gateway, stream)
    assert_whole(answer, PRIMARY_TEXT, SPARE_TEXT)
    assert answer.seconds < 5


FULL = pytest.mark.long


@pytest.mark.parametrize("stream", [pytest.param(False, id="plain", marks=FULL), pytest.param(True, id="streamed")])
def test_06_silence_is_given_up_and_not_asked_twice(gateway, primary, stream, measured):
    primary.answer(Reply(after=120.0), WELL)
    answer = ask(gateway, stream)
    measured(f"two minutes of silence are over after {answer.seconds:.1f} s")
    assert answer.seconds < 100
    assert_whole(answer, SPARE_TEXT)
    assert primary.hits == 1


def test_07_a_head_without_a_token_is_given_up_for_the_spare(gateway, primary):
    primary.answer(Reply(script=[20.0, *stream_of(PRIMARY_TEXT, MODEL)]))
    answer = ask(gateway)
    assert_whole(answer, SPARE_TEXT)
    assert answer.seconds < 15


@pytest.mark.parametrize("ending", [[], [End.CUT], [End.RESET]], ids=["ended", "closed", "reset"])
def test_08_a_cut_within_what_is_held_back_leaves_no_trace(gateway, primary, ending):
    primary.answer(Reply(script=[*begun(40), *ending]))
    assert_whole(ask(gateway), SPARE_TEXT)
    assert primary.hits == 1


def test_09_a_stall_within_what_is_held_back_leaves_no_trace(gateway, primary):
    primary.answer(Reply(script=[*begun(20), 30.0, *stream_of(PRIMARY_TEXT, MODEL)[41:]]))
    answer = ask(gateway)
    assert_whole(answer, SPARE_TEXT)
    assert answer.seconds < 45
    assert primary.hits == 1


def test_10_an_event_that_is_no_json_costs_nothing_of_the_answer(gateway, primary, spare):
    script = stream_of(PRIMARY_TEXT, MODEL, GAP)
    primary.answer(Reply(script=[*script[:60], CHAT.garbage, *script[60:]]))
    assert_whole(ask(gateway), PRIMARY_TEXT)
    assert (primary.hits, spare.hits) == (1, 0)


@pytest.mark.parametrize("ending", [[], [End.CUT], [End.SILENCE]], ids=["ended", "closed", "open"])
def test_11_a_stream_without_its_marker_is_whole_and_tells_its_usage(gateway, primary, spare, ending):
    primary.answer(Reply(script=[*stream_of(PRIMARY_TEXT, MODEL)[:-1], *ending]))
    answer = ask(gateway)
    assert_whole(answer, PRIMARY_TEXT)
    assert answer.seconds < 8
    assert (primary.hits, spare.hits) == (1, 0)


TOO_LONG = error(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens.")


def test_12_what_is_too_long_for_a_model_goes_to_another(gateway, primary, spare, stream):
    primary.answer(TOO_LONG)
    assert_whole(ask(gateway, stream), SPARE_TEXT)
    assert [seen.asked["model"] for seen in primary.heads + spare.heads] == [MODEL, SPARE_MODEL]


def test_12_what_is_too_long_for_a_model_is_not_asked_of_it_elsewhere(serve_scenario, primary, spare, stream):
    gateway = serve_scenario(spare_model=MODEL)
    primary.answer(TOO_LONG)
    with pytest.raises(openai.BadRequestError) as raised:
        ask(gateway, stream)
    assert raised.value.code == "context_length_exceeded"
    assert (primary.hits, spare.hits) == (1, 0)


def test_13_what_the_policy_forbids_is_told_and_asked_of_nobody_else(gateway, primary, spare, stream):
    primary.answer(error(400, "content_policy_violation", "Your request was rejected by our safety system."))
    with pytest.raises(openai.BadRequestError) as raised:
        ask(gateway, stream)
    assert raised.value.code == "content_policy_violation"
    assert "safety system" in raised.value.message
    assert (primary.hits, spare.hits) == (1, 0)


def test_14_a_spare_that_continues_nobodys_answer_gets_the_whole_question(gateway, primary, spare):
    well = good(SPARE_TEXT)
    refusal = error(400, "invalid_prompt", "The last message must not be the assistant's.")
    spare.answer(lambda seen: refusal if seen.asked["messages"][-1]["role"] == "assistant" else well(seen))
    primary.answer(Reply(script=[*begun(40), End.CUT]))
    assert_whole(ask(gateway), SPARE_TEXT)
    assert [seen.asked["messages"] for seen in spare.heads] == [QUESTION]


@pytest.mark.parametrize(
    ("scale", "breaker", "retries", "most_in_vain"),
    [
        pytest.param(1, "", 1, 12, id="full", marks=FULL),
        pytest.param(10, 'cooldown = "1500ms"\nmax_cooldown = "12s"', 0, 7, id="tenth"),
    ],
)
def test_15_a_minutes_outage_is_survived_and_its_end_noticed(
    serve_scenario, primary, scale, breaker, retries, most_in_vain, measured
):
    """In the shorter one outage, calls and cooldowns are a tenth as long, and nothing is repeated, for which the wait would
    be as long as ever. In vain are five calls, and two probes."""
    gateway = serve_scenario(breaker, f"retries = {retries}")
    recovery = time.monotonic() + 60 / scale
    primary.answer(lambda seen: Reply(status=503) if seen.at < recovery else WELL(seen))
    answers = paced(20, 4 / scale, lambda: ask(gateway))
    for answer in answers:
        assert_whole(answer, PRIMARY_TEXT, SPARE_TEXT)
    slowest = max(answer.seconds for answer in answers)
    in_vain = sum(seen.at < recovery for seen in primary.heads)
    back = min((seen.at - recovery for seen in primary.heads if seen.at >= recovery), default=math.inf)
    measured(f"1/{scale}: the slowest of 20 took {slowest:.2f} s, {in_vain} requests in vain, back after {back:.1f} s")
    assert slowest < 30 / scale
    assert in_vain <= most_in_vain
    assert back < 30 / scale
    assert answers[-1].text == PRIMARY_TEXT


@pytest.mark.parametrize("text", [PRIMARY_TEXT, SPARE_TEXT], ids=["primary", "spare"])
def test_16_the_model_and_the_usage_are_those_of_who_served(gateway, primary, spare, stream, text):
    if text == SPARE_TEXT:
        primary.answer(Reply(status=503))
    assert_whole(ask(gateway, stream), text)
    served = primary if text == PRIMARY_TEXT else spare
    assert [seen.asked["model"] for seen in served.heads] == [MODEL if served is primary else SPARE_MODEL]
