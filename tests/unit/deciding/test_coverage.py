"""The ledger of a job's data: every instant once, done, missing, under way or done twice."""

from datetime import UTC, datetime, timedelta
from typing import Any

from everytick import cron
from everytick.deciding.coverage import CoverageState, coverage_spans, retention_floor
from everytick.domain.decisions import Span, Why
from everytick.domain.job import define_job
from everytick.domain.occurrence import Cause
from everytick.domain.questions import Covered
from everytick.domain.snapshots import Edition
from everytick.domain.statuses import OccurrenceStatus

MIDNIGHT = datetime(2026, 3, 5, tzinfo=UTC)
_S, _C = OccurrenceStatus, CoverageState


def hour(number: int) -> datetime:
    return MIDNIGHT + timedelta(hours=number)


def run(number: int, status: OccurrenceStatus = _S.COMPLETED, since: int | None = None, id_: str = "") -> Covered:
    after = hour(number - 1 if since is None else since)
    return Covered(id_ or f"occ_{number}", after, hour(number), status, Cause.SCHEDULE, hour(number))


def ledger(last: int, *runs: Covered, **known: Any) -> list[tuple[int, int, CoverageState, int, str]]:
    named = [(hour(number), hour(number - 1)) for number in range(1, last + 1)]
    spans = coverage_spans(named, runs, **known)
    return [(each.after.hour, each.through.hour, each.state, each.count, each.why) for each in spans]


def not_run(after: int, through: int, why: Why, status: OccurrenceStatus = _S.SKIPPED) -> Span:
    return Span(status, why, "", hour(after), hour(through), 1, None)


def test_instants_of_one_state_in_a_row_are_one_span() -> None:
    found = ledger(6, run(1), run(2), run(3, _S.FAILED), run(4, _S.RUNNING), run(6))
    assert found == [
        (0, 2, _C.DONE, 2, ""),
        (2, 3, _C.MISSING, 1, "failed"),
        (3, 4, _C.UNDER_WAY, 1, ""),
        (4, 5, _C.MISSING, 1, "no occurrence"),
        (5, 6, _C.DONE, 1, ""),
    ]


def test_a_compressed_run_stands_for_every_instant_it_covers() -> None:
    assert ledger(6, run(1), run(6, since=1)) == [(0, 6, _C.DONE, 6, "")]


def test_what_is_replayed_or_filled_after_a_success_is_done_twice() -> None:
    again = run(3, id_="occ_again")
    spans = coverage_spans([(hour(3), hour(2))], [run(3), again])
    assert [(each.state, each.ids) for each in spans] == [(_C.TWICE, ("occ_3", "occ_again"))]
    assert ledger(4, run(4, since=0), run(2)) == [
        (0, 1, _C.DONE, 1, ""),
        (1, 2, _C.TWICE, 1, ""),
        (2, 4, _C.DONE, 2, ""),
    ]


def test_a_second_try_makes_a_failed_instant_done() -> None:
    assert ledger(1, run(1, _S.FAILED), run(1, id_="occ_again")) == [(0, 1, _C.DONE, 1, "")]


def test_what_was_asked_for_stands_for_its_own_moment_only() -> None:
    asked = Covered("occ_t", None, hour(2) + timedelta(minutes=3), _S.COMPLETED, Cause.TRIGGER, hour(2))
    assert ledger(3, asked) == [(0, 3, _C.MISSING, 3, "no occurrence")]


def test_what_did_not_run_gives_the_reason_of_its_span() -> None:
    spans = [not_run(1, 2, Why.OVERLAP), not_run(2, 4, Why.MISSED, _S.MISSED)]
    assert ledger(5, run(1), run(5), spans=spans) == [
        (0, 1, _C.DONE, 1, ""),
        (1, 2, _C.MISSING, 1, "skipped: overlap"),
        (2, 4, _C.MISSING, 2, "missed"),
        (4, 5, _C.DONE, 1, ""),
    ]


def test_a_backfill_of_what_was_missed_makes_it_done() -> None:
    assert ledger(1, run(1), spans=[not_run(0, 1, Why.MISSED, _S.MISSED)]) == [(0, 1, _C.DONE, 1, "")]


def test_what_history_no_longer_has_is_unknown_and_not_missing() -> None:
    spans = [not_run(1, 2, Why.MISSED, _S.MISSED)]
    assert ledger(5, run(5), spans=spans, floor=hour(3)) == [
        (0, 1, _C.UNKNOWN, 1, "no longer kept"),
        (1, 2, _C.MISSING, 1, "missed"),
        (2, 3, _C.UNKNOWN, 1, "no longer kept"),
        (3, 4, _C.MISSING, 1, "no occurrence"),
        (4, 5, _C.DONE, 1, ""),
    ]


def test_what_was_named_before_the_job_was_stored_is_unknown() -> None:
    assert ledger(4, run(2), run(4), first=hour(3), floor=hour(1)) == [
        (0, 1, _C.UNKNOWN, 1, "before the job was stored"),
        (1, 2, _C.DONE, 1, ""),
        (2, 3, _C.UNKNOWN, 1, "before the job was stored"),
        (3, 4, _C.DONE, 1, ""),
    ]


def edition(retention: dict[str, Any], in_force_after: datetime | None = None) -> Edition:
    return Edition(define_job("a", cron("0 * * * *"), policies={"retention": retention}), in_force_after)


def test_the_floor_is_the_latest_moment_that_a_retention_may_have_deleted() -> None:
    """A short retention of an earlier version has deleted what the present one would keep."""
    short, long = {"success": "1h", "failure": None}, {"success": "90d", "failure": "20h"}
    assert retention_floor([edition(short)], hour(12)) == hour(11)
    assert retention_floor([edition(short), edition(long, hour(6))], hour(12)) == hour(5)
    assert retention_floor([edition({"success": None, "failure": None})], hour(12)) is None
