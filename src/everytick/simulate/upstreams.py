"""depends_on in a simulation: what the lanes of other jobs say, as a store would have it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everytick.domain.snapshots import Dependence, InLine, Upstream, UpstreamRun
from everytick.domain.statuses import OccurrenceStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from everytick.simulate.lanes import Lane, Run

_S = OccurrenceStatus


def connect(lanes: Iterable[Lane], known: Iterable[Dependence | None]) -> None:
    """Let each lane know the lanes on which it depends, beside what was known of those before."""
    pairs = list(zip(lanes, known, strict=True))
    by_id = {lane.job.id: lane for lane, _ in pairs}
    for lane, before in pairs:
        if before is None:
            continue
        lane.dependence = before
        lane.needs = {each.name: by_id[each.job_id] for each in before.upstreams if each.job_id in by_id}
        for needed in lane.needs.values():
            needed.dependents.append(lane)
        times = {each.id: each for each in before.in_line}
        for run in lane.waiting:
            if run.id in times:
                run.created_at, run.instant = times[run.id].created_at, times[run.id].instant


def dependence(lane: Lane, before: Dependence, shown: Sequence[Run]) -> Dependence:
    """Return what the plan of a lane must know of others now."""
    in_line = tuple(InLine(run.id, run.created_at, run.instant) for run in shown)
    instants = sorted({each.instant for each in in_line})
    alike = {each.job for each in lane.job.settings.depends_on if each.within is None}
    return Dependence(
        tuple(
            _upstream(each, lane.needs[each.name], instants if each.name in alike else ())
            if each.name in lane.needs
            else each
            for each in before.upstreams
        ),
        in_line,
    )


def _upstream(before: Upstream, lane: Lane, instants: Sequence[datetime]) -> Upstream:
    earlier = {each.instant: each for each in before.runs}
    runs = tuple(_run(earlier.get(instant, UpstreamRun(instant)), lane) for instant in instants)
    return replace(before, watermark=lane.watermark, last_success=lane.last_success, runs=runs)


def _run(before: UpstreamRun, lane: Lane) -> UpstreamRun:
    """Return what became of an instant in the simulation, or before it."""
    instant = before.instant
    if before.succeeded_at is not None or instant in lane.succeeded_for:
        return UpstreamRun(instant, before.succeeded_at or lane.succeeded_for[instant], False, _S.COMPLETED)
    found = next((run for run in (*lane.busy, *lane.waiting) if run.instant == instant), None)
    if found is None:
        return replace(before, is_active=False)
    return UpstreamRun(instant, None, True, _S.RUNNING if found.is_running else _S.PENDING)
