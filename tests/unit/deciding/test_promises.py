"""Promises: which are broken, which are kept again, and when to look next (beyond.md A18, A19)."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from everytick import cron
from everytick.deciding.promises import LEAST_RECHECK, RECHECK, SETTLE, begun, ended, judge
from everytick.domain.decisions import Span, Why
from everytick.domain.durations import MICROSECOND
from everytick.domain.limits import BrakeRecord
from everytick.domain.occurrence import Cause
from everytick.domain.promise_policies import PromiseKind
from everytick.domain.promises import READ_AT_ONCE, Breach, Judgement, PromisedRun, PromiseSnapshot, PromiseState
from everytick.domain.snapshots import (
    Adjustment,
    AdjustmentKind,
    Edition,
    Ended,
    JobSnapshot,
    Missed,
    PausedSpan,
)
from everytick.domain.statuses import OccurrenceStatus
from tests.unit.deciding.planning import active, at, job, snapshot_of


def _kind(policies: dict[str, Any]) -> PromiseKind:
    return next(kind for kind in PromiseKind if kind in policies)


def _seen(
    when: str = "0 * * * *",
    *,
    since: str = "08:30",
    watermark: str | None = None,
    runs: tuple[PromisedRun, ...] = (),
    spans: tuple[Span, ...] = (),
    state: PromiseState | None = None,
    **known: Any,
) -> PromiseSnapshot:
    """Return what is seen of the promise of an hourly job that was made at 08:30, and decided through then."""
    policies = known.pop("policies")
    made = job(when, **policies)
    seen = snapshot_of(made, at(watermark or since), **known)
    return PromiseSnapshot(made.id, state or PromiseState(_kind(policies), at(since), at(since)), seen, runs, spans)


def _run(
    when: str, status: str = "completed", begin: str | None = None, end: str | None = None, **more: Any
) -> PromisedRun:
    times: dict[str, Any] = {
        "started_at": None if begin is None else at(begin),
        "ended_at": None if end is None else at(end),
    }
    return PromisedRun(f"occ_{when}", at(when), OccurrenceStatus(status), **times, **more)


def _span(why: Why, after: str, through: str, status: str = "skipped", count: int | None = 1, detail: str = "") -> Span:
    return Span(OccurrenceStatus(status), why, detail, at(after), at(through), 1, count)


def _broken(judgement: Judgement) -> list[tuple[datetime, datetime, datetime | None, int]]:
    return [(each.broken_for, each.due_at, each.ended_at, each.count) for each in judgement.breaches]


START = {"start_by": "5m"}
FINISH = {"finish_by": "30m"}


# -------------------------------------------------------------------------------------------------------- start_by


def test_an_instant_that_nobody_planned_breaks_the_promise_when_its_moment_has_passed() -> None:
    """A18: that needs no plan: any node can see it, also if none of the job's own nodes lives."""
    found = _seen(policies=START)
    just_before = judge(found, at("09:05") + SETTLE)
    assert just_before.breaches == ()
    assert just_before.state.check_at == at("09:05") + SETTLE + MICROSECOND

    judged = judge(found, at("09:05") + SETTLE + MICROSECOND)

    [breach] = judged.breaches
    assert (breach.broken_for, breach.due_at, breach.found_at) == (
        at("09:00"),
        at("09:05"),
        at("09:05") + SETTLE + MICROSECOND,
    )
    assert (breach.reason, breach.count, breach.ended_at) == ("no node has planned it", 1, None)
    assert judged.state.breach == breach
    assert list(begun(judged, found.state)) == [breach]
    assert str(breach) == (
        "start_by: the start for 2026-11-16T09:00:00+00:00 was promised by 2026-11-16T09:05:00+00:00: "
        "no node has planned it"
    )


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (_run("09:00", "pending"), "it is pending and has not started"),
        (_run("09:00", "running", "09:05:01"), "it started at 2026-11-16T09:05:01+00:00, 1s late"),
        (_run("09:00", "completed", "09:06", "09:07"), "it started at 2026-11-16T09:06:00+00:00, 1m late"),
        (_run("09:00", "superseded", end="09:01"), "it was superseded"),
    ],
)
def test_a_run_that_has_not_started_in_time_breaks_it(run: PromisedRun, reason: str) -> None:
    [breach] = judge(_seen(policies=START, watermark="09:00", runs=(run,)), at("09:10")).breaches
    assert (breach.reason, breach.occurrence_id) == (reason, "occ_09:00")


@pytest.mark.parametrize(
    "run",
    [
        _run("09:00", "running", "09:05"),
        _run("09:00", "failed", "09:00", "09:01"),
        _run("09:00", "awaiting_retry", "09:00"),
        _run("09:00", "canceled", end="09:01"),
        _run("09:00", "skipped", end="09:00", reason="skipped by hand, by anna"),
    ],
)
def test_a_start_in_time_keeps_it_and_what_people_decided_is_no_breach(run: PromisedRun) -> None:
    """A19: cancel is no failure. What becomes of a run after its start is not promised by start_by."""
    judged = judge(_seen(policies=START, watermark="09:00", runs=(run,)), at("09:10"))
    assert judged.breaches == ()
    assert judged.state.judged_through == at("09:10") - SETTLE - timedelta(minutes=5) - MICROSECOND
    assert judged.state.check_at == at("10:05") + SETTLE + MICROSECOND


@pytest.mark.parametrize(
    ("why", "is_breach"),
    [
        (Why.OVERLAP, True),
        (Why.QUEUE_FULL, True),
        (Why.MISSED, True),
        (Why.NOT_LAST, True),
        (Why.CAP, True),
        (Why.WINDOW, True),
        (Why.PAUSED, False),
        (Why.DISABLED, False),
        (Why.ADJUSTED, False),
        (Why.MOVED, False),
        (Why.RESCHEDULED, False),
        (Why.SUCCESSFUL, False),
    ],
)
def test_an_instant_that_did_not_run_is_a_breach_unless_people_decided_so(why: Why, is_breach: bool) -> None:
    judged = judge(_seen(policies=START, watermark="09:00", spans=(_span(why, "08:00", "09:00"),)), at("09:10"))
    assert bool(judged.breaches) is is_breach


def test_a_row_of_instants_is_one_breach_until_one_of_them_is_kept() -> None:
    """A19: one breach, not one per instant; a job that is always late is broken once."""
    late = tuple(_run(f"{hour:02}:00", "completed", f"{hour:02}:06", f"{hour:02}:07") for hour in range(9, 12))
    found = _seen(policies=START, watermark="11:30", runs=late)
    judged = judge(found, at("11:30"))
    assert _broken(judged) == [(at("09:00"), at("09:05"), None, 3)]

    going_on = replace(found, state=judged.state, runs=(_run("12:00", "running", "12:01"),))
    kept = judge(replace(going_on, seen=replace(found.seen, watermark=at("12:00"))), at("12:02"))

    assert _broken(kept) == [(at("09:00"), at("09:05"), at("12:01"), 3)]
    assert kept.state.breach is None
    assert list(begun(kept, judged.state)) == []
    assert [each.count for each in ended(kept)] == [3]


def test_what_was_broken_and_kept_while_no_node_was_up_is_found_with_its_real_times() -> None:
    runs = (_run("09:00", "completed", "09:40", "09:41"), _run("10:00", "completed", "10:00", "10:01"))
    found = _seen(policies=START, watermark="11:00", runs=runs, spans=(_span(Why.MISSED, "10:00", "11:00", "missed"),))
    judged = judge(found, at("13:30"))
    assert _broken(judged) == [
        (at("09:00"), at("09:05"), at("10:00"), 1),
        (at("11:00"), at("11:05"), None, 3),
    ]


def test_a_broken_promise_is_looked_at_again_soon_and_seldom_if_it_lasts() -> None:
    judged = judge(_seen(policies=START), at("09:10"))
    assert judged.state.check_at == at("09:10") + RECHECK
    later = judge(_seen(policies=START, state=judged.state), at("09:30"))
    assert later.state.check_at == at("09:32")
    at_last = judge(_seen(policies=SUCCESS, state=judge(_seen(policies=SUCCESS), at("11:00")).state), at("20:00"))
    assert at_last.state.check_at == at("20:00") + LEAST_RECHECK


def test_an_instant_that_was_planned_late_is_not_judged_twice() -> None:
    """No node planned 09:00; one came at 09:20 and recorded it as missed. It stays one breach of one instant."""
    first = judge(_seen(policies=START), at("09:10"))
    spans = (_span(Why.MISSED, "08:30", "09:00", "missed"),)
    again = judge(_seen(policies=START, watermark="09:20", state=first.state, spans=spans), at("09:21"))
    assert again.breaches == ()
    assert again.state.breach == first.state.breach


def test_a_span_that_was_judged_in_part_counts_the_rest() -> None:
    first = judge(_seen(policies=START), at("10:10"))
    assert _broken(first) == [(at("09:00"), at("09:05"), None, 2)]
    spans = (_span(Why.MISSED, "08:30", "12:00", "missed", 4),)
    again = judge(_seen(policies=START, watermark="12:20", state=first.state, spans=spans), at("12:20"))
    assert _broken(again) == [(at("09:00"), at("09:05"), None, 4)]
    assert [each.last_for for each in again.breaches] == [at("12:00")]


def test_an_instant_that_is_read_twice_is_judged_once() -> None:
    """A plan may commit between the reads: what `seen` names is among the runs then."""
    found = _seen(policies=START, runs=(_run("09:00", "running", "09:00"),))
    assert judge(found, at("09:10")).breaches == ()


def test_an_instant_in_a_pause_is_excused_also_if_it_is_caught_up() -> None:
    pause = PausedSpan(at("08:45"), missed=Missed.CATCH_UP)
    held = judge(_seen(policies=START, pauses=(pause,)), at("09:10"))
    assert (held.breaches, held.state.held_after, held.state.held_through) == ((), at("08:45"), None)
    assert held.state.check_at is None

    resumed = (replace(pause, until=at("09:30"), resumed_by="anna"),)
    caught_up = _run("09:00", "completed", "09:30", "09:31")
    judged = judge(
        _seen(policies=START, watermark="09:30", state=held.state, pauses=resumed, runs=(caught_up,)), at("09:40")
    )
    assert (judged.breaches, judged.state.held_through) == ((), at("09:30"))
    assert judged.state.check_at == at("10:05") + SETTLE + MICROSECOND

    # A pause that came and went while no node looked.
    unseen = _seen(policies=START, watermark="09:30", pauses=resumed, runs=(caught_up,))
    assert judge(unseen, at("09:40")).breaches == ()


def test_an_instant_before_a_pause_is_still_promised() -> None:
    pause = PausedSpan(at("09:01"), at("12:30"))
    judged = judge(
        _seen(policies=FINISH, watermark="09:01", pauses=(pause,), runs=(_run("09:00", "running", "09:00"),)),
        at("09:35"),
    )
    assert _broken(judged) == [(at("09:00"), at("09:30"), None, 1)]
    after = replace(judged.state, breach=None)
    later = judge(_seen(policies=FINISH, watermark="09:01", pauses=(pause,), state=after), at("09:36"))
    assert later.state.check_at == at("13:30") + SETTLE + MICROSECOND


def test_a_disabled_job_owes_nothing_until_it_is_enabled() -> None:
    off, on = job(**START, enabled=False), job(**START)
    editions: tuple[Edition, ...] = (Edition(on), Edition(replace(off, version=2), at("08:40")))
    held = judge(_seen(policies=START, editions=editions), at("09:10"))
    assert (held.breaches, held.state.check_at) == ((), None)
    editions = (*editions, Edition(replace(on, version=3), at("09:20")))
    judged = judge(_seen(policies=START, editions=editions, state=held.state), at("10:04"))
    assert (judged.breaches, judged.state.held_through) == ((), at("09:20"))
    assert judged.state.check_at == at("10:05") + SETTLE + MICROSECOND


def test_a_skipped_instant_is_not_promised_and_a_moved_one_from_its_new_time_on() -> None:
    skip = (Adjustment(at("09:00"), AdjustmentKind.SKIP),)
    assert judge(_seen(policies=START, adjustments=skip), at("09:10")).breaches == ()
    moved = (Adjustment(at("09:00"), AdjustmentKind.MOVE, at("09:30")),)
    judged = judge(_seen(policies=START, adjustments=moved), at("09:10"))
    assert (judged.breaches, judged.state.check_at) == ((), at("09:35") + SETTLE + MICROSECOND)
    assert _broken(judge(_seen(policies=START, adjustments=moved), at("09:40"))) == [
        (at("09:30"), at("09:35"), None, 1)
    ]


def test_a_run_by_hand_is_promised_nothing_and_may_save_an_instant() -> None:
    by_hand = _run("09:00", "pending", cause=Cause.TRIGGER)
    judged = judge(_seen("30 9 * * *", policies=START, watermark="09:00", runs=(by_hand,)), at("09:20"))
    assert judged.breaches == ()
    replayed = _run("09:00", "completed", "09:10", "09:20", cause=Cause.REPLAY)
    failed = _run("09:00", "failed", "09:00", "09:05")
    assert judge(_seen(policies=FINISH, watermark="09:00", runs=(failed, replayed)), at("09:40")).breaches == ()


# ------------------------------------------------------------------------------------------------------- finish_by


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (_run("09:00", "running", "09:01"), "it is running since 2026-11-16T09:01:00+00:00"),
        (_run("09:00", "awaiting_retry", "09:01"), "it is awaiting_retry since 2026-11-16T09:01:00+00:00"),
        (_run("09:00", "failed", "09:01", "09:02"), "it failed at 2026-11-16T09:02:00+00:00"),
        (_run("09:00", "completed", "09:01", "09:32"), "it completed at 2026-11-16T09:32:00+00:00, 2m late"),
        (_run("09:00", "failed_stale", "09:01", "09:02"), "it failed_stale at 2026-11-16T09:02:00+00:00"),
    ],
)
def test_a_run_that_has_not_ended_well_in_time_breaks_finish_by(run: PromisedRun, reason: str) -> None:
    """A18: a failure is judged at its moment, since a replay may still save it."""
    found = _seen(policies=FINISH, watermark="09:00", runs=(run,))
    assert judge(found, at("09:30")).breaches == ()
    assert [each.reason for each in judge(found, at("09:33")).breaches] == [reason]


@pytest.mark.parametrize("status", ["completed", "completed_with_errors", "canceled"])
def test_an_end_in_time_keeps_finish_by_and_a_cancel_excuses_it(status: str) -> None:
    run = _run("09:00", status, "09:01", "09:30")
    assert judge(_seen(policies=FINISH, watermark="09:00", runs=(run,)), at("09:33")).breaches == ()


def test_a_compressed_instant_is_kept_by_the_run_that_covers_it() -> None:
    spans = (_span(Why.COMPRESSED, "08:00", "09:00", detail="into 10:00"),)
    covering = _run("10:00", "completed", "10:00", "10:05", covers_after=at("08:00"), covers_through=at("10:00"))
    policies = {"finish_by": "90m"}
    assert judge(_seen(policies=policies, watermark="10:00", spans=spans, runs=(covering,)), at("10:31")).breaches == ()
    late = replace(covering, ended_at=at("10:31"))
    assert judge(_seen(policies=policies, watermark="10:00", spans=spans, runs=(late,)), at("10:32")).breaches != ()


def test_a_time_of_day_is_the_next_one_after_the_instant() -> None:
    found = _seen("0 3 * * *", policies={"finish_by": "06:00"}, since="00:00")
    assert judge(found, at("05:59")).state.check_at == at("06:00") + SETTLE + MICROSECOND
    assert _broken(judge(found, at("06:01"))) == [(at("03:00"), at("06:00"), None, 1)]
    # At the very moment, the next day is meant.
    at_six = _seen("0 6 * * *", policies={"finish_by": "06:00"}, since="00:00")
    assert judge(at_six, at("07:00")).state.check_at == at("1 06:00") + SETTLE + MICROSECOND


@pytest.mark.parametrize(
    ("zone", "since", "due"),
    [
        # The night of the change to summer time: 02:30 is not there, and stands for 03:00 on the clock.
        ("Europe/Berlin", "2026-03-28T23:30:00Z", "2026-03-29T01:00:00Z"),
        # The night of the change back: 02:30 is there twice, and the first one counts.
        ("Europe/Berlin", "2026-10-24T23:30:00Z", "2026-10-25T00:30:00Z"),
        ("America/New_York", "2026-03-08T05:30:00Z", "2026-03-08T07:00:00Z"),
    ],
)
def test_a_time_of_day_in_the_night_of_a_clock_change(zone: str, since: str, due: str) -> None:
    """C-03: one moment each night, as the schedules of everytick have it."""
    local = replace(job("30 0 * * *", finish_by="02:30"), schedule=cron("30 0 * * *", tz=zone))
    begin = datetime.fromisoformat(since) - timedelta(hours=2)
    seen = JobSnapshot(local.id, 1, 1, begin, (Edition(local),))
    found = PromiseSnapshot(local.id, PromiseState(PromiseKind.FINISH_BY, begin, begin), seen)
    assert (
        judge(found, begin + timedelta(seconds=1)).state.check_at == datetime.fromisoformat(due) + SETTLE + MICROSECOND
    )


# -------------------------------------------------------------------------------------------------- success_within


def _success(when: str, id_: str = "occ_1") -> Ended:
    return Ended(at(when), at(when), at(when), id_)


SUCCESS = {"success_within": "2h"}


def test_a_new_job_has_one_length_of_time_for_its_first_success() -> None:
    found = _seen(policies=SUCCESS)
    fresh = judge(found, at("10:30") + SETTLE)
    assert (fresh.breaches, fresh.state.check_at) == ((), at("10:30") + SETTLE + MICROSECOND)
    [breach] = judge(found, at("10:31")).breaches
    assert (breach.broken_for, breach.due_at, breach.reason) == (
        at("08:30"), at("10:30"), "no success since 2026-11-16T08:30:00+00:00",
    )  # fmt: skip
    assert str(breach).startswith("success_within: a success was promised by 2026-11-16T10:30:00+00:00: no success")


def test_the_age_of_the_last_success_counts_however_it_was_asked_for() -> None:
    found = _seen(policies=SUCCESS, last_success=_success("09:59"))
    judged = judge(found, at("11:50"))
    assert (judged.breaches, judged.state.check_at) == ((), at("11:59") + SETTLE + MICROSECOND)
    assert _broken(judge(found, at("12:00"))) == [(at("09:59"), at("11:59"), None, 1)]


def test_the_next_success_ends_the_breach_once() -> None:
    broken = judge(_seen(policies=SUCCESS), at("10:40"))
    later = _seen(policies=SUCCESS, state=broken.state, last_success=_success("10:45"))
    kept = judge(later, at("10:46"))
    assert _broken(kept) == [(at("08:30"), at("10:30"), at("10:45"), 1)]
    assert kept.state.breach is None
    again = judge(replace(later, state=kept.state), at("10:50"))
    assert (again.breaches, again.state.check_at) == ((), at("12:45") + SETTLE + MICROSECOND)


def test_a_gap_between_the_last_two_successes_is_found_late_and_a_doubtful_one_is_not() -> None:
    both: dict[str, Any] = {"other_success": _success("09:00"), "last_success": _success("12:30", "occ_2")}
    assert _broken(judge(_seen(policies=SUCCESS, **both), at("12:31"))) == [(at("09:00"), at("11:00"), at("12:30"), 1)]
    # Many successes may lie between 08:30 and 12:29.
    many: dict[str, Any] = {"other_success": _success("12:29"), "last_success": _success("12:30", "occ_2")}
    assert judge(_seen(policies=SUCCESS, **many), at("12:31")).breaches == ()


def test_a_pause_stops_the_clock_of_success_within() -> None:
    pause = PausedSpan(at("09:00"))
    held = judge(_seen(policies=SUCCESS, pauses=(pause,)), at("15:00"))
    assert (held.breaches, held.state.check_at) == ((), None)
    until = (replace(pause, until=at("16:00"), resumed_by=""),)
    judged = judge(_seen(policies=SUCCESS, state=held.state, pauses=until), at("16:01"))
    assert (judged.breaches, judged.state.check_at) == ((), at("18:00") + SETTLE + MICROSECOND)


def test_a_brake_excuses_what_it_holds() -> None:
    """People have decided that nothing starts, and know it."""
    brake = BrakeRecord(at("08:50"), None, "incident", "ada")
    held = judge(replace(_seen(policies=START), brake=brake), at("09:10"))
    assert (held.breaches, held.state.held_after) == ((), at("08:50"))
    late = _run("09:00", "completed", "09:30", "09:31")
    released = _seen(policies=START, state=held.state, watermark="09:30", runs=(late,))
    assert judge(released, at("09:40")).breaches == ()
    waits = judge(replace(_seen(policies=SUCCESS), brake=brake), at("15:00"))
    assert (waits.breaches, waits.state.check_at) == ((), at("15:00") + LEAST_RECHECK)
    assert (
        judge(_seen(policies=SUCCESS, state=waits.state), at("15:05")).state.check_at
        == at("17:05") + SETTLE + MICROSECOND
    )


def test_a_job_that_has_not_begun_or_is_over_owes_no_success() -> None:
    to_come = judge(_seen(policies={**SUCCESS, "start": "2026-11-16T20:00:00Z"}), at("19:00"))
    assert (to_come.breaches, to_come.state.check_at) == ((), at("22:00") + SETTLE)
    over = {**SUCCESS, "end": "2026-11-16T12:00:00Z"}
    assert judge(_seen(policies=over), at("11:00")).breaches != ()
    both: dict[str, Any] = {"other_success": _success("10:20"), "last_success": _success("12:01", "occ_2")}
    judged = judge(_seen(policies=over, watermark="12:00", **both), at("19:00"))
    assert (judged.breaches, judged.state.check_at) == ((), None)


def test_the_last_instant_of_a_job_that_is_over_is_still_promised() -> None:
    found = _seen("0 9 * * *", policies={**START, "end": "2026-11-16T09:30:00Z"})
    held = judge(found, at("09:00") + MICROSECOND)
    assert held.state.check_at == at("09:05") + SETTLE + MICROSECOND
    assert _broken(judge(replace(found, state=held.state), at("09:40"))) == [(at("09:00"), at("09:05"), None, 1)]


# ------------------------------------------------------------------------------------------------------ all of them


def test_a_promise_or_a_job_that_is_taken_back_ends_the_breach_without_a_word() -> None:
    broken = judge(_seen(policies=START), at("09:10"))
    taken_back = job()
    seen = replace(_seen(policies=START, state=broken.state), seen=snapshot_of(taken_back, at("08:30")))
    removed = _seen(policies=START, state=broken.state, retire_at=at("09:20"))
    for found in (seen, removed):
        judged = judge(found, at("09:20"))
        assert [(each.ended_at, each.is_withdrawn) for each in judged.breaches] == [(at("09:20"), True)]
        assert (judged.state.check_at, judged.state.breach, list(ended(judged))) == (None, None, [])


def test_a_long_row_is_judged_in_parts_and_comes_to_an_end() -> None:
    """All nodes were down for a day: instants without a plan are judged two hundred at a time, with the same result."""
    found = _seen("* * * * *", policies=START, since="00:00")
    now, rounds, written = at("1 00:00"), 0, dict[datetime, Breach]()
    while (judged := judge(found, now)).state.check_at == now:
        written |= {each.broken_for: each for each in judged.breaches}
        found, rounds = replace(found, state=judged.state), rounds + 1
    written |= {each.broken_for: each for each in judged.breaches}
    [breach] = written.values()
    assert rounds == 1440 // READ_AT_ONCE
    assert (breach.broken_for, breach.count) == (at("00:01"), 1440 - 6)


def test_runs_beyond_what_is_read_at_once_wait_for_the_next_round() -> None:
    runs = tuple(
        PromisedRun(f"occ_{second}", at("08:30") + timedelta(seconds=second), OccurrenceStatus.COMPLETED,
                    started_at=at("08:30") + timedelta(seconds=second))
        for second in range(1, READ_AT_ONCE + 1)
    )  # fmt: skip
    found = _seen("every 1s", policies={"start_by": "1s"}, watermark="08:40", runs=runs)
    judged = judge(found, at("08:40"))
    assert (judged.breaches, judged.state.check_at) == ((), at("08:40"))
    assert judged.state.judged_through == runs[-1].scheduled_for - MICROSECOND


def test_an_instant_that_follows_an_end_is_promised_once_it_is_known() -> None:
    busy = (active("occ_1", at("09:00")),)
    following = {"start_by": "10m"}
    waits = judge(_seen("after: 1h", policies=following, active=busy), at("09:20"))
    assert (waits.breaches, waits.state.check_at) == ((), at("09:30"))
    known = _seen("after: 1h", policies=following, last_end=_success("09:00"))
    assert judge(known, at("09:20")).state.check_at == at("10:10") + SETTLE + MICROSECOND
