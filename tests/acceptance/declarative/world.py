"""Schedulers on one store and one clock, and everything they tell, to be waited for."""

import asyncio
from datetime import datetime
from typing import Any, ClassVar

from everytick.declarative import DeclarativeEvent, DeclarativeScheduler
from everytick.testing import ManualClock

PATIENCE = 60.0
"""Seconds after which a waiting test gives up."""


class Counting:
    """A callback that counts its calls; it raises as often as it is told to, and waits where it is told to."""

    made: ClassVar[list["Counting"]] = []

    def __init__(self, failures: int = 0, *, waits: bool = False) -> None:
        self.calls = 0
        self._failures = failures
        self.made.append(self)
        self.go_on = asyncio.Event()
        if not waits:
            self.go_on.set()

    async def __call__(self) -> None:
        self.calls += 1
        await self.go_on.wait()
        if self.calls <= self._failures:
            raise ValueError(f"failure {self.calls}")


class World:
    """What the tests act on."""

    def __init__(self, store: Any, clock: ManualClock) -> None:
        self.store, self.clock = store, clock
        self.told: list[DeclarativeEvent] = []
        self._schedulers: list[DeclarativeScheduler] = []
        self._heard = asyncio.Event()

    def scheduler(self, store: Any = None, name: str = "default") -> DeclarativeScheduler:
        """Return another instance."""
        made = DeclarativeScheduler(store or self.store, name, self._hear, self.clock)
        self._schedulers.append(made)
        return made

    def _hear(self, event: DeclarativeEvent) -> None:
        self.told.append(event)
        self._heard.set()

    @property
    def names(self) -> list[str]:
        """The events so far, by name; those of tasks with the task's."""
        return [event.name if event.task is None else f"{event.name} {event.task}" for event in self.told]

    async def until(self, name: str, times: int = 1) -> DeclarativeEvent:
        """Return the event of this name, or the last of so many, once it was told."""
        async with asyncio.timeout(PATIENCE):
            while self.names.count(name) < times:
                self._heard.clear()
                await self._heard.wait()
        return [event for event, told in zip(self.told, self.names, strict=True) if told == name][times - 1]

    def at(self, text: str) -> datetime:
        """Let it be that time of the day, and return it."""
        return self.clock.set(f"2026-03-03T{text}Z")

    async def close(self) -> None:
        """Stop what runs, also where a test failed while a callback waited for it."""
        for callback in Counting.made:
            callback.go_on.set()
        Counting.made.clear()
        for each in self._schedulers:
            await each.stop()
