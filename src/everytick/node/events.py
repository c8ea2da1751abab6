"""What was committed, told once, after the commit: to hooks, meters and streams of this process.

An event is a hint for people and meters; nothing is decided by it. Where nobody listens
none is made.
"""

import logging
from collections.abc import Callable, Iterator
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import TypeAlias

from everytick.domain.steps import Step
from everytick.domain.values import value
from everytick.stores.base import Claim

_log = logging.getLogger("everytick.events")


class Happening(StrEnum):
    """What happened."""

    CREATED = "created"
    SKIPPED = "skipped"
    STARTED = "started"
    ATTEMPT_ENDED = "attempt_ended"
    RETRY_PLANNED = "retry_planned"
    ENDED = "ended"
    LOST = "lost"
    STORE_LOST = "store_lost"
    STORE_FOUND = "store_found"
    DUPLICATE = "duplicate"
    DEFINITION_BROKEN = "definition_broken"
    DEFINITION_MENDED = "definition_mended"


@value(frozen=True)
class Event:
    """One thing that happened to a job, or to the node where `job` is empty.

    `status` is the status after it, `text` what a person would want to know. Instants that did
    not run for one reason are one event: `count` says how many (None: more than 10,000), `first`
    and `scheduled_for` are the first and the last of them.
    """

    kind: Happening
    at: datetime
    job: str = ""
    occurrence_id: str | None = None
    scheduled_for: datetime | None = None
    task: str | None = None
    attempt: int | None = None
    status: str = ""
    text: str = ""
    count: int | None = 1
    first: datetime | None = None


def events_of(claim: Claim, step: Step, at: datetime) -> Iterator[Event]:
    """Give what a committed step of the claim means to others."""
    seen = claim.snapshot
    about = partial(Event, at=at, job=claim.job.name, occurrence_id=seen.id, scheduled_for=seen.scheduled_for)
    for row in step.rows:
        if row.attempt is not None and row.ended_at is not None:
            ended = partial(about, Happening.ATTEMPT_ENDED, task=row.task, attempt=row.number)
            yield ended(status=row.attempt, text=row.error or "")
    for wait in step.waits:
        yield about(Happening.RETRY_PLANNED, task=wait.task, attempt=wait.number, text=f"at {wait.until}")
    if step.resume_at is not None:
        # Parked: whoever claims it at that time goes on, so the step itself waits for nothing.
        for task, run in zip(seen.rules.tasks, step.after.runs, strict=True):
            if run.resume_at is not None:
                planned = partial(about, Happening.RETRY_PLANNED, task=task.name, attempt=run.attempts + 1)
                yield planned(text=f"at {run.resume_at}")
    if step.end is not None:
        yield about(Happening.ENDED, status=step.end.status, text=step.end.error or "")


def start_of(claim: Claim, task: str, attempt: int, at: datetime) -> Event:
    """Return that an attempt begins."""
    seen = claim.snapshot
    return Event(Happening.STARTED, at, claim.job.name, seen.id, seen.scheduled_for, task=task, attempt=attempt)


Listener: TypeAlias = Callable[[Event], None]


class Events:
    """Passes events on to whoever listens; a listener that raises is logged and disturbs nobody."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self.wanted = False
        """Whether anybody listens."""

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell the listener of everything from now on; call what is returned to stop."""
        self._listeners = [*self._listeners, listener]
        self.wanted = True

        def stop() -> None:
            self._listeners = [each for each in self._listeners if each is not listener]
            self.wanted = bool(self._listeners)

        return stop

    def tell(self, event: Event) -> None:
        """Pass the event on."""
        for listener in self._listeners:
            try:
                listener(event)
            except BaseException:  # noqa: BLE001, it is not our code
                _log.exception("a listener of events failed on %s", event.kind)
