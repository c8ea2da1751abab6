"""The decision trail: one fact after another, from what was stored and from explain."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from everytick import Everytick, Retry, cron
from everytick.deciding.explanation import Explanation, Verdict
from everytick.domain.decisions import Why
from everytick.domain.ids import run_id
from everytick.domain.job import Job
from everytick.domain.occurrence import Attempt, Cause, Occurrence, TaskRun, occurrence_of
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus, RunStatus
from everytick.stores.base import Whole
from everytick.web.pictures.trail import TrailStep, localized, trail
from everytick.web.words import Viewer

AT = datetime(2026, 10, 23, 0, 30, tzinfo=UTC)
VIEWER = Viewer("Europe/Berlin", ZoneInfo("Europe/Berlin"), datetime(2026, 10, 23, 12, 7, tzinfo=UTC))
MINUTE = timedelta(minutes=1)


def etl() -> Job:
    tick = Everytick("memory://", name="shop", timezone="Europe/Berlin")
    definition = tick.define("etl", cron("30 2 * * *"), retry=Retry(2, "1m"))
    definition.command("extract", "true").command("load", "true").command("report", "true")
    return definition.job


def whole(job: Job, occurrence: Occurrence, **statuses: str) -> Whole:
    runs, attempts = [], []
    for task in job.tasks:
        status = RunStatus(statuses.get(task.name, "success"))
        runs.append(TaskRun(occurrence.id, task.id, status, task=task.name))
        if status is RunStatus.FAILED:
            for number in (1, 2, 3):
                begin = AT + 5 * number * MINUTE
                error = "Traceback (most recent call last):\n  File\nOSError: timed out"
                attempts.append(
                    (
                        task.name,
                        Attempt(
                            run_id(occurrence.id, task.id),
                            number,
                            AttemptStatus.FAILED,
                            begin,
                            begin + 4 * MINUTE,
                            error,
                        ),
                    )
                )
    return Whole(occurrence, tuple(runs), tuple(attempts))


def explained(verdict: Verdict, said: str = "") -> Explanation:
    return Explanation("etl", AT, verdict, f"etl at {AT.isoformat()}: {said}")


def ended(job: Job, status: str, **more: object) -> Occurrence:
    found = occurrence_of(job, AT)
    return replace(
        found,
        status=OccurrenceStatus(status),
        created_at=AT,
        started_at=AT + timedelta(seconds=0.4),
        ended_at=AT + 21 * MINUTE,
        node="node-c",
        fence=18213,
        reason=str(Why.ON_TIME),
        **more,  # type: ignore[arg-type]
    )


def facts(steps: list[TrailStep]) -> list[tuple[str, str]]:
    return [(step.mark, step.fact) for step in steps]


def test_a_failed_occurrence_tells_how_it_came_to_that() -> None:
    job = etl()
    found = whole(job, ended(job, "failed", error="x"), load="failed", report="skipped")
    steps = trail(explained(Verdict.RAN), found, job, VIEWER, next_run=AT + timedelta(days=1))

    assert facts(steps) == [
        ("planned", "The schedule named 02:30"),
        ("completed", "It was on time"),
        ("completed", "Nothing stood against it"),
        ("completed", "It got a place"),
        ("failed", "Task load failed three times"),
        ("failed", "So the occurrence failed"),
        ("planned", "Next: Sat 02:30"),
    ]
    by_fact = {step.fact: step.evidence for step in steps}
    assert "30 2 * * *" in by_fact["The schedule named 02:30"]
    assert by_fact["It was on time"] == "started 400 ms after its instant; grace is 1m"
    assert "node-c took it at 02:30:00; fence 18,213" in by_fact["It got a place"]
    assert by_fact["Task load failed three times"] == (
        "OSError: timed out; retry allows 3 attempts (job); waits of 1 min and 1 min"
    )
    assert "failure fail_fast; report did not start" in by_fact["So the occurrence failed"]


def test_an_instant_that_did_not_run_says_the_verdict_of_explain() -> None:
    job = etl()
    occurrence = Occurrence("occ_1", job.id, 1, AT, OccurrenceStatus.MISSED, reason="missed")
    said = f"it was missed, no node was up between {AT.isoformat()} and {(AT + MINUTE).isoformat()}"
    steps = trail(explained(Verdict.MISSED, said), Whole(occurrence, (), ()), job, VIEWER)

    assert facts(steps) == [("planned", "The schedule named 02:30"), ("missed", "Missed and not made up for")]
    assert steps[1].evidence == "it was missed, no node was up between 02:30 and 02:31"


def test_a_late_run_and_a_trigger_say_so() -> None:
    job = etl()
    late = whole(job, ended(job, "completed", late=True))
    asked = replace(ended(job, "completed", cause=Cause.TRIGGER), reason="asked for, by ops, new supplier file")

    assert ("late", "It came late") in facts(trail(explained(Verdict.RAN), late, job, VIEWER))
    first = trail(explained(Verdict.RAN), Whole(asked, (), ()), job, VIEWER)[0]
    assert (first.fact, first.evidence) == (
        "It was triggered for 02:30",
        "by ops, new supplier file; version 1 of the job",
    )


def test_one_that_waits_says_for_what() -> None:
    job = etl()
    occurrence = Occurrence("occ_1", job.id, 1, AT, OccurrenceStatus.PENDING, created_at=AT, ready_at=AT)
    said = "it is pending, and no node with a free slot of its queue has claimed it yet"
    steps = trail(explained(Verdict.WAITING_FOR_A_SLOT, said), Whole(occurrence, (), ()), job, VIEWER)

    assert steps[-1] == TrailStep("pending", "Waiting for a slot", said)


@pytest.mark.parametrize("id_", ["occ_0123456789abcdef0123456789abcdef", "occ_01234567-89ab-cdef-0123-456789abcdef"])
def test_moments_in_a_text_are_on_the_clock_of_the_viewer_and_ids_are_short(id_: str) -> None:
    text = f"it ran as {id_}, from 2026-10-23T00:30:00.400000+00:00"

    assert localized(text, VIEWER) == "it ran as occ_01234567, from 02:30:00"


@pytest.mark.parametrize(
    "text",
    [
        "since 2026-02-30T00:00:00Z",
        "a leap second at 2016-12-31T23:59:60Z",
        "the zero time of Go: 0001-01-01T00:00:00+02:00",
        "the last one: 9999-12-31T23:59:59Z",
        "with other digits: ٢٠٢٦-١١-١٩T١٠:٠٠:٠٠Z",
    ],
)
def test_what_only_looks_like_a_moment_of_the_viewer_stays_as_it_is(text: str) -> None:
    """Any text may come as an error or a reason: such a one made the history answer 500 to every reader."""
    assert localized(text, VIEWER) == text


def test_a_task_that_runs_again_is_not_told_as_failed() -> None:
    job = etl()
    found = whole(job, ended(job, "running"), load="failed")
    runs = tuple(replace(run, status=RunStatus.RUNNING) if run.task == "load" else run for run in found.runs)
    steps = trail(explained(Verdict.RUNNING), replace(found, runs=runs), job, VIEWER)

    assert ("awaiting_retry", "Task load failed three times, and is tried again") in facts(steps)
