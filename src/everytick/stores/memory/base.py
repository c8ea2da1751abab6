"""What every part of the store in memory works with: its rows, its clock and its bell."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from heapq import merge
from typing import Any, TypeVar

from everytick.errors import NotFound
from everytick.stores.base import NodeScope
from everytick.stores.memory.bell import Bell
from everytick.stores.memory.ordered import Ordered
from everytick.stores.memory.rows import JobRow, NodeRow, OccurrenceRow
from everytick.stores.memory.tables import Tables

R = TypeVar("R")


class Shared:
    """What the parts of the store work with. `tokens` draws the token of each claim."""

    def __init__(self, tables: Tables, clock: Callable[[], datetime], tokens: Callable[[], int], bell: Bell) -> None:
        self.tables, self.clock, self.tokens, self.bell = tables, clock, tokens, bell

    def now(self) -> datetime:
        """Return the time, which the indexes of early occurrences follow."""
        now = self.tables.time = self.clock()
        return now

    def job(self, job_id: str) -> JobRow:
        """Return the job of this id. Raises NotFound."""
        row = self.tables.jobs.get(job_id)
        if row is None:
            raise NotFound("job", job_id)
        return row

    def occurrence(self, occurrence_id: str) -> OccurrenceRow:
        """Return the occurrence of this id. Raises NotFound."""
        row = self.tables.occurrences.get(occurrence_id)
        if row is None:
            raise NotFound("occurrence", occurrence_id)
        return row

    def wake(self, row: JobRow, now: datetime) -> None:
        """Make the job due: something happened that a plan must see."""
        row.woken += 1
        self.tables.wake(row, now)
        self.bell.ring()

    def record_beat(self, node: str, now: datetime) -> NodeRow:
        """Record a beat of the node, and return its row."""
        row = self.tables.nodes.setdefault(node, NodeRow(now))
        row.beat_at, row.beats = now, row.beats + 1
        return row


def merged(indexes: Mapping[str, Ordered[R]], scope: NodeScope, key: Callable[[R], Any]) -> Iterable[R]:
    """Return the rows of the indexes whose needs the scope meets, in the order of `key`."""
    met = [indexes[needs] for needs in scope.met if needs in indexes]
    return met[0] if len(met) == 1 else merge(*met, key=key)
