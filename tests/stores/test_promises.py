"""promises, commit_promises, promised and breaches: a breach is recorded once, whichever node finds it (A18)."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from everytick.deciding.promises import judge
from everytick.domain.changes import Put, Remove
from everytick.domain.facts import Move, Pause, Resume, Skip, Trigger
from everytick.domain.lookups import Breaches, Promises
from everytick.domain.policies import update_policy
from everytick.domain.promise_policies import PromiseKind
from everytick.domain.promises import BREACHES_KEPT, JUDGED_BY_ANY_AFTER, BreachRecord, PromiseSnapshot
from everytick.stores.base import Commit, NodeScope
from tests.stores.acting import AnyStore, everything, job, plan_once, put, run_one
from tests.stores.clock import ManualClock

OPEN, ALL = Breaches(is_open=True), Breaches()
TICK = timedelta(microseconds=1)


async def _due(store: AnyStore, scope: NodeScope | None = None) -> tuple[PromiseSnapshot, ...]:
    return (await store.promises(scope or await everything(store), 100)).snapshots


async def _judge(store: AnyStore, scope: NodeScope | None = None) -> list[Commit]:
    """Judge what is due, as a node does."""
    due = await store.promises(scope or await everything(store), 100)
    return list(await store.commit_promises([judge(each, due.now) for each in due.snapshots]))


async def _check_at(store: AnyStore, kind: str = "start_by") -> datetime | None:
    [found] = [each.state.check_at for each in await store.ask(Promises()) if each.state.kind == kind]
    return found


def _shown(found: list[BreachRecord]) -> list[tuple[str, str, datetime, int, bool]]:
    return [
        (each.job, str(each.breach.kind), each.breach.broken_for, each.breach.count, each.breach.ended_at is None)
        for each in found
    ]


async def test_only_jobs_with_promises_are_looked_at(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job("plain"))
    await put(store, job("report", start_by="5m", finish_by="06:00", success_within="26h"))
    assert {each.state.kind for each in await _due(store)} == set(PromiseKind)
    assert await _judge(store) == [Commit.COMMITTED] * 3
    assert await _due(store) == ()
    clock.move(hours=27)
    assert len(await _due(store)) == 3
    assert [each.state.kind for each in (await store.promises(await everything(store), 1)).snapshots] == ["start_by"]


async def test_ten_nodes_record_a_breach_once(store: AnyStore, clock: ManualClock) -> None:
    """A18: each reads the same, and one of them commits. The job itself is neither planned nor run."""
    stored = await put(store, job(start_by="5m"))
    await _judge(store)
    instant = clock.time.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    clock.move(hours=1, minutes=10)
    read = [await store.promises(NodeScope(f"node-{nth}", ("",)), 100) for nth in range(10)]
    judged = [[judge(each, due.now) for each in due.snapshots] for due in read]

    answers = await asyncio.gather(*(store.commit_promises(each) for each in judged))

    assert sorted(str(answer) for [answer] in answers) == sorted([str(Commit.COMMITTED)] + [str(Commit.STALE)] * 9)
    [found] = await store.ask(OPEN)
    assert (found.job_id, found.job, found.breach.kind) == (stored.job_id, "report", PromiseKind.START_BY)
    assert (found.breach.broken_for, found.breach.reason) == (instant, "no node has planned it")
    [record] = await store.ask(Promises([stored.job_id]))
    assert record.state.breach == found.breach


async def test_a_breach_goes_on_and_ends_and_both_are_owed_until_they_are_told(
    store: AnyStore, clock: ManualClock
) -> None:
    await put(store, job(start_by="5m", overlap="queue", recovery="execute_all"))
    await _judge(store)
    clock.move(hours=2, minutes=10)
    await _judge(store)
    [begun] = await store.ask(ALL)
    assert begun.breach.count == 2
    assert (await store.promises(await everything(store), 100)).owed == ()  # its finder tells it first
    clock.move(seconds=40)
    [owed] = (await store.promises(await everything(store), 100)).owed
    assert (owed.breach, owed.is_begin_owed, owed.is_end_owed) == (begun.breach, True, False)
    await store.commit_promises((), [owed])
    assert (await store.promises(await everything(store), 100)).owed == ()

    clock.move(minutes=50)
    await plan_once(store)
    for _ in range(3):
        await run_one(store)
        await plan_once(store)
    assert await _judge(store) == [Commit.COMMITTED]

    assert await store.ask(OPEN) == []
    [ended] = await store.ask(ALL)
    assert ended.breach == replace(begun.breach, ended_at=clock.time)
    [owed] = (await store.promises(await everything(store), 100)).owed
    assert (owed.is_begin_owed, owed.is_end_owed) == (False, True)
    await store.commit_promises((), [owed])
    assert (await store.promises(await everything(store), 100)).owed == ()


async def test_a_success_is_promised_from_the_creation_of_the_job_on(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job())
    begin = clock.time
    clock.move(hours=5)
    await put(store, job(success_within="3h"))
    await _judge(store)
    [found] = await store.ask(OPEN)
    assert (found.breach.broken_for, found.breach.due_at) == (begin, begin + timedelta(hours=3))
    await plan_once(store)
    await run_one(store)
    clock.move(seconds=20)
    await _judge(store)
    assert _shown(list(await store.ask(ALL))) == [("report", "success_within", begin, 1, False)]


@pytest.mark.parametrize("code", ["", "shop"])
async def test_nodes_that_may_run_the_job_judge_first_and_any_other_one_after_a_while(
    store: AnyStore, clock: ManualClock, code: str
) -> None:
    """A18: also a node of another application finds the breach, once the job's own nodes have not."""
    await put(store, job(code=code, start_by="5m"))
    stranger = NodeScope("node-9", ("code:bank",))
    assert await _due(store, stranger) == ()
    clock.move(seconds=JUDGED_BY_ANY_AFTER.total_seconds())
    assert len(await _due(store, stranger)) == 1
    assert await _judge(store, stranger) == [Commit.COMMITTED]


async def test_what_people_say_about_a_job_lets_its_promises_be_looked_at(store: AnyStore, clock: ManualClock) -> None:
    """A moved instant, a resume or an edit may bring the moment forward: check_at is never too late."""
    stored = await put(store, job(start_by="5m"))
    await _judge(store)
    settled = await _check_at(store)
    await store.request(stored.job_id, Trigger("by hand"))
    assert await _check_at(store) == settled
    instant = clock.time.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    for fact in (Skip(instant), Move(instant, instant - timedelta(minutes=20)), Pause(), Resume()):
        clock.move(seconds=1)
        await store.request(stored.job_id, fact)
        assert await _check_at(store) == clock.time
        await _judge(store)
    clock.move(seconds=1)
    await put(store, job("report", when="*/10 * * * *", start_by="5m"))
    assert await _check_at(store) == clock.time


async def test_a_version_that_comes_into_force_later_lets_its_promises_be_looked_at(
    store: AnyStore, clock: ManualClock
) -> None:
    """S0-118: what it promises may be due earlier than what the version before it promised."""
    await put(store, job(success_within="26h"))
    await plan_once(store)
    edit = job("report", when="30 * * * *", success_within="2h")
    await store.apply([Put(edit, policy=update_policy("graceful 1h"))])
    await _judge(store)
    clock.move(hours=1)
    await plan_once(store)
    assert (await store.look([edit.id]))[edit.id].editions[-1].job.version == 2
    assert await _check_at(store, "success_within") == clock.time


async def test_a_pause_holds_the_promise_and_a_resume_brings_it_back(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job(start_by="5m", success_within="2h"))
    await store.request(stored.job_id, Pause())
    await _judge(store)
    clock.move(hours=5)
    assert await _due(store) == ()
    await store.request(stored.job_id, Resume())
    await _judge(store)
    assert await store.ask(ALL) == []
    clock.move(hours=2, minutes=10)
    await _judge(store)
    assert {each.breach.kind for each in await store.ask(OPEN)} == {"start_by", "success_within"}


async def test_an_edit_that_takes_a_promise_back_ends_its_breach_untold(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job(start_by="5m", finish_by="10m"))
    await _judge(store)
    clock.move(hours=1, minutes=20)
    await _judge(store)
    assert len(await store.ask(OPEN)) == 2
    await put(store, job(finish_by="10m"))
    [still] = await store.ask(OPEN)
    assert still.breach.kind == "finish_by"
    ended = next(each.breach for each in await store.ask(ALL) if each.breach.kind == "start_by")
    assert (ended.ended_at, ended.is_withdrawn) == (clock.time, True)
    assert [each.state.kind for each in await store.ask(Promises())] == ["finish_by"]

    await store.apply([Remove("report")])
    await _judge(store)
    assert await store.ask(OPEN) == []
    assert await store.ask(Promises()) == []
    clock.move(minutes=1)
    owed = (await store.promises(await everything(store), 100)).owed
    assert all(each.is_begin_owed and not each.is_end_owed for each in owed)
    assert await store.purge(still.job_id)
    assert await store.ask(ALL) == []


async def test_a_promise_that_is_made_again_is_broken_as_it_says_now(store: AnyStore, clock: ManualClock) -> None:
    """Withdrawn and made again, it may be broken for the same instant: with its new limit, and found now."""
    begin = clock.time
    await put(store, job("report", when="0 0 1 * *", success_within="3h"))
    clock.move(hours=5)
    await _judge(store)
    await put(store, job("report", when="0 0 1 * *"))
    clock.move(hours=1)
    await put(store, job("report", when="0 0 1 * *", success_within="4h"))
    await _judge(store)
    [found] = await store.ask(ALL)
    breach = found.breach
    assert (breach.broken_for, breach.due_at, breach.found_at) == (begin, begin + timedelta(hours=4), clock.time)
    assert not breach.is_withdrawn


async def test_old_breaches_are_forgotten_when_a_new_one_is_kept(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job("report", when="0 0 1 * *", success_within="3h"))
    await _judge(store)
    clock.move(hours=4)
    await _judge(store)
    await store.request((await store.list())[0].job.id, Trigger("one"))
    await plan_once(store)
    await run_one(store)
    clock.move(minutes=1)
    await _judge(store)
    assert [each.breach.ended_at is None for each in await store.ask(ALL)] == [False]
    clock.move(seconds=BREACHES_KEPT.total_seconds())
    await _judge(store)
    assert [each.breach.ended_at is None for each in await store.ask(ALL)] == [True]


async def test_many_jobs_are_made_and_edited_with_their_promises_at_once(store: AnyStore, clock: ManualClock) -> None:
    names = [f"job-{nth}" for nth in range(5)]
    await store.apply([Put(job(name, start_by="5m")) for name in names])
    assert [each.job for each in await store.ask(Promises())] == names
    await store.apply([Put(job(name, finish_by="1h" if name < "job-3" else None)) for name in names])
    assert [(each.job, each.state.kind) for each in await store.ask(Promises())] == [
        (name, PromiseKind.FINISH_BY) for name in names[:3]
    ]
