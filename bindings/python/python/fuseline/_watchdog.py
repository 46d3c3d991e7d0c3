"""Interrupts blocking reads of streams whose limit has passed: one thread for all of them."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

_SOONEST = 0.01
# The limit of a stream may have become an earlier one since it was last looked at, and its reader may have come back.
_LATEST = 0.25


class Reading(Protocol):
    """What is being read, now and then."""

    def time_left(self) -> float | None:
        """Seconds until a limit passes; none while nobody waits for more."""


class _Watchdog:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._streams: dict[Reading, Any] = {}
        self._thread: threading.Thread | None = None

    def add(self, reading: Reading, stream: Any) -> None:
        with self._changed:
            self._streams[reading] = stream
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="fuseline-limits", daemon=True)
                self._thread.start()
            self._changed.notify()

    def remove(self, reading: Reading) -> None:
        with self._changed:
            self._streams.pop(reading, None)

    def _run(self) -> None:
        with self._changed:
            while self._streams:
                soonest = _LATEST
                for reading in list(self._streams):
                    left = reading.time_left()
                    if left == 0.0:
                        _shut_down(self._streams.pop(reading))
                    elif left is not None:
                        soonest = min(soonest, left)
                self._changed.wait(max(soonest, _SOONEST))
            self._thread = None


def _shut_down(stream: Any) -> None:
    try:
        stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
    except (OSError, AttributeError):
        pass  # closed already, or none


_watchdog = _Watchdog()


@contextmanager
def over(reading: Reading, stream: Any) -> Iterator[None]:
    """While it lasts, a limit that passes shuts the connection down, which wakes whoever reads from it."""
    if stream is None:
        yield
        return
    watchdog = _watchdog
    watchdog.add(reading, stream)
    try:
        yield
    finally:
        watchdog.remove(reading)


def _renew() -> None:
    """In a forked child there is no such thread."""
    global _watchdog
    _watchdog = _Watchdog()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
