"""Callbacks for stories: they note when they ran, and take as long and fail as often as they are told."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.conformance.declarative.adapter import Callback, Registration, World

EVERY_MINUTE = "* * * * *"
NEVER_NEAR = "0 0 1 1 *"
"""New Year: valid, and far from where stories play."""


class Boom(Exception):
    """What a callback of these stories raises."""


@dataclass
class Run:
    """One call of a callback."""

    began: datetime
    ended: datetime | None = None
    failed: bool = False


class Task:
    """A callback and what happened to it.

    `takes` and `fails` say, call by call, what it does; then it succeeds at once. With `gate`
    each call waits until `open` was called.
    """

    def __init__(
        self, world: World, *, takes: Iterable[float] = (), fails: Iterable[bool] = (), gate: bool = False
    ) -> None:
        self._world = world
        self._takes, self._fails = list(takes), list(fails)
        self._gate: asyncio.Event | None = asyncio.Event() if gate else None
        self.runs: list[Run] = []
        self.beside_itself = False

    @property
    def began(self) -> list[datetime]:
        """When each run began."""
        return [run.began for run in self.runs]

    @property
    def minutes(self) -> list[str]:
        """The minute in which each run began, as UTC wall time."""
        return [f"{began:%H:%M}" for began in self.began]

    @property
    def count(self) -> int:
        """How often it was called."""
        return len(self.runs)

    def open(self) -> None:
        """Let whatever waits at the gate go on, and what comes later too."""
        assert self._gate is not None, "this task has no gate"
        self._gate.set()

    async def __call__(self) -> None:
        number = len(self.runs)
        self.beside_itself = self.beside_itself or any(run.ended is None for run in self.runs)
        run = Run(self._world.now())
        self.runs.append(run)
        try:
            if self._gate is not None:
                await self._gate.wait()
            if number < len(self._takes) and self._takes[number]:
                await self._world.pass_by(self._takes[number])
            run.failed = number < len(self._fails) and self._fails[number]
            if run.failed:
                raise Boom(f"call {number} was told to fail")
        finally:
            run.ended = self._world.now()

    def callback(self) -> Callback:
        """Return the task as an async function."""

        async def call() -> None:
            await self()

        return call

    def on(self, cron: str = EVERY_MINUTE, name: str = "task", delay: timedelta = timedelta(minutes=5)) -> Registration:
        """Return a registration of this task."""
        return (name, cron, self.callback(), delay)
