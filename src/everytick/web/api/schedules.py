"""Schedules: all of them in the shape that other tools know, and any text explained."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from everytick.answers.schedules import explained
from everytick.app import Everytick
from everytick.app.text_reading import in_zone, schedule_of
from everytick.domain.notices import OWNER as NOTICES
from everytick.schedules.cron import Cron
from everytick.stores.base import JobRecord
from everytick.web.api import models
from everytick.web.api.shapes import Routes, told
from everytick.web.asking import Tick
from everytick.web.known_jobs import JOBS_AT_ONCE, known_jobs

routes = Routes("schedules")
router = routes.router


@routes.question("/api/schedules", list[models.ScheduleData])
async def list_schedules(request: Request, tick: Tick) -> Response:
    """List every schedule: name, kind, text, next and last run, and whether it is enabled.

    `cron_spec` is the cron expression, or the text of a schedule of another kind.
    """
    records = [record for record in await known_jobs(request).records() if record.job.owner != NOTICES]
    parts = [records[first : first + JOBS_AT_ONCE] for first in range(0, len(records), JOBS_AT_ONCE)]
    if len(parts) <= 1:
        return told(await _schedules(tick, records))
    # The first part before the head: a store that is away is a problem, and no broken body.
    first = await _schedules(tick, parts[0])
    return StreamingResponse(_streamed(tick, first, parts[1:]), media_type="application/json")


async def _schedules(tick: Everytick, records: Sequence[JobRecord]) -> list[dict[str, Any]]:
    statuses = await tick.statuses(records)
    return [
        {
            "name": record.job.name,
            "kind": record.job.schedule_type,
            "cron_spec": _spec(record),
            "next_run_at": statuses[record.job.id].next_run,
            "last_run_at": statuses[record.job.id].last_run,
            "enabled": record.job.enabled,
        }
        for record in records
        if record.job.id in statuses
    ]


async def _streamed(
    tick: Everytick, first: list[dict[str, Any]], parts: Sequence[Sequence[JobRecord]]
) -> AsyncIterator[bytes]:
    """Give one JSON list in parts: no more than one of them is in memory, and others are answered in between."""
    yield _items(first, b"[")
    is_empty = not first
    for part in parts:
        found = await _schedules(tick, part)
        if found:
            yield _items(found, b"" if is_empty else b",")
            is_empty = False
    yield b"]"


def _items(found: list[dict[str, Any]], before: bytes) -> bytes:
    return before + bytes(told(found).body)[1:-1]


def _spec(record: JobRecord) -> str:
    schedule: Any = record.job.schedule
    return schedule.expression if isinstance(schedule, Cron) else str(schedule)


@routes.question("/api/schedules/explanation", models.ExplainedScheduleData)
async def explain_schedule(
    tick: Tick,
    text: Annotated[str, Query(min_length=1, max_length=500, examples=["30 2 * * 1-5"])],
    tz: Annotated[
        str, Query(max_length=100, description="The zone, if the text names none.", examples=["UTC"])
    ] = "UTC",
    n: Annotated[int, Query(ge=1, le=1_000, description="How many instants to come.", examples=[5])] = 5,
) -> Response:
    """Say in words what a schedule means, with the instants around now. Nothing is stored."""
    return told(explained(in_zone(schedule_of(text), tz), await tick.now(), n))
