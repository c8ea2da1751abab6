"""explain: what became of one instant of a job, or will become of it, and why.

What is past is told from what was stored; what is to come from the planner itself, run on
the job as it stands now. Nothing is decided or written here.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum

from everytick.deciding.dependence import Unmet, unmet
from everytick.deciding.forecast import LikelyBreach
from everytick.deciding.plan import plan
from everytick.deciding.unnamed import Taken, moved_here, names, why_unnamed
from everytick.domain.decisions import Creation, Plan, Span, Why
from everytick.domain.ids import occurrence_id
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause, Occurrence
from everytick.domain.promises import Breach
from everytick.domain.schedule import Schedule, waits_for_end
from everytick.domain.snapshots import Edition, JobSnapshot, Missed, PausedSpan
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.texts import JOB_AHEAD
from everytick.domain.upcoming import TICK, bound_schedule, edition_in_force, editions_to_come, in_force, pause_at
from everytick.domain.values import value

_S = OccurrenceStatus
_AHEAD = timedelta(minutes=1)


class Verdict(StrEnum):
    """What became of an instant, in one word or two."""

    RAN = "ran"
    RUNNING = "running"
    WILL_RUN = "will run"
    WAITING_FOR_A_SLOT = "waiting for a slot"
    WAITING_IN_LINE = "waiting in line"
    WAITING_FOR_A_JOB = "waiting for another job"
    HELD_BACK = "held back by a limit or brake"
    UNKNOWN_TARGET = "no node can run it"
    NOT_DECIDED_YET = "not decided yet"
    CANCELED = "canceled"
    SUPERSEDED = "superseded"
    OVERLAP = "skipped by overlap"
    QUEUE_FULL = "queue full"
    ALREADY_SUCCESSFUL = "already successful"
    DEPENDENCY = "skipped by dependency"
    PAUSED = "paused"
    DISABLED = "disabled"
    REMOVED = "removed"
    SKIPPED_BY_HAND = "skipped by hand"
    MOVED_BY_HAND = "moved by hand"
    RESCHEDULED = "rescheduled"
    MISSED = "missed by strategy"
    COMPRESSED = "compressed into another"
    CUT_BY_CAP = "cut by the cap"
    OUTSIDE_WINDOW = "outside the window"
    EXCLUDED = "excluded by calendar"
    MOVED_BY_CLOCK = "moved by a clock change"
    DROPPED_BY_CLOCK = "dropped by a clock change"
    BEFORE_ITS_TIME = "before the job was known"
    FORGOTTEN = "forgotten"
    NOT_NAMED = "not named by the schedule"


_OF_SPAN = {
    Why.ADJUSTED: Verdict.SKIPPED_BY_HAND,
    Why.MOVED: Verdict.MOVED_BY_HAND,
    Why.RESCHEDULED: Verdict.RESCHEDULED,
    Why.DISABLED: Verdict.DISABLED,
    Why.PAUSED: Verdict.PAUSED,
    Why.NOT_LAST: Verdict.MISSED,
    Why.MISSED: Verdict.MISSED,
    Why.WINDOW: Verdict.MISSED,
    Why.COMPRESSED: Verdict.COMPRESSED,
    Why.CAP: Verdict.CUT_BY_CAP,
    Why.OVERLAP: Verdict.OVERLAP,
    Why.QUEUE_FULL: Verdict.QUEUE_FULL,
    Why.SUPERSEDED: Verdict.SUPERSEDED,
    Why.SUCCESSFUL: Verdict.ALREADY_SUCCESSFUL,
    Why.REMOVED: Verdict.REMOVED,
    Why.DEPENDENCY: Verdict.DEPENDENCY,
}

_OF_CAUSE = {
    Cause.TRIGGER: "it was triggered",
    Cause.REPLAY: "it is a replay",
    Cause.BACKFILL: "it was asked for as a backfill",
    Cause.CREATE: "on_create asked for it",
    Cause.RESTART: "a restart asked for it",
}

_OF_STATUS = {
    _S.PENDING: Verdict.WAITING_FOR_A_SLOT,
    _S.QUEUED: Verdict.WAITING_IN_LINE,
    _S.RUNNING: Verdict.RUNNING,
    _S.AWAITING_RETRY: Verdict.RUNNING,
    _S.SUPERSEDED: Verdict.SUPERSEDED,
}

_OF_SCHEDULE = {
    Taken.WINDOW: Verdict.OUTSIDE_WINDOW,
    Taken.CALENDAR: Verdict.EXCLUDED,
    Taken.MOVED: Verdict.MOVED_BY_CLOCK,
    Taken.DROPPED: Verdict.DROPPED_BY_CLOCK,
}


@value
class Evidence:
    """What is known about one instant of a job: its definitions, and what was stored about that instant.

    `definitions` are those at hand; the newest is always there. `older` are editions of before
    the snapshot's. `occurrences` stand at this very time, `spans` hold it. `refused` says why no
    living node can run the job, if that is so. `unmet` says that no node is up that could decide about it.
    `parked_reason` says why nothing of the job is planned now, if that is so. `breaches` are promises that were broken
    for this instant, and `forecasts` those that will be or may be. `held_back` says which limit or brake lets nothing
    of the job start now.
    """

    at: datetime
    now: datetime
    snapshot: JobSnapshot
    definitions: tuple[Job, ...]
    occurrences: tuple[Occurrence, ...] = ()
    spans: tuple[Span, ...] = ()
    removed_at: datetime | None = None
    removed_by: str = ""
    older: tuple[Edition, ...] = ()
    refused: str = ""
    unmet: bool = False
    parked_reason: str = ""
    breaches: tuple[Breach, ...] = ()
    forecasts: tuple[LikelyBreach, ...] = ()
    held_back: str = ""


@value(frozen=True)
class Explanation:
    """One answer, as a sentence and as data: the occurrence, span or pause that shows it is so.

    `breaches` and `forecasts` are promises that were broken for it, or are likely to be.
    `behind` is the occurrence that stood in the way, `moved_to` where the instant went;
    `previous` and `next` are the nearest instants that the schedule names.
    """

    job: str
    at: datetime
    verdict: Verdict
    text: str
    occurrence: Occurrence | None = None
    span: Span | None = None
    pause: PausedSpan | None = None
    behind: str | None = None
    moved_to: datetime | None = None
    previous: datetime | None = None
    next: datetime | None = None
    breaches: tuple[Breach, ...] = ()
    forecasts: tuple[LikelyBreach, ...] = ()

    def __str__(self) -> str:
        return self.text


def explain(evidence: Evidence) -> Explanation:
    """Say what became of the instant, or will; the order of these lines is the order of belief.

    What was stored about it comes first, then what its schedule says of it, then what the
    planner would decide.
    """
    found = _stored(evidence)
    if found is None:
        found = _adjusted(evidence) or _held_by_open_pause(evidence) or _unnamed(evidence)
    if found is None:
        found = _told_late(evidence) if evidence.at <= evidence.now else _to_come(evidence)
    return _with_promises(evidence, _said_parked(evidence, _said_ahead(evidence, _said_version(evidence, found))))


def _said_version(evidence: Evidence, found: Explanation) -> Explanation:
    """Add to what is said of a time to come which version says it, if one is still to come into force."""
    editions, now = evidence.snapshot.editions, evidence.now
    later = editions_to_come(editions, now) if evidence.at > now else []
    if not later:
        return found
    by = edition_in_force(editions, evidence.at - TICK)
    if by in later:
        assert by.in_force_after is not None, "it is to come"
        said = f"by version {by.job.version}, which comes into force after {by.in_force_after.isoformat()}"
        said += "" if by.follows is None else f", at the end of the window of version {by.follows}"
    else:
        next_, moment = later[0].job.version, later[0].in_force_after
        assert moment is not None, "it is to come"
        said = f"by version {by.job.version}; version {next_} comes into force after {moment.isoformat()}"
    return replace(found, text=f"{found.text}; {said}")


def _with_promises(evidence: Evidence, found: Explanation) -> Explanation:
    """Add the promises that were broken for the instant, and those that are likely to be."""
    if not evidence.breaches and not evidence.forecasts:
        return found
    told = [f"{each.kind} was broken: it was promised by {each.due_at.isoformat()}" for each in evidence.breaches]
    told += [f"it {each}" for each in evidence.forecasts]
    text = "; ".join((found.text, *told))
    return replace(found, text=text, breaches=evidence.breaches, forecasts=evidence.forecasts)


def _said_parked(evidence: Evidence, found: Explanation) -> Explanation:
    """Add to what is said of an instant that is not decided yet why no plan of the job is written now."""
    if not evidence.parked_reason or found.occurrence is not None or evidence.at <= evidence.snapshot.watermark:
        return found
    return replace(found, text=f"{found.text}; nothing of the job is planned now: {evidence.parked_reason}")


def _said_ahead(evidence: Evidence, found: Explanation) -> Explanation:
    """Add to what is said of a time to come that a clock was ahead, if the job was decided about by that clock."""
    watermark, name = evidence.snapshot.watermark, found.job
    if evidence.at <= evidence.now or watermark <= evidence.now + _AHEAD:
        return found
    return replace(found, text=f"{found.text}; {JOB_AHEAD.format(name=name, watermark=watermark.isoformat())}")


# ------------------------------------------------------------------------------------------------ what was stored


def _stored(evidence: Evidence) -> Explanation | None:
    """What an occurrence or a span says; of several occurrences the schedule's own speaks."""
    span = _span(evidence)
    own = occurrence_id(evidence.snapshot.job_id, evidence.at)
    ranked = sorted(evidence.occurrences, key=lambda each: (each.id != own, each.cause is not Cause.SCHEDULE, each.id))
    if ranked and (span is None or _is_instant(ranked[0])):
        return _of_occurrence(evidence, ranked[0])
    return None if span is None else _of_span(evidence, span)


def _is_instant(occurrence: Occurrence) -> bool:
    """Whether it stands for the instant itself, and not for a request that was made at the same moment."""
    return occurrence.cause in (Cause.SCHEDULE, Cause.BACKFILL)


def _span(evidence: Evidence) -> Span | None:
    """The span that holds the instant: it lies inside, and the schedule of its version names it."""
    known = {job.version: job for job in evidence.definitions}
    for span in reversed(evidence.spans):
        if span.after < evidence.at <= span.through:
            job = known.get(span.version)
            if evidence.at == span.through or job is None or names(job.bound(None), evidence.at):
                return span
    return None


def _of_occurrence(evidence: Evidence, found: Occurrence) -> Explanation:
    verdict, said = _verdict_of(evidence, found), _story_of(evidence, found)
    asked = "" if found.cause is Cause.SCHEDULE else f"; {_OF_CAUSE[found.cause]}"
    moved = _moved_here(evidence)
    behind = _behind(found.reason or "")
    if behind is None and verdict is Verdict.WAITING_IN_LINE:
        behind = next((each.id for each in evidence.snapshot.busy), None)
    return _answer(evidence, verdict, said + asked + (f"; {moved}" if moved else ""), occurrence=found, behind=behind)


def _verdict_of(evidence: Evidence, found: Occurrence) -> Verdict:
    if _is_only_asked_for(found):
        return Verdict.WILL_RUN if evidence.at > evidence.now else Verdict.NOT_DECIDED_YET
    if found.status is _S.PENDING and evidence.refused:
        return Verdict.UNKNOWN_TARGET
    if found.status is _S.QUEUED and _unmet(evidence, found) is not None:
        return Verdict.WAITING_FOR_A_JOB
    if found.status is _S.PENDING and evidence.held_back:
        return Verdict.HELD_BACK
    if found.status in _OF_STATUS:
        return _OF_STATUS[found.status]
    if found.status in (_S.SKIPPED, _S.MISSED):
        # What was skipped later than it was created says so in its error.
        return _of_reason(found.error or found.reason or "")
    return Verdict.CANCELED if found.started_at is None else Verdict.RAN


def _is_only_asked_for(found: Occurrence) -> bool:
    """Whether it is a request that no plan has answered."""
    return found.status is _S.PENDING and found.created_at is None and found.ready_at is None


def _unmet(evidence: Evidence, found: Occurrence) -> Unmet | None:
    """What one in line waits for, where its job depends on others."""
    snapshot = evidence.snapshot
    own = next((each for each in snapshot.waiting if each.id == found.id), None)
    return None if own is None else unmet(snapshot, own, evidence.now)


def _waits_for(missing: Unmet) -> str:
    return f"it waits until {missing.until.isoformat()} for what it depends {missing.said}"


def _story_of(evidence: Evidence, found: Occurrence) -> str:
    missing = _unmet(evidence, found) if found.status is _S.QUEUED else None
    match found.status:
        case _S.PENDING if _is_only_asked_for(found) and evidence.at > evidence.now:
            return f"it will run then as {found.id}"
        case _S.PENDING if _is_only_asked_for(found):
            return "no node has planned it yet"
        case _S.PENDING if found.ready_at is not None and found.ready_at > evidence.now:
            return f"it is pending and may start at {found.ready_at.isoformat()}"
        case _S.PENDING if evidence.refused:
            return f"it is pending, and no living node can run it: {evidence.refused}"
        case _S.PENDING if evidence.held_back:
            return f"it is pending and waits: {evidence.held_back}"
        case _S.PENDING:
            return "it is pending, and no node with a free slot of its queue has claimed it yet"
        case _S.QUEUED if missing is not None:
            return _waits_for(missing)
        case _S.QUEUED:
            return f"it waits in line ({found.reason})"
        case _S.RUNNING:
            return f"it runs since {_when(found.started_at)} on {found.owner}"
        case _S.AWAITING_RETRY:
            held_back = f", and then waits: {evidence.held_back}" if evidence.held_back else ""
            return f"it waits for a retry at {_when(found.ready_at)}{held_back}"
        case _S.SUPERSEDED:
            return f"it gave way before it ran: {found.error or found.reason}"
        case _S.SKIPPED | _S.MISSED:
            return f"it was {found.status}: {found.error or found.reason}"
    why = f" ({found.error})" if found.error else ""
    if found.started_at is None:
        return f"it was {found.status} before it started{why}"
    late = ", late" if found.late else ""
    return f"it ran as {found.id}, from {_when(found.started_at)} to {_when(found.ended_at)}{late}: {found.status}{why}"


def _of_reason(reason: str) -> Verdict:
    """The verdict of an entry that was asked for by hand and turned away; its reason begins with the word."""
    found = next((why for why in _OF_SPAN if reason == why or reason.startswith((f"{why},", f"{why} on "))), Why.MISSED)
    return _OF_SPAN[found]


def _of_span(evidence: Evidence, span: Span) -> Explanation:
    verdict, moved_to = _OF_SPAN[span.why], None
    said = _words(span.why, span.detail) + _why_not_begun(evidence, _behind(span.detail))
    if span.version != evidence.definitions[-1].version:
        said += f" (by version {span.version} of its definition)"
    if span.why in (Why.MOVED, Why.RESCHEDULED) and span.detail.startswith("to "):
        moved_to = datetime.fromisoformat(span.detail.removeprefix("to "))
    return _answer(evidence, verdict, said, span=span, behind=_behind(span.detail), moved_to=moved_to)


def _words(why: Why, detail: str) -> str:
    told = f" {detail}" if detail else ""
    match why:
        case Why.OVERLAP:
            return f"it was skipped, since the job was still busy: it came{told}"
        case Why.PAUSED:
            return f"it was skipped, since the job was paused{told}"
        case Why.ADJUSTED:
            return f"it was skipped by hand{told}"
        case Why.MOVED | Why.RESCHEDULED:
            return f"it was {why}{told}"
        case Why.NOT_LAST:
            return "it came late and was skipped: recovery execute_last keeps only the newest"
        case Why.MISSED if detail:
            return f"it was missed{told}: on_create if_matching_now makes up for nothing that came before"
        case Why.MISSED:
            return "it came late and was missed: recovery mark_as_missed runs nothing late"
        case Why.WINDOW:
            return "it came late and was skipped: it lay outside the bounds of recovery bounded_window"
        case Why.COMPRESSED:
            return f"it came late and was compressed{told}, which covers it"
        case Why.CAP:
            return "it came late and was cut: more were late than late_cap keeps"
        case Why.SUPERSEDED:
            return f"it was superseded{told}"
        case Why.QUEUE_FULL:
            return f"it was skipped, since the line was full: {detail}"
        case Why.SUCCESSFUL:
            return f"it was skipped, since the last success still counts: {detail}"
        case Why.DEPENDENCY:
            return f"it was skipped, since it depends{told}"
    return f"it was skipped: the job was {why}"


def _why_not_begun(evidence: Evidence, behind: str | None) -> str:
    """Say that the occurrence which stood in the way has not begun and cannot, if that is so."""
    waits = any(busy.id == behind and busy.status is _S.PENDING for busy in evidence.snapshot.busy)
    return (
        f"; that one has not begun, no living node can run it: {evidence.refused}" if waits and evidence.refused else ""
    )


def _behind(text: str) -> str | None:
    """The occurrence that a reason names."""
    found = text.rpartition("behind ")[2] if "behind " in text else ""
    return found.split()[0] if found.startswith("occ_") else None


# -------------------------------------------------------------------------------------- what the schedule says of it


def _unnamed(evidence: Evidence) -> Explanation | None:
    """Return why the schedule does not name it; None if it does, or if a person set this time by hand."""
    snapshot, at = evidence.snapshot, evidence.at
    job, schedule = _at_the_time(evidence)
    if names(schedule, at) or at in _set_by_hand(snapshot):
        return None
    found = why_unnamed(schedule, at)
    if found is not None:
        said = f"it does not run: {found.text}" + (f", at {found.moved_to.isoformat()}" if found.moved_to else "")
        return _answer(evidence, _OF_SCHEDULE[found.taken], said, moved_to=found.moved_to)
    said = f"the schedule ({job.schedule.describe()}) names no such instant"
    if job.version > 1 and job.updated_at is not None and at <= job.updated_at:
        said += f", by version {job.version} of its definition, the oldest at hand"
    if waits_for_end(job.schedule) and snapshot.busy_count:
        said = "the next instant follows from the end of the occurrence that is not over yet"
    near = [each.isoformat() for each in _neighbours(schedule, at) if each is not None]
    return _answer(evidence, Verdict.NOT_NAMED, f"{said}; the nearest are {' and '.join(near)}" if near else said)


def _at_the_time(evidence: Evidence) -> tuple[Job, Schedule]:
    """The definition that was in force at the instant, as far as it is at hand, and its schedule."""
    snapshot, at = evidence.snapshot, evidence.at
    job = in_force((*evidence.older, *snapshot.editions), at - TICK)
    idle = not snapshot.busy_count and not snapshot.waiting_count
    return job, bound_schedule(snapshot, job, min(snapshot.watermark, at - TICK), idle=idle)


def _neighbours(schedule: Schedule, at: datetime) -> tuple[datetime | None, datetime | None]:
    return schedule.last_at(at - TICK), schedule.next_after(at)


def _set_by_hand(snapshot: JobSnapshot) -> set[datetime]:
    found = {each.to for each in snapshot.adjustments if each.to is not None and each.vacates and not each.done}
    return found if snapshot.reschedule is None else found | {snapshot.reschedule.to}


def _moved_here(evidence: Evidence) -> str | None:
    return moved_here(_at_the_time(evidence)[1], evidence.at)


# ------------------------------------------------------------------------------------------ what the planner says


def _adjusted(evidence: Evidence) -> Explanation | None:
    """What somebody has said about this single instant: of all that can hold it back, a plan asks this first."""
    for each in evidence.snapshot.adjustments:
        if each.at == evidence.at and each.vacates and evidence.at > evidence.snapshot.watermark:
            by = f" {each.by_whom}" if each.by_whom else ""
            if each.to is not None:
                said = f"it is moved to {each.to.isoformat()}{by}"
                return _answer(evidence, Verdict.MOVED_BY_HAND, said, moved_to=each.to)
            return _answer(evidence, Verdict.SKIPPED_BY_HAND, f"it is skipped{by}")
    return None


def _held_by_open_pause(evidence: Evidence) -> Explanation | None:
    """A pause that no plan has written down yet: that happens when it ends."""
    snapshot, at = evidence.snapshot, evidence.at
    pause = pause_at(snapshot, at)
    if pause is None or at <= snapshot.watermark:
        return None
    if not names(_at_the_time(evidence)[1], at) and at not in _set_by_hand(snapshot):
        return None
    by = f" by {pause.by}" if pause.by else ""
    until = "until somebody resumes it" if pause.until is None else f"until {pause.until.isoformat()}"
    why = f" ({pause.reason})" if pause.reason else ""
    said = f"the job is paused{by}{why} since {pause.since.isoformat()}, {until}: "
    match pause.missed:
        case Missed.SKIP:
            said += "it was skipped" if at <= evidence.now else "it is skipped"
        case Missed.LAST:
            said += "once resumed, recovery decides about the newest that was held, and the others are skipped"
        case Missed.CATCH_UP:
            said += "once resumed, recovery decides about it"
    if pause.holds(evidence.now):
        said += ", unless the resume says otherwise"
    return _answer(evidence, Verdict.PAUSED, said, pause=pause)


def _told_late(evidence: Evidence) -> Explanation:
    """An instant that has come and left no trace: not decided yet, before the job's time, or forgotten."""
    snapshot, at = evidence.snapshot, evidence.at
    if evidence.removed_at is not None and at > evidence.removed_at:
        return _answer(evidence, Verdict.REMOVED, _removed(evidence))
    if at > snapshot.watermark:
        job = in_force(snapshot.editions, evidence.now)
        if not job.enabled:
            return _answer(evidence, Verdict.DISABLED, "the job is disabled, and nothing of it is decided meanwhile")
        told = _planned(evidence, plan(snapshot, evidence.now))
        said = "" if told is None else f"; the next plan would say: {told.text.partition(': ')[2]}"
        why = "; no node that can run it is up" if evidence.unmet else ""
        text = f"it is due and no node has decided about it yet{why}{said}"
        return _answer(evidence, Verdict.NOT_DECIDED_YET, text)
    created = evidence.definitions[-1].created_at
    if created is not None and at <= created:
        return _answer(evidence, Verdict.BEFORE_ITS_TIME, f"the job is known only since {created.isoformat()}")
    text = "it was decided, and what was stored about it is no longer kept (retention)"
    return _answer(evidence, Verdict.FORGOTTEN, text)


def _removed(evidence: Evidence) -> str:
    by = f" by {evidence.removed_by}" if evidence.removed_by else ""
    return f"the job was removed at {_when(evidence.removed_at)}{by}"


def _to_come(evidence: Evidence) -> Explanation:
    """What the planner would say at that moment, if a node is there and what runs now has ended by then."""
    snapshot, at = evidence.snapshot, evidence.at
    if evidence.removed_at is not None:
        return _answer(evidence, Verdict.REMOVED, _removed(evidence))
    job = in_force(snapshot.editions, at)
    if not job.enabled:
        return _answer(evidence, Verdict.DISABLED, "the job is disabled, and nothing of it runs until it is enabled")
    alone = _at_that_moment(snapshot, at)
    told = _planned(evidence, plan(alone, at))
    if told is None:
        return _answer(evidence, Verdict.NOT_NAMED, "nothing would be planned at this time")
    if told.verdict is not Verdict.WILL_RUN or not snapshot.busy_count:
        return told
    behind = _planned(evidence, plan(replace(alone, busy=snapshot.busy, busy_count=snapshot.busy_count), at))
    if behind is None or behind.verdict is Verdict.WILL_RUN:
        return told
    held = min(snapshot.busy, key=lambda each: (each.line_at, each.id)).id
    text = f"{told.text}, unless {held} is still not over then: {behind.verdict} under overlap {job.settings.overlap}"
    return replace(told, text=text, behind=held)


def _at_that_moment(snapshot: JobSnapshot, at: datetime) -> JobSnapshot:
    """The job as a planner finds it at a moment to come: everything before is decided, and none is busy."""
    moved = snapshot.reschedule
    return replace(
        snapshot,
        watermark=max(snapshot.watermark, at - TICK),
        adjustments=tuple(each for each in snapshot.adjustments if at in (each.at, each.to)),
        reschedule=None if moved is not None and moved.to < at else moved,
        requests=(),
        more_requests=False,
        busy=(),
        busy_count=0,
        waiting=(),
        waiting_count=0,
    )


def _planned(evidence: Evidence, decided: Plan) -> Explanation | None:
    """What a plan says about the instant; None if it does not speak of it."""
    own = occurrence_id(evidence.snapshot.job_id, evidence.at)
    created = sorted(
        (each for each in decided.creations if each.scheduled_for == evidence.at), key=lambda each: each.id != own
    )
    if created:
        return _will_be(evidence, created[0])
    span = _span(replace(evidence, spans=decided.spans))
    return None if span is None else _of_span(evidence, span)


def _will_be(evidence: Evidence, creation: Creation) -> Explanation:
    if creation.status in (_S.SKIPPED, _S.MISSED):
        said = _words(creation.why, creation.detail)
        return _answer(evidence, _OF_SPAN[creation.why], said, behind=_behind(creation.detail))
    waits = creation.detail.partition("waits for ")[2] if creation.status is _S.QUEUED else ""
    if waits:
        said = f"it will run as {creation.id} once it has what it depends on: it waits for {waits}"
        return _answer(evidence, Verdict.WILL_RUN, said)
    if creation.status is _S.QUEUED:
        said = f"it will wait in line {creation.detail}".rstrip()
        return _answer(evidence, Verdict.WAITING_IN_LINE, said, behind=_behind(creation.detail))
    moved = _moved_here(evidence)
    if (told := _spoken_of(evidence)) is not None:
        moved = ", ".join(filter(None, (moved, told)))
    late = creation.ready_at - evidence.at
    said = f"it will run as {creation.id}" + (f", {late} later (jitter)" if late > timedelta(0) else "")
    return _answer(evidence, Verdict.WILL_RUN, f"{said}; {moved}" if moved else said)


def _spoken_of(evidence: Evidence) -> str | None:
    """Say what a person has said of the run at this time."""
    at, moved = evidence.at, evidence.snapshot.reschedule
    told = [each for each in evidence.snapshot.adjustments if at in (each.at, each.to) and (each.to or each.at) == at]
    if told:
        return f"it is {' and '.join(each.detail for each in told)}"
    if moved is not None and moved.to == at:
        return f"it is the next run, set{f' by {moved.by}' if moved.by else ' by hand'}"
    return None


def _answer(
    evidence: Evidence,
    verdict: Verdict,
    said: str,
    *,
    occurrence: Occurrence | None = None,
    span: Span | None = None,
    pause: PausedSpan | None = None,
    behind: str | None = None,
    moved_to: datetime | None = None,
) -> Explanation:
    previous, following = _neighbours(_at_the_time(evidence)[1], evidence.at)
    name = evidence.definitions[-1].name
    text = f"{name} at {evidence.at.isoformat()}: {said}"
    return Explanation(name, evidence.at, verdict, text, occurrence, span, pause, behind, moved_to, previous, following)


def _when(at: datetime | None) -> str:
    return "some time" if at is None else at.isoformat()
