"""Forms as a browser without script fills and sends them."""

import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

import httpx2


class FormOnPage(HTMLParser):
    """The form of a page that changes something: where it goes, what its inputs hold, what its buttons say."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.action, self.typed, self.buttons = "", dict[str, str](), list[str]()
        self.is_there = False
        self._inside = self._in_button = False
        self._text: str | None = None
        self._select = ""
        main = page.partition('<div id="deed">')[2]
        self.feed(main)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given: dict[str, Any] = dict(attributes)
        if tag == "form":
            self._inside, self.is_there, self.action = True, True, given.get("action") or ""
        if not self._inside:
            return
        if tag == "input":
            is_ticked = given.get("type") not in ("checkbox", "radio") or "checked" in given
            if is_ticked and given.get("name"):
                self.typed[given["name"]] = given.get("value") or ""
        elif tag == "select":
            self._select = given["name"]
        elif tag == "option" and (self._select not in self.typed or "selected" in given):
            self.typed[self._select] = given.get("value") or ""
        elif tag == "textarea":
            self._text = given["name"]
            self.typed[given["name"]] = ""
        elif tag == "button":
            self._in_button = True
            self.buttons.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._inside = False
        elif tag == "textarea":
            self._text = None
        elif tag == "button":
            self._in_button = False

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self.typed[self._text] += data.removeprefix("\n")
        if self._in_button:
            self.buttons[-1] += data


async def sent(client: httpx2.AsyncClient, path: str, **typed: str) -> httpx2.Response:
    """Open the page of a deed, fill its form and send it. A name with a dot is written with two underscores."""
    page = await client.get(path)
    assert page.status_code == 200, page.text
    return await sent_again(client, path, page, **typed)


async def sent_again(client: httpx2.AsyncClient, path: str, page: httpx2.Response, **typed: str) -> httpx2.Response:
    """Fill the form of a page that is open, and send it."""
    form = FormOnPage(page.text)
    assert form.is_there, text_of(page)
    given = {name.replace("__", "."): said for name, said in typed.items()}
    return await client.post(form.action or path, data={**form.typed, **given})


def text_of(page: httpx2.Response) -> str:
    """Return what a reader sees of the main part of a page."""
    main = page.text.partition("<main")[2].partition("</main>")[0]
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", f"<main{main}")))


async def told(client: httpx2.AsyncClient, answer: httpx2.Response) -> str:
    """Return what the page behind a deed tells of it."""
    assert answer.status_code == 303, text_of(answer)
    page = await client.get("/more")
    banner = re.search(r'<div class="banner.*?</span>', page.text)
    assert banner is not None, page.text
    return unescape(re.sub(r"<[^>]*>", "", banner[0]))
