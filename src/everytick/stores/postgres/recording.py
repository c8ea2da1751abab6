"""record: what a node fired while it could not reach this store, written down afterwards."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from everytick.domain.codes import ATTEMPT_CODE, CAUSE_CODE, RUN_CODE, STATUS_CODE
from everytick.domain.fired import Fired, FiredRun
from everytick.domain.needs import needs_in
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.steps import failed_at
from everytick.errors import NotFound
from everytick.stores.postgres import rows
from everytick.stores.postgres.base import Base, columns, occurrence_key
from everytick.stores.postgres.door import Connection, patiently
from everytick.stores.sql.rows import write_overrides
from everytick.stores.sql.verbs.holding import held_job, wake
from everytick.stores.storing_rules import own_overrides

_WELL = (OccurrenceStatus.COMPLETED, OccurrenceStatus.COMPLETED_WITH_ERRORS)


class Recording(Base):
    """Runs that began without this store."""

    @patiently
    async def record(self, job_id: str, fired: Fired) -> Sequence[int | None]:
        """Write down what was fired without this store; return the handle of each run, None where another is there."""
        async with self._door.transaction() as db:
            # Before the job is locked, as in every verb: two transactions may write one text at once.
            await db.execute(self._sql.add_needs, await self._needs_of(db, job_id, fired.runs))
            runner = self._runner(db)
            job = (await runner.run(partial(held_job, self._q, job_id)))["job_key"]
            now = await db.fetchval(self._sql.now)
            watermark = await db.fetchval(self._sql.watermark_of, job)
            new: list[FiredRun] = []
            handles = [await self._record(db, job, run, now, new) for run in fired.runs]
            spans = [
                (job, STATUS_CODE[each.status], str(each.why), rows.text(each.detail), each.after, each.through,
                 each.version, each.count)
                for each in fired.spans if each.after >= watermark
            ]  # fmt: skip
            if spans:
                await db.execute(self._sql.add_spans, *columns(spans, 8))
            ended = [run for _, _, run in fired.ends(handles)]
            through = fired.through if watermark >= fired.after else watermark
            begun = sum(1 for run in new if run.ended_at is not None and run.started_at is not None)
            failure = next((run.failure for run in reversed(ended) if run.failure is not None), None)
            last = _end(ended[-1]) if ended else [None] * 4
            failed = failed_at(row for run in new for row in run.rows)
            await db.execute(self._sql.record_watermark, job, through, *last, begun, rows.text(failure), failed)
            for run in [run for run in ended if run.creation.status in _WELL][-2:]:
                await db.execute(self._sql.record_success, job, *_end(run))
            for owner in {run.owner for run in fired.runs if run.owner is not None}:
                # Like a claim it is a sign of life: others must not take its owner for dead at once.
                await db.execute(self._sql.beat, owner, None)
            await runner.run(partial(wake, self._q, job, now))
        return handles

    async def _needs_of(self, db: Connection, job_id: str, runs: Sequence[FiredRun]) -> list[str]:
        """Return the texts of needs that these runs have."""
        job = await db.fetchval(self._sql.job_key, job_id)
        if job is None:
            raise NotFound("job", job_id)
        found: set[str] = set()
        for run in runs:
            defined = (await self._definition(db, job, run.creation.version)).job
            own = defined.settings.overridden_by(own_overrides(run.creation, defined.settings))
            found.add(needs_in(defined.labels, own.queue))
        return sorted(found)

    async def _record(self, db: Connection, job: int, run: FiredRun, now: datetime, new: list[FiredRun]) -> int | None:
        """Return the key of what is here of the run, or None where that is another's; what is new here joins `new`."""
        made = run.creation
        defined = (await self._definition(db, job, made.version)).job
        own = defined.settings
        given = own_overrides(made, own)
        overrides, payload = write_overrides(given)
        own = own.overridden_by(given)
        seq = await db.fetchval(
            self._sql.record_occurrence, occurrence_key(made.id), job, made.version, made.scheduled_for,
            STATUS_CODE[made.status], CAUSE_CODE[made.cause], made.late, made.covers_after, made.covers_through,
            made.line_at, made.ready_at, run.started_at, run.ended_at, rows.text(run.error), overrides, payload,
            rows.text(run.reason), own.priority, needs_in(defined.labels, own.queue), now, run.owner, run.fence,
            run.number, run.claimed_at, run.lost, run.superseded_by_next, rows.write_timeout(own.execution_timeout),
            run.token, run.node,
        )  # fmt: skip
        if seq is None:
            known: int | None = await db.fetchval(
                self._sql.recorded_before, occurrence_key(made.id), rows.text(run.reason)
            )
            return known
        new.append(run)
        if run.report_due:
            await db.execute(self._sql.record_report, run.ended_at, seq)
        for row in run.rows:
            state = row.run
            await db.execute(
                self._sql.record_run, seq, row.task, RUN_CODE[state.status], state.attempts, state.retries,
                None if state.last is None else ATTEMPT_CODE[state.last], state.out_of_time, state.resume_at,
                state.started_at, state.attempt_started_at, state.ended_at, rows.text(state.error), state.because_of,
                None if state.result is None else rows.text(state.result.text), rows.write_waits(state.waits),
            )  # fmt: skip
            if row.attempt is not None:
                tried = (seq, row.task, row.number, ATTEMPT_CODE[row.attempt], row.started_at, row.ended_at)
                await db.execute(self._sql.record_attempt, *tried, rows.text(row.error), run.node)
        return int(seq)


def _end(run: FiredRun) -> tuple[datetime, datetime | None, datetime | None, str]:
    """An end as a job remembers it."""
    return run.creation.scheduled_for, run.started_at, run.ended_at, occurrence_key(run.creation.id)
