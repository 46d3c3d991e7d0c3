"""An outage from its first failure to the recovery: the primary is left alone, the spare answers, probes come one by one."""

import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
from conftest import FROM_PRIMARY, FROM_SPARE
from gateway import until
from provider import Reply

THRESHOLD = 5
CALLERS = 50
SHORT = 'cooldown = "400ms"\nbackoff = 1.0'
LONG = 'cooldown = "60s"'


def open_the_primary(dialect, client, primary, stream=False):
    """Calls until the breaker has opened: each failure is seen by the primary and answered by the spare."""
    primary.answer(Reply(status=503))
    for _ in range(THRESHOLD):
        assert dialect.ask(client, stream=stream) == expected(FROM_SPARE, stream)


def expected(text, stream):
    return "so so so so " + text if stream else text


def test_an_outage_opens_at_the_threshold_and_the_spare_answers(serve, dialect, primary, spare, stream):
    gateway = serve(primary.url, spare.url, breaker=LONG)
    client = dialect.client(gateway.url)
    assert dialect.ask(client, stream=stream) == expected(FROM_PRIMARY, stream)
    healthy = primary.hits
    assert gateway.opened() == 0

    open_the_primary(dialect, client, primary, stream)
    assert primary.hits == healthy + THRESHOLD
    assert gateway.opened() == 1
    assert gateway.the_broken()["state"] == "open"

    for _ in range(40):
        assert dialect.ask(client, stream=stream) == expected(FROM_SPARE, stream)
    assert primary.hits == healthy + THRESHOLD, "nothing is sent to an open primary"
    assert gateway.opened() == 1


def test_one_failure_below_the_threshold_opens_nothing(serve, dialect, primary, spare):
    gateway = serve(primary.url, spare.url, breaker=LONG)
    client = dialect.client(gateway.url)
    primary.answer(*[Reply(status=503)] * (THRESHOLD - 1), Reply(text=FROM_PRIMARY))
    for _ in range(THRESHOLD - 1):
        assert dialect.ask(client) == FROM_SPARE
    assert dialect.ask(client) == FROM_PRIMARY
    assert gateway.opened() == 0


def test_a_refused_connection_opens_too(serve, dialect, closed_port, spare):
    gateway = serve(closed_port, spare.url, breaker=LONG)
    client = dialect.client(gateway.url)
    for _ in range(THRESHOLD + 10):
        assert dialect.ask(client) == FROM_SPARE
    assert gateway.opened() == 1
    assert gateway.the_broken()["state"] == "open"


def test_an_open_primary_adds_next_to_nothing_to_a_call(serve, dialect, primary, spare, measured):
    gateway = serve(primary.url, spare.url, breaker=LONG)
    through, direct = dialect.client(gateway.url), dialect.client(spare.url)
    open_the_primary(dialect, through, primary)

    def timed(client):
        start = time.perf_counter()
        assert dialect.ask(client) == FROM_SPARE
        return (time.perf_counter() - start) * 1000

    pairs = [(timed(direct), timed(through)) for _ in range(200)]
    straight, guarded = (statistics.median(side) for side in zip(*pairs))
    measured(
        f"{dialect.name}: a call to the spare takes {straight:.2f} ms, through an open primary {guarded:.2f} ms "
        f"({guarded - straight:+.2f} ms; medians of {len(pairs)})"
    )
    assert guarded - straight < 100


def test_a_crowd_at_the_end_of_the_cooldown_is_one_probe(serve, dialect, primary, spare, stream):
    gateway = serve(primary.url, spare.url, breaker=SHORT)
    client = dialect.client(gateway.url)
    open_the_primary(dialect, client, primary, stream)
    gateway.wait_for_end_of_cooldown()

    gate = threading.Event()
    primary.answer(Reply(text=FROM_PRIMARY, gate=gate))
    before = primary.hits
    line_up = threading.Barrier(CALLERS)

    def call():
        line_up.wait()
        return dialect.ask(client, stream=stream)

    with ThreadPoolExecutor(CALLERS) as crowd:
        calls = [crowd.submit(call) for _ in range(CALLERS)]
        until(lambda: sum(call.done() for call in calls) == CALLERS - 1, "all but the probe are answered")
        assert primary.hits == before + 1, "one probe"
        assert gateway.the_broken()["state"] == "half_open"
        gate.set()
        wait(calls)
    answers = [call.result() for call in calls]
    assert answers.count(expected(FROM_SPARE, stream)) == CALLERS - 1
    assert answers.count(expected(FROM_PRIMARY, stream)) == 1

    assert gateway.the_broken()["state"] == "half_open", "one good probe is not enough"
    assert dialect.ask(client, stream=stream) == expected(FROM_PRIMARY, stream)
    assert gateway.all_closed(), "the second closes"
    assert primary.hits == before + 2
    assert gateway.opened() == 1
    assert gateway.metric("breaker_half_open_total") == 1
    assert gateway.metric("breaker_closed_total") == 1


def test_a_failed_probe_opens_again(serve, dialect, primary, spare):
    gateway = serve(primary.url, spare.url, breaker=SHORT)
    client = dialect.client(gateway.url)
    open_the_primary(dialect, client, primary)
    gateway.wait_for_end_of_cooldown()
    before = primary.hits

    assert dialect.ask(client) == FROM_SPARE, "a failed probe is answered by the spare as well"
    assert primary.hits == before + 1
    assert gateway.opened() == 2
    assert gateway.the_broken()["state"] == "open"
    gateway.wait_for_end_of_cooldown()

    primary.answer(Reply(text=FROM_PRIMARY))
    for _ in range(2):
        assert dialect.ask(client) == FROM_PRIMARY
    assert gateway.all_closed()


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_callers_own_mistake_as_a_probe_decides_nothing(serve, dialect, primary, spare, status):
    gateway = serve(primary.url, spare.url, breaker=SHORT)
    client = dialect.client(gateway.url)
    open_the_primary(dialect, client, primary)
    gateway.wait_for_end_of_cooldown()
    primary.answer(Reply(status=status), Reply(text=FROM_PRIMARY))
    with pytest.raises(dialect.errors[status]):
        dialect.ask(client)
    assert gateway.the_broken()["state"] == "half_open"
    assert dialect.ask(client) == FROM_PRIMARY, "the slot was free again at once"
