"""What holds instants back before recovery sees them: pauses, disabling, edits, and what is said by hand."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from everytick.deciding.plan import plan
from everytick.domain.config import Level, overrides
from everytick.domain.ids import occurrence_id, replay_id, trigger_id
from everytick.domain.job import Job
from everytick.domain.payload import payload
from everytick.domain.policies import bounded_window
from everytick.domain.snapshots import Adjustment, AdjustmentKind, Edition, Ended, Missed, PausedSpan, Rescheduled
from everytick.domain.upcoming import next_run
from tests.unit.deciding.planning import active, at, created, instants, job, skipped, snapshot_of, trigger

TICK = timedelta(microseconds=1)
ALL: dict[str, Any] = {"recovery": "execute_all", "overlap": "allow"}


def editions(*given: tuple[Job, str | None]) -> tuple[Edition, ...]:
    """Versions 1, 2, … of a job, each with the moment after which it is in force."""
    return tuple(
        Edition(replace(each, version=number), None if since is None else at(since))
        for number, (each, since) in enumerate(given, 1)
    )


def moved(when: str, to: str, **more: Any) -> Adjustment:
    return Adjustment(at(when), AdjustmentKind.MOVE, at(to), **more)


# ------------------------------------------------------------------------------------------------------- pauses


def test_three_ticks_in_a_pause_are_three_skipped_entries() -> None:
    """S0-043, S4-015, C-18: one span of three, written when the pause ends."""
    pause = PausedSpan(at("09:30"), at("12:30"), reason="migration", by="ann")

    decided = plan(snapshot_of(job(), at("09:10"), pauses=(pause,)), at("12:30"))

    assert decided.creations == ()
    assert skipped(decided) == [(at("09:30"), at("12:00"), "skipped: paused, by ann (migration)", 3)]
    assert (decided.watermark, decided.wake_at) == (at("12:30"), at("13:00"))


def test_a_paused_job_plans_no_instant_and_wakes_at_the_end_of_its_pause() -> None:
    """A pause costs nothing: no wake but its end, or none."""
    until = plan(snapshot_of(job(), at("09:10"), pauses=(PausedSpan(at("09:30"), at("15:00")),)), at("12:00"))
    for_ever = plan(snapshot_of(job(), at("09:10"), pauses=(PausedSpan(at("09:30")),)), at("12:00"))

    assert (until.creations, until.spans, until.watermark, until.wake_at) == ((), (), at("09:10"), at("15:00"))
    assert (for_ever.creations, for_ever.spans, for_ever.watermark, for_ever.wake_at) == ((), (), at("09:10"), None)


def test_resume_goes_on_at_the_next_tick() -> None:
    """S0-044, F6: nothing fires at once."""
    pause = PausedSpan(at("09:30"), at("12:10"))

    resumed = plan(snapshot_of(job(), at("09:10"), pauses=(pause,)), at("12:10"))
    later = plan(snapshot_of(job(), resumed.watermark), at("13:00:01"))

    assert (instants(resumed), instants(later)) == ([], [at("13:00")])


def test_a_pause_covers_the_instant_at_its_end_and_not_that_at_its_beginning() -> None:
    """(from, until]."""
    pause = PausedSpan(at("10:00"), at("12:00"))

    decided = plan(snapshot_of(job(**ALL), at("09:30"), pauses=(pause,)), at("13:30"))

    assert instants(decided) == [at("10:00"), at("13:00")]
    assert skipped(decided) == [(at("10:00"), at("12:00"), "skipped: paused", 2)]


def test_execute_last_picks_the_newest_instant_outside_a_pause() -> None:
    """Filters come before recovery, even if newer instants are inside."""
    pause = PausedSpan(at("11:30"), at("14:30"))

    decided = plan(snapshot_of(job(), at("08:30"), pauses=(pause,)), at("14:40"))

    assert created(decided) == [(at("11:00"), "pending")]
    assert decided.creations[0].late is True
    assert skipped(decided) == [
        (at("08:30"), at("10:00"), "skipped: not last", 2),
        (at("11:30"), at("14:00"), "skipped: paused", 3),
    ]


def test_an_instant_whose_successor_lies_in_a_pause_is_late() -> None:
    """Late is about the schedule, however long the grace."""
    pause = PausedSpan(at("10:30"), at("11:30"))

    decided = plan(snapshot_of(job(grace="3h"), at("09:30"), pauses=(pause,)), at("11:40"))

    assert [(each.scheduled_for, each.late) for each in decided.creations] == [(at("10:00"), True)]


def test_a_compressed_run_covers_from_an_instant_at_which_a_pause_began() -> None:
    pause = PausedSpan(at("10:00"), at("10:30"))

    decided = plan(snapshot_of(job(recovery="compressed"), at("09:30"), pauses=(pause,)), at("11:30"))

    assert (decided.creations[0].covers_after, decided.creations[0].covers_through) == (at("09:00"), at("11:00"))


def test_a_pause_without_an_instant_leaves_no_gap_in_a_span() -> None:
    """Neighbours that are alike are one span, and are counted together, up to 10,000."""

    def missed(hours: tuple[int, int]) -> list[int | None]:
        each_second = job("every: 1s", recovery="mark_as_missed")
        begin = at("12:00") - timedelta(hours=hours[0])
        half = timedelta(milliseconds=200)
        pause = PausedSpan(at("12:00") + half, at("12:00") + 2 * half)
        seen = snapshot_of(each_second, begin, pauses=(pause,))
        decided = plan(seen, at("12:00") + timedelta(hours=hours[1]) + timedelta(milliseconds=500))
        return [each.count for each in decided.spans]

    assert missed((1, 1)) == [7199]
    assert missed((2, 2)) == [None]
    assert missed((3, 1)) == [None]
    assert missed((1, 3)) == [None]


def test_what_was_due_before_the_pause_is_late_when_it_ends() -> None:
    """It was not covered by the pause, so recovery decides."""
    pause = PausedSpan(at("10:30"), at("11:30"))

    decided = plan(snapshot_of(job(recovery="mark_as_missed"), at("09:30"), pauses=(pause,)), at("11:30"))

    assert [(str(each.status), each.through) for each in decided.spans] == [
        ("missed", at("10:00")),
        ("skipped", at("11:00")),
    ]


def test_a_pause_that_catches_up_leaves_its_instants_to_recovery() -> None:
    """C-18, F5: on resume, and not before."""
    pause = PausedSpan(at("09:30"), missed=Missed.CATCH_UP)
    seen = snapshot_of(job(**ALL), at("09:10"), pauses=(pause,))

    during = plan(seen, at("12:30"))
    resumed = plan(replace(seen, pauses=(replace(pause, until=at("12:30")),)), at("12:30"))

    assert (during.creations, during.watermark) == ((), at("09:10"))
    assert (instants(resumed), resumed.spans) == ([at("10:00"), at("11:00"), at("12:00")], ())


def test_requests_are_honoured_while_paused() -> None:
    """A pause holds the schedule, not people."""
    seen = snapshot_of(job(), at("09:10"), pauses=(PausedSpan(at("09:30")),), requests=(trigger(),))

    decided = plan(seen, at("09:45"))

    assert created(decided) == [(at("09:40"), "pending")]
    assert [each.key for each in decided.answers] == ["k"]


def test_while_paused_only_the_requests_part_of_the_line_moves() -> None:
    """S4-024: as if no other waited; the rest stays as it is."""
    line = (active("s", at("09:00"), "queued"), active("r", at("09:20"), "queued", "replay"))
    seen = snapshot_of(job(), at("09:10"), pauses=(PausedSpan(at("09:30")),), active=line)

    idle = plan(seen, at("09:45"))
    asked = plan(replace(seen, waiting=line[:1], waiting_count=1, requests=(trigger(),)), at("09:45"))

    assert (idle.releases, idle.wake_at) == (("r",), None)
    assert created(asked) == [(at("09:40"), "pending")]
    assert asked.endings == ()


@pytest.mark.parametrize("kind", ["stop_schedule", "restart_schedule"])
@pytest.mark.parametrize("enabled", [True, False])
def test_stop_and_restart_act_in_a_pause_and_while_disabled(kind: str, enabled: bool) -> None:
    """F12, S4-044: both hold starts, not stops; a restart then only stops."""
    stopping = job(enabled=enabled, **{kind: "0 12 * * *"})
    pauses = (PausedSpan(at("09:30")),) if enabled else ()
    seen = snapshot_of(stopping, at("09:10"), pauses=pauses, active=(active("x", at("09:00")),))

    before = plan(seen, at("11:00"))
    decided = plan(seen, at("12:00:01"))
    late = plan(seen, at("12:01"))
    idle = plan(replace(seen, busy=(), busy_count=0), at("11:00"))

    assert (before.cancels, before.wake_at) == ((), at("12:00"))
    assert (decided.cancels, decided.creations, decided.wake_at) == (("x",), (), at("+1 12:00"))
    assert late.cancels == ()
    assert idle.wake_at is None


def test_a_restart_inside_a_pause_does_not_follow_when_that_ends() -> None:
    """F12: its instant is still on time, but it lay in the pause."""
    pause = PausedSpan(at("09:30"), at("12:00:10"))
    seen = snapshot_of(job("0 0 * * *", restart_schedule="0 12 * * *"), at("09:10"), pauses=(pause,))

    decided = plan(seen, at("12:00:20"))

    assert decided.creations == ()


# ----------------------------------------------------------------------------------------------- recovery narrowed


RUNS_LONG = active("runs", at("00:00"))
FIVE = tuple(active(f"late {hour}", at(f"0{hour}:00"), "queued", late=True) for hour in range(1, 6))


@pytest.mark.parametrize(
    ("recovery", "left"),
    [
        ("mark_as_missed", []),
        ("execute_last", [5]),
        (bounded_window(max_duration="3h"), [4, 5]),
        (bounded_window(max_occurrences=3), [3, 4, 5]),
        (bounded_window(max_occurrences=1, max_duration="3h"), [5]),
        ("execute_all", [1, 2, 3, 4, 5]),
        ("compressed", [1, 2, 3, 4, 5]),
    ],
)
def test_closing_the_window_ends_what_waits_in_line(recovery: Any, left: list[int]) -> None:
    """F13, S4-031, edge case 5: what the new recovery would not have kept at the edit's moment is canceled."""
    others = (active("on time", at("06:00"), "queued"), active("asked", at("02:30"), "queued", "trigger"))
    lined = (active("runs", at("00:00")), *FIVE, *others)
    seen = snapshot_of(job(recovery=recovery), at("06:00"), active=lined, narrowed_at=at("06:30"))

    decided = plan(seen, at("06:40"))

    gone = [f"late {hour}" for hour in range(1, 6) if hour not in left]
    assert [(each.id, str(each.status), str(each.why)) for each in decided.endings] == [
        (id_, "canceled", "recovery changed") for id_ in gone
    ]
    assert decided.narrowed
    assert (decided.creations, decided.releases) == ((), ())


def test_without_an_edit_time_that_passes_ends_nothing() -> None:
    """F13: a window moves on, what it kept stays."""
    seen = snapshot_of(job(recovery=bounded_window(max_duration="1h")), at("06:00"), active=(RUNS_LONG, *FIVE))

    assert plan(seen, at("06:40")).endings == ()


def test_a_long_line_is_narrowed_in_several_plans_before_anybody_comes_in() -> None:
    """F13: at most so many at once, and until then none of them is released."""
    seen = snapshot_of(job(recovery="execute_last"), at("06:00"), active=FIVE, narrowed_at=at("06:30"))

    first = plan(seen, at("06:40"), limit=3)
    left = replace(seen, waiting=FIVE[3:], waiting_count=2)
    second = plan(left, at("06:40"), limit=3)

    assert [each.id for each in first.endings] == ["late 1", "late 2", "late 3"]
    assert (first.releases, first.narrowed, first.wake_at, first.watermark) == ((), False, at("06:40"), at("06:00"))
    assert [each.id for each in second.endings] == ["late 4"]
    assert (second.releases, second.narrowed) == (("late 5",), True)


def test_a_pause_keeps_the_line_until_it_ends() -> None:
    """F13, S4-024: what the schedule put in line is not in view meanwhile, and is narrowed afterwards."""
    seen = snapshot_of(
        job(recovery="mark_as_missed"), at("06:00"), pauses=(PausedSpan(at("06:10")),), narrowed_at=at("06:30")
    )

    assert plan(seen, at("06:40")).narrowed is False
    assert plan(replace(seen, pauses=()), at("06:40")).narrowed is True


# ----------------------------------------------------------------------------------------------------- disabled


def test_a_disabled_job_decides_nothing_and_does_not_wake() -> None:
    """S1-024: no runs until true again, and open requests wait for that."""
    line = (active("q", at("09:00"), "queued"),)

    decided = plan(snapshot_of(job(enabled=False), at("09:10"), active=line, requests=(trigger(),)), at("12:30"))

    assert (decided.creations, decided.releases, decided.answers, decided.spans) == ((), (), (), ())
    assert (decided.watermark, decided.wake_at) == (at("09:10"), None)


def test_what_was_due_while_disabled_is_one_span_when_enabled_again() -> None:
    """S0-132, S1-036, C-19."""
    timeline = editions((job(), None), (job(enabled=False), "09:30"), (job(), "12:30"))

    decided = plan(snapshot_of(job(), at("09:10"), editions=timeline), at("13:00:01"))

    assert created(decided) == [(at("13:00"), "pending")]
    assert [(each.after, each.through, str(each.why), each.version, each.count) for each in decided.spans] == [
        (at("09:30"), at("12:00"), "disabled", 2, 3)
    ]


def test_a_job_that_will_be_enabled_is_looked_at_then() -> None:
    timeline = editions((job(enabled=False), None), (job(), "12:30"))

    assert plan(snapshot_of(job(), at("09:10"), editions=timeline), at("10:30")).wake_at == at("12:30")


# -------------------------------------------------------------------------------------------------------- edits


def test_an_edit_decides_earlier_instants_by_the_old_and_later_by_the_new_definition() -> None:
    """C-23, F7, F9: and an instant equal to the moment of the edit is still the old one's."""
    timeline = editions((job(**ALL), None), (job("30 * * * *", **ALL), "11:00"))

    decided = plan(snapshot_of(job(), at("09:10"), editions=timeline), at("12:45"))

    assert instants(decided) == [at("10:00"), at("11:00"), at("11:30"), at("12:30")]
    assert {each.version for each in decided.creations} == {2}
    assert decided.wake_at == at("13:30")


def test_a_change_never_fires_a_job_by_itself() -> None:
    """C-23, F11, S4-032: nothing of the new rule lies before the edit."""
    timeline = editions((job("0 6 * * *"), None), (job("* * * * *"), "09:30:30"))

    decided = plan(snapshot_of(job(), at("07:00"), editions=timeline), at("09:30:40"))

    assert (decided.creations, decided.spans, decided.wake_at) == ((), (), at("09:31"))


def test_skipped_instants_say_which_version_named_them() -> None:
    """History asks the schedule of that version."""
    timeline = editions(
        (job(recovery="execute_all"), None), (job("30 * * * *", recovery="execute_all", late_overlap="skip"), "10:15")
    )
    seen = snapshot_of(job(), at("09:10"), editions=timeline, active=(active("x", at("09:00")),))

    decided = plan(seen, at("11:45"))

    assert [(each.through, each.version, each.count) for each in decided.spans] == [
        (at("10:00"), 1, 1),
        (at("11:30"), 2, 2),
    ]


def test_policies_take_effect_at_the_next_plan() -> None:
    """S4-033, S4-031: those of the definition in force now, also for instants of the old one."""
    timeline = editions((job(recovery="execute_all"), None), (job(recovery="mark_as_missed"), "11:30"))

    decided = plan(snapshot_of(job(), at("09:10"), editions=timeline), at("11:40"))

    assert decided.creations == ()
    assert [(str(each.status), each.version, each.count) for each in decided.spans] == [("missed", 1, 2)]


def test_a_graceful_edit_is_in_force_only_later() -> None:
    """C-23: until then the old one plans, and the wake is the earlier of the two."""
    timeline = editions((job(), None), (job("30 * * * *"), "11:15"))

    before = plan(snapshot_of(job(), at("09:10"), editions=timeline), at("10:00:01"))
    between = plan(snapshot_of(job(), at("11:05"), editions=timeline), at("11:10"))

    assert (created(before), before.creations[0].version) == ([(at("10:00"), "pending")], 1)
    assert (before.wake_at, between.wake_at) == (at("11:00"), at("11:30"))


def test_an_instant_at_the_moment_of_a_coming_edit_is_still_looked_at() -> None:
    timeline = editions((job(), None), (job("0 23 * * *"), "11:00"))

    assert plan(snapshot_of(job(), at("10:00"), editions=timeline), at("10:20")).wake_at == at("11:00")
    assert plan(snapshot_of(job(), at("10:00"), editions=timeline), at("11:00")).wake_at == at("23:00")


def test_the_next_instant_is_found_past_editions_that_name_none_in_their_time() -> None:
    timeline = editions(
        (job(), None), (job("0 3 * * *"), "10:10"), (job("*/5 * * * *", enabled=False), "10:40"), (job(), "11:20")
    )

    assert plan(snapshot_of(job(), at("10:00"), editions=timeline), at("10:05")).wake_at == at("12:00")


def test_the_next_instant_is_not_that_of_a_definition_whose_time_is_over() -> None:
    timeline = editions((job("0 * * * *"), None), (job("0 23 * * *"), "10:30"))

    assert plan(snapshot_of(job(), at("10:00"), editions=timeline), at("10:20")).wake_at == at("23:00")


# ---------------------------------------------------------------------------------------------- skipped by hand


def test_one_instant_skipped_by_hand_is_recorded_with_who_and_why() -> None:
    skip = Adjustment(at("10:00"), AdjustmentKind.SKIP, reason="holiday", by="ann")

    decided = plan(snapshot_of(job(**ALL), at("08:30"), adjustments=(skip,)), at("11:30"))

    assert instants(decided) == [at("09:00"), at("11:00")]
    assert skipped(decided) == [(at("10:00") - TICK, at("10:00"), "skipped: skipped by hand, by ann (holiday)", 1)]


def test_an_instant_that_is_skipped_and_has_just_come_is_recorded() -> None:
    skip = Adjustment(at("10:00"), AdjustmentKind.SKIP)

    decided = plan(snapshot_of(job(), at("09:30"), adjustments=(skip,)), at("10:00"))

    assert (decided.creations, [str(each.why) for each in decided.spans]) == ((), ["skipped by hand"])


def test_a_skip_of_something_that_is_no_instant_changes_nothing() -> None:
    skip = Adjustment(at("10:10"), AdjustmentKind.SKIP)

    decided = plan(snapshot_of(job(**ALL), at("09:30"), adjustments=(skip,)), at("11:30"))

    assert (instants(decided), decided.spans) == ([at("10:00"), at("11:00")], ())


def test_what_is_said_by_hand_comes_before_a_pause() -> None:
    """First match wins: the reason is the skip or the move, and the rest of the pause is whole around it."""
    skip = Adjustment(at("11:00"), AdjustmentKind.SKIP)
    pause = PausedSpan(at("09:30"), at("12:30"))

    decided = plan(snapshot_of(job(), at("09:10"), adjustments=(skip,), pauses=(pause,)), at("12:40"))

    assert [(each.through, str(each.why), each.count) for each in decided.spans] == [
        (at("10:00"), "paused", 1),
        (at("11:00"), "skipped by hand", 1),
        (at("12:00"), "paused", 1),
    ]


def test_the_instant_before_a_skipped_one_is_late_all_the_same() -> None:
    """Late is about the schedule: its successor is due, though it will not run."""
    skip = Adjustment(at("10:00"), AdjustmentKind.SKIP)

    decided = plan(snapshot_of(job(grace="3h"), at("08:30"), adjustments=(skip,)), at("10:10"))

    assert [(each.scheduled_for, each.late) for each in decided.creations] == [(at("09:00"), True)]


# -------------------------------------------------------------------------------------------------------- moved


def test_a_moved_occurrence_keeps_its_id_and_what_it_stands_for() -> None:
    """Its place tells where it went; it runs at its new time, once."""
    move = moved("10:00", "10:20")
    first = plan(snapshot_of(job(), at("09:30"), adjustments=(move,)), at("10:00:01"))
    second = plan(snapshot_of(job(), first.watermark, adjustments=(move,)), at("10:20:01"))

    assert (first.creations, first.used, first.wake_at) == ((), (), at("10:20"))
    assert skipped(first) == [(at("10:00") - TICK, at("10:00"), f"skipped: moved, to {at('10:20').isoformat()}", 1)]
    [only] = second.creations
    assert only.id == occurrence_id(job().id, at("10:00"))
    assert (only.scheduled_for, only.line_at, only.late) == (at("10:20"), at("10:20"), False)
    assert (only.covers_after, only.covers_through) == (at("09:00"), at("10:00"))
    assert (second.used, second.wake_at) == ((move,), at("11:00"))


def test_a_move_to_an_earlier_time_runs_once() -> None:
    move = moved("11:00", "10:30")

    early = plan(snapshot_of(job(), at("10:05"), adjustments=(move,)), at("10:30:01"))
    place = plan(snapshot_of(job(), early.watermark, adjustments=(replace(move, done=True),)), at("11:00:01"))

    assert (instants(early), early.used) == ([at("10:30")], (move,))
    assert (instants(place), [str(each.why) for each in place.spans]) == ([], ["moved"])


def test_a_move_that_has_just_come_does_not_wake_the_job_again() -> None:
    decided = plan(snapshot_of(job(), at("10:05"), adjustments=(moved("10:00", "10:20"),)), at("10:20"))

    assert (created(decided), decided.wake_at) == ([(at("10:20"), "pending")], at("11:00"))


def test_a_move_onto_another_instant_runs_beside_it() -> None:
    """Both are the newest, so both are on time."""
    seen = snapshot_of(job(overlap="allow"), at("09:30"), adjustments=(moved("10:00", "11:00"),))

    decided = plan(seen, at("11:00:01"))

    assert instants(decided) == [at("11:00"), at("11:00")]
    assert [each.late for each in decided.creations] == [False, False]
    assert [each.id for each in decided.creations] == sorted(each.id for each in decided.creations)


def test_a_move_onto_itself_changes_nothing() -> None:
    decided = plan(snapshot_of(job(), at("09:30"), adjustments=(moved("10:00", "10:00"),)), at("10:00:01"))

    assert (created(decided), decided.spans) == ([(at("10:00"), "pending")], ())


def test_a_moved_one_that_recovery_does_not_keep_is_a_row_with_its_reason() -> None:
    """It is no instant of the schedule, so no span could tell of it; and it does not come back."""
    move = moved("09:00", "09:30")
    seen = snapshot_of(job(), at("08:30"), adjustments=(move,))

    decided = plan(seen, at("11:30"))

    assert created(decided) == [(at("09:30"), "skipped"), (at("11:00"), "pending")]
    assert (str(decided.creations[0].why), decided.used) == ("not last", (move,))


def test_a_moved_one_that_is_marked_as_missed_is_a_missed_row() -> None:
    seen = snapshot_of(job(recovery="mark_as_missed"), at("08:30"), adjustments=(moved("09:00", "09:30"),))

    decided = plan(seen, at("09:45"))

    assert created(decided) == [(at("09:30"), "missed")]


def test_a_moved_one_counts_among_those_that_recovery_keeps() -> None:
    seen = snapshot_of(job(), at("10:30"), adjustments=(moved("10:00", "11:30"),))

    decided = plan(seen, at("11:45"))

    assert created(decided) == [(at("11:30"), "pending")]
    assert skipped(decided) == [(at("10:30"), at("11:00"), "skipped: not last", 1)]


def test_a_move_into_a_pause_is_held_by_it() -> None:
    """What holds its new time holds it too, and it does not fire at the end of the pause."""
    move = moved("10:00", "11:10")
    seen = snapshot_of(job(), at("10:05"), adjustments=(move,), pauses=(PausedSpan(at("10:30"), at("11:30")),))

    decided = plan(seen, at("11:40"))

    assert created(decided) == [(at("11:10"), "skipped")]
    assert (str(decided.creations[0].why), decided.used) == ("paused", (move,))


def test_a_moved_one_on_its_way_is_not_recorded_as_paused() -> None:
    """Only its old place lies in the pause."""
    seen = snapshot_of(
        job(), at("09:30"), adjustments=(moved("10:00", "11:10"),), pauses=(PausedSpan(at("09:40"), at("10:30")),)
    )

    decided = plan(seen, at("11:10:01"))

    assert [str(each.why) for each in decided.spans] == ["moved", "not last"]
    assert created(decided) == [(at("11:10"), "pending")]


def test_a_move_to_this_very_moment_is_seen() -> None:
    """Though the watermark has come so far already."""
    move = moved("12:00", "10:30")

    decided = plan(snapshot_of(job(), at("10:30"), adjustments=(move,)), at("10:30"))

    assert created(decided) == [(at("10:30"), "pending")]


def test_a_moved_one_is_skipped_for_overlap_as_a_row() -> None:
    move = moved("10:00", "10:20")
    seen = snapshot_of(job(), at("10:05"), adjustments=(move,), active=(active("x", at("09:00")),))

    decided = plan(seen, at("10:20:01"))

    assert [(each.detail, str(each.status)) for each in decided.creations] == [("behind x", "skipped")]
    assert (decided.used, decided.spans) == ((move,), ())


@pytest.mark.parametrize("when", ["0 * * * *", "0 9,12 * * *"])
def test_a_next_run_that_was_moved_away_comes_where_it_was_moved(when: str) -> None:
    """Whether the schedule names the time to which it was set, or did so: one occurrence has its id."""
    seen = snapshot_of(
        job(when), at("09:10"), adjustments=(moved("10:00", "10:30"),), reschedule=Rescheduled(at("09:20"), at("10:00"))
    )

    assert next_run(seen, at("09:30")) == at("10:30")
    early = plan(seen, at("10:00:01"))
    assert (early.creations, early.wake_at, early.rescheduled) == ((), at("10:30"), True)
    decided = plan(replace(seen, watermark=early.watermark, reschedule=None), at("10:30:01"))
    assert created(decided) == [(at("10:30"), "pending")]


def test_a_compressed_run_stands_for_a_moved_one_too() -> None:
    """And says so to it."""
    move = moved("10:00", "10:20")
    seen = snapshot_of(job(recovery="compressed"), at("10:05"), adjustments=(move,))

    decided = plan(seen, at("11:00:01"))

    row, run = decided.creations
    assert (str(row.status), str(row.why), row.detail) == ("skipped", "compressed", f"into {run.id}")
    assert (run.scheduled_for, run.covers_after, run.late) == (at("11:00"), at("09:00"), True)


def test_of_two_moved_ones_the_newer_is_the_compressed_run() -> None:
    """Though the schedule itself names nothing that is due."""
    moves = (moved("10:00", "11:10"), moved("09:00", "11:05"))

    decided = plan(snapshot_of(job(recovery="compressed"), at("11:00"), adjustments=moves), at("11:30"))

    assert created(decided) == [(at("11:05"), "skipped"), (at("11:10"), "pending")]
    assert (decided.creations[1].covers_after, decided.creations[1].covers_through) == (at("08:00"), at("10:00"))


def test_a_compressed_run_covers_the_time_of_one_that_was_moved_ahead() -> None:
    """It covered from 11:00 through 11:00, and no run covered the hour before."""
    seen = snapshot_of(job(recovery="compressed"), at("10:05"), adjustments=(moved("12:00", "10:30"),))

    decided = plan(seen, at("11:20"))

    row, run = decided.creations
    assert (row.detail, run.scheduled_for) == (f"into {run.id}", at("11:00"))
    assert (run.covers_after, run.covers_through) == (at("10:00"), at("12:00"))


def test_a_moved_one_into_which_others_were_compressed_covers_their_time() -> None:
    """It covered through its own 10:00 only, and 11:00 went into it."""
    seen = snapshot_of(job(recovery="compressed"), at("10:05"), adjustments=(moved("10:00", "11:15"),))

    decided = plan(seen, at("11:30"))

    [run] = decided.creations
    assert skipped(decided) == [(at("10:05"), at("11:00"), f"skipped: compressed, into {run.id}", 1)]
    assert (run.covers_after, run.covers_through) == (at("09:00"), at("11:00"))


def test_a_compressed_run_leaves_alone_what_a_pause_holds() -> None:
    seen = snapshot_of(
        job(recovery="compressed"),
        at("09:05"),
        adjustments=(moved("09:00", "10:40"), Adjustment(at("10:00"), AdjustmentKind.SKIP)),
        pauses=(PausedSpan(at("10:30"), at("10:50")),),
    )

    decided = plan(seen, at("12:30"))

    row, run = decided.creations
    assert (str(row.why), row.scheduled_for) == ("paused", at("10:40"))
    assert (run.covers_after, run.covers_through) == (at("10:00"), at("12:00"))


# ------------------------------------------------------------------------------------------------------ amended


def test_an_amended_occurrence_runs_in_its_place_with_settings_of_its_own() -> None:
    theirs = overrides(Level.OCCURRENCE, {"payload": {"rows": 5}, "priority": 9})
    amend = Adjustment(at("10:00"), AdjustmentKind.AMEND, overrides=theirs)
    seen = snapshot_of(job(payload={"rows": 1}), at("09:30"), adjustments=(amend,))

    decided = plan(seen, at("10:00:01"))

    [only] = decided.creations
    assert (str(only.status), only.payload, only.overrides) == ("pending", payload({"rows": 5}), theirs)
    assert (decided.used, decided.spans) == ((amend,), ())


def test_an_amended_occurrence_keeps_the_payload_it_does_not_change() -> None:
    amend = Adjustment(at("10:00"), AdjustmentKind.AMEND, overrides=overrides(Level.OCCURRENCE, {"priority": 9}))
    seen = snapshot_of(job(payload={"rows": 1}), at("09:30"), adjustments=(amend,))

    assert plan(seen, at("10:00:01")).creations[0].payload == payload({"rows": 1})


def test_what_recovery_drops_is_told_by_which_bound() -> None:
    """Before the window it is the window, inside it the cap; also at its very edge."""
    capped = job("0 23 * * *", recovery=bounded_window(max_duration="2h"), late_cap=1)
    moves = (moved("06:00", "10:10"), moved("07:00", "09:30"), moved("08:00", "10:20"), moved("05:00", "09:20"))

    decided = plan(snapshot_of(capped, at("09:00"), adjustments=moves), at("11:30"))

    assert [(each.scheduled_for, str(each.status), str(each.why)) for each in decided.creations] == [
        (at("09:20"), "skipped", "window"),
        (at("09:30"), "skipped", "window"),
        (at("10:10"), "skipped", "cap"),
        (at("10:20"), "pending", "late, kept by recovery"),
    ]


@pytest.mark.parametrize(("to", "status"), [("10:30", "pending"), ("11:30", "skipped"), ("11:31", "pending")])
def test_a_pause_holds_what_was_moved_to_its_end_and_not_to_its_beginning(to: str, status: str) -> None:
    """(from, until], as for any instant."""
    move = moved("06:00", to)
    daily = job("0 23 * * *")

    decided = plan(
        snapshot_of(daily, at("09:00"), adjustments=(move,), pauses=(PausedSpan(at("10:30"), at("11:30")),)),
        at("11:40"),
    )

    assert created(decided) == [(at(to), status)]


def test_a_moved_instant_at_the_moment_of_an_edit_stands_for_what_the_old_definition_says() -> None:
    timeline = editions((job(), None), (job("0 23 * * *"), "10:00"))

    decided = plan(
        snapshot_of(job(), at("10:05"), editions=timeline, adjustments=(moved("10:00", "10:20"),)), at("10:20:01")
    )

    assert decided.creations[0].covers_after == at("09:00")


def test_moved_ones_and_instants_of_one_time_stand_by_id() -> None:
    """Whichever of the two is the smaller."""
    for hour in range(1, 9):
        move = moved(f"{hour:02}:00", "11:00")
        seen = snapshot_of(job(overlap="queue"), at("10:30"), adjustments=(move,))

        decided = plan(seen, at("11:00:01"))

        ids = [each.id for each in decided.creations]
        assert ids == sorted(ids)
        assert len(ids) == 2


# -------------------------------------------------------------------------------------------------- rescheduled


def rescheduled(made: str, to: str) -> Rescheduled:
    return Rescheduled(at(made), at(to))


def test_a_reschedule_sets_the_next_run() -> None:
    """S1-023: what lies between gives way, and the schedule goes on after it."""
    seen = snapshot_of(job(), at("09:10"), reschedule=rescheduled("09:10", "11:20"))

    before = plan(seen, at("10:00:01"))
    after = plan(seen, at("11:20:01"))

    assert (before.creations, before.rescheduled, before.wake_at) == ((), False, at("11:00"))
    assert skipped(before) == [(at("09:10"), at("10:00"), f"skipped: rescheduled, to {at('11:20').isoformat()}", 1)]
    assert created(after) == [(at("11:20"), "pending")]
    assert after.creations[0].id == occurrence_id(job().id, at("11:20"))
    assert [(each.count, each.through) for each in after.spans] == [(2, at("11:00"))]
    assert (after.rescheduled, after.wake_at) == (True, at("12:00"))


def test_the_wake_is_the_target_of_a_reschedule_if_that_comes_first() -> None:
    seen = snapshot_of(job("0 23 * * *"), at("09:10"), reschedule=rescheduled("09:10", "11:20"))

    assert plan(seen, at("09:11")).wake_at == at("11:20")


def test_a_reschedule_to_an_instant_of_the_schedule_is_that_instant() -> None:
    seen = snapshot_of(job(), at("09:10"), reschedule=rescheduled("09:10", "11:00"))

    decided = plan(seen, at("11:00:01"))

    assert created(decided) == [(at("11:00"), "pending")]
    assert [(str(each.why), each.count) for each in decided.spans] == [("rescheduled", 1)]
    assert decided.rescheduled is True


@pytest.mark.parametrize("to", ["11:00", "11:20"])
def test_a_reschedule_to_this_very_moment_is_done_at_once(to: str) -> None:
    """Be it an instant of the schedule or not; the next look is at the next instant."""
    decided = plan(snapshot_of(job(), at("09:10"), reschedule=rescheduled("09:10", to)), at(to))

    assert created(decided) == [(at(to), "pending")]
    assert (decided.rescheduled, decided.wake_at) == (True, at("12:00"))


def test_a_reschedule_that_recovery_drops_is_a_row_and_done() -> None:
    seen = snapshot_of(job(), at("09:10"), reschedule=rescheduled("09:10", "11:20"))

    decided = plan(seen, at("13:30"))

    assert created(decided) == [(at("11:20"), "skipped"), (at("13:00"), "pending")]
    assert decided.rescheduled is True


def test_a_reschedule_waits_for_the_end_of_a_pause() -> None:
    seen = snapshot_of(job(), at("09:10"), reschedule=rescheduled("09:10", "10:20"), pauses=(PausedSpan(at("09:30")),))

    assert plan(seen, at("11:00")).rescheduled is False


def test_a_move_to_a_time_before_the_reschedules_target_gives_way_to_it() -> None:
    """Between a reschedule and its target: whatever the schedule means to run then."""
    seen = snapshot_of(
        job(), at("09:10"), reschedule=rescheduled("09:10", "11:20"), adjustments=(moved("10:00", "10:40"),)
    )

    decided = plan(seen, at("11:20:01"))

    assert created(decided) == [(at("10:40"), "skipped"), (at("11:20"), "pending")]
    assert str(decided.creations[0].why) == "rescheduled"


# ------------------------------------------------------------------------------------------- skip_if_successful


NINE, BY_HAND = occurrence_id(job().id, at("09:00")), trigger_id(job().id, "by hand")


@pytest.mark.parametrize(
    ("who", "started", "runs"),
    [
        (NINE, "09:00:00.003", True),
        (NINE, "09:40", True),
        (BY_HAND, "08:59:59.999", True),
        (BY_HAND, "09:00:00", False),
        (BY_HAND, "09:00:01", False),
        (BY_HAND, "09:59", False),
        (BY_HAND, "10:00:00.5", False),
        (BY_HAND, "08:30", True),
        (replay_id(job().id, "again"), "09:40", False),
    ],
)
def test_what_was_successful_since_the_previous_instant_is_not_run_again(who: str, started: str, runs: bool) -> None:
    """F3, S4-021, S4-022: a success since the previous instant counts, unless it is that instant's own run."""
    success = Ended(at("09:00"), at(started), at("09:59:30"), who)

    decided = plan(snapshot_of(job(skip_if_successful=True), at("09:30"), last_success=success), at("10:00:01"))

    assert bool(decided.creations) is runs
    assert [str(each.why) for each in decided.spans] == ([] if runs else ["already successful"])


@pytest.mark.parametrize("own_is_last", [True, False])
def test_the_run_of_the_previous_instant_hides_no_other_success(own_is_last: bool) -> None:
    """F3, S4-022: of the last two successes either may be the run of the previous instant itself."""
    own = Ended(at("09:00"), at("09:00:00.003"), at("09:50"), NINE)
    by_hand = Ended(at("09:10"), at("09:10"), at("09:20"), BY_HAND)
    last, other = (own, by_hand) if own_is_last else (by_hand, own)
    seen = snapshot_of(job(skip_if_successful=True), at("09:30"), last_success=last, other_success=other)

    decided = plan(seen, at("10:00:01"))

    assert decided.creations == ()
    assert [(str(each.why), each.detail) for each in decided.spans] == [
        ("already successful", f"started {at('09:10').isoformat()}")
    ]


def test_skip_if_successful_is_for_the_one_on_time() -> None:
    """S4-023: late ones obey overlap only, and without a success there is nothing to skip for."""
    success = Ended(at("09:00"), at("09:50"), at("09:59:30"), BY_HAND)
    once_more = job(skip_if_successful=True)

    late = plan(snapshot_of(once_more, at("09:30"), last_success=success), at("10:30"))
    never = plan(snapshot_of(once_more, at("09:30")), at("10:00:01"))
    unknown = plan(snapshot_of(once_more, at("09:30"), last_success=replace(success, started_at=None)), at("10:00:01"))
    asked = plan(snapshot_of(once_more, at("09:30"), last_success=success, requests=(trigger(),)), at("09:45"))

    for decided in (late, never, unknown, asked):
        assert [str(each.status) for each in decided.creations] == ["pending"]


def test_the_first_instant_of_all_is_skipped_after_any_success() -> None:
    young = job("once: 2026-11-16T10:00:00Z", skip_if_successful=True)
    success = Ended(at("09:00"), at("09:50"), at("09:55"), BY_HAND)

    assert plan(snapshot_of(young, at("09:30"), last_success=success), at("10:00:01")).creations == ()
