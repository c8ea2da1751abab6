"""Rollouts: which occurrences run the version on trial, and what the outcomes of a stage decide.

Nothing is remembered: each plan counts anew. What it decides is an edit like a person's, which the node asks the store
for once the plan is committed; the version that is expected there makes it happen once.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice, takewhile

from everytick.deciding.newcomers import Newcomer
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause
from everytick.domain.rollouts import RolloutVerdict, TrialCounts, Way
from everytick.domain.snapshots import Edition, JobSnapshot
from everytick.domain.upcoming import bound_schedule, is_counted, trial_of

ASKED_AGAIN = timedelta(seconds=5)
"""A verdict that no node has stored is decided again after this time: the node that had it may have died."""

_SHOWN = 3
"""Instants of a version on trial that one sentence names."""

_NONE = TrialCounts()


def tried_by(trial: Edition | None, newcomer: Newcomer) -> Edition | None:
    """Return the version on trial if this occurrence runs it.

    Instants and triggers after the stage began do. What people repeat or fill in runs what is in force.
    """
    if trial is None or trial.rollout is None or not is_counted(trial, newcomer.cause, newcomer.scheduled_for):
        return None
    return trial if trial.rollout.takes(newcomer.id) else None


def where_to(snapshot: JobSnapshot, error: str = "") -> RolloutVerdict | None:
    """Return where the rollout goes, or None while its stage lasts. `error` says why the version cannot be planned."""
    trial = trial_of(snapshot.editions)
    if trial is None or trial.rollout is None:
        return None
    rule, counts, version = trial.rollout, snapshot.trial or _NONE, trial.job.version
    if error:
        return RolloutVerdict(Way.BACK, version, f"it cannot be planned: {error}")
    if rule.dry_run:
        done = f"{counts.created} occurrences were decided in the dry run"
        return RolloutVerdict(Way.ON, version, done) if counts.created >= rule.dry_run else None
    ended = counts.well + counts.failed
    said = f"{counts.failed} of {ended} occurrences failed with {rule.stage}"
    if counts.failed > rule.max_failures:
        return RolloutVerdict(Way.BACK, version, f"{said}, and {rule.max_failures} may")
    return RolloutVerdict(Way.ON, version, said) if ended >= rule.after else None


def trial_words(trial: Edition) -> str:
    """Return what is said of an occurrence that runs the version on trial."""
    assert trial.rollout is not None, "it is on trial"
    return f"tries version {trial.job.version} ({trial.rollout.stage})"


def dry_words(snapshot: JobSnapshot, trial: Edition, newcomer: Newcomer, now: datetime) -> str:
    """Return what the version on trial would have done with an occurrence that runs as before."""
    job, instant = trial.job, newcomer.covers_through
    would = f"version {job.version} would have"
    if newcomer.cause is Cause.SCHEDULE:
        schedule = bound_schedule(snapshot, job, snapshot.watermark, idle=True)
        if schedule.last_at(instant) != instant:
            coming = takewhile(lambda at: at <= now, _instants(snapshot, job))
            others = [at.isoformat() for at in islice(coming, _SHOWN)]
            return f"{would} run at {' and '.join(others)}" if others else f"{would} not run here"
    return f"{would} run {', '.join(task.name for task in job.tasks)}"


def _instants(snapshot: JobSnapshot, job: Job) -> Iterator[datetime]:
    schedule, at = bound_schedule(snapshot, job, snapshot.watermark, idle=True), snapshot.watermark
    while (instant := schedule.next_after(at)) is not None:
        yield instant
        at = instant
