"""The 21 edge cases of the seed "One planner for every tick", each with files in a folder and the real decisions.

Where everytick differs on purpose the docstring says so. The clock stands at nine; jobs are hourly.
"""

from datetime import datetime

from everytick.deciding.plan import plan
from everytick.domain.ids import job_id
from everytick.domain.lookups import Spans
from everytick.domain.outcome import Failed
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Claim, Commit, JobRecord
from tests.stores.acting import began, claim_one, ended, everything, occurrences, plan_once, run_one, statuses
from tests.stores.clock import START, ManualClock
from tests.unit.sources.writing import JobFolder, sync_folder

EVERYTHING = "catchup_window: 12h"
NOTHING = "catchup_window: 0s"


def at(hour: int, minute: int = 0) -> datetime:
    return START.replace(hour=hour, minute=minute)


async def decide(store: AnyStore) -> None:
    """Let a planner look until nothing is due."""
    while await plan_once(store):
        pass


async def created(store: AnyStore, name: str = "a") -> list[datetime]:
    return sorted(each.scheduled_for for each in await occurrences(store, job_id(name)))


async def record(store: AnyStore, name: str = "a") -> JobRecord:
    return (await store.get([job_id(name)]))[job_id(name)]


async def spans(store: AnyStore, name: str = "a") -> list[tuple[str, datetime, datetime]]:
    found = await store.ask(Spans(job_id(name), START, at(23)))
    return [(str(each.status), each.after, each.through) for each in found]


# ----------------------------------------------------------------------------------------------------- the definitions


async def test_edge_case_01_a_new_job_with_a_window_begins_now(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-028, S4-051: nothing of before is caught up; after a stop of two hours, exactly those two are."""
    folder.write("a.yaml", a=EVERYTHING)
    await sync_folder(store, folder.folder)
    await decide(store)
    assert (await record(store)).watermark == START
    assert await created(store) == []

    clock.move(hours=2, minutes=30)
    await sync_folder(store, folder.again())
    await decide(store)

    assert await created(store) == [at(10), at(11)]


async def test_edge_case_02_a_new_job_without_a_window_has_a_watermark_all_the_same(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """If a window is added later, it counts from there."""
    folder.write("a.yaml", a="")
    await sync_folder(store, folder.folder)
    assert (await record(store)).watermark == START

    folder.write("a.yaml", a=EVERYTHING)
    await sync_folder(store, folder.folder)
    clock.move(hours=2, minutes=30)
    await decide(store)

    assert await created(store) == [at(10), at(11)]


async def test_edge_case_03_a_job_deleted_while_late_ones_wait(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-030, S4-034, S4-051, C-22: what waits goes, ten minutes later; what runs ends by itself; nothing new comes."""
    folder.write("a.yaml", a=EVERYTHING)
    await sync_folder(store, folder.folder)
    clock.move(hours=3, minutes=30)
    await decide(store)
    running = await claim_one(store)

    folder.delete("a.yaml")
    await sync_folder(store, folder.folder)
    clock.move(minutes=9)
    await decide(store)
    assert await statuses(store) == ["running", "queued", "queued"]
    clock.move(minutes=1)
    await decide(store)

    assert await statuses(store) == ["running", "canceled", "canceled"]
    now = await store.now()
    assert await store.commit_steps([(running, ended(running, began(running, now), now))]) == [Commit.COMMITTED]
    clock.move(hours=5)
    await decide(store)
    assert await statuses(store) == ["completed", "canceled", "canceled"]


async def test_edge_case_04_a_window_that_comes_later_holds_for_what_is_undecided(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-031; the difference: what was decided before the edit stays decided, only undecided instants are caught up."""
    folder.write("a.yaml", a=NOTHING)
    await sync_folder(store, folder.folder)
    clock.move(hours=1, minutes=30)
    await decide(store)
    assert [status for status, _, _ in await spans(store)] == ["missed"]

    clock.move(hours=2)
    folder.write("a.yaml", a="catchup_window: 6h")
    await sync_folder(store, folder.folder)
    await decide(store)

    assert await created(store) == [at(11), at(12)]


async def test_edge_case_05_a_window_that_goes_lets_nothing_late_run(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-031: live instants go on."""
    folder.write("a.yaml", a="catchup_window: 6h")
    await sync_folder(store, folder.folder)
    clock.move(hours=3, minutes=30)

    folder.write("a.yaml", a=NOTHING)
    await sync_folder(store, folder.folder)
    await decide(store)
    assert await created(store) == []

    clock.move(minutes=30)
    await decide(store)
    assert await created(store) == [at(13)]


async def test_edge_case_06_a_changed_schedule_counts_from_the_change_on(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-032, S4-051, C-23; the difference: what lies before the edit is named by the old expression."""
    folder.write("a.yaml", a=EVERYTHING)
    await sync_folder(store, folder.folder)
    clock.move(hours=1, minutes=30)

    folder.write("a.yaml", a=f'schedule: "45 * * * *", {EVERYTHING}')
    await sync_folder(store, folder.folder)
    clock.move(hours=1, minutes=30)
    await decide(store)

    assert await created(store) == [at(10), at(10, 45), at(11, 45)]
    assert (await record(store)).job.version == 2


async def test_an_edit_of_anything_keeps_the_watermark(store: AnyStore, folder: JobFolder, clock: ManualClock) -> None:
    """S4-029: what was decided stays decided, and what was not is decided from where it was."""
    folder.write("a.yaml", a=EVERYTHING)
    await sync_folder(store, folder.folder)
    clock.move(hours=1, minutes=30)
    await decide(store)
    before = (await record(store)).watermark

    folder.write("a.yaml", a=f"priority: 3, {EVERYTHING}")
    await sync_folder(store, folder.folder)

    assert (await record(store)).watermark == before
    clock.move(hours=1)
    await decide(store)
    assert await created(store) == [at(10), at(11)]


async def test_edge_case_07_a_changed_overlap_policy_counts_at_the_next_decision(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-033."""
    folder.write("a.yaml", a="overlap_policy: skip")
    await sync_folder(store, folder.folder)
    clock.move(hours=1)
    await decide(store)
    await claim_one(store)
    clock.move(hours=1)
    await decide(store)
    assert await statuses(store) == ["running"]

    folder.write("a.yaml", a="overlap_policy: all")
    await sync_folder(store, folder.folder)
    clock.move(hours=1)
    await decide(store)

    assert await statuses(store) == ["running", "queued"]


async def test_edge_case_08_a_renamed_file_keeps_the_watermark(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-035, the difference: a job is known by its name, so nothing is lost and nothing begins anew."""
    folder.write("a.yaml", a=EVERYTHING)
    await sync_folder(store, folder.folder)
    clock.move(hours=2, minutes=30)

    folder.rename("a.yaml", "b.yaml")
    synced = await sync_folder(store, folder.folder)
    await decide(store)

    assert [change.kind for change in synced.changes] == ["unchanged"]
    assert await created(store) == [at(10), at(11)]


async def test_edge_case_09_a_name_changed_inside_a_file_is_another_job(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-013, S4-035: the old one retires, the new one begins now."""
    folder.write("a.yaml", a=EVERYTHING)
    await sync_folder(store, folder.folder)
    clock.move(hours=2, minutes=30)

    folder.write("a.yaml", b=EVERYTHING)
    synced = await sync_folder(store, folder.folder)
    await decide(store)

    assert {change.name: change.kind for change in synced.changes} == {"b": "added", "a": "removed"}
    assert await created(store, "a") == await created(store, "b") == []
    assert (await record(store, "b")).watermark == at(11, 30)


async def test_edge_case_10_many_files_at_once_are_one_sync(store: AnyStore, folder: JobFolder) -> None:
    """S4-050: 1,000 of them are copied in the acceptance tests."""
    for number in range(200):
        folder.write(f"{number}.yaml", **{f"job_{number}": ""})

    synced = await sync_folder(store, folder.folder)

    assert len(synced.changes) == len(await store.list()) == 200


async def test_edge_case_11_whatever_was_not_told_is_found_by_looking(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """C-29, the difference: no event carries a change, so that none can be dropped; every look is at the whole."""
    for number in range(50):
        folder.write(f"{number}.yaml", **{f"job_{number}": ""})
    await sync_folder(store, folder.folder)
    for number in range(0, 50, 2):
        folder.write(f"{number}.yaml", **{f"job_{number}": "priority: 1"})
    for number in range(1, 50, 2):
        folder.delete(f"{number}.yaml")
    clock.move(minutes=1)

    kinds = [change.kind for change in (await sync_folder(store, folder.folder)).changes]

    assert (kinds.count("changed"), kinds.count("removed")) == (25, 25)


# ------------------------------------------------------------------------------------------------------ the decisions


async def test_edge_case_12_late_ones_come_before_the_live_one(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-015…017, C-12: in the order of their instants, one after another."""
    folder.write("a.yaml", a=f"overlap_policy: all, {EVERYTHING}")
    await sync_folder(store, folder.folder)
    clock.move(hours=3)
    await decide(store)

    order = []
    while (await statuses(store)).count("completed") < 3:
        order.append((await run_one(store)).occurrence.scheduled_for)
        await decide(store)

    assert order == [at(10), at(11), at(12)]


async def test_edge_case_13_several_schedules_of_one_job_are_due_together(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-018, S4-019."""
    folder.write("a.yaml", a=f'schedule: ["0 10 * * *", "30 10 * * *"], {EVERYTHING}')
    await sync_folder(store, folder.folder)
    clock.move(hours=2)
    await decide(store)

    assert await created(store) == [at(10), at(10, 30)]


async def test_edge_case_14_a_suspended_job_goes_on_where_it_was(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-015, S4-024: nothing is decided while it is suspended, and nothing is lost."""
    folder.write("a.yaml", a=EVERYTHING)
    await sync_folder(store, folder.folder)
    clock.move(hours=2, minutes=30)
    await decide(store)
    folder.write("a.yaml", a=f"suspended: true, {EVERYTHING}")
    await sync_folder(store, folder.folder)
    clock.move(hours=1)
    await decide(store)
    assert await statuses(store) == ["queued", "queued"]

    folder.write("a.yaml", a=EVERYTHING)
    await sync_folder(store, folder.folder)
    await decide(store)

    assert await created(store) == [at(10), at(11), at(12)]
    assert sorted(await statuses(store)) == ["pending", "queued", "queued"]


async def test_edge_case_15_skip_if_successful_does_not_hold_for_late_ones(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-022, S4-023: a success after the instant skips a live one; late ones run all the same."""
    folder.write("a.yaml", a=f"skip_if_successful: true, {EVERYTHING}")
    await sync_folder(store, folder.folder)
    clock.move(hours=2, minutes=30)
    await decide(store)
    await run_one(store)
    await decide(store)
    await run_one(store)
    assert await statuses(store) == ["completed", "completed"]

    clock.move(minutes=30)
    await decide(store)

    assert await created(store) == [at(10), at(11)]
    assert [status for status, _, through in await spans(store) if through == at(12)] == ["skipped"]


async def test_edge_case_16_two_planners_that_saw_the_same_start_nothing_twice(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-042: the second commit is told that the job has changed."""
    folder.write("a.yaml", a="")
    await sync_folder(store, folder.folder)
    clock.move(hours=1)
    now = await store.now()
    async with store.due(await everything(store), 10) as batch:
        seen = list(batch.snapshots)
    await decide(store)

    assert (await store.commit_plans(batch, [plan(each, now) for each in seen])).answers == [Commit.STALE]
    assert await created(store) == [at(10)]


async def running_at_half_past(store: AnyStore, folder: JobFolder, clock: ManualClock) -> Claim:
    """One that began on the hour and is still running at half past, when everything due is decided."""
    await sync_folder(store, folder.folder)
    clock.move(hours=1)
    await decide(store)
    running = await claim_one(store)
    clock.move(minutes=30)
    await decide(store)
    return running


async def test_a_stop_schedule_stops_what_runs_and_is_never_caught_up(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-044: at its time, busy occurrences are asked to cancel; a stop that no node saw in time is over."""
    folder.write("a.yaml", a='stop_schedule: "30 * * * *"')
    running = await running_at_half_past(store, folder, clock)

    orders = await store.beat("node-1", [running.key])
    assert [key for key, _ in orders.cancel] == [running.key]

    now = await store.now()
    await store.commit_steps([(running, ended(running, began(running, now), now))])
    clock.move(minutes=30)
    await decide(store)
    later = await claim_one(store)
    clock.move(hours=2, minutes=45)
    await decide(store)
    assert (await store.beat("node-1", [later.key])).cancel == ()


async def test_a_restart_schedule_stops_what_runs_and_asks_for_another(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-044: the other waits until the stopped one has ended; late ones are not caught up."""
    folder.write("a.yaml", a='schedule: "0 10 * * *", restart_schedule: "30 * * * *"')
    running = await running_at_half_past(store, folder, clock)

    assert [key for key, _ in (await store.beat("node-1", [running.key])).cancel] == [running.key]
    assert await statuses(store) == ["running", "queued"]
    now = await store.now()
    await store.commit_steps([(running, ended(running, began(running, now), now))])
    await decide(store)
    again = await run_one(store)
    assert again.occurrence.cause == "restart"

    clock.move(hours=2, minutes=45)
    await decide(store)
    assert [str(each.cause) for each in await occurrences(store)] == ["schedule", "restart"]


# ------------------------------------------------------------------------------------------------------ the watermark


async def test_edge_case_17_a_look_at_nothing_loses_nothing(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-027: it is noted that nothing was due through now, and the next instant is not lost by it."""
    folder.write("a.yaml", a="")
    await sync_folder(store, folder.folder)
    clock.move(minutes=30)
    await decide(store)
    assert await created(store) == []
    assert (await record(store)).wake_at == at(10)

    clock.move(minutes=30)
    await decide(store)

    assert await created(store) == [at(10)]


async def test_edge_case_18_a_failure_is_not_planned_again(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-039: the watermark tells what was decided, not what ended well."""
    folder.write("a.yaml", a=EVERYTHING)
    await sync_folder(store, folder.folder)
    clock.move(hours=1)
    await decide(store)
    await run_one(store, Failed("boom"))

    await sync_folder(store, folder.again())
    await decide(store)

    assert await statuses(store) == ["failed"]
    assert (await record(store)).watermark == at(10)


async def test_edge_case_19_a_plan_that_was_never_committed_is_made_again(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-040: what was decided and what was created are one write, so that nothing is created twice."""
    folder.write("a.yaml", a=EVERYTHING)
    await sync_folder(store, folder.folder)
    clock.move(hours=1)
    async with store.due(await everything(store), 10) as batch:
        assert len(batch.snapshots) == 1

    await sync_folder(store, folder.again())
    await decide(store)

    assert await created(store) == [at(10)]


async def test_edge_case_20_a_new_definition_and_a_crash_make_no_false_late_ones(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """S4-041, S4-051: what was not stored before the crash begins when it is."""
    folder.write("a.yaml", a=EVERYTHING)
    folder.load()
    clock.move(hours=3, minutes=30)

    await sync_folder(store, folder.again())
    await decide(store)

    assert await created(store) == []
    assert (await record(store)).watermark == at(12, 30)


async def test_edge_case_21_an_empty_store_knows_nothing_late(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """The watermark stands in the store, not in a file of its own; where it is gone, every job begins now."""
    folder.write("a.yaml", a=EVERYTHING)
    folder.write("b.yaml", b="catchup_window: 6h")
    clock.move(days=3)
    await sync_folder(store, folder.folder)
    await decide(store)

    assert await occurrences(store) == []
