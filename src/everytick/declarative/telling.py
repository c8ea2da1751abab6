"""Events by the specification's names, in order: what the core tells of its jobs, seen as three state machines.

A task's events follow from those of its occurrences. Nothing is decided here: a listener that
raises, or that nobody gave, changes nothing.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from functools import partial
from inspect import isawaitable
from typing import TypeAlias

from everytick.declarative.lateness import Lateness
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus
from everytick.domain.values import value
from everytick.node.events import Event, Happening

_log = logging.getLogger("everytick.declarative")


class SchedulerState(StrEnum):
    """Where a scheduler stands; exactly one at a time (S2-014)."""

    UNINITIALIZED = "Uninitialized"
    INITIALIZING = "Initializing"
    RUNNING = "Running"
    STOPPING = "Stopping"
    STOPPED = "Stopped"


class PollingState(StrEnum):
    """Whether schedules are looked at (S2-026)."""

    INACTIVE = "Inactive"
    ACTIVE = "Active"
    STOPPING = "Stopping"


class TaskStatus(StrEnum):
    """Where a task stands (S2-018)."""

    AWAITING_RUN = "AwaitingRun"
    RUNNING = "Running"
    AWAITING_RETRY = "AwaitingRetry"


@value
class DeclarativeEvent:
    """One step of the scheduler, of its polling, or of a task where `task` names one.

    `at` is the store's time; `error` is what is told of a failure.
    """

    name: str
    at: datetime
    task: str | None = None
    error: str = ""


Listener: TypeAlias = Callable[[DeclarativeEvent], object]

_FAILED = (AttemptStatus.FAILED, AttemptStatus.TIMEOUT, AttemptStatus.CANCELED, AttemptStatus.LOST)


class Teller:
    """Hands events to the listener; what comes while they are held back follows in its order."""

    def __init__(self, listener: Listener | None) -> None:
        self._listener = listener
        self._held: list[DeclarativeEvent] | None = None
        self._unheard: deque[tuple[str, Awaitable[object]]] = deque()
        self._hearing: asyncio.Task[None] | None = None

    def hold(self) -> None:
        """Keep what tasks do back until `release`."""
        self._held = []

    def release(self) -> None:
        """Tell what was kept back."""
        held, self._held = self._held or [], None
        for event in held:
            self.tell(event)

    def drop(self) -> None:
        """Forget what was kept back: it had no effect that lasts."""
        self._held = None

    def tell(self, event: DeclarativeEvent) -> None:
        """Tell it now, or once nothing is held back any more if it is about a task."""
        if self._held is not None and event.task is not None:
            self._held.append(event)
        elif self._listener is not None:
            try:
                answer = self._listener(event)
            except BaseException:  # noqa: BLE001, it is not our code
                _log.exception("a listener of the scheduler failed on %s; the scheduler goes on", event.name)
            else:
                if isawaitable(answer):
                    self._await(event.name, answer)

    async def heard(self) -> None:
        """Return when an async listener has heard everything, unless it is the listener that asks."""
        if self._hearing is not None and self._hearing is not asyncio.current_task():
            await asyncio.wait([self._hearing])

    def _await(self, name: str, answer: Awaitable[object]) -> None:
        """Let an async listener hear one event after the other, in their order."""
        self._unheard.append((name, answer))
        if self._hearing is None or self._hearing.done():
            with suppress(RuntimeError):  # without a loop it is heard with the next event
                self._hearing = asyncio.get_running_loop().create_task(self._hear())

    async def _hear(self) -> None:
        while self._unheard:
            name, answer = self._unheard.popleft()
            try:
                await answer
            except Exception:  # noqa: BLE001, it is not our code
                _log.exception("a listener of the scheduler failed on %s; the scheduler goes on", name)


class _Standing:
    """Where one task stands, and in which occurrence."""

    __slots__ = ("deferred", "name", "occurrence", "status")

    def __init__(self, name: str) -> None:
        self.name, self.status = name, TaskStatus.AWAITING_RUN
        self.occurrence: str | None = None
        self.deferred: list[Event] = []


class Tasks:
    """Turns what the core tells of occurrences into the events of their tasks."""

    def __init__(
        self,
        names: Mapping[str, str],
        teller: Teller,
        lateness: Lateness,
        later: Callable[[Callable[[], None]], object],
    ) -> None:
        """`names` gives the task of each job by the job's name; `later` calls something in a while."""
        self._tasks = {job: _Standing(task) for job, task in names.items()}
        self._teller, self._lateness, self._later = teller, lateness, later

    def awaits_retry(self, job: str, occurrence_id: str) -> None:
        """Begin with a task that an earlier instance left waiting for a retry."""
        task = self._tasks[job]
        task.status, task.occurrence = TaskStatus.AWAITING_RETRY, occurrence_id

    def heard(self, event: Event) -> None:
        """Take one event of the core; those about other jobs are none of ours."""
        task = self._tasks.get(event.job)
        if task is None:
            return
        if event.kind is Happening.STARTED:
            self._started(task, event)
        elif event.kind is Happening.ATTEMPT_ENDED:
            self._attempt_ended(task, event)
        elif event.kind is Happening.ENDED:
            self._ended(task, event)

    def _started(self, task: _Standing, event: Event) -> None:
        if task.status is TaskStatus.RUNNING and task.occurrence != event.occurrence_id:
            # The store knows that the one before has ended, or this could not have started: its end is told first.
            # If another instance took it over, nobody will: then this is told after a while.
            task.deferred.append(event)
            self._later(partial(self._stop_waiting, task))
            return
        self._begun(task, event)

    def _stop_waiting(self, task: _Standing) -> None:
        deferred, task.deferred = task.deferred, []
        for event in deferred:
            self._begun(task, event)

    def _begun(self, task: _Standing, event: Event) -> None:
        is_retry = task.status is TaskStatus.AWAITING_RETRY and task.occurrence == event.occurrence_id
        if task.status is TaskStatus.AWAITING_RETRY and not is_retry:
            self._tell("TaskRetryPreempted", task, event.at)
        self._tell("TaskRetryStarted" if is_retry else "TaskRunStarted", task, event.at)
        if not is_retry and event.scheduled_for is not None:
            self._lateness.started(task.name, event.scheduled_for, event.at)
        task.status, task.occurrence = TaskStatus.RUNNING, event.occurrence_id

    def _attempt_ended(self, task: _Standing, event: Event) -> None:
        if task.occurrence != event.occurrence_id:
            return
        self._lateness.ended(task.name, event.at)
        if event.status == AttemptStatus.SUCCESS:
            task.status = TaskStatus.AWAITING_RUN
            self._tell("TaskRunCompleted", task, event.at)
        elif event.status in _FAILED:
            task.status = TaskStatus.AWAITING_RETRY
            self._tell("TaskRunFailed", task, event.at, event.text)
        self._stop_waiting(task)

    def _ended(self, task: _Standing, event: Event) -> None:
        """An occurrence that waited for a retry ended without it: its place was taken, or somebody canceled it."""
        if task.status is not TaskStatus.AWAITING_RETRY or task.occurrence != event.occurrence_id:
            return
        task.status, task.occurrence = TaskStatus.AWAITING_RUN, None
        if event.status == OccurrenceStatus.SUPERSEDED:
            self._tell("TaskRetryPreempted", task, event.at)

    def _tell(self, name: str, task: _Standing, at: datetime, error: str = "") -> None:
        self._teller.tell(DeclarativeEvent(name, at, task.name, error))
