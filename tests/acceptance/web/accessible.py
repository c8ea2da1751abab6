"""Checks of our own that a page can be read by every person: names, headings, tables, contrast, targets, one `main`.

`faults(page)` returns a sentence for each fault; an empty list is what every page must have.
"""

from pathlib import Path

from playwright.async_api import Page

_SCRIPT = Path(__file__).with_name("accessible.js").read_text()


async def faults(page: Page) -> list[str]:
    """Return what is wrong with the page, a sentence each. It works on a page without script too."""
    found: list[str] = await page.evaluate(_SCRIPT)
    return found
