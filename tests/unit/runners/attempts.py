"""Attempts for tests: a context as the node makes it, and services that remember what they were told."""

import asyncio
import gc
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from logging import Handler, Logger, LogRecord
from typing import Any

from everytick.domain.config import Level, overrides
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.notes import Progress
from everytick.domain.occurrence import occurrence_of
from everytick.domain.outcome import Failed, Outcome
from everytick.domain.payload import payload
from everytick.domain.statuses import RunStatus
from everytick.domain.steps import RunState, header_of, life_of, rules_of
from everytick.runners.base import Body
from everytick.runners.context import Context, Halt, enter, leave
from everytick.runners.transaction import TaskTransaction
from everytick.schedules.interval import every

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


class Remembering:
    """What a node would do for its attempts, kept in lists."""

    def __init__(self) -> None:
        self.begins = 0
        self.written = b""
        self.lines: list[str] = []
        self.told: list[Progress] = []
        self.statements: list[str] = []
        self.committed: list[str] = []
        self.changed = threading.Event()
        self.previous: datetime | None = None
        self._heard: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    def begun(self, context: Context) -> None:
        self.begins += 1

    def log(self, context: Context) -> Logger:
        logger = Logger("test")
        logger.addHandler(_Lines(self))
        return logger

    def output(self, context: Context, data: bytes) -> None:
        self.written += data
        self._look()

    def progress(self, context: Context, progress: Progress) -> None:
        self.told.append(progress)
        self._look()

    def transaction(self, context: Context) -> AbstractAsyncContextManager[TaskTransaction]:
        return self._transaction()

    def known_to(self, context: Context) -> str | None:
        return None

    async def hand_over(self, context: Context, handed_to: str) -> None:
        """No engine is asked here."""

    def handed(self, context: Context) -> None:
        """No engine is asked here."""

    async def look_up_previous(self, context: Context) -> datetime | None:
        return self.previous

    def wait_for_previous(self, context: Context) -> datetime | None:
        return self.previous

    async def heard(self, what: bytes) -> None:
        """Wait until this was written."""
        self._loop = asyncio.get_running_loop()
        waiter = self._loop.create_future()
        self._heard.append((lambda: what in self.written, waiter))
        self._look()
        await waiter

    def _look(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for is_there, waiter in self._heard:
            if is_there() and not waiter.done():
                waiter.set_result(None)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[TaskTransaction]:
        written = _Written()
        yield written
        self.statements += written.statements
        self.committed.append(repr(written.kept))


class _Written:
    def __init__(self) -> None:
        self.statements: list[str] = []
        self.kept: object = None

    @property
    def connection(self) -> Any:
        return self

    async def execute(self, sql: str, *arguments: object) -> None:
        if sql == "wrong":
            raise ValueError("wrong")
        if sql == "endless":
            await asyncio.Event().wait()
        self.statements.append(sql)

    async def fetch(self, sql: str, *arguments: object) -> Any:
        return [sql, *arguments]

    def result(self, value: object) -> None:
        self.kept = value


class _Lines(Handler):
    def __init__(self, services: Remembering) -> None:
        super().__init__()
        self._services = services

    def emit(self, record: LogRecord) -> None:
        self._services.lines.append(f"{record.levelname} {record.getMessage()}")


def job_of(*targets: str, payload: object = None, name: str = "etl", **policies: object) -> Job:
    """A job with a task for each target: `first`, `second`, `third`."""
    names = ("first", "second", "third")
    tasks = [
        define_task(name, task, target=target, policies=policies)
        for task, target in zip(names, targets or ("a:b",), strict=False)
    ]
    return define_job(name, every("1h"), policies={"payload": payload}, tasks=tasks)


def attempt(
    job: Job | None = None, place: int = 0, *, services: Remembering | None = None, payload_given: object = None
) -> Context:
    """The second attempt of a task; tasks before it have succeeded with the result 7."""
    definition = job_of() if job is None else job
    occurrence = occurrence_of(definition, NOON)
    if payload_given is not None:
        own = overrides(Level.OCCURRENCE, {"payload": payload_given})
        occurrence = replace(occurrence, overrides=own)
    runs = {
        task.name: RunState(RunStatus.SUCCESS, 1, result=payload(7))
        if position < place
        else RunState(RunStatus.RUNNING, 2, started_at=NOON, attempt_started_at=NOON + timedelta(seconds=1))
        for position, task in enumerate(definition.tasks)
    }
    rules = rules_of(definition)
    header, life = header_of(occurrence, rules), life_of(occurrence, rules, runs)
    return Context(definition, place, 2, occurrence, header, life, 3, services or Remembering(), None)


async def carried_out(body: Body, context: Context | None = None) -> Outcome:
    """Run one attempt as a node's coroutine does."""
    found = context or attempt()
    enter(found)
    try:
        return await body.run(found)
    finally:
        leave()


def begun(body: Body, context: Context) -> "asyncio.Task[Outcome]":
    """Begin an attempt, to be stopped later."""
    return asyncio.get_running_loop().create_task(carried_out(body, context))


async def stopped(running: "asyncio.Task[Outcome]", context: Context, why: Halt) -> Outcome | None:
    """Stop the attempt as the node does; None is what it gets from an attempt that was stopped."""
    context._halt = why
    running.cancel()
    try:
        return await running
    except asyncio.CancelledError:
        return None


def error_of(outcome: Outcome) -> str:
    """The error of a failed attempt."""
    assert isinstance(outcome, Failed), outcome
    return outcome.error


def open_files() -> int:
    """Return how many files this process has open, without those that only the garbage of other tests holds."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))
