"""Breakers by name, and what happened to them."""

import threading

import pytest

import fuseline


@pytest.fixture
def registry(clock):
    return fuseline.Registry(clock=clock)


def test_one_name_is_one_breaker(registry):
    registry.get_breaker("openai", cooldown="20s").force_open()
    assert registry.get_breaker("openai", cooldown="20s").state == "forced_open"
    assert registry.get_breaker("openai").state == "forced_open", "nothing but its name is given"
    assert registry.find_breaker("openai").state == "forced_open"
    assert [breaker.name for breaker in registry.breakers()] == ["openai"]


def test_a_model_is_another_than_its_provider(registry):
    registry.get_breaker("openai", model="gpt-5").force_open()
    assert registry.get_breaker("openai").state == "closed"
    assert registry.find_breaker("openai", model="gpt-5").name == "openai/gpt-5"
    assert [seen.name for seen in registry.snapshots()] == ["openai", "openai/gpt-5"]


@pytest.mark.parametrize(
    "other", [{"cooldown": 30}, {"failures": KeyError}, {"ignore": KeyError}, {"timeouts": {"stall": 1}}]
)
def test_the_same_name_with_other_settings_is_refused(registry, other):
    registry.get_breaker("openai", cooldown=20)
    with pytest.raises(fuseline.RegistryError, match="`openai` exists with other") as refused:
        registry.get_breaker("openai", **({"cooldown": 20} | other))
    assert refused.value.is_taken


def test_failures_go_with_the_name(registry):
    registry.get_breaker("openai", failures=KeyError)
    with pytest.raises(KeyError):
        registry.get_breaker("openai").call({}.__getitem__, "text")
    assert registry.find_breaker("openai").snapshot().run == 1


def test_it_is_bounded_and_lets_idle_ones_go(clock):
    registry = fuseline.Registry(max_breakers=3, clock=clock)
    registry.get_breaker("open").force_open()
    for number in range(50):
        registry.get_breaker(f"idle {number}")
    assert len(registry.breakers()) == 3
    assert registry.find_breaker("open") is not None, "an open one never leaves"
    assert len(registry._known) <= 2 * 3 + 1
    held = [registry.get_breaker("held"), registry.get_breaker("held too")]
    with pytest.raises(fuseline.RegistryError, match="no room for breaker `another`: all 3"):
        registry.get_breaker("another")
    assert len(held) == 2


def test_removed_ones_are_forgotten(registry):
    registry.get_breaker("openai", cooldown=20)
    registry.remove("openai")
    assert registry.find_breaker("openai") is None
    assert registry.get_breaker("openai", cooldown=30).state == "closed"


def test_events_are_read_once_and_in_order(registry, clock):
    events = registry.events()
    registry.get_breaker("a").force_open(10)
    clock.advance(1)
    registry.get_breaker("b").force_open()
    clock.advance(9)
    registry.get_breaker("a").acquire().success()
    seen = [(event.name, event.transition.to_state, event.missed) for event in events.drain()]
    assert seen == [("a", "forced_open", 0), ("b", "forced_open", 0), ("a", "closed", 0)]
    assert events.drain() == []


def test_events_that_were_missed_are_counted(registry):
    events = registry.events()
    breaker = registry.get_breaker("a")
    for _ in range(20):
        breaker.force_open()
        breaker.release()
    drained = events.drain()
    assert (len(drained), drained[0].missed) == (20, 20)


def test_many_threads_get_one_breaker():
    start = threading.Barrier(8)

    def ask():
        start.wait()
        for _ in range(50):
            fuseline.get_breaker("crowd", cooldown=20, max_in_flight=500).acquire().failure("bad_request")
            with fuseline.get_breaker("crowd"):
                pass

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fuseline.find_breaker("crowd").snapshot().in_flight == 0
