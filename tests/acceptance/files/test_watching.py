"""A real folder under a real watch: what is copied, edited, broken, renamed and deleted reaches the store."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from watchfiles._rust_notify import RustNotify

from everytick.app import Everytick
from everytick.domain.changes import Edit
from everytick.domain.ids import job_id
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import StoreUnavailable
from everytick.sources import watching
from everytick.sources.files import Folder, SourceEvent
from everytick.sources.watching import FolderWatch
from everytick.stores.addresses import AnyStore, store_of
from everytick.stores.base import Stored
from tests.stores.acting import remove

if TYPE_CHECKING:
    from everytick.sources.syncing import Synced

SELDOM, OFTEN = timedelta(hours=1), timedelta(milliseconds=100)
WITHIN = 60


@pytest.fixture
async def store() -> AsyncIterator[AnyStore]:
    made = store_of("memory://")
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    (tmp_path / "jobs").mkdir()
    return tmp_path / "jobs"


def text(*names: str, more: str = "") -> str:
    return "version: 1\njobs:\n" + "".join(
        f'  {name}: {{schedule: "0 0 1 1 *", command: "true"{more}}}\n' for name in names
    )


def put_away(jobs: Path) -> None:
    jobs.rename(jobs.with_name("old"))


def bring_back(jobs: Path, name: str) -> None:
    """Make the folder anew, with one job in it."""
    jobs.mkdir()
    (jobs / f"{name}.yaml").write_text(text(name))


class Watched:
    """A watch that runs, and what it told so far."""

    def __init__(self, store: AnyStore, jobs: Path, rescan: timedelta) -> None:
        self._store = store
        self._told: asyncio.Queue[Synced] = asyncio.Queue()
        self.watch = FolderWatch(store, Folder(jobs), rescan=rescan, told=self._told.put_nowait)

    async def until_live(self, *names: str) -> None:
        """Return once the store holds these jobs and no others."""
        async with asyncio.timeout(WITHIN):
            while sorted(each.job.name for each in await self._store.list()) != sorted(names):
                await self._told.get()

    async def until_told(self, said: str) -> None:
        """Return once a mistake was told that says this."""
        async with asyncio.timeout(WITHIN):
            while said not in str((await self._told.get()).mistakes):
                pass

    async def until_version(self, name: str, version: int) -> None:
        """Return once the job is at this version."""
        async with asyncio.timeout(WITHIN):
            while (await self._store.get([job_id(name)]))[job_id(name)].job.version != version:
                await self._told.get()


@asynccontextmanager
async def watched(store: AnyStore, jobs: Path, rescan: timedelta = SELDOM) -> AsyncIterator[Watched]:
    """Watch the folder; by hints alone, unless told to look often."""
    made = Watched(store, jobs, rescan)
    running = asyncio.create_task(made.watch.run())
    try:
        yield made
    finally:
        made.watch.stop()
        async with asyncio.timeout(WITHIN):
            await running


async def test_what_stands_in_the_folder_is_live_and_so_is_every_change(store: AnyStore, jobs: Path) -> None:
    """S4-008, S4-012, S4-014, S4-045: load, then watch; added, updated, renamed, deleted."""
    (jobs / "a.yaml").write_text(text("a"))
    async with watched(store, jobs) as seen:
        await seen.until_live("a")

        (jobs / "b.yaml").write_text(text("b"))
        await seen.until_live("a", "b")
        (jobs / "a.yaml").write_text(text("a", more=", priority: 1"))
        await seen.until_version("a", 2)
        (jobs / "a.yaml").rename(jobs / "c.yaml")
        (jobs / "new").mkdir()
        (jobs / "new/d.yaml").write_text(text("d"))
        await seen.until_live("a", "b", "d")
        assert (await store.get([job_id("a")]))[job_id("a")].job.version == 2
        (jobs / "b.yaml").unlink()
        await seen.until_live("a", "d")

    gone = (await store.get([job_id("b")]))[job_id("b")]
    assert gone.removed_at is not None
    assert gone.retire_at == gone.removed_at + timedelta(minutes=10)


async def test_reading_a_folder_does_not_hold_up_the_loop(store: AnyStore, jobs: Path) -> None:
    """S4-010: the loop does not wait for a folder that is read, and the result is told afterwards on the loop."""
    told_on: list[str] = []
    reading, goes_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    class Slow(Folder):
        def load(self) -> list[SourceEvent]:
            loop.call_soon_threadsafe(reading.set)
            assert goes_on.wait(WITHIN), "the loop was held up while the folder was read"
            return super().load()

    (jobs / "a.yaml").write_text(text("a"))
    watch = FolderWatch(store, Slow(jobs), told=lambda _: told_on.append(threading.current_thread().name))
    looking = asyncio.create_task(watch.look())
    await asyncio.wait_for(reading.wait(), WITHIN)
    assert await store.list() == []
    goes_on.set()

    assert await looking
    watch.close()
    assert told_on == [threading.current_thread().name]
    assert [each.job.name for each in await store.list()] == ["a"]


async def test_edge_case_10_a_thousand_files_copied_at_once_are_live(store: AnyStore, jobs: Path) -> None:
    """S4-050."""
    async with watched(store, jobs) as seen:
        await seen.until_live()
        for number in range(1000):
            (jobs / f"{number}.yaml").write_text(text(f"job-{number}"))

        await seen.until_live(*(f"job-{number}" for number in range(1000)))


async def test_a_broken_file_is_told_once_and_its_jobs_stay(
    store: AnyStore, jobs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "everytick.files")
    (jobs / "a.yaml").write_text(text("a"))
    async with watched(store, jobs, OFTEN) as seen:
        await seen.until_live("a")
        (jobs / "a.yaml").write_text(text("a", more=", overlap: skp"))
        await seen.until_told("did you mean 'skip'")
        await seen.until_told("did you mean 'skip'")
        (jobs / "a.yaml").write_text(text("a", more=", overlap: allow"))
        await seen.until_version("a", 2)

    said = [each.getMessage() for each in caplog.records]
    assert [each for each in said if "did you mean" in each] == [
        f"{jobs}/a.yaml:3:56: overlap 'skp' is not known (did you mean 'skip'?) (keeping the last valid version)"
    ]
    assert f"{jobs}/a.yaml: in order again" in said


async def test_a_folder_without_hints_is_looked_at_all_the_same(
    store: AnyStore, jobs: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """C-29: network folders give none, and a machine may have none left to give."""

    def refuse(*_: Any) -> None:
        raise OSError("no watches are left")

    monkeypatch.setattr(watching, "RustNotify", refuse)
    async with watched(store, jobs, OFTEN) as seen:
        await seen.until_live()
        (jobs / "a.yaml").write_text(text("a"))
        await seen.until_live("a")

    assert "it is looked at every" in caplog.text


async def test_edge_case_11_one_hint_is_enough_for_all_changes(
    store: AnyStore, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-29: what a hint says is not looked at, so that it does not matter which ones were lost."""

    class OneHint:
        def __init__(self, *arguments: Any) -> None:
            self._real = RustNotify(*arguments)
            self.close = self._real.close

        def watch(self, *arguments: Any) -> Any:
            answer = self._real.watch(*arguments)
            return {min(answer)} if isinstance(answer, set) else answer

    monkeypatch.setattr(watching, "RustNotify", OneHint)
    async with watched(store, jobs) as seen:
        await seen.until_live()
        for number in range(50):
            (jobs / f"{number}.yaml").write_text(text(f"job-{number}"))
        await seen.until_live(*(f"job-{number}" for number in range(50)))


async def test_a_folder_that_is_replaced_is_watched_again(store: AnyStore, jobs: Path) -> None:
    """While it is away nothing is deleted."""
    (jobs / "a.yaml").write_text(text("a"))
    async with watched(store, jobs, OFTEN) as seen:
        await seen.until_live("a")
        put_away(jobs)
        await seen.until_told("there is no such folder")
        await seen.until_live("a")

        bring_back(jobs, "b")
        await seen.until_live("b")
        assert seen.watch._notify is not None


async def test_a_folder_may_come_later(store: AnyStore, jobs: Path) -> None:
    put_away(jobs)
    async with watched(store, jobs, OFTEN) as seen:
        await seen.until_told("there is no such folder")
        bring_back(jobs, "a")
        await seen.until_live("a")


async def test_a_store_that_is_away_is_asked_again(
    store: AnyStore, jobs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (jobs / "a.yaml").write_text(text("a"))
    apply, refusals = store.apply, iter(range(2))

    async def sometimes(changes: Sequence[Edit], by: str = "") -> list[Stored]:
        if next(refusals, None) is not None:
            raise StoreUnavailable("the store", "gone fishing")
        return await apply(changes, by)

    store.apply = sometimes  # type: ignore[method-assign]
    async with watched(store, jobs, OFTEN) as seen:
        await seen.until_live("a")

    assert caplog.text.count("not in the store yet: the store does not answer: gone fishing") == 2


async def test_a_watch_whose_folder_rests_does_not_ask_the_store(store: AnyStore, jobs: Path) -> None:
    """Nodes with different versions of a folder would undo each other's changes once a minute."""
    (jobs / "a.yaml").write_text(text("a"))
    async with watched(store, jobs, OFTEN) as seen:
        await seen.until_live("a")
        await remove(store, job_id("a"))
        for _ in range(3):
            assert (await seen._told.get()).changes == ()

    assert await store.list() == []


async def test_a_canceled_watch_leaves_no_thread_behind(store: AnyStore, jobs: Path) -> None:
    made = Watched(store, jobs, SELDOM)
    running = asyncio.create_task(made.watch.run())
    await made.until_live()

    running.cancel()

    async with asyncio.timeout(WITHIN):
        with pytest.raises(asyncio.CancelledError):
            await running
    assert made.watch._notify is None


async def test_a_node_runs_what_a_file_defines(store: AnyStore, jobs: Path, tmp_path: Path) -> None:
    """S4-003, S4-049: from a file to a program that ran."""
    tick = Everytick(store, name="shop")
    async with tick, watched(store, jobs) as seen:
        command = f'command: "echo $EVERYTICK_JOB > {tmp_path}/said"'
        (jobs / "a.yaml").write_text(text("a").replace('command: "true"', command))
        await seen.until_live("a")
        occurrence = await asyncio.wait_for((await tick.trigger("a")).wait(), WITHIN)

    assert occurrence.status is OccurrenceStatus.COMPLETED
    assert (tmp_path / "said").read_text() == "a\n"
