"""What `explain` is given and what it returns, and how each of its parts puts an answer together."""

from datetime import datetime
from enum import StrEnum

from everytick.deciding.forecast import LikelyBreach
from everytick.deciding.unnamed_instants import moved_here
from everytick.domain.decisions import Span
from everytick.domain.durations import MICROSECOND
from everytick.domain.job import Job
from everytick.domain.occurrence import Occurrence
from everytick.domain.promises import Breach
from everytick.domain.schedule import Schedule
from everytick.domain.snapshots import Edition, JobSnapshot, PausedSpan
from everytick.domain.upcoming import bound_schedule, in_force, rescheduled_to
from everytick.domain.values import value


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
    MISSED = "missed and not made up for"
    COMPRESSED = "compressed into another"
    CUT_BY_CAP = "cut by the cap"
    OUTSIDE_WINDOW = "outside the window"
    EXCLUDED = "excluded by calendar"
    MOVED_BY_CLOCK = "moved by a clock change"
    DROPPED_BY_CLOCK = "dropped by a clock change"
    BEFORE_ITS_TIME = "before the job was known"
    FORGOTTEN = "forgotten"
    NOT_NAMED = "not named by the schedule"


@value
class Evidence:
    """What is known about one instant of a job: its definitions, and what was stored about that instant.

    `definitions` are those at hand; the newest is always there. `older` are editions of before
    the snapshot's. `occurrences` stand at this very time, `spans` hold it. `refused` says why no
    living node can run the job, if that is so. `unmet` says that no node is up that could decide about it.
    `parked_reason` says why nothing of the job is planned now, if that is so. `breaches` are promises that were broken
    for this instant, and `forecasts` those that will be or may be. `held_back` says which limit or brake lets nothing
    of the job start now, and `frozen` which brake will hold at this instant to come.
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
    frozen: str = ""


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


def answer(
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
    previous, following = neighbours(at_the_time(evidence)[1], evidence.at)
    name = evidence.definitions[-1].name
    text = f"{name} at {evidence.at.isoformat()}: {said}"
    return Explanation(
        job=name,
        at=evidence.at,
        verdict=verdict,
        text=text,
        occurrence=occurrence,
        span=span,
        pause=pause,
        behind=behind,
        moved_to=moved_to,
        previous=previous,
        next=following,
    )


def at_the_time(evidence: Evidence) -> tuple[Job, Schedule]:
    """The definition that was in force at the instant, as far as it is at hand, and its schedule."""
    snapshot, at = evidence.snapshot, evidence.at
    job = in_force((*evidence.older, *snapshot.editions), at - MICROSECOND)
    idle = not snapshot.busy_count and not snapshot.waiting_count
    return job, bound_schedule(snapshot, job, min(snapshot.watermark, at - MICROSECOND), idle=idle)


def neighbours(schedule: Schedule, at: datetime) -> tuple[datetime | None, datetime | None]:
    return schedule.last_at(at - MICROSECOND), schedule.next_after(at)


def set_by_hand(snapshot: JobSnapshot) -> set[datetime]:
    by_hand = {
        adjustment.to
        for adjustment in snapshot.adjustments
        if adjustment.to is not None and adjustment.vacates and not adjustment.done
    }
    return by_hand | {*rescheduled_to(snapshot)}


def moved_to_here(evidence: Evidence) -> str | None:
    return moved_here(at_the_time(evidence)[1], evidence.at)


def when(at: datetime | None) -> str:
    return "some time" if at is None else at.isoformat()
