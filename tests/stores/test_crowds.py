"""Very many at once: what a snapshot does not name is reached all the same."""

from datetime import timedelta

from everytick import schedule
from everytick.domain.facts import Pause, Trigger
from everytick.domain.occurrence import Cause
from everytick.domain.snapshots import PLAN_LIMIT
from everytick.stores.base import Commit, NodeScope
from tests.stores.acting import AnyStore, began, ended, job, occurrences, plan_once, put
from tests.stores.clock import ManualClock

MANY = 150


async def test_a_snapshot_shows_a_hundred_of_each_line_and_counts_all(store: AnyStore, clock: ManualClock) -> None:
    """Of those that wait it also shows the newest, and in a pause only those that people asked for."""
    await put(store, job("idle", "0 0 1 1 *"))
    await put(store, job("busy", "* * * * *", overlap="allow", recovery="execute_all"))
    await put(store, job("waiting", "* * * * *", overlap="queue", recovery="execute_all"))
    paused = await put(store, job("paused", "* * * * *", overlap="queue", recovery="execute_all"))
    clock.move(minutes=MANY)
    while await plan_once(store):
        pass
    await store.claim(NodeScope("node-1"), 20)
    for key in ("x", "y"):
        await store.request(paused.job_id, Trigger(key))
    await plan_once(store)
    await store.request(paused.job_id, Pause())

    found = await store.look([record.job.id for record in await store.list()])
    seen = {snapshot.editions[-1].job.name: snapshot for snapshot in found.values()}
    shown = {name: (len(line.busy), line.busy_count, len(line.waiting)) for name, line in seen.items()}
    assert shown == {"idle": (0, 0, 0), "busy": (100, MANY, 0), "waiting": (1, 1, 101), "paused": (1, 1, 2)}
    assert seen["waiting"].waiting_count == MANY - 1
    assert [asked.cause for asked in seen["paused"].waiting] == [Cause.TRIGGER] * 2
    assert seen["paused"].waiting_count == MANY + 1


async def test_a_stop_reaches_those_whom_the_snapshot_does_not_name(store: AnyStore, clock: ManualClock) -> None:
    """S4-044: of a hundred and fifty busy ones a snapshot shows a hundred."""
    stops = schedule("30 12 * * *")
    await put(store, job("crowd", "* * * * *", overlap="allow", recovery="execute_all", stop_schedule=stops))
    clock.move(minutes=MANY)
    while await plan_once(store):
        pass
    busy = {made.id for made in await occurrences(store)}
    [first] = await store.claim(NodeScope("node-1"), 1)
    clock.move(minutes=60)
    assert await plan_once(store) == [Commit.COMMITTED]

    assert (await store.beat("node-1", [first.key])).cancel == ((first.key, "asked by the stop schedule"),)
    claims = await store.claim(NodeScope("node-2"), 1000)
    asked = {claim.occurrence.id for claim in claims if claim.life.cancel == "asked by the stop schedule"}
    assert asked == busy - {first.occurrence.id}, "and nobody who came with the same plan"
    assert len(claims) == MANY + 60 - 1


async def test_while_paused_a_request_behind_a_long_line_is_seen(store: AnyStore, clock: ManualClock) -> None:
    """S4-024: a pause holds the schedule, not people."""
    stored = await put(store, job("crowd", "* * * * *", overlap="queue", recovery="execute_all"))
    clock.move(minutes=MANY)
    while await plan_once(store):
        pass
    [claim] = await store.claim(NodeScope("node-1"), 10)
    await store.request(stored.job_id, Trigger("key"))
    await plan_once(store)
    seen = (await store.look([stored.job_id]))[stored.job_id]
    assert (len(seen.waiting), seen.waiting_count) == (PLAN_LIMIT + 1, MANY)

    await store.request(stored.job_id, Pause())
    seen = (await store.look([stored.job_id]))[stored.job_id]
    assert ([each.cause for each in seen.waiting], seen.waiting_count) == ([Cause.TRIGGER], MANY)
    await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time))])
    await plan_once(store)
    [asked] = await store.claim(NodeScope("node-1"), 10)
    assert asked.occurrence.cause is Cause.TRIGGER

    await store.request(stored.job_id, Pause(until=clock.time + timedelta(minutes=1)))
    clock.move(minutes=1)
    seen = (await store.look([stored.job_id]))[stored.job_id]
    assert len(seen.waiting) == PLAN_LIMIT + 1, "the pause is over"
    assert len(await occurrences(store)) == MANY + 1


async def test_of_a_long_line_the_newest_of_the_schedules_own_is_seen(store: AnyStore, clock: ManualClock) -> None:
    """C-11: under queue_latest the next instant takes its place, however many requests stand before it."""
    stored = await put(store, job("crowd", "0 * * * *", overlap="queue"))

    async def ask(count: int, name: str) -> None:
        for number in range(count):
            await store.request(stored.job_id, Trigger(f"{name} {number}"))
        while await plan_once(store):
            pass

    await ask(PLAN_LIMIT + 10, "before")
    clock.move(hours=1)
    await ask(MANY, "behind")
    seen = (await store.look([stored.job_id]))[stored.job_id]
    assert [each.cause for each in seen.waiting] == [*[Cause.TRIGGER] * PLAN_LIMIT, Cause.SCHEDULE, Cause.TRIGGER]
    assert seen.waiting_count == PLAN_LIMIT + 10 + MANY
