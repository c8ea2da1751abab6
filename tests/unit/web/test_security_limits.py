"""What no request may cost or reach: caps on lists, impossible schedules, targets that are not registered."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from everytick import Everytick
from everytick.app.serving import Listening
from everytick.domain.people import CameBy, Doer, Role
from everytick.web import service as serving
from everytick.web.asgi import asgi
from tests.unit.web.conftest import client_of

JSON = {"content-type": "application/json"}


async def test_every_number_of_a_request_is_capped(client: httpx2.AsyncClient) -> None:
    """S20: whatever is asked for by number has a largest number, in the document that programs read."""
    document = (await client.get("/api/openapi.json")).json()
    open_ended = [
        f"{method} {path} {given['name']}"
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        for given in operation.get("parameters", ())
        if given["in"] == "query" and _is_open_ended(given["schema"])
    ]

    assert len(document["paths"]) > 40
    assert open_ended == []


def _is_open_ended(schema: dict[str, Any]) -> bool:
    kinds = schema.get("anyOf", [schema])
    numbers = [kind for kind in kinds if kind.get("type") == "integer"]
    return any("maximum" not in kind and "exclusiveMaximum" not in kind for kind in numbers)


SLOW = [
    "0 0 30 2 *",
    "0 0 31 2,4,6,9,11 *",
    "59 23 29 2 *",
    "* * * * * " * 300,
    ",".join(["1"] * 3_000) + " * * * *",
    "every 1ns",
    "R/2026-01-01T00:00:00Z/P0D",
    "R1000000000/2026-01-01T00:00:00Z/PT1S",
    "(" * 3_000,
]


@pytest.mark.parametrize("text", SLOW, ids=range(len(SLOW)))
async def test_no_schedule_takes_longer_than_a_second(client: httpx2.AsyncClient, text: str) -> None:
    """S8, S20: impossible, endless and huge schedules, on the page and in the API."""
    began = time.process_time()
    page = await client.get("/lab", params={"schedule": text})
    answer = await client.get("/api/schedules/explanation", params={"text": text, "schedule": text})

    assert page.status_code in (200, 400, 414, 422)
    assert answer.status_code in (200, 400, 414, 422)
    assert time.process_time() - began < 2, "a second each"


FAR = [
    ("/api/jobs/nightly/trigger", b'{"after": "99999999d"}'),
    ("/api/jobs/nightly/trigger", b'{"at": "9999-12-31T23:59:59Z"}'),
    ("/api/tokens", b'{"name": "deploy", "role": "viewer", "lasts": "99999999d"}'),
    ("/api/users", b'{"name": "ann", "role": "admin", "password": "\\ud800aaaaaaaaaaaa"}'),
    ("/api/jobs/nightly/pause", b'{"until": "0001-01-01T00:00:00Z"}'),
]


@pytest.mark.parametrize(("path", "body"), FAR, ids=range(len(FAR)))
async def test_what_the_calendar_or_utf8_does_not_have_is_refused(
    client: httpx2.AsyncClient, path: str, body: bytes
) -> None:
    """S8: with a sentence, and not as a mistake of ours."""
    answer = await client.post(path, content=body, headers=JSON)

    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
async def test_a_question_about_the_ends_of_the_calendar_is_refused(client: httpx2.AsyncClient, at: str) -> None:
    """S20: a year is left on both sides for what is reckoned from a moment."""
    for path in (f"/api/jobs/nightly/explanation?at={at}", f"/jobs/nightly/at?at={at}"):
        assert (await client.get(path)).status_code == 422, path


HOSTILE_TARGETS = [
    "os:system",
    "builtins:eval",
    "subprocess:run",
    "everytick.app:Everytick.__init__",
    "os.path:__class__",
]


@pytest.mark.parametrize("target", HOSTILE_TARGETS)
async def test_no_job_of_the_api_names_what_is_not_registered(
    tick: Everytick, client: httpx2.AsyncClient, target: str
) -> None:
    """S10: a path to code is not enough, whichever user sends it."""
    for body in (
        {"name": "evil", "schedule": "every 1h", "tasks": [{"name": "work", "call": target}]},
        {"name": "evil", "schedule": "every 1h", "target": target},
        {"name": "evil", "schedule": "every 1h", "call": target},
    ):
        answer = await client.post("/api/jobs", json=body)
        assert answer.status_code in (400, 403, 409, 422), answer.text

    assert "evil" not in [record.job.name for record in await tick.jobs()]


@pytest.mark.parametrize("more", [{"target": "os:system"}, {"call": "os:system"}, {"by": "root"}, {"job": "nightly"}])
async def test_a_trigger_changes_neither_target_nor_doer(
    tick: Everytick, client: httpx2.AsyncClient, more: dict[str, str]
) -> None:
    """S19: unknown keys are refused, so that nothing is assigned by the way."""
    answer = await client.post("/api/jobs/nightly/trigger", json=more)

    assert answer.status_code == 422
    assert list(await tick.history("nightly")) == []


async def test_a_viewer_can_neither_trigger_nor_replay(tick: Everytick) -> None:
    """S19: with other arguments or with none."""
    await tick.sync()
    with tick.acting_as(Doer("setup", CameBy.COMMAND)):
        await tick.people.add_user("root", Role.ADMIN)
        made = await tick.people.add_token("viewer", Role.VIEWER)
    headers = {"authorization": f"Bearer {made.text}"}
    async with client_of(tick) as asking:
        codes = [
            (await asking.post(path, json={}, headers=headers)).status_code
            for path in ("/api/jobs/nightly/trigger", "/api/occurrences/x/replay", "/api/jobs/nightly/backfills")
        ]

    assert codes == [403] * 3
    await tick.close()


@pytest.fixture
async def port(tick: Everytick, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """The port of a real server that closes idle connections after a moment instead of 30 s."""
    monkeypatch.setattr(serving, "_IDLE_SECONDS", 0.2)
    monkeypatch.setattr(serving, "_SWEEP_SECONDS", 0.05)
    server = serving.WebServer(tick, Listening.at("127.0.0.1", 0), asgi(tick))
    url = await server.start()
    yield httpx2.URL(url).port or 0
    await server.close()
    await tick.close()


async def test_a_connection_that_sends_its_head_byte_by_byte_is_closed(port: int) -> None:
    """S8: slow-loris, on a real socket; the service answers others meanwhile."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\nx-")
    await writer.drain()
    async with httpx2.AsyncClient() as other:
        alive = await other.get(f"http://127.0.0.1:{port}/livez")
    left = await asyncio.wait_for(reader.read(), 60)
    writer.close()

    assert alive.status_code == 200
    assert left == b""


async def test_what_is_no_request_is_refused(port: int) -> None:
    """S8: endless heads and broken lines."""
    for sent in (b"\x00" * 1000 + b"\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 50_000 + b"\r\n", b"BLA\r\n\r\n"):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        answer = await asyncio.wait_for(reader.read(100), 60)
        writer.close()

        assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 503"))
