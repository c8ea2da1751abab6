"""The service as a whole: roles on every route, headers, problems, prefixes, files, health."""

import asyncio

import httpx2
import pytest
from fastapi import FastAPI

from everytick import Everytick
from everytick.access.people import Person
from everytick.domain.people import CameBy, Doer, Role
from everytick.errors import SchemaMismatch, StoreUnavailable
from everytick.web.asgi import asgi, routers
from everytick.web.asking import role_needed
from everytick.web.headers import CONTENT_POLICY
from tests.unit.web.conftest import client_of


def test_every_route_declares_the_role_that_it_needs() -> None:
    """S2 of the security checks: no route can be forgotten."""
    routes = [route for router in routers() for route in router.routes]

    assert len(routes) > 3
    for route in routes:
        role_needed(route)


async def test_every_answer_carries_the_headers_that_protect_its_reader(client: httpx2.AsyncClient) -> None:
    """S7 of the security checks: strict content policy, no frames, no sniffing, no banner."""
    for path in ("/livez", "/static/app.css", "/api/nothing-here", "/nothing-here"):
        answer = await client.get(path)

        assert answer.headers["content-security-policy"] == CONTENT_POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "server" not in answer.headers
    assert "unsafe" not in CONTENT_POLICY
    assert "frame-ancestors 'none'" in CONTENT_POLICY


async def test_an_unknown_address_is_a_problem_for_programs_and_a_page_for_people(client: httpx2.AsyncClient) -> None:
    program = await client.get("/api/nothing-here", headers={"accept": "text/html"})
    person = await client.get("/nothing-here", headers={"accept": "text/html,*/*"})

    assert program.status_code == person.status_code == 404
    assert program.headers["content-type"] == "application/problem+json"
    assert program.json() == {
        "type": "urn:everytick:no_such_page",
        "title": "Not Found",
        "status": 404,
        "detail": "there is nothing at this address",
        "code": "no_such_page",
    }
    assert person.headers["content-type"].startswith("text/html")
    assert "There is nothing at this address" in person.text


async def test_links_hold_under_a_prefix(tick: Everytick) -> None:
    """The service can be mounted anywhere in another application."""
    host = FastAPI()
    host.mount("/everytick", tick.asgi())
    transport = httpx2.ASGITransport(host)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as asking:
        found = await asking.get("/everytick/nothing", headers={"accept": "text/html"})
        alive = await asking.get("/everytick/livez")

    assert 'href="/everytick/static/app.css?v=' in found.text
    assert 'href="/everytick/"' in found.text
    assert alive.text == "ok\n"


async def test_a_file_is_sent_once_and_then_only_confirmed(client: httpx2.AsyncClient) -> None:
    first = await client.get("/static/app.css")
    again = await client.get("/static/app.css", headers={"if-none-match": first.headers["etag"]})
    versioned = await client.get("/static/app.css", params={"v": first.headers["etag"].strip('"')})

    assert first.status_code == 200
    assert first.headers["content-type"] == "text/css; charset=utf-8"
    assert (again.status_code, again.content) == (304, b"")
    assert "immutable" in versioned.headers["cache-control"]


@pytest.mark.parametrize(
    "name", ["../asgi.py", "..%2fasgi.py", "%2e%2e/asgi.py", "..%5casgi.py", "/etc/passwd", "%2fetc/passwd", "a%00b"]
)
async def test_no_path_leads_out_of_the_folder_of_files(client: httpx2.AsyncClient, name: str) -> None:
    """S14 of the security checks."""
    assert (await client.get(f"/static/{name}")).status_code == 404


async def test_health_says_which_check_failed(client: httpx2.AsyncClient) -> None:
    """S4-049: the health server."""
    alive, ready, started = [await client.get(f"/{check}") for check in ("livez", "readyz", "startupz")]
    verbose = await client.get("/readyz?verbose")

    assert [answer.text for answer in (alive, ready, started)] == ["ok\n"] * 3
    assert verbose.text == "[+] store: ok\n[+] tables: ok\n[+] clock: ok\n[+] started: ok\n[+] staying: ok\nok\n"


async def test_it_is_not_ready_while_the_store_cannot_be_used() -> None:
    """It is alive all the same: a restart would not mend the store."""
    tick = Everytick("sqlite:////dev/null/there-is-no-folder/everytick.db", name="shop")
    async with client_of(tick) as asking:
        ready, alive = await asking.get("/readyz?verbose"), await asking.get("/livez")

    assert ready.status_code == 503
    assert ready.text.startswith("[-] store: ")
    assert ready.text.endswith("failed\n")
    assert alive.status_code == 200


async def test_why_a_check_failed_is_told_to_those_who_have_signed_in(
    tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text of the store may name hosts and databases: a stranger reads which check failed, and no more."""
    with tick.acting_as(Doer("setup", CameBy.COMMAND)):
        await tick.people.add_user("root", Role.ADMIN)
        token = await tick.people.add_token("ann", Role.VIEWER)

    async def away() -> object:
        raise StoreUnavailable("postgresql://db-7.internal", "connection refused")

    async with client_of(tick) as asking:
        ann = {"authorization": f"Bearer {token.text}"}
        await asking.get("/api/jobs", headers=ann)
        monkeypatch.setattr(tick, "_opened", away)
        monkeypatch.setattr(tick.people, "_opened", away)
        to_ann = (await asking.get("/readyz?verbose", headers=ann)).text
        to_stranger = (await asking.get("/readyz?verbose")).text

    assert "[-] store: postgresql://db-7.internal does not answer: connection refused" in to_ann
    assert "[-] store: failed; sign in to read why\n" in to_stranger
    assert "db-7" not in to_stranger


@pytest.mark.parametrize("path", ["/", "/jobs", "/api/jobs", "/metrics", "/live"])
async def test_what_the_store_said_last_is_told_to_those_who_are_known(
    tick: Everytick, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    with tick.acting_as(Doer("setup", CameBy.COMMAND)):
        await tick.people.add_user("root", Role.ADMIN)
        token = await tick.people.add_token("ann", Role.VIEWER)

    async def away() -> object:
        raise StoreUnavailable("postgresql://db-7.internal", "connection refused")

    async with client_of(tick) as asking:
        ann = {"authorization": f"Bearer {token.text}"}
        await asking.get("/api/jobs", headers=ann)
        monkeypatch.setattr(tick, "_opened", away)
        monkeypatch.setattr(tick.people, "_opened", away)
        to_stranger = [await asking.get(path, headers={"accept": accept}) for accept in ("text/html", "*/*")]
        to_ann = await asking.get("/api/jobs", headers=ann)

    assert [answer.status_code for answer in to_stranger] == [503, 503]
    assert all("db-7" not in answer.text for answer in to_stranger)
    assert to_ann.json()["detail"].startswith("postgresql://db-7.internal does not answer: connection refused")


async def test_who_asks_is_not_waited_for_where_no_check_failed(tick: Everytick) -> None:
    """A store that says nothing held /livez?verbose up for five seconds: a supervisor would have ended the process."""

    async def never(_: object) -> Person:
        told: asyncio.Future[Person] = asyncio.get_running_loop().create_future()
        return await told

    async with client_of(tick, service=asgi(tick, identify=never)) as asking, asyncio.timeout(30):
        assert (await asking.get("/livez?verbose")).text == "[+] loop: ok\nok\n"


async def test_the_checks_are_lines_also_where_the_tables_are_those_of_another_version(
    tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks cannot be told then: the answer was a problem in JSON, with the text that strangers must not read."""

    async def mismatched() -> object:
        raise SchemaMismatch("postgresql://db-7.internal", "its tables are at migration 12, and this version knows 11")

    monkeypatch.setattr(tick, "_opened", mismatched)
    monkeypatch.setattr(tick.people, "_opened", mismatched)
    async with client_of(tick) as asking:
        answer = await asking.get("/readyz?verbose")

    assert answer.status_code == 503
    assert answer.text.startswith("[-] store: failed; sign in to read why\n")
    assert "db-7" not in answer.text


def test_an_application_has_the_routes_of_the_routers_themselves() -> None:
    """Made anew for each application they would cost its first request a quarter of a second."""
    known = [id(route) for router in routers() for route in router.routes]

    assert [id(route) for route in asgi(Everytick()).app.routes] == known
