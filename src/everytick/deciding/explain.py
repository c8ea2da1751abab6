"""explain: what became of one instant of a job, or will become of it, and why.

What is past is told from what was stored; what is to come from the planner itself, run on
the job as it stands now. Nothing is decided or written here.
"""

from dataclasses import replace
from datetime import timedelta

from everytick.deciding.explain_coming import adjusted, held_by_open_pause, to_come, told_late
from everytick.deciding.explain_stored import stored
from everytick.deciding.explanation import Evidence, Explanation, Verdict, answer, at_the_time, neighbours, set_by_hand
from everytick.deciding.unnamed_instants import TakenBy, names, why_unnamed
from everytick.domain.durations import MICROSECOND
from everytick.domain.schedule import waits_for_end
from everytick.domain.texts import JOB_AHEAD, NOTHING_PLANNED
from everytick.domain.upcoming import edition_in_force, editions_to_come

_AHEAD = timedelta(minutes=1)

_OF_SCHEDULE = {
    TakenBy.WINDOW: Verdict.OUTSIDE_WINDOW,
    TakenBy.CALENDAR: Verdict.EXCLUDED,
    TakenBy.MOVED: Verdict.MOVED_BY_CLOCK,
    TakenBy.DROPPED: Verdict.DROPPED_BY_CLOCK,
}


def explain(evidence: Evidence) -> Explanation:
    """Say what became of the instant, or will; the order of these lines is the order of belief.

    What was stored about it comes first, then what its schedule says of it, then what the
    planner would decide.
    """
    explanation = stored(evidence)
    if explanation is None:
        explanation = adjusted(evidence) or held_by_open_pause(evidence) or _unnamed(evidence)
    if explanation is None:
        explanation = told_late(evidence) if evidence.at <= evidence.now else to_come(evidence)
    return _said_parked(evidence, _with_promises(evidence, _said_ahead(evidence, _said_version(evidence, explanation))))


def _unnamed(evidence: Evidence) -> Explanation | None:
    """Return why the schedule does not name it; None if it does, or if a person set this time by hand."""
    snapshot, at = evidence.snapshot, evidence.at
    job, schedule = at_the_time(evidence)
    if names(schedule, at) or at in set_by_hand(snapshot):
        return None
    unnamed = why_unnamed(schedule, at)
    if unnamed is not None:
        said = f"it does not run: {unnamed.text}" + (f", at {unnamed.moved_to.isoformat()}" if unnamed.moved_to else "")
        return answer(evidence, _OF_SCHEDULE[unnamed.taken], said, moved_to=unnamed.moved_to)
    said = f"the schedule ({job.schedule.describe()}) names no such instant"
    if job.version > 1 and job.updated_at is not None and at <= job.updated_at:
        said += f", by version {job.version} of its definition, the oldest at hand"
    if waits_for_end(job.schedule) and snapshot.busy_count:
        said = "the next instant follows from the end of the occurrence that is not over yet"
    near = [instant.isoformat() for instant in neighbours(schedule, at) if instant is not None]
    return answer(evidence, Verdict.NOT_NAMED, f"{said}; the nearest are {' and '.join(near)}" if near else said)


def _said_version(evidence: Evidence, explanation: Explanation) -> Explanation:
    """Add the version that will decide a future instant, if that version is not in force yet."""
    editions, now = evidence.snapshot.editions, evidence.now
    later = editions_to_come(editions, now) if evidence.at > now else []
    if not later:
        return explanation
    by = edition_in_force(editions, evidence.at - MICROSECOND)
    if by in later:
        assert by.in_force_after is not None, "it is to come"
        said = f"by version {by.job.version}, which comes into force after {by.in_force_after.isoformat()}"
        said += "" if by.follows is None else f", at the end of the window of version {by.follows}"
    else:
        next_, moment = later[0].job.version, later[0].in_force_after
        assert moment is not None, "it is to come"
        said = f"by version {by.job.version}; version {next_} comes into force after {moment.isoformat()}"
    return replace(explanation, text=f"{explanation.text}; {said}")


def _with_promises(evidence: Evidence, explanation: Explanation) -> Explanation:
    """Add the promises that were broken for the instant, and those that are likely to be."""
    if not evidence.breaches and not evidence.forecasts:
        return explanation
    told = [f"{breach.kind} was broken: it was promised by {breach.due_at.isoformat()}" for breach in evidence.breaches]
    told += [f"it {forecast}" for forecast in evidence.forecasts]
    text = "; ".join((explanation.text, *told))
    return replace(explanation, text=text, breaches=evidence.breaches, forecasts=evidence.forecasts)


def _said_parked(evidence: Evidence, explanation: Explanation) -> Explanation:
    """Add to an undecided instant why the job is not planned now."""
    if not evidence.parked_reason or explanation.occurrence is not None or evidence.at <= evidence.snapshot.watermark:
        return explanation
    return replace(explanation, text=f"{explanation.text}; {NOTHING_PLANNED}{evidence.parked_reason}")


def _said_ahead(evidence: Evidence, explanation: Explanation) -> Explanation:
    """Add to a future instant that the store's clock was ahead when the job was planned."""
    watermark, name = evidence.snapshot.watermark, explanation.job
    if evidence.at <= evidence.now or watermark <= evidence.now + _AHEAD:
        return explanation
    return replace(
        explanation, text=f"{explanation.text}; {JOB_AHEAD.format(name=name, watermark=watermark.isoformat())}"
    )
