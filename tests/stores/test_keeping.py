"""A replay that keeps the results of some tasks: they are there when it is claimed, and it never runs them."""

from typing import Any

from everytick.deciding.advance import advance
from everytick.domain.facts import Replay
from everytick.domain.outcome import Lost, Succeeded
from everytick.domain.payload import payload
from everytick.domain.statuses import OccurrenceStatus, RunStatus
from everytick.domain.steps import AttemptEnded, Claimed, Step
from everytick.stores.base import Claim, Commit, Stored
from everytick.stores.storing_rules import NOTHING_TO_KEEP
from tests.stores.acting import AnyStore, began, claim_one, job, occurrences, plan_once, put, unheard
from tests.stores.clock import ManualClock

TASKS = ("extract", "load", "tell")


async def _ended(store: AnyStore, clock: ManualClock, **policies: Any) -> tuple[Stored, Claim]:
    """Run an occurrence of three tasks to its end; the first returned a number."""
    stored = await put(store, job(tasks=TASKS, **policies))
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    step = began(claim, clock.time)
    for place, task in enumerate(TASKS):
        clock.move(seconds=1)
        step = advance(claim.header, step.after, AttemptEnded(task, 1, Succeeded(payload(place + 1))), clock.time)
        assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]
    assert step.end is not None
    return stored, claim


async def _replay(store: AnyStore, clock: ManualClock, stored: Stored, original: Claim, *keeps: str) -> str:
    asked = Replay(
        "again",
        original.occurrence.id,
        original.occurrence.scheduled_for,
        covers_through=original.occurrence.scheduled_for,
        keeps=keeps,
    )
    return (await store.request(stored.job_id, asked)).id


async def test_what_is_kept_is_there_at_the_claim_and_only_the_rest_begins(store: AnyStore, clock: ManualClock) -> None:
    stored, original = await _ended(store, clock)
    clock.move(minutes=1)
    id_ = await _replay(store, clock, stored, original, "extract")
    await plan_once(store)
    claim = await claim_one(store)
    assert claim.occurrence.id == id_
    kept = claim.life.runs[0]
    assert kept.is_kept
    assert kept.result == payload(1)
    before = original.life
    assert kept.started_at == before.started_at
    assert not claim.life.runs[1].is_kept

    step = began(claim, clock.time)
    assert [start.task for start in step.starts] == ["load"]
    for task in ("load", "tell"):
        step = advance(claim.header, step.after, AttemptEnded(task, 1, Succeeded(payload("new"))), clock.time)
        assert await store.commit_steps([(claim, step)]) == [Commit.COMMITTED]
    assert step.end is not None
    assert step.end.status is OccurrenceStatus.COMPLETED

    whole = await store.whole(id_)
    assert [(run.status, run.attempts) for run in whole.runs] == [
        (RunStatus.SUCCESS, 0),
        (RunStatus.SUCCESS, 1),
        (RunStatus.SUCCESS, 1),
    ]
    assert [task for task, _ in whole.attempts] == ["load", "tell"]
    assert step.end.report().describe().splitlines()[1] == "task 'extract' was not run again: its result was kept"


async def test_an_edit_before_the_claim_leaves_it_under_the_version_it_was_planned_by(
    store: AnyStore, clock: ManualClock
) -> None:
    stored, original = await _ended(store, clock)
    id_ = await _replay(store, clock, stored, original, "extract")
    await plan_once(store)
    await put(store, job(tasks=("other",)))
    claim = await claim_one(store)
    assert (claim.occurrence.id, claim.job.version) == (id_, 1)
    assert claim.life.runs[0].is_kept


async def test_a_restart_after_a_loss_keeps_what_was_kept(store: AnyStore, clock: ManualClock) -> None:
    stored, original = await _ended(store, clock, on_orphan="restart")
    await _replay(store, clock, stored, original, "extract", "load")
    await plan_once(store)
    claim = await claim_one(store)
    await store.beat("reaper", [])
    clock.move(minutes=1)
    [taken] = await store.orphans("reaper", 10, await unheard(store))
    assert await store.commit_steps([(taken, advance(taken.header, taken.life, Lost(), clock.time))]) == [
        Commit.COMMITTED
    ]
    again = await claim_one(store)
    assert again.occurrence.id == claim.occurrence.id
    step: Step = advance(again.header, again.life, Claimed(), clock.time)
    assert [(start.task, start.number) for start in step.starts] == [("tell", 2)]


async def test_where_the_results_are_gone_by_then_it_ends_instead_of_running_them_again(
    store: AnyStore, clock: ManualClock
) -> None:
    retention = {"success": "1h", "failure": "1h", "keep_last": 0}
    stored, original = await _ended(store, clock, retention=retention, reports=False)
    id_ = await _replay(store, clock, stored, original, "extract")
    clock.move(hours=2)
    assert await store.prune() == 1
    await plan_once(store)
    found = {each.id: each for each in await occurrences(store)}
    assert (found[id_].status, found[id_].error) == (OccurrenceStatus.CANCELED, NOTHING_TO_KEEP)
