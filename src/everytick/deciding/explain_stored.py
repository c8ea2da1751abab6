"""The part of `explain` for what was stored about an instant: its occurrence, or the span that holds it."""

from datetime import datetime

from everytick.deciding.dependence import Unmet, unmet
from everytick.deciding.explanation import Evidence, Explanation, Verdict, answer, moved_to_here, when
from everytick.deciding.unnamed_instants import names
from everytick.domain.decisions import Span, Why
from everytick.domain.ids import occurrence_id
from everytick.domain.occurrence import Cause, Occurrence
from everytick.domain.statuses import OccurrenceStatus

_S = OccurrenceStatus


VERDICT_OF_SPAN = {
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


def stored(evidence: Evidence) -> Explanation | None:
    """What an occurrence or a span says; of several occurrences the schedule's own speaks."""
    span = span_of(evidence)
    own = occurrence_id(evidence.snapshot.job_id, evidence.at)
    ranked = sorted(
        evidence.occurrences,
        key=lambda occurrence: (occurrence.id != own, occurrence.cause is not Cause.SCHEDULE, occurrence.id),
    )
    if ranked and (span is None or _is_instant(ranked[0])):
        return _of_occurrence(evidence, ranked[0])
    return None if span is None else of_span(evidence, span)


def _is_instant(occurrence: Occurrence) -> bool:
    """Whether it stands for the instant itself, and not for a request that was made at the same moment."""
    return occurrence.cause in (Cause.SCHEDULE, Cause.BACKFILL)


def span_of(evidence: Evidence) -> Span | None:
    """The span that holds the instant: it lies inside, and the schedule of its version names it."""
    known = {job.version: job for job in evidence.definitions}
    for span in reversed(evidence.spans):
        if span.after < evidence.at <= span.through:
            job = known.get(span.version)
            if evidence.at == span.through or job is None or names(job.bound(None), evidence.at):
                return span
    return None


def _of_occurrence(evidence: Evidence, occurrence: Occurrence) -> Explanation:
    verdict, said = _verdict_of(evidence, occurrence), _story_of(evidence, occurrence)
    asked_for = "" if occurrence.cause is Cause.SCHEDULE else f"; {_OF_CAUSE[occurrence.cause]}"
    moved = moved_to_here(evidence)
    behind = occurrence_ahead(occurrence.reason or "")
    if behind is None and verdict is Verdict.WAITING_IN_LINE:
        behind = next((active.id for active in evidence.snapshot.busy), None)
    return answer(
        evidence, verdict, said + asked_for + (f"; {moved}" if moved else ""), occurrence=occurrence, behind=behind
    )


def _verdict_of(evidence: Evidence, occurrence: Occurrence) -> Verdict:
    if _is_only_asked_for(occurrence):
        return Verdict.WILL_RUN if evidence.at > evidence.now else Verdict.NOT_DECIDED_YET
    if occurrence.status is _S.PENDING and evidence.refused:
        return Verdict.UNKNOWN_TARGET
    if occurrence.status is _S.QUEUED and _unmet(evidence, occurrence) is not None:
        return Verdict.WAITING_FOR_A_JOB
    if occurrence.status is _S.PENDING and evidence.held_back:
        return Verdict.HELD_BACK
    if occurrence.status in _OF_STATUS:
        return _OF_STATUS[occurrence.status]
    if occurrence.status in (_S.SKIPPED, _S.MISSED):
        # What was skipped later than it was created says so in its error.
        return _of_reason(occurrence.error or occurrence.reason or "")
    return Verdict.CANCELED if occurrence.started_at is None else Verdict.RAN


def _is_only_asked_for(occurrence: Occurrence) -> bool:
    """Whether it is a request that no plan has answered."""
    return occurrence.status is _S.PENDING and occurrence.created_at is None and occurrence.ready_at is None


def _unmet(evidence: Evidence, occurrence: Occurrence) -> Unmet | None:
    """What one in line waits for, where its job depends on others."""
    snapshot = evidence.snapshot
    own = next((active for active in snapshot.waiting if active.id == occurrence.id), None)
    return None if own is None else unmet(snapshot, own, evidence.now)


def _waits_for(missing: Unmet) -> str:
    return f"it waits until {missing.until.isoformat()} for what it depends {missing.said}"


def _story_of(evidence: Evidence, occurrence: Occurrence) -> str:
    missing = _unmet(evidence, occurrence) if occurrence.status is _S.QUEUED else None
    match occurrence.status:
        case _S.PENDING if _is_only_asked_for(occurrence) and evidence.at > evidence.now:
            return f"it will run then as {occurrence.id}"
        case _S.PENDING if _is_only_asked_for(occurrence):
            return "no node has planned it yet"
        case _S.PENDING if occurrence.ready_at is not None and occurrence.ready_at > evidence.now:
            return f"it is pending and may start at {occurrence.ready_at.isoformat()}"
        case _S.PENDING if evidence.refused:
            return f"it is pending, and no living node can run it: {evidence.refused}"
        case _S.PENDING if evidence.held_back:
            return f"it is pending and waits: {evidence.held_back}"
        case _S.PENDING:
            return "it is pending, and no node with a free slot of its queue has claimed it yet"
        case _S.QUEUED if missing is not None:
            return _waits_for(missing)
        case _S.QUEUED:
            return f"it waits in line ({occurrence.reason})"
        case _S.RUNNING:
            return f"it has been running since {when(occurrence.started_at)} on {occurrence.owner}"
        case _S.AWAITING_RETRY:
            held_back = f", and then waits: {evidence.held_back}" if evidence.held_back else ""
            return f"it waits for a retry at {when(occurrence.ready_at)}{held_back}"
        case _S.SUPERSEDED:
            return f"it gave way before it ran: {occurrence.error or occurrence.reason}"
        case _S.SKIPPED | _S.MISSED:
            return f"it was {occurrence.status}: {occurrence.error or occurrence.reason}"
    why = f" ({occurrence.error})" if occurrence.error else ""
    if occurrence.started_at is None:
        return f"it was {occurrence.status} before it started{why}"
    late = ", late" if occurrence.late else ""
    began, over = when(occurrence.started_at), when(occurrence.ended_at)
    return f"it ran as {occurrence.id}, from {began} to {over}{late}: {occurrence.status}{why}"


def _of_reason(reason: str) -> Verdict:
    """The verdict of an entry that was asked for by hand and turned away; its reason begins with the word."""
    said = (why for why in VERDICT_OF_SPAN if reason == why or reason.startswith((f"{why},", f"{why} on ")))
    return VERDICT_OF_SPAN[next(said, Why.MISSED)]


def of_span(evidence: Evidence, span: Span) -> Explanation:
    verdict, moved_to = VERDICT_OF_SPAN[span.why], None
    said = words_of(span.why, span.detail) + _why_not_begun(evidence, occurrence_ahead(span.detail))
    if span.version != evidence.definitions[-1].version:
        said += f" (by version {span.version} of its definition)"
    if span.why in (Why.MOVED, Why.RESCHEDULED) and span.detail.startswith("to "):
        moved_to = datetime.fromisoformat(span.detail.removeprefix("to "))
    return answer(evidence, verdict, said, span=span, behind=occurrence_ahead(span.detail), moved_to=moved_to)


def words_of(why: Why, detail: str) -> str:
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


def occurrence_ahead(text: str) -> str | None:
    """The occurrence that a reason names."""
    behind = text.rpartition("behind ")[2] if "behind " in text else ""
    return behind.split()[0] if behind.startswith("occ_") else None
