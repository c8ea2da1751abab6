"""The hub of event streams: what it tells, to whom, and how streams end."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest
from fastapi import Request
from starlette.types import Message, Scope

from everytick import Everytick, every
from everytick.access.people import Person, Role
from everytick.domain.people import grant_of
from everytick.errors import StoreUnavailable
from everytick.node.events import Event, Happening
from everytick.web import asking
from everytick.web.asgi import asgi
from everytick.web.pages.live import _line, latest
from everytick.web.problems import Problem
from everytick.web.store_watch import Watch
from everytick.web.streams import MOST_OF_PERSON, MOST_WAITING, Hub, MessageKind
from everytick.web.streams import Message as StreamMessage

AT = datetime(2026, 10, 23, 12, tzinfo=UTC)


def ended(job: str, occurrence: str = "occ", status: str = "completed") -> Event:
    return Event(Happening.ENDED, AT, job, occurrence, AT, status=status)


def messages(body: str) -> list[tuple[str, dict[str, object]]]:
    """Return the named messages of a stream's text."""
    found = []
    for block in body.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith((":", "retry")))
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


def scope_of(path: str) -> Scope:
    """Return a request for this path as a server gives it: httpx reads an answer only when it is whole."""
    here = {"headers": [(b"host", b"127.0.0.1")], "client": ("127.0.0.1", 5000), "root_path": ""}
    return {"type": "http", "method": "GET", "path": path, "query_string": b"", **here}


@pytest.fixture
def hub(tick: Everytick) -> Hub:
    return Hub(tick, most=3)


async def test_every_stream_gets_every_message_in_order(hub: Hub) -> None:
    first, second = hub.open(), hub.open(job="b")
    for name in "ab":
        hub.tell(ended(name, f"occ-{name}"))

    assert [(await anext(first)).job, (await anext(first)).job] == ["a", "b"]
    assert (await anext(second)).job == "b"
    hub.end()


async def test_what_the_node_and_the_store_tell_is_told_once(hub: Hub) -> None:
    stream = hub.open()
    hub.tell(ended("a"))
    hub.tell(ended("a"))
    hub.changed("b")

    assert [(await anext(stream)).job, (await anext(stream)).job] == ["a", "b"]
    hub.end()


async def test_a_reader_that_comes_back_goes_on_after_what_it_saw(hub: Hub) -> None:
    first = hub.open()
    for number in range(3):
        hub.tell(ended("a", f"occ-{number}"))
    seen = await anext(first)
    await first.aclose()
    back = hub.open(last_id=seen.id)

    assert [(await anext(back)).number, (await anext(back)).number] == [2, 3]
    hub.end()


@pytest.mark.parametrize("last_id", ["other-1", "nonsense", "", "-9", "0-99999999999999999999"])
async def test_a_reader_whose_place_is_not_known_is_told_of_the_gap(hub: Hub, last_id: str) -> None:
    stream = hub.open(last_id=last_id)

    assert (await anext(stream)).kind is MessageKind.GAP
    hub.end()


async def test_a_reader_that_does_not_read_is_sent_away_with_a_word(hub: Hub) -> None:
    slow, quick = hub.open(), hub.open()
    for number in range(MOST_WAITING + 1):
        hub.tell(ended("a", f"occ-{number}"))
        await anext(quick)
    said = await anext(slow)

    assert said.kind is MessageKind.END
    assert "too slow" in said.text
    assert hub.open_streams == 1
    with pytest.raises(StopAsyncIteration):
        await anext(slow)
    hub.end()


async def test_a_silent_stream_says_that_it_is_alive(tick: Everytick) -> None:
    hub = Hub(tick, heartbeat=0.01)

    assert (await anext(hub.open())).kind is MessageKind.HEARTBEAT
    hub.end()


async def test_streams_are_bounded_in_number(hub: Hub) -> None:
    opened = [hub.open() for _ in range(3)]
    with pytest.raises(Problem, match="3 event streams are open already") as refused:
        hub.open()
    await opened[0].aclose()

    assert (refused.value.status, refused.value.headers["retry-after"]) == (503, "5")
    hub.open()
    hub.end()


async def test_a_stop_ends_every_stream_and_opens_no_more(hub: Hub) -> None:
    stream = hub.open()
    hub.tell(ended("a"))
    hub.end()

    assert [message.kind async for message in stream] == [MessageKind.EVENT, MessageKind.END]
    assert not hub.open_streams
    with pytest.raises(Problem, match="stopping"):
        hub.open()


async def test_live_names_the_lanes_that_changed_until_the_service_stops(tick: Everytick) -> None:
    service = tick.asgi()
    hub: Hub = service.app.state.hub
    begun, sent = asyncio.Event(), bytearray()

    async def send(message: Message) -> None:
        sent.extend(message.get("body", b""))
        if sent:
            begun.set()

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("the reader stays")

    answer = asyncio.create_task(service(scope_of("/live"), receive, send))
    await begun.wait()
    hub.tell(ended("nightly", status="failed"))
    hub.tell(ended("orders/daily", "other"))
    service.end()
    await answer

    assert messages(sent.decode()) == [
        ("hello", {"rev": 0}),
        ("lane", {"lane": "nightly", "rev": 1, "said": "nightly failed"}),
        ("lane", {"lane": "orders/daily", "rev": 2}),
        ("end", {"why": "the service stops: come back to another one, or later"}),
    ]
    await tick.close()


@pytest.mark.parametrize("path", ["/live", "/api/events"])
async def test_a_stream_ends_with_the_sign_in_of_its_reader(
    tick: Everytick, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role holds from the next message on: a token that is revoked reads no more, however long its stream lasts."""
    monkeypatch.setattr(asking, "KNOWN_SECONDS", 0.0)
    roles = [Role.OPERATOR, Role.OPERATOR, Role.VIEWER]

    async def identify(_: Request) -> Person:
        if not roles:
            raise Problem(401, "wrong_token", "revoked")
        return Person("ann", roles.pop(0))

    service = asgi(tick, identify=identify)
    hub: Hub = service.app.state.hub
    begun, sent, left = asyncio.Event(), bytearray(), asyncio.Event()

    async def send(message: Message) -> None:
        sent.extend(message.get("body", b""))
        if sent:
            begun.set()

    async def receive() -> Message:
        await left.wait()
        return {"type": "http.disconnect"}

    answer = asyncio.create_task(service(scope_of(path), receive, send))
    await begun.wait()
    for number in range(4):
        hub.tell(Event(Happening.ENDED, AT, "nightly", f"occ-{number}", AT, status="failed", text=f"secret {number}"))
        if path == "/live":
            roles.clear()
    await answer

    told = messages(sent.decode())
    assert told[-1] == ("end", {"why": "the sign-in has ended: sign in again"})
    if path == "/api/events":
        assert [data["text"] for kind, data in told if kind == "event"] == ["secret 0", ""]
    assert not hub.open_streams
    hub.end()
    await tick.close()


@pytest.mark.parametrize(
    ("grants", "seen"),
    [
        (["billing:operator"], ["secret of pay", "", "", ""]),
        (["job:mail:operator"], ["", "secret of mail", "", ""]),
        (["billing:viewer"], ["", "", "", ""]),
        ([], ["", "", "", ""]),
    ],
)
async def test_errors_are_streamed_to_those_who_may_see_them_on_the_job(
    tick: Everytick, grants: list[str], seen: list[str]
) -> None:
    """S6: a grant counts for the jobs that it names, and neither for others nor for one that is gone."""
    tick.job(every("1h"), name="pay", tags=["billing"])(lambda: None)
    tick.job(every("1h"), name="mail", tags=["crm"])(lambda: None)
    await tick.sync()

    async def identify(_: Request) -> Person:
        return Person("ann", Role.VIEWER, tuple(map(grant_of, grants)))

    service = asgi(tick, identify=identify)
    hub: Hub = service.app.state.hub
    begun, sent = asyncio.Event(), bytearray()

    async def send(message: Message) -> None:
        sent.extend(message.get("body", b""))
        if sent:
            begun.set()

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("the reader stays")

    answer = asyncio.create_task(service(scope_of("/api/events"), receive, send))
    await begun.wait()
    for job in ("pay", "mail", "gone", ""):
        failed = Event(Happening.ENDED, AT, job, f"occ-{job}", AT, status="failed", text=f"secret of {job}")
        hub.tell(replace(failed, traceback=failed.text))
    service.end()
    await answer

    told = [data for kind, data in messages(sent.decode()) if kind == "event"]
    assert [data["text"] for data in told] == seen
    assert [data["traceback"] for data in told] == seen
    await tick.close()


def test_a_hundred_readers_may_look_where_there_are_no_users() -> None:
    """On loopback without users all of them are one person."""
    assert MOST_OF_PERSON >= 100


async def test_one_person_takes_not_all_streams(tick: Everytick) -> None:
    """S8: a program that opens streams and never reads them leaves room for other people."""
    hub = Hub(tick)
    opened = [hub.open(person="ann") for _ in range(MOST_OF_PERSON)]
    with pytest.raises(Problem, match=f"ann has {MOST_OF_PERSON} event streams open already") as refused:
        hub.open(person="ann")

    assert refused.value.status == 429
    hub.open(person="bob")
    await opened[0].aclose()
    hub.open(person="ann")
    hub.end()


async def test_a_service_without_a_node_tells_what_the_store_has_new(tmp_path: Path) -> None:
    """`everytick serve`: the nodes are elsewhere, and the store knows what they do."""
    address = f"sqlite:///{tmp_path}/shop.db"
    serving, running = Everytick(address, name="shop"), Everytick(address, name="shop")

    @running.job(every("1h"))
    def orders() -> None:
        raise ValueError("no")

    told: list[Event] = []
    watch = Watch(serving, told.append)
    await running.start()
    await watch.look()
    before, events = list(told), running.events("orders")
    await running.trigger("orders")
    async for event in events:
        if event.kind is Happening.ENDED:
            break
    await watch.look()
    await running.stop()
    await serving.close()

    assert not before
    assert [(event.kind, event.job) for event in told] == [
        (Happening.CREATED, "orders"),
        (Happening.STARTED, "orders"),
        (Happening.ENDED, "orders"),
    ]
    assert (told[-1].status, told[-1].text) == ("failed", "ValueError: no")


async def test_beside_the_only_node_the_store_is_not_asked_for_events() -> None:
    tick = Everytick("memory://", name="shop")
    told: list[Event] = []
    watch = Watch(tick, told.append)
    await tick.start()
    await watch.look()
    await tick.stop()

    assert watch.pause > 1
    assert not told


async def test_a_store_that_does_not_answer_is_told_once() -> None:
    tick = Everytick("sqlite:////dev/null/there-is-no-folder/everytick.db", name="shop")
    told: list[Event] = []
    watch = Watch(tick, told.append)
    await watch.look()
    await watch.look()

    assert [event.kind for event in told] == [Happening.STORE_LOST]


async def test_beside_a_node_a_store_that_does_not_answer_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """An open page says that it is not live, also where the service has a node of its own."""
    tick = Everytick("memory://", name="shop")
    told: list[Event] = []
    watch = Watch(tick, told.append)
    await tick.start()
    await watch.look()
    opened = tick._opened

    async def away() -> object:
        raise StoreUnavailable("postgresql://db", "connection refused")

    monkeypatch.setattr(tick, "_opened", away)
    await watch.look()
    monkeypatch.setattr(tick, "_opened", opened)
    await watch.look()
    await tick.stop()

    assert [event.kind for event in told] == [Happening.STORE_LOST, Happening.STORE_FOUND]


async def test_node_and_watch_tell_once_that_the_store_is_away_and_open_pages_look_at_once(hub: Hub) -> None:
    stream = hub.open()
    for kind in (Happening.STORE_LOST, Happening.STORE_LOST, Happening.STORE_FOUND, Happening.STORE_FOUND):
        hub.tell(Event(kind, AT))
    hub.changed("")
    found = latest([await anext(stream) for _ in range(3)])

    assert [each.event.kind if each.event else each.kind for each in found] == [
        Happening.STORE_FOUND,
        MessageKind.CHANGED,
    ]
    assert _line(found[0]).startswith(b"id: ")
    assert b"event: store" in _line(found[0])
    hub.end()


def test_a_burst_of_one_lane_is_one_message_and_a_failure_is_not_lost_in_it() -> None:
    def told(number: int, job: str, status: str = "completed") -> StreamMessage:
        return StreamMessage(MessageKind.EVENT, f"e-{number}", number, ended(job, status=status), job)

    burst = [told(1, "a"), told(2, "b", "failed"), told(3, "a"), told(4, "b")]
    many = [told(number, f"job-{number}") for number in range(101)]

    assert [(each.job, each.number) for each in latest(burst)] == [("b", 2), ("a", 3)]
    assert [(each.kind, each.id) for each in latest(many)] == [(MessageKind.GAP, "e-100")]


async def test_too_many_streams_are_a_problem(tick: Everytick) -> None:
    service = tick.asgi()
    service.end()
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(service), base_url="http://127.0.0.1") as asking:
        refused = await asking.get("/live")

    assert refused.status_code == 503
    assert refused.json()["code"] == "too_many_streams"
