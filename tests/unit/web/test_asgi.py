"""The service as a whole: roles on every route, headers, problems, prefixes, files, health."""

import httpx2
import pytest
from fastapi import FastAPI

from everytick import Everytick
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


def test_an_application_has_the_routes_of_the_routers_themselves() -> None:
    """Made anew for each application they would cost its first request a quarter of a second."""
    known = [id(route) for router in routers() for route in router.routes]

    assert [id(route) for route in asgi(Everytick()).app.routes] == known
