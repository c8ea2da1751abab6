"""Every page in a browser: readable by every person, in both themes, on desk and telephone, without script, on A4."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from everytick import Context, Everytick, every
from everytick.web import pages
from tests.acceptance.web.accessible import faults
from tests.acceptance.web.browsing import DESK, PHONE, Reader, served

PAGES = (
    "",
    "?w=3d",
    "timeline",
    "jobs",
    "jobs/orders%2Fdaily",
    "jobs/orders%2Fdaily/do",
    "jobs/orders%2Fdaily/do/trigger",
    "jobs/orders%2Fdaily/do/pause",
    "jobs/orders%2Fdaily/do/backfill",
    "jobs/orders%2Fdaily/do/remove",
    "jobs/orders%2Fdaily/versions",
    "jobs/orders%2Fdaily/coverage",
    "jobs/orders%2Fdaily/at?at=2020-01-01T00:00:00Z",
    "occurrences/{failed}",
    "occurrences/{failed}/do/replay",
    "history",
    "history?status=failed",
    "agenda",
    "agenda/table",
    "agenda/spread",
    "files",
    "nodes",
    "year",
    "year?job=orders%2Fdaily",
    "audit",
    "access",
    "access/users/add",
    "access/tokens/add",
    "lab",
    "lab?q=30+2+*+*+1-5",
    "settings",
    "more",
    "views",
    "do",
    "api/docs",
)
"""Addresses of pages. `{failed}` is an occurrence that failed."""

PARTS = 4
"""The pages are opened in so many parts: a test has two minutes, also on a busy machine."""

ELSEWHERE = {
    "/lanes/{job:name}": "a part of a page",
    "/live": "a stream",
    "/find": "leads to another page",
    "/oidc": "leads to another site",
    "/oidc/callback": "leads to another page",
    "/signin": "test_people_pages",
    "/signout": "test_people_pages: only those who have signed in",
    "/welcome": "test_people_pages: only with a link that works once",
    "/access/me": "test_people_pages: only those who have signed in",
    "/access/sessions/{session}/end": "test_people_pages: only those who have signed in",
    "/access/tokens/{token:name}/revoke": "test_people_pages: needs a token",
    "/access/users/{user:name}/password": "test_people_pages: needs a user",
    "/access/users/{user:name}/remove": "test_people_pages: needs a user",
    "/access/users/{user:name}/role": "test_people_pages: needs a user",
    "/occurrences/{id}/output": "text, not a page",
    "/history.csv": "a file",
    "/history.json": "a file",
    "/timeline.csv": "a file",
}
"""Routes that are no page of their own, or that a reader without users cannot open."""


@asynccontextmanager
async def shop(folder: Path) -> AsyncIterator[tuple[str, str]]:
    """Serve an application with a failed run, a paused job and a folder of files; its address, and the failed one."""
    files = folder / "jobs"
    files.mkdir()
    (files / "good.yaml").write_text("version: 1\njobs:\n  tidy:\n    schedule: 0 3 * * *\n    command: 'true'\n")
    (files / "bad.yaml").write_text("version: 1\njobs:\n  wrong:\n    schedule: 99 3 * * *\n    command: 'true'\n")
    tick = Everytick(f"sqlite:///{folder / 'e.db'}", name="shop", log_folder=folder / "logs", jobs=files)

    @tick.job(every("1d"), name="orders/daily", tags=["billing"], description="<b>Bills</b> of the day")
    def orders(ctx: Context, count: int = 1, region: str = "eu") -> int:
        ctx.log.info("%d bills of %s", count, region)
        raise ConnectionError("<script>alert(1)</script> hung up")

    @tick.job(every("1h"), name="quiet")
    async def quiet() -> None:
        await asyncio.sleep(0)

    async with tick:
        await tick.pause("quiet", reason="stocktaking")
        failed = await tick.trigger("orders/daily", payload={"count": 3})
        await failed.wait(timeout="60s")
        async with served(tick) as url:
            yield url, failed.id


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("width", [DESK, PHONE])
async def test_everybody_can_read_every_page(tmp_path: Path, reader: Reader, width: int, part: int) -> None:
    """In both themes: the page follows the system when that changes, without being asked for anew."""
    found: dict[str, list[str]] = {}
    async with shop(tmp_path) as (url, failed):
        page = await reader.open(url, width=width)
        for path in PAGES[part::PARTS]:
            await reader.follow(page, url + path.format(failed=failed))
            for theme in ("light", "dark"):
                await page.emulate_media(color_scheme=theme)
                if wrong := await faults(page):
                    found[f"{path} {theme}"] = wrong
        await reader.leave()

    assert found == {}


PASSING = re.compile(r"(?:\d[\d:.,]*\s*(?:ms|s|min|h|d|KB|MB)?\b\s*)+(?:ago)?|\bnow\b")
"""Times of the day and lengths of time, which pass between two pages."""


def _lasting(said: str) -> list[str]:
    return [PASSING.sub("#", line).strip() for line in said.splitlines() if line.strip()]


@pytest.mark.parametrize("part", range(PARTS))
async def test_every_page_says_the_same_without_script_and_on_paper(tmp_path: Path, reader: Reader, part: int) -> None:
    """Script changes no word of a page; on paper there is neither bar nor button."""
    async with shop(tmp_path) as (url, failed):
        page, scripted = await reader.open(url, script=False), await reader.open(url)
        for path in PAGES[part::PARTS]:
            await page.emulate_media(media="screen")
            said = []
            for window in (page, scripted):
                await reader.follow(window, url + path.format(failed=failed))
                said.append(_lasting(await window.locator("main").inner_text()))
            assert said[0] == said[1] != [], path
            await page.emulate_media(media="print")
            for bar in ("nav.nav", "form.find"):
                assert not await page.locator(bar).is_visible(), path
            for button in await page.locator("main .btn").all():
                assert not await button.is_visible(), path
        await reader.leave()


PAPER = 718
"""The width of A4 in CSS pixels without the margins."""

ON_PAPER = {
    "jobs": ["Job", "Schedule", "Last 30, next 2", "State", "Next"],
    "history": ["Status", "Job", "Scheduled for", "Took", "Cause", "Why", "Node"],
    "jobs/orders%2Fdaily?as=table": ["Status", "Scheduled for", "Took", "Start delay", "Cause", "Why", "Node"],
}


@pytest.mark.parametrize("width", [PAPER, DESK])
async def test_paper_shows_every_column_and_nothing_to_press(tmp_path: Path, reader: Reader, width: int) -> None:
    """A sheet is narrow, but it is no telephone: what its page says of a run is on it too."""
    async with shop(tmp_path) as (url, failed):
        page = await reader.open(url, width=width)
        await page.emulate_media(media="print")
        for path in (
            *ON_PAPER,
            "",
            "jobs/orders%2Fdaily",
            "jobs/quiet",
            "jobs/quiet/coverage",
            f"occurrences/{failed}",
        ):
            await reader.follow(page, url + path)
            assert re.match(r"As of .*, [\w/]+$", await page.locator(".only-print").first.inner_text()), path
            links = page.locator("main").get_by_role("link", name=re.compile("…$|^as a "))
            for pressed in (page.get_by_role("checkbox"), page.get_by_role("button"), links):
                assert [await each.is_visible() for each in await pressed.all()].count(True) == 0, path
            heads = [await each.inner_text() for each in await page.locator("main th[scope=col]:visible").all()]
            assert [each for each in ON_PAPER.get(path, []) if each not in heads] == [], path
        await reader.leave()


def test_no_page_is_forgotten() -> None:
    """A new page must be named here, or be said to be none."""
    routes = [route for router in pages.ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    known = [path.split("?")[0] for path in PAGES]
    missing = {
        route.path
        for route in routes
        if "GET" in (route.methods or ()) and route.path not in ELSEWHERE
        if not any(re.fullmatch(_pattern(route.path), f"/{path}") for path in known)
    }

    assert {path for path in missing if "/do/" not in path} == set()


def _pattern(path: str) -> str:
    return re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(path))
