"""`/live`: which lanes have changed, as a stream of names. The page asks for what it shows of them."""

from collections.abc import AsyncIterator, Sequence

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from everytick.access.people import Role
from everytick.domain.statuses import FAILURES, OccurrenceStatus
from everytick.node.events import Event, Happening
from everytick.web.asking import GONE, StreamReader, Who, needs
from everytick.web.streams import HEARTBEAT, STREAM_HEADERS, EventStream, Hub, Message, MessageKind, encoded

router = APIRouter(include_in_schema=False)

_GATHERED_SECONDS = 0.25
"""Seconds for which messages are gathered, so that each lane is named once: a job may have several events at once."""

_MOST_LANES = 100
_BAD = frozenset({str(status) for status in FAILURES | {OccurrenceStatus.MISSED}})
_OF_STORE = (Happening.STORE_LOST, Happening.STORE_FOUND)
_TROUBLE = {
    Happening.PROMISE_BROKEN: "broke a promise",
    Happening.LOST: "lost its node",
}


@router.get("/live", dependencies=[needs(Role.VIEWER)])
async def live(request: Request, who: Who) -> StreamingResponse:
    """Tell which lanes have changed, until the reader leaves or the service stops."""
    hub: Hub = request.app.state.hub
    stream = hub.open(last_id=request.headers.get("last-event-id"), person=who.name)
    return StreamingResponse(_written(stream, hub.number, StreamReader(request, who)), headers=STREAM_HEADERS)


async def _written(stream: EventStream, number: int, reader: StreamReader) -> AsyncIterator[bytes]:
    try:
        yield b"retry: 3000\n" + encoded("hello", {"rev": number})
        while True:
            messages = await stream.batch(_GATHERED_SECONDS)
            if await reader.who() is None:
                yield encoded(str(MessageKind.END), {"why": GONE})
                return
            yield b"".join(_line(message) for message in latest(messages))
            if messages[-1].kind is MessageKind.END:
                return
    finally:
        await stream.aclose()


def latest(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with one for each lane, its last one or the last that tells of trouble.

    Where very many lanes changed, the page is told to look at all of its own.
    """
    found: dict[tuple[str, str], Message] = {}
    for message in messages:
        key = _key(message)
        old = found.pop(key, None)
        is_louder = old is not None and old.event is not None and trouble(old.event)
        found[key] = old if is_louder and old is not None else message
    if len(found) <= _MOST_LANES:
        return sorted(found.values(), key=lambda message: message.number)
    last = messages[-1]
    return [Message(MessageKind.GAP, last.id, last.number, text="very many lanes changed: look at all")]


def _key(message: Message) -> tuple[str, str]:
    """Return what a message is about. Of messages about one thing, the last one is enough."""
    if message.event is not None and message.event.kind in _OF_STORE:
        return "store", ""
    is_of_lane = message.kind in (MessageKind.EVENT, MessageKind.CHANGED)
    return ("lane", message.job) if is_of_lane else (str(message.kind), "")


def _line(message: Message) -> bytes:
    match message.kind:
        case MessageKind.HEARTBEAT:
            return HEARTBEAT
        case MessageKind.GAP | MessageKind.END:
            return encoded(str(message.kind), {"why": message.text}, message.id)
        case _ if message.event is not None and message.event.kind in _OF_STORE:
            return encoded("store", {"rev": message.number}, message.id)
        case _ if not message.job:
            return encoded("fleet", {"rev": message.number}, message.id)
        case _:
            said = "" if message.event is None else trouble(message.event)
            told = {"lane": message.job, "rev": message.number, **({"said": said} if said else {})}
            return encoded("lane", told, message.id)


def trouble(event: Event) -> str:
    """Return what needs a look, as it is read aloud: `etl-orders failed`; nothing if all is well."""
    if event.kind in _TROUBLE:
        return f"{event.job} {_TROUBLE[event.kind]}"
    if event.kind in (Happening.ENDED, Happening.SKIPPED) and event.status in _BAD:
        return f"{event.job} {event.status}"
    return ""
