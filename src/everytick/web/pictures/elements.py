"""SVG elements as safe markup: every text and attribute is escaped here, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from everytick.web.pictures.marks import num

if TYPE_CHECKING:
    from collections.abc import Iterable

NOTHING = Markup("")


def element(tag: str, *inside: object, **attributes: object) -> Markup:
    """Return one element. `class_` is written `class`, an underscore in a name as a dash; None leaves one out."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(num(given) if isinstance(given, float) else given)}"'
        for name, given in attributes.items()
        if given is not None
    )
    if not inside:
        return Markup(f"<{tag}{written}/>")
    return Markup(f"<{tag}{written}>{joined(inside)}</{tag}>")


def joined(parts: Iterable[object]) -> Markup:
    """Return the parts one after another; what is no markup is escaped."""
    return NOTHING.join(escape(part) for part in parts)


def linked(drawn: Markup, href: str | None) -> Markup:
    """Return the mark as a link for pointers. Keys reach the same page by the table behind the picture."""
    return drawn if href is None else element("a", drawn, href=href, tabindex=-1)
