"""depends_on in a simulation: what one simulated job knows of others, as a store would tell it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everytick.domain.snapshots import Dependence, InLine, Upstream, UpstreamRun
from everytick.domain.statuses import OccurrenceStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from everytick.simulate.simulated_job import Run, SimulatedJob

_S = OccurrenceStatus


def connect(simulated_jobs: Iterable[SimulatedJob], known: Iterable[Dependence | None]) -> None:
    """Let each job know the jobs on which it depends, beside what was known of those before."""
    pairs = list(zip(simulated_jobs, known, strict=True))
    by_id = {simulated.job.id: simulated for simulated, _ in pairs}
    for simulated, before in pairs:
        if before is None:
            continue
        simulated.dependence = before
        simulated.needs = {each.name: by_id[each.job_id] for each in before.upstreams if each.job_id in by_id}
        for needed in simulated.needs.values():
            needed.dependents.append(simulated)
        times = {each.id: each for each in before.in_line}
        for run in simulated.waiting:
            if run.id in times:
                run.created_at, run.instant = times[run.id].created_at, times[run.id].instant


def dependence(simulated: SimulatedJob, before: Dependence, shown: Sequence[Run]) -> Dependence:
    """Return what the plan of a job must know of others now."""
    in_line = tuple(InLine(run.id, run.created_at, run.instant) for run in shown)
    instants = sorted({each.instant for each in in_line})
    alike = {each.job for each in simulated.job.settings.depends_on if each.within is None}
    return Dependence(
        tuple(
            _upstream(each, simulated.needs[each.name], instants if each.name in alike else ())
            if each.name in simulated.needs
            else each
            for each in before.upstreams
        ),
        in_line,
    )


def _upstream(before: Upstream, simulated: SimulatedJob, instants: Sequence[datetime]) -> Upstream:
    earlier = {each.instant: each for each in before.runs}
    runs = tuple(_run(earlier.get(instant, UpstreamRun(instant)), simulated) for instant in instants)
    return replace(before, watermark=simulated.watermark, last_success=simulated.last_success, runs=runs)


def _run(before: UpstreamRun, simulated: SimulatedJob) -> UpstreamRun:
    """Return what became of an instant in the simulation, or before it."""
    instant = before.instant
    if before.succeeded_at is not None or instant in simulated.succeeded_for:
        return UpstreamRun(instant, before.succeeded_at or simulated.succeeded_for[instant], False, _S.COMPLETED)
    found = next((run for run in (*simulated.busy, *simulated.waiting) if run.instant == instant), None)
    if found is None:
        return replace(before, is_active=False)
    return UpstreamRun(instant, None, True, _S.RUNNING if found.is_running else _S.PENDING)
