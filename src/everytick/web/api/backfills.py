"""Backfills: past instants that run after all."""

from typing import Annotated, Any

from fastapi import Query, Response

from everytick.answers.fleet import backfill_record
from everytick.web.api import bodies, fleet_models, models
from everytick.web.api.paging import USUAL_ITEMS, Limit
from everytick.web.api.shapes import Routes, told
from everytick.web.asking import Tick

routes = Routes("backfills")
router = routes.router


@routes.question("/api/backfills", list[fleet_models.BackfillData])
async def list_backfills(
    tick: Tick,
    job: Annotated[str | None, Query(max_length=200, examples=["nightly-backup"])] = None,
    limit: Limit = USUAL_ITEMS,
) -> Response:
    """List the newest backfills and how far they have come."""
    return told([backfill_record(backfill) for backfill in await tick.backfills(job, limit=limit)])


@routes.question("/api/backfills/{backfill}", fleet_models.BackfillData)
async def read_backfill(backfill: str, tick: Tick) -> Response:
    """Read one backfill."""
    return told(backfill_record(await (await tick.find_backfill(backfill)).progress()))


@routes.operation("/api/jobs/{job:name}/backfills", fleet_models.PlannedBackfillData, status=201)
async def plan_backfill(job: str, body: bodies.PlanBackfillBody, tick: Tick) -> Response:
    """Ask for the past instants in `(after, through]` that have no occurrence.

    With `dry_run` nothing is kept; without `approve` it waits for an approval. Many instants at once, and those of a
    protected job, need `confirm`.
    """
    given: dict[str, Any] = body.model_dump(exclude={"after", "through", "confirm"})
    made = await tick.backfill(job, body.after, body.through, confirmed=body.confirm, **given)
    usual, record = await tick.usual_length(job), await tick.job(job)
    data = {"id": made.id, "job_id": record.job.id, "instants": made.instants, "more": made.more, "usual_length": usual}
    return told(data, 201)


@routes.operation("/api/backfills/{backfill}/approve", models.ChangedData)
async def approve_backfill(backfill: str, body: bodies.NothingBody, tick: Tick) -> Response:
    """Let a planned backfill run."""
    return told({"changed": await (await tick.find_backfill(backfill)).approve()})


@routes.operation("/api/backfills/{backfill}/pause", models.ChangedData)
async def pause_backfill(backfill: str, body: bodies.NothingBody, tick: Tick) -> Response:
    """Let a backfill make no further occurrences until it is resumed."""
    return told({"changed": await (await tick.find_backfill(backfill)).pause()})


@routes.operation("/api/backfills/{backfill}/resume", models.ChangedData)
async def resume_backfill(backfill: str, body: bodies.NothingBody, tick: Tick) -> Response:
    """Let a paused backfill go on."""
    return told({"changed": await (await tick.find_backfill(backfill)).resume()})


@routes.operation("/api/backfills/{backfill}/cancel", models.ChangedData)
async def cancel_backfill(backfill: str, body: bodies.NothingBody, tick: Tick) -> Response:
    """End a backfill, and what it has made and no node has claimed."""
    return told({"changed": await (await tick.find_backfill(backfill)).cancel()})
