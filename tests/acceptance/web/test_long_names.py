"""Names that are longer than a column: the page never scrolls sideways, and no name is broken letter by letter."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page

from everytick import Everytick, every
from everytick.domain.people import CameBy, Doer, Role
from tests.acceptance.web.browsing import DESK, PHONE, Reader, served

LONG = "nightly-backup-of-all-the-databases-and-their-write-ahead-logs"
LONGEST = "x" * 60 + f"-{LONG}-{LONG}"[:140]
"""As long as a name may be, with a part that has no place to break."""

PERSON = "a-person-with-a-rather-long-name@example.org"
PAGES = (
    "",
    "timeline",
    "jobs",
    f"jobs/{LONG}",
    f"jobs/{LONGEST}",
    f"jobs/{LONGEST}/do/pause",
    "agenda?w=7d",
    f"year?job={LONG}",
    "audit",
    "lab?schedule=30+2+*+*+1-5",
)

LEAST_NAME_PIXELS = 70
"""A name of a person on a telephone has at least this width: ten letters."""


@asynccontextmanager
async def served_with_long_names() -> AsyncIterator[str]:
    tick = Everytick("memory://", name="a-service-of-the-shop-with-a-long-name")
    tags = ["housekeeping-of-databases", "warehouse-of-the-north"]
    tick.job(every("1h"), name=LONG, tags=tags, owner="operations-and-infrastructure")(lambda: None)
    tick.job(every("1h"), name=LONGEST, tags=["y" * 60], owner="o" * 80)(lambda: None)
    await tick.sync()
    store = await tick._opened()
    for number in range(8):
        await store.beat(f"node-{number}", ())
    async with served(tick) as url:
        yield url
    await tick.close()


async def _sideways(page: Page) -> int:
    """Return by how many pixels the page is wider than its window."""
    found = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize("width", [PHONE, 768, DESK])
async def test_no_page_scrolls_sideways(reader: Reader, width: int) -> None:
    found = {}
    async with served_with_long_names() as url:
        for path in PAGES:
            found[path] = await _sideways(await reader.open(url + path, width=width))
        await reader.leave()

    assert {path: pixels for path, pixels in found.items() if pixels > 0} == {}


async def test_the_fields_of_a_schedule_stand_below_each_other_on_a_telephone(reader: Reader) -> None:
    async with served_with_long_names() as url:
        page = await reader.open(f"{url}lab?schedule=30+2+*+*+1-5", width=PHONE)
        places = [await field.bounding_box() for field in await page.locator(".fields li").all()]
        await reader.leave()

    assert len(places) == 5
    assert len({place["x"] for place in places if place}) == 1


async def test_the_name_of_a_user_is_not_broken_letter_by_letter(reader: Reader) -> None:
    tick = Everytick("memory://", name="shop")
    with tick.acting_as(Doer("setup", CameBy.COMMAND)):
        await tick.people.add_user(PERSON, Role.ADMIN, password="correct horse battery")
    async with served(tick) as url:
        page = await reader.open(f"{url}access", width=PHONE)
        await page.fill("#name", PERSON)
        await page.fill("#password", "correct horse battery")
        await page.click("button.go")
        await page.wait_for_url("**/access")
        name = await page.locator("tbody th a").first.bounding_box()
        await reader.leave()
    await tick.close()

    assert name is not None
    assert name["width"] >= LEAST_NAME_PIXELS


async def test_a_wide_table_is_not_cut_on_paper(reader: Reader) -> None:
    """On the screen it scrolls in its panel. Paper does not scroll: the browser makes the page smaller instead."""
    asked = "getComputedStyle(document.querySelector('.panel:has(> table)')).overflowX"
    async with served_with_long_names() as url:
        page = await reader.open(f"{url}jobs", width=1017)
        on_screen = await page.evaluate(asked)
        await page.emulate_media(media="print")
        on_paper = await page.evaluate(asked)
        await reader.leave()

    assert (on_screen, on_paper) == ("auto", "visible")
