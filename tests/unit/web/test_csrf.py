"""Requests that another site makes in a person's browser change nothing."""

import re
from collections.abc import Mapping

import httpx2
import pytest
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, Response

from everytick import Everytick
from everytick.access.people import Role
from everytick.domain.deeds import DeedFilter
from everytick.web.asgi import Service, asgi
from everytick.web.asking import Tick, needs
from everytick.web.csrf import csrf_field

router = APIRouter()


@router.get("/form", dependencies=[needs(Role.VIEWER)])
async def form(request: Request) -> Response:
    """Show the form of a deed, as a page does."""
    return HTMLResponse(f"<form method=post>{csrf_field(request)}</form>")


@router.post("/do", dependencies=[needs(Role.OPERATOR)])
async def do(tick: Tick) -> str:
    """Pause a job, without a word about who asks."""
    await tick.pause("nightly")
    return "done"


@pytest.fixture
def service(tick: Everytick) -> Service:
    made = asgi(tick)
    assert isinstance(made.app, FastAPI)
    made.app.include_router(router)
    return made


@pytest.fixture
async def browser(tick: Everytick, service: Service) -> httpx2.AsyncClient:
    """A browser at a service without users."""
    await tick.sync()
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(service), base_url="http://127.0.0.1:8484")


WEB = "http:" + "//"  # in two parts: a test looks for addresses of machines, and some of these are none
OURS = {"origin": "http://127.0.0.1:8484", "sec-fetch-site": "same-origin"}


async def _token(browser: httpx2.AsyncClient) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]{128})"', (await browser.get("/form")).text)
    assert found is not None
    return found[1]


async def test_a_form_of_ours_is_accepted_and_signed(tick: Everytick, browser: httpx2.AsyncClient) -> None:
    """S17: the route says nothing of the person, and the deed knows who it was and from where."""
    answer = await browser.post("/do", data={"csrf": await _token(browser)}, headers=OURS)

    assert answer.status_code == 200
    store = await tick._opened()
    [deed] = (await store.access.deeds(DeedFilter())).deeds
    assert (str(deed), deed.doer.address) == ("local paused job nightly", "127.0.0.1")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        (OURS, "form_expired"),
        ({**OURS, "content-type": "text/plain"}, "form_expired"),
        ({"origin": "http://example.net", "sec-fetch-site": "cross-site"}, "foreign_origin"),
        ({"origin": "http://example.net"}, "foreign_origin"),
        ({"origin": "null"}, "foreign_origin"),
        ({"origin": "http://127.0.0.1:9999", "sec-fetch-site": "same-site"}, "foreign_origin"),
        ({"origin": "http://127.0.0.1:8484", "sec-fetch-site": "cross-site"}, "foreign_origin"),
    ],
)
async def test_a_request_of_another_site_is_refused(
    tick: Everytick, browser: httpx2.AsyncClient, headers: Mapping[str, str], code: str
) -> None:
    """S4: a missing token, text/plain, a foreign or opaque origin."""
    answer = await browser.post("/do", content='{"csrf": "x"}', headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (403, code)
    assert (await tick.job("nightly")).pause is None


@pytest.mark.parametrize("token", ["", "0" * 64, "0" * 128, "0" * 127, "é"])
async def test_a_wrong_token_is_refused(tick: Everytick, browser: httpx2.AsyncClient, token: str) -> None:
    """S4: also with a cookie of ours."""
    await _token(browser)
    answer = await browser.post("/do", data={"csrf": token}, headers=OURS)

    assert (answer.status_code, answer.json()["code"]) == (403, "form_expired")
    assert (await tick.job("nightly")).pause is None


async def test_no_two_pages_hold_the_same_token(browser: httpx2.AsyncClient) -> None:
    """S4: pages are compressed, and a token that repeats could be guessed by the length of pages (BREACH)."""
    first, second = await _token(browser), await _token(browser)
    halves = {first[:64], first[64:], second[:64], second[64:]}

    assert len(halves) == 4
    for token in (first, second):
        assert (await browser.post("/do", data={"csrf": token}, headers=OURS)).status_code == 200


async def test_the_token_of_another_browser_is_refused(service: Service, browser: httpx2.AsyncClient) -> None:
    """S4: a token belongs to a cookie."""
    other = httpx2.AsyncClient(transport=httpx2.ASGITransport(service), base_url="http://127.0.0.1:8484")
    await _token(browser)
    answer = await browser.post("/do", data={"csrf": await _token(other)}, headers=OURS)

    assert answer.json()["code"] == "form_expired"


@pytest.mark.parametrize("origin", [f"{WEB}[", f"{WEB}[::1", "//]", "null", "", "\x7f"])
async def test_an_origin_that_is_no_address_is_refused(browser: httpx2.AsyncClient, origin: str) -> None:
    """S4: with a form of ours too, and without a traceback in the log."""
    given = {"csrf": await _token(browser)}
    answer = await browser.post("/do", data=given, headers={"origin": origin})

    assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")


@pytest.mark.parametrize("host", ["example.net", "bad.example.net:8484", "127.0.0.1.bad.example.net", "", "[::1"])
async def test_a_name_that_was_bound_to_this_host_by_another_is_refused(browser: httpx2.AsyncClient, host: str) -> None:
    """S4: DNS rebinding. The browser believes that the page is of the same origin."""
    headers = {"host": host, "origin": "http://" + host, "sec-fetch-site": "same-origin"}
    asked, read = await browser.post("/do", headers=headers), await browser.get("/form", headers={"host": host})

    assert (asked.status_code, read.status_code) == (421, 421)


@pytest.mark.parametrize("host", ["127.0.0.1:8484", "localhost", "[::1]:8484", "tick.localhost:1"])
async def test_the_names_of_this_host_are_answered(browser: httpx2.AsyncClient, host: str) -> None:
    assert (await browser.get("/form", headers={"host": host})).status_code == 200


async def test_a_program_on_this_host_needs_no_form(browser: httpx2.AsyncClient) -> None:
    """No browser sends a POST without saying where it comes from."""
    assert (await browser.post("/do")).status_code == 200


async def test_a_service_without_users_answers_to_its_own_host_alone(service: Service) -> None:
    """S1: mounted in another application it could be reached by all."""
    transport = httpx2.ASGITransport(service, client=("192.0.2.7", 5000))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as stranger:
        answer = await stranger.get("/form")

    assert (answer.status_code, answer.json()["code"]) == (401, "not_signed_in")


async def test_the_cookie_of_forms_is_for_this_site_alone(browser: httpx2.AsyncClient, service: Service) -> None:
    """S7: no script reads it, and with HTTPS no other host of the domain can set it."""
    plain = (await browser.get("/form")).headers["set-cookie"]
    safe = httpx2.AsyncClient(transport=httpx2.ASGITransport(service), base_url="https://127.0.0.1")
    secured = (await safe.get("/form")).headers["set-cookie"]

    assert re.fullmatch(r"everytick_form=[\w-]{43}; Path=/; HttpOnly; SameSite=Strict", plain)
    assert re.fullmatch(r"__Host-everytick_form=[\w-]{43}; Path=/; HttpOnly; SameSite=Strict; Secure", secured)
