"""beat, leave, nodes and orphans: which nodes live, their claims, and the claims of silent ones."""

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from everytick.domain.nodes import NodeFacts, facts_from
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.base import NAME_SETS_KEPT, NODES_KEPT, Claim, ClaimKey, NodeRecord, Orders
from everytick.stores.sql.commands import Ask, Claims, Found, Rows, Verb, Versions
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Row

if TYPE_CHECKING:
    from datetime import datetime


def beat(q: ColdQueries, node: str, keys: Collection[ClaimKey], facts: NodeFacts | None) -> Verb[Orders]:
    """Record the beat and the node's facts. Return the claims about which the store differs.

    With facts, nodes that are long gone are forgotten, and so are the sets of names that none of them defines.
    """
    now: datetime = yield Ask.NOW
    yield q.hear(node_id=node, now=now, facts=None if facts is None else json.dumps(facts.as_data()))
    if facts is not None:
        yield q.forget_nodes(silent_at=now - NODES_KEPT)
        yield q.forget_name_sets(told_at=now - NAME_SETS_KEPT)
    held = {_key(row): row for row in (yield q.held_by(node_id=node, now=now))}
    named = set(keys)
    adopted: list[Claim] = []
    if unnamed := tuple(key.handle for key in held if key not in named):
        adopted = yield Claims(unnamed)
    return Orders(
        cancel=tuple(
            (key, row["cancel_reason"])
            for key, row in held.items()
            if row["cancel_reason"] is not None and key in named
        ),
        gone=tuple(sorted(named - held.keys())),
        # A reaper may have taken one over between the two questions.
        adopt=tuple(claim for claim in adopted if claim.key in held),
        parks=tuple(key for key, row in held.items() if row["parks"] and key in named),
    )


def _key(row: Row) -> ClaimKey:
    return ClaimKey(row["handle"], row["fence"], row["claim_token"])


def orphans(
    q: ColdQueries, reaper: str, limit: int, silent: Mapping[str, int], keys: Collection[ClaimKey], token: int
) -> Verb[list[Claim]]:
    """Take over the claims in `keys`, and those of each silent node whose `beats` still has the value named.

    What cannot be read here is left to a reaper that can decide about it. A wait for a retry lost nothing, since no
    attempt of it was running: it is only freed.
    """
    nodes = [{"node": node, "beats": beats} for node, beats in silent.items()]
    named = [{"handle": key.handle, "fence": key.fence, "claim_token": key.token} for key in keys]
    held: Rows = yield q.orphaned(silent=nodes, keys=named)
    found: Found = yield Versions(tuple({(row["job_key"], row["version"]) for row in held}))
    readable = [row for row in held if (row["job_key"], row["version"]) in found.read]
    waits = [row for row in readable if row["status"] is OccurrenceStatus.AWAITING_RETRY]
    ran = [row for row in readable if row["status"] is not OccurrenceStatus.AWAITING_RETRY]
    wanted = waits + ran[: max(limit, 0)]
    if not wanted:
        return []
    now: datetime = yield Ask.NOW
    chosen = [
        {"handle": key.handle, "fence": key.fence, "claim_token": key.token, "is_named": key in keys}
        for key in map(_key, wanted)
    ]
    taken: Rows = yield q.take_orphans(reaper=reaper, token=token, now=now, silent=nodes, chosen=chosen)
    if any(row["owner"] is None for row in taken):
        yield Ask.RING
    claims: list[Claim] = yield Claims(tuple(sorted(row["handle"] for row in taken if row["owner"] is not None)))
    return claims


def leave(q: ColdQueries, node: str) -> Verb[None]:
    """Note that the node beats no more: its beats are 0."""
    yield q.leave(node_id=node, now=(yield Ask.NOW))


def nodes(q: ColdQueries) -> Verb[list[NodeRecord]]:
    """Return every node that has beaten and every other owner of an occurrence, by id."""
    overdue: dict[str, list[ClaimKey]] = {}
    for row in (yield q.overdue(now=(yield Ask.NOW))):
        overdue.setdefault(row["owner"], []).append(_key(row))
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
