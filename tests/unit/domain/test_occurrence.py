"""Occurrence, TaskRun and Attempt: records with ids that every node makes alike."""

from datetime import UTC, datetime

import pytest

from everytick.domain import ids
from everytick.domain.config import Level, overrides
from everytick.domain.job import define_job, define_task
from everytick.domain.occurrence import Attempt, Cause, TaskRun, occurrence_of
from everytick.domain.retry import Retry
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus, RunStatus, move
from everytick.schedules.interval import every

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
JOB = define_job(
    "etl",
    every("1h"),
    policies={"task_timeout": "1m", "priority": 3},
    tasks=[define_task("etl", "load", policies={"task_timeout": "2m"})],
)
LOAD = JOB.task("load")


def test_an_occurrence_is_named_by_its_job_and_instant() -> None:
    """S0-004, S0-008."""
    occurrence = occurrence_of(JOB, NOON)
    assert occurrence.id == ids.occurrence_id(JOB.id, NOON)
    assert (occurrence.job_id, occurrence.version, occurrence.scheduled_for) == (JOB.id, 1, NOON)
    assert (occurrence.status, occurrence.cause, occurrence.line_at) == ("pending", "schedule", NOON)
    assert (occurrence.owner, occurrence.started_at, occurrence.ended_at, occurrence.error) == (None, None, None, None)
    assert (occurrence.fence, occurrence.late, occurrence.overrides.items) == (0, False, ())
    assert occurrence == occurrence_of(JOB, NOON)


def test_an_occurrence_is_printed_in_one_short_line() -> None:
    """B29: its repr has all fields, some 1,500 characters."""
    occurrence = occurrence_of(JOB, NOON)

    assert str(occurrence) == f"{occurrence.id} of {JOB.id} for 2024-01-01T12:00:00+00:00: pending (schedule)"


@pytest.mark.parametrize("cause", list(Cause))
@pytest.mark.parametrize("late", [False, True])
def test_only_what_the_schedule_named_and_came_late_is_a_recovery_run(cause: Cause, late: bool) -> None:
    """S0-099: late is not a cause."""
    occurrence = occurrence_of(JOB, NOON, late=late)
    record = type(occurrence)(occurrence.id, JOB.id, 1, NOON, cause=cause, late=late)
    assert record.is_recovery_run == (late and cause == "schedule")


def test_the_causes_are_the_contract_s() -> None:
    """Words of planning."""
    assert [str(cause) for cause in Cause] == "schedule trigger replay backfill create restart".split()


def test_an_occurrence_knows_the_whole_config_it_runs_with() -> None:
    """S0-080: the version's settings under its own overrides, for the job and for each task."""
    own = overrides(Level.OCCURRENCE, {"priority": 9, "retry": Retry(1, "1s"), "payload": {"x": 1}})
    occurrence = occurrence_of(JOB, NOON)
    record = type(occurrence)(occurrence.id, JOB.id, 1, NOON, overrides=own)

    whole, load = record.settings(JOB), record.settings(JOB, LOAD)
    assert (whole.priority, whole.origin("priority")) == (9, Level.OCCURRENCE)
    assert (load.retry, load.origin("retry")) == (Retry(1, "1s"), Level.OCCURRENCE)
    assert (load.task_timeout, load.origin("task_timeout")) == (LOAD.settings.task_timeout, Level.TASK)
    assert occurrence.settings(JOB) == JOB.settings
    assert occurrence.settings(JOB, LOAD) == LOAD.settings


def test_an_occurrence_runs_under_its_own_version_only() -> None:
    """S0-116: the definition of another version would be the wrong config."""
    other = define_job("other", every("1h"))
    with pytest.raises(AssertionError, match="does not run under other"):
        occurrence_of(JOB, NOON).settings(other)


def test_a_run_is_named_by_occurrence_and_task_and_counts_its_retries() -> None:
    """S0-005, S0-009, S0-089, C-33: retry_count = attempts − 1."""
    occurrence = occurrence_of(JOB, NOON)
    fresh = TaskRun(occurrence.id, LOAD.id)
    assert (fresh.id, fresh.status, fresh.attempts) == (ids.run_id(occurrence.id, LOAD.id), "pending", 0)
    assert [TaskRun(occurrence.id, LOAD.id, attempts=n).retry_count for n in (0, 1, 4)] == [0, 0, 3]


def test_an_attempt_is_named_by_run_and_number() -> None:
    """S0-006, S0-010, C-33: numbered from 1."""
    run = TaskRun(occurrence_of(JOB, NOON).id, LOAD.id)
    assert Attempt(run.id, 2).id == ids.attempt_id(run.id, 2)
    with pytest.raises(AssertionError, match="counted from 1, got 0"):
        Attempt(run.id, 0)


def test_records_move_by_the_one_table() -> None:
    """The old record stays what it was."""
    occurrence = occurrence_of(JOB, NOON)
    running = move(occurrence, OccurrenceStatus.RUNNING)
    assert (occurrence.status, running.status, running.id) == ("pending", "running", occurrence.id)
    run = move(TaskRun(occurrence.id, LOAD.id), RunStatus.RUNNING)
    attempt = move(Attempt(run.id, 1, AttemptStatus.RUNNING), AttemptStatus.LOST)
    assert (run.status, attempt.status) == ("running", "lost")
    with pytest.raises(AssertionError, match="pending cannot become completed"):
        move(occurrence, OccurrenceStatus.COMPLETED)
