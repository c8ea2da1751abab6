"""SVG elements as safe markup: every text and attribute is escaped here, in one place."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from everytick.web.pictures.marks import num

if TYPE_CHECKING:
    from collections.abc import Iterable

NOTHING = Markup("")

_SPECIAL = re.compile("[&<>'\"]")
"""What `escape` replaces. Few texts have any of it."""


def element(tag: str, *inside: object, **attributes: object) -> Markup:
    """Return one element. `class_` is written `class`, an underscore in a name as a dash; None leaves one out."""
    # Plain text until the end: a Markup of each of a page's thousand attributes took half the time of its pictures.
    written = "".join([f' {_name(name)}="{_text(given)}"' for name, given in attributes.items() if given is not None])
    return Markup(f"<{tag}{written}>{joined(inside)}</{tag}>" if inside else f"<{tag}{written}/>")  # noqa: S704


@cache
def _name(given: str) -> str:
    """Return an attribute's name as it is written. The names stand in our code: some dozens."""
    return given.rstrip("_").replace("_", "-")


def _text(given: object) -> str:
    """Return an attribute's value as it is written: a fraction with two decimals, a text escaped."""
    if type(given) is str:
        return given if _SPECIAL.search(given) is None else escape(given)
    if type(given) is int:
        return str(given)
    return num(given) if isinstance(given, float) else escape(given)


def joined(parts: Iterable[object]) -> Markup:
    """Return the parts one after another; what is no markup is escaped."""
    return Markup("".join([part if type(part) is Markup else escape(part) for part in parts]))  # noqa: S704, each is escaped


def linked(drawn: Markup, href: str | None) -> Markup:
    """Return the mark as a link for pointers. Keys reach the same page by the table behind the picture."""
    return drawn if href is None else element("a", drawn, href=href, tabindex=-1)
