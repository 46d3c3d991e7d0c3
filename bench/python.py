"""What a breaker costs a call in Python: Fuseline beside pybreaker and aiobreaker, in one process, by turns.

Run by `bench/run python`, which builds the wheel in release and installs it.
"""

import asyncio
import gc
import statistics
import time
from datetime import timedelta

import aiobreaker
import pybreaker

import fuseline

ROUNDS = 15
CALLS = 20_000
NEVER = 10**9
RULES = [
    {"rule": "consecutive", "failures": NEVER},
    {"rule": "rate", "threshold": 1.0, "window": "60s", "min_calls": 1_000_000_000},
]


class Down(Exception):
    """What a failing call raises."""


def fine():
    return 1


def down():
    raise Down


async def fine_async():
    return 1


async def down_async():
    raise Down


def loop(call):
    for _ in range(CALLS):
        call()


def loop_raising(call, error):
    for _ in range(CALLS):
        try:
            call()
        except error:
            pass


async def loop_async(call):
    for _ in range(CALLS):
        await call()


async def loop_raising_async(call, error):
    for _ in range(CALLS):
        try:
            await call()
        except error:
            pass


def block(breaker):
    def call():
        with breaker:
            return 1

    return call


def async_block(breaker):
    async def call():
        async with breaker:
            return 1

    return call


def opened(breaker):
    breaker.force_open()
    return breaker


def rows():
    """By name: the measured function, and the row whose cost is its floor."""
    ours = fuseline.Breaker("bench", trip=RULES, failures=Exception)
    ours_open = opened(fuseline.Breaker("open", trip=RULES))
    theirs = pybreaker.CircuitBreaker(fail_max=NEVER)
    theirs_open = pybreaker.CircuitBreaker()
    theirs_open.open()
    async_theirs = aiobreaker.CircuitBreaker(fail_max=NEVER)
    async_open = aiobreaker.CircuitBreaker(timeout_duration=timedelta(hours=1))
    async_open.open()
    refused, theirs_refused = fuseline.CircuitOpenError, pybreaker.CircuitBreakerError
    run = asyncio.run
    return {
        "no breaker": (lambda: loop(fine), None),
        "fuseline, call": (lambda: loop(lambda: ours.call(fine)), "no breaker, through a lambda"),
        "no breaker, through a lambda": (lambda: loop(lambda: fine()), None),
        "fuseline, decorated": (lambda: loop(ours(fine)), "no breaker"),
        "fuseline, with": (lambda: loop(block(ours)), "no breaker"),
        "pybreaker, call": (lambda: loop(lambda: theirs.call(fine)), "no breaker, through a lambda"),
        "pybreaker, decorated": (lambda: loop(theirs(fine)), "no breaker"),
        "no breaker, async": (lambda: run(loop_async(fine_async)), None),
        "fuseline, async decorated": (lambda: run(loop_async(ours(fine_async))), "no breaker, async"),
        "fuseline, async with": (lambda: run(loop_async(async_block(ours))), "no breaker, async"),
        "aiobreaker, async decorated": (lambda: run(loop_async(async_theirs(fine_async))), "no breaker, async"),
        "no breaker, raising": (lambda: loop_raising(down, Down), None),
        "fuseline, raising": (lambda: loop_raising(ours(down), Down), "no breaker, raising"),
        "pybreaker, raising": (lambda: loop_raising(theirs(down), Down), "no breaker, raising"),
        "no breaker, async raising": (lambda: run(loop_raising_async(down_async, Down)), None),
        "fuseline, async raising": (lambda: run(loop_raising_async(ours(down_async), Down)), "no breaker, async raising"),
        "aiobreaker, async raising": (
            lambda: run(loop_raising_async(async_theirs(down_async), Down)),
            "no breaker, async raising",
        ),
        "fuseline, refused": (lambda: loop_raising(ours_open(fine), refused), None),
        "pybreaker, refused": (lambda: loop_raising(theirs_open(fine), theirs_refused), None),
        "fuseline, async refused": (lambda: run(loop_raising_async(ours_open(fine_async), refused)), None),
        "aiobreaker, async refused": (
            lambda: run(loop_raising_async(async_open(fine_async), aiobreaker.CircuitBreakerError)),
            None,
        ),
    }


RATIOS = [
    ("fuseline, call", "pybreaker, call", 0.25),
    ("fuseline, decorated", "pybreaker, decorated", 0.25),
    ("fuseline, with", "pybreaker, call", None),
    ("fuseline, async decorated", "aiobreaker, async decorated", 0.5),
    ("fuseline, raising", "pybreaker, raising", None),
    ("fuseline, async raising", "aiobreaker, async raising", None),
    ("fuseline, refused", "pybreaker, refused", None),
    ("fuseline, async refused", "aiobreaker, async refused", None),
]


def main():
    measured = rows()
    times = {name: [] for name in measured}
    for _ in range(ROUNDS):
        for name, (work, _) in measured.items():
            gc.collect()
            began = time.process_time()
            work()
            times[name].append((time.process_time() - began) / CALLS * 1e9)
    whole = {name: statistics.median(seen) for name, seen in times.items()}
    own = {name: whole[name] - (whole[floor] if floor else 0) for name, (_, floor) in measured.items()}
    print("| ns a call | whole | of the breaker |\n|---|---:|---:|")
    for name, (_, floor) in measured.items():
        print(f"| {name} | {whole[name]:.0f} | {f'{own[name]:.0f}' if floor else ''} |")
    print("\n| ratio | whole call | of the breaker | aim |\n|---|---:|---:|---:|")
    for ours, theirs, aim in RATIOS:
        alone = f"{own[ours] / own[theirs]:.2f}" if measured[ours][1] else ""
        print(f"| {ours} / {theirs} | {whole[ours] / whole[theirs]:.2f} | {alone} | {aim or ''} |")


if __name__ == "__main__":
    main()
