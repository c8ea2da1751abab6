"""Watching a folder of jobs: load → sync → wait → sync, until told to stop.

The operating system's events are hints to look, and nothing more: they may come in thousands, get
lost when there are too many, or never come from a network folder. So every hint means looking at
the folder whole, and it is looked at every minute without one.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from watchfiles._rust_notify import RustNotify

from everytick.domain.texts import OVER
from everytick.errors import EverytickError
from everytick.node.definers import DefinedNames
from everytick.sources.syncing import Synced, sync_loaded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from everytick.sources.files import Folder
    from everytick.sources.yaml_reader import Mistake
    from everytick.stores.addresses import AnyStore

_log = logging.getLogger("everytick.files")

RESCAN = timedelta(minutes=1)
"""How often the folder is read without an event: events of network folders may never come."""

_RETRY = timedelta(seconds=5)
"""How soon a store that was away is tried again."""

_MISSING = timedelta(seconds=1)
"""How often a folder that is missing is looked for: no event says that it is back, and the look is one `stat`."""
# Files are copied one after another: read them once no event has come for a moment, but do not wait for ever.
_REST_MS, _LONGEST_MS = 100, 600


class FolderWatch:
    """Syncs a folder into a store after every change."""

    def __init__(
        self,
        store: AnyStore,
        folder: Folder,
        *,
        rescan: timedelta = RESCAN,
        told: Callable[[Synced], Awaitable[None] | None] = lambda synced: None,
        defined: DefinedNames | None = None,
    ) -> None:
        self._defined = defined or DefinedNames()
        self._store, self._folder, self._rescan, self._told = store, folder, rescan, told
        self._stop = threading.Event()
        self._notify: RustNotify | None = None
        self._watched: object = None
        self._known: set[Mistake] = set()
        self._in_step = self._was_whole = False
        self._is_counted = False
        # One look at a time: of two at once, the one that read the folder first could be the last to keep what it read.
        self._looking = asyncio.Lock()

    def stop(self) -> None:
        """Let `run` end after its current write."""
        self._stop.set()

    async def look(self) -> bool:
        """Sync the folder into the store. Return whether the store answered."""
        async with self._looking:
            # Watch before reading: a change during the read is seen afterwards.
            self._look_out()
            return await self._sync()

    async def run(self) -> None:
        """Sync the folder and each change of it until stopped. While the store is away, try again."""
        try:
            while not self._stop.is_set():
                answered = await self._looked()
                await self._hint(self._pause(answered))
        finally:
            self._stop.set()
            self.close()

    def _pause(self, answered: bool) -> timedelta:
        """Return how long to wait for an event before the next look."""
        if not self._folder.path.is_dir():
            return min(_MISSING, self._rescan)
        return self._rescan if answered else min(_RETRY, self._rescan)

    async def _looked(self) -> bool:
        """Sync once. An internal error is logged, and the next sync comes as usual."""
        try:
            return await self.look()
        except Exception:  # noqa: BLE001, the loop's edge
            _log.exception("%s: internal error; the folder is looked at again in a few seconds", self._folder.path)
            return False

    async def _sync(self) -> bool:
        """Store the jobs of the folder. Return whether the store answered.

        Where nothing changed the store is not asked: nodes may have different versions of the
        folder for a while, and the newest change counts, not the one that is repeated most often.
        """
        events, was_whole = await asyncio.to_thread(self._folder.load), self._was_whole
        self._was_whole = self._folder.is_whole
        self._in_step = self._in_step and not events and was_whole == self._was_whole
        synced = Synced(())
        try:
            if not self._in_step:
                synced = await sync_loaded(self._store, self._folder, self._defined)
        except EverytickError as error:
            _log.warning("%s: not in the store yet: %s; tried again in a few seconds", self._folder.path, error)
            return False
        self._in_step = not synced.mistakes
        self._count()
        for change in synced.changes:
            if change.kind != "unchanged":
                parts = f": {', '.join(change.parts)}" if change.parts else ""
                _log.info("job %s %s%s", change.name, change.kind, parts)
        self._warn_of_none(sum(change.kind == "removed" for change in synced.changes))
        self._warn_of_over(change.name for change in synced.changes if change.kind in ("added", "changed"))
        whole = Synced(synced.changes, (*self._folder.mistakes, *synced.mistakes))
        self._complain(set(whole.mistakes))
        return await self._tell(whole)

    def _warn_of_none(self, removed: int) -> None:
        """Log that the folder has lost all of its jobs: a volume that is not mounted looks like an empty folder."""
        if removed and not self._folder.jobs:
            _log.warning(
                "%s: no job is left in it; %s removed and will not fire. If the files are missing by mistake, put them "
                "back: the jobs go on where they were, and missed instants follow their recovery",
                self._folder.path,
                "1 job is" if removed == 1 else f"{removed:,} jobs are",
            )

    def _warn_of_over(self, names: Iterable[str]) -> None:
        """Log which of these new or changed jobs never run by themselves, by this machine's clock."""
        now = datetime.now(UTC)
        for name in names:
            found = self._folder.jobs.get(name)
            if found is not None and found.job.is_over(now):
                _log.warning("job '%s' %s", name, OVER.format(schedule=found.job.schedule.describe()))

    async def _tell(self, whole: Synced) -> bool:
        """Report the result of the sync. Return whether the store answered."""
        try:
            if (telling := self._told(whole)) is not None:
                await telling
        except EverytickError as error:
            _log.warning("%s: not told to other nodes yet: %s; tried again in a few seconds", self._folder.path, error)
            return False
        return True

    def _count(self) -> None:
        """Log at the first sync how many jobs and files the folder has."""
        if not self._is_counted:
            self._is_counted = True
            jobs, files = _count(len(self._folder.jobs), "job"), _count(self._folder.file_count, "file")
            _log.info("%s: %s in %s; changes are live at once", self._folder.path, jobs, files)

    def _complain(self, mistakes: set[Mistake]) -> None:
        """Log each mistake once, and once when its file is valid again or removed."""
        for mistake in sorted(mistakes - self._known, key=str):
            _log.warning("%s (keeping the last valid version)", mistake)
        for file in sorted({mistake.file for mistake in self._known} - {mistake.file for mistake in mistakes}):
            _log.info(
                "%s: %s", file, "in order again" if Path(file).exists() else "is removed, and so are its mistakes"
            )
        self._known = mistakes

    def _look_out(self) -> None:
        """Watch the folder that has this name now: it may have replaced another one."""
        try:
            found = self._folder.path.stat()
        except OSError:
            self.close()
            return
        if self._notify is not None and self._watched == (found.st_dev, found.st_ino):
            return
        self.close()
        try:
            self._notify = RustNotify([str(self._folder.path)], False, False, 0, True, True)
        except OSError as error:
            # The system may be out of watches.
            _log.warning(
                "%s: cannot be watched: %s; it is looked at every %s instead", self._folder.path, error, self._rescan
            )
            return
        self._watched = (found.st_dev, found.st_ino)

    async def _hint(self, wait: timedelta) -> None:
        """Wait for an event of the folder, at most `wait`."""
        await _in_thread(self._stop, self._wait, self._notify, wait)

    def _wait(self, notify: RustNotify | None, wait: timedelta) -> None:
        if notify is None:
            self._stop.wait(wait.total_seconds())
        else:
            notify.watch(_LONGEST_MS, _REST_MS, int(wait.total_seconds() * 1000), self._stop)

    def close(self) -> None:
        """Close the watch of the operating system; `run` does so itself when it ends."""
        notify, self._notify, self._watched = self._notify, None, None
        if notify is not None:
            notify.close()


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


async def _in_thread(stop: threading.Event, work: Callable[..., None], *arguments: object) -> None:
    """Wait for blocking work in a thread. If this is canceled, set `stop` and wait until the work has ended."""
    waiting = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        await asyncio.shield(waiting)
    except asyncio.CancelledError:
        stop.set()
        await waiting
        raise
