"""The one bridge from events to logging: the logger `everytick.events` hears of everything a node does.

A failure is logged at WARNING as long as it is tried again, and at ERROR with its traceback once an
occurrence has failed. Without any configuration Python prints both on stderr. Successes are INFO.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from everytick.domain.durations import format_duration
from everytick.domain.headlines import headline

if TYPE_CHECKING:
    from datetime import datetime

    from everytick.node.events import Event

logger = logging.getLogger("everytick.events")

_FAILED = frozenset({"failed", "failed_stale", "timeout", "lost", "completed_with_errors"})
_LOGGED_ELSEWHERE = frozenset(
    {"store_lost", "store_found", "definition_broken", "definition_mended", "duplicate", "runs_moved"}
)
"""The part of the node that sees these logs them itself, with more to say."""


def log_event(event: Event) -> None:
    """Log the event in one line, with the traceback below it where it is about a failure that is not tried again."""
    level = level_of(event)
    if not logger.isEnabledFor(level):
        return
    about = {"job": event.job, "occurrence": event.occurrence_id, "task": event.task, "attempt": event.attempt}
    record = logger.makeRecord(
        logger.name, level, __file__, 0, "%s", (words_of(event),), None, func="log_event", extra=about
    )
    if level >= logging.WARNING and event.traceback:
        # Formatters print it below the message, as they do with the traceback of an exception.
        record.exc_text = event.traceback
    logger.handle(record)


def level_of(event: Event) -> int:
    """Return how loud the event is: ERROR for an occurrence that failed, WARNING for an attempt that did."""
    if event.kind in _LOGGED_ELSEWHERE or event.kind in ("created", "started", "retry_planned"):
        return logging.DEBUG
    if event.kind == "attempt_ended":
        # The end of an occurrence tells of the attempt that ended it.
        return logging.WARNING if event.status in _FAILED and not event.is_last else logging.DEBUG
    if event.kind in ("promise_broken", "rolled_back"):
        return logging.ERROR
    if event.kind == "braked":
        return logging.WARNING
    if event.kind == "lost":
        return logging.ERROR if event.status in _FAILED else logging.WARNING
    return logging.ERROR if event.status in _FAILED else logging.INFO


def words_of(event: Event) -> str:
    """Return the event in words: the job, its instant, what happened, and what happens next."""
    about = event.job or "node"
    if event.scheduled_for is not None:
        about += f" {_moment(event.scheduled_for)}"
    if event.task is not None and event.task != event.job:
        about += f" task {event.task}"
    if event.attempt is not None:
        about += f" attempt {event.attempt}" + (f" of {event.of}" if event.of is not None else "")
    if event.kind == "lost":
        return f"{about} was lost with its node {event.text} and is now {event.status}{_what_is_next(event)}"
    is_end = event.kind in ("ended", "attempt_ended") and event.status
    what = event.status if is_end else event.kind.replace("_", " ")
    text = headline(event.text)
    return f"{about} {what}" + (f": {text}" if text else "") + _what_is_next(event)


_NEXT = {
    "promise_broken": "; it is judged on, and an event tells when it is kept again",
    "braked": "; nothing of it starts while the brake holds",
}
"""What follows an event that is no end of an occurrence or attempt."""


def _what_is_next(event: Event) -> str:
    if event.kind in _NEXT:
        return _NEXT[event.kind]
    if event.status in ("pending", "awaiting_retry"):
        return "; the next node with a free slot goes on with it"
    if event.status not in _FAILED:
        return ""
    if event.retry_at is None:
        return "; it is not tried again"
    wait = "" if event.wait is None else f" in {format_duration(_rounded(event.wait))},"
    return f"; it is tried again{wait} at {_moment(event.retry_at)}"


def _rounded(wait: timedelta) -> timedelta:
    """Return the wait in whole milliseconds: jitter makes fractions that say nothing to people."""
    return timedelta(milliseconds=round(wait.total_seconds() * 1000))


def _moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
