"""A real browser on a real service: what a reader sees, and what no page may do.

`Reader.open` gives a page of Chromium. When the reader leaves, every page that was opened is judged: no error on the
console, no uncaught exception, no dialog of the browser, no request to another host, nothing that the content
policy had to stop.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request

from everytick import Everytick
from everytick.app.serving import Listening
from everytick.errors import StoreUnavailable
from everytick.stores.host_clock import HostClock
from everytick.stores.memory import MemoryStore

FLAGS = [
    "--no-sandbox",  # the tests may run as root
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PATIENCE_MILLISECONDS = 60_000
"""A limit against hanging; a page is there in some hundred milliseconds."""

PHONE, DESK = 390, 1440


_ended_hosts: set[str] = set()
"""Services that have ended. A live page that is still open asks for them again until its window is closed."""


@asynccontextmanager
async def served(tick: Everytick, *, prefix: str = "") -> AsyncIterator[str]:
    """Serve an application on a free port of this host; the address of its first page."""
    server = tick.web_server(Listening.at("127.0.0.1", 0, prefix))
    try:
        url = await server.start()
        _ended_hosts.discard(urlsplit(url).netloc)
        yield url
    finally:
        _ended_hosts.add(urlsplit(server.url).netloc)
        await server.close()


class LeavingStore:
    """A store that answers nothing while it is away."""

    def __init__(self) -> None:
        self._store, self.is_away = MemoryStore(HostClock()), False

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._store, name)
        return self._refused if self.is_away and callable(verb) else verb

    def _refused(self, *given: object, **more: object) -> None:
        raise StoreUnavailable("postgresql://db", "connection refused")


class Reader:
    """A person with a browser, who reads one service."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self._expected: dict[Page, int] = {}
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
            has_touch=width == PHONE,
            reduced_motion="reduce",
        )
        self._contexts.append(context)
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        page = await context.new_page()
        self._watch(page, urlsplit(address).netloc)
        await self._go(page, address, expect_status)
        return page

    def expect(self, page: Page, status: int) -> None:
        """Let the browser say on the console that what this page asks for from now on is answered with this status."""
        self._expected[page] = status

    async def follow(self, page: Page, address: str, *, expect_status: int = 200) -> None:
        """Go on to another page of the service in the same window, which spares the start of a new one."""
        await self._go(page, address, expect_status)
        assert not self.complaints, "\n".join(self.complaints)

    async def press(self, page: Page, button: str, *, expect_status: int = 200) -> None:
        """Press the button of a form that is answered with a page of this status."""
        self._expected[page] = expect_status
        async with page.expect_navigation(wait_until="load") as gone:
            await page.get_by_role("button", name=button, exact=True).click()
        answer = await gone.value
        assert answer is not None, button
        assert answer.status == expect_status, f"{button} was answered with {answer.status}"
        assert not self.complaints, "\n".join(self.complaints)

    async def _go(self, page: Page, address: str, expect_status: int) -> None:
        self._expected[page] = expect_status
        answer = await page.goto(address, wait_until="load")
        assert answer is not None, address
        assert answer.status == expect_status, f"{address} answered {answer.status}"

    async def leave(self) -> None:
        """Close every window, and complain about what their pages did."""
        for context in self._contexts:
            await context.close()
        self._contexts.clear()
        self._expected.clear()
        assert not self.complaints, "\n".join(self.complaints)

    def _watch(self, page: Page, own: str) -> None:
        def said(message: ConsoleMessage) -> None:
            if own in _ended_hosts and "net::ERR_" in message.text:
                return
            # A browser says itself on the console that a page was not found.
            status = self._expected[page]
            if message.type in ("error", "warning") and not (status >= 400 and f"{status}" in message.text):
                self.complaints.append(f"{page.url}: console: {message.text}")

        def asked(request: Request) -> None:
            target = urlsplit(request.url)
            if target.scheme in ("http", "https", "ws", "wss") and target.netloc != own:
                self.complaints.append(f"{page.url}: asked {request.url}, which is another host")

        async def opened(dialog: Dialog) -> None:
            self.complaints.append(f"{page.url}: a dialog said {dialog.message}")
            await dialog.dismiss()

        page.on("console", said)
        page.on("dialog", opened)
        page.on("pageerror", lambda error: self.complaints.append(f"{page.url}: {error}"))
        page.on("request", asked)
