"""apply with Put: create a job or make a new version of it."""

from datetime import timedelta
from itertools import pairwise

import pytest

from everytick.domain.config import Level, overrides
from everytick.domain.facts import Amend, Pause, Resume, Skip, Trigger
from everytick.domain.ids import job_id
from everytick.domain.lookups import Spans
from everytick.domain.snapshots import Edition, Missed
from everytick.errors import DuplicateDefinition, TooManyEditions, VersionConflict
from everytick.schedules import codec
from everytick.stores.base import NodeScope, Stored
from tests.stores.acting import AnyStore, job, occurrences, plan_once, put, remove, rename, run_one, statuses
from tests.stores.clock import ManualClock
from tests.unit.schedules import tides


async def test_a_new_job_begins_now_and_is_due_at_once_to_be_looked_at(store: AnyStore, clock: ManualClock) -> None:
    """S1-005, S4-028, S0-002, C-08: the watermark is the store's now, so nothing of the past is made up for."""
    stored = await put(store, job())
    record = (await store.get([stored.job_id]))[stored.job_id]

    assert stored == Stored(job().id, 1, changed=True)
    assert record.watermark == clock.time
    assert record.wake_at == clock.time
    assert record.job.created_at == clock.time
    assert record.next_run == clock.time + timedelta(hours=1)


@pytest.mark.parametrize(
    ("when", "kind"),
    [("0 * * * *", "cron"), ("repeat: R5/2024-01-01T00:00:00Z/P3W", "repeat"), ("once: 2090-01-01T00:00:00Z", "once")],
)
async def test_a_job_record_holds_all_that_is_asked_of_it(
    store: AnyStore, clock: ManualClock, when: str, kind: str
) -> None:
    """S0-002: id, name, kind of schedule and its text, config, version, switches, the last run, and its times."""
    made = clock.time
    stored = await put(store, job("report", when, priority=3))
    record = (await store.get([stored.job_id]))[stored.job_id]
    assert (record.job.id, record.job.name, record.job.version) == (job_id("report"), "report", 1)
    assert record.job.schedule_type == kind
    assert codec.schedule(str(record.job.schedule)) == record.job.schedule
    assert record.job.overrides == overrides(Level.JOB, {"priority": 3})
    assert (record.job.enabled, record.pause, record.last_end) == (True, None, None)
    assert (record.job.created_at, record.job.updated_at) == (made, made)

    clock.move(minutes=1)
    await store.request(stored.job_id, Trigger("now"))
    await plan_once(store)
    await run_one(store)
    await store.request(stored.job_id, Pause(by="ops"))
    ran = clock.time
    clock.move(minutes=1)
    await put(store, job("report", when, priority=4, enabled=False))
    record = (await store.get([stored.job_id]))[stored.job_id]
    assert (record.job.version, record.job.enabled) == (2, False)
    assert (record.job.created_at, record.job.updated_at) == (made, clock.time)
    assert record.pause is not None
    assert record.last_end is not None
    assert record.last_end.started_at == ran


async def test_an_equal_definition_changes_nothing(store: AnyStore) -> None:
    """C-21, F10: repeated start-ups leave watermark, revision and pause alone."""
    stored = await put(store, job())
    await plan_once(store)
    before = await store.get([stored.job_id])

    assert await put(store, job()) == Stored(stored.job_id, 1, changed=False)
    assert await store.get([stored.job_id]) == before


async def test_an_edit_is_a_new_version_in_force_after_now(store: AnyStore, clock: ManualClock) -> None:
    """S0-115, C-23: earlier instants belong to the old definition, later ones to the new."""
    stored = await put(store, job())
    await plan_once(store)
    clock.move(minutes=30)
    edited = await put(store, job(when="30 * * * *"), expected=1)
    async with store.due(NodeScope("node-1"), 10) as batch:
        [snapshot] = batch.snapshots
        moments = [(each.job.version, each.in_force_after) for each in snapshot.editions]

    assert edited == Stored(stored.job_id, 2, changed=True)
    assert moments == [(1, None), (2, clock.time)]
    assert all(isinstance(each, Edition) for each in snapshot.editions)


async def test_editing_never_fires_a_job(store: AnyStore, clock: ManualClock) -> None:
    """F7, F9: the new rule's instants before the edit are not made up for, and it does not wait for the old one's."""
    await put(store, job())
    await plan_once(store)
    clock.move(minutes=30)
    await put(store, job(when="15,45 * * * *"))
    await plan_once(store)
    assert await occurrences(store) == []

    clock.move(minutes=15)
    await plan_once(store)
    [made] = await occurrences(store)
    assert made.scheduled_for == clock.time
    assert made.version == 2


async def test_every_change_of_a_definition_is_a_version_and_nothing_else_is(
    store: AnyStore, clock: ManualClock
) -> None:
    """S0-115: an edit, disabling, enabling, a new name and a return each count one.

    A removal edits nothing, and what was removed is not edited by a person who has not seen that.
    """
    id_ = (await put(store, job())).job_id

    async def version() -> int:
        return (await store.get([id_]))[id_].job.version

    for number, edited in enumerate((job(priority=1), job(priority=1, enabled=False), job(priority=1)), 2):
        await put(store, edited)
        await plan_once(store)
        assert await version() == number
    await rename(store, id_, "renamed")
    assert await version() == 5
    await remove(store, id_, retire_after=timedelta(minutes=10))
    assert await version() == 5
    with pytest.raises(VersionConflict):
        await put(store, job("renamed", priority=2), expected=5)
    await put(store, job("renamed", priority=1))
    await plan_once(store)
    assert await version() == 6
    for fact in (Pause(), Resume(), Trigger("k"), Skip(clock.time + timedelta(hours=1))):
        await store.request(id_, fact)
        await plan_once(store)
    await run_one(store)
    assert await version() == 6


async def test_an_edit_of_an_older_version_is_refused_and_changes_nothing(store: AnyStore) -> None:
    """S0-115, I14: of two edits of the same version exactly one wins."""
    stored = await put(store, job())
    await put(store, job(when="30 * * * *"), expected=1)
    before = await store.get([stored.job_id])

    with pytest.raises(VersionConflict) as caught:
        await put(store, job(when="45 * * * *"), expected=1)
    assert (caught.value.expected, caught.value.found) == (1, 2)
    assert await store.get([stored.job_id]) == before


async def test_an_edit_of_a_job_that_is_not_there_is_refused(store: AnyStore) -> None:
    with pytest.raises(VersionConflict) as refused:
        await put(store, job(), expected=3)
    assert (refused.value.expected, refused.value.found) == (3, 0)


async def test_what_was_not_claimed_takes_the_new_version_and_what_has_started_keeps_its_own(
    store: AnyStore, clock: ManualClock
) -> None:
    """S0-116: a running occurrence finishes under the version it started with."""
    await put(store, job(overlap="queue"))
    clock.move(hours=1)
    await plan_once(store)
    await store.claim(NodeScope("node-1"), 1)
    clock.move(hours=1)
    await plan_once(store)
    assert await statuses(store) == ["running", "queued"]

    await put(store, job(overlap="queue", description="edited"))
    assert [each.version for each in await occurrences(store)] == [1, 2]


async def test_edits_without_a_plan_in_between_are_bounded(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job())
    for number in range(1, 16):
        clock.move(seconds=1)
        await put(store, job(when=f"{number} * * * *"))
    with pytest.raises(TooManyEditions):
        await put(store, job(description="one too many"))

    clock.move(seconds=1)
    await plan_once(store)
    assert (await put(store, job(description="one more"))).version == 17


async def test_a_disabled_job_that_was_edited_as_often_as_it_may_be_can_still_be_enabled(
    store: AnyStore, clock: ManualClock
) -> None:
    """No node looks, so that nothing makes room for another edit."""
    await put(store, job())
    for number in range(1, 15):
        clock.move(seconds=1)
        await put(store, job(when=f"{number} * * * *", enabled=False))
    with pytest.raises(TooManyEditions):
        await put(store, job(enabled=False, description="one too many"))

    clock.move(seconds=1)
    assert (await put(store, job(enabled=True))).changed
    clock.move(seconds=1)
    await plan_once(store)
    assert (await put(store, job(enabled=False))).changed


async def test_edits_that_change_nothing_of_the_schedule_never_run_out(store: AnyStore, clock: ManualClock) -> None:
    """C-18, C-23: though no node looks, for what is due is named by the newest as by those before it."""
    stored = await put(store, job(when="30 * * * *", overlap="allow", recovery="execute_all"))
    for number in range(40):
        clock.move(minutes=10)
        edited = job(when="30 * * * *", overlap="allow", recovery="execute_all", description=str(number))
        assert (await put(store, edited)).version == number + 2
    assert len((await store.look([stored.job_id]))[stored.job_id].editions) <= 16
    await plan_once(store)
    due = [each.scheduled_for.minute for each in await occurrences(store)]
    assert due == [30] * 7


@pytest.mark.parametrize("held", ["paused", "disabled"])
async def test_edits_of_a_job_whose_schedule_is_held_never_run_out(
    store: AnyStore, clock: ManualClock, held: str
) -> None:
    """C-18, C-19: what is past and cannot run is written down, by the definition that named it, each instant once."""
    stored = await put(store, job(overlap="allow", recovery="execute_all"))
    await plan_once(store)
    begun = clock.time
    if held == "paused":
        await store.request(stored.job_id, Pause(by="ann"))
    for number in range(40):
        when = f"{number % 7} * * * *"
        await put(store, job(when=when, overlap="allow", recovery="execute_all", enabled=held == "paused"))
        await plan_once(store)
        clock.move(hours=1)
    if held == "paused":
        await store.request(stored.job_id, Resume())
    else:
        await put(store, job(overlap="allow", recovery="execute_all"))
    await plan_once(store)
    spans = await store.ask(Spans(stored.job_id, begun, clock.time))
    assert {str(span.why) for span in spans} == {held}
    assert sum(span.count or 0 for span in spans) == 40
    assert all(one.through <= other.after for one, other in pairwise(spans))
    clock.move(hours=1)
    await plan_once(store)
    assert await statuses(store) == ["pending"]


async def test_a_pause_that_is_caught_up_keeps_what_its_instants_are_named_by(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-18: nothing of it is decided before it ends, so that as many schedules are kept as may be, and no more."""
    stored = await put(store, job(overlap="allow", recovery="execute_all"))
    await plan_once(store)
    await store.request(stored.job_id, Pause(missed=Missed.CATCH_UP))
    for number in range(1, 16):
        clock.move(hours=1)
        await put(store, job(when=f"{number} * * * *", overlap="allow", recovery="execute_all"))
        await plan_once(store)
    with pytest.raises(TooManyEditions):
        await put(store, job())
    clock.move(hours=1)
    await store.request(stored.job_id, Resume())
    await plan_once(store)
    due = [each.scheduled_for.minute for each in await occurrences(store)]
    assert due == list(range(16))
    assert (await put(store, job())).changed


async def test_a_rename_keeps_id_watermark_and_history(store: AnyStore, clock: ManualClock) -> None:
    """C-22, C-25: the name is new, the id is not, and the old name is free for another job."""
    stored = await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    before = (await store.get([stored.job_id]))[stored.job_id]
    await rename(store, stored.job_id, "summary")
    after = (await store.get([stored.job_id]))[stored.job_id]

    assert after.job.name == "summary"
    assert after.job.id == stored.job_id
    assert after.watermark == before.watermark
    assert len(await occurrences(store, stored.job_id)) == 1
    other = await put(store, job())
    assert other.job_id != stored.job_id
    with pytest.raises(DuplicateDefinition):
        await rename(store, other.job_id, "summary")


async def test_removing_cancels_what_waits_and_lets_run_what_runs(store: AnyStore, clock: ManualClock) -> None:
    """S0-133, C-22: history stays, running ones finish, unclaimed ones are canceled."""
    stored = await put(store, job(overlap="queue"))
    clock.move(hours=1)
    await plan_once(store)
    await store.claim(NodeScope("node-1"), 1)
    clock.move(hours=1)
    await plan_once(store)
    await remove(store, stored.job_id)
    await plan_once(store)

    assert await statuses(store) == ["running", "canceled"]
    assert await store.list() == []
    clock.move(hours=5)
    await plan_once(store)
    assert len(await occurrences(store)) == 2


@pytest.mark.parametrize(("minutes", "kept"), [(9, True), (11, False)])
async def test_a_job_that_comes_back_in_time_keeps_its_watermark(
    store: AnyStore, clock: ManualClock, minutes: int, kept: bool
) -> None:
    """C-22, S4-030: within ten minutes it is the same job, later a new one that begins now."""
    stored = await put(store, job())
    await plan_once(store)
    begun = (await store.get([stored.job_id]))[stored.job_id].watermark
    await remove(store, stored.job_id, retire_after=timedelta(minutes=10))
    clock.move(minutes=minutes)
    again = await put(store, job())
    record = (await store.get([again.job_id]))[again.job_id]

    assert (again.job_id == stored.job_id) is kept
    assert record.watermark == (begun if kept else clock.time)
    assert record.removed_at is None


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        ("next", []),
        ("if_matching_now", ["2026-11-16T09:00"]),
        ({"backfill_from": "2026-11-16T07:00:00Z"}, ["2026-11-16T07:00", "2026-11-16T08:00", "2026-11-16T09:00"]),
    ],
)
async def test_where_a_new_job_begins(store: AnyStore, clock: ManualClock, begin: object, expected: list[str]) -> None:
    """C-08, S2-012, S0-091."""
    clock.move(seconds=20)
    await put(store, job(on_create=begin, recovery="execute_all", overlap="allow"))
    await plan_once(store)
    assert [f"{each.scheduled_for:%Y-%m-%dT%H:%M}" for each in await occurrences(store)] == expected


async def test_immediately_is_a_request_of_its_own(store: AnyStore, clock: ManualClock) -> None:
    """C-08, S3-013: it runs at once and the schedule is not moved."""
    clock.move(minutes=10)
    await put(store, job(on_create="immediately"))
    await plan_once(store)
    [made] = await occurrences(store)
    assert (made.cause, made.scheduled_for, made.status) == ("create", clock.time, "pending")


async def test_an_edit_leaves_alone_what_an_occurrence_sets_itself(store: AnyStore, clock: ManualClock) -> None:
    """S0-080: its own overrides come last, whatever version it takes."""
    stored = await put(store, job(overlap="allow"))
    await plan_once(store)
    for hour, own in ((10, {"queue": "slow"}), (11, {"priority": 7})):
        set_ = overrides(Level.OCCURRENCE, own)
        at = clock.time.replace(hour=hour)
        await store.request(stored.job_id, Amend(at, set_, by="ada"))
    for _ in range(2):
        clock.move(hours=1)
        await plan_once(store)
    await put(store, job(overlap="allow", queue="fast", priority=9))
    clock.move(hours=1)
    await plan_once(store)

    slow = await store.claim(NodeScope("node-1", met=("queue:slow",)), 5)
    fast = await store.claim(NodeScope("node-1", met=("queue:fast",)), 5)

    assert [(each.occurrence.scheduled_for.hour, each.occurrence.version) for each in slow] == [(10, 2)]
    assert [each.occurrence.scheduled_for.hour for each in fast] == [12, 11], "nine comes before seven"
    assert await store.claim(NodeScope("node-1"), 5) == []


async def test_a_schedule_of_ones_own_is_kept_and_read_back(
    store: AnyStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S0-037: an equal one changes nothing, and its instants are planned like any other's."""
    monkeypatch.setattr(codec, "_registered", {"tide": tides.read})
    written = job(when="tide: 2026-11-15T00:00:00+00:00")
    stored = await put(store, written)
    record = (await store.get([stored.job_id]))[stored.job_id]

    assert record.job.schedule == written.schedule
    assert not (await put(store, written)).changed
    await plan_once(store)
    high_water = record.job.schedule.next_after(clock.time)
    assert high_water is not None
    assert high_water == record.next_run
    clock.time = high_water
    await plan_once(store)
    assert [each.scheduled_for for each in await occurrences(store)] == [high_water]
