"""The fleet: what waits and runs in each queue, and the job files that nodes read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.app.store_access import StoreAccess
from everytick.domain.values import value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from everytick.app.watched_folder import JobsFolder
    from everytick.domain.nodes import NodeFacts
    from everytick.domain.occurrence import Occurrence
    from everytick.domain.statuses import OccurrenceStatus
    from everytick.node.settings import NodeSettings
    from everytick.sources.files import FileState
    from everytick.stores.addresses import AnyStore

MOST_COUNTED = 1_000
"""Most waiting and most running occurrences that are counted: a number beyond that is told as "or more"."""


@value(frozen=True)
class QueueLoad:
    """A queue: how many of its occurrences run and wait for a slot, and the slots of the living nodes that serve it.

    `is_cut` says that there are more than were counted. `oldest` is since when the first of the waiting is ready.
    """

    queue: str
    running: int
    waiting: int
    slots: int
    nodes: int
    oldest: datetime | None = None
    is_cut: bool = False


@value(frozen=True)
class ReportedFile:
    """A job file that a living node cannot read: the node, its mistakes as text, and the jobs that go on as before."""

    file: str
    node: str
    mistakes: tuple[str, ...]
    jobs: tuple[str, ...]


@value(frozen=True)
class FilesKnown:
    """The job files as far as this process knows them: those of its own folder, and what living nodes report.

    `folder` is None if this process watches none.
    """

    folder: Path | None
    files: tuple[FileState, ...]
    reported: tuple[ReportedFile, ...]


class Fleet(StoreAccess):
    """What nodes hold and know."""

    settings: NodeSettings
    _folder: JobsFolder | None

    async def queues(self) -> tuple[QueueLoad, ...]:
        """Return the queues that living nodes serve or that occurrences wait in, by name."""
        store = await self._opened()
        living, now = await self._living(store), await store.now()
        pending, is_ready_cut = await _standing(store, ("pending",))
        ready = [each for each in pending if (each.ready_at or each.scheduled_for) <= now]
        held, is_held_cut = await _standing(store, ("running", "awaiting_retry"))
        queue_of = await _queues_of(store, {each.job_id for each in (*ready, *held)})
        served = {queue for facts in living.values() for queue in facts.queues}
        found = []
        for queue in sorted({*served, *queue_of.values()}):
            waiting = [each for each in ready if queue_of.get(each.job_id) == queue]
            serving = [facts for facts in living.values() if queue in facts.queues]
            found.append(
                QueueLoad(
                    queue,
                    sum(queue_of.get(each.job_id) == queue for each in held),
                    len(waiting),
                    sum(facts.slots for facts in serving),
                    len(serving),
                    min((each.ready_at or each.scheduled_for for each in waiting), default=None),
                    is_ready_cut or is_held_cut,
                )
            )
        return tuple(found)

    async def job_files(self) -> FilesKnown:
        """Return the job files of the folder that this process watches, and those that living nodes cannot read."""
        living = await self._living(await self._opened())
        folder = self._folder
        own = () if folder is None else tuple(folder.files)
        known = {str(each.path) for each in own}
        reported = [
            ReportedFile(
                file,
                node,
                tuple(text.split("\n")),
                tuple(job for job, its_file in facts.stale_jobs if its_file == file),
            )
            for node, facts in living.items()
            for file, text in facts.broken_files
            if file not in known
        ]
        return FilesKnown(None if folder is None else folder.path, own, tuple(reported))

    async def _living(self, store: AnyStore) -> dict[str, NodeFacts]:
        """Return the facts of the living nodes by their ids."""
        now = await store.now()
        alive = [node for node in await store.nodes() if node.is_alive(now, self.settings.node_timeout)]
        return {node.id: node.facts for node in alive if node.facts is not None}


async def _standing(store: AnyStore, words: Sequence[str]) -> tuple[Sequence[Occurrence], bool]:
    """Return the occurrences in these statuses, and whether there are more than are counted."""
    from everytick.domain.statuses import OccurrenceStatus
    from everytick.stores.base import HistoryFilter

    statuses: tuple[OccurrenceStatus, ...] = tuple(map(OccurrenceStatus, words))
    found = (await store.history(HistoryFilter(statuses=statuses, limit=MOST_COUNTED))).occurrences
    return found, len(found) >= MOST_COUNTED


async def _queues_of(store: AnyStore, job_ids: set[str]) -> Mapping[str, str]:
    """Return the queue of each of these jobs."""
    records = await store.get(sorted(job_ids)) if job_ids else {}
    return {id_: record.job.settings.queue for id_, record in records.items()}
