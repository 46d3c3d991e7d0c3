"""What the tests of the package start from: breakers that open soon, and a scripted provider."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests" / "sdk"))

import fuseline  # noqa: E402
from provider import Provider, Reply  # noqa: E402


@pytest.fixture(autouse=True)
def forgotten():
    """No test meets the process-wide breakers of another."""
    yield
    for breaker in fuseline.breakers():
        fuseline._registry.process.remove(breaker.name)


@pytest.fixture
def clock():
    return fuseline.Clock.manual()


@pytest.fixture
def make(clock):
    """Makes a breaker on the test's clock: two failures in a row open it for ten seconds."""

    def breaker(name="openai", **settings):
        usual = {"trip": [{"rule": "consecutive", "failures": 2}], "cooldown": 10, "jitter": 0, "clock": clock}
        return fuseline.Breaker(name, **(usual | settings))

    return breaker


@pytest.fixture
def breaker(make):
    return make()


@pytest.fixture
def provider():
    provider = Provider(Reply())
    yield provider
    provider.close()
