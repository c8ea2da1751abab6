"""A plan is bounded: what does not fit is left whole for the next one, and nothing is lost between."""

from dataclasses import replace
from datetime import datetime, timedelta

from everytick.deciding.plan import plan
from everytick.domain.snapshots import Adjustment, AdjustmentKind, Rescheduled
from tests.unit.deciding.planning import active, at, created, instants, job, skipped, snapshot_of, trigger


def test_a_plan_creates_at_most_a_hundred_and_comes_straight_back() -> None:
    each_minute = job("* * * * *", recovery="execute_all", overlap="allow")

    decided = plan(snapshot_of(each_minute, at("06:00")), at("12:00:30"))

    assert len(decided.creations) == 100
    assert (decided.watermark, decided.wake_at) == (at("07:40"), at("12:00:30"))


def test_releases_count_too_and_come_first() -> None:
    line = [active(f"w{n:03}", at("09:00"), "queued") for n in range(4)]
    wide = job(overlap="queue", recovery="execute_all", max_concurrent=50)

    decided = plan(snapshot_of(wide, at("09:10"), active=tuple(line)), at("13:30"), limit=6)

    assert len(decided.releases) == 4
    assert instants(decided) == [at("10:00"), at("11:00")]
    assert (decided.watermark, decided.wake_at) == (at("11:00"), at("13:30"))


def test_a_line_longer_than_the_limit_is_released_in_turns() -> None:
    line = [active(f"w{n:03}", at("09:00"), "queued") for n in range(4)]
    wide = job(overlap="queue", max_concurrent=50)

    decided = plan(snapshot_of(wide, at("09:10"), active=tuple(line)), at("09:20"), limit=3)

    assert decided.releases == ("w000", "w001", "w002")
    assert decided.wake_at == at("09:20")


def test_what_was_skipped_before_the_cut_is_decided_and_what_comes_after_it_is_not() -> None:
    """The watermark stops at the last instant decided."""
    capped = job(recovery="execute_all", overlap="allow", late_cap=3)

    decided = plan(snapshot_of(capped, at("09:10")), at("15:30"), limit=1)

    assert instants(decided) == [at("13:00")]
    assert skipped(decided) == [(at("09:10"), at("12:00"), "skipped: cap", 3)]
    assert decided.watermark == at("13:00")


def test_a_plan_that_is_full_before_its_first_instant_decides_what_lies_before_it() -> None:
    line = (active("w", at("09:00"), "queued"),)
    wide = job(overlap="queue", max_concurrent=50)

    decided = plan(snapshot_of(wide, at("09:10"), active=line), at("12:30"), limit=1)

    assert (decided.releases, decided.creations) == (("w",), ())
    assert skipped(decided) == [(at("09:10"), at("11:00"), "skipped: not last", 2)]
    assert (decided.watermark, decided.wake_at) == (at("11:00"), at("12:30"))


def test_a_compressed_run_that_does_not_fit_keeps_its_span() -> None:
    """What it stands for is not decided before it exists."""
    line = (active("w", at("09:00"), "queued"),)
    wide = job(overlap="queue", max_concurrent=50, recovery="compressed")
    seen = snapshot_of(wide, at("09:10"), active=line)

    cut = plan(seen, at("12:30"), limit=1)
    after = plan(snapshot_of(wide, cut.watermark), at("12:30"))

    assert (cut.creations, cut.spans, cut.watermark) == ((), (), at("09:10"))
    assert (after.creations[0].covers_after, after.creations[0].covers_through) == (at("09:00"), at("12:00"))


def test_a_reschedule_that_was_compressed_is_told_so_once_even_if_the_run_did_not_fit() -> None:
    seen = snapshot_of(job(recovery="compressed"), at("09:10"), reschedule=Rescheduled(at("09:15"), at("09:20")))

    first = plan(seen, at("12:30"), limit=1)
    second = plan(replace(seen, watermark=first.watermark, reschedule=None), at("12:30"), limit=1)

    assert (created(first), first.rescheduled) == ([(at("09:20"), "skipped")], True)
    assert created(second) == [(at("12:00"), "pending")]


def test_instants_that_are_only_skipped_take_no_place() -> None:
    late = job(recovery="execute_all", late_overlap="skip")
    seen = snapshot_of(late, at("00:10"), active=(active("x", at("00:00")),))

    decided = plan(seen, at("23:30"), limit=1)

    assert (decided.creations, [each.count for each in decided.spans]) == ((), [23])
    assert decided.watermark == at("23:30")


def test_rows_for_what_was_moved_and_dropped_take_a_place_each() -> None:
    """And those that find none are not forgotten."""
    moves = tuple(Adjustment(at(f"{hour:02}:00"), AdjustmentKind.MOVE, at(f"{hour:02}:20")) for hour in range(4, 8))
    seen = snapshot_of(job(recovery="mark_as_missed"), at("03:30"), adjustments=moves)
    rows: list[datetime] = []
    spans = []
    for _ in range(4):
        decided = plan(seen, at("08:30"), limit=1)
        rows += instants(decided)
        spans += [(each.through, str(each.why)) for each in decided.spans]
        left = tuple(each for each in seen.adjustments if each not in decided.used)
        seen = replace(seen, adjustments=left, watermark=decided.watermark)

    assert rows == [at(f"{hour:02}:20") for hour in range(4, 8)]
    assert spans == [*((at(f"{hour:02}:00"), "moved") for hour in range(4, 8)), (at("08:00"), "missed")]
    assert plan(seen, at("08:30")).creations == ()


def test_a_reschedule_whose_target_was_cut_stays_open() -> None:
    seen = snapshot_of(job(recovery="execute_all"), at("08:30"), reschedule=Rescheduled(at("09:30"), at("10:20")))

    first = plan(seen, at("10:30"), limit=1)
    second = plan(replace(seen, watermark=first.watermark), at("10:30"), limit=1)

    assert (instants(first), first.rescheduled, first.wake_at) == ([at("09:00")], False, at("10:30"))
    assert (instants(second), second.rescheduled) == ([at("10:20")], True)


def test_requests_that_were_cut_stay_open() -> None:
    asked = tuple(trigger(str(n), at("09:40") + timedelta(seconds=n)) for n in range(3))
    seen = snapshot_of(job(overlap="allow"), at("09:30"), requests=asked)

    decided = plan(seen, at("10:00:01"), limit=2)

    assert [each.key for each in decided.answers] == ["0", "1"]
    assert created(decided)[0] == (at("09:40"), "pending")
    assert (decided.watermark, decided.wake_at) == (at("09:30"), at("10:00:01"))


def test_an_outage_of_a_million_ticks_ends_by_policy() -> None:
    """D4: the schedule runs again at once, and every tick is accounted for."""
    each_second = job("every: 1s", recovery="execute_last")
    now = at("12:00:00") + timedelta(milliseconds=500)

    decided = plan(snapshot_of(each_second, now - timedelta(seconds=1_000_000)), now)

    assert created(decided) == [(at("12:00"), "pending")]
    assert [(each.through, each.count) for each in decided.spans] == [(at("11:59:59"), None)]
    assert decided.wake_at == at("12:00:01")
