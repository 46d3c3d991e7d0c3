"""Breakers by name: of the process, or of a registry of your own."""

from __future__ import annotations

import threading
from typing import Any, Unpack

from . import _native, _settings, _view
from ._breaker import Breaker
from ._errors import RegistryError
from ._judge import ErrorTypes, Judge
from ._settings import Settings, Timeouts

_Name = tuple[str, str | None]


class Registry:
    """Breakers by name, at most 500 unless set otherwise: idle closed ones leave first, an open one never.

    Most programs need none of their own: `get_breaker` and its kin are those of the process-wide one.
    """

    def __init__(self, *, max_breakers: int = 500, clock: _native.Clock | None = None) -> None:
        self._native = _native.Registry(max_breakers, clock)
        self._max_breakers = max_breakers
        self._lock = threading.Lock()
        # What was asked for, by name: settings as JSON, the judge, the limits of streams.
        self._known: dict[_Name, tuple[str, Judge, dict[str, float]]] = {}

    def get_breaker(
        self,
        name: str,
        *,
        model: str | None = None,
        failures: ErrorTypes | None = None,
        ignore: ErrorTypes = (),
        timeouts: Timeouts | None = None,
        **settings: Unpack[Settings],
    ) -> Breaker:
        """The breaker of this name, made if need be: whoever asks, in whatever request, gets the same one.

        Where nothing but the name is given, it is whatever breaker has that name. See `Breaker` for what can be given.

        Raises `RegistryError` where it exists with other settings (`Breaker.reconfigure` changes them), or there is no room.

        >>> import fuseline
        >>> fuseline.get_breaker("search", cooldown="20s").force_open()
        >>> fuseline.get_breaker("search").state
        'forced_open'
        >>> fuseline.get_breaker("search", cooldown="40s")
        Traceback (most recent call last):
            ...
        fuseline.RegistryError: breaker `search` exists with other settings; reconfigure it, or use another name
        """
        key = (name, model)
        if not (settings or timeouts or failures or ignore):
            found = self.find_breaker(name, model=model)
            if found is not None:
                return found
        wanted = (_settings.encode(settings), Judge(failures, ignore), _settings.limits(timeouts))
        with self._lock:
            known = self._known.get(key)
            handle = self._handle(key, wanted[0], known is None)
            if known is not None and known[1:] != wanted[1:]:
                raise RegistryError(f"breaker `{name}` exists with other failures, ignore or timeouts", True)
            self._known[key] = wanted
            if len(self._known) > 2 * self._max_breakers:
                alive = set(self._native.names())
                self._known = {key: kept for key, kept in self._known.items() if key in alive}
        return Breaker._of(handle, *wanted[1:])

    def _handle(self, key: _Name, settings: str, is_new: bool) -> _native.Handle:
        """One that was restored or learned from a fleet takes the settings of the first who asks for it."""
        try:
            return self._native.get(*key, settings)
        except RegistryError as error:
            handle = self._native.find(*key)
            if not (is_new and error.is_taken and handle is not None):
                raise
        Breaker._of(handle, Judge(None, ()), {})._reconfigure(settings)
        return handle

    def find_breaker(self, name: str, *, model: str | None = None) -> Breaker | None:
        """The breaker of this name, if there is one: tells "none" from "closed".

        >>> import fuseline
        >>> fuseline.find_breaker("nobody has asked for this") is None
        True
        """
        handle = self._native.find(name, model)
        return None if handle is None else self._breaker((name, model), handle)

    def breakers(self) -> list[Breaker]:
        """All breakers, in the order of their names."""
        found = ((key, self._native.find(*key)) for key in self._native.names())
        return [self._breaker(key, handle) for key, handle in found if handle is not None]

    def snapshots(self) -> list[_view.Snapshot]:
        """Snapshots of all breakers, in the order of their names."""
        return [breaker.snapshot() for breaker in self.breakers()]

    def remove(self, name: str, *, model: str | None = None) -> None:
        """Forgets a breaker. Who holds it keeps it."""
        with self._lock:
            self._known.pop((name, model), None)
            self._native.remove(name, model)

    def events(self) -> Events:
        """A reader of what happens to its breakers, from the very first transition that is still kept."""
        return Events(self._native.events())

    def _breaker(self, key: _Name, handle: _native.Handle) -> Breaker:
        with self._lock:
            _, judge, limits = self._known.get(key, ("", Judge(None, ()), {}))
        return Breaker._of(handle, judge, limits)


class Events:
    """A reader of all breakers' transitions. It listens to nobody: drain it every now and then. One that is slow or gone costs
    no call anything.

    >>> import fuseline
    >>> registry = fuseline.Registry()
    >>> events = registry.events()
    >>> registry.get_breaker("openai").force_open()
    >>> for event in events.drain():
    ...     print(event.name, event.transition.to_state, event.transition.why)
    openai forced_open operator
    """

    def __init__(self, events: Any) -> None:
        self._native = events

    def drain(self) -> list[_view.Event]:
        """Everything that has happened since the last time, in the order of time."""
        return [
            _view.Event(name, _view.transition(fields), missed) for name, fields, missed in self._native.drain()
        ]


process = Registry()
get_breaker = process.get_breaker
find_breaker = process.find_breaker
breakers = process.breakers
events = process.events
