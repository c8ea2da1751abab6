"""The five numbers on top of the page Now: running, late, failed, next, nodes. Each leads to what it counts."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from everytick.domain.statuses import FAILURES, OccurrenceStatus
from everytick.domain.values import value
from everytick.web import words
from everytick.web.job_standing import late_by
from everytick.web.job_troubles import late_runs, unplanned
from everytick.web.known_jobs import COMING
from everytick.web.pictures.elements import NOTHING, element, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from markupsafe import Markup

    from everytick.web.now_board import FleetState
    from everytick.web.words import Viewer

_S = OccurrenceStatus
_HOUR = timedelta(hours=1)
_MOST_SQUARES = 8
_FAILED = [str(status) for status in OccurrenceStatus if status in FAILURES - {_S.COMPLETED_WITH_ERRORS}]
_LEAST_SHOWN = 3
"""A line through fewer steps says nothing."""


@value(frozen=True)
class Tile:
    """One number: its name and mark, what it is of, a line below, a small picture, and where it leads."""

    name: str
    mark: str
    value: str
    href: str
    unit: str = ""
    more: str = ""
    tone: str = ""
    spark: Markup = NOTHING


def tiles(fleet: FleetState, viewer: Viewer, link: Callable[..., str]) -> list[Tile]:
    """Return the five tiles."""
    return [
        _running(fleet, link),
        _late(fleet, link),
        _failed(fleet, link),
        _next(fleet, viewer, link),
        _nodes(fleet, link),
    ]


def _running(fleet: FleetState, link: Callable[..., str]) -> Tile:
    counts = {status: sum(run.status is status for run in fleet.active) for status in (_S.RUNNING, *_WAITING)}
    slots = sum(node.facts.slots for node in fleet.living if node.facts is not None)
    waiting = [f"{words.number(counts[status])} {status}" for status in _WAITING if counts[status]]
    more = ", ".join(waiting) or ("nothing waits" if fleet.living else "no node is live")
    return Tile(
        "Running",
        "running",
        words.short_number(counts[_S.RUNNING]),
        link("/history", status="running"),
        f"of {words.count(slots, 'slot')}" if slots else "",
        more,
        spark=spark_line(_starts_by_step(fleet)),
    )


_WAITING = (_S.PENDING, _S.QUEUED, _S.AWAITING_RETRY)


def _starts_by_step(fleet: FleetState) -> list[int]:
    """Return how many runs were due in each quarter of an hour of the last twelve hours."""
    counts = [0] * 48
    for step in fleet.steps:
        place = 48 - 1 - (fleet.now - step.at) // timedelta(minutes=15)
        if 0 <= place < 48:
            counts[place] += step.total
    return counts


def _late(fleet: FleetState, link: Callable[..., str]) -> Tile:
    href = link("/jobs", state="late")
    if not fleet.living:
        return Tile("Late", "late", "–", href, more="no node is live")
    late = [(late_by(run, fleet.now), run.job_id) for runs in late_runs(fleet).values() for run in runs]
    late += [(fleet.now - due, id_) for id_, due in unplanned(fleet).items()]
    if not late:
        return Tile("Late", "late", "0", href, more="nothing is overdue")
    by, id_ = max(late)
    said = f"{fleet.name_of(id_)}, by {words.length(by)}"
    more = said if len(late) == 1 else f"worst: {said}"
    return Tile("Late", "late", words.short_number(len(late)), href, "", more, "look")


def _failed(fleet: FleetState, link: Callable[..., str]) -> Tile:
    hours, failed, with_errors, total = [0] * 24, 0, 0, 0
    for step in fleet.steps:
        failed, with_errors, total = failed + step.failed, with_errors + step.with_errors, total + step.total
        place = 23 - (fleet.now - step.at) // _HOUR
        if 0 <= place < 24:
            hours[place] += step.failed
    unmended = len(fleet.bad)
    more = "all made good since" if failed else "nothing failed"
    parts = [f"{words.number(unmended)} not made good since" if unmended else more]
    parts += [f"{words.number(with_errors)} with errors"] if with_errors else []
    parts += [f"{words.count(len(fleet.missed), 'job')} missed instants"] if fleet.missed else []
    return Tile(
        "Failed, 24 h",
        "failed" if failed else "completed",
        words.short_number(failed),
        link("/history", status=_FAILED),
        f"of {words.short_number(total)}",
        ", ".join(parts),
        "wrong" if unmended else "look" if fleet.with_errors or fleet.missed else "",
        spark_bars(hours),
    )


def _next(fleet: FleetState, viewer: Viewer, link: Callable[..., str]) -> Tile:
    coming = fleet.coming
    if not coming:
        return Tile("Next in", "planned", "–", link("/agenda"), more="nothing is planned")
    first, name = coming[0]
    wait = first - fleet.now
    overdue = sum(at < fleet.now - _GRACE for at, _ in coming)
    if overdue > 1:
        more = "or more " if overdue == COMING else ""
        return Tile("Next in", "planned", "now", link("/agenda"), "", f"{overdue} {more}wait for a node")
    value = "now" if wait < timedelta(seconds=1) else words.length(timedelta(seconds=round(wait / _SECOND)))
    others = [at for at, _ in coming[1:]]
    soon = [at for at in others if at == others[0]] if others else []
    more = "or more " if len(soon) == COMING - 1 else ""
    then = f", then {len(soon)} {more}at {viewer.planned(soon[0])}" if soon else ""
    return Tile("Next in", "planned", value, link("/agenda"), "", f"{name}{then}")


_SECOND = timedelta(seconds=1)
_GRACE = timedelta(seconds=10)
"""How long a job may be due before the tile says that it waits: `next_run` is as of the last plan."""


def _nodes(fleet: FleetState, link: Callable[..., str]) -> Tile:
    living = fleet.living
    silent = [node for node in fleet.nodes if node.beats > 0 and node not in living]
    offsets = [abs(node.facts.clock_offset) for node in living if node.facts is not None]
    more = f"clocks within {words.length(max(offsets))}" if offsets else ""
    more = more if living else "start one with everytick run"
    if silent:
        more = f"{words.number(len(silent))} silent"
    return Tile(
        "Nodes",
        "completed" if living else "lost",
        words.number(len(living)),
        link("/nodes"),
        "live",
        more,
        "" if living else "wrong",
        spark_squares(len(living), len(silent)),
    )


# ---------------------------------------------------------------------------------------------------- small pictures


def _spark(width: int, *parts: Markup) -> Markup:
    box = f"0 0 {width} 40"
    return element("svg", *parts, class_="spark", viewBox=box, preserveAspectRatio="none", aria_hidden="true")


def spark_line(values: Sequence[int]) -> Markup:
    """Return a line over its pale ground; nothing where nearly all are nothing."""
    top = max(values, default=0)
    if sum(number > 0 for number in values) < _LEAST_SHOWN:
        return NOTHING
    points = " ".join(f"{place},{38 - number / top * 34:.1f}" for place, number in enumerate(values))
    last = len(values) - 1
    ground = element("polygon", class_="spark-soft", points=f"0,40 {points} {last},40")
    return _spark(last, ground, element("polyline", class_="spark-line", points=points))


def spark_bars(values: Sequence[int]) -> Markup:
    """Return a bar for each hour in which something failed, on a faint ground."""
    top = max(values, default=0)
    if not top:
        return NOTHING
    bars = []
    for place, number in enumerate(values):
        high = max(number / top * 34, 2)
        kind = "b-wrong" if number else "h1"
        bars.append(element("rect", class_=kind, x=place * 4, y=40 - high, width=3, height=high))
    return _spark(len(values) * 4, joined(bars))


def spark_squares(living: int, silent: int) -> Markup:
    """Return a square for each node: full ones live, hollow ones are silent."""
    total = min(living + silent, _MOST_SQUARES)
    if total < 2:
        return NOTHING
    full = round(living / (living + silent) * total)
    squares = [
        element(
            "rect", class_="b-done" if place < full else "o-wrong", x=place * 24 + 1, y=26, width=18, height=12, rx=2
        )
        for place in range(total)
    ]
    return element("svg", joined(squares), class_="spark nodes", width=total * 24, height=40, aria_hidden="true")
