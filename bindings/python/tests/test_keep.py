"""State in a file, and a fleet over Redis."""

import os
import subprocess
import sys
import time

import openai
import pytest
from gateway import Gateway
from provider import Reply
from test_processes import in_child
from wire import MODEL

import fuseline

RULES = {"trip": [{"rule": "consecutive", "failures": 2}], "cooldown": 60}


def until(condition, patience=10):
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


@pytest.fixture
def registry():
    return fuseline.Registry()


def open_one(registry, name="openai"):
    breaker = registry.get_breaker(name, **RULES)
    for _ in range(2):
        breaker.acquire().failure("overloaded")
    assert breaker.state == "open"
    return breaker


def test_an_open_breaker_is_open_in_the_next_process(registry, tmp_path):
    with fuseline.keep(state=tmp_path / "state.db", registry=registry):
        open_one(registry)
    script = """
import sys, fuseline
with fuseline.keep(state=sys.argv[1]):
    breaker = fuseline.get_breaker("openai", trip=[{"rule": "consecutive", "failures": 2}], cooldown=60)
    print(breaker.state, 50 < breaker.retry_after <= 66)
"""
    told = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "state.db")], capture_output=True, text=True, timeout=30
    )
    assert told.stdout == "open True\n", told.stderr


def test_a_file_that_cannot_be_used_is_told(registry, tmp_path):
    with pytest.raises(OSError, match="state is .*nowhere"):
        fuseline.keep(state=tmp_path / "nowhere" / "state.db", registry=registry)
    with pytest.raises(ValueError):
        fuseline.keep(fleet="http://localhost", registry=registry)
    with pytest.raises(OSError):
        fuseline.keep(fleet="rediss://localhost", ca_file=tmp_path / "nowhere.pem", registry=registry)
    (tmp_path / "empty.pem").write_text("no certificate")
    with pytest.raises(ValueError, match="empty.pem, must hold certificates in PEM") as refused:
        fuseline.keep(fleet="rediss://me:secret@localhost", ca_file=tmp_path / "empty.pem", registry=registry)
    assert "secret" not in str(refused.value)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forks_end_and_begin_its_threads(registry, tmp_path):
    with fuseline.keep(state=tmp_path / "state.db", registry=registry) as keeper:
        breaker = open_one(registry)
        assert in_child(lambda: breaker.state == "open" and keeper.close() is None)
    again = fuseline.Registry()
    with fuseline.keep(state=tmp_path / "state.db", registry=again):
        assert again.find_breaker("openai").state == "open"


@pytest.fixture
def redis(tmp_path):
    """A Redis of the test's own, reached by a port that was free."""
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)],
        stdout=subprocess.DEVNULL,
        env=os.environ | {"PATH": os.environ["PATH"] + ":/usr/bin"},
    )
    yield f"redis://127.0.0.1:{port}"
    server.terminate()
    server.wait(10)


def test_replicas_open_together_on_the_providers_own_word(redis):
    registries = [fuseline.Registry() for _ in range(3)]
    keepers = [fuseline.keep(fleet=redis, registry=registry) for registry in registries]
    try:
        for registry in registries:
            registry.get_breaker("openai", **RULES)
        until(lambda: all(keeper.health() == fuseline.FleetHealth(False, 3) for keeper in keepers))
        first = registries[0].get_breaker("openai")
        first.acquire().failure("rate_limit", retry_after=300, open_now=True)
        until(lambda: all(registry.find_breaker("openai").state == "open" for registry in registries), 2)
        learned = registries[2].get_breaker("openai")
        assert 250 < learned.retry_after <= 330
    finally:
        for keeper in keepers:
            keeper.close()


def test_a_gateway_is_a_replica_like_any_other(redis, registry, provider, tmp_path):
    """Two failures here and two there are the four that open both."""
    provider.answer(Reply(status=503))
    gateway = Gateway(
        tmp_path,
        f"""
        fleet = "{redis}"

        [providers.primary]
        protocol = "openai"
        base_url = "{provider.url}/v1"
        api_key = "key"

        [[routes]]
        model = "*"
        targets = [{{ provider = "primary" }}]
        retries = 0

        [breaker]
        trip = [{{ rule = "consecutive", failures = 4 }}]
        cooldown = "60s"
        """,
    )
    rules = {"trip": [{"rule": "consecutive", "failures": 4}], "cooldown": 60}
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="key", max_retries=0)
    try:
        with fuseline.keep(fleet=redis, registry=registry) as keeper:
            breaker = registry.get_breaker("primary", model=MODEL, **rules)
            until(lambda: keeper.health().replicas == 2)
            for _ in range(2):
                breaker.acquire().failure("server_error")
                with pytest.raises(openai.InternalServerError):
                    client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Why?"}])
            until(lambda: breaker.state == "open")
            until(gateway.opened)
        assert breaker.snapshot().why.why.cause == "fleet"
        assert gateway.the_broken()["state"] == "open"
        assert provider.hits == 2
    finally:
        assert gateway.stop() == 0


def test_without_redis_each_decides_by_itself(registry):
    with fuseline.keep(fleet="redis://127.0.0.1:9", registry=registry) as keeper:
        open_one(registry)
        assert keeper.health().is_degraded
