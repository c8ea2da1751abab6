"""The timeline as a table: every run of the picture, then, after a row that says now, what is planned."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from everytick.domain.decisions import Why
from everytick.domain.values import value
from everytick.web import words
from everytick.web.job_standing import late_by
from everytick.web.lane_rows import planned_runs, unrun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everytick.web.lane_rows import LaneContext
    from everytick.web.now_view import View

MOST_ROWS = 2_000
COLUMNS = ("instant", "job", "status", "started", "took", "late_by", "why")


@value(frozen=True)
class TableRow:
    """One run of the picture, or the row that says now."""

    at: datetime
    job: str = ""
    status: str = ""
    href: str = ""
    started: datetime | None = None
    took: str = ""
    late: str = ""
    why: str = ""
    took_seconds: float | None = None
    late_seconds: float | None = None
    is_now: bool = False


def table_rows(view: View, with_: LaneContext) -> list[TableRow]:
    """Return what has been, oldest first, the row of now, and what is planned, soonest first."""
    past, planned = [], []
    for id_ in view.job_ids:
        record = view.fleet.records.get(id_)
        if record is None:
            continue
        name, snapshot = record.job.name, view.sight.snapshots.get(id_)
        past += _ran(view, id_, name, with_)
        past += [
            TableRow(run.at, name, str(run.status), why=run.title.partition(": ")[2])
            for run in unrun(view.sight.spans.get(id_, ()), snapshot, view.axis, with_)
        ]
        if snapshot is not None:
            planned += [
                TableRow(run.at, name, "paused" if run.is_held else "planned", why=run.title.partition(": ")[2])
                for run in planned_runs(snapshot, record, view.axis, with_)
            ]
    now = [TableRow(view.fleet.now, is_now=True)] if view.axis.shows_now else []
    key = _order
    return sorted(past, key=key)[-MOST_ROWS:] + now + sorted(planned, key=key)[:MOST_ROWS]


def _order(row: TableRow) -> tuple[datetime, str]:
    return row.at, row.job


def _ran(view: View, job_id: str, name: str, with_: LaneContext) -> list[TableRow]:
    found, record = [], view.fleet.records[job_id]
    for run in view.sight.runs.get(job_id, ()):
        if (run.ended_at or view.fleet.now) <= view.axis.after or run.scheduled_for > view.axis.through:
            continue
        took = None if run.started_at is None else (run.ended_at or view.fleet.now) - run.started_at
        late = late_by(run, view.fleet.now)
        found.append(
            TableRow(
                at=run.scheduled_for,
                job=name,
                status=str(run.status),
                href=with_.link("/occurrences/{}", run.id),
                started=run.started_at,
                took="" if took is None else words.length(took),
                late=words.length(late) if late else "",
                why="" if run.why == Why.ON_TIME or not with_.shows(record, run) else words.cut(run.why),
                took_seconds=None if took is None else took.total_seconds(),
                late_seconds=late.total_seconds() if late else None,
            )
        )
    return found


def written_csv(rows: Sequence[TableRow]) -> str:
    """Return the rows as CSV: moments in UTC, lengths in seconds."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for row in rows:
        if not row.is_now:
            took = "" if row.took_seconds is None else f"{row.took_seconds:.3f}"
            late = "" if row.late_seconds is None else f"{row.late_seconds:.3f}"
            texts = (_plain(row.job), row.status, _utc(row.started), took, late, _plain(row.why))
            writer.writerow((_utc(row.at), *texts))
    return out.getvalue()


def _utc(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _plain(text: str) -> str:
    """Return the text so that a spreadsheet does not take it for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
