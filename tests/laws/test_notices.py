"""Notices by the history: one per outage and one at its end, in whatever order the ends are reported."""

from datetime import timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from everytick.deciding.notices import NEWS, Notice, notices_of
from everytick.domain.notices import NoticeKind
from everytick.domain.occurrence import Occurrence
from everytick.domain.statuses import ENDED, FAILURES, OccurrenceStatus
from tests.laws.worlds import BEGIN

Told = set[tuple[NoticeKind, str]]


def _end(place: int, status: OccurrenceStatus, ended: int) -> Occurrence:
    at = BEGIN + timedelta(seconds=ended)
    return Occurrence(f"occ_{place:03}", "job_1", 1, BEGIN + timedelta(seconds=place), status, ended_at=at)


@st.composite
def histories(draw: st.DrawFn) -> list[Occurrence]:
    """Draw ended occurrences in the order of their ends; some end at the same moment."""
    statuses = draw(st.lists(st.sampled_from(sorted(ENDED)), max_size=12))
    places = draw(st.permutations(range(len(statuses))))
    moments = sorted(draw(st.lists(st.integers(0, 8), min_size=len(statuses), max_size=len(statuses))))
    found = [_end(*parts) for parts in zip(places, statuses, moments, strict=True)]
    return sorted(found, key=lambda each: (each.ended_at, each.id))


def _due(history: list[Occurrence]) -> Told:
    """Walk the history once: an outage begins with a failure and lasts until the next success."""
    found: Told = set()
    is_failing = False
    for end in history:
        if end.status in FAILURES and not is_failing:
            found.add((NoticeKind.ON_FAILURE, end.id))
        if end.status is OccurrenceStatus.COMPLETED and is_failing:
            found.add((NoticeKind.ON_RECOVERY, end.id))
        if end.status in NEWS:
            is_failing = end.status in FAILURES
    return found


def _told(notices: tuple[Notice, ...]) -> Told:
    return {(each.kind, each.occurrence.id) for each in notices}


@given(histories(), st.randoms(use_true_random=False))
def test_every_order_of_reports_tells_of_each_outage_and_each_recovery_once(
    history: list[Occurrence], random: Random
) -> None:
    """A18: reports come late, twice and out of order; the notices are those of one walk through the history."""
    reports = [*history, *random.choices(history, k=3)] if history else []
    random.shuffle(reports)
    told: Told = set()
    for report in reports:
        seen = list(history)
        random.shuffle(seen)
        told |= _told(notices_of(report.id, seen))
    assert told == _due(history)


@given(histories())
def test_ends_that_are_reported_as_they_come_are_told_of_once(history: list[Occurrence]) -> None:
    """A18: the notices of each report, taken together, have no notice twice and none too many."""
    told = [notice for at, end in enumerate(history, 1) for notice in notices_of(end.id, history[:at])]
    assert len(told) == len(_due(history))
    assert _told(tuple(told)) == _due(history)


@given(histories(), st.randoms(use_true_random=False))
def test_an_end_that_is_committed_late_hides_no_outage_and_no_recovery(
    history: list[Occurrence], random: Random
) -> None:
    """A18: each end is reported once it is there, by what is there then; what the whole history says is told."""
    committed: list[Occurrence] = []
    told: Told = set()
    for end in random.sample(history, len(history)):
        committed.append(end)
        told |= _told(notices_of(end.id, committed))
    assert told >= _due(history)


@given(histories())
def test_an_end_that_did_not_run_is_no_news(history: list[Occurrence]) -> None:
    """A18: skipped, missed, superseded and canceled neither begin nor end an outage."""
    news = [end for end in history if end.status in NEWS]
    for end in history:
        notices = notices_of(end.id, history)
        assert notices == (notices_of(end.id, news) if end in news else ())


@given(histories())
def test_each_success_is_told_once_where_it_is_wanted(history: list[Occurrence]) -> None:
    """A18: by its own report and by no other, beside the notices of outages."""
    told = [notice for end in history for notice in notices_of(end.id, history, tells_success=True)]
    successes = [notice.occurrence.id for notice in told if notice.kind is NoticeKind.ON_SUCCESS]

    assert successes == [end.id for end in history if end.status is OccurrenceStatus.COMPLETED]
    assert _told(tuple(told)) - {(NoticeKind.ON_SUCCESS, id_) for id_ in successes} == _due(history)
