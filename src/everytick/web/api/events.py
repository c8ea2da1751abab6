"""`/api/events`: what happens, as Server-Sent Events, from now on or from the last event that the reader saw."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Header, Query, Request
from fastapi.responses import Response, StreamingResponse

from everytick.access.people import Person, tags_of
from everytick.answers.wire import data_of
from everytick.errors import StoreUnavailable
from everytick.node.events import Event
from everytick.web.api.shapes import Docs, Routes
from everytick.web.asking import GONE, StreamReader, Who
from everytick.web.known_jobs import KnownJobs, known_jobs
from everytick.web.streams import HEARTBEAT, STREAM_HEADERS, EventStream, Hub, Message, MessageKind, encoded

routes = Routes("events")
router = routes.router

_EXAMPLE = 'id: 5f0f9a3f-7\nevent: event\ndata: {"kind":"ended","job":"nightly-backup","status":"completed"}\n\n'
_STREAM: Docs = {
    200: {
        "description": "Events of the kinds event, changed, gap and end, until the reader leaves or the service stops.",
        "content": {"text/event-stream": {"schema": {"type": "string"}, "example": _EXAMPLE}},
    }
}


@routes.question("/api/events", None, more=_STREAM)
async def stream_events(
    request: Request,
    who: Who,
    job: Annotated[str | None, Query(max_length=200, examples=["nightly-backup"])] = None,
    last_event_id: Annotated[
        str | None,
        Header(max_length=100, description="The id of the last event that was seen.", examples=["5f0f9a3f-7"]),
    ] = None,
) -> Response:
    """Stream what happens: of one job or of all.

    A `gap` says that events are missing: read the state anew. Texts of errors are hidden from viewers, except on jobs
    of which a grant makes them operators.
    """
    hub: Hub = request.app.state.hub
    stream = hub.open(job=job, last_id=last_event_id, person=who.name)
    written = _written(stream, StreamReader(request, who), known_jobs(request))
    return StreamingResponse(written, headers=STREAM_HEADERS)


async def _written(stream: EventStream, reader: StreamReader, jobs: KnownJobs) -> AsyncIterator[bytes]:
    try:
        yield b"retry: 3000\n\n"
        async for message in stream:
            who = await reader.who()
            if who is None:
                yield encoded(str(MessageKind.END), {"why": GONE})
                return
            yield await _line(message, who, jobs)
    finally:
        await stream.aclose()


async def _line(message: Message, who: Person, jobs: KnownJobs) -> bytes:
    match message.kind:
        case MessageKind.HEARTBEAT:
            return HEARTBEAT
        case MessageKind.EVENT if message.event is not None:
            return encoded("event", await _event(message.event, who, jobs), message.id)
        case MessageKind.GAP | MessageKind.END:
            return encoded(str(message.kind), {"why": message.text})
    return encoded("changed", {"job": message.job}, message.id)


async def _event(event: Event, who: Person, jobs: KnownJobs) -> Any:
    data = data_of(event)
    return data if await _sees(event, who, jobs) else {**data, "text": "", "traceback": ""}


async def _sees(event: Event, who: Person, jobs: KnownJobs) -> bool:
    """Whether the person may see the error: by their role, or by a grant on the job of the event."""
    if who.sees_payloads() or not who.grants or not (event.text or event.traceback):
        return who.sees_payloads()
    try:
        listed = await jobs.listed()
    except StoreUnavailable:
        # Which tags the job has is not known: what may be secret stays hidden.
        return False
    id_ = listed.ids.get(event.job)
    return id_ is not None and who.sees_payloads(tags_of(event.job, listed.records[id_].job.settings.tags))
