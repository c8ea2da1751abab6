"""Shared by the verbs of the store in memory: its rows, clock and bell, and the moves and ends of occurrences."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from heapq import merge
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from everytick.domain.snapshots import Ended
from everytick.domain.statuses import WELL, OccurrenceStatus, may_move
from everytick.domain.steps import Row, closed, failed_at
from everytick.errors import NotFound
from everytick.stores.base import new_token
from everytick.stores.memory.rows import CountedStart, JobRow, NodeRow, OccurrenceRow
from everytick.stores.memory.tables import Tables
from everytick.stores.open_batches import OpenBatches

if TYPE_CHECKING:
    from everytick.domain.definers import NameSet
    from everytick.domain.limits import LimitChange, Reach
    from everytick.stores.base import NodeScope
    from everytick.stores.memory.access import MemoryAccess
    from everytick.stores.memory.ordered import Ordered

_S = OccurrenceStatus

R = TypeVar("R")

UNSTARTED = frozenset({_S.PENDING, _S.QUEUED, _S.AWAITING_RETRY})
"""Statuses in which an occurrence may end without its owner: no attempt of it is running."""


class Base:
    """Rows in this process, under a clock. `tokens` draws the token of each claim."""

    def __init__(self, clock: Callable[[], datetime], *, tokens: Callable[[], int] = new_token) -> None:
        self._clock, self._tokens = clock, tokens
        self._tables = Tables()
        self._numbers: Iterator[int] = count(1)
        self._nodes: dict[str, NodeRow] = {}
        self._name_sets: dict[str, NameSet] = {}
        self._rung = asyncio.Event()
        self._telling: list[str] = []
        self._open_batches = OpenBatches[str]()
        self._reaches: dict[str, Reach] = {}
        self._starts: defaultdict[str, list[CountedStart]] = defaultdict(list)
        self._limit_changes: list[LimitChange] = []
        self._people: MemoryAccess | None = None

    def _now(self) -> datetime:
        now = self._tables.time = self._clock()
        return now

    async def check_writable(self) -> None:
        """Return: memory can always be written."""

    def _hear(self, node: str, now: datetime) -> NodeRow:
        """Record a beat of the node."""
        row = self._nodes.setdefault(node, NodeRow(now))
        row.beat_at, row.beats = now, row.beats + 1
        return row

    def _ring(self) -> None:
        self._rung.set()

    def _job(self, job_id: str) -> JobRow:
        row = self._tables.jobs.get(job_id)
        if row is None:
            raise NotFound("job", job_id)
        return row

    def _occurrence(self, occurrence_id: str) -> OccurrenceRow:
        row = self._tables.occurrences.get(occurrence_id)
        if row is None:
            raise NotFound("occurrence", occurrence_id)
        return row

    def _status(self, occurrence_id: str) -> OccurrenceStatus:
        """Return the status of an occurrence. A pruned one has ended: CANCELED stands for any end."""
        row = self._tables.occurrences.get(occurrence_id)
        return _S.CANCELED if row is None else row.status

    def _wake(self, row: JobRow, now: datetime) -> None:
        row.woken += 1
        self._tables.wake(row, now)
        self._ring()

    def _move(self, row: OccurrenceRow, to: OccurrenceStatus, now: datetime) -> None:
        assert may_move(row.status, to), f"{row.id}: {row.status} cannot become {to}"
        self._tables.change(row, status=to, updated_at=now)

    def _end(self, row: OccurrenceRow, status: OccurrenceStatus, reason: str, now: datetime) -> None:
        """End an occurrence without its owner. A node that still owns it is fenced out."""
        assert may_move(row.status, status), f"{row.id}: {row.status} cannot become {status}"
        job, rules = row.job.versions[row.version]
        row.runs |= closed(rules, row.runs, now)
        self._tables.end(row, status, now, reason, now, report_due=job.owes_reports)
        self._note_end(row, now)

    def _note_failure(self, job: JobRow, rows: Iterable[Row]) -> None:
        """Set the time of the job's last failure if one of these attempts failed."""
        at = failed_at(rows)
        if at is not None:
            job.last_failure_at = at if job.last_failure_at is None else max(job.last_failure_at, at)

    def _note_end(self, row: OccurrenceRow, at: datetime, failure: str | None = None, *, is_new: bool = True) -> None:
        job = row.job
        job.run_count += is_new and row.started_at is not None
        job.last_error = failure or job.last_error
        job.last_end = Ended(row.creation.scheduled_for, row.started_at, at, row.id)
        if row.status in WELL and (job.last_success is None or job.last_success.id != row.id):
            job.last_success, job.other_success = job.last_end, job.last_success


def merged(indexes: "Mapping[str, Ordered[R]]", scope: "NodeScope", key: Callable[[R], Any]) -> Iterable[R]:
    """Return the rows of the indexes whose needs the scope meets, in the order of `key`."""
    met = [indexes[needs] for needs in scope.met if needs in indexes]
    return met[0] if len(met) == 1 else merge(*met, key=key)
