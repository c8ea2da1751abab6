"""The store that a node falls back to: jobs as another store had them, and what was fired of them since.

It is the store in memory, so that instants are decided and run exactly as ever.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from everytick.domain.decisions import Why
from everytick.domain.fired import Fired, FiredRun
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.statuses import ENDED
from everytick.domain.steps import Row, rules_of
from everytick.stores.memory.store import MemoryStore
from everytick.stores.memory.tables import JobRow, OccurrenceRow

AT_ONCE = 100
"""So many runs of a job are written down together."""


class LocalStore(MemoryStore):
    """Jobs that do not wait for their store.

    Of each, `after` is where its decisions here begin, and `told` how far that store knows of them.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__(clock)
        self._after: dict[str, datetime] = {}
        self._told: dict[str, datetime] = {}
        self._resting: dict[str, datetime | None] = {}

    def adopt(self, snapshot: JobSnapshot, heard_at: datetime) -> None:
        """Go on with a job from where it was last seen to stand.

        What was due before the store was last heard of has been planned there since. What
        somebody asked for waits for the store it was asked of.
        """
        newest = snapshot.editions[-1].job
        row = self._tables.jobs.get(snapshot.job_id)
        if row is None:
            row = JobRow(newest.id, newest.name, [], snapshot.watermark, newest.created_at or snapshot.watermark)
            self._tables.add_job(row)
        elif row.name != newest.name:
            self._tables.rename(row, newest.name)
        row.editions = list(snapshot.editions)
        row.versions |= {each.job.version: (each.job, rules_of(each.job)) for each in snapshot.editions}
        after = _decided_through(snapshot, heard_at)
        row.watermark = self._after[row.id] = self._told[row.id] = max(row.watermark, after)
        row.retire_at, row.pauses = snapshot.retire_at, list(snapshot.pauses)
        row.adjustments = {each.at: each for each in snapshot.adjustments}
        row.reschedule, row.last_end, row.last_success = snapshot.reschedule, snapshot.last_end, snapshot.last_success
        row.revision += 1
        self._resting.pop(row.id, None)
        self._tables.wake(row, snapshot.wake_at)
        self._ring()

    def rest(self) -> None:
        """Decide nothing more; what was created goes on to its end."""
        for row in self._tables.jobs.values():
            self._resting.setdefault(row.id, row.wake_at)
            self._tables.wake(row, None)

    def go_on(self) -> None:
        """Decide again, from where it rested."""
        for id_, wake_at in self._resting.items():
            self._tables.wake(self._tables.jobs[id_], wake_at)
        self._resting.clear()
        self._ring()

    @property
    def unrecorded(self) -> int:
        """How many occurrences wait to be written down, or for their end."""
        return len(self._tables.occurrences)

    @property
    def has_news(self) -> bool:
        """Whether anything was decided or ended that the other store does not know."""
        return any(map(self._is_news, self._tables.jobs.values()))

    def _is_news(self, row: JobRow) -> bool:
        return row.watermark > self._told[row.id] or any(each.status in ENDED for each in row.history)

    def fired(self, node: str) -> Iterator[tuple[str, Fired]]:
        """Give what was decided and has ended, job by job, in parts that can be written down at once."""
        for row in filter(self._is_news, list(self._tables.jobs.values())):
            ended = [each for each in row.history if each.status in ENDED]
            if not ended:
                # What it created runs still: it must not be planned again meanwhile.
                yield row.id, Fired(self._after[row.id], row.watermark, (), tuple(row.spans))
            for place in range(0, len(ended), AT_ONCE):
                part = tuple(_fired(each, node) for each in ended[place : place + AT_ONCE])
                spans = tuple(row.spans) if place == 0 else ()
                yield row.id, Fired(self._after[row.id], row.watermark, part, spans)

    def forget(self, job_id: str, fired: Fired) -> None:
        """Forget what is written down."""
        row = self._tables.jobs[job_id]
        self._told[job_id] = fired.through
        for run in fired.runs:
            self._tables.remove(self._tables.occurrences[run.creation.id])
        row.spans = [span for span in row.spans if span not in fired.spans]


def _decided_through(snapshot: JobSnapshot, heard_at: datetime) -> datetime:
    """Return up to where the job is decided by the store it comes from, as far as anybody can know here."""
    if snapshot.wake_at is None or snapshot.wake_at > heard_at:
        return snapshot.watermark
    last = snapshot.editions[-1].job.bound(None).last_at(heard_at)
    return snapshot.watermark if last is None else max(snapshot.watermark, last)


def _fired(row: OccurrenceRow, node: str) -> FiredRun:
    assert row.ended_at is not None, f"{row.id} is over"
    detail = f"fired by {node} while the store was away"
    creation = replace(row.made, status=row.status, version=row.version, why=Why.UNVERIFIED, detail=detail)
    rows = [
        Row(task, number, each.status, each.started_at, each.ended_at, each.error, row.runs[task])
        for (task, number), each in sorted(row.attempts.items())
        if task in row.runs
    ]
    tried = {each.task for each in rows}
    rows += [Row(task, 0, None, None, None, None, run) for task, run in row.runs.items() if task not in tried]
    return FiredRun(creation, row.started_at, row.ended_at, row.error, tuple(rows))
