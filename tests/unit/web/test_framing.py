"""The frame of a page: zone and theme by cookie, the page that is current, badges."""

from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from starlette.requests import Request

from everytick.web.framing import Badges, Flash, frame_of, viewer_of


def asked(cookie: str = "", **state: Any) -> Request:
    """Return a request with these cookies, of an application in this state."""
    app = SimpleNamespace(state=SimpleNamespace(**state))
    headers = [(b"cookie", cookie.encode())] if cookie else []
    return Request({"type": "http", "headers": headers, "app": app, "path": "/"})


def test_zone_and_theme_come_from_cookies() -> None:
    viewer = viewer_of(asked("everytick_zone=Asia/Tokyo; everytick_theme=dark"))
    assert (viewer.zone, viewer.theme) == ("Asia/Tokyo", "dark")


@pytest.mark.parametrize("cookie", ["", "everytick_zone=../../etc/passwd; everytick_theme=<x>", "everytick_zone="])
def test_a_cookie_that_names_no_zone_is_as_none(cookie: str) -> None:
    viewer, host = viewer_of(asked(cookie)), viewer_of(asked())
    assert (viewer.zone, viewer.theme) == (host.zone, "")


@pytest.mark.parametrize(
    ("path", "page"), [("/", "now"), ("/jobs/a%2Fb", "jobs"), ("/occurrences/occ_1", "history"), ("/lab", "lab")]
)
def test_the_current_page_follows_from_the_path(path: str, page: str) -> None:
    assert frame_of(asked(), path).page == page


def test_badges_and_notices_are_shown_where_they_are_known() -> None:
    request = asked(badges=Badges(looks=3, files=1, is_wrong=True))
    request.state.notices = (Flash("Paused tax-report."),)
    frame = frame_of(request, "/jobs")
    assert {each.name: (each.badge, each.tone) for each in frame.pages if each.badge} == {
        "now": (3, "wrong"),
        "files": (1, "look"),
    }
    assert frame.notices[0].text == "Paused tax-report."


async def test_a_browser_keeps_its_zone_and_theme(client: httpx2.AsyncClient) -> None:
    kept = await client.get("/settings", params={"zone": "Asia/Tokyo", "theme": "dark", "keep": "1"})
    assert kept.status_code == 303

    page = await client.get("/settings")
    assert "Times are shown in Asia/Tokyo." in page.text
    assert '<html lang="en" data-theme="dark">' in page.text


async def test_a_zone_that_is_none_is_told_with_a_near_one(client: httpx2.AsyncClient) -> None:
    page = await client.get("/settings", params={"zone": "Europe/Berlyn<b>", "keep": "1"})
    assert page.status_code == 422
    assert "Europe/Berlyn&lt;b&gt;" in page.text
    assert "<b>" not in page.text.split("<main")[1].split("</form>")[0]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("orders/daily", "/jobs/orders%2Fdaily"),
        ("nigh", "/jobs?q=nigh"),
        ("", "/jobs"),
        ("0190d1de-7b5c-5c47-9a0a-6d54a6ef9d11", "/occurrences/0190d1de-7b5c-5c47-9a0a-6d54a6ef9d11"),
    ],
)
async def test_the_field_finds_a_job_or_an_occurrence(client: httpx2.AsyncClient, text: str, place: str) -> None:
    found = await client.get("/find", params={"q": text})
    assert (found.status_code, found.headers["location"]) == (303, place)


async def test_every_page_has_its_frame(client: httpx2.AsyncClient) -> None:
    page = await client.get("/more")
    assert page.status_code == 200
    for part in ('<a class="skip" href="#main">', '<nav class="nav"', 'role="search"', 'id="clock"', "<h1>"):
        assert part in page.text
    assert " style=" not in page.text
    assert "<script>" not in page.text


async def test_an_error_is_a_page_in_the_same_frame(client: httpx2.AsyncClient) -> None:
    page = await client.get("/nothing<script>", headers={"accept": "text/html"})
    assert page.status_code == 404
    assert "<h1>Nothing is here.</h1>" in page.text
    assert "no_such_page" in page.text
    assert "<script>" not in page.text
