"""Limits, brakes and the share of late runs in a simulation: which ready runs may start, and what is left out."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from everytick.domain.limits import Limits, Reach, named, reaches_of_job

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from everytick.domain.job import Job
    from everytick.domain.snapshots import JobSnapshot
    from everytick.simulate.simulated_job import Run


class Gate:
    """Knows how many runs of each limited reach go on, and when a brake ends.

    A limit counts what runs, and brakes hold as they are known now, those that come again included. Rates and soft
    releases are not simulated: `left_out` names them. `late` is how many runs may go on at once that are late.
    """

    def __init__(self, limits: Limits, late: int | None = None) -> None:
        self._reaches = {reach.reach.name: reach.reach for reach in limits.reaches if _is_simulated(reach.reach)}
        self._running: Counter[str] = Counter()
        self._late_most, self._late = late, 0
        self._names: dict[str, list[str]] = {}

    @property
    def is_needed(self) -> bool:
        """Whether anything is limited at all."""
        return bool(self._reaches) or self._late_most is not None

    def may_start(self, run: Run, now: datetime) -> bool:
        """Whether no brake holds for it, and every reach of it has room."""
        if run.in_share and self._late_most is not None and self._late >= self._late_most:
            return False
        return all(self._has_room(self._reaches[name], now) for name in self._reaches_of(run))

    def _has_room(self, reach: Reach, now: datetime) -> bool:
        if reach.brake(now) is not None:
            return False
        most = None if reach.limit is None else reach.limit.most
        return most is None or self._running[reach.name] < most

    def began(self, run: Run) -> None:
        """Count a run that starts."""
        self._late += run.in_share
        for name in self._reaches_of(run):
            self._running[name] += 1

    def ended(self, run: Run) -> None:
        """Count a run that goes on no more."""
        self._late -= run.in_share
        for name in self._reaches_of(run):
            self._running[name] -= 1

    def opens_at(self, now: datetime) -> datetime | None:
        """Return when the first brake ends that holds now."""
        held = (reach.brake(now) for reach in self._reaches.values())
        return min((brake.until for brake in held if brake is not None and brake.until is not None), default=None)

    def _reaches_of(self, run: Run) -> list[str]:
        job = run.simulated.job
        if job.id not in self._names:
            known = reaches_of_job(job.settings.tags, job.name, job.settings.queue)
            self._names[job.id] = [name for name in known if name in self._reaches]
        return self._names[job.id]


def _is_simulated(reach: Reach) -> bool:
    return bool(reach.brakes) or (reach.limit is not None and reach.limit.most is not None)


def left_out(limits: Limits, jobs: Sequence[Job], snapshots: Iterable[JobSnapshot]) -> list[str]:
    """Return what the simulation does not know, each with the jobs that it concerns."""
    sentences = []
    for record in limits.reaches:
        reach, rates = record.reach, []
        if reach.limit is not None and reach.limit.rate is not None:
            rates.append(f"the rate {reach.limit.rate} of {named(reach.name)}")
        if reach.brakes or reach.release is not None:
            rates.append(f"the soft release of {named(reach.name)} after a brake")
        names = [job.name for job in jobs if reach.name in _reach_names(job)]
        sentences += [f"{what}: {', '.join(names)}" for what in rates if names]
    names_of = {job.id: job.name for job in jobs}
    seen = [snapshot for snapshot in snapshots if snapshot.job_id in names_of]
    tried = [names_of[snapshot.job_id] for snapshot in seen if snapshot.editions[-1].rollout is not None]
    filled = [names_of[snapshot.job_id] for snapshot in seen if snapshot.backfill is not None]
    sentences += [f"the outcomes of a rollout, which stays in its stage: {', '.join(tried)}"] if tried else []
    return sentences + ([f"an open backfill: {', '.join(filled)}"] if filled else [])


def _reach_names(job: Job) -> list[str]:
    return reaches_of_job(job.settings.tags, job.name, job.settings.queue)
