"""The code of the documentation runs, and what it replaces does what is said of it."""

import asyncio
import re

import pytest
from conftest import ROOT
from provider import Provider, Reply

DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page):
    found = BLOCK.findall((DOCS / page).read_text())
    assert found
    return found


def run(page, number, **given):
    """Runs one block of a page; what it has defined."""
    code = compile(blocks(page)[number], f"{page}[{number}]", "exec")
    exec(code, given)
    return given


def test_the_guide_runs():
    given = {}
    for number, code in enumerate(blocks("guide/python.md")):
        exec(compile(code, f"python.md[{number}]", "exec"), given)

    async def read():
        return [token async for token in given["tokens"]("Why?")]

    assert asyncio.run(read()) == ["Because."]


def test_the_readme_runs():
    (code,) = BLOCK.findall((ROOT / "bindings" / "python" / "README.md").read_text())
    given = {}
    exec(code.replace("openai.OpenAI()", 'openai.OpenAI(api_key="...")'), given)
    assert given["search"]("fuses") is None


class Down:
    """A provider that fails, and counts."""

    def __init__(self, error=None):
        self.hits = 0
        self.error = error

    def invoke(self, question):
        self.hits += 1
        if self.error:
            raise self.error
        return f"an answer to {question}"


def outcome(answer):
    try:
        return answer()
    except ConnectionError:
        return "failed"


@pytest.mark.parametrize("number", [0, 1], ids=["before", "after"])
def test_pybreaker(number):
    down = Down(ConnectionError())
    answer = run("migrate/pybreaker.md", number, provider=down.invoke)["answer"]
    came = [outcome(lambda: answer("Why?")) for _ in range(10)]
    assert down.hits == 5
    assert came[:4] == ["failed"] * 4
    assert all(text.startswith("later") for text in came[5:])


@pytest.mark.parametrize("number", [0, 1], ids=["before", "after"])
def test_aiobreaker(number):
    down = Down(ConnectionError())

    async def provider(question):
        return down.invoke(question)

    answer = run("migrate/aiobreaker.md", number, provider=provider)["answer"]
    came = [outcome(lambda: asyncio.run(answer("Why?"))) for _ in range(10)]
    assert down.hits == 5
    assert came[:4] == ["failed"] * 4
    assert all(text.startswith("later") for text in came[5:])


@pytest.mark.parametrize(("number", "hits"), [(0, 20), (1, 5)], ids=["before", "after"])
def test_langchain(number, hits):
    down, well = Down(ConnectionError()), Down()
    answer = run("migrate/langchain.md", number, primary=down, spare=well)["answer"]
    assert {answer("Why?") for _ in range(20)} == {"an answer to Why?"}
    assert (down.hits, well.hits) == (hits, 20)


@pytest.mark.parametrize(
    "number", [pytest.param(0, marks=pytest.mark.long), 1], ids=["before", "after"]
)
def test_litellm(number, monkeypatch):
    if number == 0:
        monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    primary, spare = Provider(Reply(status=503)), Provider(Reply())
    try:
        page = run("migrate/litellm.md", number, primary_url=f"{primary.url}/v1", spare_url=f"{spare.url}/v1")
        assert {page["answer"]("Why?") for _ in range(10)} == {"All is well."}
        assert primary.hits <= 5 < spare.hits
    finally:
        primary.close()
        spare.close()
