"""What people and programs ask for: trigger, replay, backfill, create; and what a removed job answers."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from everytick.deciding.plan import plan
from everytick.domain import ids
from everytick.domain.payload import payload
from everytick.domain.policies import Overlap
from everytick.domain.snapshots import Request
from tests.unit.deciding.planning import active, at, created, ended, job, snapshot_of, trigger

RUNS = active("runs", at("09:00"))
TICK = timedelta(microseconds=1)


def fill(instant: str, **more: Any) -> Request:
    return trigger("b", cause="backfill", scheduled_for=at(instant), **more)


def test_a_trigger_runs_at_once_and_the_next_instant_stays() -> None:
    """S1-022: with who asked and why."""
    asked = trigger(payload=payload({"rows": 1}), reason="because", by="ann")

    decided = plan(snapshot_of(job(payload={"rows": 9}), at("09:10"), requests=(asked,)), at("09:45"))

    [only] = decided.creations
    assert only.id == ids.trigger_id(job().id, "k")
    assert (str(only.status), str(only.cause), str(only.why)) == ("pending", "trigger", "asked for")
    assert (only.scheduled_for, only.line_at, only.late) == (at("09:40"), at("09:40"), False)
    assert only.payload == payload({"rows": 1})
    assert only.detail == "by ann, because"
    assert [(each.key, str(each.cause)) for each in decided.answers] == [("k", "trigger")]
    assert (decided.watermark, decided.wake_at) == (at("09:45"), at("10:00"))


def test_a_trigger_without_a_payload_has_the_jobs_own() -> None:
    decided = plan(snapshot_of(job(payload={"rows": 9}), at("09:10"), requests=(trigger(),)), at("09:45"))

    assert decided.creations[0].payload == payload({"rows": 9})


@pytest.mark.parametrize("cause", ["trigger", "replay", "create"])
def test_where_the_schedule_overlaps_a_request_does_too(cause: str) -> None:
    """F7, S0-102: else it could wait without end for a job that is never idle."""
    seen = snapshot_of(job(overlap="allow"), at("09:10"), active=(RUNS,), requests=(trigger(cause=cause),))
    limited = snapshot_of(
        job(overlap="allow", max_concurrent=1), at("09:10"), active=(RUNS,), requests=(trigger(cause=cause),)
    )

    assert created(plan(seen, at("09:45"))) == [(at("09:40"), "pending")]
    assert created(plan(limited, at("09:45"))) == [(at("09:40"), "queued")]


def test_filling_an_instant_has_the_rule_of_any_request_or_its_own() -> None:
    """F7: allow where the schedule overlaps, and whatever is named with it."""
    asked = fill("07:00")
    busy = {"active": (RUNS,)}
    beside = plan(snapshot_of(job(overlap="allow"), at("09:10"), requests=(asked,), **busy), at("09:45"))
    named = replace(asked, overlap=Overlap.ALLOW)
    told = plan(snapshot_of(job(), at("09:10"), requests=(named,), **busy), at("09:45"))
    in_line = replace(asked, overlap=Overlap.QUEUE)
    waits = plan(snapshot_of(job(overlap="allow"), at("09:10"), requests=(in_line,), **busy), at("09:45"))

    assert created(beside) == created(told) == [(at("07:00"), "pending")]
    assert created(waits) == [(at("07:00"), "queued")]


def test_a_restart_of_a_job_that_overlaps_does_not_wait_for_it_to_be_idle() -> None:
    """F7: live runs that come in between would block it without end."""
    anew = job("0 0 * * *", overlap="allow", restart_schedule="30 * * * *")

    decided = plan(snapshot_of(anew, at("09:10"), active=(RUNS,)), at("09:30:01"))

    assert (created(decided), decided.cancels) == ([(at("09:30"), "pending")], ("runs",))


@pytest.mark.parametrize("cause", ["trigger", "replay"])
def test_a_request_waits_in_line_unless_another_rule_is_named(cause: str) -> None:
    """F3, S0-102: no request is dropped and none overlaps, also where the schedule's rule is skip."""
    for overlap in ("skip", "queue", "queue_latest", "cancel_running"):
        seen = snapshot_of(job(overlap=overlap), at("09:10"), active=(RUNS,), requests=(trigger(cause=cause),))

        decided = plan(seen, at("09:45"))

        assert (created(decided), decided.cancels) == ([(at("09:40"), "queued")], ())


@pytest.mark.parametrize(
    ("rule", "status", "cancels"),
    [
        (Overlap.ALLOW, "pending", ()),
        (Overlap.SKIP, "skipped", ()),
        (Overlap.QUEUE, "queued", ()),
        (Overlap.QUEUE_LATEST, "queued", ()),
        (Overlap.CANCEL_RUNNING, "queued", ("runs",)),
    ],
)
def test_the_rule_named_with_a_request_holds(rule: Overlap, status: str, cancels: tuple[str, ...]) -> None:
    """A request that is skipped is a row, since it has no instant; F5: every option changes behaviour."""
    seen = snapshot_of(job(), at("09:10"), active=(RUNS,), requests=(trigger(overlap=rule),))

    decided = plan(seen, at("09:45"))

    assert (created(decided), decided.cancels) == ([(at("09:40"), status)], cancels)
    assert [each.key for each in decided.answers] == ["k"]
    assert decided.spans == ()


def test_a_full_line_turns_a_request_away_with_a_row() -> None:
    waits = active("w", at("09:20"), "queued")
    seen = snapshot_of(job(max_queued=1), at("09:10"), active=(RUNS, waits), requests=(trigger(),))

    decided = plan(seen, at("09:45"))

    assert [(str(each.status), str(each.why)) for each in decided.creations] == [("skipped", "queue full")]


def test_a_replay_keeps_the_originals_time_span_and_payload_and_stands_in_line_by_its_own() -> None:
    asked = trigger(
        cause="replay",
        replay_of="occ_1",
        scheduled_for=at("-2 06:00"),
        covers_after=at("-3 06:00"),
        covers_through=at("-2 05:00"),
        payload=payload([1]),
    )

    decided = plan(snapshot_of(job(), at("09:10"), requests=(asked,)), at("09:45"))

    [only] = decided.creations
    assert (only.id, only.replay_of) == (ids.replay_id(job().id, "k"), "occ_1")
    assert (only.scheduled_for, only.line_at, only.payload) == (at("-2 06:00"), at("09:40"), payload([1]))
    assert (only.covers_after, only.covers_through) == (at("-3 06:00"), at("-2 05:00"))


def test_a_job_that_begins_immediately_has_a_request_of_cause_create() -> None:
    """C-08."""
    first = replace(job(), version=4)

    decided = plan(snapshot_of(first, at("09:10"), requests=(trigger(cause="create", nth=4),)), at("09:45"))

    assert [(each.id, str(each.cause)) for each in decided.creations] == [(ids.create_id(first.id, 4), "create")]


def test_instants_and_requests_come_in_by_one_order() -> None:
    """C-12: (line_at, id); here a request between a late instant and the one on time."""
    both = job(overlap="queue", recovery="execute_all")
    seen = snapshot_of(both, at("08:30"), requests=(trigger(), trigger("j"), trigger("l", at("09:30"))))

    decided = plan(seen, at("10:00:01"))

    order = [(each.line_at, each.id) for each in decided.creations]
    assert order == sorted(order)
    assert [each.line_at for each in decided.creations] == [
        at("09:00"), at("09:30"), at("09:40"), at("09:40"), at("10:00"),
    ]  # fmt: skip
    assert [str(each.status) for each in decided.creations] == ["pending", *["queued"] * 4]


def test_a_request_that_has_to_give_way_in_the_same_plan_is_a_row() -> None:
    """cancel_running ends what has not started; a request is told so."""
    seen = snapshot_of(job(overlap="cancel_running"), at("09:30"), requests=(trigger(),))

    decided = plan(seen, at("10:00:01"))

    assert created(decided) == [(at("09:40"), "skipped"), (at("10:00"), "pending")]
    assert [each.key for each in decided.answers] == ["k"]
    assert (str(decided.creations[0].why), decided.endings) == ("superseded", ())


def test_equal_keys_of_different_causes_are_different_requests() -> None:
    seen = snapshot_of(job(), at("09:10"), requests=(trigger(), trigger(cause="replay")))

    decided = plan(seen, at("09:45"), limit=1)

    assert [(str(each.cause), each.key) for each in decided.answers] == [
        (str(each.cause), "k") for each in decided.creations
    ]
    assert decided.wake_at == at("09:45")


def test_more_requests_than_a_snapshot_holds_bring_the_planner_back() -> None:
    seen = snapshot_of(job(), at("09:10"), requests=(trigger(),), more_requests=True)

    assert plan(seen, at("09:45")).wake_at == at("09:45")


# ----------------------------------------------------------------------------------------------------- backfill


def test_a_past_instant_is_filled_by_its_id_and_covers_what_its_definition_says() -> None:
    seen = snapshot_of(job(), at("09:10"), requests=(fill("-1 10:00"),))

    decided = plan(seen, at("09:45"))

    [only] = decided.creations
    assert (only.scheduled_for, str(only.status), str(only.cause)) == (at("-1 10:00"), "pending", "backfill")
    assert only.id == ids.occurrence_id(job().id, at("-1 10:00"))
    assert (only.covers_after, only.covers_through) == (at("-1 09:00"), at("-1 10:00"))
    assert [each.key for each in decided.answers] == ["b"]


def test_filling_brings_the_planner_back_since_the_store_may_leave_the_first_alone() -> None:
    """An instant that has an occurrence is left alone: then no occurrence is busy before the waiting one."""
    seen = snapshot_of(job(), at("09:10"), requests=(fill("-1 10:00"), replace(fill("-1 11:00"), key="c")))

    assert plan(seen, at("09:45")).wake_at == at("09:45")


def test_an_instant_that_is_filled_twice_is_created_once() -> None:
    seen = snapshot_of(job(), at("09:10"), requests=(fill("-1 10:00"), replace(fill("-1 10:00"), key="c")))

    decided = plan(seen, at("09:45"))

    assert len(decided.creations) == 1
    assert len(decided.answers) == 2


def test_a_request_that_finds_no_place_is_not_answered() -> None:
    early = trigger("a", at("09:00"))
    seen = snapshot_of(job(), at("09:10"), requests=(early, fill("-1 10:00")))

    decided = plan(seen, at("09:45"), limit=1)

    assert [each.key for each in decided.answers] == ["a"]


# ------------------------------------------------------------------------------------------------------ removed


def test_a_removed_job_creates_nothing_and_ends_unclaimed_occurrences() -> None:
    """C-22, S4-034: running ones finish on their own."""
    lined = (
        active("runs", at("08:00")),
        active("retries", at("08:10"), "awaiting_retry"),
        active("pends", at("08:20"), "pending"),
        active("waits", at("08:30"), "queued"),
    )
    seen = snapshot_of(job(), at("09:10"), active=lined, retire_at=at("12:00"))

    decided = plan(seen, at("12:00"))

    assert (decided.creations, decided.releases, decided.spans, decided.cancels) == ((), (), (), ())
    assert sorted(id_ for id_, _, _ in ended(decided)) == ["pends", "retries", "waits"]
    assert (decided.watermark, decided.wake_at) == (at("09:10"), None)


def test_until_it_retires_a_removed_job_only_waits() -> None:
    """A vanished file may come back within ten minutes."""
    line = (active("waits", at("08:30"), "queued"),)
    seen = snapshot_of(job(), at("09:10"), active=line, retire_at=at("12:10"))

    decided = plan(seen, at("12:05"))

    assert (decided.creations, decided.endings, decided.releases) == ((), (), ())
    assert (decided.watermark, decided.wake_at) == (at("09:10"), at("12:10"))


def test_a_removed_job_answers_requests_with_a_row() -> None:
    """Nothing unanswered."""
    asked = (trigger(), trigger("r", cause="replay"), fill("-1 10:00"))
    seen = snapshot_of(job(), at("09:10"), requests=asked, retire_at=at("12:00"))

    decided = plan(seen, at("11:00"))

    assert [(str(each.status), str(each.why)) for each in decided.creations] == [("skipped", "removed")] * 3
    assert len({each.id for each in decided.creations}) == 3
    assert [each.key for each in decided.answers] == ["k", "r", "b"]


def test_a_removed_job_creates_not_even_the_instant_that_has_just_come() -> None:
    decided = plan(snapshot_of(job(), at("09:10"), retire_at=at("12:00")), at("10:00:01"))

    assert (decided.creations, decided.watermark) == ((), at("09:10"))


def test_a_removed_job_that_just_fits_into_a_plan_is_done() -> None:
    line = tuple(active(f"w{n}", at("08:30"), "queued") for n in range(2))
    busy = (active("runs", at("08:00")), active("more", at("08:10")))
    seen = snapshot_of(job(), at("09:10"), active=(*busy, *line), retire_at=at("12:00"), requests=(trigger(),))

    assert plan(seen, at("12:00"), limit=2).wake_at is None
    assert plan(seen, at("12:00"), limit=1).wake_at == at("12:00")
    assert plan(replace(seen, waiting_count=3), at("12:00"), limit=2).wake_at == at("12:00")
    assert plan(replace(seen, requests=(trigger(), trigger("j"))), at("11:00"), limit=2).wake_at == at("12:00")


def test_a_removed_job_keeps_to_the_limit() -> None:
    asked = tuple(trigger(str(n)) for n in range(5))
    seen = snapshot_of(job(), at("09:10"), requests=asked, retire_at=at("12:00"))

    decided = plan(seen, at("11:00"), limit=2)

    assert (len(decided.creations), len(decided.answers), decided.wake_at) == (2, 2, at("11:00"))


def test_a_removed_job_comes_back_for_those_it_did_not_see() -> None:
    line = tuple(active(f"w{n}", at("08:30"), "queued") for n in range(3))
    seen = snapshot_of(job(), at("09:10"), active=line, retire_at=at("12:00"))

    cut = plan(seen, at("12:00"), limit=2)
    unseen = plan(replace(seen, busy_count=150), at("12:00"))
    nothing_to_end = plan(replace(seen, waiting=(), waiting_count=0, busy_count=150), at("12:00"))

    assert (len(cut.endings), cut.wake_at) == (2, at("12:00"))
    assert unseen.wake_at == at("12:00")
    assert nothing_to_end.wake_at is None, "an ending wakes it"


def test_a_removed_job_ends_what_waits_for_a_retry_and_hears_of_what_runs() -> None:
    """F8, S0-133: what runs may still be parked, and then it ends too."""
    retries, runs = active("retries", at("09:00"), "awaiting_retry"), active("runs", at("08:00"))
    waits = active("waits", at("09:30"), "queued")
    seen = snapshot_of(job(), at("09:10"), active=(retries, runs, waits), retire_at=at("09:20"), awaited=False)

    before = plan(seen, at("09:15"))
    decided = plan(seen, at("09:45"))
    again = plan(replace(seen, busy=(runs,), busy_count=1, waiting=(), waiting_count=0, awaited=True), at("09:45"))

    assert (before.endings, before.wake_at) == ((), at("09:20"))
    assert [(id_, status) for id_, status, _ in ended(decided)] == [("waits", "canceled"), ("retries", "canceled")]
    assert (decided.awaits_ends, decided.wake_at) == (True, at("09:45"))
    assert (again.endings, again.awaits_ends, again.wake_at) == ((), True, None)
