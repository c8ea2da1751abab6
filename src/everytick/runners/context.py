"""Context: what a task can read about its attempt, and its calls to the node while it runs."""

from __future__ import annotations

from contextvars import ContextVar
from enum import Enum
from functools import partial
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from everytick.domain import ids
from everytick.domain.config import UNSET, Unset
from everytick.domain.notes import Progress
from everytick.domain.occurrence import Occurrence
from everytick.domain.statuses import RunStatus
from everytick.errors import Fenced
from everytick.runners.transaction import TaskTransaction as TaskTransaction
from everytick.runners.transaction import ThreadSide, TransactionBlock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from datetime import datetime
    from logging import Logger

    from everytick.domain.job import Job
    from everytick.domain.occurrence import Cause
    from everytick.domain.steps import OccurrenceHeader, OccurrenceLife


_LONGEST_NOTE_CHARACTERS = 1_000
"""Longest note of a progress."""


class Halt(Enum):
    """Why an attempt is stopped."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    SHUTDOWN = "shutdown"
    LEFT = "left"
    """It goes on at an engine; only this node waits no longer for its end."""


class Services(Protocol):
    """The calls of a running attempt to its node."""

    def begun(self, context: Context) -> None:
        """Start the timeout of the attempt now."""
        ...

    def log(self, context: Context) -> Logger:
        """Return the logger of this attempt. Its lines are stored with the attempt's output."""
        ...

    def output(self, context: Context, data: bytes) -> None:
        """Store output of this attempt, from any thread. Beyond the limit it is dropped, and the log says so."""
        ...

    def progress(self, context: Context, progress: Progress) -> None:
        """Show people how far the attempt has come, from any thread."""
        ...

    def transaction(self, context: Context) -> AbstractAsyncContextManager[TaskTransaction]:
        """Begin the attempt's one transaction."""
        ...

    def known_to(self, context: Context) -> str | None:
        """Return what was noted of the engine that carries the attempt out; None if none does."""
        ...

    async def hand_over(self, context: Context, handed_to: str) -> None:
        """Note to which engine the attempt is about to be handed. Raises `Fenced` if another node has it now."""
        ...

    def handed(self, context: Context) -> None:
        """Note that an engine has the attempt: it outlives this node, and needs no slot here."""
        ...

    async def look_up_previous(self, context: Context) -> datetime | None:
        """Ask the store which occurrence of the job ended last."""
        ...

    def wait_for_previous(self, context: Context) -> datetime | None:
        """Do the same in a thread, and block until the store has answered."""
        ...


class Context:
    """One attempt, as its task sees it."""

    __slots__ = (
        "_grace_seconds",
        "_halt",
        "_header",
        "_life",
        "_place",
        "_previous",
        "_record",
        "_saw_cancel",
        "_services",
        "_thread",
        "attempt",
        "definition",
        "fence",
    )

    # Set only when needed: a context is made for every attempt.
    _grace_seconds: float
    _thread: ThreadSide
    _saw_cancel: bool

    def __init__(
        self,
        definition: Job,
        place: int,
        attempt: int,
        record: Occurrence | Callable[[], Occurrence],
        header: OccurrenceHeader,
        life: OccurrenceLife,
        fence: int,
        services: Services,
        previous: datetime | Unset | None = UNSET,
    ) -> None:
        self.definition, self._place, self.attempt = definition, place, attempt
        self._record, self._header, self._life, self.fence = record, header, life, fence
        self._services, self._previous = services, previous
        self._halt: Halt | None = None

    def __repr__(self) -> str:
        return f"Context(job={self.job!r}, task={self.task!r}, attempt={self.attempt})"

    @property
    def job(self) -> str:
        """The job's name."""
        return self.definition.name

    @property
    def task(self) -> str:
        """The task's name."""
        return self._header.rules.tasks[self._place].name

    @property
    def occurrence(self) -> Occurrence:
        """The occurrence as it was claimed. It is made at the first access, since most tasks never ask for it."""
        if not isinstance(self._record, Occurrence):
            self._record = self._record()
        return self._record

    @property
    def occurrence_id(self) -> str:
        """The occurrence this attempt belongs to."""
        return self._header.id

    @property
    def run_id(self) -> str:
        """The task's run within the occurrence; equal over all attempts."""
        return ids.run_id(self._header.id, self._header.rules.tasks[self._place].id)

    @property
    def attempt_id(self) -> str:
        """This attempt alone."""
        return ids.attempt_id(self.run_id, self.attempt)

    @property
    def idempotency_key(self) -> str:
        """A key to pass to other systems, so that a repeated attempt does nothing twice: the run's id."""
        return self.run_id

    @property
    def scheduled_for(self) -> datetime:
        """The instant this occurrence stands for."""
        return self._header.scheduled_for

    @property
    def started_at(self) -> datetime:
        """When this attempt began, by the store's clock."""
        began = self._life.runs[self._place].attempt_started_at
        assert began is not None, "a context exists only for an attempt that began"
        return began

    @property
    def previous(self) -> datetime | None:
        """The instant of the job's occurrence that ended last; None if there was none.

        Where the node has not asked for it before the start, a thread waits for the answer here. A
        coroutine cannot wait without `await`: it is told to use `look_up_previous`.
        """
        if isinstance(self._previous, Unset):
            self._refuse_on_loop()
            self._previous = self._services.wait_for_previous(self)
        return self._previous

    @previous.setter
    def previous(self, instant: datetime | None) -> None:
        self._previous = instant

    @property
    def _is_previous_known(self) -> bool:
        """Whether `previous` is known without a query to the store."""
        return not isinstance(self._previous, Unset)

    async def look_up_previous(self) -> datetime | None:
        """Return `previous` in a coroutine. It asks the store if the node has not."""
        if isinstance(self._previous, Unset):
            self._previous = await self._services.look_up_previous(self)
        return self._previous

    def _refuse_on_loop(self) -> None:
        import asyncio

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        raise LookupError(
            f"the previous occurrence of job '{self.job}' was not asked for when task '{self.task}' began, and a "
            "coroutine cannot wait here: write `await current().look_up_previous()`, or give the task a `ctx` parameter"
        )

    @property
    def covers(self) -> tuple[datetime | None, datetime]:
        """The instants `(after, through]` this occurrence stands for; after None means from the beginning."""
        return self.occurrence.covers_after, self.occurrence.covers_through or self.occurrence.scheduled_for

    @property
    def cause(self) -> Cause:
        """Why the occurrence exists."""
        return self.occurrence.cause

    @property
    def late(self) -> bool:
        """Whether it was created late."""
        return self.occurrence.late

    @property
    def payload(self) -> Any:
        """What the occurrence was given: the trigger's payload, else the definition's; a fresh copy."""
        # Merging all settings to read one of them would take longer than most bodies.
        own = self.occurrence.overrides.get("payload") if self.occurrence.overrides.items else UNSET
        payload = self.definition.settings.payload if own is UNSET else own
        return None if payload is None else payload.read()

    @property
    def results(self) -> Mapping[str, Any]:
        """What the tasks before this one returned, by task name; one that did not succeed is absent."""
        return MappingProxyType(
            {
                task.name: None if run.result is None else run.result.read()
                for task, run in zip(self._header.rules.tasks, self._life.runs, strict=True)
                if run.status is RunStatus.SUCCESS
            }
        )

    @property
    def canceled(self) -> bool:
        """Whether the attempt was told to stop. A thread reads this; a coroutine is canceled.

        A task that saw this true and then ends was canceled; one that never looked ended on
        its own, and its outcome counts.
        """
        if self._halt is None:
            return False
        self._saw_cancel = True
        return True

    @property
    def log(self) -> Logger:
        """A logger whose lines are kept with the attempt's output."""
        return self._services.log(self)

    def progress(self, done: float, total: float | None = None, *, note: str = "") -> None:
        """Show people how far this attempt has come."""
        figures = [figure for figure in (done, total) if figure is not None]
        if not all(isfinite(figure) for figure in figures):
            raise ValueError(f"progress({done}, {total}) must be of finite numbers")
        # No store takes lone surrogates or NUL; people read one line of it.
        text = note[:_LONGEST_NOTE_CHARACTERS].encode(errors="backslashreplace").decode().replace("\0", "")
        self._services.progress(self, Progress(done, total, text))

    def _begin(self) -> None:
        """Start the timeout of this attempt now: before, it waited for a thread or a process."""
        self._services.begun(self)

    def output(self, data: bytes) -> None:
        """Store this with the attempt's output."""
        self._services.output(self, data)

    def transaction(self) -> TransactionBlock:
        """Begin the one transaction of this attempt: its writes and the attempt's success commit together.

        `async with` in a coroutine, `with` in a thread.
        """
        return TransactionBlock(self._begin_transaction, getattr(self, "_thread", None))

    def _begin_transaction(self) -> AbstractAsyncContextManager[TaskTransaction]:
        return self._services.transaction(self)

    def _abandon(self) -> None:
        """Disconnect the task from its node: its further output and notes are dropped.

        Its outcome was decided without it; a thread cannot be ended, but it must not speak
        for an attempt that is over.
        """
        self._services = _NO_SERVICES
        side: ThreadSide | None = getattr(self, "_thread", None)
        if side is not None:
            side.abandon(Fenced(self.occurrence_id))


class _NoServices:
    """The services of an attempt that has ended: they drop everything."""

    def begun(self, context: Context) -> None:
        """Do nothing: the attempt has no timeout any more."""

    def log(self, context: Context) -> Logger:
        from logging import getLogger

        return getLogger("everytick.runners.abandoned")

    def output(self, context: Context, data: bytes) -> None:
        """Drop it."""

    def progress(self, context: Context, progress: Progress) -> None:
        """Drop it."""

    def transaction(self, context: Context) -> AbstractAsyncContextManager[TaskTransaction]:
        raise Fenced(context.occurrence_id)

    def known_to(self, context: Context) -> str | None:
        """Say nothing: the attempt is over."""
        return None

    async def hand_over(self, context: Context, handed_to: str) -> None:
        raise Fenced(context.occurrence_id)

    def handed(self, context: Context) -> None:
        """Do nothing: the attempt has no slot any more."""

    async def look_up_previous(self, context: Context) -> datetime | None:
        raise Fenced(context.occurrence_id)

    def wait_for_previous(self, context: Context) -> datetime | None:
        raise Fenced(context.occurrence_id)


_NO_SERVICES = _NoServices()


_current: ContextVar[Context | None] = ContextVar("everytick_context", default=None)

entered = _current.get
"""Return the context of the attempt this code runs in; None outside of attempts."""


def current() -> Context:
    """Return the context of the attempt this code runs in."""
    context = _current.get()
    if context is None:
        raise LookupError("current() was called outside of a running task: call the task through a node")
    return context


enter = _current.set
"""Make this the context of the code that follows in the same task or thread."""

leave = partial(_current.set, None)
"""Let the code that follows in the same asyncio task or thread belong to no attempt."""

# What the node does with a context is no method of it: a task that has the context must not find it there.


def halt(context: Context, why: Halt, grace_seconds: float) -> None:
    """Say why the attempt is to stop, and how long its body may take to end its thread or process."""
    context._halt, context._grace_seconds = why, grace_seconds


def halted(context: Context) -> Halt | None:
    """Return why the attempt is to stop; None if it was not told to."""
    return context._halt


def abandon(context: Context) -> None:
    """Disconnect the task from its node: its further output and notes are dropped."""
    context._abandon()
