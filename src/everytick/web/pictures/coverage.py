"""The coverage of a job as one bar: which stretches of time are done, missing, under way, done twice or unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.app.coverage import CoverageState
from everytick.web.pictures.elements import element
from everytick.web.pictures.marks import percent

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from markupsafe import Markup

    from everytick.app.coverage import CoverageLedger, CoverageSpan

_KINDS = {
    CoverageState.DONE: "m-done",
    CoverageState.TWICE: "m-look",
    CoverageState.UNDER_WAY: "o-present",
    CoverageState.MISSING: "o-wrong",
    CoverageState.UNKNOWN: "w-rest",
}
_HIGH, _THIN = 16, 8
_MOST = 400
"""Most spans that are drawn: each has two pixels at least."""


def coverage_bar(ledger: CoverageLedger, when: Callable[[datetime], str]) -> Markup:
    """Draw the ledger from its first instant to its end. What is missing is taller than what is done."""
    begin = ledger.spans[0].after if ledger.spans else ledger.after
    whole = max((ledger.through - begin).total_seconds(), 1e-6)

    def place(at: datetime) -> float:
        return min(max((at - begin).total_seconds() / whole, 0.0), 1.0)

    # What is missing is drawn last: a gap of some minutes must not vanish below its neighbours.
    ordered = sorted(ledger.spans[-_MOST:], key=lambda span: span.state is CoverageState.MISSING)
    bars = [_bar(span, place, when) for span in ordered]
    return element("svg", *bars, class_="cover", height=_HIGH + 4, role="img", aria_label=coverage_words(ledger))


def coverage_words(ledger: CoverageLedger) -> str:
    """Return the ledger as a sentence: `58 done, 2 missing`."""
    words = {CoverageState.TWICE: "done twice", CoverageState.UNDER_WAY: "under way"}
    told = [f"{ledger.count(state):,} {words.get(state, state)}" for state in CoverageState if ledger.count(state)]
    return ", ".join(told) or "no instant"


def _bar(span: CoverageSpan, place: Callable[[datetime], float], when: Callable[[datetime], str]) -> Markup:
    left, right = place(span.after), place(span.through)
    high = _HIGH if span.state is CoverageState.MISSING else _THIN
    why = f": {span.why}" if span.why else ""
    title = f"{str(span.state).replace('_', ' ')}, {span.count:,} from {when(span.after)} to {when(span.through)}{why}"
    return element(
        "rect",
        element("title", title),
        class_=_KINDS[span.state],
        x=percent(left),
        y=2 + (_HIGH - high) / 2,
        width=percent(max(right - left, 0.002)),
        height=high,
        rx=1,
    )
