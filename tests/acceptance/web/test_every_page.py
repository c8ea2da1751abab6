"""Every page in a browser: readable for everybody, in both themes, on desk and telephone, without script, on paper."""

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
    "/signin": "test_signing_in and the security tests open it",
    "/signout": "only those who have signed in",
    "/welcome": "only with a link that works once",
    "/access/me": "only those who have signed in",
    "/access/sessions/{session}/end": "only those who have signed in",
    "/access/tokens/{token:name}/revoke": "needs a token",
    "/access/users/{user:name}/password": "needs a user",
    "/access/users/{user:name}/remove": "needs a user",
    "/access/users/{user:name}/role": "needs a user",
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
@pytest.mark.parametrize(("theme", "width"), [("light", DESK), ("dark", PHONE)])
async def test_everybody_can_read_every_page(tmp_path: Path, reader: Reader, theme: str, width: int, part: int) -> None:
    found: dict[str, list[str]] = {}
    async with shop(tmp_path) as (url, failed):
        page = await reader.open(url, theme=theme, width=width)
        for path in PAGES[part::PARTS]:
            await reader.follow(page, url + path.format(failed=failed))
            if wrong := await faults(page):
                found[path] = wrong
        await reader.leave()

    assert found == {}


@pytest.mark.parametrize("part", range(PARTS))
async def test_every_page_says_the_same_without_script_and_on_paper(tmp_path: Path, reader: Reader, part: int) -> None:
    """No page is empty without script; on paper there is neither bar nor button."""
    async with shop(tmp_path) as (url, failed):
        page = await reader.open(url, script=False)
        for path in PAGES[part::PARTS]:
            await page.emulate_media(media="screen")
            await reader.follow(page, url + path.format(failed=failed))
            said = await page.locator("h1").inner_text()
            assert len(said) > 2, path
            await page.emulate_media(media="print")
            for bar in ("nav.nav", "form.find"):
                assert not await page.locator(bar).is_visible(), path
            for button in await page.locator("main .btn").all():
                assert not await button.is_visible(), path
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
