"""Limits and brakes of the store."""

from typing import Annotated

from fastapi import Path, Query, Response

from everytick.access.people import Role
from everytick.answers.fleet import limits_record
from everytick.web.api import bodies, fleet_models, models
from everytick.web.api.shapes import Routes, done, told
from everytick.web.asking import Tick

routes = Routes("limits")
router = routes.router

Reach = Annotated[str, Path(description="all, queue:NAME, tag:NAME or job:NAME.", examples=["tag:crm"])]


@routes.question("/api/limits", fleet_models.LimitsData)
async def read_limits(tick: Tick) -> Response:
    """Return the limits and brakes, how far each is used, and who changed them last."""
    return told(limits_record(await tick.limits()))


@routes.operation("/api/limits/{reach:name}", None, status=204, method="PUT", role=Role.ADMIN)
async def set_limit(reach: Reach, body: bodies.SetLimitBody, tick: Tick) -> Response:
    """Let at most so many occurrences of the reach run at once, and start at a rate."""
    await tick.set_limit(reach, most=body.most, rate=body.rate, burst_allowed=body.burst, reason=body.reason)
    return done()


@routes.operation("/api/limits/{reach:name}", models.ChangedData, method="DELETE", role=Role.ADMIN)
async def remove_limit(
    reach: Reach, tick: Tick, reason: Annotated[str, Query(max_length=2_000, examples=["the CRM is back"])] = ""
) -> Response:
    """Take the limit of the reach away."""
    return told({"changed": await tick.remove_limit(reach, reason=reason)})


@routes.operation("/api/limits/{reach:name}/brake", None, status=204)
async def brake(reach: Reach, body: bodies.BrakeBody, tick: Tick) -> Response:
    """Let nothing of the reach start, until a moment or until it is released."""
    await tick.brake(
        reach,
        since=body.since,
        until=body.until,
        begins=body.begins,
        ends=body.ends,
        timezone=body.timezone,
        reason=body.reason,
    )
    return done()


@routes.operation("/api/limits/{reach:name}/release", models.ChangedData)
async def release(reach: Reach, body: bodies.ReleaseBody, tick: Tick) -> Response:
    """End the brakes of the reach: what has waited starts by priority, then age, at a rate."""
    return told({"changed": await tick.release(reach, rate=body.rate, at_once=body.at_once, reason=body.reason)})
