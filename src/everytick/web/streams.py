"""Event streams: what happens is told to every open stream of this process.

A hub listens while streams are open, and some seconds longer, so that a browser which comes back misses nothing. It
hears the node of this process, and asks the store for what other nodes do. A stream never waits for another: each has
a queue of its own, and a reader that does not read is sent away with a word.
"""

import asyncio
import json
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from uuid import uuid4

from everytick.app import Everytick
from everytick.domain.values import value
from everytick.node.events import Event, Happening
from everytick.web.problems import Problem
from everytick.web.store_watch import Watch

MOST_STREAMS = 200
"""Most open streams of one process: each costs a connection and some memory."""

MOST_OF_PERSON = MOST_STREAMS // 2
"""Most open streams of one person: one viewer must not take all. Without users, all readers are one person."""

MOST_WAITING = 1_000
"""Most messages that wait for one reader."""

MESSAGES_KEPT = 2_000
"""How many messages are kept for readers that come back."""

HEARTBEAT_SECONDS = 15.0
"""How often a silent stream says that it is alive: proxies close connections that say nothing."""

_LINGER_SECONDS = 30.0
"""How long the hub listens after its last reader: a browser that lost its connection is back within some seconds."""

_MOST_TOLD = 5_000
"""How many events are remembered as told: the node and the store tell of the same ones."""

_REPEATED = frozenset({Happening.ATTEMPT_ENDED, Happening.RETRY_PLANNED})


class MessageKind(StrEnum):
    """What a message is: something happened, a job was changed, earlier messages are not known, or what follows."""

    EVENT = "event"
    CHANGED = "changed"
    GAP = "gap"
    HEARTBEAT = "heartbeat"
    END = "end"


@value(frozen=True)
class Message:
    """One message of a stream.

    `event` is there for an EVENT, `job` names the job of an EVENT or CHANGED. A GAP says that messages may be missing
    between the last one that the reader saw and the next: it must read the state anew. `text` says why there is a GAP
    or an END. `id` is empty where a reader cannot go on from the message.
    """

    kind: MessageKind
    id: str = ""
    number: int = 0
    event: Event | None = None
    job: str = ""
    text: str = ""


class EventStream:
    """The messages for one reader, from its opening on: `async for message in stream`. Leave it with `aclose`."""

    def __init__(
        self, hub: "Hub", wanted: Callable[[Message], bool], first: Sequence[Message], person: str = ""
    ) -> None:
        self._hub, self._wanted, self.person = hub, wanted, person
        self._waiting: deque[Message] = deque(first)
        self._rung = asyncio.Event()
        self._end: Message | None = None
        self._is_over = False

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        """Return the next message, a heartbeat if none came for a while; an END is the last one."""
        if self._is_over:
            raise StopAsyncIteration
        if not self._waiting and self._end is None:
            self._rung.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._hub.heartbeat):
                    await self._rung.wait()
        if self._waiting:
            return self._waiting.popleft()
        if self._end is None:
            return Message(MessageKind.HEARTBEAT)
        self._is_over = True
        await self.aclose()
        return self._end

    async def batch(self, seconds: float) -> list[Message]:
        """Return the next message and what follows it within so many seconds. An END or a heartbeat comes alone."""
        first = await anext(self)
        if first.kind in (MessageKind.END, MessageKind.HEARTBEAT):
            return [first]
        await asyncio.sleep(seconds)
        found = [first, *self._waiting]
        self._waiting.clear()
        return found

    def take(self, message: Message) -> None:
        """Keep the message for the reader. A reader that is too far behind is sent away."""
        if self._end is not None or not self._wanted(message):
            return
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.clear()
            self.end("the reader is too slow: messages were dropped, so read the state anew and come back")
            return
        self._waiting.append(message)
        self._rung.set()

    def end(self, why: str) -> None:
        """Let the reader read what waits, and then the END."""
        if self._end is None:
            self._end = Message(MessageKind.END, text=why)
            self._rung.set()

    async def aclose(self) -> None:
        """Take no more messages. A second call does nothing."""
        self._is_over = True
        self._hub.forget(self)


class Hub:
    """Every open stream of one service."""

    def __init__(self, tick: Everytick, *, most: int = MOST_STREAMS, heartbeat: float = HEARTBEAT_SECONDS) -> None:
        self._tick, self._most, self.heartbeat = tick, most, heartbeat
        self._streams: set[EventStream] = set()
        self._kept: deque[Message] = deque(maxlen=MESSAGES_KEPT)
        self._told: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._is_store_away = False
        self._epoch, self._number = "", 0
        self._listening: asyncio.Task[None] | None = None
        self._left_at = 0.0
        self._is_ended = False

    @property
    def number(self) -> int:
        """The number of the newest message. Numbers rise."""
        return self._number

    @property
    def is_listening(self) -> bool:
        """Whether everything that happens gets a number now."""
        return self._listening is not None and not self._listening.done()

    @property
    def open_streams(self) -> int:
        """How many streams are open."""
        return len(self._streams)

    def open(self, *, job: str | None = None, last_id: str | None = None, person: str = "") -> EventStream:
        """Return a stream of all messages, or of those about one job. Raise 503 if there are too many streams.

        With the id of the last message that the reader saw, the stream begins after it; where that is not known any
        more, with a GAP.
        """
        if self._is_ended or len(self._streams) >= self._most:
            why = "the service is stopping" if self._is_ended else f"{self._most} event streams are open already"
            raise Problem(503, "too_many_streams", f"{why}: try again soon", headers={"retry-after": "5"})
        if sum(stream.person == person for stream in self._streams) >= MOST_OF_PERSON:
            text = f"{person} has {MOST_OF_PERSON} event streams open already: close some of them"
            raise Problem(429, "too_many_streams", text, headers={"retry-after": "5"})
        self._listen()

        def wanted(message: Message) -> bool:
            return job is None or message.job in ("", job)

        stream = EventStream(self, wanted, [message for message in self._after(last_id) if wanted(message)], person)
        self._streams.add(stream)
        return stream

    def forget(self, stream: EventStream) -> None:
        """Tell this stream no more."""
        self._streams.discard(stream)
        self._left_at = time.monotonic()

    def end(self) -> None:
        """End every stream, and open no more."""
        self._is_ended = True
        for stream in list(self._streams):
            stream.end("the service stops: come back to another one, or later")
        if self._listening is not None:
            self._listening.cancel()

    def changed(self, job: str) -> None:
        """Tell that a job was changed through this service: paused, edited, triggered. Without a name, some job."""
        if self.is_listening:
            self._pass_on(MessageKind.CHANGED, None, job)

    def tell(self, event: Event) -> None:
        """Tell of an event, once: the node of this process and the store may both know of it."""
        if event.occurrence_id is not None and not self._is_first(event.occurrence_id, event):
            return
        if event.kind in (Happening.STORE_LOST, Happening.STORE_FOUND):
            if self._is_store_away is (event.kind is Happening.STORE_LOST):
                return
            self._is_store_away = not self._is_store_away
        self._pass_on(MessageKind.EVENT, event, event.job)

    def _is_first(self, occurrence: str, event: Event) -> bool:
        """Whether it was not told before. What comes once for each attempt may come again."""
        key = occurrence, str(event.kind)
        if key in self._told and event.kind not in _REPEATED and event.attempt in (None, 1):
            return False
        self._told[key] = None
        if len(self._told) > _MOST_TOLD:
            self._told.popitem(last=False)
        return True

    def _pass_on(self, kind: MessageKind, event: Event | None, job: str) -> None:
        self._number += 1
        message = Message(kind, f"{self._epoch}-{self._number}", self._number, event, job)
        self._kept.append(message)
        for stream in list(self._streams):
            stream.take(message)

    def _after(self, last_id: str | None) -> list[Message]:
        """Return the messages after the one that the reader saw last; a GAP if they are not all known."""
        if last_id is None:
            return []
        epoch, _, number = last_id.rpartition("-")
        seen = int(number) if number.isascii() and number.isdigit() and len(number) < 16 else -1
        oldest = self._kept[0].number if self._kept else self._number + 1
        if epoch != self._epoch or not oldest - 1 <= seen <= self._number:
            return [Message(MessageKind.GAP, text="it is not known what happened since: read the state anew")]
        return [message for message in self._kept if message.number > seen]

    def _listen(self) -> None:
        """Begin to listen. What happened before is not known, so ids of earlier messages count no more."""
        if self.is_listening:
            return
        self._epoch, self._is_store_away = uuid4().hex[:8], False
        self._kept.clear()
        self._listening = asyncio.get_running_loop().create_task(self._hear(), name="everytick-streams")

    async def _hear(self) -> None:
        """Tell what the node of this process and the store say, until no reader has been there for a while."""
        self._left_at = time.monotonic()
        hearing = asyncio.create_task(self._hear_node())
        watch = Watch(self._tick, self.tell)
        try:
            while self._streams or time.monotonic() - self._left_at < _LINGER_SECONDS:
                await watch.look()
                await asyncio.sleep(watch.pause)
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)

    async def _hear_node(self) -> None:
        events = self._tick.events()
        try:
            async for event in events:
                self.tell(event)
        finally:
            await events.aclose()


def encoded(name: str, data: object, id: str = "") -> bytes:
    """Return one Server-Sent Event. JSON has no line breaks of its own, so the data are one line."""
    head = f"id: {id}\n" if id else ""
    return f"{head}event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


HEARTBEAT = b": alive\n\n"
"""A line that readers ignore."""

STREAM_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    # Some proxies keep an answer until it is whole unless they are told not to.
    "x-accel-buffering": "no",
}
