"""reattach: what silent nodes have handed over to engines goes on with a node that can ask the engine."""

from dataclasses import replace

from everytick.domain.notes import HandedAttempt, Note, Progress
from everytick.stores.base import Claim, Commit, Nodes, NodeScope
from tests.stores.acting import AnyStore, began, claim_one, ended, job, plan_once, put, statuses
from tests.stores.clock import ManualClock

OTHER = NodeScope("node-2")


async def _handed_over(store: AnyStore, clock: ManualClock) -> Claim:
    """Return what node-1 holds and has handed over to an engine."""
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    assert await store.note([(claim, _note(clock))]) == [Commit.COMMITTED]
    return claim


def _note(clock: ManualClock) -> Note:
    return Note("main", 1, clock.time, handed_to="celery:attempt-1")


async def _silent(store: AnyStore) -> dict[str, int]:
    return {each.id: each.beats for each in await store.ask(Nodes())}


async def test_an_attempt_says_to_which_engine_it_was_handed(store: AnyStore, clock: ManualClock) -> None:
    """The handle is stored with the run, and later notes leave it."""
    claim = await _handed_over(store, clock)
    await store.note([(claim, Note("main", 1, clock.time, Progress(1, 2)))])
    [(_, attempt)] = (await store.whole(claim.occurrence.id)).attempts
    assert (attempt.handed_to, attempt.status, attempt.node) == ("celery:attempt-1", "running", "node-1")
    await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time))])
    [(_, attempt)] = (await store.whole(claim.occurrence.id)).attempts
    assert (attempt.handed_to, attempt.status) == ("celery:attempt-1", "success")


async def test_it_is_not_lost_with_its_node_but_given_to_one_that_goes_on(store: AnyStore, clock: ManualClock) -> None:
    """Running, `orphans`: an attempt handed to an engine is given only to a node that meets the job's needs."""
    claim = await _handed_over(store, clock)
    silent = await _silent(store)
    assert await store.orphans("reaper", 10, silent) == []
    [taken] = await store.reattach(OTHER, 10, silent)
    assert (taken.handle, taken.fence, taken.occurrence.node) == (claim.handle, claim.fence + 1, "node-2")
    assert taken.handed == (HandedAttempt("main", 1, "celery:attempt-1"),)
    assert taken.life == claim.life
    assert await store.reattach(OTHER, 10, silent) == []
    assert await store.note([(claim, _note(clock))]) == [Commit.STALE]
    assert await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time))]) == [Commit.STALE]
    assert await store.commit_steps([(taken, ended(taken, began(taken, clock.time), clock.time))]) == [Commit.COMMITTED]
    assert await statuses(store) == ["completed"]
    [(_, attempt)] = (await store.whole(claim.occurrence.id)).attempts
    assert attempt.node == "node-1"


async def test_only_a_scope_that_meets_the_needs_gets_it(store: AnyStore, clock: ManualClock) -> None:
    claim = await _handed_over(store, clock)
    silent = await _silent(store)
    assert await store.reattach(replace(OTHER, met=("queue:other",)), 10, silent) == []
    assert await store.reattach(replace(OTHER, unknown=frozenset({claim.job.id})), 10, silent) == []
    assert await store.reattach(OTHER, 0, silent) == []
    assert len(await store.reattach(OTHER, 10, silent)) == 1


async def test_a_node_that_beats_meanwhile_keeps_it(store: AnyStore, clock: ManualClock) -> None:
    claim = await _handed_over(store, clock)
    silent = await _silent(store)
    await store.beat("node-1", [claim.key])
    assert await store.reattach(OTHER, 10, silent) == []
    await store.leave("node-1")
    assert len(await store.reattach(OTHER, 10, {"node-1": 0})) == 1


async def test_what_was_not_handed_over_is_lost_with_its_node(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    await store.note([(claim, Note("main", 1, clock.time, Progress(1, 2)))])
    silent = await _silent(store)
    assert await store.reattach(OTHER, 10, silent) == []
    [taken] = await store.orphans("reaper", 10, silent)
    assert taken.handed == ()


async def test_a_claim_that_is_named_is_taken_although_it_was_handed_over(store: AnyStore, clock: ManualClock) -> None:
    """The deadline of an occurrence counts, wherever it runs."""
    claim = await _handed_over(store, clock)
    [taken] = await store.orphans("reaper", 10, await _silent(store), [claim.key])
    assert taken.fence == claim.fence + 1


async def test_a_node_whose_answer_got_lost_hears_of_it_with_its_next_beat(store: AnyStore, clock: ManualClock) -> None:
    await _handed_over(store, clock)
    [taken] = await store.reattach(OTHER, 10, await _silent(store))
    assert (await store.beat("node-2", [])).adopt == (taken,)
    assert (await store.beat("node-2", [taken.key])).adopt == ()
