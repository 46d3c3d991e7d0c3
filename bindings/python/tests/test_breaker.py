"""One breaker: every way to make a call, by every way that it can end."""

import asyncio
import contextlib
import functools
import inspect
import pickle

import pytest

import fuseline


class Own(Exception):
    """An exception that no rule knows."""


def fail(error):
    raise error


def blocking(breaker, error):
    return lambda: breaker.call(fail, error)


def decorated(breaker, error):
    return breaker(functools.partial(fail, error))


def block(breaker, error):
    def call():
        with breaker:
            raise error

    return call


def coroutine(breaker, error):
    @breaker
    async def call():
        raise error

    return lambda: asyncio.run(call())


def coroutine_by_call(breaker, error):
    async def call():
        raise error

    return lambda: asyncio.run(breaker.call(call))


def async_block(breaker, error):
    async def call():
        async with breaker:
            raise error

    return lambda: asyncio.run(call())


def generator(breaker, error):
    @breaker
    def items():
        yield 1
        raise error

    return lambda: list(items())


def generator_by_call(breaker, error):
    def items():
        yield 1
        raise error

    return lambda: list(breaker.call(items))


def async_generator(breaker, error):
    @breaker
    async def items():
        yield 1
        raise error

    async def read():
        return [item async for item in items()]

    return lambda: asyncio.run(read())


def async_generator_by_call(breaker, error):
    async def items():
        yield 1
        raise error

    async def read():
        return [item async for item in breaker.call(items)]

    return lambda: asyncio.run(read())


WAYS = [
    blocking,
    decorated,
    block,
    coroutine,
    coroutine_by_call,
    async_block,
    generator,
    generator_by_call,
    async_generator,
    async_generator_by_call,
]


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def way(request):
    return request.param


def test_what_is_raised_comes_out_and_counts_by_its_kind(way, breaker):
    error = ConnectionResetError("gone")
    with pytest.raises(ConnectionResetError) as raised:
        way(breaker, error)()
    assert raised.value is error
    assert breaker.snapshot().kinds == {"network": 1}


def test_what_no_rule_knows_says_nothing(way, breaker):
    breaker.acquire().failure("timeout")
    with pytest.raises(Own):
        way(breaker, Own())()
    assert breaker.snapshot().run == 1, "neither a failure nor a success"


def test_own_failures_count_and_ignored_ones_do_not(way, make):
    breaker = make(failures=(Own, OSError), ignore=ConnectionResetError)
    for error in (Own(), ConnectionResetError(), KeyError()):
        with pytest.raises(type(error)):
            way(breaker, error)()
    assert breaker.snapshot().kinds == {"server_error": 1}


@pytest.mark.parametrize("leaving", [asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit])
def test_who_leaves_says_nothing(leaving, make):
    breaker = make(failures=Exception)
    breaker.acquire().failure("timeout")
    for enter in (blocking, decorated, block):
        with pytest.raises(leaving):
            enter(breaker, leaving())()
    assert breaker.snapshot().run == 1


def test_an_open_breaker_calls_nobody(way, breaker):
    breaker.force_open()
    error = AssertionError("never raised")
    with pytest.raises(fuseline.CircuitOpenError) as refused:
        way(breaker, error)()
    told = refused.value
    assert (told.name, told.scope, told.reason, told.retry_after) == ("openai", "provider", "forced", 60.0)
    assert str(told) == "circuit `openai` is forced open, retry in 60 s"
    assert breaker.snapshot().rejected["forced"] == 1


def test_a_success_ends_the_run(breaker):
    async def awaited():
        return 5

    def listed():
        yield 5

    ways = [
        lambda: breaker.call(lambda *args, **kwargs: (args, kwargs), 1, b=2),
        lambda: breaker(lambda: 5)(),
        lambda: asyncio.run(breaker(awaited)()),
        lambda: asyncio.run(breaker.call(awaited)),
        lambda: list(breaker(listed)()),
        lambda: list(breaker.call(listed)),
    ]
    expected = [((1,), {"b": 2}), 5, 5, 5, [5], [5]]
    for way, result in zip(ways, expected):
        breaker.acquire().failure("timeout")
        assert way() == result
        assert breaker.snapshot().run == 0


def test_decorated_functions_stay_what_they_are(breaker):
    @breaker
    async def awaited(): ...

    @breaker
    async def streamed():
        yield

    @breaker
    def listed():
        yield

    class Client:
        @breaker
        def ask(self, question):
            """Asks."""
            return self, question

    assert inspect.iscoroutinefunction(awaited)
    assert inspect.isasyncgenfunction(streamed)
    assert inspect.isgeneratorfunction(listed)
    client = Client()
    assert client.ask("Why?") == (client, "Why?")
    assert (Client.ask.__name__, Client.ask.__doc__) == ("ask", "Asks.")


def test_a_coroutine_that_nobody_awaits_gives_its_permit_back(make):
    breaker = make(max_in_flight=1)

    async def awaited():
        pass

    begun = breaker.call(awaited)
    assert breaker.snapshot().in_flight == 1
    with pytest.warns(RuntimeWarning, match="never awaited"):
        begun.close()
        del begun
    assert breaker.snapshot().in_flight == 0


def test_a_block_can_settle_its_permit_itself(breaker):
    with breaker as call:
        assert call.failure("empty_response")
        assert not call.success(), "it settles once"
    assert breaker.snapshot().kinds == {"empty_response": 1}


def test_blocks_within_blocks_settle_their_own(make):
    breaker = make(max_in_flight=5)
    with contextlib.suppress(ConnectionError), breaker:
        with breaker:
            pass
        raise ConnectionError
    seen = breaker.snapshot()
    assert (seen.run, seen.in_flight) == (1, 0)


def test_blocks_of_generators_that_take_turns_settle_their_own(make, clock):
    breaker = make(trip=[{"rule": "consecutive", "failures": 1}], max_in_flight=9)

    def held():
        with breaker as call:
            yield call

    first, second = held(), held()
    calls = next(first), next(second)
    first.close()
    assert [call.is_settled for call in calls] == [True, False]
    second.close()
    assert breaker.snapshot().in_flight == 0


def test_blocks_of_tasks_settle_their_own(breaker):
    async def held(until):
        async with breaker as call:
            await until.wait()
        return call

    async def both():
        gates = asyncio.Event(), asyncio.Event()
        tasks = [asyncio.create_task(held(gate)) for gate in gates]
        await asyncio.sleep(0)
        gates[0].set()
        call = await tasks[0]
        assert call.is_settled
        gates[1].set()
        assert (await tasks[1]).is_settled

    asyncio.run(both())


def test_stacks_may_enter(make):
    breaker = make(max_in_flight=9, trip=[{"rule": "consecutive", "failures": 5}])
    with contextlib.suppress(ConnectionError), contextlib.ExitStack() as stack:
        stack.enter_context(breaker)
        stack.enter_context(breaker.acquire())
        assert breaker.snapshot().in_flight == 2
        raise ConnectionError
    seen = breaker.snapshot()
    assert (seen.in_flight, seen.run) == (0, 2)


def test_timeouts_around_a_block_say_nothing_and_within_it_count(breaker):
    async def around():
        async with asyncio.timeout(0.01), breaker:
            await asyncio.sleep(10)

    async def within():
        async with breaker, asyncio.timeout(0.01):
            await asyncio.sleep(10)

    for times, call in enumerate((around, within)):
        with pytest.raises(TimeoutError):
            asyncio.run(call())
        assert breaker.snapshot().kinds == ({"timeout": 1} if times else {})


def test_several_event_loops_share_one_breaker(breaker):
    @breaker
    async def ask():
        await asyncio.sleep(0)
        raise ConnectionError

    for expected in ("closed", "open"):
        with pytest.raises(ConnectionError):
            asyncio.run(ask())
        assert breaker.state == expected


def test_report_1_a_crowd_at_the_end_of_a_cooldown_is_one_probe(breaker, clock):
    for _ in range(2):
        breaker.acquire().failure("server_error")
    clock.advance(10)
    probe = breaker.acquire()
    assert probe.is_probe
    for _ in range(50):
        with pytest.raises(fuseline.CircuitOpenError) as refused:
            breaker.acquire()
        assert (refused.value.reason, refused.value.retry_after) == ("probing", 1.0)
    assert probe.success()
    assert breaker.state == "half_open"


def test_a_dropped_probe_frees_its_slot(breaker, clock):
    for _ in range(2):
        breaker.acquire().failure("server_error")
    clock.advance(10)
    probe = breaker.acquire()
    assert not breaker.is_available()
    del probe
    assert breaker.is_available()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_judge_that_fails_harms_nobody(make):
    class Odd(type):
        def __instancecheck__(cls, other):
            raise RuntimeError("no")

    class Type(Exception, metaclass=Odd):
        pass

    breaker = make(failures=Type)
    with pytest.raises(ConnectionError):
        breaker.call(fail, ConnectionError())
    assert breaker.snapshot().run == 0


def test_refusals_can_be_pickled_and_are_of_one_family(breaker):
    breaker.force_open("90s")
    with pytest.raises(fuseline.FuselineError) as refused:
        breaker.acquire()
    again = pickle.loads(pickle.dumps(refused.value))
    assert (str(again), again.retry_after) == (str(refused.value), 90.0)


def test_operators_have_their_way(breaker, clock):
    breaker.force_closed(5)
    for _ in range(3):
        breaker.acquire().failure("timeout")
    assert (breaker.state, breaker.snapshot().late) == ("forced_closed", 3)
    clock.advance(5)
    assert breaker.state == "closed"
    breaker.force_open("1h")
    assert (breaker.state, breaker.is_available(), breaker.retry_after) == ("forced_open", False, 3600.0)
    breaker.release()
    assert (breaker.state, breaker.retry_after) == ("closed", None)
    breaker.reconfigure(trip=[{"rule": "consecutive", "failures": 1}], cooldown=3)
    breaker.acquire().failure("timeout")
    assert breaker.state == "open"
    breaker.reset()
    assert breaker.state == "closed"


def test_what_there_is_to_see(breaker, clock):
    clock.advance(1.5)
    for _ in range(2):
        breaker.acquire().failure("server_error", code=503)
    seen = breaker.snapshot()
    assert (seen.name, seen.scope, seen.state, seen.since, seen.retry_after) == ("openai", "provider", "open", 1.5, 10.0)
    assert seen.last_failures == (
        fuseline.FailureNote(at=1.5, kind="server_error", code=503),
        fuseline.FailureNote(at=1.5, kind="server_error", code=503),
    )
    assert seen.rules[0].rule == "consecutive"
    states = [(change.from_state, change.to_state, change.why.cause) for change in breaker.history()]
    assert states[-1][1:] == ("open", "consecutive")
    assert seen.why == breaker.history()[-1]
    assert breaker.history(after=seen.why.number) == []
    assert repr(breaker) == "<Breaker 'openai': open>"


def test_models_have_names_of_their_own(make):
    breaker = make("openai", model="gpt-5")
    assert (breaker.name, breaker.scope) == ("openai/gpt-5", "model")


def test_shadow_says_what_it_would_do(make):
    breaker = make(mode="shadow")
    for _ in range(2):
        breaker.acquire().failure("timeout")
    assert breaker.acquire().would_reject == "open"
