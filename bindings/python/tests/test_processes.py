"""Threads, forks, and what a long run leaves behind."""

import gc
import os
import resource
import sys
import threading
import time

import pytest

import fuseline

THREADS = 8


def crowd(breaker, calls):
    """Eight threads that make so many calls each, every fourth of which fails."""
    start = threading.Barrier(THREADS)

    def work():
        def fine():
            return 1

        def down():
            raise ConnectionError

        start.wait()
        for number in range(calls):
            if number % 4:
                breaker.call(fine)
            else:
                try:
                    breaker.call(down)
                except ConnectionError:
                    pass

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    switches = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # as often as can be
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(switches)


def counted():
    """A breaker that never opens, and counts every call of its window."""
    rules = [{"rule": "rate", "threshold": 1.0, "window": "1h", "min_calls": 1_000_000_000}]
    return fuseline.Breaker("crowd", trip=rules)


@pytest.mark.parametrize("calls", [5_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_threads_lose_no_count(calls):
    breaker = counted()
    crowd(breaker, calls)
    (rule,) = breaker.snapshot().rules
    assert (rule.calls, rule.hits) == (THREADS * calls, THREADS * calls // 4)


def resident():
    """Bytes that this process holds."""
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize("calls", [40_000, pytest.param(10_000_000, marks=pytest.mark.long)])
def test_memory_does_not_grow(calls):
    breaker = counted()

    def fine():
        return 1

    def down():
        raise ConnectionError

    def some(times):
        for _ in range(times // 20):
            for _ in range(16):
                breaker.call(fine)
            with breaker:
                pass
            breaker.acquire()
            for call in (down, fine):
                try:
                    breaker.call(call)
                except ConnectionError:
                    pass

    some(20_000)
    gc.collect()
    before, objects = resident(), len(gc.get_objects())
    some(calls)
    gc.collect()
    assert resident() - before < 2 << 20
    assert len(gc.get_objects()) - objects < 100


def in_child(work):
    """Runs a function in a forked child; whether it was true, within ten seconds."""
    child = os.fork()
    if child == 0:
        os._exit(0 if work() else 1)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_in_the_middle_of_a_crowd_harms_neither():
    breaker = counted()
    stop = threading.Event()

    def work():
        while not stop.is_set():
            with breaker:
                pass
            breaker.snapshot()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()

    def child():
        before = breaker.snapshot().rules[0].calls
        for _ in range(1000):
            breaker.call(int)
        return breaker.snapshot().rules[0].calls >= before + 1000

    try:
        assert all(in_child(child) for _ in range(10))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert breaker.state == "closed"


def test_a_childs_breaker_is_its_own(make):
    breaker = make()

    def child():
        for _ in range(2):
            breaker.acquire().failure("timeout")
        return breaker.state == "open"

    assert in_child(child)
    assert breaker.state == "closed"


def test_what_is_dropped_is_freed(make):
    import weakref

    breaker = make()
    held = weakref.ref(breaker)
    wrapped = breaker(print)
    with breaker:
        pass
    del breaker
    assert held() is not None, "its functions hold it"
    del wrapped
    assert held() is None, "without a collection of garbage"
