"""Guarded operations: who has to agree before one is carried out, and what waits for a second person."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everytick.app.store_access import StoreAccess
from everytick.errors import Conflict, NeedsApproval, NeedsConfirmation, NotFound, VersionConflict, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from everytick.deciding.guards import Cost
    from everytick.domain.changes import Edit
    from everytick.domain.job import Job
    from everytick.domain.proposals import Proposal
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord

_ID_CHARACTERS = 8
"""Enough to tell the open proposals of a store apart, and short enough to type."""


class Guarding(StoreAccess):
    """What guards operations on protected jobs, and those that create many runs.

    `confirm_above` is how many runs one operation may create without a confirmation.
    """

    confirm_above: int

    async def proposals(self) -> list[Proposal]:
        """Return the changes that wait for the approval of a second person, oldest first."""
        return (await self.jobs_and_proposals())[1]

    async def jobs_and_proposals(self) -> tuple[list[JobRecord], list[Proposal]]:
        """Return every job in service, by name, and every proposal, oldest first: one question to the store."""
        from everytick.app.proposals import read_proposal
        from everytick.domain.proposals import OWNER

        records = await (await self._opened()).list()
        found = [read_proposal(record.job) for record in records if record.job.owner == OWNER]
        jobs = [record for record in records if record.job.owner != OWNER]
        return jobs, sorted(found, key=lambda proposal: proposal.at)

    async def approve(self, proposal_id: str, *, by: str | None = None) -> Proposal:
        """Carry out what another person has proposed, and return it. All of it is one transaction.

        It is refused to the one who proposed it, after its time, and if a job that it changes was
        edited since.
        """
        from everytick.deciding.guards import why_not_approved
        from everytick.domain.changes import Remove

        store, name = await self._opened(), self._by(by)
        proposal, version = await _stored(store, proposal_id)
        if (reason := why_not_approved(proposal, name, await store.now())) is not None:
            raise Conflict(f"proposal {shown(proposal.id)} is not approved: {reason}")
        edits = [*proposal.edits, Remove(proposal.name, expected=version)]
        self._learned()
        try:
            await store.apply(edits, f"{proposal.by}, approved by {name}")
        except VersionConflict as conflict:
            raise Conflict(
                f"proposal {shown(proposal.id)} is not approved: job '{shown(conflict.job)}' is at version "
                f"{conflict.found}, and it was made for version {conflict.expected}: propose it again"
            ) from conflict
        self._learned()
        return proposal

    async def reject(self, proposal_id: str, *, by: str | None = None) -> Proposal:
        """Drop a proposal and return it; the one who proposed it may do so too."""
        from everytick.domain.changes import Remove

        store = await self._opened()
        proposal, version = await _stored(store, proposal_id)
        await store.apply([Remove(proposal.name, expected=version)], self._by(by))
        return proposal

    async def _agree(
        self,
        store: AnyStore,
        what: str,
        jobs: Collection[Job],
        edits: Sequence[Edit],
        *,
        created: Mapping[str, int] | None = None,
        confirmed: bool,
        by: str,
    ) -> None:
        """Return if the operation may be carried out now. Else raise, with a proposal if a second person must agree.

        `jobs` are the stored jobs that it touches, `edits` are its changes, and `created` says by job id how many
        runs it creates at once.
        """
        cost = await self._cost_for_two(store, what, jobs, created or {}, confirmed=confirmed)
        if cost is None:
            return
        proposal = await self._propose(store, what, cost, jobs, edits, by)
        raise NeedsApproval(what, proposal.id, by, proposal.expires_at)

    async def _cost_for_two(
        self,
        store: AnyStore,
        what: str,
        jobs: Collection[Job],
        created: Mapping[str, int],
        *,
        more: bool = False,
        confirmed: bool,
    ) -> Cost | None:
        """Return the cost of an operation that a second person must agree to, None if it may be carried out now.

        Raise NeedsConfirmation without `confirmed`.
        """
        from everytick.deciding.guards import Consent, Cost, judge

        counts = {id_: count for id_, count in created.items() if count}
        cost = Cost(sum(counts.values()), None, more)
        needed = judge(jobs, cost, self.confirm_above)
        if needed.consent is Consent.AUTO or (confirmed and needed.consent is Consent.CONFIRM):
            return None
        cost = await _with_lengths(store, counts, cost)
        if not confirmed:
            reasons = judge(jobs, cost, self.confirm_above).reasons
            protected = [job.name for job in jobs if job.is_protected]
            raise NeedsConfirmation(what, reasons, str(cost), protected, needed.consent is Consent.TWO_PEOPLE)
        return cost

    async def _propose(
        self, store: AnyStore, what: str, cost: Cost, jobs: Collection[Job], edits: Sequence[Edit], by: str
    ) -> Proposal:
        """Store the changes as a proposal. Proposals whose time is over are removed with it."""
        from uuid import uuid4

        from everytick.app.proposals import proposal_job
        from everytick.domain.changes import Put, Remove
        from everytick.domain.proposals import LASTS, Proposal

        now = await store.now()
        versions = {job.name: job.version for job in jobs}
        seen = tuple(
            edit if edit.expected is not None else replace(edit, expected=versions.get(edit.name)) for edit in edits
        )
        touched = tuple(sorted({edit.name for edit in edits}))
        said = f"{what} ({cost})" if cost.runs else what
        proposal = Proposal(uuid4().hex[:_ID_CHARACTERS], said, touched, by, now, now + LASTS, seen)
        over = [Remove(proposal.name) for proposal in await self.proposals() if proposal.expires_at <= now]
        await store.apply([*over, Put(proposal_job(proposal), 0)], by)
        return proposal


async def _stored(store: AnyStore, proposal_id: str) -> tuple[Proposal, int]:
    """Return the proposal of this id, and the version of the job that holds it."""
    from everytick.app.proposals import read_proposal
    from everytick.domain.ids import job_id
    from everytick.domain.proposals import OWNER, PREFIX

    id_ = job_id(PREFIX + proposal_id)
    record = (await store.get([id_])).get(id_)
    if record is None or record.removed_at is not None or record.job.owner != OWNER:
        raise NotFound("proposal", proposal_id)
    return read_proposal(record.job), record.job.version


async def _with_lengths(store: AnyStore, created: Mapping[str, int], cost: Cost) -> Cost:
    """Return the cost with the time that the runs take, by the usual length of each job."""
    from datetime import timedelta

    from everytick.stores.usual_lengths import usual_length

    busy = timedelta(0)
    for id_, count in created.items():
        length = await usual_length(store, id_)
        if length is None:
            return cost
        busy += count * length
    return replace(cost, busy=busy)


def created_by(added: Collection[Job], now: datetime) -> dict[str, int]:
    """Return how many runs these new jobs create as soon as they are stored, by job id."""
    from everytick.deciding.guards import created_at_once
    from everytick.domain.policies import FirstSight
    from everytick.domain.snapshots import Edition, JobSnapshot
    from everytick.stores.storing_rules import first_watermark

    late = [job for job in added if job.settings.on_create.begin is not FirstSight.NEXT]
    snapshots = {job.id: JobSnapshot(job.id, 1, 1, first_watermark(job, now), (Edition(job),)) for job in late}
    return {id_: created_at_once(None, snapshot, now) for id_, snapshot in snapshots.items()}
