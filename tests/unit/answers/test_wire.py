"""Answers read back equal from their JSON, so that a client has the values that the application has."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everytick import Retry, cron, every
from everytick.answers import fleet, jobs, occurrences, runs_to_come
from everytick.answers.values import JobStatus, JobVersion, PartChange, Preview, UpcomingRun, VersionDiff
from everytick.answers.wire import data_of, json_text, plain, value_of
from everytick.deciding.coverage import CoverageLedger, CoverageSpan, CoverageState
from everytick.deciding.explanation import Explanation, Verdict
from everytick.deciding.forecast import LikelyBreach
from everytick.deciding.revise import Revision
from everytick.domain.backfills import BackfillOrder, BackfillRecord, BackfillStatus
from everytick.domain.changes import Change
from everytick.domain.config import Level, overrides
from everytick.domain.decisions import Span, Why
from everytick.domain.ids import job_id
from everytick.domain.job import define_job, define_task
from everytick.domain.limits import BrakeRecord, LimitChange, LimitRecord, Limits, Rate, Reach, ReachRecord, Releasing
from everytick.domain.nodes import NodeFacts
from everytick.domain.notes import Log, Progress
from everytick.domain.occurrence import Attempt, Cause, Occurrence, TaskRun
from everytick.domain.payload import payload
from everytick.domain.policies import Overlap
from everytick.domain.promise_policies import PromiseKind
from everytick.domain.promises import Breach
from everytick.domain.proposals import Proposal
from everytick.domain.questions import Bucket, DayTally, FailureKind, JobLengths, Tally
from everytick.domain.snapshots import Ended, PausedSpan
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus, RunStatus
from everytick.exits import Exit
from everytick.stores.base import ClaimKey, JobRecord, NodeRecord, Whole

AT = datetime(2026, 11, 17, 2, 30, tzinfo=UTC)
LATER = AT + timedelta(hours=1, microseconds=5)
JOB = define_job(
    "nightly/ä",
    cron("30 2 * * 1-5", tz="Europe/Berlin"),
    policies={"payload": {"pages": 3}, "tags": ["crm"], "retry": Retry(3, "30s"), "description": "tidies"},
    tasks=[define_task("dump", "call:shop:dump"), define_task("ship", "call:shop:ship")],
    owner="code:shop",
)
BREACH = Breach(PromiseKind.START_BY, AT, LATER, LATER, LATER, 2, "no node", "occ_1", None, True)
LIKELY = LikelyBreach(PromiseKind.FINISH_BY, AT, LATER, True, "usually takes 2h: too long")
OCCURRENCE = Occurrence(
    "occ_1",
    JOB.id,
    3,
    AT,
    OccurrenceStatus.FAILED,
    Cause.TRIGGER,
    late=True,
    covers_after=AT,
    started_at=LATER,
    error="KeyError: 'x'",
    overrides=overrides(Level.OCCURRENCE, {"payload": {"a": [1, None]}, "priority": 5}),
    reason="by ann",
    created_at=AT,
)
RUN = TaskRun("occ_1", "task_1", RunStatus.SUCCESS, 2, AT, LATER, None, AT, LATER, "dump", payload({"rows": 2}))
ATTEMPT = Attempt(
    "run_1", 2, AttemptStatus.FAILED, AT, LATER, "boom", AT, Progress(1.0, 2.0, "x"), Log("n1", "a/b.log"), "n1"
)
RECORD = JobRecord(
    JOB, 4, AT, LATER, PausedSpan(AT, LATER, reason="holiday", by="ann"), last_end=Ended(AT, AT, LATER, "occ_1")
)
STATUS = JobStatus("nightly/ä", 1, True, False, True, False, AT, LATER, 7, "boom", (BREACH,), (LIKELY,), "brake of all")
REVISION = Revision((AT,), (LATER,), (AT,), LATER, ("a",), ("b",), ("c",), (LATER,))
NODE = NodeRecord(
    "n1",
    AT,
    2,
    NodeFacts("0.1", "3.11", "2026f", "h", 7, 50, ("default",), AT, broken_files=(("a.yaml", "bad"),)),
    3,
)
ORDER = BackfillOrder("k", AT, LATER, overlap=Overlap.QUEUE, count=3, reason="why", by="ann")
BACKFILL = BackfillRecord("backfill_1", JOB.id, JOB.name, ORDER, BackfillStatus.RUNNING, AT, LATER, LATER, 10, done=1)
LIMIT = LimitRecord(5, Rate(60, timedelta(minutes=1), True), "crm is slow", "ann", AT)
LIMITS = Limits(
    AT,
    (
        ReachRecord(
            Reach(
                "tag:crm",
                LIMIT,
                (BrakeRecord(AT, None, "down", "ann"),),
                Releasing(AT, Rate(3, timedelta(hours=1)), 4, "x"),
            ),
            1,
            2,
            "full",
            LATER,
        ),
    ),
    (LimitChange(AT, "tag:crm", "limit", "why", "ann"),),
)
EXPLANATION = Explanation(
    "nightly",
    AT,
    Verdict.OVERLAP,
    "nightly at …: skipped",
    OCCURRENCE,
    Span(OccurrenceStatus.SKIPPED, Why.OVERLAP, "", AT, LATER, 1, 3),
    PausedSpan(AT),
    "occ_0",
    LATER,
    AT,
    LATER,
    (BREACH,),
    (LIKELY,),
)
VERSION = JobVersion(1, JOB, AT, "ann", None, True, False, None, (PartChange("schedule", "a", "b"),))


def _names(_: object) -> dict[str, str]:
    return {JOB.id: JOB.name}


@pytest.mark.parametrize(
    ("given", "write", "read"),
    [
        (RECORD, jobs.record_data, jobs.record_of),
        (
            UpcomingRun(AT, "occ_1", "by ann", "moved", LATER, "night"),
            lambda run: jobs.upcoming_data(run, "x"),
            jobs.upcoming_of,
        ),
        (BREACH, jobs.breach_data, jobs.breach_of),
        (LIKELY, jobs.forecast_data, jobs.forecast_of),
        (VERSION, jobs.version_record, jobs.version_of),
        (OCCURRENCE, lambda each: occurrences.occurrence_record(each, _names(each)), occurrences.occurrence_of),
        (
            Whole(OCCURRENCE, (RUN,), (("dump", ATTEMPT),)),
            lambda each: occurrences.whole_record(each, _names(each), {"a": 1}),
            occurrences.whole_of_data,
        ),
        (EXPLANATION, occurrences.explanation_record, occurrences.explanation_of),
        (NODE, lambda node: fleet.node_record(node, "alive"), fleet.node_of),
        (NodeRecord("n2", AT, 0, None, 0), lambda node: fleet.node_record(node, "stopped"), fleet.node_of),
        (LIMITS, fleet.limits_record, fleet.limits_of),
        (BACKFILL, fleet.backfill_record, fleet.backfill_of),
        (
            Proposal("p1", "the change", ("a",), "ann", AT, LATER),
            lambda it: fleet.proposal_data(it, AT),
            fleet.proposal_of,
        ),
        (
            Preview((Change("a", "changed", 2, ("schedule",)), Change("b", "kept", 1)), {"a": REVISION}, "1-2"),
            runs_to_come.preview_data,
            runs_to_come.preview_of,
        ),
        (
            VersionDiff("a", 1, 2, (PartChange("schedule", "a", "b"),), REVISION),
            runs_to_come.diff_data,
            runs_to_come.diff_of,
        ),
    ],
    ids=lambda given: type(given).__name__,
)
def test_an_answer_reads_back_equal(given: Any, write: Callable[[Any], Any], read: Callable[[Any], Any]) -> None:
    assert read(json.loads(json.dumps(plain(write(given))))) == given


@pytest.mark.parametrize(
    "given",
    [
        Tally(((OccurrenceStatus.COMPLETED, 3), (OccurrenceStatus.FAILED, 1)), True),
        Bucket(AT, "crm", Tally(((OccurrenceStatus.COMPLETED, 3),))),
        DayTally(AT.date(), Tally(), timedelta(seconds=1.5)),
        JobLengths(3, timedelta(seconds=1), timedelta(seconds=2), timedelta(seconds=3)),
        FailureKind("f", "KeyError", 2, (JOB.id,), AT, LATER, "occ_1"),
        CoverageLedger(
            "a", AT, LATER, (CoverageSpan(AT, LATER, CoverageState.MISSING, 2, "no occurrence", ("occ_1",)),)
        ),
    ],
    ids=lambda given: type(given).__name__,
)
def test_a_picture_reads_back_equal(given: Any) -> None:
    assert value_of(type(given), json.loads(json.dumps(data_of(given)))) == given


def test_the_state_of_a_job_reads_back_equal_with_its_forecasts() -> None:
    from everytick.answers.values import NodeReports

    reports = NodeReports({}, {}, {}, {}, 1)
    data = jobs.job_data(RECORD, STATUS, reports) | jobs.promise_details(RECORD, STATUS, [])

    assert jobs.status_of(json.loads(json.dumps(plain(data)))) == STATUS


def test_the_key_of_a_claim_is_told_to_nobody() -> None:
    told = json.dumps(plain(fleet.node_record(NodeRecord("n1", AT, 1, overdue=(ClaimKey(1, 2, 987654),)), "alive")))

    assert "987654" not in told
    assert json.loads(told)["overdue"] == 1


def test_a_field_that_a_newer_service_adds_is_no_obstacle() -> None:
    assert value_of(JobLengths, {"count": 1, "p5": 1, "p50": 2, "p95": 3, "p99": 4}).count == 1


def test_the_definition_is_the_text_that_stores_keep() -> None:
    simple = define_job("a", every("1h"), owner="api")

    assert data_of(simple)["id"] == job_id("a")
    assert data_of(simple)["definition"]["schedule"] == "every: 1h"


class Odd(Mapping[str, object]):
    """A mapping that is no dictionary."""

    def __getitem__(self, key: str) -> object:
        return {"at": AT, "of": (1, 2)}[key]

    def __iter__(self) -> Iterator[str]:
        return iter(("at", "of"))

    def __len__(self) -> int:
        return 2


@pytest.mark.parametrize(
    "data",
    [
        {"at": AT, "took": timedelta(seconds=1.5), "status": OccurrenceStatus.FAILED, "text": 'ä \u2028 "quoted"'},
        {"items": [data_of(OCCURRENCE), OCCURRENCE.scheduled_for], "cursor": None, "is": True, "of": 1},
        {"share": float("nan"), "items": (float("inf"), 0.1)},
        {3: 4, OccurrenceStatus.FAILED: 5},
        {("a", 1): "keys that are no text"},
        {"inner": Odd(), "some": frozenset({1}), "kind": Overlap.QUEUE, "other": object},
        [Exit.FAILED, AT.date()],
    ],
)
def test_an_answer_has_the_bytes_of_its_plain_form(data: object) -> None:
    """The encoder writes what it knows by itself, and the form stays the same."""
    wanted = json.dumps(plain(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    assert json_text(data) == wanted
