"""Rollouts: a version that is tried by a share of the occurrences, and goes on or back by what became of them."""

from datetime import UTC, datetime, timedelta

import pytest

from everytick.deciding.plan import plan
from everytick.domain.changes import Put, Rename
from everytick.domain.job import Job
from everytick.domain.occurrence import Occurrence
from everytick.domain.outcome import Failed, Outcome
from everytick.domain.policies import update_policy
from everytick.domain.rollouts import Rollout
from everytick.domain.upcoming import edition_in_force, trial_of
from everytick.errors import InvalidPolicies
from everytick.node.events import Event, Happening, Listeners
from everytick.node.inbox import Planned
from everytick.node.notifier import Notifier
from everytick.node.rollouts import Rollouts
from tests.stores.acting import AnyStore, began, ended, everything, job, occurrences, put, remove
from tests.stores.clock import ManualClock

HOURLY, HALF_PAST = "0 * * * *", "30 * * * *"
HOUR = timedelta(hours=1)
HALF = "rollout 50% after 3"


@pytest.fixture(autouse=True)
def _noon(clock: ManualClock) -> None:
    clock.time = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def told() -> list[Event]:
    return []


async def edit(store: AnyStore, new: Job, policy: str | None = None) -> int:
    [stored] = await store.apply([Put(new, None, None if policy is None else update_policy(policy))], "anna")
    return stored.version


async def plan_and_settle(store: AnyStore, told: list[Event] | None = None) -> None:
    """Plan as a node does: commit, then ask for what outcomes have decided."""
    listeners = Listeners()
    listeners.listen((told if told is not None else []).append)
    async with store.due(await everything(store), 100) as batch:
        plans = [plan(snapshot, batch.now) for snapshot in batch.snapshots]
        done = await store.commit_plans(batch, plans)
    rollouts = Rollouts(store, Notifier(store, store), listeners)
    rollouts.put(Planned(batch, batch.snapshots, plans, done, 0.0))
    await rollouts.settle()


async def live(
    store: AnyStore, clock: ManualClock, hours: int, fails: int = 0, told: list[Event] | None = None
) -> list[Occurrence]:
    """Let so many hours pass; what runs under the version `fails` fails. Return what was created."""
    for _ in range(hours):
        clock.time += HOUR
        await plan_and_settle(store, told)
        for claim in await store.claim(await everything(store), 10):
            now = await store.now()
            bad: Outcome | None = Failed("boom") if claim.job.version == fails else None
            await store.commit_steps([(claim, ended(claim, began(claim, now), now, bad))])
        await plan_and_settle(store, told)
    return await occurrences(store)


async def newest_version(store: AnyStore, id_: str) -> tuple[int, str, bool]:
    """Return the newest version of the job, its first task's payload, and whether it is on trial."""
    editions = (await store.look([id_]))[id_].editions
    newest = editions[-1]
    return newest.job.version, str(newest.job.settings.description), trial_of(editions) is not None


async def test_a_share_of_the_occurrences_runs_the_new_version_until_enough_ended_well(
    store: AnyStore, clock: ManualClock, told: list[Event]
) -> None:
    id_ = (await put(store, job(when=HOURLY, description="old"))).job_id
    assert await edit(store, job(when=HOURLY, description="new"), HALF) == 2
    made = await live(store, clock, 12, told=told)
    stage = [each for each in made if each.scheduled_for <= told[0].at]
    assert {each.version for each in stage} == {1, 2}, "some run the old version, and some the new one"
    assert [each.version == 2 for each in stage] == [Rollout(0.5).takes(each.id) for each in stage]
    assert sum(1 for each in made if each.version == 2) == 3, "it goes on when three have ended"
    assert {each.version for each in made if each.scheduled_for > told[0].at} == {3}
    assert [each.kind for each in told] == [Happening.ROLLOUT_WENT_ON]
    assert "0 of 3 occurrences failed" in told[0].text
    assert "version 3 is in force" in told[0].text
    assert await newest_version(store, id_) == (3, "new", False)


async def test_stages_follow_one_another_and_each_counts_its_own(store: AnyStore, clock: ManualClock) -> None:
    id_ = (await put(store, job(when=HOURLY, description="old"))).job_id
    await edit(store, job(when=HOURLY, description="new"), "rollout dry 2, 50% 100% after 2")
    made = await live(store, clock, 12)
    assert await newest_version(store, id_) == (5, "new", False)
    by_version = {version: [each for each in made if each.version == version] for version in range(1, 6)}
    assert not by_version[2], "a dry run runs nothing"
    assert [len(by_version[version]) for version in (3, 4)] == [2, 2]
    told = [each.reason for each in by_version[1][:2]]
    assert all("version 2 would have run" in str(reason) for reason in told), told
    assert "tries version 3 (50% of the occurrences)" in str(by_version[3][0].reason)


async def test_failures_roll_it_back_and_code_that_still_says_it_changes_nothing(
    store: AnyStore, clock: ManualClock, told: list[Event]
) -> None:
    id_ = (await put(store, job(when=HOURLY, description="old"))).job_id
    await edit(store, job(when=HOURLY, description="new"), "rollout 50% after 9 failures 1")
    made = await live(store, clock, 12, fails=2, told=told)
    assert [each.kind for each in told] == [Happening.ROLLED_BACK]
    assert "2 of 2 occurrences failed" in told[0].text
    assert sum(1 for each in made if each.version == 2) == 2, "nothing tries it after it was rolled back"
    assert await newest_version(store, id_) == (3, "old", False)
    [again] = await store.apply([Put(job(when=HOURLY, description="new"))], "sync")
    assert (again.version, again.changed) == (3, False)
    assert await edit(store, job(when=HOURLY, description="new"), "immediate") == 4


async def test_what_is_unclaimed_goes_back_with_the_version(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job(when=HOURLY, description="old", overlap="allow"))
    await edit(store, job(when=HOURLY, description="new", overlap="allow"), "rollout 100% after 5")
    clock.time += HOUR
    await plan_and_settle(store)
    [claim] = await store.claim(await everything(store), 1)
    now = await store.now()
    clock.time += HOUR
    async with store.due(await everything(store), 100) as batch:
        await store.commit_plans(batch, [plan(each, batch.now) for each in batch.snapshots])
    await store.commit_steps([(claim, ended(claim, began(claim, now), now, Failed("boom")))])
    assert [each.version for each in await occurrences(store)] == [2, 2]
    await plan_and_settle(store)
    assert [each.version for each in await occurrences(store)] == [2, 3]


async def test_instants_are_named_by_the_old_version_until_the_new_one_is_in_force(
    store: AnyStore, clock: ManualClock
) -> None:
    await put(store, job(when=HOURLY))
    await edit(store, job(when=HALF_PAST), "rollout dry 1 100% after 1")
    made = await live(store, clock, 4)
    assert [f"{each.scheduled_for:%H:%M}" for each in made] == ["13:00", "14:00", "14:30", "15:30"]
    assert "version 2 would have run at 2026-03-02T12:30:00+00:00" in str(made[0].reason)


async def test_a_rename_carries_the_trial_on_and_a_removal_ends_it(store: AnyStore, clock: ManualClock) -> None:
    id_ = (await put(store, job(when=HOURLY, description="old"))).job_id
    await edit(store, job(when=HOURLY, description="new"), HALF)
    await store.apply([Rename("report", "renamed")], "anna")
    snapshot = (await store.look([id_]))[id_]
    assert edition_in_force(snapshot.editions, clock.time).job.settings.description == "old"
    trial = trial_of(snapshot.editions)
    assert trial is not None
    assert (trial.job.version, trial.job.name, str(trial.rollout)) == (4, "renamed", "50% after 3")
    await remove(store, id_)
    assert not await live(store, clock, 3)


async def test_the_same_rollout_again_changes_nothing_and_another_policy_ends_it(
    store: AnyStore, clock: ManualClock
) -> None:
    id_ = (await put(store, job(when=HOURLY, description="old"))).job_id
    new = job(when=HOURLY, description="new")
    assert [await edit(store, new, HALF), await edit(store, new, HALF), await edit(store, new)] == [2, 2, 2]
    assert await newest_version(store, id_) == (2, "new", True)
    assert await edit(store, new, "immediate") == 3
    assert await newest_version(store, id_) == (3, "new", False)


async def test_a_verdict_that_comes_late_leaves_a_newer_edit_alone(store: AnyStore, clock: ManualClock) -> None:
    id_ = (await put(store, job(when=HOURLY, description="old"))).job_id
    await edit(store, job(when=HOURLY, description="new"), "rollout dry 1")
    clock.time += HOUR
    async with store.due(await everything(store), 100) as batch:
        await store.commit_plans(batch, [plan(each, batch.now) for each in batch.snapshots])
    clock.time += HOUR
    async with store.due(await everything(store), 100) as batch:
        plans = [plan(snapshot, batch.now) for snapshot in batch.snapshots]
        done = await store.commit_plans(batch, plans)
    assert plans[0].verdict is not None
    assert await edit(store, job(when=HOURLY, description="newer"), "immediate") == 3
    late = Planned(batch, batch.snapshots, plans, done, 0.0)
    rollouts = Rollouts(store, Notifier(store, store), Listeners())
    rollouts.put(late)
    await rollouts.settle()
    assert await newest_version(store, id_) == (3, "newer", False)


async def test_a_verdict_of_a_node_that_died_is_decided_again_soon(store: AnyStore, clock: ManualClock) -> None:
    id_ = (await put(store, job(when=HOURLY, description="old"))).job_id
    await edit(store, job(when=HOURLY, description="new"), "rollout dry 1")
    for _ in range(2):
        clock.time += HOUR
        async with store.due(await everything(store), 100) as batch:
            await store.commit_plans(batch, [plan(each, batch.now) for each in batch.snapshots])
    assert (await newest_version(store, id_))[2]
    clock.time += timedelta(seconds=5)
    await plan_and_settle(store)
    assert await newest_version(store, id_) == (3, "new", False)


async def test_what_a_job_depends_on_is_not_tried(store: AnyStore) -> None:
    await put(store, job("first", when=HOURLY))
    await put(store, job("second", when=HOURLY))
    with pytest.raises(InvalidPolicies, match="may end by itself"):
        await edit(store, job("second", when=HOURLY, depends_on="first"), HALF)


async def test_a_clock_that_was_ahead_brings_no_trial_into_force(store: AnyStore, clock: ManualClock) -> None:
    id_ = (await put(store, job(when=HOURLY, description="old"))).job_id
    clock.time += timedelta(days=2)
    await edit(store, job(when=HOURLY, description="new"), HALF)
    clock.time -= timedelta(days=2)
    await store.settle_clock()
    editions = (await store.look([id_]))[id_].editions
    assert edition_in_force(editions, clock.time).job.settings.description == "old"
    assert trial_of(editions) is not None
