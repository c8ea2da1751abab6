"""Watching a folder: looks at it come one after another."""

import asyncio
import threading
from pathlib import Path

import pytest

from everytick.sources.files import Folder, SourceEvent
from everytick.sources.syncing import Synced
from everytick.sources.watching import FolderWatch
from everytick.stores.addresses import store_of

GOOD = 'version: 1\njobs: {nightly: {schedule: "30 2 * * *", command: "true"}}\n'


class SlowFolder(Folder):
    """A folder on a slow disk: the first look has read what was there, and is kept from going on."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.has_read, self.go_on = threading.Event(), threading.Event()

    def load(self) -> list[SourceEvent]:
        events = super().load()
        if not self.has_read.is_set():
            files = self._files
            self.has_read.set()
            assert self.go_on.wait(30)
            self._files = files
        return events


async def test_a_slow_look_does_not_hide_what_a_later_one_found(tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_text(GOOD)
    folder = SlowFolder(tmp_path)
    store = store_of("memory://")
    await store.open()
    watch = FolderWatch(store, folder)
    slow = asyncio.create_task(watch.look())
    assert await asyncio.to_thread(folder.has_read.wait, 30)
    (tmp_path / "new.yaml").write_text("version: 1\njobs: 3\n")
    later = asyncio.create_task(watch.look())
    # The later look either waits for the slow one or has the time to overtake it.
    await asyncio.wait({later}, timeout=0.5)
    folder.go_on.set()
    assert all(await asyncio.gather(slow, later))
    watch.close()
    await store.close()
    assert [state.path.name for state in folder.files] == ["new.yaml", "old.yaml"]


async def test_a_folder_that_comes_back_is_live_within_seconds(tmp_path: Path) -> None:
    """A deploy that moves the folder away and puts another in its place is no reason to wait for the next rescan."""
    folder, away = tmp_path / "jobs", tmp_path / "away"
    folder.mkdir()
    (folder / "a.yaml").write_text(GOOD)
    store = store_of("memory://")
    await store.open()
    heard = asyncio.Queue[Synced]()
    watch = FolderWatch(store, Folder(folder), told=heard.put_nowait)
    running = asyncio.create_task(watch.run())
    try:
        async with asyncio.timeout(30):
            assert not (await heard.get()).mistakes
            folder.rename(away)
            while not (await heard.get()).mistakes:
                pass
            (away / "b.yaml").write_text(GOOD.replace("nightly", "second"))
            away.rename(folder)
            while (found := await heard.get()).mistakes:
                pass
    finally:
        watch.stop()
        await running
        await store.close()
    assert [(change.kind, change.name) for change in found.changes if change.kind == "added"] == [("added", "second")]


async def test_a_broken_file_that_is_removed_is_not_called_in_order(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.yaml").write_text("version: 1\njobs: 3\n")
    store = store_of("memory://")
    await store.open()
    watch = FolderWatch(store, Folder(tmp_path))
    await watch.look()
    (tmp_path / "a.yaml").unlink()
    with caplog.at_level("INFO", "everytick.files"):
        await watch.look()
    watch.close()
    await store.close()
    assert f"{tmp_path}/a.yaml: is removed, and so are its mistakes" in caplog.messages
    assert "in order again" not in caplog.text


async def test_a_folder_that_has_lost_all_of_its_jobs_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A volume that is not mounted looks like an empty folder; one file of several that goes is an ordinary edit."""
    for name in "ab":
        (tmp_path / f"{name}.yaml").write_text(GOOD.replace("nightly", name))
    store = store_of("memory://")
    await store.open()
    watch, said = FolderWatch(store, Folder(tmp_path)), []
    with caplog.at_level("WARNING", "everytick.files"):
        for removed in ("none", "a", "b"):
            (tmp_path / f"{removed}.yaml").unlink(missing_ok=True)
            await watch.look()
            said.append(list(caplog.messages))
    watch.close()
    await store.close()

    assert said[:2] == [[], []]
    [warning] = said[2]
    assert warning.startswith(f"{tmp_path}: no job is left in it; 1 job is removed and will not fire.")
