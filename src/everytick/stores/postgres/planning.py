"""commit_plans: each plan written whole or not at all, as the revision of its job decides.

A second, faster way: `_settle_few` writes a few plain plans by one statement, and claims along.
Price: `bench/pickup.py` inside a node, p50, 2.85 ms with it and 3.84 without: 26 %.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from everytick.domain.codes import CAUSE_CODE, STATUS_CODE
from everytick.domain.decisions import Plan, put_off
from everytick.domain.needs import needs_in
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.texts import PLAN_REFUSED
from everytick.errors import Contended, StoreBroken, StoreUnavailable
from everytick.stores.base import (
    Batch,
    Claim,
    Commit,
    CommitAnswer,
    CommitAway,
    CommitFailed,
    Committed,
    Offer,
    new_token,
)
from everytick.stores.each_alone import each_alone
from everytick.stores.postgres.base import Shared, columns, lean_columns
from everytick.stores.postgres.claims import place_in_line
from everytick.stores.postgres.connections import Connection, in_transaction, patiently
from everytick.stores.postgres.due import DueJobs, OwnBatch, Secrets
from everytick.stores.postgres.plan_writer import (
    CREATED,
    SETTLED,
    Held,
    PlanWriter,
    created_row,
    defining,
    keeping,
    settled_row,
)
from everytick.stores.postgres.queries import in_schema, migrations
from everytick.stores.postgres.rows import Row
from everytick.stores.queries import tables_of

_NO_JOB = -1
"""The key of a job that was deleted since it was read."""

_FEW_PLANS = 50
"""Most plans that one statement writes: with more, the several statements for many are quicker."""

_HELD = "job_keys", "revisions"
_FEW_SETTLED = "job_keys", "revisions", "wokens", "watermarks", "wakes", "reschedules", "next_runs"
_FEW_CREATED = ("ids", "created_keys", *CREATED[2:], "wanted")
_FEW_ANSWERED = "answered_keys", "request_keys", "request_causes"
_PENDING = STATUS_CODE[OccurrenceStatus.PENDING]
_STATUS, _NEEDS = CREATED.index("statuses"), CREATED.index("needs")


class PlanCommits:
    """Commits plans, each under the revision of its job."""

    def __init__(self, shared: Shared, due: DueJobs, writer: PlanWriter) -> None:
        self._shared, self._connections, self._sql = shared, shared.connections, shared.sql
        self._due, self._writer = due, writer

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        """Write each whole plan whose job still has the revision of the snapshot.

        Ends the batch: its jobs are unlocked. A lock that was lost before costs only time, since the revision
        decides. A commit whose reply was lost is sent again: its token tells whether it was written. Claims that it
        brought come with the next beats then.
        """
        if not plans:
            return Committed(())
        if batch.is_ahead and await self._time() < batch.now:
            return Committed([Commit.STALE] * len(plans))
        claims: list[Claim] = []

        async def write(some: Sequence[Plan]) -> Sequence[CommitAnswer]:
            # Plans that are written one by one claim nothing: the occurrences wait for the next claim.
            done = await self._commit_together(batch, some, offer if some is plans else None)
            claims.extend(done.claims)
            return done.answers

        async def set_aside(plan: Plan, reason: str) -> CommitAnswer:
            return await self._set_aside(batch, plan, reason)

        answers = await each_alone(plans, write, "plans", set_aside, self.check_writable)
        self._leave_out(batch, plans, answers)
        return Committed(answers, tuple(claims))

    def _leave_out(self, batch: Batch, plans: Sequence[Plan], answers: Sequence[CommitAnswer]) -> None:
        """Leave out for a moment the jobs whose plans another session was in the way of."""
        if isinstance(batch, OwnBatch):
            pairs = zip(plans, answers, strict=True)
            away = [batch.secrets.keys[plan.job_id] for plan, answer in pairs if isinstance(answer, CommitAway)]
            self._due.leave_out(away, batch.now)

    @patiently
    async def _set_aside(self, batch: Batch, plan: Plan, reason: str) -> CommitAnswer:
        """Look at the job of a refused plan again in a minute, and say why, unless it has changed since."""
        [snapshot] = [snapshot for snapshot in batch.snapshots if snapshot.job_id == plan.job_id]
        async with self._connections.transaction() as db:
            now = await db.fetchval(*self._sql.now())
            [answer] = await self._commit(db, Batch(now, (snapshot,), new_token()), [put_off(snapshot, now)])
            if answer is not Commit.COMMITTED:
                return answer
            await db.execute(*self._sql.park_plan(job_id=plan.job_id, reason=PLAN_REFUSED.format(reason=reason)))
        return CommitFailed(reason)

    @patiently
    async def check_writable(self) -> None:
        """Return if every table exists and takes writes. This changes nothing."""
        touches = "; ".join(f"delete from {table} where false" for table in tables_of(migrations()))
        async with self._connections.connection() as db:
            await db.execute(in_schema(touches, self._connections.address.schema))

    async def _time(self) -> datetime:
        async with self._connections.connection() as db:
            now: datetime = await db.fetchval(*self._sql.now())
            return now

    @patiently
    async def _commit_together(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None) -> Committed:
        """Commit the plans in one transaction: that which locks their jobs, if it is still there."""
        await self._add_needs(batch, plans)
        secrets = batch.secrets if isinstance(batch, OwnBatch) else None
        if secrets is not None and secrets.held is not None:
            try:
                with self._connections.answering():
                    return Committed(await self._commit_held(batch, secrets, secrets.held, plans))
            except StoreUnavailable:
                # The locks are lost. The revision decides without them, below.
                await self._due.let_go(secrets)
            except Exception:
                # One plan is refused, and so the whole transaction.
                await self._due.let_go(secrets)
                raise
        is_sent = False
        try:
            async with self._connections.connection() as db:
                is_sent = True
                return await self._commit_free(db, batch, plans, offer)
        except (Contended, StoreBroken):
            raise
        except StoreUnavailable:
            if not is_sent:
                raise
        # Only the reply may be lost.
        async with self._connections.connection() as db:
            return await self._commit_again(db, batch, plans)

    async def _commit_again(self, db: Connection, batch: Batch, plans: Sequence[Plan]) -> Committed:
        """Commit again after a lost reply. Either all of it was written before, or nothing."""
        keys = await self._keys(db, batch, plans)
        jobs = [keys.get(plan.job_id, _NO_JOB) for plan in plans]
        answers = await self._known(db, batch.token, jobs, [Commit.STALE] * len(plans))
        return Committed(answers) if Commit.COMMITTED in answers else await self._commit_free(db, batch, plans, None)

    async def _add_needs(self, batch: Batch, plans: Sequence[Plan]) -> None:
        """Add the needs of new occurrences with another queue than their job, before any lock is taken.

        Those in the lane for late ones have the needs of that lane, which are added with them.
        """
        created = [(plan.job_id, creation) for plan in plans for creation in plan.creations if not creation.in_lane]
        overridden = [(job_id, made, made.overrides) for job_id, made in created if made.overrides is not None]
        if overridden:
            seen = {snapshot.job_id: snapshot for snapshot in batch.snapshots}
            queues = [(defining(seen[job_id], made), own.get("queue")) for job_id, made, own in overridden]
            texts = {needs_in(job.labels, queue) for job, queue in queues if isinstance(queue, str)}
            if texts:
                async with self._connections.connection() as db:
                    await db.execute(*self._sql.add_needs(texts=list(texts)))

    async def _commit_held(self, batch: Batch, secrets: Secrets, db: Connection, plans: Sequence[Plan]) -> list[Commit]:
        await self._connections.tell_time(db)
        answers = await self._commit(db, batch, plans)
        await db.execute("commit")
        secrets.held = None
        return answers

    async def _commit_free(self, db: Connection, batch: Batch, plans: Sequence[Plan], offer: Offer | None) -> Committed:
        """Commit plans of an unlocked batch: a few by one statement, which may also claim for the node."""
        if not isinstance(batch, OwnBatch) or not _are_few(batch, plans):
            async with in_transaction(db):
                return Committed(await self._commit(db, batch, plans))
        answers, found = await self._settle_few(db, batch.secrets.keys, batch, plans, offer)
        claims, unreadable = await self._shared.claims(db, sorted(found, key=place_in_line))
        if unreadable and offer is not None:
            await db.execute(*self._sql.give_back(handles=unreadable, node=offer.scope.node))
        return Committed(answers, tuple(claims))

    async def _commit(self, db: Connection, batch: Batch, plans: Sequence[Plan]) -> list[Commit]:
        keys = await self._keys(db, batch, plans)
        told = batch.secrets.told if isinstance(batch, OwnBatch) else None
        if _are_few(batch, plans):
            return (await self._settle_few(db, keys, batch, plans))[0]
        jobs = [keys.get(plan.job_id, _NO_JOB) for plan in plans]
        snapshots = {snapshot.job_id: snapshot for snapshot in batch.snapshots}
        locked = await self._hold_plans(db, jobs, plans)
        held: list[Held] = []
        answers: list[Commit] = []
        for job, plan in zip(jobs, plans, strict=True):
            # The first of two plans for one job makes the second one stale, as it raises the revision.
            lock = locked.pop(job, None)
            answers.append(Commit.STALE if lock is None else Commit.COMMITTED)
            if lock is not None:
                now, woken = lock
                seen = snapshots[plan.job_id]
                _require_progress(plan, seen)
                held.append(Held(job, now, woken, plan, seen, told is None or job in told))
        if held:
            await self._writer.write(db, held)
            settled = lean_columns(SETTLED, map(settled_row, held))
            await db.execute(*self._sql.move_watermarks(**settled, token=batch.token))
            if telling := [planned.job for planned in held if planned.plan.tells]:
                await db.execute(*self._sql.tell_dependents(job_keys=telling, now=held[0].now))
            await db.execute(*self._sql.ring())
        return await self._known(db, batch.token, jobs, answers)

    async def _known(self, db: Connection, token: int, jobs: Sequence[int], answers: list[Commit]) -> list[Commit]:
        """Return the answers, with COMMITTED for plans that were written by a commit whose reply was lost.

        That commit has ended by now: ours has waited for its locks.
        """
        done = {job for job, answer in zip(jobs, answers, strict=True) if answer is Commit.COMMITTED}
        stale = set(jobs) - done
        if not stale:
            return answers
        query = self._sql.planned_by(job_keys=list(stale), token=token)
        written = {row["job_key"] for row in await db.fetch(*query)}
        for place, job in enumerate(jobs):
            if job in written:
                written.discard(job)
                answers[place] = Commit.COMMITTED
        return answers

    async def _settle_few(
        self,
        db: Connection,
        keys: Mapping[str, int],
        batch: Batch,
        plans: Sequence[Plan],
        offer: Offer | None = None,
    ) -> tuple[list[Commit], list[Row]]:
        """Write a few plans by one statement, in one round trip.

        Returns the answers, and the rows of the occurrences that the node with the offer has claimed.
        """
        jobs = [keys.get(plan.job_id, _NO_JOB) for plan in plans]
        snapshots = {snapshot.job_id: snapshot for snapshot in batch.snapshots}
        settled, created, answered, awaiting, wanted = [], [], [], [], 0
        for job, plan in zip(jobs, plans, strict=True):
            seen = snapshots[plan.job_id]
            _require_progress(plan, seen)
            standing = job, plan.revision, plan.woken, plan.watermark, plan.wake_at, plan.rescheduled, plan.next_run
            settled.append(standing)
            for creation in plan.creations:
                made = created_row(job, defining(seen, creation), creation, plan.awaits_ends)
                is_wanted = offer is not None and _is_wanted(offer, plan, made)
                created.append((*made, is_wanted or None))
                wanted += is_wanted
            answered += [(job, answer.key, CAUSE_CODE[answer.cause]) for answer in plan.answers]
            awaiting += [job] if plan.awaits_ends else []
        is_taking = offer is not None and 0 < wanted <= offer.limit
        taker = offer.scope if offer is not None and is_taking else None
        query = self._sql.settle_few(
            **columns(_FEW_SETTLED, settled),
            **columns(_FEW_CREATED, created),
            **columns(_FEW_ANSWERED, answered),
            awaiting_keys=awaiting,
            token=batch.token,
            node=None if taker is None else taker.node,
            met=None if taker is None else taker.met,
            claim_token=new_token(),
        )
        found = await db.fetch(*query)
        done = {row["settled"] for row in found}
        answers = [Commit.COMMITTED if job in done else Commit.STALE for job in jobs]
        return await self._known(db, batch.token, jobs, answers), [row for row in found if row["handle"] is not None]

    async def _hold_plans(
        self, db: Connection, jobs: Sequence[int], plans: Sequence[Plan]
    ) -> dict[int, tuple[datetime, int]]:
        """Lock the jobs that still have the revision of their plans. Return the time and how often each was woken."""
        asked = [(job, plan.revision) for job, plan in zip(jobs, plans, strict=True)]
        query = self._sql.hold_plans(**lean_columns(_HELD, asked))
        return {row["job_key"]: (row["now"], row["woken"]) for row in await db.fetch(*query)}

    async def _keys(self, db: Connection, batch: Batch, plans: Sequence[Plan]) -> dict[str, int]:
        """Return the inner keys of the jobs. A batch of this store has them."""
        if isinstance(batch, OwnBatch):
            return batch.secrets.keys
        query = self._sql.job_keys(job_ids=[plan.job_id for plan in plans])
        return {row["id"]: row["job_key"] for row in await db.fetch(*query)}


def _are_few(batch: Batch, plans: Sequence[Plan]) -> bool:
    """Tell whether one statement can write these: a few plans that change no existing occurrence."""
    return (
        len(plans) <= _FEW_PLANS
        and len({plan.job_id for plan in plans}) == len(plans)
        and not any(
            plan.endings
            or plan.releases
            or plan.cancels
            or plan.cancels_before
            or plan.spans
            or plan.used
            or plan.narrowed
            or plan.stopped_at is not None
            or plan.tells
            or plan.coming is not None
            or plan.turned is not None
            or keeping(plan)
            or plan.filling
            or plan.lifts
            or any(creation.in_lane for creation in plan.creations)
            for plan in plans
        )
        and not any(snapshot.pauses or snapshot.adjustments for snapshot in batch.snapshots)
    )


def _is_wanted(offer: Offer, plan: Plan, made: tuple[object, ...]) -> bool:
    """Tell whether the node could claim a new occurrence at once; `made` are the columns of `created_row`."""
    return made[_STATUS] == _PENDING and made[_NEEDS] in offer.scope.met and plan.job_id not in offer.scope.unknown


def _require_progress(plan: Plan, seen: JobSnapshot) -> None:
    assert plan.watermark >= seen.watermark, f"{plan.job_id}: the watermark moved back"
