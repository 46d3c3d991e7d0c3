"""Chains: fallback, waiting, budget and the last good answers."""

import asyncio
import time

import pytest

import fuseline


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def ask(request):
    """Makes one call along a chain, whose targets are functions of no arguments."""

    def call(chain, **given):
        if not request.param:
            return chain.answer(lambda target: target(), **given)

        async def function(target):
            await asyncio.sleep(0)
            return target()

        async def run():
            return await chain.answer(function, **given)

        return asyncio.run(run())

    return call


def raising(error):
    def target():
        raise error

    return target


@pytest.fixture
def two(make):
    return [make("large"), make("small")]


def test_the_first_that_comes_through_answers(two, ask):
    chain = fuseline.Chain(zip(two, [lambda: "large", lambda: "small"]))
    assert ask(chain) == fuseline.Answer("large", "large", None)


def test_a_failure_goes_on_to_the_next(two, ask):
    chain = fuseline.Chain(zip(two, [raising(ConnectionError()), lambda: "small"]))
    assert ask(chain).value == "small"
    assert (two[0].snapshot().run, two[1].snapshot().run) == (1, 0)


def test_an_open_one_is_passed_over(two, ask):
    two[0].force_open()
    chain = fuseline.Chain(zip(two, [raising(AssertionError()), lambda: "small"]))
    assert ask(chain).breaker == "small"
    assert chain.is_available()


@pytest.mark.parametrize("error", [KeyError("bug"), fuseline.StreamError("no", "stream_error", "content_policy")])
def test_what_another_would_do_no_better_is_raised(two, ask, error):
    chain = fuseline.Chain(zip(two, [raising(error), raising(AssertionError())]))
    with pytest.raises(type(error)):
        ask(chain)


def test_the_last_failure_is_raised(two, ask):
    chain = fuseline.Chain(zip(two, [raising(ConnectionError("first")), raising(TimeoutError("last"))]))
    with pytest.raises(TimeoutError, match="last"):
        ask(chain)


def test_where_all_refuse_the_shortest_wait_is_told(two, ask):
    two[0].force_open(30)
    two[1].force_open(20)
    chain = fuseline.Chain(zip(two, [raising(AssertionError())] * 2))
    with pytest.raises(fuseline.CircuitOpenError) as refused:
        ask(chain)
    assert (refused.value.name, refused.value.retry_after) == ("small", 20.0)
    assert not chain.is_available()


def test_it_waits_for_the_first_that_may_let_calls_through(ask):
    breaker = fuseline.Breaker("openai")
    breaker.force_open(0.05)
    chain = fuseline.Chain([(breaker, lambda: "at last")], max_wait=5)
    assert ask(chain).value == "at last"
    breaker.force_open(50)
    began = time.monotonic()
    with pytest.raises(fuseline.CircuitOpenError):
        ask(chain)
    assert time.monotonic() - began < 2, "a wait that would be longer is not begun"


def test_no_further_target_is_tried_beyond_the_budget(two, ask):
    def slow():
        time.sleep(0.05)
        raise ConnectionError("slow")

    chain = fuseline.Chain(zip(two, [slow, raising(AssertionError())]), budget=0.02)
    with pytest.raises((ConnectionError, TimeoutError)):
        ask(chain)
    assert two[1].snapshot().run == 0


def test_a_coroutine_is_cancelled_by_the_budget(two):
    async def silent(_):
        await asyncio.sleep(60)

    async def run():
        return await fuseline.Chain(zip(two, "ab"), budget=0.02).call(silent)

    two[0].acquire().failure("timeout")
    with pytest.raises(TimeoutError):
        asyncio.run(run())
    assert two[0].snapshot().run == 1, "it had next to no time"


def test_the_last_good_answer_is_given_where_the_budget_is_spent(two):
    chain = fuseline.Chain(zip(two, "ab"), budget=0.02, cache=fuseline.Cache())

    async def good(target):
        return target

    async def silent(_):
        await asyncio.sleep(60)

    async def run():
        await chain.call(good, key="user: why?")
        return await chain.answer(silent, key="user: why?")

    answer = asyncio.run(run())
    assert (answer.value, answer.breaker) == ("a", None)


def test_the_last_good_answer_is_given_to_the_same_request(two, ask):
    came = ["good"]
    chain = fuseline.Chain(
        zip(two, [lambda: came[0] if came else raising(ConnectionError())(), raising(ConnectionError())]),
        cache=fuseline.Cache(ttl=60),
    )
    assert ask(chain, key=("user", "Why?")).age is None
    came.clear()
    answer = ask(chain, key=("user", "Why?"))
    assert (answer.value, answer.breaker) == ("good", None)
    assert 0 <= answer.age < 10
    with pytest.raises(ConnectionError):
        ask(chain, key=("another", "Why?"))
    for breaker in two:
        breaker.reset()
    with pytest.raises(ConnectionError):
        ask(chain)


def test_call_gives_the_value_alone(two):
    chain = fuseline.Chain(zip(two, [lambda: 1, lambda: 2]))
    assert chain.call(lambda target: target()) == 1

    async def function(target):
        return target()

    async def run():
        return await chain.call(function)

    assert asyncio.run(run()) == 1


def test_who_leaves_ends_the_call(two):
    tried = []

    async def function(target):
        tried.append(target)
        await asyncio.sleep(60)

    async def run():
        task = asyncio.create_task(fuseline.Chain(zip(two, "ab")).call(function))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert tried == ["a"]


def test_a_stream_settles_its_target_at_its_end(two):
    def items():
        yield 1
        raise ConnectionError

    answer = fuseline.Chain(zip(two, [items, items])).answer(lambda target: target())
    assert answer.breaker == "large"
    with pytest.raises(ConnectionError):
        list(answer.value)
    assert two[0].snapshot().kinds == {"network": 1}


def test_a_coroutine_of_a_plain_function_is_refused(two):
    async def silent():
        pass

    with pytest.raises(TypeError, match="function gave a coroutine, must be a coroutine function"):
        fuseline.Chain(zip(two, [silent, silent])).call(lambda target: target())
    assert two[0].snapshot().run == 0


def test_names_are_those_of_the_process():
    chain = fuseline.Chain([("chain test", "target")])
    fuseline.get_breaker("chain test").force_open()
    assert not chain.is_available()


def test_a_chain_of_nothing_is_refused():
    with pytest.raises(ValueError, match="targets is empty"):
        fuseline.Chain([])


def test_the_cache_is_bounded_by_bytes_and_age():
    cache = fuseline.Cache(ttl=60, max_bytes=100, size=lambda key, value: len(value))
    for number in range(10):
        cache.keep(number, "x" * 30)
    assert len(cache) == 3
    assert cache.recall(6) is None and cache.recall(9)[0] == "x" * 30
    cache.keep(9, "y" * 101)
    assert cache.recall(9) is None, "what is larger than all the room is not kept, nor what was there before"
    cache = fuseline.Cache(ttl=0)
    cache.keep("a", "b")
    time.sleep(0.001)
    assert cache.recall("a") is None and len(cache) == 0
