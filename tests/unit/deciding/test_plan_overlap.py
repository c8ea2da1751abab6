"""Who may start: every overlap policy, `max_concurrent`, `late_overlap`, and the line."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from everytick.deciding.plan import plan
from everytick.domain.ids import occurrence_id
from everytick.domain.policies import Overlap
from everytick.domain.snapshots import Active, Adjustment, AdjustmentKind, Ended, JobSnapshot, PausedSpan, Rescheduled
from tests.laws.worlds import committed
from tests.unit.deciding.planning import active, at, created, ended, instants, job, skipped, snapshot_of, trigger

RUNS = active("runs", at("09:00"))
PENDS = active("pends", at("09:00"), "pending")
RETRIES = active("retries", at("09:00"), "awaiting_retry")
WAITS = active("waits", at("09:30"), "queued")
NOW = at("10:00:01")
TICK = timedelta(microseconds=1)


def due(*lined: Active, **policies: Any) -> JobSnapshot:
    """An hourly job at whose next look 10:00 is on time."""
    return snapshot_of(job(**policies), at("09:30"), active=lined)


@pytest.mark.parametrize("overlap", ["skip", "queue", "queue_latest", "allow", "cancel_running"])
def test_an_idle_job_starts_whatever_its_policy(overlap: str) -> None:
    decided = plan(due(overlap=overlap), NOW)

    assert created(decided) == [(at("10:00"), "pending")]
    assert (decided.endings, decided.cancels, decided.spans) == ((), (), ())


@pytest.mark.parametrize("busy", [RUNS, PENDS, RETRIES], ids=lambda each: each.id)
def test_skip_records_behind_whom_it_was_skipped(busy: Active) -> None:
    """S4-002, S4-020, S0-060, C-11: pending, running and awaiting a retry are all busy."""
    decided = plan(due(busy), NOW)

    assert decided.creations == ()
    assert skipped(decided) == [(at("10:00") - TICK, at("10:00"), f"skipped: overlap, behind {busy.id}", 1)]
    assert decided.watermark == NOW


def test_skip_names_the_oldest_busy_one() -> None:
    younger, older = active("a", at("09:30")), active("b", at("09:00"))

    decided = plan(due(younger, older, max_concurrent=2), NOW)

    assert [each.detail for each in decided.spans] == ["behind b"]


def test_skip_does_not_pass_those_who_wait() -> None:
    """A free place goes to a waiting occurrence."""
    decided = plan(due(RUNS, WAITS, max_concurrent=2), NOW)

    assert decided.releases == ("waits",)
    assert [str(each.why) for each in decided.spans] == ["overlap"]


def test_allow_starts_beside_the_others() -> None:
    """S0-061."""
    decided = plan(due(RUNS, PENDS, overlap="allow"), NOW)

    assert created(decided) == [(at("10:00"), "pending")]


def test_allow_up_to_max_concurrent_and_then_waits() -> None:
    """C-11."""
    assert created(plan(due(RUNS, overlap="allow", max_concurrent=2), NOW)) == [(at("10:00"), "pending")]
    assert created(plan(due(RUNS, PENDS, overlap="allow", max_concurrent=2), NOW)) == [(at("10:00"), "queued")]


def test_max_concurrent_gives_room_under_every_policy() -> None:
    """C-11."""
    for overlap in ("skip", "queue", "queue_latest", "cancel_running"):
        assert created(plan(due(RUNS, overlap=overlap, max_concurrent=2), NOW)) == [(at("10:00"), "pending")]


def test_queue_waits_and_says_behind_whom() -> None:
    """S0-062."""
    decided = plan(due(RUNS, overlap="queue"), NOW)

    assert created(decided) == [(at("10:00"), "queued")]
    assert decided.creations[0].detail == "behind runs"
    assert decided.wake_at == at("11:00")


def test_when_one_ends_the_oldest_in_line_is_released_and_the_next_waits() -> None:
    """S0-062: one at a time, in order of (line_at, id)."""
    line = (active("d", at("09:31"), "queued"), active("b", at("09:30"), "queued"), active("c", at("09:30"), "queued"))
    lined = sorted(line, key=lambda each: (each.line_at, each.id))

    decided = plan(due(*lined, overlap="queue"), NOW)

    assert decided.releases == ("b",)
    assert created(decided) == [(at("10:00"), "queued")]


def test_releases_fill_all_the_room_there_is() -> None:
    line = [active(name, at("09:30"), "queued") for name in "abcd"]

    decided = plan(due(RUNS, *line, max_concurrent=4), at("09:45"))

    assert decided.releases == ("a", "b", "c")


def test_a_full_line_turns_newcomers_away() -> None:
    """`max_queued`."""
    decided = plan(due(RUNS, WAITS, overlap="queue", max_queued=1), NOW)

    assert decided.creations == ()
    assert [(str(each.why), each.detail) for each in decided.spans] == [("queue full", "1 wait already")]


def test_newcomers_of_one_plan_fill_the_line_too() -> None:
    late = job(recovery="execute_all", max_queued=2)

    decided = plan(snapshot_of(late, at("08:30"), active=(RUNS,)), at("12:30"))

    assert created(decided) == [(at("09:00"), "queued"), (at("10:00"), "queued")]
    assert [(str(each.why), each.count) for each in decided.spans] == [("queue full", 2)]


def test_a_full_line_turns_away_under_allow_too() -> None:
    decided = plan(due(RUNS, WAITS, overlap="allow", max_concurrent=1, max_queued=1), NOW)

    assert [str(each.why) for each in decided.spans] == ["queue full"]


def test_queue_latest_takes_the_place_of_those_who_wait() -> None:
    """C-11: only the schedule's own; what people asked for stays."""
    asked = active("asked", at("09:20"), "queued", "trigger")

    decided = plan(due(RUNS, asked, WAITS, overlap="queue_latest"), NOW)

    assert created(decided) == [(at("10:00"), "queued")]
    assert ended(decided) == [("waits", "superseded", f"by {at('10:00').isoformat()}")]
    assert decided.cancels == ()


def test_queue_latest_creates_only_the_newest_of_one_plan() -> None:
    """The others are `skipped: superseded by <instant>`, not created and ended at once."""
    asked = Adjustment(at("08:00"), AdjustmentKind.MOVE, at("10:00"))
    latest = job("0 8,10 * * *", overlap="queue_latest", recovery="execute_all", grace="3h")
    seen = snapshot_of(latest, at("09:30"), active=(RUNS,), adjustments=(asked,))

    decided = plan(seen, at("10:00:01"))

    assert created(decided) == [(at("10:00"), "queued")]
    assert [(each.through, str(each.why), each.detail, each.count) for each in decided.spans] == [
        (at("10:00"), "superseded", f"by {at('10:00').isoformat()}", 1)
    ]
    assert decided.endings == ()


def test_queue_latest_supersedes_no_late_ones() -> None:
    """F5: a live instant costs the catch-up nothing either."""
    latest = job(overlap="queue_latest", recovery="execute_all")
    late = active("late", at("07:00"), "queued", late=True)

    decided = plan(snapshot_of(latest, at("08:30"), active=(RUNS, late)), at("11:00:01"))
    later = plan(snapshot_of(latest, at("09:30"), active=(RUNS, late, WAITS)), NOW)

    assert created(decided) == [(at(each), "queued") for each in ("09:00", "10:00", "11:00")]
    assert (decided.endings, decided.spans) == ((), ())
    assert [id_ for id_, _, _ in ended(later)] == ["waits"]
    assert created(later) == [(at("10:00"), "queued")]


def test_who_was_superseded_by_one_is_not_superseded_by_the_next() -> None:
    """And has left the line: it is not full."""
    asked = trigger(overlap=Overlap.QUEUE_LATEST)
    latest = job(overlap="queue_latest", max_queued=2)
    seen = snapshot_of(latest, at("09:30"), active=(RUNS, WAITS), requests=(asked,))

    decided = plan(seen, NOW)

    assert [id_ for id_, _, _ in ended(decided)] == ["waits"]
    assert created(decided) == [(at("09:40"), "queued"), (at("10:00"), "queued")]


def test_cancel_running_stops_what_runs_and_waits_for_its_end() -> None:
    """C-11."""
    decided = plan(due(RUNS, overlap="cancel_running"), NOW)

    assert (decided.cancels, decided.cancels_because) == (("runs",), "asked by overlap cancel_running")
    assert created(decided) == [(at("10:00"), "queued")]


def test_cancel_running_ends_what_has_not_started_and_takes_its_place() -> None:
    """In two plans: an occurrence that was claimed in between would run beside the one in its place."""
    seen = due(PENDS, WAITS, overlap="cancel_running")
    decided = plan(seen, NOW)

    assert [id_ for id_, status, _ in ended(decided) if status == "superseded"] == ["pends", "waits"]
    assert (decided.cancels, decided.releases, decided.creations) == ((), (), ())
    assert (decided.watermark, decided.wake_at) == (at("09:30"), NOW)

    assert created(plan(committed(seen, decided), NOW)) == [(at("10:00"), "pending")]


def test_cancel_running_asks_what_awaits_a_retry_to_stop() -> None:
    decided = plan(due(RETRIES, overlap="cancel_running"), NOW)

    assert (decided.cancels, ended(decided)) == (("retries",), [])


def test_cancel_running_leaves_no_trace_of_one_released_in_the_same_plan() -> None:
    """It was in line, there was room, and the newcomer takes it."""
    decided = plan(due(WAITS, overlap="cancel_running"), NOW)

    assert decided.releases == ()
    assert [id_ for id_, _, _ in ended(decided)] == ["waits"]
    assert created(decided) == [(at("10:00"), "pending")]


def test_late_instants_never_cancel() -> None:
    """C-12: under cancel_running they wait in line."""
    late = job(overlap="cancel_running", recovery="execute_all")

    decided = plan(snapshot_of(late, at("08:30"), active=(RUNS,)), at("10:30"))

    assert decided.cancels == ()
    assert created(decided) == [(at("09:00"), "queued"), (at("10:00"), "queued")]


# ------------------------------------------------------------------------------------------------- late_overlap


def test_late_overlap_skip_runs_the_oldest_if_the_job_is_idle() -> None:
    """C-12: S4's pop-and-discard, all decided at once."""
    late = job(late_overlap="skip", recovery="execute_all")

    decided = plan(snapshot_of(late, at("08:30")), at("11:30"))

    assert created(decided) == [(at("09:00"), "pending")]
    first = occurrence_id(late.id, at("09:00"))
    assert [(each.through, each.detail, each.count) for each in decided.spans] == [(at("11:00"), f"behind {first}", 2)]


def test_late_overlap_skip_runs_none_if_the_job_is_busy() -> None:
    """S4-016, S4-020, S4-023: whatever runs keeps late ones out too, and these are discarded."""
    late = job(late_overlap="skip", recovery="execute_all")

    decided = plan(snapshot_of(late, at("08:30"), active=(RUNS,)), at("11:30"))

    assert (decided.creations, [each.count for each in decided.spans]) == ((), [3])


def test_a_plan_is_made_of_what_it_is_given() -> None:
    """S4-048: the time, what runs, what ended well and whether it is suspended are values that a caller hands over."""
    once_more = job(skip_if_successful=True)
    by_hand = Ended(at("09:45"), at("09:45"), at("09:46"), "occ_by_hand")

    def runs(**given: Any) -> int:
        return len(plan(snapshot_of(once_more, at("09:30"), **given), NOW).creations)

    assert runs() == 1
    assert runs(active=(RUNS,)) == 0
    assert runs(last_success=by_hand) == 0
    assert runs(pauses=(PausedSpan(at("09:40")),)) == 0
    assert plan(snapshot_of(once_more, at("09:30")), at("09:59")).creations == ()


@pytest.mark.parametrize("overlap", ["skip", "queue", "queue_latest", "cancel_running"])
def test_late_overlap_allow_starts_all_at_once(overlap: str) -> None:
    """C-12: `allow` = at once, whatever holds for the one on time."""
    late = job(overlap=overlap, late_overlap="allow", recovery="execute_all")

    decided = plan(snapshot_of(late, at("08:30"), active=(RUNS,)), at("11:30"))

    assert created(decided) == [(at(each), "pending") for each in ("09:00", "10:00", "11:00")]


def test_late_overlap_allow_keeps_to_a_max_concurrent_that_is_set() -> None:
    late = job(late_overlap="allow", max_concurrent=2, recovery="execute_all")

    decided = plan(snapshot_of(late, at("08:30"), active=(RUNS,)), at("11:30"))

    assert created(decided) == [(at("09:00"), "pending"), (at("10:00"), "queued"), (at("11:00"), "queued")]


def test_where_overlap_is_allow_late_ones_are_allowed_too() -> None:
    """Else they could wait without end behind live ones."""
    late = job(overlap="allow", recovery="execute_all")

    decided = plan(snapshot_of(late, at("08:30"), active=(RUNS,)), at("11:30"))

    assert {str(each.status) for each in decided.creations} == {"pending"}


def test_late_ones_that_shall_wait_do_so_also_beside_live_ones_that_need_not() -> None:
    """One at a time, and none is released while another is busy."""
    late = job(overlap="allow", late_overlap="queue", recovery="execute_all")

    decided = plan(snapshot_of(late, at("08:30"), active=(RUNS, WAITS)), at("10:30"))

    assert created(decided) == [(at("09:00"), "queued"), (at("10:00"), "queued")]
    assert (decided.releases, decided.wake_at) == ((), at("11:00"))


def test_the_one_on_time_waits_behind_late_ones_under_queue() -> None:
    """C-12: chronological per job."""
    both = job(overlap="queue", recovery="execute_all")

    decided = plan(snapshot_of(both, at("08:30")), at("10:00:01"))

    assert created(decided) == [(at("09:00"), "pending"), (at("10:00"), "queued")]


@pytest.mark.parametrize("overlap", ["skip", "cancel_running", "queue", "queue_latest"])
def test_a_catch_up_costs_no_live_instant_of_its_plan(overlap: str) -> None:
    """F5, S0-092, S0-095, S4-017: the newest is neither refused nor refuses another because of its own catch-up."""
    decided = plan(snapshot_of(job(overlap=overlap, recovery="execute_all"), at("06:30")), at("09:00:30"))

    assert created(decided) == [
        (at("07:00"), "pending"),
        (at("08:00"), "queued"),
        (at("09:00"), "queued"),
    ]
    assert (decided.spans, decided.cancels, decided.endings) == ((), (), ())


@pytest.mark.parametrize("overlap", ["skip", "cancel_running"])
def test_while_late_ones_wait_a_live_instant_waits_behind_them(overlap: str) -> None:
    """F5, S4-017, edge case 12: deferred until the buffer is empty."""
    late = active("late", at("08:00"), "queued", late=True)

    behind = plan(due(RUNS, late, overlap=overlap), NOW)
    alone = plan(due(RUNS, WAITS, overlap=overlap), NOW)

    assert (created(behind), behind.cancels, behind.spans) == ([(at("10:00"), "queued")], (), ())
    assert (created(alone) == [], bool(alone.cancels)) == (overlap == "skip", overlap == "cancel_running")


@pytest.mark.parametrize("overlap", ["skip", "cancel_running"])
def test_where_late_ones_are_skipped_the_live_one_behind_them_is_too(overlap: str) -> None:
    """F5: `late_overlap="skip"` is S4's pop-and-discard for whatever finds the job busy with its catch-up."""
    decided = plan(
        snapshot_of(job(overlap=overlap, late_overlap="skip", recovery="execute_all"), at("07:30")), at("09:00:30")
    )

    assert created(decided) == [(at("08:00"), "pending")]
    assert [(each.through, str(each.why)) for each in decided.spans] == [(at("09:00"), "overlap")]
    assert decided.cancels == ()


def test_one_late_run_that_waits_by_request_defers_nothing() -> None:
    """F5: only late ones of cause schedule are a catch-up."""
    asked = active("asked", at("08:00"), "queued", "replay", late=True)

    assert created(plan(due(RUNS, asked), NOW)) == []


@pytest.mark.parametrize(("recovery", "status"), [("execute_last", "skipped"), ("mark_as_missed", "missed")])
@pytest.mark.parametrize("overlap", ["skip", "cancel_running"])
def test_a_late_one_that_is_not_kept_defers_nothing(overlap: str, recovery: str, status: str) -> None:
    """F5: what was set by hand is a row also where recovery drops it, and is no catch-up then."""
    seen = replace(due(RUNS, overlap=overlap, recovery=recovery), reschedule=Rescheduled(at("09:30"), at("09:50")))

    decided = plan(seen, NOW)

    live = [(at("10:00"), "queued")] if overlap == "cancel_running" else []
    assert created(decided) == [(at("09:50"), status), *live]
    assert decided.cancels == (("runs",) if overlap == "cancel_running" else ())
    assert [(each.through, str(each.why)) for each in decided.spans] == (
        [] if overlap == "cancel_running" else [(at("10:00"), "overlap")]
    )


# ------------------------------------------------------------------------------------------------ other guards


def test_a_retry_that_the_next_instant_supersedes_makes_room() -> None:
    """S2-023; in two plans: its owner may have begun the retry meanwhile."""
    waiting = active("retries", at("09:00"), "awaiting_retry", superseded_by_next=True)
    seen = due(waiting)

    decided = plan(seen, NOW)

    assert ended(decided) == [("retries", "superseded", f"by {at('10:00').isoformat()}")]
    assert (decided.creations, decided.spans, decided.wake_at) == ((), (), NOW)
    assert created(plan(committed(seen, decided), NOW)) == [(at("10:00"), "pending")]


@pytest.mark.parametrize(
    "other",
    [
        active("runs", at("09:00"), "running", superseded_by_next=True),
        active("retries", at("09:00"), "awaiting_retry"),
    ],
    ids=lambda each: each.id,
)
def test_what_runs_or_did_not_ask_for_it_is_not_superseded(other: Active) -> None:
    decided = plan(due(other), NOW)

    assert (decided.endings, decided.creations) == ((), ())


def test_without_a_next_instant_a_retry_goes_on() -> None:
    waiting = active("retries", at("09:00"), "awaiting_retry", superseded_by_next=True)

    assert plan(due(waiting), at("09:45")).endings == ()
    assert plan(snapshot_of(job(), at("09:30"), active=(waiting,), requests=(trigger(),)), at("09:45")).endings == ()


def test_an_ending_between_two_looks_is_seen_by_the_second() -> None:
    """Architecture 1, the fourth counterexample: a waiting occurrence is released by the plan that sees no busy one."""
    decided = plan(due(WAITS, overlap="queue"), at("09:45"))

    assert (decided.releases, instants(decided)) == (("waits",), [])


def test_of_a_long_line_the_newest_is_not_released_before_those_unseen() -> None:
    """A snapshot holds the oldest of the line, the newest of the schedule's own and the newest."""
    line = [active(f"w{n}", at("09:30"), "queued") for n in range(4)]
    seen = replace(due(*line, overlap="queue", max_concurrent=5), waiting_count=50)

    decided = plan(seen, at("09:45"))

    assert decided.releases == ("w0", "w1")
    assert decided.wake_at == at("09:45")
