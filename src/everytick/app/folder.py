"""The folder of jobs that an application watches while its node runs, and what is told of its mistakes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from everytick.errors import InvalidSetting, StoreUnavailable
from everytick.node.events import Event, Happening
from everytick.sources.files import Folder
from everytick.sources.watching import FolderWatch

if TYPE_CHECKING:
    from pathlib import Path

    from everytick.node.definers import DefinedNames
    from everytick.node.node import Node
    from everytick.sources.syncing import Synced
    from everytick.stores.addresses import AnyStore

_LAST_WORDS = 2.0

Broken: TypeAlias = Mapping[str, tuple[str, ...]]
"""The files that are broken now, each with what is wrong in it."""


class JobsFolder:
    """Keeps the store in step with a folder, and lets the node tell what is wrong in it."""

    def __init__(self, store: AnyStore, path: Path, owner: str, defined: DefinedNames) -> None:
        self._folder = Folder(path, owner=owner)
        self._watch = FolderWatch(store, self._folder, told=self._hear, defined=defined)
        self._broken: Broken = {}
        self._node: Node | None = None
        self._task: asyncio.Task[None] | None = None

    async def read(self) -> None:
        """Bring what the folder says into the store, before anything is planned."""
        if not self._folder.path.is_dir():
            raise InvalidSetting("jobs", str(self._folder.path), "is no folder: make it, or name another one")
        await self._watch.look()

    async def watch(self, node: Node) -> None:
        """Follow every change from now on, and tell of mistakes through this node."""
        self._node = node
        broken, self._broken = self._broken, {}
        # A store that is away just now is told by the node itself, with everything else, once it is back.
        with suppress(StoreUnavailable):
            await self._tell(node, broken)
        self._task = asyncio.get_running_loop().create_task(self._watch.run(), name="everytick-files")

    async def close(self) -> None:
        """Watch no longer."""
        self._watch.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._watch.close()
        await self._take_back()

    async def _take_back(self) -> None:
        """Say that this node has no broken files any more: others show them as long as it was heard of lately."""
        if self._node is not None and self._broken:
            with suppress(StoreUnavailable, TimeoutError):
                async with asyncio.timeout(_LAST_WORDS):
                    await self._node.register({})

    async def _hear(self, synced: Synced) -> None:
        broken: dict[str, tuple[str, ...]] = {}
        for mistake in synced.mistakes:
            broken[mistake.file] = (*broken.get(mistake.file, ()), str(mistake))
        if self._node is None:
            self._broken = broken
        else:
            await self._tell(self._node, broken)

    async def _tell(self, node: Node, broken: Broken) -> None:
        """Say once which files are broken now and which are in order again."""
        before, self._broken = self._broken, broken
        if broken == before:
            return
        node.health.definition_errors = {file: len(mistakes) for file, mistakes in broken.items()}
        try:
            reasons = {file: "\n".join(mistakes) for file, mistakes in broken.items()}
            await node.register(reasons, self._folder.stale)
        finally:
            _tell_events(node, before, broken)


def _tell_events(node: Node, before: Broken, broken: Broken) -> None:
    if not node.listeners.wanted:
        return
    for file in sorted({*before, *broken}):
        if before.get(file) != broken.get(file):
            kind = Happening.DEFINITION_BROKEN if file in broken else Happening.DEFINITION_MENDED
            node.listeners.tell(Event(kind, node.clock.now(), text="\n".join(broken.get(file, (file,)))))
