"""The part of `explain` for what is not decided yet: what people have said of it, and what the planner would say.

The planner itself is asked, with the job as it stands now.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from everytick.deciding.explain_stored import VERDICT_OF_SPAN, occurrence_ahead, of_span, span_of, words_of
from everytick.deciding.explanation import (
    Evidence,
    Explanation,
    Verdict,
    answer,
    at_the_time,
    moved_to_here,
    set_by_hand,
    when,
)
from everytick.deciding.plan import plan
from everytick.deciding.unnamed_instants import names
from everytick.domain.decisions import Creation, Plan
from everytick.domain.durations import MICROSECOND
from everytick.domain.ids import occurrence_id
from everytick.domain.snapshots import JobSnapshot, Missed
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.upcoming import in_force, pause_at

_S = OccurrenceStatus


def adjusted(evidence: Evidence) -> Explanation | None:
    """Return what a person did to this single instant: it was moved or skipped. A plan asks for this first."""
    for adjustment in evidence.snapshot.adjustments:
        if adjustment.at == evidence.at and adjustment.vacates and evidence.at > evidence.snapshot.watermark:
            by = f" {adjustment.by_whom}" if adjustment.by_whom else ""
            if adjustment.to is not None:
                said = f"it is moved to {adjustment.to.isoformat()}{by}"
                return answer(evidence, Verdict.MOVED_BY_HAND, said, moved_to=adjustment.to)
            return answer(evidence, Verdict.SKIPPED_BY_HAND, f"it is skipped{by}")
    return None


def held_by_open_pause(evidence: Evidence) -> Explanation | None:
    """A pause that no plan has written down yet: that happens when it ends."""
    snapshot, at = evidence.snapshot, evidence.at
    pause = pause_at(snapshot, at)
    if pause is None or at <= snapshot.watermark:
        return None
    if not names(at_the_time(evidence)[1], at) and at not in set_by_hand(snapshot):
        return None
    by = f" by {pause.by}" if pause.by else ""
    until = "until a person resumes it" if pause.until is None else f"until {pause.until.isoformat()}"
    why = f" ({pause.reason})" if pause.reason else ""
    verb = "is" if pause.holds(evidence.now) or at > evidence.now else "was"
    said = f"the job {verb} paused{by}{why} since {pause.since.isoformat()}, {until}: "
    match pause.missed:
        case Missed.SKIP:
            said += "it was skipped" if at <= evidence.now else "it is skipped"
        case Missed.LAST:
            said += "once resumed, recovery decides about the newest that was held, and the others are skipped"
        case Missed.CATCH_UP:
            said += "once resumed, recovery decides about it"
    if pause.holds(evidence.now):
        said += ", unless the resume says otherwise"
    return answer(evidence, Verdict.PAUSED, said, pause=pause)


def told_late(evidence: Evidence) -> Explanation:
    """An instant that has come and left no trace: not decided yet, before the job's time, or forgotten."""
    snapshot, at = evidence.snapshot, evidence.at
    if evidence.removed_at is not None and at > evidence.removed_at:
        return answer(evidence, Verdict.REMOVED, _removed(evidence))
    if at > snapshot.watermark:
        job = in_force(snapshot.editions, evidence.now)
        if not job.enabled:
            return answer(evidence, Verdict.DISABLED, "the job is disabled, and nothing of it is decided meanwhile")
        told = _planned(evidence, plan(snapshot, evidence.now))
        said = "" if told is None else f"; the next plan would say: {told.text.partition(': ')[2]}"
        reason = f" ({evidence.refused})" if evidence.refused else ""
        why = f"; no node that can run it is up{reason}" if evidence.unmet else ""
        text = f"it is due and no node has decided about it yet{why}{said}"
        return answer(evidence, Verdict.NOT_DECIDED_YET, text)
    created = evidence.definitions[-1].created_at
    if created is not None and at <= created:
        return answer(evidence, Verdict.BEFORE_ITS_TIME, f"the job is known only since {created.isoformat()}")
    text = "it was decided, and what was stored about it is no longer kept (retention)"
    return answer(evidence, Verdict.FORGOTTEN, text)


def _removed(evidence: Evidence) -> str:
    by = f" by {evidence.removed_by}" if evidence.removed_by else ""
    return f"the job was removed at {when(evidence.removed_at)}{by}"


def to_come(evidence: Evidence) -> Explanation:
    """What the planner would say at that moment, if a node is there and what runs now has ended by then."""
    snapshot, at = evidence.snapshot, evidence.at
    if evidence.removed_at is not None:
        return answer(evidence, Verdict.REMOVED, _removed(evidence))
    job = in_force(snapshot.editions, at)
    if not job.enabled:
        return answer(evidence, Verdict.DISABLED, "the job is disabled, and nothing of it runs until it is enabled")
    alone = _at_that_moment(snapshot, at)
    told = _planned(evidence, plan(alone, at))
    if told is None:
        return answer(evidence, Verdict.NOT_NAMED, "nothing would be planned at this time")
    if told.verdict is not Verdict.WILL_RUN or not snapshot.busy_count:
        return told
    behind = _planned(evidence, plan(replace(alone, busy=snapshot.busy, busy_count=snapshot.busy_count), at))
    if behind is None or behind.verdict is Verdict.WILL_RUN:
        return told
    held = min(snapshot.busy, key=lambda occurrence: (occurrence.line_at, occurrence.id)).id
    text = f"{told.text}, unless {held} is still not over then: {behind.verdict} under overlap {job.settings.overlap}"
    return replace(told, text=text, behind=held)


def _at_that_moment(snapshot: JobSnapshot, at: datetime) -> JobSnapshot:
    """The job as a planner finds it at a moment to come: everything before is decided, and none is busy."""
    moved = snapshot.reschedule
    return replace(
        snapshot,
        watermark=max(snapshot.watermark, at - MICROSECOND),
        adjustments=tuple(adjustment for adjustment in snapshot.adjustments if at in (adjustment.at, adjustment.to)),
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
        (creation for creation in decided.creations if creation.scheduled_for == evidence.at),
        key=lambda creation: creation.id != own,
    )
    if created:
        return _will_be(evidence, created[0])
    span = span_of(replace(evidence, spans=decided.spans))
    return None if span is None else of_span(evidence, span)


def _will_be(evidence: Evidence, creation: Creation) -> Explanation:
    if creation.status in (_S.SKIPPED, _S.MISSED):
        said = words_of(creation.why, creation.detail)
        return answer(evidence, VERDICT_OF_SPAN[creation.why], said, behind=occurrence_ahead(creation.detail))
    waits = creation.detail.partition("waits for ")[2] if creation.status is _S.QUEUED else ""
    if waits:
        said = f"it will run as {creation.id} once it has what it depends on: it waits for {waits}"
        return answer(evidence, Verdict.WILL_RUN, said)
    if creation.status is _S.QUEUED:
        said = f"it will wait in line {creation.detail}".rstrip()
        return answer(evidence, Verdict.WAITING_IN_LINE, said, behind=occurrence_ahead(creation.detail))
    moved = moved_to_here(evidence)
    if (told := _spoken_of(evidence)) is not None:
        moved = ", ".join(filter(None, (moved, told)))
    if "version " in creation.detail:
        moved = ", ".join(filter(None, (moved, creation.detail)))
    if evidence.frozen:
        moved = ", ".join(filter(None, (moved, f"it waits for the end of {evidence.frozen}")))
    late = creation.ready_at - evidence.at
    said = f"it will run as {creation.id}" + (f", {late} later (jitter)" if late > timedelta(0) else "")
    return answer(evidence, Verdict.WILL_RUN, f"{said}; {moved}" if moved else said)


def _spoken_of(evidence: Evidence) -> str | None:
    """Say what a person has said of the run at this time."""
    at, moved = evidence.at, evidence.snapshot.reschedule
    told = [
        adjustment
        for adjustment in evidence.snapshot.adjustments
        if at in (adjustment.at, adjustment.to) and (adjustment.to or adjustment.at) == at
    ]
    if told:
        return f"it is {' and '.join(adjustment.detail for adjustment in told)}"
    if moved is not None and moved.to == at:
        return f"it is the next run, set{f' by {moved.by}' if moved.by else ' by hand'}"
    return None
