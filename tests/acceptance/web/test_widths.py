"""No page is wider than its window, and no column of a table lies out of sight: on a telephone, a tablet and desks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from everytick import Everytick, Retry, every
from everytick.domain.statuses import OccurrenceStatus
from tests.acceptance.web.browsing import Reader, served
from tests.acceptance.web.test_every_page import PAGES, PARTS

WIDTHS = (390, 768, 1120, 1440)

MORE_PAGES = (
    "jobs?state=retrying",
    "jobs/warehouse-of-orders",
    "jobs/warehouse-of-orders?as=table",
    "history?job=warehouse-of-orders&w=30d",
    "occurrences/{failed}?as=table",
    "?w=1h",
    "timeline?w=4h",
)

OUT_OF_SIGHT = """() => {
  const found = [], root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) found.push(`the page by ${root.scrollWidth - root.clientWidth}`);
  for (const table of document.querySelectorAll("main table")) {
    let box = table.parentElement;
    while (box !== root && getComputedStyle(box).overflowX === "visible") box = box.parentElement;
    const right = Math.min(box.getBoundingClientRect().right, root.clientWidth);
    for (const head of table.querySelectorAll("thead th")) {
      const place = head.getBoundingClientRect();
      if (place.width && place.right > right + 1) found.push(`${head.textContent} by ${place.right - right}`);
    }
  }
  return found;
}"""
"""What of a page lies to the right of its window, or of the panel in which it scrolls."""


@asynccontextmanager
async def shop(folder: Path) -> AsyncIterator[tuple[str, str]]:
    """Serve an application whose jobs stand in the states with the longest words; its address, and what failed."""
    tick = Everytick(f"sqlite:///{folder / 'e.db'}", name="the-shop-of-the-north", log_folder=folder / "logs")
    failed = ""
    common: Any = {"owner": "data-platform", "tags": ["warehouse", "housekeeping"]}
    half = tick.define("tax-reports-of-the-quarter", every("1d"), failure="continue", **common)

    @half.task
    def well() -> None: ...

    @half.task
    def badly() -> None:
        raise ValueError("3 of 400 rows have no tax number")

    @tick.job(every("1d"), name="warehouse-of-orders", **common)
    def orders() -> None:
        raise ConnectionError('connection to server at "warehouse", port 5432 failed: Connection timed out')

    @tick.job("30 2 * * 1-5", name="geographical-sync", retry=Retry(3, "1h"), **common)
    def sync() -> None:
        raise TimeoutError("no answer from geo.example")

    tick.job(every("1h"), name="orders/daily", max_concurrent=2, **common)(lambda: None)
    async with tick:
        for name in ("tax-reports-of-the-quarter", "warehouse-of-orders", "orders/daily"):
            ended = await (await tick.trigger(name)).wait(timeout="60s")
            failed = ended.id if ended.status is OccurrenceStatus.FAILED else failed
        retried = await tick.trigger("geographical-sync")
        async for _ in tick.events():
            if (await tick.entry(retried.id)).occurrence.status is OccurrenceStatus.AWAITING_RETRY:
                break
        async with served(tick) as url:
            yield url, failed
        await tick.cancel(retried.id)


@pytest.mark.parametrize("part", range(PARTS))
async def test_no_column_is_out_of_sight_at_any_width(tmp_path: Path, reader: Reader, part: int) -> None:
    found = {}
    async with shop(tmp_path) as (url, failed):
        page = await reader.open(url)
        for path in (*PAGES, *MORE_PAGES)[part::PARTS]:
            await reader.follow(page, url + path.format(failed=failed))
            for width in WIDTHS:
                await page.set_viewport_size({"width": width, "height": 900})
                if wrong := await page.evaluate(OUT_OF_SIGHT):
                    found[f"{path} at {width}"] = wrong
        await reader.leave()

    assert found == {}
