"""Nodes: who runs the jobs, who differs from the others, and what waits in each queue."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from everytick.access.people import Role
from everytick.app.store_access import open_store
from everytick.domain.nodes import NodeFacts
from everytick.domain.questions import QueueLoad
from everytick.domain.values import value
from everytick.stores.base import NodeRecord, Nodes
from everytick.web import words
from everytick.web.asking import Tick, needs
from everytick.web.framing import viewer_of
from everytick.web.kept_pages import kept_for_a_moment
from everytick.web.pictures.slots import queue_meter, slot_squares
from everytick.web.rendering import page
from everytick.web.words import Viewer

router = APIRouter(include_in_schema=False)

LISTED_FOR = timedelta(hours=24)
"""A node that fell silent or stopped longer ago is not listed."""

MOST_OFFSET = timedelta(seconds=1)
_MOST_NODES = 200


@value(frozen=True)
class ShownNode:
    """A node as the page shows it. Words in `differs` are those in which it is unlike most living nodes."""

    id: str
    state: str
    mark: str
    facts: NodeFacts | None
    holds: int
    squares: Markup
    clock: str
    is_clock_off: bool
    differs: frozenset[str]
    heard_at: datetime


@router.get("/nodes", dependencies=[needs(Role.VIEWER)])
@kept_for_a_moment
async def nodes(request: Request, tick: Tick) -> HTMLResponse:
    """Show the nodes and the queues."""
    store = await open_store(tick)
    now, records = await store.now(), await store.ask(Nodes())
    viewer = viewer_of(request, now)
    silence = tick.settings.node_timeout
    kept = [node for node in records if node.is_alive(now, silence) or now - node.beat_at <= LISTED_FOR]
    kept.sort(key=lambda node: (not node.is_alive(now, silence), node.id))
    living = [node for node in kept if node.is_alive(now, silence)]
    usual = _usual([node.facts for node in living if node.facts is not None])
    rows = [_row(node, usual, viewer, silence) for node in kept[:_MOST_NODES]]
    return await page(
        request,
        "nodes.html",
        viewer=viewer,
        rows=rows,
        living=len(living),
        slots=sum(node.facts.slots for node in living if node.facts is not None),
        busy=sum(node.holds for node in living),
        silent=[row for row in rows if row.state.startswith("silent")],
        said=_said(len(living), rows),
        notes=_notes(rows, usual),
        more=len(kept) - len(rows),
        older=len(records) - len(kept),
        queues=[(queue, _meter(queue)) for queue in await tick.queues()],
        broken=_unknown(living),
    )


def _usual(told: Sequence[NodeFacts]) -> dict[str, str]:
    """Return the version, the Python and the zone data of most living nodes; of equally many, the newest."""
    return {
        name: max(Counter(read(facts) for facts in told).items(), key=lambda pair: (pair[1], pair[0]))[0]
        for name, read in _COMPARED.items()
        if told
    }


_COMPARED: dict[str, Callable[[NodeFacts], str]] = {
    "version": lambda facts: facts.version,
    "python": lambda facts: facts.python,
    "zone_data": lambda facts: facts.zone_data,
}


def _row(node: NodeRecord, usual: dict[str, str], viewer: Viewer, silence: timedelta) -> ShownNode:
    is_living = node.is_alive(viewer.now, silence)
    facts, since = node.facts, words.length(viewer.now - node.beat_at)
    state, mark = ("live", "completed") if is_living else ("stopped", "skipped") if not node.beats else ("", "lost")
    slots = 0 if facts is None else facts.slots
    offset = timedelta(0) if facts is None else facts.clock_offset
    differs = () if facts is None else [name for name, read in _COMPARED.items() if read(facts) != usual.get(name)]
    return ShownNode(
        id=node.id,
        state=state or f"silent {since}",
        mark=mark,
        facts=facts,
        holds=node.holds,
        squares=slot_squares(node.holds, slots, f"{node.holds} of {slots} slots are taken"),
        clock=_clock(offset) if is_living and facts is not None else "–",
        is_clock_off=is_living and abs(offset) > MOST_OFFSET,
        differs=frozenset(differs),
        heard_at=node.beat_at,
    )


def _clock(offset: timedelta) -> str:
    """Return how far a clock is off: `+3 ms`, `−1.2 s`."""
    sign = "−" if offset < timedelta(0) else "+"
    return f"{sign}{words.length(abs(offset))}" if offset else "0 ms"


def _said(living: int, rows: Sequence[ShownNode]) -> str:
    """Return the heading: how many nodes live, and the first thing that is not as it should be."""
    first = f"{words.spelled(living, 'node')} {'lives' if living == 1 else 'live'}" if living else "no node lives"
    live = [row for row in rows if row.state == "live"]
    found = [
        (sum(row.state.startswith("silent") for row in rows), "fell silent", "fell silent"),
        (sum(row.is_clock_off for row in live), "has a wrong clock", "have wrong clocks"),
        (sum("zone_data" in row.differs for row in live), "has other zone data", "have other zone data"),
        (sum("version" in row.differs for row in live), "runs another version", "run another version"),
    ]
    told = next((f"; {words.spelled_number(n)} {one if n == 1 else many}" for n, one, many in found if n), "")
    return words.sentence(first + told)


def _notes(rows: Sequence[ShownNode], usual: dict[str, str]) -> list[tuple[str, str]]:
    """Return what differs, one banner for each cause: what stands out, and what follows from it."""
    live = [row for row in rows if row.state == "live" and row.facts is not None]
    notes = []
    if others := [row for row in live if "zone_data" in row.differs]:
        names = words.listed([f"{row.id} has zone data {row.facts.zone_data}" for row in others if row.facts], 3)
        notes.append(
            (names, f", the others {usual['zone_data']}: they may name different instants in zones that differ.")
        )
    if others := [row for row in live if "version" in row.differs]:
        names = words.listed([f"{row.id} runs everytick {row.facts.version}" for row in others if row.facts], 3)
        notes.append((names, f", the others {usual['version']}: finish the rollout."))
    if others := [row for row in live if row.is_clock_off]:
        names = words.listed([f"The clock of {row.id} is off by {row.clock}" for row in others], 3)
        notes.append((names, ": nothing fires at a wrong time by that, but logs will; synchronise it."))
    return notes


def _meter(queue: QueueLoad) -> Markup:
    return queue_meter(
        queue.running,
        queue.waiting,
        queue.slots,
        f"{queue.running} run and {queue.waiting} wait on {queue.slots} slots",
    )


def _unknown(living: Sequence[NodeRecord]) -> list[dict[str, Any]]:
    """Return what living nodes have met and could not run, each reason once."""
    reasons = Counter(reason for node in living if node.facts for _, reason in node.facts.unknown_targets)
    return [{"reason": words.cut(reason, 300), "count": count} for reason, count in reasons.most_common(10)]
