"""`/metrics`: for Prometheus. It needs the role of a viewer: a token in `authorization: Bearer …`."""

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response

from everytick.access.people import Role
from everytick.metrics.text import MEDIA_TYPE
from everytick.web.asking import Tick, needs

router = APIRouter()


@router.get(
    "/metrics",
    dependencies=[needs(Role.VIEWER)],
    response_class=PlainTextResponse,
    tags=["health"],
    summary="Metrics in Prometheus' text format",
)
async def metrics(tick: Tick) -> Response:
    """Return what this node has counted and what the store holds now."""
    return Response(await tick.metrics(), media_type=MEDIA_TYPE)
