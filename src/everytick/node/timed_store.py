"""A store that is timed: every verb that answers tells the meter how long that took."""

from __future__ import annotations

from contextlib import asynccontextmanager
from inspect import iscoroutinefunction
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from everytick.node.meter import Meter
    from everytick.stores.addresses import AnyStore

_WAITS = frozenset({"open", "close", "bell"})
"""Verbs that wait for something else than an answer."""


def timed(store: AnyStore, meter: Meter) -> AnyStore:
    """Return the store, timed."""
    return cast("AnyStore", _TimedStore(store, meter))


class _TimedStore:
    """Has every attribute of the store; a verb is wrapped when it is first asked for."""

    def __init__(self, store: AnyStore, meter: Meter) -> None:
        self._store, self._meter = store, meter

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._store, name)
        if name == "due":
            attribute = _timed_batches(attribute, self._meter)
        elif not iscoroutinefunction(attribute) or name in _WAITS:
            # A plain attribute may change, and is looked up again.
            return attribute
        else:
            attribute = _timed_verb(name, attribute, self._meter)
        self.__dict__[name] = attribute
        return attribute


def _timed_verb(name: str, verb: Callable[..., Any], meter: Meter) -> Callable[..., Any]:
    async def ask(*arguments: Any, **named: Any) -> Any:
        began = perf_counter()
        try:
            answer = await verb(*arguments, **named)
        except Exception:
            meter.failures[name] += 1
            raise
        meter.answered(name, perf_counter() - began)
        return answer

    return ask


def _timed_batches(due: Callable[..., Any], meter: Meter) -> Callable[..., Any]:
    """Time until a batch of due jobs is there; how long it is held open is the planner's matter."""

    @asynccontextmanager
    async def ask(*arguments: Any, **named: Any) -> AsyncIterator[Any]:
        began = perf_counter()
        async with due(*arguments, **named) as batch:
            meter.answered("due", perf_counter() - began)
            yield batch

    return ask
