"""The open backfill of a job: which instants it gets, in which order, how many at once, and when it is done."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from everytick.deciding.plan import plan
from everytick.domain import ids
from everytick.domain.backfills import BackfillOrder, BackfillStatus, OpenBackfill, Recent
from everytick.domain.snapshots import Adjustment, AdjustmentKind, Edition, Past, PausedSpan
from tests.unit.deciding.planning import active, at, created, instants, job, skipped, snapshot_of

TICK = timedelta(microseconds=1)
PARALLEL = {"overlap": "allow"}


def opened(after: str, through: str, recent: Recent | None = None, **order: Any) -> OpenBackfill:
    """A backfill that has made nothing yet and may make an occurrence a second."""
    asked = BackfillOrder("b", at(after), at(through), **{"rate": 60, "count": 9, "by": "ann", **order})
    backfill = OpenBackfill("backfill_3f2a1b2c-x", asked, asked.after, asked.through, 0, asked.rate, at("09:44"))
    return replace(backfill, recent=recent or Recent())


def fast(after: str, through: str, **order: Any) -> OpenBackfill:
    return opened(after, through, rate=6_000, **order)


def test_it_takes_the_place_of_its_job_while_nobody_wants_it() -> None:
    """A23: one at a time, oldest first, by its id and its instant, with who asked for how many."""
    seen = snapshot_of(job(), at("09:10"), backfill=fast("-1 09:00", "-1 12:00", reason="lost"))

    decided = plan(seen, at("09:45"))

    [only] = decided.creations
    assert (only.scheduled_for, str(only.status), str(only.cause)) == (at("-1 10:00"), "pending", "backfill")
    assert only.id == ids.occurrence_id(job().id, at("-1 10:00"))
    assert (only.covers_after, only.covers_through) == (at("-1 09:00"), at("-1 10:00"))
    assert only.detail == "by backfill 3f2a1b2c of ann, 1 of 9, lost"
    assert decided.filling is not None
    assert (decided.filling.ids, decided.filling.after) == ((only.id,), at("-1 10:00"))
    assert decided.filling.status is BackfillStatus.RUNNING
    # Its end wakes the job: no time does.
    assert decided.awaits_ends
    assert decided.wake_at == at("10:00")


def test_what_only_the_limit_of_a_plan_keeps_back_comes_with_the_next_plan() -> None:
    """A23: the instant of the schedule was all that this plan could make; a law found that it waited two seconds."""
    seen = snapshot_of(job(**PARALLEL), at("09:10"), backfill=opened("-1 09:00", "-1 12:00"))

    decided = plan(seen, at("10:00"), 1)

    assert instants(decided) == [at("10:00")]
    assert decided.wake_at == at("10:00")
    assert not decided.awaits_ends


def test_it_overlaps_where_its_job_does_as_fast_as_its_rate_allows() -> None:
    seen = snapshot_of(job(**PARALLEL), at("09:10"), backfill=opened("-1 00:00", "-1 20:00", rate=300))

    decided = plan(seen, at("09:45"))

    assert instants(decided) == [at(f"-1 {hour:02}:00") for hour in range(1, 6)]
    assert decided.wake_at == at("09:45:01")
    assert not decided.awaits_ends
    lines = [each.line_at for each in decided.creations]
    assert lines == sorted(set(lines))


def test_the_newest_comes_first_if_asked() -> None:
    seen = snapshot_of(
        job(**PARALLEL), at("09:10"), backfill=opened("-1 00:00", "-1 20:00", rate=180, newest_first=True)
    )

    decided = plan(seen, at("09:45"))

    assert instants(decided) == [at("-1 20:00"), at("-1 19:00"), at("-1 18:00")]
    assert decided.filling is not None
    assert (decided.filling.after, decided.filling.through) == (at("-1 00:00"), at("-1 18:00") - TICK)


@pytest.mark.parametrize("newest_first", [False, True])
def test_what_has_an_occurrence_is_passed_over_and_costs_no_pace(newest_first: bool) -> None:
    """A23: what is completed is left alone."""
    known = frozenset(ids.occurrence_id(job().id, at(f"-1 {hour:02}:00")) for hour in range(1, 24) if hour != 12)
    asked = replace(opened("-1 00:00", "-1 23:00", newest_first=newest_first), existing=known)

    decided = plan(snapshot_of(job(**PARALLEL), at("09:10"), backfill=asked), at("09:45"))

    assert instants(decided) == [at("-1 12:00")]
    assert decided.filling is not None
    assert decided.filling.status is BackfillStatus.FILLED


def test_again_runs_them_under_ids_of_its_own() -> None:
    seen = snapshot_of(job(), at("09:10"), backfill=opened("-1 09:00", "-1 10:00", again=True))

    [only] = plan(seen, at("09:45")).creations

    assert only.id == ids.backfill_again_id(job().id, "b", at("-1 10:00"))


def test_it_is_filled_with_the_last_one_and_the_next_backfill_begins() -> None:
    seen = snapshot_of(job(), at("09:10"), backfill=opened("-1 09:00", "-1 10:59"), more_backfills=True)

    decided = plan(seen, at("09:45"))

    assert decided.filling is not None
    assert decided.filling.status is BackfillStatus.FILLED
    assert decided.wake_at == at("09:45")


def test_one_without_an_instant_is_filled_at_once() -> None:
    decided = plan(snapshot_of(job(), at("09:10"), backfill=opened("08:10", "08:20")), at("09:45"))

    assert decided.creations == ()
    assert decided.filling is not None
    assert (decided.filling.status, decided.filling.ids) == (BackfillStatus.FILLED, ())
    assert decided.wake_at == at("10:00")


def test_it_does_not_take_the_place_of_an_instant_that_is_due() -> None:
    """The schedule's own comes first, and one of the backfill waits for its end."""
    seen = snapshot_of(job(), at("09:10"), backfill=fast("-1 09:00", "-1 12:00"))

    decided = plan(seen, at("10:00:01"))

    assert created(decided) == [(at("10:00"), "pending"), (at("-1 10:00"), "queued")]
    assert decided.awaits_ends


def test_it_waits_while_its_job_is_busy_and_stands_in_line_once_it_has_none() -> None:
    """Apache/airflow#58554: never starved. Where others always run, one of it waits with them."""
    runs = active("runs", at("09:00"))
    seen = snapshot_of(job(overlap="queue"), at("09:10"), active=(runs,), backfill=fast("-1 09:00", "-1 12:00"))

    decided = plan(seen, at("09:45"))

    assert created(decided) == [(at("-1 10:00"), "queued")]
    own = active("own", at("09:45"), "queued", "backfill")
    again = plan(replace(seen, waiting=(own,), waiting_count=1), at("09:46"))
    assert again.creations == ()
    assert again.awaits_ends


def test_an_instant_that_is_skipped_takes_no_place_in_line() -> None:
    """A law found that the place stayed empty until the occurrence ended, though the next look would have taken it."""
    runs = active("runs", at("09:00"))
    seen = snapshot_of(job(max_queued=1), at("09:10"), active=(runs,), backfill=fast("-1 09:00", "-1 12:00"))

    decided = plan(seen, at("10:00:01"))

    assert [span[2] for span in skipped(decided)] == ["skipped: overlap, behind runs"]
    assert created(decided) == [(at("-1 10:00"), "queued")]


@pytest.mark.parametrize("overlap", ["skip", "cancel_running"])
def test_an_instant_on_time_waits_for_what_fills_the_past_and_is_neither_skipped_nor_ends_it(overlap: str) -> None:
    fills = active("fills", at("09:44"), cause="backfill")
    seen = snapshot_of(job(overlap=overlap), at("09:10"), active=(fills,), backfill=fast("-1 09:00", "-1 12:00"))

    decided = plan(seen, at("10:00:01"))

    assert created(decided) == [(at("10:00"), "queued")]
    assert decided.cancels == ()


def test_it_fills_as_many_places_as_a_job_has() -> None:
    runs = active("runs", at("09:00"))
    seen = snapshot_of(
        job(overlap="queue", max_concurrent=3), at("09:10"), active=(runs,), backfill=fast("-1 00:00", "-1 12:00")
    )

    assert len(plan(seen, at("09:45")).creations) == 2


def test_a_pause_of_its_job_does_not_hold_it() -> None:
    """A23: run it while paused."""
    seen = snapshot_of(
        job(), at("09:10"), pauses=(PausedSpan(at("09:20")),), backfill=opened("-1 09:00", "-1 12:00", rate=60)
    )

    decided = plan(seen, at("09:45"))

    assert instants(decided) == [at("-1 10:00")]


def test_a_disabled_job_fills_nothing_and_a_removed_one_ends_it() -> None:
    asked = opened("-1 09:00", "-1 12:00")
    assert plan(snapshot_of(job(enabled=False), at("09:10"), backfill=asked), at("09:45")).filling is None
    removed = snapshot_of(job(), at("09:10"), backfill=asked, retire_at=at("12:00"))
    assert plan(removed, at("11:00")).filling is None
    ending = plan(removed, at("12:00"))
    assert ending.filling is not None
    assert (ending.filling.status, ending.creations) == (BackfillStatus.CANCELED, ())


def test_it_goes_on_where_the_snapshot_knows_no_more() -> None:
    """Of very many occurrences a snapshot names the first: the plan passes them and comes straight back."""
    known = frozenset(ids.occurrence_id(job().id, at(f"-1 {hour:02}:00")) for hour in range(1, 6))
    asked = replace(opened("-1 00:00", "-1 23:00"), existing=known, known_through=at("-1 05:00"))

    decided = plan(snapshot_of(job(**PARALLEL), at("09:10"), backfill=asked), at("09:45"))

    assert decided.creations == ()
    assert decided.filling is not None
    assert (decided.filling.after, decided.filling.status) == (at("-1 05:00"), BackfillStatus.RUNNING)
    assert decided.wake_at == at("09:45")


@pytest.mark.parametrize("newest_first", [False, True])
def test_the_definitions_of_their_time_name_them(newest_first: bool) -> None:
    """An old version named the half hours until 11:00 of yesterday."""
    old, new = job("30 * * * *"), job()
    asked = opened("-1 09:00", "-1 12:30", newest_first=newest_first, rate=6_000)
    past = Past("b", (Edition(old),))
    seen = snapshot_of(new, at("09:10"), backfill=asked, pasts=(past,))
    seen = replace(seen, editions=(Edition(job(**PARALLEL), at("-1 11:00")),))

    decided = plan(seen, at("09:45"))

    wanted = [at("-1 09:30"), at("-1 10:30"), at("-1 12:00")]
    assert instants(decided) == (wanted[::-1] if newest_first else wanted)
    now = plan(replace(seen, backfill=replace(asked, order=replace(asked.order, as_of_now=True))), at("09:45"))
    assert sorted(instants(now)) == [at(f"-1 {hour}:00") for hour in (10, 11, 12)]


@pytest.mark.parametrize("newest_first", [False, True])
def test_it_goes_on_where_the_definitions_are_known_no_further(newest_first: bool) -> None:
    asked = opened("-1 09:00", "-1 12:30", newest_first=newest_first, rate=6_000)
    known = at("-1 11:00")
    old = (Edition(job("30 * * * *")),)
    past = Past("b", old, since=known) if newest_first else Past("b", old, through=known)
    seen = snapshot_of(job(**PARALLEL), at("09:10"), backfill=asked, pasts=(past,))
    seen = replace(seen, editions=(Edition(job(**PARALLEL), at("-1 11:30")),))

    decided = plan(seen, at("09:45"))

    assert decided.filling is not None
    assert decided.wake_at == at("09:45")
    left = decided.filling.after, decided.filling.through
    if newest_first:
        assert (instants(decided), left) == ([at("-1 12:00"), at("-1 11:30")], (at("-1 09:00"), at("-1 11:00")))
    else:
        assert (instants(decided), left) == ([at("-1 09:30"), at("-1 10:30")], (at("-1 11:00"), at("-1 12:30")))


def test_an_instant_that_was_moved_is_not_filled() -> None:
    moved = Adjustment(at("-1 10:00"), AdjustmentKind.MOVE, at("12:00"))
    seen = snapshot_of(job(), at("09:10"), backfill=opened("-1 09:00", "-1 10:00"), adjustments=(moved,))

    assert instants(plan(seen, at("09:45"))) == []


def test_an_instant_that_is_due_and_asked_for_is_created_once_by_the_schedule() -> None:
    seen = snapshot_of(job(**PARALLEL), at("09:10"), backfill=fast("09:30", "10:00"))

    decided = plan(seen, at("10:00:01"))

    assert [(each.scheduled_for, str(each.cause)) for each in decided.creations] == [(at("10:00"), "schedule")]
    assert decided.filling is not None
    assert (decided.filling.ids, decided.filling.status) == ((), BackfillStatus.FILLED)


def test_an_instant_that_the_schedule_creates_late_takes_no_place_of_the_backfill() -> None:
    asked = fast("06:10", "08:10", newest_first=True)
    seen = snapshot_of(job(overlap="queue", max_concurrent=2), at("07:10"), backfill=asked)

    decided = plan(seen, at("08:45"))

    assert [(each.scheduled_for, str(each.cause)) for each in decided.creations] == [
        (at("08:00"), "schedule"),
        (at("07:00"), "backfill"),
    ]


def test_what_the_plan_has_no_room_for_is_left_for_the_next_one() -> None:
    seen = snapshot_of(job(**PARALLEL), at("09:10"), backfill=fast("-1 00:00", "-1 12:00"))

    decided = plan(seen, at("09:45"), limit=3)

    assert instants(decided) == [at(f"-1 0{hour}:00") for hour in (1, 2, 3)]
    assert decided.filling is not None
    assert decided.filling.after == at("-1 03:00")


# --------------------------------------------------------------------------------- the lane for what is late


def test_what_fills_the_past_and_what_is_late_stand_in_the_lane() -> None:
    """A23: they only get a share of the slots."""
    filled = plan(snapshot_of(job(), at("09:10"), backfill=fast("-1 09:00", "-1 12:00")), at("09:45"))
    late = plan(snapshot_of(job(recovery="execute_all", overlap="allow"), at("05:10")), at("09:45"))

    assert [each.in_lane for each in filled.creations] == [True]
    assert {each.in_lane for each in late.creations} == {True}
    assert not late.lifts


def test_late_ones_before_an_instant_on_time_are_not_held_back() -> None:
    """The on-time instant of the job waits behind them: neither they nor what came before them stand in the lane."""
    lined = active("late", at("08:00"), "pending", late=True)
    seen = snapshot_of(job(recovery="execute_all", overlap="queue"), at("08:10"), active=(lined,))

    decided = plan(seen, at("10:00:01"))

    assert created(decided) == [(at("09:00"), "queued"), (at("10:00"), "queued")]
    assert not any(each.in_lane for each in decided.creations)
    assert decided.lifts


def test_an_instant_on_time_is_in_no_lane() -> None:
    decided = plan(snapshot_of(job(), at("09:10")), at("10:00:01"))

    assert [each.in_lane for each in decided.creations] == [False]
