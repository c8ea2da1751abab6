"""Which promises of a job are broken, and which are kept again.

An instant is kept if one of its runs has started, or ended well, by the promised moment. It is excused if people have
decided that it does not run: they paused, disabled or braked the job, skipped, moved or canceled it. Otherwise it is
a breach: no node planned it, it waited, it failed, it was missed, or left out since the job was busy.

A breach is one row of instants that were not kept; the next one that is kept ends it. So a job that is always a little
late is one breach, and not one for each instant. Of `success_within` it is one stretch of time without a success.

Nothing is planned here: what no plan has decided is named by the snapshot that a plan would see. So any node can judge,
also if all nodes that could plan and run the job are gone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain

from everytick.deciding.activity import is_active
from everytick.domain.decisions import Span, Why
from everytick.domain.durations import MICROSECOND, format_duration
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause, Occurrence
from everytick.domain.promise_policies import PromiseKind
from everytick.domain.promises import (
    READ_AT_ONCE,
    Breach,
    Judgement,
    PromisedRun,
    PromiseSnapshot,
    PromiseState,
    promises_of,
)
from everytick.domain.schedule import waits_for_end
from everytick.domain.statuses import WELL, OccurrenceStatus
from everytick.domain.upcoming import in_force, upcoming
from everytick.domain.values import value
from everytick.schedules.deadlines import Deadlines, deadlines

SETTLE = timedelta(seconds=2)
"""How long after its moment a promise is judged: the record of a timely start may still be on its way to the store."""

RECHECK, LEAST_RECHECK = timedelta(seconds=5), timedelta(minutes=5)
"""The shortest and the longest wait before a broken promise is judged again. In between it is a tenth of the time that
the breach lasts already: people hear soon that the promise is kept again, and long breaches cost little."""

_S = OccurrenceStatus

_EXCUSED = frozenset({Why.ADJUSTED, Why.MOVED, Why.RESCHEDULED, Why.DISABLED, Why.PAUSED, Why.SUCCESSFUL, Why.REMOVED})
"""Why an instant did not run although nothing went wrong: people decided so, or its work was done already."""

_SHORTEST, _LONGEST = timedelta(seconds=30), timedelta(minutes=10)
_COUNTED = 10_000
"""Up to this many instants of a span are counted; more of them are told as so many."""


def judge(snapshot: PromiseSnapshot, now: datetime) -> Judgement:
    """Return where the promise stands now, the breaches that began or ended, and when to look again."""
    seen, state = snapshot.seen, _with_hold(snapshot, now)
    job = seen.editions[-1].job
    promised = promises_of(job.settings).get(state.kind)
    if promised is None or seen.retire_at is not None:
        return _withdrawn(snapshot, state, now)
    if state.kind is PromiseKind.SUCCESS_WITHIN:
        assert isinstance(promised, timedelta), "a success is promised within a length of time"
        return _judge_successes(snapshot, state, promised, now)
    return _Instants(snapshot, state, deadlines(promised, job), now).judgement()


def _withdrawn(snapshot: PromiseSnapshot, state: PromiseState, now: datetime) -> Judgement:
    """End what goes on: the job, or its promise, was taken back."""
    ended = () if state.breach is None else (replace(state.breach, ended_at=now, is_withdrawn=True),)
    return Judgement(snapshot.job_id, replace(state, breach=None, check_at=None), ended)


# ---------------------------------------------------------------------------------------------- pauses and disabling


def _with_hold(snapshot: PromiseSnapshot, now: datetime) -> PromiseState:
    """Return the state with the time for which the job was last paused or disabled."""
    state, hold = snapshot.state, _hold(snapshot, now)
    was_held = state.held_after is not None and (state.held_through is None or state.held_through > now)
    if hold is not None:
        after, through = hold
        begin = min(after, state.held_after) if was_held and state.held_after is not None else after
        return replace(state, held_after=begin, held_through=through)
    if was_held:
        return replace(state, held_through=_end_of_hold(snapshot, now))
    over = [pause for pause in snapshot.seen.pauses if pause.until is not None and pause.until <= now]
    newest = max(over, key=lambda pause: pause.until or now, default=None)
    if newest is not None and (state.held_through is None or (newest.until or now) > state.held_through):
        # It came and went while no node looked.
        return replace(state, held_after=newest.since, held_through=newest.until)
    return state


def _hold(snapshot: PromiseSnapshot, now: datetime) -> tuple[datetime, datetime | None] | None:
    """Return since when and until when nothing is owed; None if something is.

    The job is disabled, paused, braked, has not begun yet, or is over: nothing of its schedule is to come and nothing
    runs.
    """
    seen = snapshot.seen
    if seen.retire_at is not None or not in_force(seen.editions, now).enabled:
        since = seen.editions[-1].in_force_after
        return (now if since is None else min(since, now)), None
    pause = next((pause for pause in seen.pauses if pause.since <= now and pause.holds(now)), None)
    if pause is not None:
        return pause.since, pause.until
    if snapshot.brake is not None:
        return snapshot.brake.since, snapshot.brake.until
    if is_active(seen, now):
        return None
    start = in_force(seen.editions, now).settings.start
    return now, None if start is None or start <= now else start


def _end_of_hold(snapshot: PromiseSnapshot, now: datetime) -> datetime:
    """Return when the pause ended, or the job was enabled; now where a plan has taken the record of it away."""
    seen, began = snapshot.seen, snapshot.state.held_after
    ends = [pause.until for pause in seen.pauses if pause.until is not None]
    for before, after in zip(seen.editions, seen.editions[1:], strict=False):
        if after.in_force_after is not None and after.job.enabled and not before.job.enabled:
            ends.append(after.in_force_after)
    return max((end for end in ends if end <= now and (began is None or end >= began)), default=now)


# ------------------------------------------------------------------------------------------------------- success_within


def _judge_successes(snapshot: PromiseSnapshot, state: PromiseState, within: timedelta, now: datetime) -> Judgement:
    """Judge by the last two successes. A stretch without one is told only where these two prove it."""
    seen, breach = snapshot.seen, state.breach
    is_held = state.held_after is not None and (state.held_through is None or state.held_through > now)
    known = (seen.other_success, seen.last_success)
    successes = sorted(success.ended_at for success in known if success is not None and success.ended_at <= now)
    anchor, written = state.judged_through, list[Breach]()
    if state.held_through is not None and state.held_through <= now:
        anchor = max(anchor, state.held_through)
    for at in successes:
        if breach is not None and at > breach.broken_for:
            written.append(replace(breach, ended_at=max(at, breach.due_at)))
            breach = None
        elif breach is None and at == successes[-1] and anchor + within < at:
            # Between the last two there was none. Before the older one there may have been others.
            written.append(replace(_no_success(anchor, within, now), ended_at=at))
        anchor = max(anchor, at)
    due_at = anchor + within
    if breach is None and not is_held and now > due_at + SETTLE:
        breach = _no_success(anchor, within, now)
        written.append(breach)
    if breach is not None:
        check_at: datetime | None = _again_at(breach, now)
    elif snapshot.brake is not None:
        # Its release does not make promises due.
        check_at = now + LEAST_RECHECK
    elif is_held:
        check_at = None if state.held_through is None else state.held_through + within + SETTLE
    else:
        check_at = due_at + SETTLE + MICROSECOND
    after = replace(state, judged_through=anchor, breach=breach, check_at=check_at)
    return Judgement(snapshot.job_id, after, tuple(written))


def _again_at(breach: Breach, now: datetime) -> datetime:
    """Return when to look again at a promise that is broken."""
    return now + min(max((now - breach.found_at) / 10, RECHECK), LEAST_RECHECK)


def _no_success(since: datetime, within: timedelta, now: datetime) -> Breach:
    reason = f"no success since {since.isoformat()}"
    return Breach(PromiseKind.SUCCESS_WITHIN, since, since + within, now, since, reason=reason)


# ----------------------------------------------------------------------------------------------- start_by and finish_by


@value
class _Item:
    """One instant of the schedule, or several neighbours that did not run for one reason; `instant` is the last.

    `kept_at` is when it was kept, if it was. `reason` says what was seen instead; it is empty for what is excused.
    """

    instant: datetime
    kept_at: datetime | None = None
    reason: str = ""
    occurrence_id: str | None = None
    first: datetime | None = None
    count: int = 1


class _Instants:
    """The instants after the last judgement: what became of each, and what follows for the promise."""

    def __init__(self, snapshot: PromiseSnapshot, state: PromiseState, clock: Deadlines, now: datetime) -> None:
        self.snapshot, self.state, self.clock, self.now = snapshot, state, clock, now
        self.runs = defaultdict[datetime, list[PromisedRun]](list)
        for run in snapshot.runs:
            self.runs[run.scheduled_for].append(run)
        self.is_cut = False
        self.through = self._due_through()
        self.named = self._named()

    def _due_through(self) -> datetime:
        """Return the last instant that can be judged now: it is due, and everything before it was read."""
        snapshot, through = self.snapshot, self.clock.passed(self.now - SETTLE)
        for rows, last in (
            (snapshot.runs, snapshot.runs[-1].scheduled_for - MICROSECOND if snapshot.runs else None),
            (snapshot.spans, snapshot.spans[-1].through if snapshot.spans else None),
        ):
            if len(rows) >= READ_AT_ONCE and last is not None and last < through:
                through, self.is_cut = last, True
        return through

    def _named(self) -> list[datetime]:
        """Return the instants that no plan has decided: all that can be judged, and the next one."""
        seen, after = self.snapshot.seen, self.state.judged_through
        names = upcoming(seen, after, 2)
        if len(names) == 2 and names[-1] <= self.through:
            names = upcoming(seen, after, READ_AT_ONCE)
            if len(names) == READ_AT_ONCE and names[-1] <= self.through:
                self.through, self.is_cut = names[-1], True
        decided = [name for name in names if name in self.runs or self._span_of(name) is not None]
        return [name for name in names if name not in decided]

    def _span_of(self, instant: datetime) -> Span | None:
        return next((span for span in self.snapshot.spans if span.after < instant <= span.through), None)

    def judgement(self) -> Judgement:
        """Return where the promise stands."""
        breach, written = self.state.breach, list[Breach]()
        for item in self._due():
            if item.kept_at is not None:
                if breach is not None:
                    written.append(replace(breach, ended_at=max(item.kept_at, breach.due_at)))
                    breach = None
            elif item.reason:
                breach = self._begun(item) if breach is None else _extended(breach, item)
                written.append(breach)
        if breach is not None and (again_at := self._kept_before_its_time()) is not None:
            written.append(replace(breach, ended_at=max(again_at, breach.due_at)))
            breach = None
        judged = max(self.state.judged_through, self.through)
        after = replace(self.state, judged_through=judged, breach=breach, check_at=self._check_at(breach))
        return Judgement(self.snapshot.job_id, after, _newest_of_each(written))

    def _begun(self, item: _Item) -> Breach:
        first = item.first or item.instant
        kind, due_at, count = self.state.kind, self.clock.of(first), item.count
        return Breach(kind, first, due_at, self.now, item.instant, count, item.reason, item.occurrence_id)

    def _due(self) -> list[_Item]:
        """Return what can be judged now, in order."""
        begin = self.state.judged_through
        spans = (item for span in self.snapshot.spans if (item := self._of_span(span)) is not None)
        runs = (self._of_instant(at) for at, runs in self.runs.items() if _is_scheduled(runs))
        names = (self._of_instant(at) for at in self.named)
        items = (item for item in chain(spans, runs, names) if begin < item.instant <= self.through)
        return sorted(items, key=lambda item: item.instant)

    def _kept_before_its_time(self) -> datetime | None:
        """Return when the next instant was kept, although its moment has not come yet; None if it was not."""
        for item in self._later():
            if item.kept_at is not None or item.reason:
                return item.kept_at
        return None

    def _later(self) -> list[_Item]:
        """Return what is known of instants whose moment has not come yet, in order."""
        runs = [self._of_instant(at) for at, runs in self.runs.items() if at > self.through and _is_scheduled(runs)]
        spans = [item for span in self.snapshot.spans if (item := self._rest_of(span)) is not None]
        names = [self._of_instant(at) for at in self.named if at > self.through]
        return sorted((*runs, *spans, *names), key=lambda item: item.instant)

    def _check_at(self, breach: Breach | None) -> datetime | None:
        """Return when the next breach could be there: after the moment of the next instant that is not kept yet."""
        if self.is_cut:
            return self.now
        soonest = next((item.instant for item in self._later() if item.reason), None)
        check_at = None if soonest is None else self.clock.of(soonest) + SETTLE + MICROSECOND
        if check_at is None and waits_for_end(self._job.schedule):
            promised = self.clock.promised
            wait = promised if isinstance(promised, timedelta) else _LONGEST
            check_at = self.now + min(max(wait, _SHORTEST), _LONGEST)
        if breach is not None:
            again = _again_at(breach, self.now)
            return again if check_at is None else min(check_at, again)
        return check_at

    @property
    def _job(self) -> Job:
        return self.snapshot.seen.editions[-1].job

    # ---------------------------------------------------------------------------------------- what became of each

    def _of_instant(self, instant: datetime) -> _Item:
        """Return what became of an instant by its moment."""
        runs, due_at = self.runs.get(instant, ()), self.clock.of(instant)
        item = _Item(instant, self._kept_at(runs, due_at), occurrence_id=runs[0].id if runs else None)
        if item.kept_at is not None or self._is_held(instant) or any(_is_excused(run, self.state.kind) for run in runs):
            return item
        return replace(item, reason=self._reason(runs, due_at))

    def _kept_at(self, runs: Iterable[PromisedRun], due_at: datetime) -> datetime | None:
        """Return when one of these runs did what was promised, if that was in time."""
        moments = map(self._done_at, runs)
        return min((at for at in moments if at is not None and at <= due_at), default=None)

    def _covering(self, instant: datetime) -> Iterator[PromisedRun]:
        """Give the runs that stand for an instant that was compressed into them."""
        for run in self.snapshot.runs:
            after, through = run.covers_after, run.covers_through
            if after is not None and through is not None and after < instant <= through:
                yield run

    def _done_at(self, run: PromisedRun) -> datetime | None:
        if self.state.kind is PromiseKind.START_BY:
            return run.started_at
        return run.ended_at if run.status in WELL else None

    def _is_held(self, instant: datetime) -> bool:
        after, through = self.state.held_after, self.state.held_through
        return after is not None and after < instant <= (through or self.now)

    def _reason(self, runs: Sequence[PromisedRun], due_at: datetime) -> str:
        own = next((run for run in runs if run.cause is Cause.SCHEDULE), runs[0] if runs else None)
        if own is None:
            return "no node has planned it"
        if own.status in (_S.SKIPPED, _S.MISSED, _S.SUPERSEDED, _S.CANCELED) and own.started_at is None:
            return f"it was {own.status}" + (f": {own.reason}" if own.reason else "")
        if own.started_at is None:
            return f"it is {own.status} and has not started"
        if self.state.kind is PromiseKind.START_BY:
            return f"it started at {own.started_at.isoformat()}, {_late(own.started_at, due_at)} late"
        if own.ended_at is None:
            return f"it is {own.status} since {own.started_at.isoformat()}"
        late = f", {_late(own.ended_at, due_at)} late" if own.ended_at > due_at else ""
        return f"it {own.status} at {own.ended_at.isoformat()}{late}"

    def _of_span(self, span: Span) -> _Item | None:
        """Return the instants of a span that can be judged now; None if there is none of them."""
        return self._part_of(span, max(span.after, self.state.judged_through), min(span.through, self.through))

    def _rest_of(self, span: Span) -> _Item | None:
        """Return the first instant of a span that can be judged later; None if there is none."""
        part = self._part_of(span, max(span.after, self.through), span.through)
        return None if part is None or part.first is None else replace(part, instant=part.first)

    def _part_of(self, span: Span, after: datetime, through: datetime) -> _Item | None:
        if after >= through:
            return None
        is_whole = after == span.after and through == span.through
        jobs = [edition.job for edition in self.snapshot.seen.editions if edition.job.version == span.version]
        schedule = (jobs[0] if jobs else self._job).bound(None)
        first, last = schedule.next_after(after), schedule.last_at(through)
        if first is None or last is None or first > last:
            if not is_whole:
                return None
            first = last = span.through
        item = _Item(last, first=first, count=span.count or _COUNTED)
        if not is_whole:
            item = replace(item, count=len(schedule.instants(after, through, _COUNTED)))
        if span.why in _EXCUSED or self._is_held(last):
            return item
        runs = self._covering(first) if span.why is Why.COMPRESSED else self.runs.get(first, ())
        kept_at = self._kept_at(runs, self.clock.of(first))
        if kept_at is not None:
            return replace(item, kept_at=kept_at)
        why = f"{span.why}, {span.detail}" if span.detail else str(span.why)
        return replace(item, reason=f"it was {why}" if span.why == str(span.status) else f"it was {span.status}: {why}")


def _is_excused(run: PromisedRun, kind: PromiseKind) -> bool:
    """Whether people have ended it, or decided that it does not run."""
    if run.cause is not Cause.SCHEDULE:
        return False
    if run.status is _S.CANCELED:
        return kind is PromiseKind.FINISH_BY or run.started_at is None
    reason = run.reason or ""
    is_left_out = run.status in (_S.SKIPPED, _S.MISSED)
    return is_left_out and any(reason == why or reason.startswith(f"{why},") for why in _EXCUSED)


def _is_scheduled(runs: Sequence[PromisedRun]) -> bool:
    """Whether the schedule has named the instant of these runs, and not only a request."""
    return any(run.cause is Cause.SCHEDULE for run in runs)


def _extended(breach: Breach, item: _Item) -> Breach:
    return replace(breach, last_for=item.instant, count=breach.count + item.count, reason=item.reason)


def _newest_of_each(written: Sequence[Breach]) -> tuple[Breach, ...]:
    """Return each breach as it stands last, in order."""
    return tuple({breach.broken_for: breach for breach in written}.values())


def _late(at: datetime, due_at: datetime) -> str:
    return format_duration(timedelta(seconds=max(round((at - due_at).total_seconds()), 1)))


def begun(judgement: Judgement, before: PromiseState) -> Iterator[Breach]:
    """Give the breaches that began with this judgement."""
    known = before.breach
    return (breach for breach in judgement.breaches if known is None or breach.broken_for != known.broken_for)


def ended(judgement: Judgement) -> Iterator[Breach]:
    """Give the breaches that ended with this judgement because the promise is kept again."""
    return (breach for breach in judgement.breaches if breach.ended_at is not None and not breach.is_withdrawn)


def broken_by(occurrence: Occurrence, breaches: Iterable[Breach]) -> tuple[PromiseKind, ...]:
    """Return the promises that were broken for this entry of the history, by the breaches of its job."""
    run = PromisedRun(
        occurrence.id,
        occurrence.scheduled_for,
        occurrence.status,
        occurrence.cause,
        occurrence.started_at,
        reason=occurrence.reason,
    )
    if run.cause is not Cause.SCHEDULE:
        return ()
    within = [breach for breach in breaches if breach.broken_for <= occurrence.scheduled_for <= breach.last_for]
    kinds = {breach.kind for breach in within if not _is_excused(run, breach.kind)} - {PromiseKind.SUCCESS_WITHIN}
    return tuple(kind for kind in PromiseKind if kind in kinds)
