"""The past of a job as its page draws it: occurrences, and instants that did not run, one by one or as one entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.domain.decisions import Why
from everytick.domain.durations import MICROSECOND
from everytick.domain.ids import occurrence_id
from everytick.domain.questions import why_of
from everytick.domain.statuses import ENDED
from everytick.domain.values import value
from everytick.web.pictures.strip import AHEAD, Square
from everytick.web.pictures.trail import localized
from everytick.web.pictures.trend import Took
from everytick.web.words import count, cut, length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime, timedelta

    from everytick.app.job_overviews import JobOverview
    from everytick.app.questions import UpcomingRun
    from everytick.domain.decisions import Span
    from everytick.domain.job import Job
    from everytick.domain.occurrence import Occurrence
    from everytick.web.words import Viewer

ONE_BY_ONE = 5
"""Longest row of instants that did not run of which each is an entry of its own."""

_MOST_COUNTED = 10_000
"""Most instants of a span that are counted."""

_USUAL_REASONS = frozenset({str(Why.ON_TIME), str(Why.ASKED)})


@value(frozen=True)
class PastEntry:
    """An occurrence, or `count` instants in a row that did not run for one reason; `at` is the last of them."""

    at: datetime
    status: str
    count: int = 1
    run: Occurrence | None = None
    after: datetime | None = None
    why: str = ""

    @property
    def took(self) -> timedelta | None:
        """How long it ran; None if it did not begin, or has not ended."""
        run = self.run
        if run is None or run.started_at is None or run.ended_at is None:
            return None
        return run.ended_at - run.started_at


def past_entries(seen: JobOverview) -> list[PastEntry]:
    """Return the past of a job, newest first."""
    known = {edition.job.version: edition.job for edition in seen.snapshot.editions}
    known |= {version.version: version.job for version in seen.versions} | {seen.record.job.version: seen.record.job}
    ids = {run.id for run in seen.runs}
    found = [PastEntry(run.scheduled_for, str(run.status), run=run, why=_reason(run)) for run in seen.runs]
    for span in seen.spans:
        found += _of_span(span, known.get(span.version), ids)
    return sorted(found, key=lambda entry: entry.at, reverse=True)


def _reason(run: Occurrence) -> str:
    """Return why it ended or waits. That it was on time or asked for is no news once it has ended."""
    said = why_of(run.reason, run.error)
    if run.error is None and run.status in ENDED and said.startswith(str(Why.ON_TIME)):
        return ""
    return "" if said in _USUAL_REASONS else said.removeprefix(f"{Why.ASKED}, ")


def _of_span(span: Span, job: Job | None, ids: set[str]) -> Iterable[PastEntry]:
    """Give the instants of a short span one by one, without those that have an occurrence; a long one as one entry."""
    why = f"{span.why}, {span.detail}" if span.detail else str(span.why)
    amount = _counted(span, job)
    if job is None or amount > ONE_BY_ONE:
        # The span of a pause that goes on ends now, where the schedule names nothing.
        last = None if job is None else job.bound(None).last_at(span.through)
        at = span.through if last is None or last <= span.after else last
        return [PastEntry(at, str(span.status), amount, after=span.after, why=why)]
    instants = (at for at in _instants(span, job) if occurrence_id(job.id, at) not in ids)
    return [PastEntry(at, str(span.status), why=why) for at in instants]


def _counted(span: Span, job: Job | None) -> int:
    """Return how many instants a span has, 10,000 if there are more. One of a pause that goes on has no count yet."""
    if span.count is not None:
        return span.count
    return _MOST_COUNTED if job is None else len(job.bound(None).instants(span.after, span.through, _MOST_COUNTED))


def _instants(span: Span, job: Job) -> Iterator[datetime]:
    schedule = job.bound(None)
    instant = schedule.last_at(span.through)
    while instant is not None and instant > span.after:
        yield instant
        instant = schedule.last_at(instant - MICROSECOND)


# ------------------------------------------------------------------------------------------------- for the pictures


def past_squares(
    entries: Sequence[PastEntry], viewer: Viewer, href: Callable[[PastEntry], str], *, with_errors: bool
) -> list[Square]:
    """Return the squares of a strip, oldest first. Without `with_errors` no title says what an error said."""
    return [
        Square(entry.status, entry_title(entry, viewer, with_errors=with_errors), href(entry), entry.count)
        for entry in reversed(entries)
    ]


def lengths_taken(entries: Sequence[PastEntry], viewer: Viewer) -> list[Took]:
    """Return how long each took, oldest first, for the trend."""
    days = [viewer.local(entry.at) for entry in entries]
    is_short = bool(days) and (days[0] - days[-1]).days < 2
    return [
        Took(entry.took, viewer.clock(entry.at) if is_short else viewer.day(entry.at).partition(" ")[2])
        for entry in reversed(entries)
    ]


def coming_squares(coming: Sequence[UpcomingRun], viewer: Viewer) -> list[Square]:
    """Return the hollow squares of what is planned."""
    shown = [run for run in coming if run.mark != "skipped"][:AHEAD]
    return [Square("planned", f"planned for {viewer.when(run.at)}") for run in shown]


def entry_title(entry: PastEntry, viewer: Viewer, *, with_errors: bool) -> str:
    """Return what an entry is in one line."""
    if entry.count > 1:
        many = f"{count(entry.count, 'instant')} {entry.status} through {viewer.when(entry.at)}"
        return f"{many}: {localized(entry.why, viewer)}" if entry.why else many
    parts = [f"{viewer.when(entry.at)}: {entry.status}"]
    if entry.took is not None:
        parts.append(length(entry.took))
    is_error = entry.run is not None and entry.run.error is not None
    if entry.why and (with_errors or not is_error):
        parts.append(cut(localized(entry.why, viewer), 120))
    return ", ".join(parts)
