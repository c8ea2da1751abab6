"""The folder of job files that an application watches while its node runs, and how its mistakes are told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from everytick.errors import InvalidSetting, StoreUnavailable
from everytick.node.events import Event, Happening
from everytick.sources.files import Folder
from everytick.sources.watching import FolderWatch

if TYPE_CHECKING:
    from pathlib import Path

    from everytick.domain.job import Job
    from everytick.node.definers import DefinedNames
    from everytick.node.node import Node
    from everytick.sources.files import FileState
    from everytick.sources.syncing import Synced
    from everytick.sources.yaml_reader import Mistake
    from everytick.stores.addresses import AnyStore

_log = logging.getLogger("everytick.app")

_REGISTER_SECONDS = 2.0
"""How long a stop waits for the store to learn that this node has no broken files."""

Broken: TypeAlias = Mapping[str, tuple[str, ...]]
"""The files that are broken now, each with its mistakes."""


class JobsFolder:
    """Syncs the files of a folder into the store, and lets the node tell of mistakes."""

    def __init__(self, store: AnyStore, path: Path, owner: str, defined: DefinedNames) -> None:
        self._folder = Folder(path, owner=owner)
        self._watch = FolderWatch(store, self._folder, told=self._hear, defined=defined)
        self._broken: Broken = {}
        self._refused: dict[str, tuple[Mistake, ...]] = {}
        self._node: Node | None = None
        self._why: Callable[[Job], str] = lambda job: ""
        self._task: asyncio.Task[None] | None = None

    async def read(self) -> None:
        """Sync the folder into the store once, before anything is planned."""
        if not self._folder.path.is_dir():
            raise InvalidSetting("jobs", str(self._folder.path), "is no folder: make it, or name another one")
        await self._watch.look()

    @property
    def path(self) -> Path:
        """The folder."""
        return self._folder.path

    @property
    def files(self) -> list[FileState]:
        """The files as they were last read. A mistake is also what the store has refused about a file's job."""
        states = self._folder.files
        told = {file: mistakes for file, mistakes in self._refused.items() if mistakes}
        return [replace(state, mistakes=told.get(str(state.path), state.mistakes)) for state in states]

    @property
    def jobs(self) -> list[Job]:
        """The jobs that the files define now."""
        return [definition.job for definition in self._folder.jobs.values()]

    def warn_of_unknown(self, why: Callable[[Job], str]) -> None:
        """Log which jobs this node cannot run, now and after every change; `why` tells the reason."""
        self._why = why
        _warn_of_unknown(self.jobs, why)

    async def watch(self, node: Node) -> None:
        """Sync every change from now on, and tell of mistakes through this node."""
        self._node = node
        broken, self._broken = self._broken, {}
        # If the store is away, the node tells it the broken files with its other facts, once it is back.
        with suppress(StoreUnavailable):
            await self._tell(node, broken)
        self._task = asyncio.get_running_loop().create_task(self._watch.run(), name="everytick-files")

    async def close(self) -> None:
        """Stop watching."""
        self._watch.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._watch.close()
        await self._take_back()

    async def _take_back(self) -> None:
        """Tell the store that this node has no broken files: people see them as long as the node counts as alive."""
        if self._node is not None and self._broken:
            with suppress(StoreUnavailable, TimeoutError):
                async with asyncio.timeout(_REGISTER_SECONDS):
                    await self._node.register({})

    async def _hear(self, synced: Synced) -> None:
        broken: dict[str, tuple[str, ...]] = {}
        self._refused = {}
        for mistake in synced.mistakes:
            broken[mistake.file] = (*broken.get(mistake.file, ()), str(mistake))
            self._refused[mistake.file] = (*self._refused.get(mistake.file, ()), mistake)
        if self._node is None:
            self._broken = broken
            return
        changed = {change.name for change in synced.changes if change.kind in ("added", "changed")}
        _warn_of_unknown((job for job in self.jobs if job.name in changed), self._why)
        await self._tell(self._node, broken)

    async def _tell(self, node: Node, broken: Broken) -> None:
        """Tell once which files are broken now and which are mended."""
        before, self._broken = self._broken, broken
        if broken == before:
            return
        node.health.learn_definition_errors({file: len(mistakes) for file, mistakes in broken.items()})
        try:
            reasons = {file: "\n".join(mistakes) for file, mistakes in broken.items()}
            await node.register(reasons, self._folder.stale)
        finally:
            _tell_events(node, before, broken)


def _warn_of_unknown(jobs: Iterable[Job], why: Callable[[Job], str]) -> None:
    """Log which of these jobs this node cannot run, before their first instant comes; another node may be able to."""
    for job in jobs:
        if reason := why(job):
            _log.warning("job '%s' cannot run on this node: %s; its runs wait for a node that can", job.name, reason)


def _tell_events(node: Node, before: Broken, broken: Broken) -> None:
    if not node.listeners.wanted:
        return
    for file in sorted({*before, *broken}):
        if before.get(file) != broken.get(file):
            kind = Happening.DEFINITION_BROKEN if file in broken else Happening.DEFINITION_MENDED
            node.listeners.tell(Event(kind, node.clock.now(), text="\n".join(broken.get(file, (file,)))))
