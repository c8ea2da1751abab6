"""due and look: snapshots of due jobs, locked for one planner or only read.

A second, faster way: `_read_few` reads a few due jobs without locking them, in one round trip.
Price: `bench/pickup.py` inside a node, p50, 2.49 ms with it and 3.86 without: 35 %.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from everytick.domain.backfills import OpenBackfill
from everytick.domain.codes import CAUSE_CODE
from everytick.domain.occurrence import Cause
from everytick.domain.rollouts import TrialCounts
from everytick.domain.snapshots import BUSY_LIMIT, PLAN_LIMIT, Dependence, Ended, JobSnapshot, Past, Rescheduled
from everytick.domain.values import value
from everytick.errors import StoreUnavailable
from everytick.stores.base import Batch, NodeScope, new_token
from everytick.stores.open_batches import OpenBatches
from everytick.stores.open_requests import PAST_LIMIT, PastAsked, past_of, pasts_asked, without_backfills
from everytick.stores.postgres import rows
from everytick.stores.postgres.base import Shared, carried_out
from everytick.stores.postgres.connections import Connection, patiently
from everytick.stores.postgres.rows import Row
from everytick.stores.sql.definitions import Compiled, Key
from everytick.stores.sql.rows import EMPTY_LINE, LineHead, adjustment, pause
from everytick.stores.sql.verbs.backfills import open_backfills
from everytick.stores.sql.verbs.depending import Asked, dependence
from everytick.stores.sql.verbs.trials import trials

HELD_FOR = timedelta(seconds=5)
"""A planner that is silent while it locks jobs loses them after this time, and another one plans them."""

UNHELD = 20
"""Up to this many due jobs are not locked: planning them twice costs less than another round trip."""

_TRIED_AGAIN = timedelta(seconds=10)
"""A job that this process cannot read is left out this long: an edit may have repaired it by then."""

_IN_THE_WAY = timedelta(seconds=2)
"""A job that another session is in the way of is left out this long: its plan would make all others wait for a lock."""

_BACKFILL = CAUSE_CODE[Cause.BACKFILL]
_LAST_END = "last_end_scheduled_for", "last_end_started_at", "last_end_at", "last_end_id"
_LAST_SUCCESS = "last_success_scheduled_for", "last_success_started_at", "last_success_at", "last_success_id"
_OTHER_SUCCESS = "other_success_scheduled_for", "other_success_started_at", "other_success_at", "other_success_id"
_NO_ROWS: Mapping[int, list[Row]] = {}
_BEGINNING = datetime.min, ""  # noqa: DTZ901, without beginning, to the driver


@dataclass(slots=True)
class Secrets:
    """The store's own data of a batch.

    `keys` are the inner keys of its jobs, by id, and `told` those of which facts wait. `held` is the connection whose
    transaction locks the jobs; None if they were only read.
    """

    keys: dict[str, int] = field(default_factory=dict)
    told: set[int] = field(default_factory=set)
    held: Connection | None = None


@value
class OwnBatch(Batch):
    """A batch of this store."""

    secrets: Secrets = field(default_factory=Secrets, compare=False, repr=False)


class DueJobs:
    """The jobs whose time has come, as plans see them.

    `held_for` and `unheld` are set by tests only.
    """

    def __init__(self, shared: Shared) -> None:
        self._connections, self._sql, self._cold, self._compiled = (
            shared.connections,
            shared.sql,
            shared.cold,
            shared.compiled,
        )
        self.held_for = HELD_FOR
        self.unheld = UNHELD
        self._are_many = False
        self._reached: tuple[datetime | None, datetime, str] = (None, *_BEGINNING)
        """How far the last full batch has come: the moment it was read for, then `wake_at` and id of its last job."""
        self._left_out: dict[int, datetime] = {}
        """The jobs that this process leaves to others for a while, and until when: it cannot read them, or another
        session was in the way of their plans."""
        self._few_open, self._many_open = OpenBatches[int](), OpenBatches[int]()
        """The jobs of batches that are open now: those that were only read, and those that a transaction holds."""

    def leave_out(self, jobs: Iterable[int], now: datetime) -> None:
        """Give these jobs no more for a moment, because another session is in the way of their plans."""
        self._left_out.update(dict.fromkeys(jobs, now + _IN_THE_WAY))

    def take_all_in(self) -> None:
        """Try every job again at once: an edit may have mended a definition that this process could not read."""
        self._left_out.clear()

    @asynccontextmanager
    async def due(self, scope: NodeScope, limit: int, by: datetime | None = None) -> AsyncIterator[Batch]:
        """Give up to `limit` jobs of the scope whose `wake_at` has come, longest-waiting first.

        A few are only read: if another planner reads them too, the revision settles it. Many are locked, so that no
        other planner sees them until the batch ends or this node has been silent for `held_for`. People may change
        them meanwhile, and then the plan is stale.
        """
        broken: dict[int, str] = {}
        batch = await self._read_few(scope, limit, by, broken)
        if batch is not None:
            with self._few_open.opened(scope.node, set(batch.secrets.keys.values())):
                yield batch
        else:
            async with self._lock_many(scope, limit, by, broken) as batch:
                self._are_many = len(batch.snapshots) >= min(limit, self.unheld + 1)
                with self._many_open.opened(scope.node, set(batch.secrets.keys.values())):
                    yield batch
        await self._park(broken, batch.now)
        self._look_again(batch.now)

    @patiently
    async def _read_few(
        self, scope: NodeScope, limit: int, by: datetime | None, broken: dict[int, str]
    ) -> OwnBatch | None:
        """Return a small batch in one round trip. None if many jobs are due."""
        if self._are_many or not self.unheld:
            return None
        async with self._connections.connection() as db:
            left_out = [*self._left_out, *self._few_open.of(scope.node), *self._many_open.of(scope.node)]
            found = await db.fetch(
                *self._sql.few_due(
                    until_at=by,
                    limit=self.unheld,
                    left_out=left_out,
                    needs=scope.met,
                    unknown_ids=list(scope.unknown),
                )
            )
            self._are_many = len(found) > self.unheld
            if self._are_many:
                return None
            # Another batch may have been opened while this one was read.
            opened = self._few_open.of(scope.node) | self._many_open.of(scope.node)
            standing = [row for row in found if row["job_key"] is not None and row["job_key"] not in opened]
            standing.sort(key=_longest_waiting)
            more = len(standing) > limit
            del standing[limit:]
            keys = {row["id"]: row["job_key"] for row in standing}
            only = {row["job_key"]: [row] for row in standing if row["is_only"]}
            until = by or found[0]["now"]
            snapshots = await self._seen(db, standing, broken, until, only) if standing else []
        now, secrets = found[0]["now"], Secrets(keys, set(keys.values()))
        return OwnBatch(by or now, snapshots, new_token(), more, by is not None and now < by, secrets)

    @asynccontextmanager
    async def _lock_many(
        self, scope: NodeScope, limit: int, by: datetime | None, broken: dict[int, str]
    ) -> AsyncIterator[OwnBatch]:
        """Give a batch whose jobs a transaction locks until the batch ends."""
        db = await self._connections.borrow()
        secrets = Secrets(held=db)
        try:
            with self._connections.answering():
                await db.execute(f"begin; set local idle_in_transaction_session_timeout = {self._patience()}")
                batch = await self._snapshots(db, scope, limit, by, broken, secrets)
            yield batch
        except asyncio.CancelledError:
            # No rollback statement, which would wait for the server.
            secrets.held = None
            await self._connections.break_off(db)
            raise
        finally:
            try:
                await self.let_go(secrets)
            finally:
                self._connections.give_back(db)

    async def looked_at(self, db: Connection, job_ids: Collection[str]) -> dict[str, JobSnapshot]:
        """Return the snapshots of these jobs, by id, on this connection."""
        standing = await db.fetch(*self._sql.standing_by_id(job_ids=list(job_ids)))
        return {seen.job_id: seen for seen in await self._seen(db, standing, {}, None)}

    def _patience(self) -> int:
        return max(int(self.held_for / timedelta(milliseconds=1)), 1)

    async def let_go(self, secrets: Secrets) -> None:
        """End the transaction that locks the batch. A connection that cannot end it is dropped."""
        db, secrets.held = secrets.held, None
        if db is None:
            return
        try:
            with self._connections.answering():
                await db.execute("rollback")
        except StoreUnavailable:
            self._connections.drop(db)
        except BaseException:
            # The coroutine was canceled: the transaction may still be open.
            self._connections.drop(db)
            raise

    async def _park(self, broken: dict[int, str], now: datetime) -> None:
        """Leave out jobs that this node cannot read, and show people why. Other nodes may plan them."""
        if broken:
            self._left_out.update(dict.fromkeys(broken, now + _TRIED_AGAIN))
            async with self._connections.transaction() as db:
                for job, reason in sorted(broken.items()):
                    await db.execute(*self._sql.park_job(job_key=job, reason=reason))

    def _look_again(self, now: datetime) -> None:
        """Try left-out jobs again whose time has come: an edit may have repaired them."""
        if self._left_out:
            # A time further ahead was set before the server's clock was set back.
            self._left_out = {job: until for job, until in self._left_out.items() if now < until <= now + _TRIED_AGAIN}

    # ------------------------------------------------------------------------------------------------- the snapshots

    async def _snapshots(
        self,
        db: Connection,
        scope: NodeScope,
        limit: int,
        by: datetime | None,
        broken: dict[int, str],
        secrets: Secrets,
    ) -> OwnBatch:
        """Lock due jobs and return them as a batch.

        The jobs' own rows are read first. A change before the rest is read raises the revision or adds a fact, so the
        commit finds out.
        """
        now, timely, told = await self._hold_due(db, scope, limit, by)
        until = by or now
        standing: list[Row] = []
        if timely:
            standing += await db.fetch(*self._sql.standing_of_due(job_keys=timely, until_at=until))
        is_full = len(timely) + len(told) >= limit > self.unheld
        self._reached = until, *(max(map(_longest_waiting, standing)) if is_full and standing else _BEGINNING)
        if told:
            standing += await db.fetch(*self._sql.standing_of_told(job_keys=told, until_at=until))
        standing.sort(key=_longest_waiting)
        more = len(standing) >= limit
        del standing[limit:]
        secrets.keys.update((row["id"], row["job_key"]) for row in standing)
        secrets.told.update(told)
        snapshots = await self._seen(db, standing, broken, until) if standing else []
        return OwnBatch(until, snapshots, new_token(), more, now < until, secrets)

    async def _hold_due(
        self, db: Connection, scope: NodeScope, limit: int, by: datetime | None
    ) -> tuple[datetime, list[int], list[int]]:
        """Lock due jobs, and those that facts make due. Read further if other planners have locked many.

        Returns the store's time, the jobs whose time has come, and those of which facts wait.
        """
        window = limit * 2
        after = self._reached[1:] if by is not None and self._reached[0] == by else _BEGINNING
        left_out, unknown = [*self._left_out, *self._few_open.of(scope.node)], list(scope.unknown)
        until = by
        while True:
            held = await db.fetch(
                *self._sql.hold_due(
                    until_at=until,
                    limit=limit,
                    window=window,
                    after_wake_at=after[0],
                    after_id=after[1],
                    left_out=left_out,
                    needs=scope.met,
                    unknown_ids=unknown,
                )
            )
            timely = [row["job_key"] for row in held if row["told"] is False]
            told = [row["job_key"] for row in held if row["told"] is True]
            # One row is about no job: it has the time, and instead of a key how many jobs were looked at.
            [summary] = [row for row in held if row["told"] is None]
            if summary["job_key"] < window or len(timely) == limit:
                return summary["now"], timely, told
            until = until or summary["now"]
            window *= 8

    async def _seen(
        self,
        db: Connection,
        standing: Sequence[Row],
        broken: dict[int, str],
        until: datetime | None,
        only: Mapping[int, list[Row]] = _NO_ROWS,
    ) -> list[JobSnapshot]:
        """Return the snapshots of jobs from where they stand, for a plan of this moment, or of now.

        `only` are requests that are known already.
        """
        definitions, unreadable = await self._compiled.read(db, _editions(standing))
        broken.update({job: reason for (job, _), reason in unreadable.items()})
        readable = [row for row in standing if row["job_key"] not in broken]
        active = [row["job_key"] for row in standing if row["is_active"]]
        paused = [row["job_key"] for row in standing if row["has_pauses"]]
        adjusted = [row["job_key"] for row in standing if row["has_adjustments"]]
        asked = [row for row in standing if row["has_requests"] and row["job_key"] not in only]
        requests = self._sql.requests(
            job_keys=[row["job_key"] for row in asked], retires=[row["retire_at"] for row in asked], until_at=until
        )
        related = _RelatedRows(
            active=_by_job(await db.fetch(*self._sql.active(job_keys=active)) if active else ()),
            pauses=_by_job(await db.fetch(*self._sql.pauses(job_keys=paused)) if paused else ()),
            adjustments=_by_job(await db.fetch(*self._sql.adjustments(job_keys=adjusted)) if adjusted else ()),
            requests={**only, **_by_job(await db.fetch(*requests) if asked else ())},
        )
        related.take_next_requests()
        await self._take_backfills(db, related, until)
        related.pasts = await self._pasts(db, readable, definitions, related)
        # Its occurrence ended after the job's row was read: it is not busy, and not the last end in that row.
        if gone := [row["id"] for row in standing if row["is_active"] and row["job_key"] not in related.active]:
            related.ended.update(
                (row["job_key"], row) for row in await db.fetch(*self._sql.standing_by_id(job_ids=gone))
            )
        await self._take_dependence(db, readable, definitions, related)
        await self._take_trials(db, readable, definitions, related)
        return [_snapshot(row, definitions, related) for row in readable]

    async def _take_dependence(
        self, db: Connection, standing: Sequence[Row], definitions: dict[Key, Compiled], related: "_RelatedRows"
    ) -> None:
        """Read what the plans of jobs that depend on others must know of those."""
        asked = {
            row["job_key"]: Asked(
                depends_on, [active.id for active in _line(related.active.get(row["job_key"], ())).waiting]
            )
            for row in standing
            if (depends_on := definitions[row["job_key"], row["version"]].job.settings.depends_on)
        }
        if asked:
            now = await db.fetchval(*self._sql.now())
            related.dependence = await carried_out(db, dependence(self._cold, asked, now))

    async def _take_trials(
        self, db: Connection, standing: Sequence[Row], definitions: dict[Key, Compiled], related: "_RelatedRows"
    ) -> None:
        """Read what became of the occurrences of versions on trial."""
        newest = ((row["job_key"], (definitions[row["job_key"], row["version"]].edition,)) for row in standing)
        on_trial = [(job, editions) for job, editions in newest if editions[0].rollout is not None]
        if on_trial:
            related.trials = await carried_out(db, trials(self._cold, on_trial))

    async def _pasts(
        self, db: Connection, standing: Sequence[Row], definitions: dict[Key, Compiled], related: "_RelatedRows"
    ) -> dict[int, list[Past]]:
        """Return the old definitions that requests and open backfills need beside the editions, by job."""
        wanted = [
            (row["job_key"], past, row["oldest_version"])
            for row in standing
            if row["job_key"] in related.requests
            for past in pasts_asked(
                list(map(rows.request, related.requests[row["job_key"]][:PLAN_LIMIT])),
                related.backfill(row["job_key"])[0],
                (definitions[row["job_key"], row["oldest_version"]].edition,),
            )
        ]
        pasts: dict[int, list[Past]] = {}
        for job, asked, first in wanted:
            versions = await self._past_versions(db, job, asked, first)
            older, _ = await self._compiled.read(db, [(job, version) for version, _ in versions])
            read = [(since, older.get((job, version))) for version, since in versions]
            editions = [(since, None if compiled is None else compiled.edition) for since, compiled in read]
            pasts.setdefault(job, []).append(past_of(asked, editions))
        return pasts

    async def _past_versions(
        self, db: Connection, job: int, asked: PastAsked, before: int
    ) -> list[tuple[int, datetime | None]]:
        """Return the versions before this one that name the past, and since when each was in force."""
        most = PAST_LIMIT + 1
        if asked.newest_first:
            query = self._cold.newest_past_versions(
                job_key=job, oldest_version=before, left_after=asked.after, left_through=asked.through, limit=most
            )
        else:
            query = self._sql.past_versions(job_keys=[job], afters=[asked.after], befores=[before], limit=most)
        return [(row["version"], row["in_force_after"]) for row in await db.fetch(*query)]

    async def _take_backfills(self, db: Connection, related: "_RelatedRows", until: datetime | None) -> None:
        """Read the backfills that requests without an instant show."""
        filling = [
            job
            for job, asked in related.requests.items()
            if any(row["cause"] == _BACKFILL and row["scheduled_for"] is None for row in asked)
        ]
        if filling:
            now = until or await db.fetchval(*self._sql.now())
            related.backfills = await carried_out(db, open_backfills(self._cold, filling, now))


@dataclass(slots=True)
class _RelatedRows:
    """The rows of other tables that belong to the jobs of one batch, by job."""

    active: dict[int, list[Row]]
    pauses: dict[int, list[Row]]
    adjustments: dict[int, list[Row]]
    requests: dict[int, list[Row]]
    ended: dict[int, Row] = field(default_factory=dict)
    pasts: dict[int, list[Past]] = field(default_factory=dict)
    next_request_at: dict[int, datetime] = field(default_factory=dict)
    dependence: dict[int, Dependence] = field(default_factory=dict)
    backfills: dict[int, tuple[OpenBackfill, bool]] = field(default_factory=dict)
    trials: dict[int, TrialCounts] = field(default_factory=dict)

    def backfill(self, job: int) -> tuple[OpenBackfill | None, bool]:
        """Return the first open backfill of the job, and whether others wait behind it."""
        return self.backfills.get(job, (None, False))

    def take_next_requests(self) -> None:
        """Keep apart the requests that are still to come: of each job the last row, if it is one."""
        for job, asked in self.requests.items():
            if asked[-1].get("is_to_come"):
                self.next_request_at[job] = asked.pop()["due_at"]


def _by_job(found: Iterable[Row]) -> dict[int, list[Row]]:
    by_job: dict[int, list[Row]] = {}
    for row in found:
        by_job.setdefault(row["job_key"], []).append(row)
    return by_job


def _longest_waiting(row: Row) -> tuple[datetime, str]:
    return row["wake_at"], row["id"]


def _editions(standing: Iterable[Row]) -> list[Key]:
    """Versions are counted without a gap, so the first and the last name all of them."""
    return [
        (row["job_key"], version) for row in standing for version in range(row["oldest_version"], row["version"] + 1)
    ]


def _snapshot(row: Row, definitions: dict[Key, Compiled], related: _RelatedRows) -> JobSnapshot:
    """Return what a plan may see, from the columns of a standing."""
    job, rescheduled_for = row["job_key"], row["reschedule_for"]
    versions = range(row["oldest_version"], row["version"] + 1)
    line = _line(related.active[job]) if job in related.active else EMPTY_LINE
    requests = related.requests.get(job, ())
    ends: Row = related.ended.get(job) or row
    backfill, more_backfills = related.backfill(job)
    return JobSnapshot(
        job_id=row["id"],
        revision=row["revision"],
        woken=row["woken"],
        watermark=row["watermark"],
        editions=tuple([definitions[job, version].edition for version in versions]),
        wake_at=row["wake_at"],
        retire_at=row["retire_at"],
        pauses=tuple(map(pause, related.pauses.get(job, ()))),
        adjustments=tuple(map(adjustment, related.adjustments.get(job, ()))),
        reschedule=None
        if rescheduled_for is None
        else Rescheduled(row["reschedule_made_at"], rescheduled_for, row["reschedule_by"]),
        requests=tuple(without_backfills(list(map(rows.request, requests[:PLAN_LIMIT])))) if requests else (),
        more_requests=len(requests) > PLAN_LIMIT,
        busy=line.busy,
        busy_count=line.busy_count,
        waiting=line.waiting,
        waiting_count=line.waiting_count,
        last_end=_ended(ends, *_LAST_END),
        last_success=_ended(ends, *_LAST_SUCCESS),
        awaited=line.awaited,
        other_success=_ended(ends, *_OTHER_SUCCESS),
        narrowed_at=row["narrowed_at"],
        pasts=tuple(related.pasts.get(job, ())),
        next_request_at=related.next_request_at.get(job),
        dependence=related.dependence.get(job),
        is_needed=row["is_needed"],
        backfill=backfill,
        more_backfills=more_backfills,
        trial=related.trials.get(job),
        stopped_at=row["stopped_at"],
    )


def _ended(row: Row, scheduled_for: str, started_at: str, ended_at: str, id_: str) -> Ended | None:
    at = row[ended_at]
    return None if at is None else Ended(row[scheduled_for], row[started_at], at, f"occ_{row[id_]}")


def _line(active: Sequence[Row]) -> LineHead:
    busy = [row for row in active if not row["waits"]]
    waiting = [row for row in active if row["waits"]]
    return LineHead(
        tuple(map(rows.active, busy[:BUSY_LIMIT])),
        busy[0]["of"] if busy else 0,
        tuple(rows.active(row) for row in waiting if row["shown"]),
        waiting[0]["of"] if waiting else 0,
        busy[0]["all_awaited"] if busy else True,
    )
