"""The circuit breaker for LLM calls.

A provider that is failing costs every caller a timeout. A breaker notices, refuses calls at once, tests the provider with one
careful call at a time, and lets traffic back.

| you have | take |
|---|---|
| a function, a coroutine, a generator | `@breaker`, `breaker.call(function, ...)` |
| a block of code | `with breaker:`, `async with breaker:` |
| an OpenAI or Anthropic client | `fuseline.openai.wrap(client)`, `fuseline.anthropic.wrap(client)` |
| any other httpx client | `fuseline.httpx.Transport`, `fuseline.httpx.AsyncTransport` |
| several providers | `Chain` |
| anything else | `breaker.acquire()`, which gives a `Permit` |

>>> import fuseline
>>> breaker = fuseline.get_breaker("openai")
>>> with breaker:
...     answer = "of your client"
>>> breaker.state
'closed'
"""

from ._breaker import Breaker
from ._chain import Answer, Cache, Chain
from ._classify import classify, classify_error
from ._errors import CircuitOpenError, FuselineError, RegistryError, SettingsError, StreamError
from ._keep import FleetHealth, Keeper, keep
from ._native import VERSION as __version__
from ._native import Clock, Permit, Verdict
from ._registry import Events, Registry, breakers, events, find_breaker, get_breaker
from ._settings import Duration, Kind, KindSettings, Settings, State, Timeouts, TripRule
from ._view import Event, FailureNote, RuleSnapshot, Snapshot, Transition, Why

__all__ = [
    "Answer",
    "Breaker",
    "Cache",
    "Chain",
    "CircuitOpenError",
    "Clock",
    "Duration",
    "Event",
    "Events",
    "FailureNote",
    "FleetHealth",
    "FuselineError",
    "Keeper",
    "Kind",
    "KindSettings",
    "Permit",
    "Registry",
    "RegistryError",
    "RuleSnapshot",
    "Settings",
    "SettingsError",
    "Snapshot",
    "State",
    "StreamError",
    "Timeouts",
    "Transition",
    "TripRule",
    "Verdict",
    "Why",
    "__version__",
    "breakers",
    "classify",
    "classify_error",
    "events",
    "find_breaker",
    "get_breaker",
    "keep",
]
