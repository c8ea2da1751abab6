"""The fleet: what waits and runs in each queue, and the job files that nodes read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from everytick.app.store_access import StoreAccess
from everytick.domain.values import value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everytick.app.watched_folder import JobsFolder
    from everytick.domain.nodes import NodeFacts
    from everytick.domain.occurrence import Occurrence
    from everytick.domain.questions import QueueLoad
    from everytick.domain.statuses import OccurrenceStatus
    from everytick.node.settings import NodeSettings
    from everytick.sources.files import FileState
    from everytick.stores.addresses import AnyStore

MOST_COUNTED = 1_000
"""Most running occurrences that are counted: a number beyond that is told as "or more"."""


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
        from everytick.domain.questions import QueueLoad, WaitingInQueues

        store = await self._opened()
        living = await self._living(store)
        waits = {waiting.queue: waiting for waiting in await store.ask(WaitingInQueues())}
        held, is_held_cut = await _standing(store, ("running", "awaiting_retry"))
        running = await _by_queue(store, held)
        served = {queue for facts in living.values() for queue in facts.queues}
        found = []
        for queue in sorted({*served, *waits, *running}):
            wait = waits.get(queue)
            serving = [facts for facts in living.values() if queue in facts.queues]
            found.append(
                QueueLoad(
                    queue,
                    running[queue],
                    0 if wait is None else wait.count,
                    sum(facts.slots for facts in serving),
                    len(serving),
                    None if wait is None else wait.since,
                    is_held_cut or (wait is not None and wait.is_cut),
                )
            )
        return tuple(found)

    async def job_files(self) -> FilesKnown:
        """Return the job files of the folder that this process watches, and those that living nodes cannot read."""
        living = await self._living(await self._opened())
        folder = self._folder
        own = () if folder is None else tuple(folder.files)
        known = {str(file.path) for file in own}
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

    def _place_in_files(self, name: str) -> str:
        """Return the file and line that define a job, if it stands in the folder that this process watches."""
        folder = self._folder
        found = (file_job for state in (() if folder is None else folder.files) for file_job in state.jobs)
        job = next((file_job for file_job in found if file_job.job.name == name), None)
        if job is None or folder is None:
            return ""
        path = Path(job.file)
        return f"{path.relative_to(folder.path) if path.is_relative_to(folder.path) else path}, line {job.place.line}"

    async def _living(self, store: AnyStore) -> dict[str, NodeFacts]:
        """Return the facts of the living nodes by their ids."""
        from everytick.stores.base import Nodes

        now = await store.now()
        alive = [node for node in await store.ask(Nodes()) if node.is_alive(now, self.settings.node_timeout)]
        return {node.id: node.facts for node in alive if node.facts is not None}


async def _standing(store: AnyStore, words: Sequence[str]) -> tuple[Sequence[Occurrence], bool]:
    """Return the occurrences in these statuses, and whether there are more than are counted."""
    from everytick.domain.statuses import OccurrenceStatus
    from everytick.stores.base import HistoryFilter

    statuses: tuple[OccurrenceStatus, ...] = tuple(map(OccurrenceStatus, words))
    found = (await store.history(HistoryFilter(statuses=statuses, limit=MOST_COUNTED))).occurrences
    return found, len(found) >= MOST_COUNTED


async def _by_queue(store: AnyStore, occurrences: Sequence[Occurrence]) -> Counter[str]:
    """Count these by queue: that of the version which each runs under, unless it was amended."""
    from everytick.domain.lookups import Editions

    records = await store.get(sorted({occurrence.job_id for occurrence in occurrences})) if occurrences else {}
    jobs = {(id_, record.job.version): record.job for id_, record in records.items()}
    older: dict[str, set[int]] = {}
    for occurrence in occurrences:
        if (occurrence.job_id, occurrence.version) not in jobs:
            older.setdefault(occurrence.job_id, set()).add(occurrence.version)
    for id_, versions in older.items():
        jobs |= {(id_, edition.job.version): edition.job for edition in await store.ask(Editions(id_, versions))}
    known = ((occurrence, jobs.get((occurrence.job_id, occurrence.version))) for occurrence in occurrences)
    return Counter(occurrence.settings(job).queue for occurrence, job in known if job is not None)
