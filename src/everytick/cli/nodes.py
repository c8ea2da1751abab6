"""`nodes`: who runs the jobs, and whether they are alive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from everytick.answers.fleet import node_data, node_state
from everytick.cli.applications import how_to_run
from everytick.cli.asking import look
from everytick.cli.common_options import VerbCommand
from everytick.cli.output import columns, is_terminal, say, show_json, show_table
from everytick.cli.times import Times
from everytick.cli.verb_options import reading, watchable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from everytick.app import Everytick
    from everytick.stores.base import NodeRecord


@click.command("nodes", cls=VerbCommand, help="Show known nodes and whether they are alive.")
@reading
@watchable
def nodes_verb(as_json: bool, utc: bool) -> None:
    """Show the nodes that were heard of."""

    async def asked(app: Everytick) -> tuple[Sequence[NodeRecord], datetime, Everytick]:
        return await app.nodes(), await app.now(), app

    nodes, now, app = look(asked)
    limit = app.settings.node_timeout
    rows = [(node.id, node_state(node, now, limit), node.beat_at, node.holds) for node in nodes]
    if as_json:
        show_json([node_data(node, node_state(node, now, limit)) for node in nodes])
        return
    times = Times(utc)
    is_narrow = is_terminal() and columns() < _WIDE
    heading = ["node", "status", times.heading("last heard"), "holds", *(["facts"] if is_narrow else _FACTS)]
    facts = [(_facts_text(node),) if is_narrow else _facts_cells(node) for node in nodes]
    show_table(heading, [(*row, *more) for row, more in zip(rows, facts, strict=True)], times)
    if not rows:
        say(f"no node has ever run on this store: {how_to_run()} starts one")


_FACTS = ("slots", "queues", "everytick", "python", "zone data", "clock")
_WIDE = 140
"""A narrower terminal has no room for a column for each fact: they share the last one."""


def _facts_cells(node: NodeRecord) -> tuple[object, ...]:
    """Return the facts of the node, in the order of the headings; empty cells if it has told none."""
    facts = node.facts
    if facts is None:
        return (None,) * len(_FACTS)
    seconds = facts.clock_offset.total_seconds()
    return facts.slots, ", ".join(facts.queues), facts.version, facts.python, facts.zone_data, f"{seconds:+.1f} s"


def _facts_text(node: NodeRecord) -> str | None:
    """Return the facts of the node in one text."""
    cells = _facts_cells(node)
    return ", ".join(f"{name} {value}" for name, value in zip(_FACTS, cells, strict=True) if value is not None) or None
