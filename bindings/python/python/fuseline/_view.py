"""What there is to see of a breaker, as plain data. Times are seconds by the breaker's clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FailureNote:
    """One counted failure."""

    at: float
    kind: str
    code: int | None
    """Such as the HTTP status."""


@dataclass(frozen=True, slots=True)
class Why:
    """What a transition rests on. Its text is the sentence for people."""

    cause: str
    """The rule or event that decided: `consecutive`, `rate`, `open_now`, `probe`, `operator` and so on."""
    observed: float
    threshold: float
    """What was observed is held against this; 0 where there is no such number."""
    kind: str | None
    """Of the failure that decided, if one did."""
    last_failures: tuple[FailureNote, ...]
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of state."""

    number: int
    """1 for a breaker's first, then counting on."""
    at: float
    from_state: str
    to_state: str
    generation: int
    until: float | None
    """When an `open` or a forced state ends, where that is known."""
    why: Why


@dataclass(frozen=True, slots=True)
class RuleSnapshot:
    """A trip rule and what it observes."""

    rule: str
    hits: int
    calls: int | None
    observed: float
    threshold: float
    armed: bool
    """Whether there are calls enough for the share to mean anything."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A breaker at one instant.

    >>> import fuseline
    >>> breaker = fuseline.Breaker("openai")
    >>> for _ in range(3):
    ...     breaker.acquire().failure("timeout")
    True
    True
    True
    >>> seen = breaker.snapshot()
    >>> seen.state, seen.run, seen.kinds  # 3 of 5: 60 % of the way
    ('degraded', 3, {'timeout': 3})
    """

    name: str
    scope: str
    at: float
    state: str
    since: float
    generation: int
    reason: str | None
    """Why a call would be refused, if it would."""
    retry_after: float | None
    """Seconds until asking again is of use, where it is not now."""
    run: int
    """Failures with no success between them."""
    kinds: dict[str, int]
    """Failures by kind since the last closing, less what successes took back."""
    rules: tuple[RuleSnapshot, ...]
    pressure: float
    """The largest observed/threshold over the armed rules."""
    episodes: int
    """Probe episodes that failed since the breaker was last closed."""
    live_probes: int
    good_probes: int
    in_flight: int
    """Unsettled permits, where `max_in_flight` is set."""
    late: int
    """Outcomes whose state had passed."""
    rejected: dict[str, int]
    """Refused calls by reason."""
    entered: dict[str, int]
    """How often each state was entered."""
    open_for: float
    """Seconds in which it has been open in all."""
    incident_since: float | None
    """Since when it has not been closed, if it opened."""
    last_failures: tuple[FailureNote, ...]
    why: Transition | None
    """The transition that led here."""


@dataclass(frozen=True, slots=True)
class Event:
    """A breaker changed its state."""

    name: str
    transition: Transition
    missed: int
    """Transitions of this breaker just before this one that came and went unread: it keeps the last 20."""


def _failures(notes: list[dict[str, Any]]) -> tuple[FailureNote, ...]:
    return tuple(FailureNote(**note) for note in notes)


def transition(fields: dict[str, Any]) -> Transition:
    why = fields["why"]
    why = Why(**{**why, "last_failures": _failures(why["last_failures"])})
    return Transition(**{**fields, "why": why})


def snapshot(fields: dict[str, Any]) -> Snapshot:
    rebuilt = {
        "rules": tuple(RuleSnapshot(**rule) for rule in fields["rules"]),
        "last_failures": _failures(fields["last_failures"]),
        "why": fields["why"] and transition(fields["why"]),
    }
    return Snapshot(**{**fields, **rebuilt})
