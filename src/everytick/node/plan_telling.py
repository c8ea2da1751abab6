"""What is said of plans once they are written: events for listeners, lines for the log."""

import logging
from datetime import datetime
from functools import partial

from everytick.domain.decisions import Plan, Span, Why
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.statuses import ENDED
from everytick.domain.texts import CLAIM_FAILED, CLAIMED, NOT_ENQUEUED, OVERLAP_SKIPPED, TAKEN_BY_ANOTHER
from everytick.node.events import Event, Happening
from everytick.node.inbox import Planned
from everytick.node.listeners import Listeners
from everytick.stores.base import Commit, CommitAnswer, CommitAway, CommitFailed

_log = logging.getLogger("everytick.planner")


def tell_of_plans(planned: Planned, listeners: Listeners) -> None:
    """Tell of every plan what was written, or why it was not."""
    is_wanted = listeners.wanted or _log.isEnabledFor(logging.DEBUG)
    for snapshot, plan, answer in zip(planned.snapshots, planned.plans, planned.done.answers, strict=True):
        if answer is not Commit.COMMITTED:
            _log_unwritten(snapshot, answer)
        elif is_wanted or plan.spans:
            _tell_of(snapshot, plan, planned.batch.now, listeners)


def _tell_of(snapshot: JobSnapshot, plan: Plan, now: datetime, listeners: Listeners) -> None:
    name = snapshot.editions[-1].job.name
    if plan.creations:
        about = {"component": "scheduler", "job": name, "next_run": plan.next_run}
        _log.debug("%s %s, next_run_at %s", CLAIMED, name, plan.next_run, extra=about)
    for creation in plan.creations:
        kind = Happening.SKIPPED if creation.status in ENDED else Happening.CREATED
        text = f"{creation.why} {creation.detail}".strip()
        listeners.tell(Event(kind, now, name, creation.id, creation.scheduled_for, status=creation.status, text=text))
    for span in plan.spans:
        first = _first_of(snapshot, span)
        _log_span(name, span, first, plan.next_run)
        text = f"{span.why} {span.detail}".strip()
        told = partial(Event, Happening.SKIPPED, now, name, scheduled_for=span.through, status=span.status)
        listeners.tell(told(text=text, count=span.count, first=first))
    for ending in plan.endings:
        text = f"{ending.why} {ending.detail}".strip()
        listeners.tell(Event(Happening.ENDED, now, name, ending.id, status=ending.status, text=text))


_LOST_RUNS = {
    Why.MISSED: logging.WARNING,
    Why.CAP: logging.WARNING,
    Why.NOT_LAST: logging.INFO,
    Why.WINDOW: logging.INFO,
}
"""What an outage cost, and how loudly that is said: what recovery dropped by its own bounds is its ordinary work."""


def _first_of(snapshot: JobSnapshot, span: Span) -> datetime | None:
    """The first instant of a span; None where its definition is not at hand."""
    jobs = [edition.job for edition in snapshot.editions if edition.job.version == span.version]
    first = jobs[0].bound(None).next_after(span.after) if jobs else None
    return first if first is not None and first <= span.through else None


def _log_span(name: str, span: Span, first: datetime | None, next_run: datetime | None) -> None:
    """Log instants that did not run for one reason as one line."""
    about = {"component": "scheduler", "job": name, "next_run": next_run}
    if span.why is Why.OVERLAP:
        _log.debug(OVERLAP_SKIPPED.format(name=name), extra=about)
    elif span.why in _LOST_RUNS:
        many = "more than 10,000 instants" if span.count is None else f"{span.count} instant{'s' * (span.count != 1)}"
        between = f"at {span.through}" if span.count == 1 else f"from {first or span.after} through {span.through}"
        told = f"{span.status}: {span.why}" if str(span.why) != str(span.status) else str(span.why)
        after = "it has no next run" if next_run is None else f"the next run is at {next_run}"
        text = "job '%s': %s %s did not run (%s) and will not be made up for; %s"
        _log.log(_LOST_RUNS[span.why], text, name, many, between, told, after, extra=about)


def _log_unwritten(snapshot: JobSnapshot, answer: CommitAnswer) -> None:
    """Log why a plan was not written, a refused one under the words that both S1-013 and S3-027 have for it."""
    name = snapshot.editions[-1].job.name
    about = {"component": "scheduler", "job": name}
    if isinstance(answer, CommitFailed):
        text = "%s: %s: %s: %s; it is planned again in a minute"
        _log.error(text, CLAIM_FAILED, name, NOT_ENQUEUED, answer.reason, extra=about)
    elif isinstance(answer, CommitAway):
        _log.warning("job '%s' is planned again soon: %s", name, answer.reason, extra=about)
    else:
        _log.debug(TAKEN_BY_ANOTHER)
