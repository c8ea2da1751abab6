"""When a job runs next."""

from dataclasses import replace
from datetime import timedelta

import pytest

from everytick.domain.snapshots import Adjustment, AdjustmentKind, Edition, Missed, PausedSpan, Rescheduled
from everytick.domain.upcoming import next_run, pause_at, upcoming
from tests.unit.deciding.planning import at, job, snapshot_of

NOW = at("09:30")


def test_the_next_instants_are_those_of_the_schedule() -> None:
    """None before now, though they may not be decided yet."""
    assert upcoming(snapshot_of(job(), at("07:00")), NOW, 2) == [at("10:00"), at("11:00")]
    assert upcoming(snapshot_of(job(), at("07:00")), NOW, 0) == []


def test_an_edit_that_is_to_come_is_seen() -> None:
    """The definition in force at an instant names it."""
    later = replace(job("30 * * * *"), version=2)
    editions = (Edition(job()), Edition(later, at("11:15")))
    found = upcoming(snapshot_of(job(), NOW, editions=editions), NOW, 4)
    assert found == [at("10:00"), at("11:00"), at("11:30"), at("12:30")]


def test_what_is_skipped_moved_or_rescheduled_is_seen() -> None:
    """A move that had its effect, and one onto its own place, change nothing."""
    said = (
        Adjustment(at("11:00"), AdjustmentKind.SKIP),
        Adjustment(at("12:00"), AdjustmentKind.MOVE, at("12:20")),
        Adjustment(at("13:00"), AdjustmentKind.MOVE, at("13:00")),
        Adjustment(at("09:00"), AdjustmentKind.MOVE, at("09:45"), done=True),
        Adjustment(at("08:00"), AdjustmentKind.MOVE, at("09:20")),
    )
    snapshot = snapshot_of(job(), NOW, adjustments=said, reschedule=Rescheduled(NOW, at("10:30")))
    assert upcoming(snapshot, NOW, 3) == [at("10:30"), at("12:20"), at("13:00")]


@pytest.mark.parametrize("missed", Missed)
def test_nothing_runs_inside_a_pause(missed: Missed) -> None:
    """Its end is still inside; one without an end holds everything, also what was set by hand."""
    moved = (Adjustment(at("10:00"), AdjustmentKind.MOVE, at("10:20")),)
    ending = snapshot_of(job(), NOW, pauses=(PausedSpan(at("09:00"), at("11:00"), missed),), adjustments=moved)
    assert upcoming(ending, NOW, 2) == [at("12:00"), at("13:00")]
    endless = snapshot_of(job(), NOW, pauses=(PausedSpan(at("09:00"), None, missed),), adjustments=moved)
    assert upcoming(endless, NOW, 2) == []


def test_a_removed_job_runs_no_more_and_a_complete_one_neither() -> None:
    assert upcoming(snapshot_of(job(), NOW, retire_at=at("09:40")), NOW, 2) == []
    assert upcoming(snapshot_of(job("once: 2026-11-16T09:00:00Z"), NOW), NOW, 2) == []


def test_very_many_skipped_instants_end_the_search() -> None:
    """Bounded: it does not walk through a year of seconds."""
    second = timedelta(seconds=1)
    said = tuple(Adjustment(NOW + n * second, AdjustmentKind.SKIP) for n in range(1, 10_050))
    assert upcoming(snapshot_of(job("every 1s"), NOW, adjustments=said), NOW, 1) == []


def test_a_pause_begins_after_its_start_and_holds_through_its_end() -> None:
    pause = PausedSpan(at("09:00"), at("10:00"))
    snapshot = snapshot_of(job(), NOW, pauses=(pause,))
    assert [pause_at(snapshot, at(text)) for text in ("09:00", "10:00", "10:01")] == [None, pause, None]


def test_nothing_that_was_moved_or_rescheduled_runs_while_the_job_is_disabled() -> None:
    """S1-024: a run that was set by hand is skipped like the instants of the schedule."""
    off = job(enabled=False)
    said = (Adjustment(at("10:00"), AdjustmentKind.MOVE, at("10:20")),)
    assert upcoming(snapshot_of(off, NOW, adjustments=said), NOW, 2) == []
    assert upcoming(snapshot_of(off, NOW, reschedule=Rescheduled(NOW, at("10:30"))), NOW, 2) == []


def test_the_next_run_of_what_follows_an_end_is_not_known_while_something_of_it_runs() -> None:
    """The caller may know better than the snapshot whether the job is idle."""
    snapshot = snapshot_of(job("after: 10m"), NOW)
    assert next_run(snapshot, NOW) == next(iter(upcoming(snapshot, NOW, 1)), None)
    assert next_run(snapshot, NOW, idle=False) is None
