"""Status marks: one word, one glyph. The shapes are in `static/marks.svg`, the colours in `static/frame.css`."""

from __future__ import annotations

from functools import lru_cache

from markupsafe import Markup, escape

MARKS = "static/marks.svg"
"""Where the shapes are, below the prefix of the service."""

GLYPHS = frozenset(
    {
        "pending",
        "queued",
        "running",
        "awaiting_retry",
        "completed",
        "completed_with_errors",
        "failed",
        "failed_stale",
        "canceled",
        "skipped",
        "missed",
        "superseded",
        "planned",
        "late",
        "paused",
        "fine",
        "file",
        "promise",
        "brake",
        "success",
        "timeout",
        "lost",
    }
)
"""Every name that has a shape: the statuses, and what is not a status but has a mark."""


def glyph(name: str, marks: str, more: str = "") -> Markup:
    """Return the 12 px glyph of a status. `marks` is the address of the shapes, `more` names further classes."""
    return _glyph(str(name), marks, more)


@lru_cache(maxsize=512)
def _glyph(name: str, marks: str, more: str) -> Markup:
    """Return the glyph. A table has one in each row, of some dozen kinds."""
    classes = f"g s-{name} {more}".strip()
    return Markup('<svg class="{}" aria-hidden="true"><use href="{}#{}"/></svg>').format(classes, marks, name)


def word(status: str, marks: str, text: str = "") -> Markup:
    """Return a status as people read it: its glyph and its word, or another text in its colour."""
    # No `Markup.format`: it parses its text every time, and takes ten times as long.
    drawn, said = glyph(status, marks), str(escape(text or status)).replace("_", "_<wbr>")
    return Markup(f'<span class="word i-{escape(status)}">{drawn}{said}</span>')  # noqa: S704, both are escaped


def cap(name: str, x: str, marks: str, *, size: int = 12, middle: int = 13) -> Markup:
    """Return a glyph inside a picture: on a halo, centred on `x`, a per cent of the picture's width."""
    half = size / 2
    name, use = escape(name), f"{escape(marks)}#{escape(name)}"
    return Markup(  # noqa: S704, both are escaped
        f'<svg class="s-{name}" x="{escape(x)}" y="{num(middle - half)}">'
        f'<circle class="halo" cy="{num(half)}" r="{num(half + 1.5)}"/>'
        f'<use href="{use}" x="-{num(half)}" width="{size}" height="{size}"/></svg>'
    )


def num(value: float) -> str:
    """Return a number for an attribute, with two decimals at most: `3.5`, `12`."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"


def percent(part: float) -> str:
    """Return a part of a picture's width for an attribute: `12.5%`."""
    return f"{num(part * 100)}%"
