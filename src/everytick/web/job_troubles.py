"""Which jobs need a look, and why: found in one way for the page Now and for the list of jobs.

While no node lives, nothing is late and nothing overruns: the cause is that no node lives, and it is told once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.domain.nodes import unknown_targets, unmet_by_need
from everytick.domain.statuses import OccurrenceStatus
from everytick.web.job_standing import late_by, overruns

if TYPE_CHECKING:
    from datetime import datetime

    from everytick.domain.job import Job
    from everytick.domain.questions import Glance
    from everytick.web.now_board import FleetState


def late_runs(fleet: FleetState) -> dict[str, list[Glance]]:
    """Return what waits or began late and has not ended, by job, the oldest first."""
    found: dict[str, list[Glance]] = {}
    for run in fleet.active if fleet.living else ():
        is_tried_again = run.status is OccurrenceStatus.AWAITING_RETRY and run.started_at is None
        if run.job_id in fleet.records and not is_tried_again and late_by(run, fleet.now):
            found.setdefault(run.job_id, []).append(run)
    return found


def overrunning(fleet: FleetState) -> dict[str, Glance]:
    """Return the oldest run of each job of which a run takes far longer than usual."""
    found: dict[str, Glance] = {}
    for run in fleet.active if fleet.living else ():
        if run.job_id in fleet.records and overruns(run, fleet.lengths.get(run.job_id), fleet.now):
            found.setdefault(run.job_id, run)
    return found


def unplanned(fleet: FleetState) -> dict[str, datetime]:
    """Return since when jobs are due for longer than their grace, though no node has planned them."""
    if not fleet.living:
        return {}
    elsewhere = {job.id for jobs in without_node(fleet).values() for job in jobs}
    return {
        id_: record.next_run
        for id_, record in fleet.records.items()
        if record.next_run is not None
        and record.next_run + record.job.settings.grace < fleet.now
        and record.job.enabled
        and record.pause is None
        and id_ not in fleet.parked
        and id_ not in elsewhere
    }


def without_node(fleet: FleetState) -> dict[str, list[Job]]:
    """Return the jobs that no living node can run, by the reason. Only jobs in doubt are looked at."""
    facts = [node.facts for node in fleet.living if node.facts is not None]
    named = {id_ for told_by in facts for id_, _ in told_by.unknown_targets}
    doubted = sorted((fleet.records[id_].job for id_ in named if id_ in fleet.records), key=lambda job: job.name)
    found, unknown = unmet_by_need(fleet.needs, facts, fleet.now), unknown_targets(doubted, facts)
    if unknown:
        found = {why: [job for job in jobs if job.name not in unknown] for why, jobs in found.items()}
    for job in doubted:
        if job.name in unknown:
            found.setdefault(unknown[job.name], []).append(job)
    return found


def not_run(fleet: FleetState) -> dict[str, list[Job]]:
    """Return the jobs that are not planned, and those that no living node can run, by the reason."""
    by_cause: dict[str, list[Job]] = {}
    for id_, why in fleet.parked.items():
        by_cause.setdefault(why, []).append(fleet.records[id_].job)
    for why, jobs in without_node(fleet).items():
        left = [job for job in jobs if job.id not in fleet.parked] if fleet.parked else jobs
        if left:
            by_cause.setdefault(f"no live node can run it: {why}", []).extend(left)
    return by_cause
