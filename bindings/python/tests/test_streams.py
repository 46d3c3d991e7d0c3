"""Generators and async generators under a breaker: what passes through them, their limits, and how they end."""

import asyncio
import time

import pytest

import fuseline

SHORT = {"first_token": 0.05, "stall": 0.05}


def sent_and_thrown():
    try:
        got = yield "first"
    except KeyError:
        got = "thrown"
    yield got
    return "done"


def test_values_go_in_and_out_as_ever(breaker):
    items = breaker(sent_and_thrown)()
    assert (next(items), items.send("sent")) == ("first", "sent")
    with pytest.raises(StopIteration) as end:
        next(items)
    assert end.value.value == "done"


def test_exceptions_can_be_thrown_in(breaker):
    items = breaker(sent_and_thrown)()
    next(items)
    assert items.throw(KeyError()) == "thrown"


def test_a_generator_that_is_left_is_closed_and_says_nothing(breaker):
    closed = []

    @breaker
    def items():
        try:
            yield 1
        finally:
            closed.append(True)

    breaker.acquire().failure("timeout")
    begun = items()
    next(begun)
    begun.close()
    assert (closed, breaker.snapshot().run) == ([True], 1)


def test_an_async_generator_passes_all_through_too(breaker):
    @breaker
    async def items():
        try:
            got = yield "first"
        except KeyError:
            got = "thrown"
        yield got

    async def read():
        begun = items()
        assert await anext(begun) == "first"
        assert await begun.asend("sent") == "sent"
        with pytest.raises(StopAsyncIteration):
            await anext(begun)
        begun = items()
        await anext(begun)
        assert await begun.athrow(KeyError()) == "thrown"
        await begun.aclose()

    asyncio.run(read())


def test_an_async_generator_that_is_left_is_closed_and_says_nothing(breaker):
    closed = []

    @breaker
    async def items():
        try:
            yield 1
        finally:
            closed.append(True)

    async def read():
        begun = items()
        await anext(begun)
        await begun.aclose()

    breaker.acquire().failure("timeout")
    asyncio.run(read())
    assert (closed, breaker.snapshot().run) == ([True], 1)


@pytest.mark.parametrize("given", [0, 1])
def test_a_silent_async_generator_is_cut_off(make, given):
    breaker = make(timeouts=SHORT)
    cleaned = []

    @breaker
    async def items():
        try:
            for number in range(given):
                yield number
            await asyncio.sleep(60)
        finally:
            cleaned.append(True)

    async def read():
        return [item async for item in items()]

    began = time.monotonic()
    with pytest.raises(fuseline.StreamError) as silent:
        asyncio.run(read())
    assert time.monotonic() - began < 5
    assert silent.value.ending == ("stream_stall" if given else "stream_silent")
    assert (breaker.snapshot().kinds, cleaned) == ({"stream_stall": 1}, [True])


def test_the_readers_own_time_is_not_the_streams(make):
    breaker = make(timeouts=SHORT)

    @breaker
    async def items():
        yield 1
        yield 2

    @breaker
    def plain():
        yield 1
        yield 2

    async def read():
        async for _ in items():
            await asyncio.sleep(0.1)

    asyncio.run(read())
    for _ in plain():
        time.sleep(0.1)
    assert breaker.snapshot().kinds == {}


def test_an_item_that_comes_too_late_ends_a_generator(make):
    breaker = make(timeouts=SHORT)

    @breaker
    def items():
        yield 1
        time.sleep(0.2)
        yield 2

    begun = items()
    next(begun)
    with pytest.raises(fuseline.StreamError, match=r"no further item for 0.05 s \(limit stall\)"):
        next(begun)
    assert breaker.snapshot().kinds == {"stream_stall": 1}


def test_a_timeout_of_its_own_stays_one(make):
    breaker = make(timeouts={"stall": 5})

    @breaker
    async def items():
        yield 1
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)

    async def read():
        return [item async for item in items()]

    with pytest.raises(TimeoutError):
        asyncio.run(read())
    assert breaker.snapshot().kinds == {"timeout": 1}


def test_a_probe_that_delivers_for_long_enough_has_proved_itself(breaker, clock):
    for _ in range(2):
        breaker.acquire().failure("timeout")
    clock.advance(10)

    @breaker
    def items():
        while True:
            yield 1

    begun = items()
    next(begun)
    clock.advance(4.9)
    next(begun)
    assert breaker.snapshot().good_probes == 0
    clock.advance(0.1)
    next(begun)
    assert breaker.snapshot().good_probes == 1
    begun.close()


def test_items_keep_a_probes_lease(make, clock):
    breaker = make(probe_timeout=10, probe_proof=1000)
    for _ in range(2):
        breaker.acquire().failure("timeout")
    clock.advance(10)

    @breaker
    def items():
        while True:
            yield 1

    begun = items()
    for _ in range(10):
        next(begun)
        clock.advance(9)
    assert breaker.state == "half_open"
    clock.advance(2)
    assert breaker.state == "open", "its lease has ended"
    begun.close()


def test_tasks_that_are_cancelled_say_nothing(breaker):
    @breaker
    async def items():
        yield 1
        await asyncio.sleep(60)

    async def read():
        async def all_of_it():
            return [item async for item in items()]

        task = asyncio.create_task(all_of_it())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    breaker.acquire().failure("timeout")
    asyncio.run(read())
    assert breaker.snapshot().run == 1
