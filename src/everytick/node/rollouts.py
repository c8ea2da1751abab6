"""Rollouts: stores what plans have decided about versions on trial, and tells of it. It decides nothing."""

import asyncio
import logging
from datetime import datetime

from everytick.domain.changes import Put
from everytick.domain.job import Job
from everytick.domain.rollouts import RolloutVerdict, Way
from everytick.domain.snapshots import Edition, JobSnapshot
from everytick.domain.upcoming import in_force, trial_of
from everytick.errors import Conflict, JobDisabled, NotFound
from everytick.node.events import Event, Happening, Listeners
from everytick.node.inbox import Planned
from everytick.node.notifier import Notifier
from everytick.stores.base import Commit
from everytick.stores.protocols import JobStore

_log = logging.getLogger("everytick.rollouts")

BY = "rollout"
"""Who wrote the versions that come of outcomes."""


class Rollouts:
    """Asks the store for the edit that a committed plan has decided.

    The edit names the version on trial. So of many nodes that ask one stores it, and none does after a person's edit.
    It has a loop of its own: no plan waits for an edit or for its notice.
    """

    def __init__(self, jobs: JobStore, notifier: Notifier, listeners: Listeners) -> None:
        self._jobs, self._notifier, self._listeners = jobs, notifier, listeners
        self._waiting: dict[tuple[str, int], tuple[JobSnapshot, RolloutVerdict, datetime]] = {}
        self._begun: tuple[str, int] | None = None
        """The job and the version of the verdict that is being stored."""
        self._has_some = asyncio.Event()

    def put(self, planned: Planned) -> None:
        """Store the verdicts of the plans that were committed, soon. Of one that waits, the newest is stored."""
        for snapshot, plan, answer in zip(planned.snapshots, planned.plans, planned.done.answers, strict=True):
            if plan.verdict is not None and answer is Commit.COMMITTED:
                place = snapshot.job_id, plan.verdict.version
                if place != self._begun:
                    self._waiting[place] = snapshot, plan.verdict, planned.batch.now
                    self._has_some.set()

    async def run(self) -> None:
        """Store verdicts as they come, until stopped."""
        while True:
            await self._has_some.wait()
            await self.settle()

    async def settle(self) -> None:
        """Store the verdicts that wait. One that cannot be stored is dropped: a plan decides it again in seconds."""
        while self._waiting:
            self._begun = next(iter(self._waiting))
            try:
                await self._store(*self._waiting.pop(self._begun))
            finally:
                self._begun = None
        self._has_some.clear()

    async def _store(self, snapshot: JobSnapshot, verdict: RolloutVerdict, now: datetime) -> None:
        trial = trial_of(snapshot.editions)
        assert trial is not None, f"version {verdict.version} is on trial"
        job = trial.job if verdict.way is Way.ON else in_force(snapshot.editions, now)
        is_over = verdict.way is Way.BACK or trial.rollout is None or trial.rollout.rest is None
        notice = await self._notifier.of_rollout(job, trial.job, verdict, now) if is_over else []
        try:
            stored, *_ = await self._jobs.apply([Put(job, verdict.version, verdict=verdict), *notice], BY)
        except (Conflict, NotFound, JobDisabled) as error:
            # Another node was first, or a person has edited the job or the one that sends its notices.
            text = "the rollout of version %d of job '%s' was not written: %s; the next plan goes by what is stored now"
            _log.info(text, verdict.version, job.name, error)
            return
        if stored.changed:
            self._tell(job, trial, verdict, stored.version, now)

    def _tell(self, job: Job, trial: Edition, verdict: RolloutVerdict, version: int, now: datetime) -> None:
        kind = Happening.ROLLED_BACK if verdict.way is Way.BACK else Happening.ROLLOUT_WENT_ON
        text = f"version {verdict.version}: {verdict.said}; {_next(trial, verdict, version)}"
        self._listeners.tell(Event(kind, now, job.name, text=text))


def _next(trial: Edition, verdict: RolloutVerdict, version: int) -> str:
    if verdict.way is Way.BACK:
        return f"what was in force before it stays, as version {version}"
    rest = None if trial.rollout is None else trial.rollout.rest
    return f"version {version} is in force" if rest is None else f"next is {rest.stage}, as version {version}"
