"""Files into a store: what is new, changed or gone, only what files own, and an equal folder changes nothing."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from everytick.domain.changes import Change, Edit, Put
from everytick.domain.facts import Pause
from everytick.domain.ids import job_id
from everytick.domain.job import Job
from everytick.domain.snapshots import Missed
from everytick.errors import Conflict, StoreUnavailable, TooManyEditions, VersionConflict
from everytick.node.definers import DefinedNames
from everytick.sources.drafting import edited
from everytick.sources.files import Folder
from everytick.sources.syncing import Synced, apply_jobs, draft_of, sync_jobs
from everytick.stores.addresses import AnyStore
from everytick.stores.base import JobRecord, Stored
from everytick.stores.memory import MemoryStore
from tests.stores.acting import job, put
from tests.stores.clock import START, ManualClock
from tests.unit.sources.writing import JobFolder, sync_folder

TEN_MINUTES = timedelta(minutes=10)


async def record(store: AnyStore, name: str) -> JobRecord:
    return (await store.get([job_id(name)]))[job_id(name)]


def told(synced: Synced) -> dict[str, str]:
    return {change.name: change.kind for change in synced.changes}


async def test_a_sync_stores_what_files_say_and_a_second_one_changes_nothing(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """C-21, S4-028: a new job begins now; neither version nor pause nor watermark move when nothing changed."""
    folder.write("a.yaml", a="", b="catchup_window: 6h")

    assert told(await sync_folder(store, folder.folder)) == {"a": "added", "b": "added"}

    before = await record(store, "a")
    assert (before.job.owner, before.watermark) == ("file", START)
    assert (await record(store, "b")).watermark == START
    await store.request(before.job.id, Pause(reason="holiday"))
    clock.move(minutes=5)
    assert told(await sync_folder(store, folder.again())) == {"a": "unchanged", "b": "unchanged"}
    after = await record(store, "a")
    assert (after.job.version, after.watermark) == (1, START)
    assert after.pause is not None


async def test_a_changed_file_is_a_new_version_that_names_what_changed(store: AnyStore, folder: JobFolder) -> None:
    folder.write("a.yaml", a="priority: 1")
    await sync_folder(store, folder.folder)

    folder.write("a.yaml", a="tags: [x]")

    synced = await sync_folder(store, folder.folder)
    assert synced.changes == (Change("a", "changed", 2, ("priority", "tags")),)


async def test_what_stands_in_no_file_any_more_retires_after_ten_minutes(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """C-22."""
    folder.write("a.yaml", a="")
    folder.write("b.yaml", b="")
    defined = DefinedNames()
    await sync_folder(store, folder.folder, defined)

    folder.delete("a.yaml")

    assert told(await sync_folder(store, folder.folder, defined)) == {"a": "removed", "b": "unchanged"}
    gone = await record(store, "a")
    assert (gone.removed_at, gone.retire_at) == (START, START + TEN_MINUTES)


async def test_what_comes_back_within_ten_minutes_keeps_its_watermark(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    """C-22."""
    folder.write("a.yaml", a="")
    await sync_folder(store, folder.folder)
    clock.move(minutes=5)
    folder.delete("a.yaml")
    await sync_folder(store, folder.folder)
    clock.move(minutes=9)

    folder.write("b.yaml", a="")
    await sync_folder(store, folder.folder)

    back = await record(store, "a")
    assert (back.removed_at, back.retire_at, back.watermark) == (None, None, START)


async def test_a_restart_removes_what_was_deleted_meanwhile(
    store: AnyStore, folder: JobFolder, clock: ManualClock
) -> None:
    folder.write("a.yaml", a="")
    folder.write("b.yaml", b="")
    await sync_folder(store, folder.folder)

    folder.delete("a.yaml")
    clock.move(minutes=1)

    assert told(await sync_folder(store, folder.again())) == {"a": "removed", "b": "unchanged"}


async def test_a_restart_with_a_broken_file_removes_nothing(store: AnyStore, folder: JobFolder) -> None:
    """Its jobs are not known any more."""
    folder.write("a.yaml", a="")
    folder.write("b.yaml", b="")
    await sync_folder(store, folder.folder)

    folder.text("a.yaml", "version: 1\njobs: {a: {schedule: nonsense, command: x}}")

    assert told(await sync_folder(store, folder.again())) == {"b": "unchanged"}
    assert (await record(store, "a")).removed_at is None


async def test_a_sync_touches_only_what_files_own(store: AnyStore, folder: JobFolder) -> None:
    """C-21."""
    await put(store, job("report"))
    await put(store, job("other"))
    folder.write("a.yaml", report="", a="")

    synced = await sync_folder(store, folder.folder)

    assert told(synced) == {"a": "added"}
    [mistake] = synced.mistakes
    assert "a.yaml:3:3: job 'report' belongs to code, and a file changes only its own" in str(mistake)
    assert [each.job.name for each in await store.list()] == ["a", "other", "report"]
    assert (await record(store, "report")).job.version == 1


async def test_two_folders_with_owners_of_their_own_leave_each_other_alone(store: AnyStore, folder: JobFolder) -> None:
    folder.write("one/a.yaml", a="")
    folder.write("two/b.yaml", b="")
    one, two = (Folder(folder.path / name, owner=f"file:{name}") for name in ("one", "two"))
    await sync_folder(store, one)

    await sync_folder(store, two)

    assert [each.job.name for each in await store.list()] == ["a", "b"]


async def test_a_job_that_was_disabled_by_hand_stays_so(store: AnyStore, folder: JobFolder) -> None:
    folder.write("a.yaml", a="spread: 5m")
    await sync_folder(store, folder.folder)
    await put(store, edited(folder.folder.jobs["a"].job, None, {"enabled": False}))

    folder.write("a.yaml", a="spread: 5m, priority: 1")
    await sync_folder(store, folder.folder)
    assert not (await record(store, "a")).job.enabled

    folder.write("a.yaml", a="spread: 5m, priority: 1, enabled: true")
    await sync_folder(store, folder.folder)
    assert (await record(store, "a")).job.enabled


async def test_a_suspended_job_is_paused_and_resumed_by_its_file(store: AnyStore, folder: JobFolder) -> None:
    """C-19, S4-024: what comes meanwhile is caught up, as its recovery says."""
    folder.write("a.yaml", a="suspended: true")
    await sync_folder(store, folder.folder)
    pause = (await record(store, "a")).pause
    assert pause is not None
    assert (pause.missed, pause.by) == (Missed.CATCH_UP, "file")
    assert told(await sync_folder(store, folder.again())) == {"a": "unchanged"}

    folder.write("a.yaml", a="")
    synced = await sync_folder(store, folder.folder)

    assert synced.changes == (Change("a", "changed", 1, ("resumed",)),)
    assert (await record(store, "a")).pause is None


async def test_a_pause_by_another_owner_is_left_alone(store: AnyStore, folder: JobFolder) -> None:
    folder.write("a.yaml", a="")
    await sync_folder(store, folder.folder)
    await store.request(job_id("a"), Pause(by="anna"))

    folder.write("a.yaml", a="suspended: false, priority: 1")
    await sync_folder(store, folder.folder)

    pause = (await record(store, "a")).pause
    assert pause is not None
    assert pause.by == "anna"


async def test_a_draft_says_what_would_change_and_changes_nothing(store: AnyStore, folder: JobFolder) -> None:
    folder.write("a.yaml", a="", gone="")
    await sync_folder(store, folder.folder)
    folder.write("a.yaml", a="priority: 1, suspended: true", new="")
    folder.load()

    draft = await draft_of(store, folder.folder.jobs, prune=True)

    assert draft.changes == (
        Change("a", "changed", None, ("priority", "suspended")),
        Change("new", "added", None),
        Change("gone", "removed", 1),
    )
    assert [(each.job.name, each.job.version) for each in await store.list()] == [("a", 1), ("gone", 1)]


async def test_without_prune_nothing_is_removed(store: AnyStore, folder: JobFolder) -> None:
    folder.write("a.yaml", a="", gone="")
    await sync_folder(store, folder.folder)
    folder.write("a.yaml", a="")
    folder.load()

    assert told(await sync_jobs(store, folder.folder.jobs)) == {"a": "unchanged"}


async def test_what_one_job_is_refused_for_does_not_hold_up_the_others(store: AnyStore, folder: JobFolder) -> None:
    """More edits than wait to be decided are refused until a node has looked."""
    for number in range(20):
        folder.write("a.yaml", a=f'schedule: "{number + 1} * * * *"')
        folder.write("b.yaml", b="", **({"c": ""} if number == 19 else {}))
        synced = await sync_folder(store, folder.folder)

    assert "job 'a' could not be stored: job 'a' has 16 edits that no node has looked at yet" in str(synced.mistakes)
    assert told(synced) == {"b": "unchanged", "c": "added"}


async def test_a_store_that_is_away_is_told_to_the_caller(folder: JobFolder, clock: ManualClock) -> None:
    class Away(MemoryStore):
        async def apply(self, changes: Sequence[Edit], by: str = "") -> list[Stored]:
            raise StoreUnavailable("the store", "gone fishing")

    folder.write("a.yaml", a="")

    with pytest.raises(StoreUnavailable):
        await sync_folder(Away(clock), folder.folder)


async def test_many_nodes_that_see_the_same_change_at_once_store_it_once(store: AnyStore, folder: JobFolder) -> None:
    """Each has its own view of the folder; new, changed and gone."""
    for number in range(20):
        folder.write(f"{number}.yaml", **{f"job_{number}": ""})
    nodes = [(Folder(folder.path), DefinedNames()) for _ in range(5)]
    assert all(not each.mistakes for each in await asyncio.gather(*(sync_folder(store, *each) for each in nodes)))
    assert [each.job.version for each in await store.list()] == [1] * 20

    for number in range(10):
        folder.write(f"{number}.yaml", **{f"job_{number}": "priority: 1"})
    folder.delete("19.yaml")
    synced = await asyncio.gather(*(sync_folder(store, *each) for each in nodes))

    assert all(not each.mistakes for each in synced)
    versions = {each.job.name: each.job.version for each in await store.list()}
    assert versions == {f"job-{number}": 2 if number < 10 else 1 for number in range(19)}
    changed = [change for each in synced for change in each.changes if change.kind == "changed"]
    assert len({change.name for change in changed}) == 10


class Meddled(MemoryStore):
    """A store in which a job is edited just before each of the first transactions."""

    def __init__(self, clock: ManualClock, edits: list[Job]) -> None:
        super().__init__(clock)
        self._edits_to_come = edits

    async def apply(self, changes: Sequence[Edit], by: str = "") -> list[Stored]:
        if self._edits_to_come:
            await super().apply([Put(self._edits_to_come.pop(0))], "somebody")
        return await super().apply(changes, by)


async def test_a_job_edited_between_read_and_write_is_read_again(folder: JobFolder, clock: ManualClock) -> None:
    """Two nodes see a change at once, or an operation disables the job just then: it stays disabled."""
    folder.write("a.yaml", a="", b="")
    folder.load()
    disabled = edited(folder.folder.jobs["a"].job, None, {"enabled": False})
    store = Meddled(clock, [folder.folder.jobs["b"].job, disabled])

    synced = await sync_folder(store, folder.folder)

    assert synced.mistakes == ()
    assert told(synced) == {"a": "unchanged", "b": "unchanged"}
    assert not (await record(store, "a")).job.enabled


async def test_a_job_that_is_edited_again_and_again_is_left_for_later(folder: JobFolder, clock: ManualClock) -> None:
    folder.write("a.yaml", a="")
    folder.load()
    edits = [edited(folder.folder.jobs["a"].job, None, {"priority": number}) for number in range(5)]

    with pytest.raises(VersionConflict):
        await sync_folder(Meddled(clock, list(edits)), folder.folder)
    with pytest.raises(Conflict, match="edited 5 times meanwhile: nothing was stored"):
        await apply_jobs(Meddled(clock, list(edits)), folder.folder.jobs)


async def test_apply_stores_all_or_nothing(store: AnyStore, folder: JobFolder) -> None:
    """A job of another owner, and a job with too many edits, keep all of them out."""
    await put(store, job("report"))
    folder.write("a.yaml", a="", report="")
    folder.load()

    synced = await apply_jobs(store, folder.folder.jobs)
    assert synced.changes == ()
    assert "belongs to code" in str(synced.mistakes)
    assert [each.job.name for each in await store.list()] == ["report"]

    for number in range(16):
        folder.write("a.yaml", a=f'schedule: "{number + 1} * * * *"')
        folder.load()
        await apply_jobs(store, folder.folder.jobs)
    folder.write("a.yaml", a="priority: 99", new="")
    folder.load()
    with pytest.raises(TooManyEditions):
        await apply_jobs(store, folder.folder.jobs)
    assert [each.job.name for each in await store.list()] == ["a", "report"]


async def test_apply_a_second_time_changes_nothing_and_prunes_only_its_owner(
    store: AnyStore, folder: JobFolder
) -> None:
    """C-21."""
    await put(store, job("report"))
    folder.write("a.yaml", a="", b="suspended: true")
    folder.load()
    assert told(await apply_jobs(store, folder.folder.jobs, prune=True)) == {"a": "added", "b": "added"}
    before = await store.list()

    assert told(await apply_jobs(store, folder.folder.jobs, prune=True)) == {"a": "unchanged", "b": "unchanged"}
    assert await store.list() == before
    folder.write("a.yaml", a="")
    folder.load()
    assert told(await apply_jobs(store, folder.folder.jobs, prune=True)) == {"a": "unchanged", "b": "removed"}
    assert [each.job.name for each in await store.list()] == ["a", "report"]
    gone = await record(store, "b")
    assert gone.retire_at == gone.removed_at


async def test_definitions_that_cannot_be_read_give_way_to_their_files(folder: JobFolder, clock: ManualClock) -> None:
    """However many there are: each is told by a conflict of its own."""

    class Unreadable(MemoryStore):
        async def list(
            self, *, removed: bool = False, after: str = "", limit: int | None = None
        ) -> Sequence[JobRecord]:
            return []

    names = "abcdefgh"
    folder.write("a.yaml", **dict.fromkeys(names, "priority: 1"))
    folder.load()
    for sync in (sync_jobs, apply_jobs):
        store = Unreadable(clock)
        for name in names:
            await put(store, edited(folder.folder.jobs[name].job, None, {"priority": 9}))
        await sync(store, folder.folder.jobs)
        assert [(await record(store, name)).job.version for name in names] == [2] * 8


async def test_a_sync_leaves_protected_jobs_as_they_are(store: AnyStore, folder: JobFolder) -> None:
    """No person is asked here: neither a changed nor a missing file touches them, and a mistake says so."""
    folder.write("a.yaml", a="protected: true", b="", c="protected: two_people")
    await sync_folder(store, folder.folder)
    folder.write("a.yaml", a="priority: 1", b="priority: 1")
    synced = await sync_folder(store, folder.again(), DefinedNames())

    assert told(synced) == {"b": "changed", "c": "kept"}
    [mistake] = synced.mistakes
    assert "job 'a' is protected and stays as it was: everytick apply stores the change" in str(mistake)
    assert [(await record(store, name)).job.version for name in ("a", "b", "c")] == [1, 2, 1]
    assert (await record(store, "c")).removed_at is None
