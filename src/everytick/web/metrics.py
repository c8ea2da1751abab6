"""`/metrics`: for Prometheus. It needs the role of a viewer: a token in `authorization: Bearer …`."""

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response

from everytick.access.people import Role
from everytick.errors import StoreUnavailable
from everytick.metrics.text import MEDIA_TYPE
from everytick.web.asking import Tick, needs
from everytick.web.known_jobs import known_jobs
from everytick.web.pulse import pulse_of

router = APIRouter()


@router.get(
    "/metrics",
    dependencies=[needs(Role.VIEWER, without_store=True)],
    response_class=PlainTextResponse,
    tags=["health"],
    summary="Metrics in Prometheus' text format",
)
async def metrics(request: Request, tick: Tick) -> Response:
    """Return what this node has counted and what the store holds now."""
    listed = known_jobs(request).at_hand()
    records = None if listed is None else list(listed.records.values())
    try:
        await pulse_of(request).feel()
    except StoreUnavailable:
        return Response(await tick.metrics(asks_store=False), media_type=MEDIA_TYPE)
    return Response(await tick.metrics(records=records), media_type=MEDIA_TYPE)
