"""history and prune: what people ask of the past, and how it is forgotten."""

import pytest

from everytick.domain.changes import Put
from everytick.domain.ids import occurrence_id
from everytick.domain.occurrence import Cause
from everytick.domain.policies import update_policy
from everytick.domain.statuses import ACTIVE, OccurrenceStatus
from everytick.stores.base import HistoryFilter
from tests.stores.acting import FAILED, AnyStore, deliver, job, occurrences, plan_once, put, run_one
from tests.stores.clock import ManualClock


async def hours(store: AnyStore, clock: ManualClock, count: int) -> None:
    """Let an hourly job run so many times."""
    for _ in range(count):
        clock.move(hours=1)
        await plan_once(store)
        await run_one(store)
        await plan_once(store)


async def test_history_is_read_in_pages_newest_first(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job())
    await hours(store, clock, 5)
    first = await store.history(HistoryFilter(job_id=stored.job_id, limit=2))
    second = await store.history(HistoryFilter(job_id=stored.job_id, limit=2, cursor=first.cursor))
    third = await store.history(HistoryFilter(job_id=stored.job_id, limit=2, cursor=second.cursor))
    found = [each.scheduled_for.hour for page in (first, second, third) for each in page.occurrences]
    assert found == [14, 13, 12, 11, 10]
    assert third.cursor is None


async def test_history_is_filtered(store: AnyStore, clock: ManualClock) -> None:
    one, other = await put(store, job("one")), await put(store, job("other", "0 0 1 1 *"))
    await hours(store, clock, 3)
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store, FAILED)

    async def count(**asked: object) -> int:
        return len((await store.history(HistoryFilter(**asked))).occurrences)  # type: ignore[arg-type]

    assert await count(job_id=one.job_id) == 4
    assert await count(job_id=other.job_id) == 0
    assert await count(statuses=[OccurrenceStatus.FAILED]) == 1
    assert await count(cause=Cause.TRIGGER) == 0
    assert await count(after=clock.time.replace(hour=11), through=clock.time.replace(hour=12)) == 1


async def test_what_is_under_way_is_a_page_of_the_history(store: AnyStore, clock: ManualClock) -> None:
    one = await put(store, job("one", overlap="allow"))
    await hours(store, clock, 1)
    other = await put(store, job("other"))
    clock.move(hours=1)
    await plan_once(store)
    clock.move(hours=1)
    await plan_once(store)
    active = sorted(ACTIVE)
    ended = [each for each in await occurrences(store) if each.status not in ACTIVE]
    begun = [each for each in await occurrences(store) if each.status in ACTIVE]
    assert ended
    first = await store.history(HistoryFilter(statuses=active, limit=2))
    rest = await store.history(HistoryFilter(statuses=active, cursor=first.cursor))
    found = [*first.occurrences, *rest.occurrences]
    assert found == sorted(begun, key=lambda each: (each.scheduled_for, each.id), reverse=True)
    for id_ in (one.job_id, other.job_id):
        of_job = await store.history(HistoryFilter(job_id=id_, statuses=active))
        assert list(of_job.occurrences) == [each for each in found if each.job_id == id_]
    until = await store.history(HistoryFilter(statuses=active, through=clock.time.replace(hour=11)))
    assert {each.scheduled_for.hour for each in until.occurrences} == {11}
    assert not (await store.history(HistoryFilter(statuses=active, cause=Cause.TRIGGER))).occurrences


async def test_retention_forgets_the_old_and_keeps_the_last(store: AnyStore, clock: ManualClock) -> None:
    """I17, G5: by age and outcome, never fewer than the last ones, never live rows or the watermark."""
    stored = await put(store, job(retention={"success": "1h", "failure": "10h", "keep_last": 2}))
    await hours(store, clock, 4)
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store, FAILED)
    watermark = (await store.get([stored.job_id]))[stored.job_id].watermark
    clock.move(hours=1)
    await plan_once(store)
    assert await store.prune() == 0, "what has a report to deliver is kept until it is delivered"
    await deliver(store)

    assert await store.prune(limit=1) == 1
    assert await store.prune() == 2
    assert await store.prune() == 0
    assert [str(each.status) for each in await occurrences(store)] == ["completed", "failed", "pending"]
    assert (await store.get([stored.job_id]))[stored.job_id].watermark >= watermark


@pytest.mark.parametrize("policy", ["graceful 10h", "rollout 50% after 3"])
async def test_retention_goes_by_the_version_in_force_and_not_by_one_that_waits_or_is_tried(
    store: AnyStore, clock: ManualClock, policy: str
) -> None:
    """I17, S0-118: it may be taken back, and what was forgotten by it would be gone."""
    keep_little = {"success": "1h", "keep_last": 0}
    await put(store, job(retention={"success": "30d", "keep_last": 0}))
    await hours(store, clock, 3)
    await store.apply([Put(job(when="30 * * * *", retention=keep_little), policy=update_policy(policy))])
    clock.move(hours=2)
    await plan_once(store)
    await deliver(store)
    assert await store.prune() == 0
    await store.apply([Put(job(when="45 * * * *", retention=keep_little), policy=update_policy("immediate"))])
    assert await store.prune() == 3


async def test_runs_attempts_and_tasks_say_when_they_came_to_be(store: AnyStore, clock: ManualClock) -> None:
    """S0-003, S0-005, S0-006: a run with its occurrence, a retry at the end of the attempt before it."""
    stored = await put(store, job(retry={"max": 1, "interval": "1m"}))
    defined = clock.time
    clock.move(hours=1)
    await plan_once(store)
    made = clock.time
    clock.move(seconds=1)
    await run_one(store, FAILED)
    failed = clock.time
    clock.move(minutes=2)
    claim = await run_one(store)
    again = clock.time
    whole = await store.whole(claim.occurrence.id)
    [run], [(_, first), (_, second)] = whole.runs, whole.attempts
    assert (run.created_at, run.updated_at) == (made, again)
    assert (first.created_at, second.created_at) == (failed, failed)
    [record] = (await store.get([stored.job_id])).values()
    assert [(each.created_at, each.updated_at) for each in record.job.tasks] == [(defined, defined)]
    edited = await put(store, job(priority=2))
    [record] = (await store.get([edited.job_id])).values()
    assert [(each.created_at, each.updated_at) for each in record.job.tasks] == [(defined, again)]


async def test_an_occurrence_record_holds_all_that_is_asked_of_it(store: AnyStore, clock: ManualClock) -> None:
    """S0-004: who, when, under which version and config, whether it came late, by which node, and how it ended."""
    stored = await put(store, job(priority=3))
    clock.move(hours=1)
    instant = clock.time
    clock.move(minutes=30)
    await plan_once(store)
    made = clock.time
    clock.move(seconds=1)
    await run_one(store, FAILED)
    [found] = await occurrences(store)
    [record] = (await store.get([stored.job_id])).values()
    assert (found.id, found.job_id, found.version) == (occurrence_id(stored.job_id, instant), stored.job_id, 1)
    assert (found.scheduled_for, found.status, found.node) == (instant, "failed", "node-1")
    assert (found.started_at, found.ended_at) == (clock.time, clock.time)
    assert (found.created_at, found.updated_at) == (made, clock.time)
    assert found.is_recovery_run
    assert found.error
    assert found.settings(record.job).priority == 3
