"""Nodes: that they live, what they say of themselves, and who asks."""

import json
import sqlite3

from everytick.domain.nodes import NodeFacts, facts_from
from everytick.stores.base import NAME_SETS_KEPT, NODES_KEPT, ClaimKey, NodeRecord
from everytick.stores.sqlite import rows
from everytick.stores.sqlite.queries import Q
from everytick.stores.sqlite.writer import Transaction


def hear(transaction: Transaction, node: str, facts: NodeFacts | None) -> None:
    """Note that the node lives and what it says of itself; then nodes that are long gone are forgotten."""
    if facts is None:
        transaction.execute(Q.beat, (node, transaction.now))
        return
    transaction.execute(Q.register_node, (node, transaction.now, json.dumps(facts.as_data())))
    transaction.execute(Q.forget_nodes, (transaction.now - rows.length(NODES_KEPT),))
    transaction.execute(Q.forget_name_sets, (transaction.now - rows.length(NAME_SETS_KEPT),))


def leave(transaction: Transaction, node: str) -> None:
    """Note that the node beats no more."""
    transaction.execute(Q.leave, (transaction.now, node))


def nodes(connection: sqlite3.Connection, now: int) -> list[NodeRecord]:
    """Return the nodes that were heard of and every other owner of anything, by id."""
    overdue: dict[str, list[ClaimKey]] = {}
    for owner, *key in connection.execute(Q.overdue, (now,)):
        overdue.setdefault(owner, []).append(ClaimKey(*key))
    known = connection.execute(Q.nodes).fetchall()
    known += [(id_, since, holds, None, 0) for id_, since, holds in connection.execute(Q.strangers)]
    return [
        NodeRecord(
            id_,
            rows.moment(beat_at),
            holds,
            None if facts is None else facts_from(json.loads(facts)),
            beats,
            tuple(overdue.get(id_, ())),
        )
        for id_, beat_at, holds, facts, beats in sorted(known)
    ]
