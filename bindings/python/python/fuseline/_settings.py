"""Settings: the keys of the configuration file, as keyword arguments."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Literal, TypeAlias, TypedDict

from ._errors import SettingsError

Duration: TypeAlias = "str | float | timedelta"
"""How long: `"30s"`, `"1m 30s"` or `"500ms"` as in the configuration file, seconds as a number, or a `timedelta`."""

State: TypeAlias = Literal["closed", "degraded", "open", "half_open", "forced_open", "forced_closed"]
"""The states of a breaker."""

Kind: TypeAlias = Literal[
    "server_error",
    "overloaded",
    "rate_limit",
    "quota_exhausted",
    "timeout",
    "network",
    "empty_response",
    "stream_stall",
    "stream_truncated",
    "auth",
    "permission",
    "bad_request",
    "not_found",
    "context_length",
    "content_policy",
    "validation",
    "parse",
    "cancelled",
    "local",
]
"""What went wrong with a call."""


class TripRule(TypedDict, total=False):
    """A rule that opens: `consecutive` (failures), `window` (failures, window), `rate` (threshold, window, min_calls),
    `slow` (slower_than, threshold, window, min_calls) or `cusum` (well, ill, calls_per_false_alarm, each with a default)."""

    rule: Literal["consecutive", "window", "rate", "slow", "cusum"]
    failures: int
    window: Duration
    threshold: float
    min_calls: int
    slower_than: Duration
    well: float
    ill: float
    calls_per_false_alarm: float


class KindSettings(TypedDict, total=False):
    """How failures of one kind count."""

    count: bool
    threshold: int
    immediate_open: bool
    cooldown: Duration


class Settings(TypedDict, total=False):
    """The settings of a breaker; each has a default. The guide tells what they mean."""

    preset: Literal["vernllm", "llmtest", "llmtest-rate", "omniroute", "agents", "n4n"]
    mode: Literal["enforce", "shadow", "off"]
    trip: list[TripRule]
    on_success: Literal["reset", "decrement"]
    degraded_at: float
    cooldown: Duration
    backoff: float
    backoff_after: int
    max_cooldown: Duration
    jitter: float
    max_retry_after: Duration
    probes: int
    successes_to_close: int
    probe_timeout: Duration
    probe_proof: Duration
    ramp: Duration
    max_in_flight: int
    count: Literal["call", "attempt"]
    per: Literal["model", "provider"]
    kinds: dict[Kind, KindSettings]


class Timeouts(TypedDict, total=False):
    """The limits of streams."""

    first_token: Duration
    """From the call to the first item or content event; 60 s, and longer for models known to think before they speak."""
    stall: Duration
    """Between items or content events; 30 s."""
    idle: Duration
    """Between bytes of an answer; 30 s."""
    total: Duration
    """The whole stream; no limit unless set."""
    min_tokens_per_second: float
    """Slower than this over ten seconds is too slow to be of use; 0, any speed will do, unless set."""
    cancel_counts_after: Duration
    """Who leaves after so long without a content event has waited in vain; 20 s."""


_DURATIONS = {"cooldown", "max_cooldown", "max_retry_after", "probe_timeout", "probe_proof", "ramp"}
_RULE_DURATIONS = {"window", "slower_than"}
_RULES = {
    "consecutive": {"failures"},
    "window": {"failures", "window"},
    "rate": {"threshold", "window", "min_calls"},
    "slow": {"slower_than", "threshold", "window", "min_calls"},
    "cusum": {"well", "ill", "calls_per_false_alarm"},
}
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)")


def encode(settings: Mapping[str, Any]) -> str:
    """The settings as the JSON that the native module reads; what it cannot know is refused here."""
    problems = _unknown("", settings, Settings.__annotations__)
    written = {}
    for key, value in settings.items():
        if key in _DURATIONS:
            value = _duration_text(value)
        elif key == "trip" and isinstance(value, (list, tuple)):
            value = [_rule(f"trip[{at}]", rule, problems) for at, rule in enumerate(value)]
        elif key == "kinds" and isinstance(value, Mapping):
            value = {kind: _kind(f"kinds.{kind}", row, problems) for kind, row in value.items()}
        written[key] = value
    if problems:
        raise SettingsError(problems)
    try:
        return json.dumps(written, sort_keys=True)
    except TypeError as error:
        raise SettingsError([f"settings must be texts, numbers, lists and dictionaries: {error}"]) from None


def seconds(key: str, value: Duration) -> float:
    """A duration in seconds."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    if isinstance(value, str):
        parts = list(_PART.finditer(value))
        if parts and "".join(part.group(0) for part in parts) == value.rstrip():
            if all(part.group(2) in _UNITS for part in parts):
                return sum(float(part.group(1)) * _UNITS[part.group(2)] for part in parts)
    raise SettingsError([f"{key} is {value!r}, must be a duration such as '30s', 1.5 (seconds) or a timedelta"])


def limits(timeouts: Mapping[str, Any] | None) -> dict[str, float]:
    """The limits of streams in seconds, by name; those left out are not in it."""
    given = timeouts or {}
    if problems := _unknown("timeouts.", given, Timeouts.__annotations__):
        raise SettingsError(problems)
    plain = {"min_tokens_per_second"}
    return {key: float(value) if key in plain else seconds(f"timeouts.{key}", value) for key, value in given.items()}


def _rule(place: str, rule: Any, problems: list[str]) -> Any:
    if not isinstance(rule, Mapping):
        return rule
    allowed = _RULES.get(rule.get("rule", ""))
    if allowed is not None:
        problems += _unknown(f"{place}.", rule, allowed | {"rule"})
    return {key: _duration_text(value) if key in _RULE_DURATIONS else value for key, value in rule.items()}


def _kind(place: str, row: Any, problems: list[str]) -> Any:
    if not isinstance(row, Mapping):
        return row
    problems += _unknown(f"{place}.", row, KindSettings.__annotations__)
    return {key: _duration_text(value) if key == "cooldown" else value for key, value in row.items()}


def _unknown(place: str, given: Iterable[str], known: Iterable[str]) -> list[str]:
    known = sorted(known)
    problems = []
    for key in given:
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            remedy = f"did you mean {close[0]}?" if close else f"must be one of {', '.join(known)}"
            problems.append(f"{place}{key} is no setting, {remedy}")
    return problems


def _duration_text(value: Any) -> Any:
    """As the configuration file writes it; what is no duration is left for the reader to refuse."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e10:
        return f"{round(value * 1e9)}ns"
    return value
