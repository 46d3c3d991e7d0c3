"""Settings: the keys of configuration, and what is said of those that cannot work."""

from datetime import timedelta

import pytest

import fuseline


def problems(**settings):
    with pytest.raises(fuseline.SettingsError) as refused:
        fuseline.Breaker("openai", **settings)
    return refused.value.problems


def test_durations_are_texts_seconds_or_timedeltas(make):
    for cooldown in ("90s", "1m 30s", 90, 90.0, timedelta(seconds=90)):
        breaker = make(cooldown=cooldown)
        for _ in range(2):
            breaker.acquire().failure("timeout")
        assert breaker.retry_after == 90.0, cooldown


def test_every_mistake_is_told_at_once_with_its_key():
    assert problems(probes=0, cooldown=0, trip=[{"rule": "rate", "threshold": 1.5, "window": "1ms", "min_calls": 0}]) == [
        "trip[0].threshold is 1.5, must be 0.0001 to 1",
        "trip[0].window is 1ms, must be 1s to 100 years",
        "trip[0].min_calls is 0, must be 1 or more",
        "cooldown is 0ns, must be 1ms to 100 years",
        "probes is 0, must be 1 to 64",
    ]


def test_a_cusum_rule_has_defaults_and_shares_that_must_be_in_order(make):
    breaker = make(trip=[{"rule": "cusum"}])
    for _ in range(9):
        breaker.acquire().failure("timeout")
    (seen,) = breaker.snapshot().rules
    assert (seen.rule, seen.observed, seen.threshold) == ("cusum", 9.0, 9.142217048)
    breaker.acquire().failure("timeout")
    assert breaker.state == "open"
    assert problems(trip=[{"rule": "cusum", "well": 0.3, "calls_per_false_alarm": 1}]) == [
        "trip[0].ill is 0.15, must be more than `well`, at most 0.9999",
        "trip[0].calls_per_false_alarm is 1, must be 100 to 1e15",
    ]


def test_unknown_keys_are_told_wherever_they_stand():
    told = problems(
        cooldwn=1, trip=[{"rule": "consecutive", "failure": 2}], kinds={"timeout": {"counts": True}}, timeouts=None
    )
    assert told == [
        "cooldwn is no setting, did you mean cooldown?",
        "trip[0].failure is no setting, did you mean failures?",
        "kinds.timeout.counts is no setting, did you mean count?",
    ]
    assert problems(timeouts={"stal": 1}) == ["timeouts.stal is no setting, did you mean stall?"]


def test_values_of_the_wrong_type_are_told_with_their_key():
    (told,) = problems(probes="three")
    assert told.startswith('probes is "three": invalid type')
    (told,) = problems(preset="hystrix")
    assert "preset" in told and "vernllm" in told
    (told,) = problems(cooldown="soon")
    assert told.startswith('cooldown is "soon"')
    (told,) = problems(timeouts={"stall": "soon"})
    assert told == "timeouts.stall is 'soon', must be a duration such as '30s', 1.5 (seconds) or a timedelta"
    (told,) = problems(cooldown=-1)
    assert told.startswith("cooldown is -1")


def test_what_is_no_exception_type_is_told():
    assert problems(failures="KeyError")[0] == "failures is 'KeyError', must be an exception type or a tuple of them"
    assert problems(ignore=[KeyError, 5])[0].startswith("ignore is [<class 'KeyError'>, 5], must be")
    assert fuseline.Breaker("openai", failures=[KeyError], ignore=(ValueError,)).state == "closed"


def test_it_is_a_value_error_too():
    with pytest.raises(ValueError):
        fuseline.Breaker("openai", jitter=float("nan"))


def test_kinds_count_as_they_are_told_to(make):
    breaker = make(kinds={"bad_request": {"count": True, "threshold": 1, "cooldown": "42s"}})
    breaker.acquire().failure("bad_request")
    assert breaker.retry_after == 42.0


def test_kinds_that_nobody_knows_are_told(breaker):
    with pytest.raises(ValueError, match="serverless"):
        breaker.acquire().failure("serverless")
