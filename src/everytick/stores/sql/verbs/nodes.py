"""leave and nodes: which nodes there are, and what they said of themselves."""

import json

from everytick.domain.nodes import facts_from
from everytick.stores.base import ClaimKey, NodeRecord
from everytick.stores.sql.commands import Ask, Rows, Verb
from everytick.stores.sql.queries import ColdQueries


def leave(q: ColdQueries, node: str) -> Verb[None]:
    """Note that the node beats no more: its beats are 0."""
    yield q.leave(node_id=node, now=(yield Ask.NOW))


def nodes(q: ColdQueries) -> Verb[list[NodeRecord]]:
    """Return the nodes that were heard of and every other owner of an occurrence, by id."""
    overdue: dict[str, list[ClaimKey]] = {}
    for row in (yield q.overdue(now=(yield Ask.NOW))):
        overdue.setdefault(row["owner"], []).append(ClaimKey(row["handle"], row["fence"], row["claim_token"]))
    known: Rows = yield q.nodes()
    return [
        NodeRecord(
            row["node_id"],
            row["beat_at"],
            row["holds"],
            None if row["facts"] is None else facts_from(json.loads(row["facts"])),
            row["beats"],
            tuple(overdue.get(row["node_id"], ())),
        )
        for row in known
    ]
