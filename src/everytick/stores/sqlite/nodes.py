"""register and nodes: what nodes say of themselves, and who asks."""

import json
import sqlite3

from everytick.domain.nodes import NodeFacts, facts_from
from everytick.stores.base import NODES_KEPT, NodeRecord
from everytick.stores.sqlite import rows
from everytick.stores.sqlite.queries import Q
from everytick.stores.sqlite.writer import Transaction


def register(transaction: Transaction, node: str, facts: NodeFacts) -> None:
    """Keep what the node says of itself, which is a sign of life; nodes that are long gone are forgotten."""
    transaction.execute(Q.register_node, (node, transaction.now, json.dumps(facts.as_data())))
    transaction.execute(Q.forget_nodes, (transaction.now - rows.length(NODES_KEPT),))


def nodes(connection: sqlite3.Connection) -> list[NodeRecord]:
    """Return the nodes that were heard of."""
    return [
        NodeRecord(id_, rows.moment(beat_at), holds, None if facts is None else facts_from(json.loads(facts)))
        for id_, beat_at, holds, facts in connection.execute(Q.nodes)
    ]
