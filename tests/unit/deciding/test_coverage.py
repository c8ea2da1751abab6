"""The ledger of a job's data: every instant once, done, missing, under way or done twice."""

from datetime import UTC, datetime, timedelta

from everytick.deciding.coverage import CoverageState, coverage_spans
from everytick.domain.occurrence import Cause
from everytick.domain.questions import Covered
from everytick.domain.statuses import OccurrenceStatus

MIDNIGHT = datetime(2026, 3, 5, tzinfo=UTC)
_S, _C = OccurrenceStatus, CoverageState


def hour(number: int) -> datetime:
    return MIDNIGHT + timedelta(hours=number)


def run(number: int, status: OccurrenceStatus = _S.COMPLETED, since: int | None = None, id_: str = "") -> Covered:
    after = hour(number - 1 if since is None else since)
    return Covered(id_ or f"occ_{number}", after, hour(number), status, Cause.SCHEDULE, hour(number))


def ledger(last: int, *runs: Covered) -> list[tuple[int, int, CoverageState, int, str]]:
    named = [(hour(number), hour(number - 1)) for number in range(1, last + 1)]
    return [
        (each.after.hour, each.through.hour, each.state, each.count, each.why) for each in coverage_spans(named, runs)
    ]


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
