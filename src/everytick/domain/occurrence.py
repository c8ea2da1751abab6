"""Occurrence, TaskRun and Attempt: what was decided to exist, and what came of it.

Ids follow from what a record is about, so that every node names it alike. Of the config
an occurrence ran with it keeps the version and its own overrides: together with the
definition of that version they are the whole, and nothing is copied a million times.
"""

from collections.abc import Mapping
from dataclasses import field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

from everytick.domain import ids
from everytick.domain.config import Level, Overrides, Settings
from everytick.domain.job import Job, Task
from everytick.domain.notes import Log, Progress
from everytick.domain.payload import Payload
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus, RunStatus
from everytick.domain.values import value

_NOTHING = Overrides(Level.OCCURRENCE)


class Cause(StrEnum):
    """Why an occurrence exists; being late is not a cause."""

    SCHEDULE = "schedule"
    TRIGGER = "trigger"
    REPLAY = "replay"
    BACKFILL = "backfill"
    CREATE = "create"
    RESTART = "restart"


@value(frozen=True)
class Occurrence:
    """One instant of one Job that was decided to exist, or one request that was granted.

    It stands for the instants in `(covers_after, covers_through]`; `ready_at` is when it
    may start. `owner` is the node that holds it now, `node` the last one that ran it, which
    stays. `error` is why it ended as it did.
    """

    id: str
    job_id: str
    version: int
    scheduled_for: datetime
    status: OccurrenceStatus = OccurrenceStatus.PENDING
    cause: Cause = Cause.SCHEDULE
    late: bool = False
    covers_after: datetime | None = None
    covers_through: datetime | None = None
    line_at: datetime | None = None
    ready_at: datetime | None = None
    owner: str | None = None
    fence: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None
    overrides: Overrides = _NOTHING
    replay_of: str | None = None
    reason: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    node: str | None = None

    def __str__(self) -> str:
        return f"{self.id} of {self.job_id} for {self.scheduled_for.isoformat()}: {self.status} ({self.cause})"

    @property
    def is_recovery_run(self) -> bool:
        """Whether the schedule named it and it was created late; for the report, never branched on."""
        return self.late and self.cause is Cause.SCHEDULE

    @property
    def is_unverified(self) -> bool:
        """Whether a node fired it while the store was away, and only told of it afterwards."""
        return self.reason is not None and self.reason.startswith("unverified")

    @property
    def payload(self) -> Any:
        """What its request gave, a fresh copy; None where the definition's own payload counts."""
        own = self.overrides.get("payload") if self.overrides.items else None
        return own.read() if isinstance(own, Payload) else None

    def payload_under(self, job: Job) -> Any:
        """Return the payload its tasks get: what its request gave, else that of its definition."""
        own = job.settings.overridden_by(self.overrides).payload
        return None if own is None else own.read()

    def settings(self, job: Job, task: Task | None = None) -> Settings:
        """Return the config it runs with, whole: of the job in its version, or of one of that job's tasks."""
        assert (job.id, job.version) == (self.job_id, self.version), f"{self.id} does not run under {job.name}"
        return (job if task is None else task).settings.overridden_by(self.overrides)


@value(frozen=True)
class EndedOccurrence(Occurrence):
    """An occurrence that has ended, with what its tasks returned.

    `results` are by task name, in the order of the tasks; a task that did not succeed is absent.
    `result` is that of the last task; None where it returned nothing or did not succeed.
    """

    results: Mapping[str, Any] = field(default_factory=dict, compare=False)
    result: Any = field(default=None, compare=False)


def ended_with(occurrence: Occurrence, results: Mapping[str, Any], result: Any) -> EndedOccurrence:
    """Return the occurrence with what its tasks returned."""
    known = {part.name: getattr(occurrence, part.name) for part in fields(Occurrence)}
    return EndedOccurrence(**known, results=results, result=result)


@value(frozen=True)
class TaskRun:
    """One Task within one Occurrence: `task` is its name, `returned` what it returned."""

    occurrence_id: str
    task_id: str
    status: RunStatus = RunStatus.PENDING
    attempts: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    task: str = ""
    returned: Payload | None = None

    @property
    def result(self) -> Any:
        """What the task returned, a fresh copy; None where it returned nothing or did not succeed."""
        return None if self.returned is None else self.returned.read()

    @property
    def id(self) -> str:
        """Made of the occurrence and the task; equal over all attempts."""
        return ids.run_id(self.occurrence_id, self.task_id)

    @property
    def retry_count(self) -> int:
        """How many attempts came after the first."""
        return max(self.attempts - 1, 0)


@value(frozen=True)
class Attempt:
    """One try at a TaskRun, numbered from 1; a retry never overwrites an earlier one.

    `node` ran it, or handed it over to the engine that `handed_to` names, with its id there.
    """

    run_id: str
    number: int
    status: AttemptStatus = AttemptStatus.PENDING
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None
    created_at: datetime | None = None
    progress: Progress | None = None
    log: Log | None = None
    node: str | None = None
    handed_to: str | None = None

    def __post_init__(self) -> None:
        assert self.number >= 1, f"attempts of {self.run_id} are counted from 1, got {self.number}"

    @property
    def id(self) -> str:
        """Made of the run and the number."""
        return ids.attempt_id(self.run_id, self.number)


def occurrence_of(job: Job, instant: datetime, *, late: bool = False) -> Occurrence:
    """Return the occurrence of one instant of the job, as every node would name it."""
    return Occurrence(ids.occurrence_id(job.id, instant), job.id, job.version, instant, late=late, line_at=instant)
