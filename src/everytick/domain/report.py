"""The Execution Report: what became of an occurrence and each of its tasks, told when it has ended."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from everytick.domain.durations import format_duration
from everytick.domain.occurrence import Attempt
from everytick.domain.payload import Payload
from everytick.domain.policies import Failure
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus, RunStatus
from everytick.domain.values import value

GroupOutcome: TypeAlias = Literal["completed", "failed", "canceled", "skipped"]

_O = OccurrenceStatus
_GROUP: Mapping[OccurrenceStatus, GroupOutcome] = {
    _O.COMPLETED: "completed",
    _O.COMPLETED_WITH_ERRORS: "completed",
    _O.FAILED: "failed",
    _O.FAILED_STALE: "failed",
    _O.CANCELED: "canceled",
    _O.SKIPPED: "skipped",
    _O.MISSED: "skipped",
    _O.SUPERSEDED: "skipped",
}


def group_outcome(status: OccurrenceStatus) -> GroupOutcome:
    """Return the one of four words that an end comes to, in reports and on counters."""
    assert status in _GROUP, f"an occurrence that is {status} has not ended"
    return _GROUP[status]


@value(frozen=True)
class AttemptReport:
    """What became of one attempt of a task."""

    number: int
    status: AttemptStatus
    started_at: datetime | None
    ended_at: datetime | None
    error: str | None = None

    @property
    def duration(self) -> timedelta | None:
        """From its start to its end; None where one of them is not known."""
        return None if self.started_at is None or self.ended_at is None else self.ended_at - self.started_at


AttemptReports: TypeAlias = Mapping[str, tuple[AttemptReport, ...]]
"""The attempts of each task, by its name."""


def attempt_reports(attempts: Iterable[tuple[str, Attempt]]) -> AttemptReports:
    """Return what a report tells of these attempts, each given with its task and in order."""
    told: dict[str, tuple[AttemptReport, ...]] = {}
    for task, attempt in attempts:
        report = AttemptReport(attempt.number, attempt.status, attempt.started_at, attempt.ended_at, attempt.error)
        told[task] = (*told.get(task, ()), report)
    return told


@value(frozen=True)
class TaskReport:
    """What became of one task.

    `result` is what it returned. `attempts` counts lost and canceled ones too, and `attempt_reports` tell each of them;
    `waits` are those between them that a failure brought, the newest of them where there
    were very many. `because_of` names the peer whose failure canceled or skipped it.
    """

    id: str
    name: str
    status: RunStatus
    attempts: int
    started_at: datetime | None
    ended_at: datetime | None
    error: str | None
    waits: tuple[timedelta, ...] = ()
    because_of: str | None = None
    attempt_reports: tuple[AttemptReport, ...] = ()
    returned: Payload | None = None

    @property
    def result(self) -> Any:
        """What the task returned, a fresh copy; None where it returned nothing or did not succeed."""
        return None if self.returned is None else self.returned.read()

    @property
    def duration(self) -> timedelta | None:
        """From the first start to the end, waits included; None where it never started."""
        return None if self.started_at is None or self.ended_at is None else self.ended_at - self.started_at

    def describe(self) -> str:
        """Say it in a sentence, as a log wants it."""
        said = f"task '{self.name}' {_ENDED_AS.get(self.status, self.status)}"
        if self.status is RunStatus.SUCCESS and not self.attempts:
            return f"task '{self.name}' was not run again: its result was kept"
        if self.attempts > 1:
            said += f" after {self.attempts} attempts"
        if self.waits:
            said += f" with waits of {', '.join(format_duration(wait) for wait in self.waits)}"
        if self.because_of is not None:
            said += f" because task '{self.because_of}' failed"
        return f"{said}: {self.error}" if self.error else said


_ENDED_AS = {RunStatus.SUCCESS: "succeeded", RunStatus.TIMEOUT: "timed out", RunStatus.CANCELED: "was canceled"}


@value(frozen=True)
class Report:
    """What became of an occurrence; it names every task of its job."""

    occurrence_id: str
    scheduled_for: datetime
    status: OccurrenceStatus
    failure: Failure
    started_at: datetime | None
    ended_at: datetime | None
    error: str | None
    is_recovery_run: bool
    tasks: tuple[TaskReport, ...]

    @property
    def outcome(self) -> GroupOutcome:
        """The group's outcome."""
        return group_outcome(self.status)

    @property
    def duration(self) -> timedelta | None:
        """From the first start to the end; None where nothing ever started."""
        return None if self.started_at is None or self.ended_at is None else self.ended_at - self.started_at

    def task(self, name: str) -> TaskReport:
        """Return what became of the task of this name."""
        for task in self.tasks:
            if task.name == name:
                return task
        raise KeyError(name)

    def canceled_by(self, name: str) -> tuple[str, ...]:
        """Return the peers that the failure of this task canceled while they ran or waited for a retry."""
        return tuple(task.name for task in self.tasks if task.because_of == name and task.status is RunStatus.CANCELED)

    def describe(self) -> str:
        """Say it in a sentence per task, and what each failure did to its peers."""
        said = [f"occurrence {self.occurrence_id} {self.status}" + (f": {self.error}" if self.error else "")]
        for task in self.tasks:
            peers = len(self.canceled_by(task.name))
            said.append(task.describe() + (f"; canceled {peers} other task{'s' * (peers > 1)}" if peers else ""))
        return "\n".join(said)


ExecutionReport = Report
"""The report by the name that its readers know it under."""
