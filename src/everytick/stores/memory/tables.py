"""The tables of the store in memory, and the indexes by which due jobs and ready occurrences are found.

The contents of an index follow from the columns of the rows. A column that an index uses is changed in this module
only, so that rows and indexes agree.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, TypedDict, Unpack

from everytick.domain.occurrence import Cause
from everytick.domain.questions import CELL, step_of
from everytick.domain.snapshots import Request
from everytick.domain.statuses import BUSY, ENDED, OccurrenceStatus
from everytick.stores.memory.ordered import Ordered
from everytick.stores.memory.rows import CountedStart, IndexEntry, JobRow, NodeRow, OccurrenceRow, UnreadableJob

if TYPE_CHECKING:
    from everytick.domain.deeds import Deed
    from everytick.domain.definers import NameSet
    from everytick.domain.limits import LimitChange, Reach
    from everytick.domain.people import SignInFailures, Token, User, WebSession

# Bound once: to look a member up in its class takes as long as to call a function.
_QUEUED, _RUNNING = OccurrenceStatus.QUEUED, OccurrenceStatus.RUNNING
AT_ONCE = datetime.min.replace(tzinfo=UTC)
"""The place in line of a request that a plan may see at once."""


class OccurrenceChanges(TypedDict, total=False):
    """The columns of an occurrence that an index uses, and those that change together with them."""

    version: int
    status: OccurrenceStatus
    priority: int
    needs: str
    execution_timeout: timedelta | None
    ready_at: datetime
    owner: str | None
    fence: int
    token: int
    node: str | None
    started_at: datetime | None
    ended_at: datetime | None
    error: str | None
    updated_at: datetime
    claimed_at: datetime
    report_due: bool


class Tables:
    """Every row, and an index for every order in which a verb reads.

    Four indexes are separate for each text of needs: `wakes` are the jobs by `wake_at`, `ready` the claimable
    occurrences by priority and age, `early` those whose `ready_at` has not come, and `unreported` the ended
    occurrences whose report is due. `owned` are the occurrences of each node by handle. `needs` are all texts of
    needs that a job or occurrence has had. `open_requests` finds requests by the id of their occurrence, `dependents`
    the ids of the jobs that depend on a job. `promising` are the jobs with promises or breaches. `forgotten` counts
    deleted occurrences by step of time, band and status.

    `nodes` are by id, `name_sets` by hash, `reaches` and the `starts` that they count by the name of the reach.
    `users`, `tokens`, `sessions` and `failures` to sign in are what is known of people, `deeds` what they did.
    `unreadable` are jobs whose definition this process cannot read, by id: a copy of the rows of others may have some.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, JobRow] = {}
        self.names: dict[str, JobRow] = {}
        self.wakes: dict[str, Ordered[JobRow]] = defaultdict(Ordered)
        self.needs: dict[str, None] = {}
        self.occurrences: dict[str, OccurrenceRow] = {}
        self.dependents: dict[str, dict[str, None]] = defaultdict(dict)
        self.open_requests: dict[str, dict[tuple[Cause, str], JobRow]] = defaultdict(dict)
        self.promising: dict[str, JobRow] = {}
        self.new_places: Iterator[int] = count(1)
        self.new_handles: Iterator[int] = count(1)
        self.handles: dict[int, OccurrenceRow] = {}
        self.ready: dict[str, Ordered[OccurrenceRow]] = defaultdict(Ordered)
        self.early: dict[str, Ordered[OccurrenceRow]] = defaultdict(Ordered)
        self.owned: dict[str, dict[int, OccurrenceRow]] = defaultdict(dict)
        self.unreported: dict[str, Ordered[OccurrenceRow]] = defaultdict(Ordered)
        self.forgotten: dict[tuple[datetime, str, OccurrenceStatus], int] = {}
        self.nodes: dict[str, NodeRow] = {}
        self.name_sets: dict[str, NameSet] = {}
        self.reaches: dict[str, Reach] = {}
        self.starts: dict[str, list[CountedStart]] = defaultdict(list)
        self.limit_changes: list[LimitChange] = []
        self.users: dict[str, User] = {}
        self.tokens: dict[str, Token] = {}
        self.sessions: dict[str, WebSession] = {}
        self.failures: dict[str, SignInFailures] = {}
        self.deeds: list[Deed] = []
        self.unreadable: dict[str, UnreadableJob] = {}
        self.time = datetime.min.replace(tzinfo=UTC)

    # -------------------------------------------------------------------------------------------------------- jobs

    def add_job(self, row: JobRow) -> None:
        """Add the job."""
        self.jobs[row.id] = self.names[row.name] = row
        self.needs.setdefault(row.needs)
        if row.wake_at is not None:
            self.wakes[row.needs].add((row.wake_at, row.id, row))

    def remove_job(self, row: JobRow) -> None:
        """Delete the job, which must have no occurrence."""
        self.wake(row, None)
        for cause, key in list(row.requests):
            self.answer(row, cause, key)
        self.depend(row, {})
        self.promising.pop(row.id, None)
        del self.jobs[row.id], self.names[row.name]

    def depend(self, row: JobRow, needs_jobs: dict[str, str]) -> None:
        """Let the job depend on these jobs, each by the name that its definition has for it, and on no others."""
        for id_ in row.needs_jobs.values():
            self.dependents[id_].pop(row.id, None)
        row.needs_jobs = needs_jobs
        for id_ in needs_jobs.values():
            self.dependents[id_][row.id] = None

    def promise(self, row: JobRow) -> None:
        """Note whether the job has promises or breaches: every node asks for them, and most jobs have none."""
        if row.promises or row.breaches:
            self.promising[row.id] = row
        else:
            self.promising.pop(row.id, None)

    def rename(self, row: JobRow, name: str) -> None:
        """Give the job this name instead of its old one."""
        del self.names[row.name]
        row.name = name
        self.names[name] = row

    def ask(self, row: JobRow, request: Request) -> None:
        """Add the request behind the others."""
        key = request.cause, request.key
        row.requests[key] = request
        row.places[key] = place = (request.due_at or AT_ONCE, next(self.new_places), request)
        row.asked.add(place)
        self.open_requests[request.occurrence_id(row.id)][key] = row

    def answer(self, row: JobRow, cause: Cause, key: str) -> Request | None:
        """Delete the request and return it; None if there is none."""
        request = row.requests.pop((cause, key), None)
        if request is not None:
            row.asked.remove(row.places.pop((cause, key)))
            id_ = request.occurrence_id(row.id)
            del self.open_requests[id_][cause, key]
            if not self.open_requests[id_]:
                del self.open_requests[id_]
        return request

    def asked_for(self, occurrence_id: str) -> list[tuple[JobRow, Request]]:
        """Return the open requests for this occurrence, oldest first. Several may ask for one past instant."""
        requests = self.open_requests.get(occurrence_id, {})
        return [(row, row.requests[key]) for key, row in requests.items()]

    def wake(self, row: JobRow, at: datetime | None) -> None:
        """Set the job's `wake_at`. None: there is nothing to plan."""
        if row.wake_at == at:
            return
        if row.wake_at is not None:
            self.wakes[row.needs].remove((row.wake_at, row.id, row))
        row.wake_at = at
        if at is not None:
            self.wakes[row.needs].add((at, row.id, row))

    def need(self, row: JobRow, needs: str) -> None:
        """Set the needs of the job: only nodes that meet them plan it."""
        at = row.wake_at
        self.wake(row, None)
        row.needs = needs
        self.needs.setdefault(needs)
        self.wake(row, at)

    # ------------------------------------------------------------------------------------------------- occurrences

    def add(self, row: OccurrenceRow) -> None:
        """Add the occurrence, which has no owner yet."""
        self.occurrences[row.id] = self.handles[row.handle] = row
        self.needs.setdefault(row.needs)
        row.job.history.add((row.creation.scheduled_for, row.id, row))
        row.is_early = row.ready_at > self.time
        line, entry = row.line, row.claim_entry = self._line(row), self._claim_entry(row)
        if line is not None:
            line.add((row.line_at, row.id, row))
        if entry is not None:
            entry[0].add(entry[1])

    def change(self, row: OccurrenceRow, **changes: Unpack[OccurrenceChanges]) -> None:
        """Change these columns of the occurrence, and its places in the indexes.

        Whether it is early is judged when it becomes claimable or its `ready_at` changes. Other changes leave that.
        """
        owner = row.owner
        for name, changed in changes.items():
            setattr(row, name, changed)
        if row.claim_entry is None or "ready_at" in changes:
            row.is_early = row.ready_at > self.time
        self.needs.setdefault(row.needs)
        self._reindex(row, self._line(row), self._claim_entry(row), self._report_entry(row))
        self._change_owner(row, owner)

    def touch(self, row: OccurrenceRow) -> None:
        """Note that a verb has changed a column that no index uses, of a row that it found through its job or owner.

        This does nothing here. The store in Redis writes the row.
        """

    def own(self, row: OccurrenceRow, node: str, token: int, now: datetime) -> None:
        """Make the node the owner of an unclaimed occurrence."""
        row.found, row.status, row.owner, row.node = row.status, _RUNNING, node, node
        row.fence, row.token = row.fence + 1, token
        row.started_at, row.claimed_at, row.updated_at = row.started_at or now, now, now
        if row.claim_entry is not None:
            index, place = row.claim_entry
            index.remove(place)
            row.claim_entry = None
        self.owned[node][row.handle] = row

    def end(
        self,
        row: OccurrenceRow,
        status: OccurrenceStatus,
        at: datetime,
        error: str | None,
        now: datetime,
        *,
        report_due: bool,
    ) -> None:
        """End the occurrence: it has no owner and is in no index but that of the unreported ones."""
        row.status, row.fence, row.ended_at, row.error, row.updated_at = status, row.fence + 1, at, error, now
        if row.owner is not None:
            del self.owned[row.owner][row.handle]
            row.owner = None
        row.report_due = report_due
        self._reindex(row, None, None, self._report_entry(row) if report_due else None)

    def remove(self, row: OccurrenceRow) -> None:
        """Delete the occurrence, which must have no owner. Its end stays counted."""
        if row.status in ENDED:
            self._count(row)
        self._reindex(row, None, None, None)
        row.job.history.remove((row.creation.scheduled_for, row.id, row))
        if row.creation.cause is Cause.BACKFILL:
            for backfill in row.job.backfills.values():
                if row.id in backfill.filled:
                    backfill.filled[row.id] = row.status
        del self.occurrences[row.id], self.handles[row.handle]

    def _count(self, row: OccurrenceRow) -> None:
        """Count an end that is about to be forgotten: for its job by day, and for its band by step of time."""
        count, took = row.job.forgotten.get(row.day, (0, timedelta(0)))
        row.job.forgotten[row.day] = count + 1, took + (row.took or timedelta(0))
        cell = step_of(row.creation.scheduled_for, CELL), row.band, row.status
        self.forgotten[cell] = self.forgotten.get(cell, 0) + 1

    def release_early(self, needs: Iterable[str]) -> None:
        """Move early occurrences to the ready ones if their `ready_at` has come. They stay if the clock is set back.

        Only a claim does so, for the needs that it asks for: what no node has asked for is early again then.
        """
        for row in [row for text in needs if text in self.early for row in self.early[text].through(self.time)]:
            row.is_early = False
            self._reindex(row, row.line, self._claim_entry(row), row.report_entry)

    def _change_owner(self, row: OccurrenceRow, before: str | None) -> None:
        """Move the row from the occurrences of its owner before to those of its owner now."""
        if row.owner == before:
            return
        if before is not None:
            del self.owned[before][row.handle]
        if row.owner is not None:
            self.owned[row.owner][row.handle] = row

    def _line(self, row: OccurrenceRow) -> Ordered[OccurrenceRow] | None:
        """Return the part of its job's line that has it: busy, waiting or none."""
        if row.status in BUSY:
            return row.job.busy
        return row.job.waiting if row.status is _QUEUED else None

    def _claim_entry(self, row: OccurrenceRow) -> IndexEntry | None:
        """Return its place among the ready or the early occurrences."""
        if not row.is_unclaimed:
            return None
        if row.is_early:
            return self.early[row.needs], (row.ready_at, row.id, row)
        return self.ready[row.needs], (-row.priority, row.line_at, row.id, row)

    def _report_entry(self, row: OccurrenceRow) -> IndexEntry | None:
        """Return its place among the unreported occurrences."""
        return (self.unreported[row.needs], (row.ended_at, row.id, row)) if row.report_due else None

    def _reindex(
        self,
        row: OccurrenceRow,
        line: Ordered[OccurrenceRow] | None,
        claim_entry: IndexEntry | None,
        report_entry: IndexEntry | None,
    ) -> None:
        """Move the row to these places in the indexes."""
        if row.line is not line:
            place = (row.line_at, row.id, row)
            if row.line is not None:
                row.line.remove(place)
            if line is not None:
                line.add(place)
            row.line = line
        if row.claim_entry != claim_entry:
            _move(row.claim_entry, claim_entry)
            row.claim_entry = claim_entry
        if row.report_entry != report_entry:
            _move(row.report_entry, report_entry)
            row.report_entry = report_entry


def _move(before: IndexEntry | None, after: IndexEntry | None) -> None:
    if before is not None:
        before[0].remove(before[1])
    if after is not None:
        after[0].add(after[1])
