"""The beat of a node, and what it says of itself."""

import json

from everytick.domain.nodes import NodeFacts
from everytick.stores.base import NAME_SETS_KEPT, NODES_KEPT
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
