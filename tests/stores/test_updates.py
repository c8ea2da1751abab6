"""apply with an update policy: when a new version comes into force, and what takes it then."""

from datetime import UTC, datetime, timedelta

import pytest

from everytick.domain.changes import Put, Rename
from everytick.domain.facts import Pause, Rewind, Trigger
from everytick.domain.job import Job
from everytick.domain.lookups import Editions
from everytick.domain.policies import update_policy
from everytick.domain.upcoming import in_force, upcoming
from everytick.errors import InvalidPolicies, TooManyEditions, VersionConflict
from tests.stores.acting import (
    AnyStore,
    began,
    claim_one,
    ended,
    everything,
    job,
    occurrences,
    plan_once,
    put,
    remove,
    rename,
    run_one,
)
from tests.stores.clock import ManualClock

DAY = timedelta(days=1)
FIVE, SIX, FOUR = "0 5 * * *", "0 6 * * *", "0 4 * * *"


@pytest.fixture(autouse=True)
def _noon(clock: ManualClock) -> None:
    """Begin at noon, so that the next day is the next run."""
    clock.time = datetime(2026, 3, 2, 12, tzinfo=UTC)


async def edit(store: AnyStore, new: Job, policy: str | None = None, expected: int | None = None) -> int:
    """Store a definition under a policy of this update, and return the version."""
    [stored] = await store.apply([Put(new, expected, None if policy is None else update_policy(policy))], "anna")
    return stored.version


async def runs(store: AnyStore, clock: ManualClock, id_: str, n: int = 4) -> list[str]:
    """Return the runs to come, as day and hour."""
    snapshot = (await store.look([id_]))[id_]
    return [f"{each:%d %H:%M}" for each in upcoming(snapshot, clock.time, n)]


async def lived(store: AnyStore, clock: ManualClock, days: int) -> list[tuple[str, int]]:
    """Let so many days pass, from one wake to the next, running what is due; return what ran and by which version."""
    await plan_once(store)
    end = clock.time + timedelta(days=days)
    while (wake_at := (await store.list())[0].wake_at) is not None and wake_at <= end:
        clock.time = max(clock.time, wake_at)
        await plan_once(store)
        for claim in await store.claim(await everything(store), 10):
            now = await store.now()
            await store.commit_steps([(claim, ended(claim, began(claim, now), now))])
    clock.time = end
    return [(f"{each.scheduled_for:%d %H:%M}", each.version) for each in await occurrences(store)]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (SIX, ["03 05:00", "04 06:00", "05 06:00", "06 06:00"]),
        (FOUR, ["03 05:00", "04 04:00", "05 04:00", "06 04:00"]),
        ("0 18 * * *", ["03 05:00", "04 18:00", "05 18:00", "06 18:00"]),
        ("0 0 * * *", ["03 05:00", "04 00:00", "05 00:00", "06 00:00"]),
    ],
)
async def test_a_graceful_edit_leaves_the_next_run_to_the_old_version(
    store: AnyStore, clock: ManualClock, new: str, expected: list[str]
) -> None:
    """S0-118, C-23: daily 05:00 to 06:00 means tomorrow 05:00, the day after 06:00."""
    id_ = (await put(store, job(when=FIVE, update_policy="graceful"))).job_id
    await plan_once(store)
    assert await edit(store, job(when=new, update_policy="graceful"), expected=1) == 2
    assert await runs(store, clock, id_) == expected
    ran = await lived(store, clock, 3)
    assert [instant for instant, _ in ran] == expected[: len(ran)]
    assert [version for _, version in ran] in ([1, 2], [1, 2, 2])


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("immediate", ["03 06:00", "04 06:00", "05 06:00", "06 06:00"]),
        ("graceful 2", ["03 05:00", "04 05:00", "05 06:00", "06 06:00"]),
        ("graceful 3d", ["03 05:00", "04 05:00", "05 05:00", "06 06:00"]),
        ("windowed 2", ["03 06:00", "04 06:00", "05 05:00", "06 05:00"]),
        ("windowed 2d", ["03 06:00", "04 06:00", "05 05:00", "06 05:00"]),
    ],
)
async def test_an_update_names_its_own_policy(
    store: AnyStore, clock: ManualClock, policy: str, expected: list[str]
) -> None:
    """S0-117 to S0-120: for so many occurrences or so long, whatever the job's own policy says."""
    id_ = (await put(store, job(when=FIVE))).job_id
    await plan_once(store)
    assert await edit(store, job(when=SIX), policy) == 2
    assert await runs(store, clock, id_) == expected
    assert [instant for instant, _ in await lived(store, clock, 4)] == expected


async def test_after_a_window_the_old_version_is_back_as_a_version_of_its_own(
    store: AnyStore, clock: ManualClock
) -> None:
    """S0-119: the definition of the window is the one that was asked for; storing it again changes nothing."""
    id_ = (await put(store, job(when=FIVE, payload=1))).job_id
    assert await edit(store, job(when=SIX, payload=2), "windowed 1") == 2
    record = (await store.get([id_]))[id_]
    assert (record.job.version, str(record.job.schedule), record.lapsed) == (2, f"cron: {SIX}", None)
    assert not (await store.apply([Put(job(when=SIX, payload=2), 2)]))[0].changed
    assert [version for _, version in await lived(store, clock, 3)] == [2, 3, 3]

    [_, own, after] = await store.ask(Editions(id_, [1, 2, 3]))
    assert (own.by, own.follows, after.follows, after.job.settings.payload) == (
        "anna",
        None,
        2,
        job(payload=1).settings.payload,
    )
    record = (await store.get([id_]))[id_]
    assert (record.job.version, str(record.job.schedule)) == (3, f"cron: {FIVE}")
    assert record.lapsed is not None
    assert str(record.lapsed.schedule) == f"cron: {SIX}"
    for known in (job(when=SIX, payload=2), job(when=FIVE, payload=1)):
        [stored] = await store.apply([Put(known, 3)])
        assert (stored.changed, stored.version) == (False, 3)
    [lasting] = await store.apply([Put(job(when=SIX, payload=2), 3, update_policy("immediate"))])
    assert (lasting.changed, lasting.version) == (True, 4)


async def test_what_is_unclaimed_takes_a_version_when_it_comes_into_force(store: AnyStore, clock: ManualClock) -> None:
    """S0-116, S0-123: what has started keeps its own, and so it is with the priority and the queue."""
    id_ = (await put(store, job(when="0 * * * *", overlap="queue", priority=1))).job_id
    clock.move(hours=1)
    await plan_once(store)
    started = await claim_one(store)
    await store.commit_steps([(started, began(started, clock.time))])
    clock.move(hours=1)
    await plan_once(store)
    await edit(store, job(when="30 * * * *", overlap="queue", priority=7, queue="night"), "graceful 2")
    assert [each.version for each in await occurrences(store)] == [1, 1]
    for _ in range(2):
        clock.move(hours=1)
        await plan_once(store)
    assert [each.version for each in await occurrences(store)] == [1, 1, 1, 1]
    assert (await store.get([id_]))[id_].needs == job().needs
    clock.move(minutes=59, seconds=59)
    await plan_once(store)
    assert (await store.get([id_]))[id_].needs == job().needs
    clock.move(seconds=1)
    await plan_once(store)
    found = await occurrences(store)
    assert [(f"{each.scheduled_for:%H:%M}", each.version) for each in found] == [
        ("13:00", 1), ("14:00", 2), ("15:00", 2), ("16:00", 2),
    ]  # fmt: skip
    assert (await store.get([id_]))[id_].needs == job(queue="night").needs


async def test_a_node_wakes_when_a_version_comes_into_force(store: AnyStore, clock: ManualClock) -> None:
    """The moment is none of the instants: the job is looked at then."""
    id_ = (await put(store, job(when=FIVE))).job_id
    await plan_once(store)
    await edit(store, job(when=SIX), "graceful")
    await lived(store, clock, 1)
    midnight = datetime(2026, 3, 4, tzinfo=UTC)
    record = (await store.get([id_]))[id_]
    assert record.wake_at == midnight - timedelta(microseconds=1)
    assert record.next_run == midnight + timedelta(hours=6)


async def test_a_change_that_moves_no_instant_waits_for_nothing(store: AnyStore, clock: ManualClock) -> None:
    """S0-127: another payload leaves the times alone, raises the version, and the next run has it."""
    id_ = (await put(store, job(when=FIVE, update_policy="graceful"))).job_id
    assert await edit(store, job(when=FIVE, payload=2, update_policy="graceful")) == 2
    assert in_force((await store.look([id_]))[id_].editions, clock.time).version == 2
    assert [version for _, version in await lived(store, clock, 1)] == [2]


async def test_an_edit_of_what_is_to_come_replaces_it(store: AnyStore, clock: ManualClock) -> None:
    """A second graceful edit keeps the moment; one in force at once takes the place of both; and back is back."""
    id_ = (await put(store, job(when=FIVE))).job_id
    await edit(store, job(when=SIX), "graceful")
    await edit(store, job(when="0 7 * * *"), "graceful")
    assert await runs(store, clock, id_, 3) == ["03 05:00", "04 07:00", "05 07:00"]
    await edit(store, job(when="0 8 * * *"), "immediate")
    assert await runs(store, clock, id_, 3) == ["03 08:00", "04 08:00", "05 08:00"]
    await plan_once(store)
    await edit(store, job(when=SIX), "graceful")
    await edit(store, job(when="0 8 * * *"), "graceful")
    assert await runs(store, clock, id_, 3) == ["03 08:00", "04 08:00", "05 08:00"]
    assert [instant for instant, _ in await lived(store, clock, 3)] == ["03 08:00", "04 08:00", "05 08:00"]


async def test_a_name_and_a_switch_concern_what_is_to_come_and_move_no_moment(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-22: rename, disable and enable while a graceful edit waits, and while a window is open."""
    id_ = (await put(store, job(when=FIVE))).job_id
    await edit(store, job(when=SIX), "graceful 2")
    await rename(store, id_, "other")
    expected = ["03 05:00", "04 05:00", "05 06:00"]
    assert await runs(store, clock, id_, 3) == expected
    await edit(store, job("other", SIX, enabled=False))
    assert await runs(store, clock, id_, 3) == []
    await edit(store, job("other", SIX, enabled=True))
    assert await runs(store, clock, id_, 3) == expected
    record = (await store.get([id_]))[id_]
    assert (record.job.name, str(record.job.schedule), record.job.enabled) == ("other", f"cron: {SIX}", True)

    await edit(store, job("other", FOUR, enabled=True), "windowed 1")
    expected = ["03 04:00", "04 05:00", "05 06:00"]
    assert await runs(store, clock, id_, 3) == expected
    await edit(store, job("other", FOUR, enabled=False))
    await plan_once(store)
    await store.apply([Rename("other", "third")])
    await edit(store, job("third", FOUR, enabled=True))
    assert await runs(store, clock, id_, 3) == expected
    assert [instant for instant, _ in await lived(store, clock, 3)] == expected


async def test_where_nothing_is_scheduled_a_graceful_edit_is_in_force_at_once(
    store: AnyStore, clock: ManualClock
) -> None:
    """A disabled job, a paused one, one that was removed, and one whose schedule is over have no run to wait for."""
    disabled = (await put(store, job("disabled", FIVE, enabled=False))).job_id
    paused = (await put(store, job("paused", FIVE))).job_id
    removed = (await put(store, job("removed", FIVE))).job_id
    over = (await put(store, job("over", "once: 2026-03-02T13:00:00Z"))).job_id
    await store.request(paused, Pause())
    clock.move(hours=2)
    await remove(store, removed)
    await plan_once(store)
    for name in ("disabled", "paused", "removed", "over"):
        await edit(store, job(name, SIX), "graceful")
    for id_ in (disabled, paused, removed, over):
        assert str(in_force((await store.look([id_]))[id_].editions, clock.time).schedule) == f"cron: {SIX}", id_
    assert await runs(store, clock, disabled, 1) == ["03 06:00"]


async def test_a_pause_that_ends_moves_the_moment_behind_it(store: AnyStore, clock: ManualClock) -> None:
    """The next run of a paused job is the first after the pause."""
    id_ = (await put(store, job(when=FIVE))).job_id
    await store.request(id_, Pause(until=datetime(2026, 3, 5, tzinfo=UTC)))
    await edit(store, job(when=SIX), "graceful")
    assert await runs(store, clock, id_, 3) == ["05 05:00", "06 06:00", "07 06:00"]


async def test_a_removed_job_that_is_put_back_keeps_what_was_to_come(store: AnyStore, clock: ManualClock) -> None:
    """C-22: within ten minutes it is the same job."""
    id_ = (await put(store, job(when=FIVE))).job_id
    await edit(store, job(when=SIX), "graceful")
    await remove(store, id_)
    clock.move(minutes=5)
    await plan_once(store)
    await edit(store, job(when=SIX))
    assert await runs(store, clock, id_, 3) == ["03 05:00", "04 06:00", "05 06:00"]


async def test_a_job_that_follows_its_ends_waits_for_the_next_one(store: AnyStore, clock: ManualClock) -> None:
    """While it runs nothing is scheduled, so that an edit then is in force at once."""
    id_ = (await put(store, job(when="after: 1h"))).job_id
    await plan_once(store)
    await edit(store, job(when="after: 2h"), "graceful")
    assert await runs(store, clock, id_, 1) == ["02 13:00"]
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store)
    assert await runs(store, clock, id_, 1) == ["02 15:00"]


async def test_a_version_to_come_is_expected_and_conflicts_as_any_other(store: AnyStore) -> None:
    """S0-115: an update with a stale version is refused, also while the newest one waits."""
    await put(store, job(when=FIVE))
    assert await edit(store, job(when=SIX), "graceful", 1) == 2
    with pytest.raises(VersionConflict):
        await edit(store, job(when=FOUR), "graceful", 1)
    assert await edit(store, job(when=FOUR), "windowed 2", 2) == 3
    with pytest.raises(VersionConflict):
        await edit(store, job(when=FIVE), None, 4)
    assert await edit(store, job(when=FIVE), None, 3) == 5


async def test_no_more_versions_wait_than_a_snapshot_may_hold(store: AnyStore) -> None:
    """Graceful edits wait for a day; the seventeenth undecided version is refused."""
    await put(store, job(when=FIVE))
    for minute in range(15):
        await edit(store, job(when=f"{minute} 6 * * *"), "graceful")
    with pytest.raises(TooManyEditions):
        await edit(store, job(when="59 6 * * *"), "graceful")


async def test_a_window_of_runs_needs_runs(store: AnyStore) -> None:
    """The refusal says what to write instead, and nothing is stored."""
    id_ = (await put(store, job(when=FIVE))).job_id
    with pytest.raises(InvalidPolicies, match="names none to come"):
        await store.apply(
            [Put(job("new")), Put(job(when="once: 2026-01-01T00:00:00Z"), None, update_policy("windowed 3"))]
        )
    assert [record.job.name for record in await store.list()] == ["report"]
    assert (await store.get([id_]))[id_].job.version == 1


async def test_a_payload_that_was_asked_for_stays_while_a_version_is_to_come(
    store: AnyStore, clock: ManualClock
) -> None:
    """It equals that of the version to come, and the run is made by the one in force."""
    id_ = (await put(store, job(when=FIVE, payload="old"))).job_id
    await edit(store, job(when=SIX, payload="new"), "graceful")
    await store.request(id_, Trigger("asked", job(payload="new").settings.payload))
    await plan_once(store)
    claim = await claim_one(store)
    assert claim.occurrence.version == 1
    [made] = await occurrences(store)
    assert made.overrides.get("payload") == job(payload="new").settings.payload


async def test_a_clock_set_back_leaves_what_is_to_come_to_come(store: AnyStore, clock: ManualClock) -> None:
    """A moment that lies ahead on purpose is no sign of a clock that was ahead."""
    id_ = (await put(store, job(when=FIVE))).job_id
    await edit(store, job(when=SIX), "graceful")
    await plan_once(store)
    await store.settle_clock()
    assert await runs(store, clock, id_, 2) == ["03 05:00", "04 06:00"]
    clock.move(hours=6)
    await plan_once(store)
    clock.move(hours=-6)
    await store.request(id_, Rewind())
    assert await runs(store, clock, id_, 2) == ["03 05:00", "04 06:00"]


async def test_what_was_written_while_the_clock_was_ahead_is_in_force_when_it_is_back(
    store: AnyStore, clock: ManualClock
) -> None:
    """The newest version holds; a window that was opened ahead is open, until its end."""
    graceful = (await put(store, job("graceful", FIVE))).job_id
    windowed = (await put(store, job("windowed", FIVE))).job_id
    await plan_once(store)
    clock.move(days=20)
    await edit(store, job("graceful", SIX), "graceful")
    await edit(store, job("windowed", SIX), "windowed 1")
    clock.move(days=-20)
    await store.settle_clock()
    assert await runs(store, clock, graceful, 1) == ["03 06:00"]
    assert await runs(store, clock, windowed, 1) == ["03 06:00"]
