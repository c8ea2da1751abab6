"""Writes plans: new, moved and ended occurrences and answered requests, while their jobs are locked."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from everytick.domain.codes import CAUSE_CODE, STATUS_CODE
from everytick.domain.decisions import Creation, Plan, Span
from everytick.domain.job import Job
from everytick.domain.needs import are_late, late_needs, needs_in
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.statuses import ENDED, OccurrenceStatus
from everytick.stores.postgres import rows
from everytick.stores.postgres.base import Shared, carried_out, columns, lean_columns, occurrence_key, send
from everytick.stores.postgres.connections import Connection
from everytick.stores.sql.commands import EndUnowned
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.rows import write_overrides
from everytick.stores.sql.verbs import coming_runs
from everytick.stores.sql.verbs.backfills import write_filling
from everytick.stores.sql.verbs.coming_into_force import come_into_force
from everytick.stores.sql.verbs.coming_runs import JobComing
from everytick.stores.storing_rules import NOTHING_TO_KEEP, own_overrides

CREATED = (
    "ids",
    "job_keys",
    "versions",
    "instants",
    "statuses",
    "causes",
    "priorities",
    "lates",
    "lines",
    "readies",
    "covers_afters",
    "covers_throughs",
    "needs",
    "reasons",
    "overrides",
    "payloads",
    "replays",
    "awaits",
    "timeouts",
)
"""The columns of `created_row`."""
_NEEDS = CREATED.index("needs")

SETTLED = (
    "job_keys",
    "wokens",
    "watermarks",
    "wakes",
    "reschedules",
    "next_runs",
)
"""The columns of `settled_row`."""

SPAN = (
    "job_keys",
    "statuses",
    "whys",
    "details",
    "afters",
    "throughs",
    "versions",
    "counts",
)


@dataclass(slots=True)
class Held:
    """A plan whose job is locked and still has the plan's revision. `is_told` says that facts of the job wait."""

    job: int
    now: datetime
    woken: int
    plan: Plan
    snapshot: JobSnapshot
    is_told: bool


@dataclass(slots=True)
class Moves:
    """The changes of existing occurrences by plans, by their keys; stops and cancels by reason."""

    stops: dict[str, list[tuple[int, datetime]]]
    releases: list[str]
    endings: list[tuple[str, int, str | None]]
    cancels: dict[str, list[str]]
    awaiting: list[int]

    @classmethod
    def of(cls, plans: Sequence[Held]) -> "Moves":
        """Return the changes of these plans."""
        stops: dict[str, list[tuple[int, datetime]]] = {}
        cancels: dict[str, list[str]] = {}
        for locked in plans:
            if locked.plan.cancels_before is not None:
                stops.setdefault(locked.plan.cancels_because, []).append((locked.job, locked.plan.cancels_before))
            if locked.plan.cancels:
                cancels.setdefault(locked.plan.cancels_because, []).extend(map(occurrence_key, locked.plan.cancels))
        return cls(
            stops,
            [occurrence_key(id_) for locked in plans for id_ in locked.plan.releases],
            [
                (occurrence_key(end.id), STATUS_CODE[end.status], rows.text(f"{end.why} {end.detail}".strip()))
                for locked in plans
                for end in locked.plan.endings
            ],
            cancels,
            [locked.job for locked in plans if locked.plan.awaits_ends],
        )

    def __bool__(self) -> bool:
        return bool(self.stops or self.releases or self.endings or self.cancels or self.awaiting)

    def ids(self) -> list[str]:
        """Return the occurrences that are named one by one."""
        return [*self.releases, *chain.from_iterable(self.cancels.values()), *(end[0] for end in self.endings)]


class PlanWriter:
    """Writes what many plans decide together, on the connection of the verb that asks."""

    def __init__(self, shared: Shared, q: ColdQueries) -> None:
        self._shared, self._sql, self._q = shared, shared.sql, q

    async def create(self, db: Connection, job_key: int, job: Job, creation: Creation) -> None:
        """Make an occurrence, if it is not there yet."""
        now = await db.fetchval(*self._sql.now())
        created = lean_columns(CREATED, [created_row(job_key, job, creation, False)])
        await db.execute(*self._sql.create_occurrences(now=now, **created))

    async def end(self, db: Connection, ended: EndUnowned) -> None:
        """End an occurrence that no node runs, and its runs. Its job records the end and becomes due."""
        now = await db.fetchval(*self._sql.now())
        ending = occurrence_key(ended.occurrence_id), STATUS_CODE[ended.status], rows.text(ended.reason)
        if await self._shared.end_unowned(db, [ending], now):
            await db.execute(*self._sql.wake_job(job_key=ended.job_key, now=now))

    async def write(self, db: Connection, plans: Sequence[Held]) -> None:
        """Write all that the plans decide but where their jobs stand, in this order: some writes need earlier ones."""
        await self._fold_wakes(db, plans)
        for locked in plans:
            if locked.plan.turned is not None:
                await carried_out(db, come_into_force(self._shared.cold, locked.job, locked.plan.turned, locked.now))
        moved = Moves.of(plans)
        if moved:
            await self._lock_moved(db, moved)
        for why, asked in moved.stops.items():
            await db.execute(*self._sql.ask_all_to_stop(**columns(("job_keys", "befores"), asked), reason=why))
        for locked in plans:
            if locked.plan.filling is not None:
                await carried_out(db, write_filling(self._shared.cold, locked.job, locked.plan.filling, locked.now))
        late_needs_used = await self._create(db, plans, moved)
        for locked in plans:
            if locked.plan.lifts:
                # Before any of them ends: its report has the needs that it has then.
                await db.execute(*self._shared.cold.lift_late(job_key=locked.job))
                # One in a queue of its own may have needs that only the lane for late ones had.
                await db.execute(*self._shared.cold.add_needs_of_active(job_key=locked.job))
        await self._move_occurrences(db, plans, moved)
        if moved.awaiting:
            await db.execute(*self._sql.mark_awaited(job_keys=moved.awaiting))
        if spans := [_spanned(locked.job, span) for locked in plans for span in locked.plan.spans]:
            await db.execute(*self._sql.add_spans(**columns(SPAN, spans)))
        await self._answer(db, plans)
        await self._settle_facts(db, plans)
        told = [
            JobComing(locked.job, locked.plan.job_id, locked.plan.coming)
            for locked in plans
            if locked.plan.coming is not None
        ]
        if told:
            await self._write_coming(db, told)
        if late_needs_used:
            # No verb that waits for a job writes these texts before it: so two sessions never wait for each other here.
            await db.execute(*self._sql.add_needs(texts=late_needs_used))

    async def _lock_moved(self, db: Connection, moved: Moves) -> None:
        """Lock the occurrences that the plans change, all at once and in one order."""
        stops = list(chain.from_iterable(moved.stops.values()))
        query = self._sql.hold_occurrences(
            ids=moved.ids(), **columns(("stopped_keys", "befores"), stops), awaiting_keys=moved.awaiting
        )
        await db.execute(*query)

    async def _create(self, db: Connection, plans: Sequence[Held], moved: Moves) -> list[str]:
        """Create the new occurrences. Return the needs of those in the lane of late ones."""
        created = [
            created_row(locked.job, defining(locked.snapshot, creation), creation, locked.plan.awaits_ends)
            for locked in plans
            for creation in locked.plan.creations
        ]
        if not created:
            return []
        await db.execute(*self._sql.create_occurrences(now=plans[0].now, **lean_columns(CREATED, created)))
        for replay in (creation for locked in plans for creation in keeping(locked.plan)):
            await self._keep(db, replay, moved)
        if any(creation.in_lane for locked in plans for creation in locked.plan.creations):
            return sorted({str(row[_NEEDS]) for row in created if are_late(str(row[_NEEDS]))})
        return []

    async def _write_coming(self, db: Connection, told: Sequence[JobComing]) -> None:
        """Write the runs to come that jobs with a horizon show."""
        before = await send(db, coming_runs.written_before(self._q, told))
        for statement, changed in coming_runs.changes(self._q, before, told):
            await db.executemany(statement.sql, [statement(**row).arguments for row in changed])

    async def _keep(self, db: Connection, creation: Creation, moved: Moves) -> None:
        """Copy the results that a replay keeps from its original. If they are deleted, cancel it."""
        made, original = occurrence_key(creation.id), occurrence_key(creation.replay_of or "")
        kept = await db.fetchval(*self._sql.keep_runs(id=made, original_id=original, tasks=list(creation.keeps)))
        if kept is not None and kept < len(creation.keeps):
            moved.endings.append((made, STATUS_CODE[OccurrenceStatus.CANCELED], NOTHING_TO_KEEP))

    async def _fold_wakes(self, db: Connection, plans: Sequence[Held]) -> None:
        """Count the facts into `woken`.

        Facts about a job that had none when it was read stay: they make it due again.
        """
        by_key = {locked.job: locked for locked in plans if locked.is_told}
        for row in await db.fetch(*self._sql.fold_wakes(job_keys=list(by_key))) if by_key else ():
            by_key[row["job_key"]].woken += row["facts"]

    async def _move_occurrences(self, db: Connection, plans: Sequence[Held], moved: Moves) -> None:
        now = plans[0].now
        if moved.releases:
            await db.execute(*self._sql.release(ids=moved.releases, now=now))
        if moved.endings:
            await self._shared.end_unowned(db, moved.endings, now)
        for why, asked in moved.cancels.items():
            await db.execute(*self._sql.ask_to_stop(ids=asked, reason=why, is_person=False))

    async def _answer(self, db: Connection, plans: Sequence[Held]) -> None:
        answers = [
            (locked.job, CAUSE_CODE[answer.cause], answer.key) for locked in plans for answer in locked.plan.answers
        ]
        if answers:
            await db.execute(*self._sql.forget_requests(**columns(("job_keys", "causes", "keys"), answers)))

    async def _settle_facts(self, db: Connection, plans: Sequence[Held]) -> None:
        """Forget the facts that are decided: nothing at or before the watermark is asked about again."""
        used = [(locked.job, adjustment.at) for locked in plans for adjustment in locked.plan.used]
        if used:
            await db.execute(*self._sql.use_adjustments(**columns(("job_keys", "instants"), used)))
        if adjusted := [(locked.job, locked.plan.watermark) for locked in plans if locked.snapshot.adjustments]:
            await db.execute(*self._sql.forget_adjustments(**columns(("job_keys", "watermarks"), adjusted)))
        if narrowed := [locked.job for locked in plans if locked.plan.narrowed]:
            await db.execute(*self._sql.forget_narrowing(job_keys=narrowed))
        if stopped := [(locked.job, locked.plan.stopped_at) for locked in plans if locked.plan.stopped_at is not None]:
            await db.execute(*self._sql.note_stops(**columns(("job_keys", "moments"), stopped)))
        if paused := [(locked.job, locked.plan.watermark) for locked in plans if locked.snapshot.pauses]:
            await db.execute(*self._sql.forget_pauses(**columns(("job_keys", "watermarks"), paused)))


def keeping(plan: Plan) -> list[Creation]:
    """Return the replays that keep results of their original."""
    return (
        [creation for creation in plan.creations if creation.keeps and creation.status not in ENDED]
        if plan.answers
        else []
    )


def defining(snapshot: JobSnapshot, creation: Creation) -> Job:
    """Return the definition of a new occurrence. One that is still to come may be newer."""
    editions = snapshot.editions
    if len(editions) == 1:
        return editions[0].job
    return next((edition.job for edition in editions if edition.job.version == creation.version), editions[-1].job)


def created_row(job: int, newest: Job, creation: Creation, awaited: bool) -> tuple[object, ...]:
    """Return the columns of a new occurrence."""
    own = newest.settings
    overrides = payload = None
    if creation.payload is not None or creation.overrides is not None:
        given = own_overrides(creation, own)
        overrides, payload = write_overrides(given)
        own = own.overridden_by(given) if given.items else own
    needs = newest.needs if own is newest.settings else needs_in(newest.labels, own.queue)
    return (
        creation.id[4:],
        job,
        creation.version,
        creation.scheduled_for,
        STATUS_CODE[creation.status],
        CAUSE_CODE[creation.cause],
        own.priority,
        creation.late,
        creation.line_at,
        creation.ready_at,
        creation.covers_after,
        creation.covers_through,
        needs if not creation.in_lane else late_needs(needs),
        rows.text(f"{creation.why}, {creation.detail}" if creation.detail else str(creation.why)),
        overrides,
        payload,
        creation.replay_of,
        awaited,
        rows.write_timeout(own.execution_timeout),
    )


def _spanned(job: int, span: Span) -> tuple[object, ...]:
    return (
        job,
        STATUS_CODE[span.status],
        str(span.why),
        rows.text(span.detail),
        span.after,
        span.through,
        span.version,
        span.count,
    )


def settled_row(held: Held) -> tuple[object, ...]:
    """Return the columns of a job after its plan."""
    plan = held.plan
    # An end, request or edit after the snapshot makes the job due again at once.
    wake_at = plan.wake_at if held.woken == plan.woken else held.now
    return (
        held.job,
        held.woken,
        plan.watermark,
        wake_at,
        plan.rescheduled,
        plan.next_run,
    )
