"""Interrupts blocking reads of streams whose limit has passed: one thread for all of them."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _native

_SOONEST = 0.01


class _Watchdog:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watched: dict[_native.Watch, Any] = {}
        self._thread: threading.Thread | None = None

    @contextmanager
    def over(self, watch: _native.Watch, stream: Any) -> Iterator[None]:
        """While it lasts, a limit that passes shuts the connection down, which wakes whoever reads from it."""
        if stream is None:
            yield
            return
        with self._changed:
            self._watched[watch] = stream
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="fuseline-limits", daemon=True)
                self._thread.start()
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._watched.pop(watch, None)

    def _run(self) -> None:
        with self._changed:
            while self._watched:
                left = {watch: watch.time_left() for watch in self._watched}
                for watch, rest in left.items():
                    if rest == 0.0:
                        _shut_down(self._watched.pop(watch))
                times = [rest for rest in left.values() if rest]
                # The limit of a stream that is being read may have become an earlier one meanwhile.
                self._changed.wait(max(_SOONEST, min([*times, 1.0])))
            self._thread = None


def _shut_down(stream: Any) -> None:
    try:
        stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
    except (OSError, AttributeError):
        pass  # closed already, or none


_watchdog = _Watchdog()
over = _watchdog.over


def _renew() -> None:
    """In a forked child there is no such thread."""
    _watchdog.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
