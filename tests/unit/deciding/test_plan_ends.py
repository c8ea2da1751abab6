"""Schedules that follow an end, schedules that stop and restart, and when an occurrence may start."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from everytick.deciding.plan import plan
from everytick.domain import ids
from everytick.domain.job import Job
from everytick.domain.snapshots import Edition, Ended, JobSnapshot, PausedSpan
from tests.laws.worlds import committed
from tests.unit.deciding.planning import active, at, created, ended, instants, job, skipped, snapshot_of, trigger

RUNS = active("runs", at("09:00"))


def follows(watermark: str, end: str | None, when: str = "after: 10m", **known: Any) -> JobSnapshot:
    """A job that runs ten minutes after its last end."""
    policies = known.pop("policies", {})
    last = None if end is None else Ended(at("09:00"), at("09:00"), at(end))
    return snapshot_of(job(when, **policies), at(watermark), last_end=last, **known)


# --------------------------------------------------------------------------------------------- after completion


def test_ten_minutes_after_the_last_end_it_runs_again() -> None:
    """C-07."""
    waits = plan(follows("09:00", "09:30"), at("09:35"))
    comes = plan(follows("09:00", "09:30"), at("09:40:01"))

    assert (waits.creations, waits.watermark, waits.wake_at) == ((), at("09:35"), at("09:40"))
    assert created(comes) == [(at("09:40"), "pending")]
    assert (comes.watermark, comes.wake_at) == (at("09:40"), None)


def test_its_first_occurrence_comes_that_long_after_it_was_created() -> None:
    seen = follows("09:00", None)
    edition = replace(seen.editions[0], job=replace(seen.editions[0].job, created_at=at("09:00")))
    young = replace(seen, editions=(edition,))

    assert plan(young, at("09:05")).wake_at == at("09:10")
    assert created(plan(young, at("09:10:01"))) == [(at("09:10"), "pending")]


def test_before_any_end_and_without_a_time_of_creation_it_names_nothing() -> None:
    decided = plan(follows("09:00", None), at("12:00"))

    assert (decided.creations, decided.wake_at, decided.watermark) == ((), None, at("12:00"))


@pytest.mark.parametrize("status", ["running", "pending", "awaiting_retry", "queued"])
def test_while_something_is_active_the_watermark_waits(status: str) -> None:
    """Its next instant follows from an end that may already lie before this now."""
    seen = follows("09:00", "08:00", active=(active("x", at("09:00"), status),), policies={"max_concurrent": 2})
    seen = replace(seen, pauses=(PausedSpan(at("08:00"), at("08:30")),))

    decided = plan(seen, at("09:45"))

    assert (decided.watermark, decided.wake_at, decided.creations) == (at("09:00"), None, ())


def test_an_end_that_was_written_late_is_not_slept_through() -> None:
    """It ended at 09:30, and a plan at 09:45 still saw it run."""
    still = plan(follows("09:00", "08:00", active=(RUNS,)), at("09:45"))
    ended_now = plan(replace(follows("09:00", "09:30"), watermark=still.watermark), at("09:46"))

    assert created(ended_now) == [(at("09:40"), "pending")]


def test_a_skipped_instant_does_not_silence_what_follows_an_end() -> None:
    """It goes on as if what was skipped had ended at once."""
    paused = plan(follows("09:35", "09:30", pauses=(PausedSpan(at("09:36"), at("10:05")),)), at("10:05"))
    later = plan(follows("10:05", "09:30"), at("10:10:01"))

    assert skipped(paused) == [(at("09:36"), at("09:40"), "skipped: paused", 1)]
    assert paused.wake_at == at("10:10")
    assert created(later) == [(at("10:10"), "pending")]


def test_a_missed_instant_does_not_silence_it_either() -> None:
    missed = plan(follows("09:00", "09:30", policies={"recovery": "mark_as_missed"}), at("11:33"))

    assert (missed.creations, [str(each.status) for each in missed.spans]) == ((), ["missed"])
    assert missed.wake_at == at("11:40")


def test_a_delay_of_nothing_goes_on_after_a_skip() -> None:
    pause = PausedSpan(at("09:10"), at("10:00"))
    paused = plan(follows("09:05", "09:30", "after: 0s", pauses=(pause,)), at("10:00"))
    assert paused.wake_at is not None

    after = plan(follows("10:00", "09:30", "after: 0s"), at("10:00:01"))

    assert (instants(paused), paused.wake_at) == ([], at("10:00") + timedelta(microseconds=1))
    assert len(after.creations) == 1


def test_what_follows_an_end_ends_with_its_window() -> None:
    seen = follows("09:35", "09:30", policies={"end": at("09:38")})

    assert plan(seen, at("10:30")).wake_at is None


def test_beside_other_instants_it_is_one_of_them() -> None:
    """A union of a rule and a delay: while it runs the rule goes on being decided."""
    union = "(after: 10m) | (0 * * * *)"
    busy = plan(follows("09:00", None, union, active=(RUNS,)), at("10:20"))
    idle = plan(follows("10:00", "10:25", union), at("10:35:01"))

    assert [(each.through, str(each.why)) for each in busy.spans] == []
    assert created(busy) == [(at("10:00"), "queued")]
    assert (busy.watermark, busy.wake_at) == (at("10:00"), at("11:00"))
    assert created(idle) == [(at("10:35"), "pending")]


def test_what_is_skipped_beside_a_busy_one_is_decided_once() -> None:
    """The watermark goes as far as the last instant decided, so no later plan returns to it."""
    union = "(after: 10m) | (0 * * * *)"

    decided = plan(follows("09:00", None, union, active=(RUNS,), policies={"recovery": "mark_as_missed"}), at("11:20"))

    assert [(each.through, each.count) for each in decided.spans] == [(at("11:00"), 2)]
    assert (decided.watermark, decided.wake_at) == (at("11:00"), at("12:00"))


# --------------------------------------------------------------------------------------------- stop and restart


def test_an_instant_of_the_stop_schedule_asks_every_busy_one_to_stop() -> None:
    lined = (RUNS, active("pends", at("09:10"), "pending"), active("retries", at("09:20"), "awaiting_retry"))
    stopping = job("0 6 * * *", stop_schedule="0 10 * * *", max_concurrent=5)

    decided = plan(snapshot_of(stopping, at("09:30"), active=lined), at("10:00:30"))

    assert decided.cancels == ("runs", "pends", "retries")
    assert decided.cancels_because == "asked by the stop schedule"
    assert (decided.creations, decided.endings) == ((), ())


def test_a_late_stop_is_never_caught_up() -> None:
    stopping = job("0 6 * * *", stop_schedule="0 10 * * *", restart_schedule="0 10 * * *")

    decided = plan(snapshot_of(stopping, at("09:30"), active=(RUNS,)), at("10:01"))

    assert (decided.cancels, decided.creations) == ((), ())


def test_a_stop_that_was_decided_is_not_repeated() -> None:
    stopping = job("0 6 * * *", stop_schedule="0 10 * * *")

    assert plan(snapshot_of(stopping, at("10:00"), active=(RUNS,)), at("10:00:30")).cancels == ()


def test_the_planner_looks_when_the_stop_and_the_restart_come() -> None:
    early = job("0 6 * * *", stop_schedule="0 22 * * *", restart_schedule="0 20 * * *")

    assert plan(snapshot_of(early, at("09:30")), at("10:00")).wake_at == at("20:00")


def test_a_restart_stops_what_runs_and_runs_anew() -> None:
    restarting = job("0 6 * * *", restart_schedule="0 10 * * *")

    busy = plan(snapshot_of(restarting, at("09:30"), active=(RUNS,)), at("10:00:30"))
    idle = plan(snapshot_of(restarting, at("09:30")), at("10:00:30"))

    assert (busy.cancels, created(busy)) == (("runs",), [(at("10:00"), "queued")])
    assert busy.cancels_because == "asked by the restart schedule"
    assert created(idle) == [(at("10:00"), "pending")]
    assert busy.creations[0].id == ids.restart_id(restarting.id, at("10:00"))
    assert str(busy.creations[0].cause) == "restart"


def edited(before: Job, after: Job, moment: str) -> tuple[Edition, ...]:
    """The second definition comes into force after that moment."""
    return Edition(before), Edition(replace(after, version=2), at(moment))


@pytest.mark.parametrize("kind", ["stop_schedule", "restart_schedule"])
def test_the_planner_looks_when_a_definition_with_a_stop_comes_into_force(kind: str) -> None:
    """The job may be busy for hours, and its own instants may come long after the first stop."""
    plain, stopping = job("0 6 * * *"), job("0 6 * * *", **{kind: "0 12 * * *"})
    editions = edited(plain, stopping, "11:00")

    decided = plan(snapshot_of(plain, at("09:30"), active=(RUNS,), editions=editions), at("10:00"))
    in_force = plan(snapshot_of(plain, at("10:00"), active=(RUNS,), editions=editions), at("11:00"))

    assert (decided.wake_at, in_force.wake_at) == (at("11:00"), at("12:00"))


def test_a_restart_counts_only_while_its_definition_is_in_force() -> None:
    """A definition that comes into force on time for a restart before it does not restart; the old one's does."""
    plain, restarting = job("0 6 * * *", grace="1h"), job("0 6 * * *", grace="1h", restart_schedule="0 10 * * *")
    known = {"active": (RUNS,)}

    begins = plan(snapshot_of(plain, at("09:30"), editions=edited(plain, restarting, "10:10"), **known), at("10:20"))
    ends = plan(snapshot_of(plain, at("09:30"), editions=edited(restarting, plain, "10:10"), **known), at("10:20"))

    assert (begins.cancels, begins.creations) == ((), ())
    assert (ends.cancels, created(ends)) == (("runs",), [(at("10:00"), "queued")])


def test_a_restart_is_obeyed_once_though_the_watermark_waits_for_an_end() -> None:
    """S4-044: its own run has ended since, within the grace. It takes no place of the next instant."""
    restarting = job("after: 10m", restart_schedule="50 * * * *", grace="20m")
    runs = replace(RUNS, line_at=at("09:00"), scheduled_for=at("09:00"))

    first = plan(snapshot_of(restarting, at("09:00"), active=(runs,)), at("09:50"))
    assert (first.watermark, first.stopped_at) == (at("09:00"), at("09:50"))
    assert (first.cancels, created(first)) == (("runs",), [(at("09:50"), "queued")])

    known = replace(snapshot_of(restarting, first.watermark), stopped_at=first.stopped_at)
    ended_at = Ended(at("09:50"), at("09:50"), at("09:51"), first.creations[0].id)
    decided = plan(replace(known, last_end=ended_at), at("10:01"))

    assert created(decided) == [(at("10:01"), "pending")]
    assert (decided.cancels, decided.spans, decided.stopped_at) == ((), (), None)


def test_a_restart_has_its_place_in_a_full_plan() -> None:
    restarting = job("after: 10m", restart_schedule="50 * * * *", grace="20m")
    asked = (trigger("t", at("09:49")),)

    cut = plan(snapshot_of(restarting, at("09:00"), active=(RUNS,), requests=asked), at("09:50"), limit=1)

    assert (created(cut), cut.stopped_at, cut.wake_at) == ([(at("09:50"), "queued")], at("09:50"), at("09:50"))


@pytest.mark.parametrize("overlap", ["allow", "queue"])
def test_a_restart_that_comes_behind_more_than_a_plan_holds_stops_nothing_that_began_after_it(overlap: str) -> None:
    """S4-044: late runs of 09:00 to 10:00 that three plans let in, the first of them with the restart."""
    policies = {"overlap": overlap, "recovery": "execute_all", "grace": "20m", "late_overlap": "allow"}
    restarting = job("*/10 * * * *", restart_schedule="5 10 * * *", **policies)
    seen, plans = snapshot_of(restarting, at("09:00")), []
    for _ in range(4):
        plans.append(plan(seen, at("10:10"), limit=3))
        seen = committed(seen, plans[-1])

    assert [decided.cancels for decided in plans] == [()] * 4
    assert [str(each.cause) for decided in plans for each in decided.creations].count("restart") == 1
    assert sum(len(decided.creations) for decided in plans) == 8
    assert (seen.watermark, plans[-1].creations) == (at("10:10"), ())


def test_a_restart_stands_in_line_where_a_plan_does_not_know_yet_which_places_are_free() -> None:
    """The retry gives way to the instant of 10:00, and a node may have claimed it since."""
    restarting = job("0 * * * *", overlap="queue", restart_schedule="0 10 * * *")
    retries = active("retries", at("09:00"), "awaiting_retry", superseded_by_next=True)

    decided = plan(snapshot_of(restarting, at("09:30"), active=(retries,)), at("10:00"))

    assert [str(each.cause) for each in decided.creations if each.status == "queued"] == ["restart"]
    assert decided.wake_at == at("10:00")


def test_a_stop_is_obeyed_once_also_while_the_job_is_paused() -> None:
    """A pause lets the watermark wait. What had not begun by the stop runs after it."""
    stopping = job("0 6 * * *", stop_schedule="0 10 * * *")
    known: dict[str, Any] = {"pauses": (PausedSpan(at("09:40")),)}
    waits = active("waits", at("09:50"), "queued", cause="trigger")
    asked = trigger("t", at("09:59:59"))

    seen = plan(snapshot_of(stopping, at("09:30"), active=(waits,), requests=(asked,), **known), at("10:00:00"))
    pends = active("waits", at("09:50"), "pending", cause="trigger")
    again = replace(snapshot_of(stopping, at("09:30"), active=(pends,), **known), stopped_at=seen.stopped_at)

    assert (seen.releases, seen.cancels, created(seen)) == (("waits",), (), [(at("09:59:59"), "queued")])
    assert seen.stopped_at == at("10:00")
    assert plan(again, at("10:00:10")).cancels == ()


def test_what_is_superseded_is_not_asked_to_stop_as_well() -> None:
    restarting = job("0 10 * * *", stop_schedule="0 10 * * *", overlap="cancel_running")
    pends = active("pends", at("09:10"), "pending")

    decided = plan(snapshot_of(restarting, at("09:30"), active=(pends,)), at("10:00:01"))

    assert (decided.cancels, [id_ for id_, _, _ in ended(decided)]) == ((), ["pends"])


# -------------------------------------------------------------------------------------------------------- jitter


def test_jitter_delays_the_start_and_nothing_else() -> None:
    """Derived from the id, so every node says the same; the instant and the line stay."""
    shaken = job(jitter="30s", recovery="execute_all", overlap="allow")

    decided = plan(snapshot_of(shaken, at("00:30")), at("23:30"))

    delays = [each.ready_at - each.scheduled_for for each in decided.creations]
    assert all(timedelta(0) <= each < timedelta(seconds=30) for each in delays)
    assert len(set(delays)) == len(delays) == 23
    assert [each.line_at for each in decided.creations] == instants(decided)
