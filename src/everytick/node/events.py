"""Events: told once, after the commit, to the log, hooks, meters and streams of this process.

An event is a hint for people and meters; nothing is decided by it. Successes make events only
where a listener or the log takes them; failures always do.
"""

import logging
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from everytick.domain.decisions import Creation, Plan, Span, Why
from everytick.domain.headlines import with_limit
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.statuses import ENDED, RunStatus
from everytick.domain.steps import OccurrenceEnd, Rules, RunRow, Step
from everytick.domain.texts import CLAIM_FAILED, CLAIMED, NOT_ENQUEUED, OVERLAP_SKIPPED, TAKEN_BY_ANOTHER
from everytick.domain.values import value
from everytick.node.event_log import log_event, logger
from everytick.node.meter import Meter
from everytick.stores.base import Claim, Commit, CommitAnswer, CommitAway, CommitFailed

if TYPE_CHECKING:
    from everytick.node.inbox import Planned

_planner_log = logging.getLogger("everytick.planner")
_COMMITTED = Commit.COMMITTED

_FAILED_RUNS = (RunStatus.FAILED, RunStatus.TIMEOUT)


class Happening(StrEnum):
    """What happened."""

    CREATED = "created"
    SKIPPED = "skipped"
    STARTED = "started"
    ATTEMPT_ENDED = "attempt_ended"
    RETRY_PLANNED = "retry_planned"
    ENDED = "ended"
    LOST = "lost"
    STORE_LOST = "store_lost"
    STORE_FOUND = "store_found"
    DUPLICATE = "duplicate"
    DEFINITION_BROKEN = "definition_broken"
    DEFINITION_MENDED = "definition_mended"
    PROMISE_BROKEN = "promise_broken"
    PROMISE_KEPT = "promise_kept"
    LIMITED = "limited"
    BRAKED = "braked"
    RELEASED = "released"
    RUNS_MOVED = "runs_moved"
    ROLLOUT_WENT_ON = "rollout_went_on"
    ROLLED_BACK = "rolled_back"


@value(frozen=True)
class Event:
    """One thing that happened to a job, or to the node where `job` is empty.

    `status` is the status after it, `text` what a person would want to know. Instants that did
    not run for one reason are one event: `count` says how many (None: more than 10,000), `first`
    and `scheduled_for` are the first and the last of them.

    Of an attempt that ended, `of` says how many there may be at most (None: no limit, or not known),
    `retry_at` when the next one begins after which `wait`, and `is_last` that its occurrence ended
    with it. `traceback` is the whole error of a failure that is not tried again, or tried for ever.
    """

    kind: Happening
    at: datetime
    job: str = ""
    occurrence_id: str | None = None
    scheduled_for: datetime | None = None
    task: str | None = None
    attempt: int | None = None
    status: str = ""
    text: str = ""
    count: int | None = 1
    first: datetime | None = None
    of: int | None = None
    retry_at: datetime | None = None
    wait: timedelta | None = None
    is_last: bool = False
    traceback: str = ""


def events_of(claim: Claim, step: Step, at: datetime) -> Iterator[Event]:
    """Give the events that tell of a committed step of the claim."""
    header, rules = claim.header, claim.header.rules
    about = partial(Event, at=at, job=claim.job.name, occurrence_id=header.id, scheduled_for=header.scheduled_for)
    for row in step.rows:
        if row.attempt is not None and row.ended_at is not None:
            ended = partial(about, Happening.ATTEMPT_ENDED, task=row.task, attempt=row.number)
            limit = rules.tasks[rules.places[row.task]].timeout
            text = with_limit(row.error, limit) if row.error is not None else ""
            yield ended(status=row.attempt, text=text, **_what_follows(rules, step, row))
    for wait in step.waits:
        yield about(Happening.RETRY_PLANNED, task=wait.task, attempt=wait.number, text=f"at {wait.until}")
    if step.resume_at is not None:
        # Parked: the node that claims it at that time goes on, so the step itself waits for nothing.
        for task, run in zip(rules.tasks, step.after.runs, strict=True):
            if run.resume_at is not None:
                planned = partial(about, Happening.RETRY_PLANNED, task=task.name, attempt=run.attempts + 1)
                yield planned(text=f"at {run.resume_at}")
    if step.end is not None:
        yield about(Happening.ENDED, status=step.end.status, text=step.end.error or "", traceback=_tracebacks(step.end))


def _what_follows(rules: Rules, step: Step, row: RunRow) -> dict[str, Any]:
    """Return how many attempts there may be, and when the next one begins; nothing of one that ended well."""
    if row.error is None:
        return {}
    run, retry = row.run, rules.tasks[rules.places[row.task]].retry
    limit = 0 if retry is None else retry.max
    of = None if limit is None else row.number + max(limit - run.retries, 0) + (run.status is RunStatus.PENDING)
    if run.status is not RunStatus.PENDING:
        return {"of": of, "is_last": step.end is not None}
    wait = run.waits[-1] if run.waits else None
    return {"of": of, "retry_at": run.resume_at, "wait": wait, "traceback": "" if of is not None else row.error}


def _tracebacks(ended: OccurrenceEnd) -> str:
    """Return the whole errors of the tasks that failed, each below the name of its task if there are several.

    An error of one line stands in the text of the end already.
    """
    pairs = zip(ended.header.rules.tasks, ended.life.runs, strict=True)
    failed = [(task.name, run.error) for task, run in pairs if run.status in _FAILED_RUNS and run.error]
    if len(failed) == 1:
        [(_, error)] = failed
        return error if "\n" in error else ""
    return "\n".join(f"task {name}: {error}" for name, error in failed)


def start_of(claim: Claim, task: str, attempt: int, at: datetime) -> Event:
    """Return that an attempt begins."""
    header = claim.header
    return Event(Happening.STARTED, at, claim.job.name, header.id, header.scheduled_for, task=task, attempt=attempt)


def has_failure(step: Step) -> bool:
    """Whether an attempt or the occurrence ended badly with this step."""
    for row in step.rows:
        if row.error is not None:
            return True
    return step.end is not None and step.end.life.error is not None


Listener: TypeAlias = Callable[[Event], None]


class Listeners:
    """Logs events and passes them on. If a listener raises, that is logged, and the other listeners get the event."""

    def __init__(self, meter: Meter | None = None) -> None:
        self._listeners: list[Listener] = []
        self.meter = meter or Meter()
        """Counts for all parts that tell of events; it is given whole batches, since an event for each costs more."""

    @property
    def wanted(self) -> bool:
        """Whether a listener or the log takes events of every kind."""
        return bool(self._listeners) or logger.isEnabledFor(logging.INFO)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell the listener of every event from now on. Call the returned function to stop."""
        self._listeners = [*self._listeners, listener]

        def stop() -> None:
            self._listeners = [known for known in self._listeners if known is not listener]

        return stop

    def tell(self, event: Event) -> None:
        """Log the event and pass it on."""
        log_event(event)
        for listener in self._listeners:
            try:
                listener(event)
            except BaseException:  # noqa: BLE001, it is not our code
                logger.exception("a listener of events failed on %s; the node goes on", event.kind)


def tell_of_plans(planned: "Planned", listeners: Listeners) -> None:
    """Tell for every plan what it wrote, or why it was not written."""
    is_wanted = listeners.wanted or _planner_log.isEnabledFor(logging.DEBUG)
    for snapshot, plan, answer in zip(planned.snapshots, planned.plans, planned.done.answers, strict=True):
        if answer is not _COMMITTED:
            _log_unwritten(snapshot, answer)
            if answer is Commit.STALE:
                listeners.meter.stale(snapshot)
            continue
        if plan.spans or plan.endings or (plan.creations and _is_special(plan.creations)):
            listeners.meter.plan(snapshot, plan)
        if is_wanted or plan.spans:
            _tell_of(snapshot, plan, planned.batch.now, listeners)


def _is_special(creations: tuple[Creation, ...]) -> bool:
    """Whether any of them is late, or is not to run."""
    return len(creations) > 1 or creations[0].late or creations[0].status in ENDED


def _tell_of(snapshot: JobSnapshot, plan: Plan, now: datetime, listeners: Listeners) -> None:
    name = snapshot.editions[-1].job.name
    if plan.creations:
        about = {"component": "scheduler", "job": name, "next_run": plan.next_run}
        _planner_log.debug("%s %s, next_run_at %s", CLAIMED, name, plan.next_run, extra=about)
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
        _planner_log.debug(OVERLAP_SKIPPED.format(name=name), extra=about)
    elif span.why in _LOST_RUNS:
        many = "more than 10,000 instants" if span.count is None else f"{span.count} instant{'s' * (span.count != 1)}"
        between = f"at {span.through}" if span.count == 1 else f"from {first or span.after} through {span.through}"
        told = f"{span.status}: {span.why}" if str(span.why) != str(span.status) else str(span.why)
        after = "it has no next run" if next_run is None else f"the next run is at {next_run}"
        text = "job '%s': %s %s did not run (%s) and will not be made up for; %s"
        _planner_log.log(_LOST_RUNS[span.why], text, name, many, between, told, after, extra=about)


def _log_unwritten(snapshot: JobSnapshot, answer: CommitAnswer) -> None:
    """Log why a plan was not written, a refused one under the words that both S1-013 and S3-027 have for it."""
    name = snapshot.editions[-1].job.name
    about = {"component": "scheduler", "job": name}
    if isinstance(answer, CommitFailed):
        text = "%s: %s: %s: %s; it is planned again in a minute"
        _planner_log.error(text, CLAIM_FAILED, name, NOT_ENQUEUED, answer.reason, extra=about)
    elif isinstance(answer, CommitAway):
        _planner_log.warning(
            "job '%s' cannot be planned yet: %s; it is planned again soon", name, answer.reason, extra=about
        )
    else:
        _planner_log.debug(TAKEN_BY_ANOTHER, extra=about)
