"""What the page of a job says in sentences and numbers. Nothing here asks a store or reads a clock."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from everytick.domain.durations import format_duration
from everytick.domain.promises import promises_of
from everytick.domain.schedule import is_on_request, waits_for_end
from everytick.domain.statuses import ACTIVE, FINISHED, OccurrenceStatus
from everytick.domain.values import value
from everytick.web.parked_reasons import why_parked
from everytick.web.pictures.trail import localized
from everytick.web.pictures.usual import usual
from everytick.web.words import count, cut, length, number, sentence, usually

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from everytick.app import Everytick
    from everytick.app.job_overviews import JobOverview
    from everytick.domain.job import Job
    from everytick.domain.promises import PromiseState
    from everytick.domain.snapshots import PausedSpan
    from everytick.web.job_past import PastEntry
    from everytick.web.words import Viewer

GOOD_OF = 60
"""How many past entries the share of good ones is told of: those of the strip."""

_S = OccurrenceStatus
_COUNTED = {_S.COMPLETED, _S.COMPLETED_WITH_ERRORS, _S.FAILED, _S.FAILED_STALE, _S.MISSED}
_WRONG = frozenset({_S.FAILED, _S.FAILED_STALE})
_LOOK = frozenset({_S.COMPLETED_WITH_ERRORS, _S.MISSED, _S.AWAITING_RETRY})
_NOT_GOOD = {"failed": _WRONG, "with errors": {_S.COMPLETED_WITH_ERRORS}, "missed": {_S.MISSED}}
_CHANGED = 0.05
"""From this share on, a change of the usual length is worth a word."""

_LEAST_RUNS = 5
"""With fewer runs in each half a trend would be chance."""


@value(frozen=True)
class JobSaid:
    """How a job is, in a sentence: what it did last, and what it does next. `mark` is the glyph beside it."""

    mark: str
    text: str


@value(frozen=True)
class JobNumber:
    """One of the five numbers: its name, the number, its unit and a line below."""

    name: str
    number: str
    unit: str = ""
    more: str = ""
    mark: str = ""
    tone: str = ""
    href: str = ""


@value(frozen=True)
class Hold:
    """Something that keeps a job from running as its schedule says, and the deed that ends it."""

    mark: str
    tone: str
    text: str
    deed: str = ""
    label: str = ""


# ---------------------------------------------------------------------------------------------------------- sentences


def definer_of(job: Job, tick: Everytick) -> str:
    """Return who defines the job, if the next sync would undo an edit of it."""
    if job.owner.startswith("code:"):
        return f"the code of application {job.owner[5:]}"
    return "a file" if job.owner in ("file", tick.jobs_owner) else ""


def job_said(seen: JobOverview, entries: Sequence[PastEntry], viewer: Viewer) -> JobSaid:
    """Return the heading: "etl-orders is well; it runs next at 15:00."."""
    record = seen.record
    if record.removed_at is not None:
        by = f" by {record.removed_by}" if record.removed_by else ""
        return _said(seen, "canceled", f"was removed {_at(record.removed_at, viewer)}{by}", "nothing is to come")
    mark, past = _how_it_is(seen, entries, viewer)
    return _said(seen, mark, past, _what_follows(seen, viewer))


def _said(seen: JobOverview, mark: str, past: str, future: str) -> JobSaid:
    return JobSaid(mark, f"{seen.record.job.name} {past}; {future}.")


def _how_it_is(seen: JobOverview, entries: Sequence[PastEntry], viewer: Viewer) -> tuple[str, str]:
    record, pause = seen.record, seen.record.pause
    if not record.job.enabled:
        return "canceled", "is disabled"
    if record.parked_reason is not None or seen.refused:
        return "failed", "cannot run"
    if pause is not None:
        return "paused", "is paused"
    if seen.status.breaches:
        return "promise", f"breaks its promise {seen.status.breaches[0].kind}"
    if seen.status.waits:
        return "brake", "is held back"
    return _last_of(entries, viewer)


def _last_of(entries: Sequence[PastEntry], viewer: Viewer) -> tuple[str, str]:
    """Return how the newest entry stands, where what is under way comes before what has ended."""
    started = [
        entry for entry in entries if entry.run is not None and entry.run.status in (_S.RUNNING, _S.AWAITING_RETRY)
    ]
    newest = started[0] if started else next((entry for entry in entries if _tells(entry)), None)
    if newest is None:
        waits = next((entry for entry in entries if entry.status in ACTIVE), None)
        return (
            ("fine", "has not run yet")
            if waits is None
            else (waits.status, f"has been waiting since {viewer.when(waits.at)}")
        )
    began = newest.at if newest.run is None or newest.run.started_at is None else newest.run.started_at
    at = _at(newest.at, viewer)
    words = {
        _S.RUNNING: f"has been running since {viewer.when(began)}",
        _S.AWAITING_RETRY: "failed and is tried again",
        _S.COMPLETED_WITH_ERRORS: f"completed with errors {at}",
        _S.FAILED: f"failed {at}",
        _S.FAILED_STALE: f"lost its node {at}",
        _S.MISSED: f"missed its run {at}" if newest.count == 1 else f"missed {count(newest.count, 'run')}",
        _S.CANCELED: f"was canceled {at}",
    }
    status = OccurrenceStatus(newest.status)
    return ("fine", "is well") if status is _S.COMPLETED else (newest.status, words[status])


def _tells(entry: PastEntry) -> bool:
    """Whether an entry says how the job is: one that was skipped or gave way to another does not."""
    return entry.status in FINISHED or entry.status == _S.MISSED


def _what_follows(seen: JobOverview, viewer: Viewer) -> str:
    job, following = seen.record.job, seen.status.next_run
    if following is not None and following > viewer.now:
        first = "first" if not seen.runs and not seen.spans else "next"
        return f"it runs {first} {_at(following, viewer)}"
    if following is not None:
        return "its next run is due now"
    if is_on_request(job.schedule):
        return "it runs on request"
    if seen.record.pause is not None:
        until = seen.record.pause.until
        return "nothing runs until it is resumed" if until is None else f"the pause ends {_at(until, viewer)}"
    if not job.enabled:
        return "nothing runs until it is enabled"
    if waits_for_end(job.schedule) and seen.status.is_active:
        return "it runs again after its end"
    return "nothing is to come"


def _at(moment: datetime, viewer: Viewer) -> str:
    """Return when, as a sentence has it: `at 15:00`, `on Sat 02:30`."""
    text = viewer.when(moment)
    return f"at {text}" if ":" in text.partition(" ")[0] else f"on {text}"


def schedule_said(job: Job) -> str:
    """Return the schedule as a sentence."""
    return sentence(
        f"runs {words}" if (words := job.schedule.describe()) and not words.startswith("on request") else words
    )


def holds_of(seen: JobOverview, viewer: Viewer, *, with_errors: bool) -> list[Hold]:
    """Return what holds the job back, the most important first."""
    record = seen.record
    found: list[Hold] = []
    if record.removed_at is not None:
        if record.retire_at is not None and record.retire_at > seen.now:
            when = viewer.when(record.retire_at, seconds=True)
            text = f"What waits of it ends at {when}, unless the job is defined again before."
            found.append(Hold("canceled", "look", text))
        return found
    if seen.refused:
        found.append(Hold("failed", "wrong", f"No living node can run it: {seen.refused}."))
    if record.parked_reason is not None:
        reason = why_parked(record.parked_reason, with_errors=with_errors)
        found.append(Hold("failed", "wrong", f"Nothing of it is planned: {cut(reason, 300)}"))
    if not record.job.enabled:
        found.append(Hold("canceled", "look", "It is disabled: its instants are skipped.", "enable", "Enable…"))
    if record.pause is not None:
        found.append(Hold("paused", "look", _pause_said(record.pause, viewer), "resume", "Resume…"))
    if seen.status.waits:
        found.append(Hold("brake", "look", f"It is held back: {localized(seen.status.waits, viewer)}."))
    return found


def _pause_said(pause: PausedSpan, viewer: Viewer) -> str:
    by = f" by {pause.by}" if pause.by else ""
    why = f": {pause.reason}" if pause.reason else ""
    end = "until it is resumed" if pause.until is None else f"until {viewer.when(pause.until)}"
    then = {"skip": "are skipped", "catch_up": "run afterwards", "last": "give way to the last, which runs afterwards"}
    return f"Paused {viewer.when(pause.since)}{by}{why}. Its instants {then[str(pause.missed)]}, {end}."


# ------------------------------------------------------------------------------------------------------------ numbers


def job_numbers(seen: JobOverview, entries: Sequence[PastEntry], viewer: Viewer) -> list[JobNumber]:
    """Return the five numbers: last, next, good ones, usual length, start delay."""
    return [
        _last_number(entries, viewer),
        _next_number(seen, viewer),
        _good_number(entries[:GOOD_OF]),
        _length_number(seen, entries, viewer),
        _delay_number(entries),
    ]


def _last_number(entries: Sequence[PastEntry], viewer: Viewer) -> JobNumber:
    newest = next((entry for entry in entries if entry.status not in (_S.SKIPPED, _S.SUPERSEDED)), None)
    newest = newest or (entries[0] if entries else None)
    if newest is None:
        return JobNumber("Last", "–", more="it has not run yet")
    tone = "wrong" if newest.status in _WRONG else "look" if newest.status in _LOOK else ""
    ago = viewer.ago(newest.at)
    more = viewer.when(newest.at) if ago == viewer.when(newest.at) else f"{viewer.when(newest.at)}, {ago}"
    return JobNumber("Last", newest.status, more=more, mark=newest.status, tone=tone)


def _next_number(seen: JobOverview, viewer: Viewer) -> JobNumber:
    at = seen.status.next_run
    if at is None:
        return JobNumber("Next", "–", more=_what_follows(seen, viewer), mark="planned")
    clock, when = viewer.clock(at), viewer.when(at)
    day = when.removesuffix(clock).strip()
    often = usually(None if seen.lengths is None else seen.lengths.p50)
    distant = at - viewer.now
    soon = (
        f"in {length(distant)}"
        if timedelta(0) < distant < timedelta(days=400)
        else "due now"
        if distant < timedelta(0)
        else ""
    )
    return JobNumber("Next", clock, day, ", ".join(filter(None, (soon, often))), "planned")


def _good_number(entries: Sequence[PastEntry]) -> JobNumber:
    counted = [entry for entry in entries if entry.status in _COUNTED]
    of, good = sum(entry.count for entry in counted), sum(entry.status == _S.COMPLETED for entry in counted)
    name = f"Good in {number(min(of, sum(entry.count for entry in entries)) or GOOD_OF)}"
    if not of:
        return JobNumber(name, "–", more="none has ended yet")
    others = [
        f"{number(many)} {word}"
        for word, statuses in _NOT_GOOD.items()
        if (many := sum(entry.count for entry in counted if entry.status in statuses))
    ]
    share = f"{100 * good / of:.1f}".removesuffix(".0")
    return JobNumber(name, share, "%", ", ".join([f"{number(good)} of {number(of)}", *others]))


def _length_number(seen: JobOverview, entries: Sequence[PastEntry], viewer: Viewer) -> JobNumber:
    known = seen.lengths
    if known is None:
        return JobNumber("Usual length", "–", more="no run has completed lately")
    more = "; ".join(filter(None, (f"p95 {rounded_length(known.p95)}", _change_of_length(entries, viewer))))
    return JobNumber("Usual length", *_figure(known.p50), more)


def _figure(of: timedelta) -> tuple[str, str]:
    """Return a length as a number and its unit; one of two units as a number alone."""
    said = rounded_length(of)
    figure, _, unit = said.partition(" ")
    return (said, "") if " " in unit else (figure, unit)


def rounded_length(of: timedelta) -> str:
    """Return a length of at most two units without what does not matter: over ten minutes, no seconds."""
    return length(timedelta(minutes=round(of / timedelta(minutes=1)))) if of >= timedelta(minutes=10) else length(of)


def _change_of_length(entries: Sequence[PastEntry], viewer: Viewer) -> str:
    """Return how the usual length of the newer half differs from that of the older half, if that is worth a word."""
    good = [entry for entry in entries[:GOOD_OF] if entry.status == _S.COMPLETED and entry.took is not None]
    half = len(good) // 2
    newer, older = (
        usual([entry.took for entry in some if entry.took is not None]) for some in (good[:half], good[half:])
    )
    if half < _LEAST_RUNS or newer is None or older is None:
        return ""
    change = newer.p50 - older.p50
    if abs(change) < max(_CHANGED * older.p50, timedelta(milliseconds=10)):
        return ""
    sign = "+" if change > timedelta(0) else "−"
    return f"{sign}{rounded_length(abs(change))} since {viewer.day_or_clock(good[-1].at)}"


def _delay_number(entries: Sequence[PastEntry]) -> JobNumber:
    delays = [
        max(run.started_at - (run.line_at or run.scheduled_for), timedelta(0))
        for entry in entries[:GOOD_OF]
        if (run := entry.run) is not None and run.started_at is not None
    ]
    band = usual(delays)
    if band is None:
        return JobNumber("Start delay", "–", more="too few runs to say")
    return JobNumber("Start delay", *_figure(band.p50), f"p95 {rounded_length(band.p95)}")


# ----------------------------------------------------------------------------------------------------------- promises


@value(frozen=True)
class PromiseLine:
    """One promise of a job: what is promised, and whether it is kept."""

    kind: str
    promised: str
    mark: str
    state: str


def promise_lines(seen: JobOverview, viewer: Viewer) -> list[PromiseLine]:
    """Return the promises of a job, each with how it stands; forecasts are told with those that may be broken."""
    states = {record.state.kind: record.state for record in seen.promises}
    found = []
    for kind, promised in promises_of(seen.record.job.settings).items():
        text = format_duration(promised) if isinstance(promised, timedelta) else str(promised)
        likely = next((forecast for forecast in seen.status.forecasts if forecast.kind is kind), None)
        mark, state = _promise_state(states.get(kind), viewer)
        if likely is not None:
            mark, state = "late", sentence(localized(f"it {likely}", viewer))
        found.append(PromiseLine(str(kind), text, mark, state))
    return found


def _promise_state(state: PromiseState | None, viewer: Viewer) -> tuple[str, str]:
    if state is None:
        return "planned", "Nothing has been judged yet."
    if state.breach is not None:
        breach = state.breach
        many = f", {count(breach.count, 'instant')} not kept" if breach.count > 1 else ""
        why = f": {localized(breach.reason, viewer)}" if breach.reason else ""
        return "failed", f"Broken since {viewer.when(breach.due_at)}{many}{why}."
    until = "" if state.check_at is None else f"; judged again {viewer.when(state.check_at)}"
    return "fine", f"Kept{until}."
