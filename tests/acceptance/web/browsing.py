"""A real browser on a real service: what a reader sees, and what no page may do.

`Reader.open` gives a page of Chromium. When the reader leaves, every page that was opened is judged: no error on the
console, no uncaught exception, no request to another host, nothing that the content policy had to stop.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request

from everytick import Everytick
from everytick.app.serving import Listening

FLAGS = [
    "--no-sandbox",  # the tests may run as root
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PATIENCE_MILLISECONDS = 20_000
"""A limit against hanging; a page is there in some hundred milliseconds."""

PHONE, DESK = 390, 1440


@asynccontextmanager
async def served(tick: Everytick, *, prefix: str = "") -> AsyncIterator[str]:
    """Serve an application on a free port of this host; the address of its first page."""
    server = tick.web_server(Listening.at("127.0.0.1", 0, prefix))
    try:
        yield await server.start()
    finally:
        await server.close()


class Reader:
    """A person with a browser, who reads one service."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self.complaints: list[str] = []

    async def open(
        self,
        address: str,
        *,
        width: int = DESK,
        theme: str = "light",
        script: bool = True,
        zone: str = "UTC",
        expect_status: int = 200,
    ) -> Page:
        """Open an address in a new window without cookies; the page, once it has loaded."""
        context = await self._browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if theme == "dark" else "light",
            java_script_enabled=script,
            timezone_id=zone,
            reduced_motion="reduce",
        )
        self._contexts.append(context)
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        page = await context.new_page()
        self._watch(page, urlsplit(address).netloc, expect_status)
        await self._go(page, address, expect_status)
        return page

    async def follow(self, page: Page, address: str) -> None:
        """Go on to another page of the service in the same window, which spares the start of a new one."""
        await self._go(page, address, 200)
        assert not self.complaints, "\n".join(self.complaints)

    async def _go(self, page: Page, address: str, expect_status: int) -> None:
        answer = await page.goto(address, wait_until="load")
        assert answer is not None, address
        assert answer.status == expect_status, f"{address} answered {answer.status}"

    async def leave(self) -> None:
        """Close every window, and complain about what their pages did."""
        for context in self._contexts:
            await context.close()
        self._contexts.clear()
        assert not self.complaints, "\n".join(self.complaints)

    def _watch(self, page: Page, own: str, status: int) -> None:
        def said(message: ConsoleMessage) -> None:
            # A browser says itself on the console that a page was not found.
            if message.type in ("error", "warning") and not (status >= 400 and f"{status}" in message.text):
                self.complaints.append(f"{page.url}: console: {message.text}")

        def asked(request: Request) -> None:
            target = urlsplit(request.url)
            if target.scheme in ("http", "https", "ws", "wss") and target.netloc != own:
                self.complaints.append(f"{page.url}: asked {request.url}, which is another host")

        page.on("console", said)
        page.on("pageerror", lambda error: self.complaints.append(f"{page.url}: {error}"))
        page.on("request", asked)
