"""State that outlives the process, and the fleet: the same store and the same protocol as the gateway's."""

from __future__ import annotations

import os
import secrets
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from . import _native
from ._registry import Registry, process


@dataclass(frozen=True, slots=True)
class FleetHealth:
    """How a fleet fares."""

    is_degraded: bool
    """Whether each replica decides by itself, because Redis is out of reach."""
    replicas: int
    """Those that were there at the last exchange, this one among them."""


class Keeper:
    """Carries what happens to breakers to a file or a fleet, from threads of its own, until it is closed. Made by `keep`."""

    def __init__(
        self, registry: Registry, state: str | None, fleet: str | None, authorities: bytes | None, prefix: str
    ) -> None:
        def start(state: str | None) -> _native.Keeper:
            return _native.Keeper(registry._native, state, fleet, authorities, prefix, secrets.randbits(64))

        self._start = start
        self._state = state
        self._lock = threading.Lock()
        self._native: _native.Keeper | None = start(state)
        _open.append(self)

    def health(self) -> FleetHealth | None:
        """How the fleet fares; none without one."""
        health = self._native.health() if self._native else None
        return FleetHealth(*health) if health else None

    def close(self) -> None:
        """Writes what is left, leaves the fleet, and waits for both. Breakers stay as they are."""
        with self._lock:
            kept, self._native = self._native, None
            if self in _open:
                _open.remove(self)
        if kept:
            kept.close()

    def __enter__(self) -> Keeper:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Threads do not survive a fork, and must not hold a lock while it happens: they end before it and begin anew after it. A
    # state file has one writer, which stays the parent; a child is a replica of its own.

    def _before_fork(self) -> None:
        self._lock.acquire()
        if self._native:
            self._native.close()

    def _after_fork(self, state: str | None) -> None:
        if self._native:
            self._native = self._start(state)
        self._lock.release()


def keep(
    *,
    state: str | os.PathLike[str] | None = None,
    fleet: str | None = None,
    ca_file: str | os.PathLike[str] | None = None,
    prefix: str = "fuseline",
    registry: Registry = process,
) -> Keeper:
    """Keeps the breakers of `get_breaker` in a file over restarts, or shares them with a fleet, or both.

    `state` is the path of an SQLite file, `fleet` the URL of a Redis (`redis://user:password@host:port/database`, `rediss://` for
    TLS, where authorities in `ca_file` are trusted beside the public ones), `prefix` what every key in it begins with. Calls never
    wait for either. A gateway with the same `fleet` and `prefix` is a replica like any other: a breaker named `openai` here is that
    of its provider `openai`, and `get_breaker("openai", model="gpt-5")` that of this model.

    Raises `OSError` where a file cannot be used, `ValueError` where the URL is none of Redis or `ca_file` holds no certificate. A
    Redis that is away is no error: until it answers, this replica decides by itself.
    """
    authorities = None if ca_file is None else Path(ca_file).read_bytes()
    if authorities is not None and b"-----BEGIN CERTIFICATE-----" not in authorities:
        raise ValueError(f"ca_file is {ca_file}, must hold certificates in PEM")
    return Keeper(registry, None if state is None else os.fspath(state), fleet, authorities, prefix)


_open: list[Keeper] = []


def _before_fork() -> None:
    for keeper in _open:
        keeper._before_fork()


def _after_fork_in_parent() -> None:
    for keeper in _open:
        keeper._after_fork(keeper._state)


def _after_fork_in_child() -> None:
    for keeper in _open:
        keeper._after_fork(None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )
