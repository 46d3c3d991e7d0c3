"""What users write, for the type checker: that it passes, and that mistakes do not. Never run."""

from collections.abc import AsyncIterator, Iterator
from typing import assert_type

import anthropic
import openai

import fuseline
import fuseline.anthropic
import fuseline.openai

breaker = fuseline.get_breaker("openai", model="gpt-5", cooldown="30s", trip=[{"rule": "consecutive", "failures": 3}])


@breaker
def ask(question: str) -> str:
    return question


@breaker
async def ask_later(question: str) -> str:
    return question


@breaker
def words(count: int) -> Iterator[str]:
    yield "word" * count


@breaker
async def words_later(count: int) -> AsyncIterator[str]:
    yield "word" * count


async def use() -> None:
    assert_type(ask("Why?"), str)
    assert_type(await ask_later("Why?"), str)
    assert_type(list(words(1)), list[str])
    assert_type([word async for word in words_later(1)], list[str])
    async with breaker as permit:
        assert_type(permit.failure("timeout"), bool)


assert_type(fuseline.openai.wrap(openai.OpenAI()), openai.OpenAI)
assert_type(fuseline.anthropic.wrap(anthropic.AsyncAnthropic()), anthropic.AsyncAnthropic)
assert_type(fuseline.find_breaker("openai"), fuseline.Breaker | None)
assert_type(breaker.retry_after, float | None)
chain = fuseline.Chain([(breaker, 1), ("groq", 2)], budget="30s", cache=fuseline.Cache())
assert_type(chain, fuseline.Chain[int])
try:
    ask("Why?")
except fuseline.CircuitOpenError as error:
    assert_type(error.retry_after, float)

ask(5)  # type: ignore[arg-type]
fuseline.Breaker("openai", coldown="30s")  # type: ignore[call-arg]
fuseline.Breaker("openai", cooldown=[])  # type: ignore[arg-type]
fuseline.Breaker("openai", trip=[{"rule": "window", "failure": 2}])  # type: ignore[typeddict-unknown-key]
