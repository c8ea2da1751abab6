"""The history: what ran, what did not, and why. Filters stand in the address; the same filters make CSV and JSON."""

import csv
import io
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from everytick.access.people import Person, Role, tags_of
from everytick.answers.occurrences import occurrence_data
from everytick.app import Everytick
from everytick.domain.backfills import BackfillRecord
from everytick.domain.decisions import Why
from everytick.domain.headlines import fingerprint
from everytick.domain.occurrence import Occurrence
from everytick.domain.questions import Tally, why_of
from everytick.domain.statuses import FAILURES, OccurrenceStatus
from everytick.domain.values import value
from everytick.errors import NotFound
from everytick.stores.base import JobRecord
from everytick.web import words
from everytick.web.asking import Tick, Who, needs
from everytick.web.framing import live_frame, viewer_of
from everytick.web.history_list import MOST_LOOKED_AT, WINDOWS, HistoryWanted, history_page, matching
from everytick.web.kept_pages import kept_for_a_moment
from everytick.web.known_jobs import known_jobs
from everytick.web.pictures.trail import localized
from everytick.web.problems import Problem
from everytick.web.rendering import page
from everytick.web.saved_views import views_of
from everytick.web.words import Viewer

router = APIRouter(include_in_schema=False)

PAGE_ROWS = 50
EXPORTED = 100_000
"""Most occurrences of one file."""

_CHIPS = (
    "failed",
    "failed_stale",
    "missed",
    "completed_with_errors",
    "awaiting_retry",
    "skipped",
    "canceled",
    "queued",
    "pending",
    "running",
    "completed",
)
_S = OccurrenceStatus
_UNRUN = (_S.SKIPPED, _S.MISSED)


@value(frozen=True)
class HistoryRow:
    """One line of the table: an occurrence, or `count` instants in a row that did not run for one reason."""

    occurrence: Occurrence
    job: str
    why: str
    took: str
    print: str = ""
    count: int = 1
    since: datetime | None = None
    may: bool = False


@router.get("/history", dependencies=[needs(Role.VIEWER)])
@kept_for_a_moment
async def history(request: Request, tick: Tick, who: Who, cursor: str = "") -> Response:
    """Show the occurrences that the address means."""
    viewer = viewer_of(request, await tick.now())
    wanted = HistoryWanted.read(_typed(request), viewer.now, viewer.info)
    names = await _Names.of(request, who)
    mistakes = list(wanted.mistakes)
    rows: Sequence[HistoryRow] = ()
    following, looked_at, tally, unrun = None, 0, Tally(), Tally()
    if not mistakes:
        try:
            found = await history_page(tick, wanted, PAGE_ROWS, cursor or None, partial(names.readable, tick))
            tally, unrun = await tick._tallies(
                wanted.job or None, after=wanted.after, through=wanted.through, cause=wanted.cause or None
            )
        except NotFound as error:
            mistakes.append(str(error))
        else:
            await names.learn(tick, found.occurrences)
            rows = list(_folded(_row(occurrence, names, viewer) for occurrence in found.occurrences))
            following, looked_at = found.cursor, found.looked_at
    lists_unrun = bool(wanted.job) or any(word in _UNRUN for word in wanted.statuses)
    shown = sum(row.count for row in rows)
    values: dict[str, Any] = {
        "wanted": wanted,
        "here": urlencode(wanted.query),
        "said": _said(wanted, tally, unrun, rows, has_more=bool(following)),
        "mistakes": mistakes,
        "rows": rows,
        "shown": shown,
        "total": _total(wanted, tally) + (_total(wanted, unrun) if lists_unrun else 0),
        "is_estimated": tally.is_estimated or unrun.is_estimated,
        "lists_unrun": lists_unrun,
        "chips": [
            (word, many)
            for word in _CHIPS
            if (many := _many(word, wanted, tally, unrun, shown)) or word in wanted.statuses
        ],
        "windows": list(WINDOWS),
        "following": following,
        "is_first": not cursor,
        "looked_at": looked_at if wanted.has_text and looked_at >= MOST_LOOKED_AT else 0,
        "may_change": who.may_somewhere(Role.OPERATOR),
        "backfills": [
            (backfill, names.shows_errors(backfill.job_id)) for backfill in await _open_backfills(tick, wanted.job)
        ],
        "views": views_of(request, "history"),
        "second": timedelta(seconds=1),
    }
    if not (mistakes or cursor):
        values["frame"] = live_frame(request, viewer, refresh=0)
    return await page(request, "history.html", status=422 if mistakes else 200, viewer=viewer, **values)


def _typed(request: Request) -> dict[str, str]:
    """Return what the address says; several statuses are one list of words."""
    typed = dict(request.query_params)
    return typed | {"status": " ".join(request.query_params.getlist("status"))}


def _total(wanted: HistoryWanted, tally: Tally) -> int:
    """Return how many of these are meant."""
    return tally.of(*(_S(word) for word in wanted.statuses)) if wanted.statuses else tally.total


def _many(word: str, wanted: HistoryWanted, tally: Tally, unrun: Tally, shown: int) -> int:
    """Return how many have a status. Skipped instants of all jobs are not counted: at least those that are shown."""
    known = tally.of(_S(word)) + unrun.of(_S(word))
    return max(known, shown) if wanted.statuses == (word,) else known


def _said(wanted: HistoryWanted, tally: Tally, unrun: Tally, rows: Sequence[HistoryRow], *, has_more: bool) -> str:
    """Return the heading: how many occurrences in which time, how many failed, and how many instants did not run."""
    if wanted.mistakes:
        return "That is no filter yet."
    spans = {"1h": "in 1 h", "24h": "in 24 h", "7d": "in 7 days", "30d": "in 30 days"}
    span = f"{spans.get(wanted.window, 'in this time')}{f' of {wanted.job}' if wanted.job else ''}"
    if wanted.has_text:
        found = f"{words.count(len(rows), 'occurrence')} on this page" if rows else "No occurrence"
        return f"{found} with this error {span}."
    about = "About " if tally.is_estimated else ""
    ran, idle = _total(wanted, tally), _total(wanted, unrun)
    kind = f" {', '.join(wanted.statuses)}" if wanted.statuses else ""
    if wanted.statuses and all(word in _UNRUN for word in wanted.statuses):
        return _unrun_said(kind, span, ran + idle, rows, is_more=unrun.is_estimated, has_more=has_more)
    # Of all jobs, only the missed ones are counted.
    what = "did not run" if wanted.job else "was missed" if idle == 1 else "were missed"
    instants = f"{words.count(idle, 'instant')}{' or more' if unrun.is_estimated else ''} {what}"
    if not ran:
        return f"{instants} {span}." if idle else f"Nothing {span}."
    failed = tally.of(_S.FAILED, _S.FAILED_STALE)
    tail = "" if wanted.statuses else f"; {words.number(failed)} failed" if failed else "; none failed"
    tail += f"{',' if tail else ';'} {instants}" if idle else ""
    return f"{about}{words.number(ran)}{kind} {'occurrence' if ran == 1 else 'occurrences'} {span}{tail}."


def _unrun_said(kind: str, span: str, total: int, rows: Sequence[HistoryRow], *, is_more: bool, has_more: bool) -> str:
    """Return the heading over instants that did not run. Skipped ones of all jobs are not counted before they show."""
    shown = sum(row.count for row in rows)
    if shown > total:
        total, is_more = shown, has_more
    if not total:
        return f"Nothing {span}."
    more = " or more" if is_more else ""
    return f"{words.number(total)}{more}{kind} {'instant' if total == 1 and not more else 'instants'} {span}."


async def _open_backfills(tick: Everytick, job: str) -> list[BackfillRecord]:
    """Return the backfills that are not over, at most 20 of the newest 100."""
    return [backfill for backfill in await tick.backfills() if not backfill.is_over and job in ("", backfill.job)][:20]


class _Names:
    """The names of jobs, and whose errors the person may see."""

    def __init__(self, records: Mapping[str, JobRecord], who: Person) -> None:
        self._known, self._who = records, who
        self._others: dict[str, JobRecord] = {}

    @classmethod
    async def of(cls, request: Request, who: Person) -> "_Names":
        return cls((await known_jobs(request).listed()).records, who)

    async def learn(self, tick: Everytick, occurrences: Sequence[Occurrence]) -> None:
        """Look up the jobs that are no longer in service."""
        for id_ in {occurrence.job_id for occurrence in occurrences}:
            if self._record(id_) is None:
                try:
                    self._others[id_] = await tick.job_of(id_)
                except NotFound:
                    continue

    async def readable(self, tick: Everytick, occurrences: Sequence[Occurrence]) -> Sequence[Occurrence]:
        """Return those whose errors the person may see: what a person may not read is not looked through either."""
        if not self._who.may_somewhere(Role.OPERATOR):
            return ()
        await self.learn(tick, occurrences)
        return [occurrence for occurrence in occurrences if self.shows_errors(occurrence.job_id)]

    def _record(self, job_id: str) -> JobRecord | None:
        # Two mappings: a copy of ten thousand jobs for each page took as long as ten of its rows.
        return self._known.get(job_id) or self._others.get(job_id)

    def name(self, job_id: str) -> str:
        found = self._record(job_id)
        return job_id if found is None else found.job.name

    def shows_errors(self, job_id: str) -> bool:
        found = self._record(job_id)
        return self._who.sees_payloads(() if found is None else tags_of(found.job.name, found.job.settings.tags))


def _row(occurrence: Occurrence, names: _Names, viewer: Viewer) -> HistoryRow:
    shows = names.shows_errors(occurrence.job_id)
    why = why_of(None if occurrence.reason == Why.ON_TIME else occurrence.reason, occurrence.error if shows else None)
    took = ""
    if occurrence.started_at is not None:
        took = words.length((occurrence.ended_at or viewer.now) - occurrence.started_at)
    print_ = fingerprint(occurrence.error) if shows and occurrence.error and occurrence.status in FAILURES else ""
    return HistoryRow(
        occurrence, names.name(occurrence.job_id), words.cut(localized(why, viewer)), took, print_, may=shows
    )


def _folded(rows: Iterator[HistoryRow]) -> Iterator[HistoryRow]:
    """Give the rows with instants of a job that did not run, one after another and for one reason, as one line."""
    from dataclasses import replace

    found: list[HistoryRow] = []
    held: dict[str, int] = {}
    for row in rows:
        job = row.occurrence.job_id
        place = held.get(job)
        is_unrun = row.occurrence.created_at is None and row.occurrence.started_at is None
        if is_unrun and place is not None and _is_alike(found[place], row):
            found[place] = replace(found[place], count=found[place].count + 1, since=row.occurrence.scheduled_for)
            continue
        held.pop(job, None)
        if is_unrun:
            held[job] = len(found)
        found.append(row)
    yield from found


def _is_alike(one: HistoryRow, other: HistoryRow) -> bool:
    return (one.job, one.occurrence.status, one.why) == (other.job, other.occurrence.status, other.why)


# -------------------------------------------------------------------------------------------------------------- export

_COLUMNS = (
    "id",
    "job",
    "scheduled_for",
    "status",
    "cause",
    "late",
    "started_at",
    "ended_at",
    "took_seconds",
    "node",
    "error",
    "reason",
    "replay_of",
    "version",
)


@router.get("/history.csv", dependencies=[needs(Role.VIEWER)])
async def as_csv(request: Request, tick: Tick, who: Who) -> Response:
    """Send what the address means as CSV."""
    rows = await _exported(request, tick, who)
    return StreamingResponse(_csv(rows), media_type="text/csv; charset=utf-8", headers=_named("history.csv"))


@router.get("/history.json", dependencies=[needs(Role.VIEWER)])
async def as_json(request: Request, tick: Tick, who: Who) -> Response:
    """Send what the address means as one JSON array."""
    rows = await _exported(request, tick, who)
    return StreamingResponse(_json(rows), media_type="application/json", headers=_named("history.json"))


def _named(file: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{file}"'}


async def _exported(request: Request, tick: Everytick, who: Person) -> AsyncIterator[dict[str, Any]]:
    """Return the rows of a file. What cannot be read is refused before the file begins."""
    now, info = await tick.now(), viewer_of(request).info
    wanted = HistoryWanted.read(_typed(request), now, info)
    if wanted.mistakes:
        raise Problem(422, "invalid_request", wanted.mistakes[0])
    if wanted.job:
        await tick.history(wanted.job, limit=1)
    names = await _Names.of(request, who)

    async def rows() -> AsyncIterator[dict[str, Any]]:
        async for occurrence in matching(tick, wanted, EXPORTED, partial(names.readable, tick)):
            await names.learn(tick, [occurrence])
            yield _data(occurrence, names)

    return rows()


def _data(occurrence: Occurrence, names: _Names) -> dict[str, Any]:
    data = occurrence_data(occurrence, {occurrence.job_id: names.name(occurrence.job_id)})
    ran = occurrence.started_at is not None and occurrence.ended_at is not None
    took = (
        (occurrence.ended_at - occurrence.started_at) / timedelta(seconds=1)
        if ran and occurrence.ended_at and occurrence.started_at
        else None
    )
    shown = {"error": occurrence.error if names.shows_errors(occurrence.job_id) else None, "took_seconds": took}
    return {name: (data | shown)[name] for name in _COLUMNS}


async def _csv(rows: AsyncIterator[dict[str, Any]]) -> AsyncIterator[str]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(_COLUMNS)
    async for row in rows:
        writer.writerow([_cell(said) for said in row.values()])
        if text.tell() > 16_000:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def _cell(said: object) -> str:
    """Return a cell as text. One that a table program would calculate begins with an apostrophe."""
    text = "" if said is None else said.isoformat() if isinstance(said, datetime) else str(said)
    return f"'{text}" if text[:1] in "=+-@\t\r" and text else text


async def _json(rows: AsyncIterator[dict[str, Any]]) -> AsyncIterator[str]:
    before = "[\n"
    async for row in rows:
        yield before + json.dumps(row, ensure_ascii=False, default=_plain)
        before = ",\n"
    yield "\n]\n" if before == ",\n" else "[]\n"


def _plain(said: object) -> str:
    return said.isoformat() if isinstance(said, datetime) else str(said)
