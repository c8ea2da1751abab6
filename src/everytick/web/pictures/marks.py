"""Status marks: one word, one glyph. The shapes are in `static/marks.svg`, the colours in `static/frame.css`."""

from __future__ import annotations

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
    classes = f"g s-{name} {more}".strip()
    return Markup('<svg class="{}" aria-hidden="true"><use href="{}#{}"/></svg>').format(classes, marks, name)


def word(status: str, marks: str, text: str = "") -> Markup:
    """Return a status as people read it: its glyph and its word, or another text in its colour."""
    return Markup('<span class="word i-{}">{}{}</span>').format(status, glyph(status, marks), text or status)


def cap(name: str, x: str, marks: str, *, size: int = 12, middle: int = 13) -> Markup:
    """Return a glyph inside a picture: on a halo, centred on `x`, a per cent of the picture's width."""
    half = size / 2
    return Markup(
        '<svg class="s-{}" x="{}" y="{}"><circle class="halo" cy="{}" r="{}"/>'
        '<use href="{}#{}" x="-{}" width="{}" height="{}"/></svg>'
    ).format(name, x, num(middle - half), num(half), num(half + 1.5), marks, name, num(half), size, size)


def num(value: float) -> str:
    """Return a number for an attribute, with two decimals at most: `3.5`, `12`."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"


def percent(part: float) -> str:
    """Return a part of a picture's width for an attribute: `12.5%`."""
    return f"{num(part * 100)}%"


def titled(text: str) -> Markup:
    """Return a title element, which browsers show beside the pointer."""
    return Markup("<title>{}</title>").format(escape(text))
