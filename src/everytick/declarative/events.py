"""The events of the specification, in order: three state machines that follow from the events of the core.

A task's events follow from those of its occurrences. Nothing is decided here: a listener that raises changes nothing.
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
    """The states of a scheduler, one at a time (S2-014)."""

    UNINITIALIZED = "Uninitialized"
    INITIALIZING = "Initializing"
    RUNNING = "Running"
    STOPPING = "Stopping"
    STOPPED = "Stopped"


class PollingState(StrEnum):
    """Whether schedules are evaluated (S2-026)."""

    INACTIVE = "Inactive"
    ACTIVE = "Active"
    STOPPING = "Stopping"


class TaskStatus(StrEnum):
    """The states of a task (S2-018)."""

    AWAITING_RUN = "AwaitingRun"
    RUNNING = "Running"
    AWAITING_RETRY = "AwaitingRetry"


@value
class DeclarativeEvent:
    """One step of the scheduler, of its polling, or of the task that `task` names.

    `at` is the store's time; `error` is the text of a failure.
    """

    name: str
    at: datetime
    task: str | None = None
    error: str = ""


TaskListener: TypeAlias = Callable[[DeclarativeEvent], object]

_FAILED = (AttemptStatus.FAILED, AttemptStatus.TIMEOUT, AttemptStatus.CANCELED, AttemptStatus.LOST)


class EventDelivery:
    """Passes events to the listener, in their order. Events of tasks can be held back."""

    def __init__(self, listener: TaskListener | None) -> None:
        self._listener = listener
        self._held: list[DeclarativeEvent] | None = None
        self._unheard: deque[tuple[str, Awaitable[object]]] = deque()
        self._hearing: asyncio.Task[None] | None = None

    def hold(self) -> None:
        """Hold events of tasks back until `release`."""
        self._held = []

    def release(self) -> None:
        """Deliver the events that were held back."""
        held, self._held = self._held or [], None
        for event in held:
            self.tell(event)

    def drop(self) -> None:
        """Drop the events that were held back: their effects were undone."""
        self._held = None

    def tell(self, event: DeclarativeEvent) -> None:
        """Deliver the event now, or at the release if it is of a task and those are held back."""
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
        """Wait until an async listener has handled every event. Called by the listener itself, it does not wait."""
        if self._hearing is not None and self._hearing is not asyncio.current_task():
            await asyncio.wait([self._hearing])

    def _await(self, name: str, answer: Awaitable[object]) -> None:
        """Await the answers of an async listener one after the other, in their order."""
        self._unheard.append((name, answer))
        if self._hearing is None or self._hearing.done():
            with suppress(RuntimeError):  # without a running loop it is awaited with the next event
                self._hearing = asyncio.get_running_loop().create_task(self._hear())

    async def _hear(self) -> None:
        while self._unheard:
            name, answer = self._unheard.popleft()
            try:
                await answer
            except Exception:  # noqa: BLE001, it is not our code
                _log.exception("a listener of the scheduler failed on %s; the scheduler goes on", name)


class _TaskState:
    """The status of one task, and its occurrence."""

    __slots__ = ("deferred", "name", "occurrence", "status")

    def __init__(self, name: str) -> None:
        self.name, self.status = name, TaskStatus.AWAITING_RUN
        self.occurrence: str | None = None
        self.deferred: list[Event] = []


class TaskEvents:
    """Turns the core's events of occurrences into the specification's events of tasks."""

    def __init__(
        self,
        names: Mapping[str, str],
        teller: EventDelivery,
        lateness: Lateness,
        later: Callable[[Callable[[], None]], object],
    ) -> None:
        """`names` has the task of each job by the job's name. `later` calls a function after a delay."""
        self._tasks = {job: _TaskState(task) for job, task in names.items()}
        self._teller, self._lateness, self._later = teller, lateness, later

    def awaits_retry(self, job: str, occurrence_id: str) -> None:
        """Set the state of a task that an earlier instance left waiting for a retry."""
        task = self._tasks[job]
        task.status, task.occurrence = TaskStatus.AWAITING_RETRY, occurrence_id

    def heard(self, event: Event) -> None:
        """Handle one event of the core. Events of other jobs are ignored."""
        task = self._tasks.get(event.job)
        if task is None:
            return
        if event.kind is Happening.STARTED:
            self._started(task, event)
        elif event.kind is Happening.ATTEMPT_ENDED:
            self._attempt_ended(task, event)
        elif event.kind is Happening.ENDED:
            self._ended(task, event)

    def _started(self, task: _TaskState, event: Event) -> None:
        if task.status is TaskStatus.RUNNING and task.occurrence != event.occurrence_id:
            # The occurrence before this one has ended, or this one could not have started: deliver its end first.
            # If another instance took it over, no end is told here: then deliver this start after the delay.
            task.deferred.append(event)
            self._later(partial(self._stop_waiting, task))
            return
        self._begun(task, event)

    def _stop_waiting(self, task: _TaskState) -> None:
        deferred, task.deferred = task.deferred, []
        for event in deferred:
            self._begun(task, event)

    def _begun(self, task: _TaskState, event: Event) -> None:
        is_retry = task.status is TaskStatus.AWAITING_RETRY and task.occurrence == event.occurrence_id
        if task.status is TaskStatus.AWAITING_RETRY and not is_retry:
            self._tell("TaskRetryPreempted", task, event.at)
        self._tell("TaskRetryStarted" if is_retry else "TaskRunStarted", task, event.at)
        if not is_retry and event.scheduled_for is not None:
            self._lateness.started(task.name, event.scheduled_for, event.at)
        task.status, task.occurrence = TaskStatus.RUNNING, event.occurrence_id

    def _attempt_ended(self, task: _TaskState, event: Event) -> None:
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

    def _ended(self, task: _TaskState, event: Event) -> None:
        """Handle the end of an occurrence that waited for a retry: it was superseded or canceled."""
        if task.status is not TaskStatus.AWAITING_RETRY or task.occurrence != event.occurrence_id:
            return
        task.status, task.occurrence = TaskStatus.AWAITING_RUN, None
        if event.status == OccurrenceStatus.SUPERSEDED:
            self._tell("TaskRetryPreempted", task, event.at)

    def _tell(self, name: str, task: _TaskState, at: datetime, error: str = "") -> None:
        self._teller.tell(DeclarativeEvent(name, at, task.name, error))
