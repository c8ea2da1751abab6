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
        simulated.needs = {
            upstream.name: by_id[upstream.job_id] for upstream in before.upstreams if upstream.job_id in by_id
        }
        for needed in simulated.needs.values():
            needed.dependents.append(simulated)
        times = {place.id: place for place in before.in_line}
        for run in simulated.waiting:
            if run.id in times:
                run.created_at, run.instant = times[run.id].created_at, times[run.id].instant


def dependence(simulated: SimulatedJob, before: Dependence, shown: Sequence[Run]) -> Dependence:
    """Return what the plan of a job must know of others now."""
    in_line = tuple(InLine(run.id, run.created_at, run.instant) for run in shown)
    instants = sorted({place.instant for place in in_line})
    alike = {dependency.job for dependency in simulated.job.settings.depends_on if dependency.within is None}
    return Dependence(
        tuple(
            _upstream(upstream, simulated.needs[upstream.name], instants if upstream.name in alike else ())
            if upstream.name in simulated.needs
            else upstream
            for upstream in before.upstreams
        ),
        in_line,
    )


def _upstream(before: Upstream, simulated: SimulatedJob, instants: Sequence[datetime]) -> Upstream:
    earlier = {run.instant: run for run in before.runs}
    runs = tuple(_run(earlier.get(instant, UpstreamRun(instant)), simulated) for instant in instants)
    return replace(before, watermark=simulated.watermark, last_success=simulated.last_success, runs=runs)


def _run(before: UpstreamRun, simulated: SimulatedJob) -> UpstreamRun:
    """Return what became of an instant in the simulation, or before it."""
    instant = before.instant
    if before.succeeded_at is not None or instant in simulated.succeeded_for:
        return UpstreamRun(instant, before.succeeded_at or simulated.succeeded_for[instant], False, _S.COMPLETED)
    run = next((run for run in (*simulated.busy, *simulated.waiting) if run.instant == instant), None)
    if run is None:
        return replace(before, is_active=False)
    return UpstreamRun(instant, None, True, _S.RUNNING if run.is_running else _S.PENDING)
