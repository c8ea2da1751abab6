"""Operations on one job: pause, trigger and the rest, under the names that they have everywhere."""

from typing import Annotated, Any

from fastapi import Header, Response

from everytick.domain.config import UNSET, Level, policy_arguments
from everytick.web.api import bodies, models
from everytick.web.api.shapes import Routes, done, told
from everytick.web.asking import Tick
from everytick.web.problems import Problem

routes = Routes("operations")
router = routes.router

IdempotencyKey = Annotated[
    str | None, Header(min_length=1, max_length=200, description="The same as `key`.", examples=["order-1042"])
]


def one_key(header: str | None, given: str | None) -> str | None:
    """Return the key of a request, which stands in the header or in the body."""
    if header is not None and given is not None and header != given:
        raise Problem(422, "two_keys", "Idempotency-Key and key differ: give one of them")
    return given if header is None else header


def _payload(body: Any) -> object:
    return body.payload if "payload" in body.model_fields_set else UNSET


@routes.operation("/api/jobs/{job:name}/trigger", models.AskedData, status=201)
async def trigger(job: str, body: bodies.TriggerBody, tick: Tick, idempotency_key: IdempotencyKey = None) -> Response:
    """Ask for an occurrence, now or later; the schedule is not moved.

    The same key again answers with the same occurrence; with another payload it is 409.
    """
    key = one_key(idempotency_key, body.key)
    asked = await tick.trigger(
        job,
        _payload(body),
        at=body.at,
        after=body.after,
        key=key,
        overlap=body.overlap,
        reason=body.reason,
    )
    return told({"id": asked.id}, 201)


@routes.operation("/api/jobs/{job:name}/pause", None, status=204)
async def pause(job: str, body: bodies.PauseBody, tick: Tick) -> Response:
    """Hold the schedule of a job from now on."""
    await tick.pause(job, until=body.until, reason=body.reason, missed=body.missed)
    return done()


@routes.operation("/api/jobs/{job:name}/resume", models.ChangedData)
async def resume(job: str, body: bodies.ResumeBody, tick: Tick) -> Response:
    """End a pause now."""
    return told({"changed": await tick.resume(job, missed=body.missed, confirmed=body.confirm)})


@routes.operation("/api/jobs/{job:name}/reschedule", None, status=204)
async def reschedule(job: str, body: bodies.AtBody, tick: Tick) -> Response:
    """Set the next run of a job; the instants before it give way."""
    await tick.reschedule(job, body.at)
    return done()


@routes.operation("/api/jobs/{job:name}/rewind", models.ChangedData)
async def rewind(job: str, body: bodies.NothingBody, tick: Tick) -> Response:
    """Let a job go on now that was decided ahead while a clock was wrong."""
    return told({"changed": await tick.rewind(job)})


@routes.operation("/api/jobs/{job:name}/skip", None, status=204)
async def skip(job: str, body: bodies.SkipBody, tick: Tick) -> Response:
    """Skip one single future instant of the schedule."""
    await tick.skip(job, body.at, reason=body.reason)
    return done()


@routes.operation("/api/jobs/{job:name}/move", None, status=204)
async def move(job: str, body: bodies.MoveBody, tick: Tick) -> Response:
    """Let one single future instant run at another time."""
    await tick.move(job, body.at, body.to, reason=body.reason)
    return done()


@routes.operation("/api/jobs/{job:name}/amend", None, status=204)
async def amend(job: str, body: bodies.AmendBody, tick: Tick) -> Response:
    """Let one single future instant run with a payload or other policies of its own."""
    given: dict[str, Any] = dict(body.policies)
    if "payload" in body.model_fields_set:
        given["payload"] = body.payload
    await tick.amend(job, body.at, reason=body.reason, **policy_arguments(Level.OCCURRENCE, given, job))
    return done()


@routes.operation("/api/jobs/{job:name}/add", models.AskedData, status=201)
async def add(job: str, body: bodies.AddBody, tick: Tick) -> Response:
    """Add one single run at a time to come that the schedule does not name."""
    asked = await tick.add(job, body.at, _payload(body), overlap=body.overlap, reason=body.reason)
    return told({"id": asked.id}, 201)


@routes.operation("/api/jobs/{job:name}/undo", models.UndoneData)
async def undo(job: str, body: bodies.SkipBody, tick: Tick) -> Response:
    """Take back what was said of one time to come: skip, move, amend, add, reschedule."""
    return told({"undone": await tick.undo(job, body.at, reason=body.reason)})
