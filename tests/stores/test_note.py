"""note: what people see of an attempt while it runs, and never more than its owner may say."""

from dataclasses import replace
from datetime import timedelta

from everytick.domain.notes import Log, Note, Progress
from everytick.domain.occurrence import Attempt
from everytick.stores.base import Claim, Commit, CommitFailed
from tests.stores.acting import FAILED, AnyStore, began, claim_one, ended, job, plan_once, put, reap, statuses
from tests.stores.clock import ManualClock

HALF = Progress(1, 2, "half of it")
LOG = Log("node-1", "report/1.log")


async def running(store: AnyStore, clock: ManualClock, **policies: object) -> Claim:
    await put(store, job(**policies))  # type: ignore[arg-type]
    clock.move(hours=1)
    await plan_once(store)
    return await claim_one(store)


async def attempts(store: AnyStore, claim: Claim) -> list[tuple[str, Attempt]]:
    return list((await store.whole(claim.occurrence.id)).attempts)


async def test_a_running_attempt_is_shown_with_its_progress_and_log(store: AnyStore, clock: ManualClock) -> None:
    claim = await running(store, clock)
    began_at = clock.time
    clock.move(seconds=2)
    await store.note([(claim, Note("main", 1, began_at, HALF, LOG))])
    [(task, attempt)] = await attempts(store, claim)
    assert (task, attempt.number, attempt.status, attempt.started_at) == ("main", 1, "running", began_at)
    assert (attempt.progress, attempt.log, attempt.ended_at) == (HALF, LOG, None)


async def test_a_note_leaves_what_it_does_not_speak_of(store: AnyStore, clock: ManualClock) -> None:
    claim = await running(store, clock)
    full = Progress(2.5, None, "")
    await store.note([(claim, Note("main", 1, clock.time, HALF, None))])
    await store.note([(claim, Note("main", 1, clock.time + timedelta(hours=1), None, LOG))])
    [(_, attempt)] = await attempts(store, claim)
    assert (attempt.progress, attempt.log, attempt.started_at) == (HALF, LOG, clock.time)
    await store.note([(claim, Note("main", 1, clock.time, full))])
    [(_, attempt)] = await attempts(store, claim)
    assert (attempt.progress, attempt.log) == (full, LOG)


async def test_several_notes_of_one_attempt_come_in_order(store: AnyStore, clock: ManualClock) -> None:
    claim = await running(store, clock)
    steps = [Progress(done, 9) for done in range(3)]
    await store.note([(claim, Note("main", 1, clock.time, step)) for step in steps])
    [(_, attempt)] = await attempts(store, claim)
    assert attempt.progress == steps[-1]


async def test_the_end_keeps_what_was_noted(store: AnyStore, clock: ManualClock) -> None:
    claim = await running(store, clock, retry={"max": 1, "interval": "10m"})
    begun = began(claim, clock.time)
    await store.note([(claim, Note("main", 1, clock.time, HALF, LOG))])
    began_at, ended_at = clock.time, clock.move(seconds=3)
    await store.commit_steps([(claim, ended(claim, begun, ended_at, FAILED))])
    [(_, attempt)] = await attempts(store, claim)
    assert (attempt.status, attempt.started_at, attempt.ended_at) == ("failed", began_at, ended_at)
    assert (attempt.progress, attempt.log, attempt.error) == (HALF, LOG, "boom")


async def test_a_note_after_the_end_of_its_attempt_adds_and_changes_no_status(
    store: AnyStore, clock: ManualClock
) -> None:
    """The occurrence goes on with its second task, and the output of the first is only now complete."""
    claim = await running(store, clock, tasks=("one", "two"))
    begun = clock.time
    await store.commit_steps([(claim, ended(claim, began(claim, begun), clock.move(seconds=1)))])
    [(_, before)] = await attempts(store, claim)
    await store.note([(claim, Note("one", 1, begun + timedelta(hours=9), HALF, LOG))])
    [(_, after)] = await attempts(store, claim)
    assert (after.progress, after.log) == (HALF, LOG)
    assert (after.status, after.started_at, after.ended_at) == ("success", before.started_at, before.ended_at)


async def test_a_note_after_the_end_of_the_occurrence_adds_too(store: AnyStore, clock: ManualClock) -> None:
    """The end raises the fence, but it had no other owner: a short run's output is noted behind its end."""
    claim = await running(store, clock)
    await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time))])
    note = Note("main", 1, clock.time, HALF, LOG)
    await store.note([(claim, note), (claim, Note("main", 2, clock.time, HALF, LOG))])
    [(_, attempt)] = await attempts(store, claim)
    assert (attempt.status, attempt.progress, attempt.log) == ("success", HALF, LOG)
    assert await statuses(store) == ["completed"]


async def test_a_note_whose_fence_is_gone_is_dropped(store: AnyStore, clock: ManualClock) -> None:
    """E8: a zombie shows nothing, neither while the reaper holds it nor after its end."""
    claim = await running(store, clock)
    note = Note("main", 1, clock.time, HALF, LOG)
    clock.move(seconds=30)
    await store.beat("reaper", [])
    [taken] = await store.orphans("reaper", 1, {}, [claim.key])
    await store.note([(claim, note)])
    assert await attempts(store, taken) == []
    clock.move(seconds=30)
    await reap(store, "another")
    [(_, before)] = await attempts(store, claim)
    assert (before.status, before.progress) == ("lost", None)
    await store.note([(claim, note)])
    assert [attempt for _, attempt in await attempts(store, claim)] == [before]


async def test_a_note_of_what_was_forgotten_is_dropped(store: AnyStore, clock: ManualClock) -> None:
    claim = await running(store, clock, retention={"success": "1h", "failure": "1h", "keep_last": 0})
    await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time))])
    await store.reported([claim.occurrence.id])
    clock.move(hours=2)
    assert await store.prune() == 1
    await store.note([(claim, Note("main", 1, clock.time, HALF))])
    assert await statuses(store) == []


async def test_a_note_wakes_no_job_and_changes_no_decision(store: AnyStore, clock: ManualClock) -> None:
    claim = await running(store, clock)
    [record] = await store.list()
    [seen] = (await store.look([record.job.id])).values()
    await store.note([(claim, Note("main", 1, clock.time, HALF, LOG))])
    assert list((await store.look([record.job.id])).values()) == [seen]
    [adopted] = (await store.beat("node-1", [])).adopt
    assert (adopted.header, adopted.life) == (claim.header, claim.life)


async def test_a_note_that_the_store_refuses_keeps_no_other_from_being_written(
    store: AnyStore, clock: ManualClock
) -> None:
    """D7: together, then each alone; the answers say which was written. Memory and JSON hold any number."""
    holds_any = store.address.kind in ("memory", "redis")
    claim = await running(store, clock)
    good, bad = Note("main", 1, clock.time, HALF), Note("main", 2**70, clock.time, None, LOG)
    first, refused, last = await store.note([(claim, good), (claim, bad), (claim, replace(good, log=LOG))])
    assert [first, last] == [Commit.COMMITTED] * 2
    assert isinstance(refused, CommitFailed) or holds_any
    if not holds_any:
        [(_, attempt)] = await attempts(store, claim)
        assert (attempt.number, attempt.progress, attempt.log) == (1, HALF, LOG)


async def test_a_note_of_a_claim_that_is_gone_is_answered_as_stale(store: AnyStore, clock: ManualClock) -> None:
    claim = await running(store, clock)
    gone = replace(claim, key=claim.key._replace(token=claim.key.token + 1))
    note = Note("main", 1, clock.time, HALF)
    assert list(await store.note([(gone, note), (claim, note)])) == [Commit.STALE, Commit.COMMITTED]
    assert list(await store.note([])) == []
