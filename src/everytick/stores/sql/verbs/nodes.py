"""beat, leave, nodes and orphans: which nodes live, their claims, and the claims of silent ones."""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from everytick.domain.nodes import NodeFacts, facts_from
from everytick.domain.notes import HandedAttempt
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.base import NAME_SETS_KEPT, NODES_KEPT, Claim, ClaimKey, NodeRecord, Nodes, NodeScope, Orders
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
        adopted = yield from _with_handed(q, unnamed)
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

    A claim that this process cannot read is left to another reaper. A wait for a retry is only freed: no attempt was
    running.
    """
    named = [{"handle": key.handle, "fence": key.fence, "claim_token": key.token} for key in keys]
    held: Rows = yield q.orphaned(silent=_silent(silent), keys=named)
    found: Found = yield Versions(tuple({(row["job_key"], row["version"]) for row in held}))
    is_named = set(keys)
    readable = [
        row
        # A claim that is named and held by a silent node is found twice.
        for row in {row["handle"]: row for row in held}.values()
        if (row["job_key"], row["version"]) in found.read and (not row["is_handed"] or _key(row) in is_named)
    ]
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
    taken: Rows = yield q.take_orphans(
        reaper=reaper, node=None, token=token, now=now, silent=_silent(silent), chosen=chosen
    )
    if any(row["owner"] is None for row in taken):
        yield Ask.RING
    claims: list[Claim] = yield Claims(tuple(sorted(row["handle"] for row in taken if row["owner"] is not None)))
    return claims


def reattach(q: ColdQueries, scope: NodeScope, limit: int, silent: Mapping[str, int], token: int) -> Verb[list[Claim]]:
    """Give the node of the scope what these silent nodes have handed over to engines."""
    held: Rows = [row for row in (yield q.orphaned(silent=_silent(silent), keys=[])) if row["is_handed"]]
    found: Found = yield Versions(tuple({(row["job_key"], row["version"]) for row in held}))
    wanted = []
    for row in held:
        version = found.read.get((row["job_key"], row["version"]))
        if version is not None and row["needs"] in scope.met and version.job.id not in scope.unknown:
            wanted.append(row)
    if not wanted[: max(limit, 0)]:
        return []
    now: datetime = yield Ask.NOW
    chosen = [
        {"handle": key.handle, "fence": key.fence, "claim_token": key.token, "is_named": False}
        for key in map(_key, wanted[:limit])
    ]
    taken: Rows = yield q.take_orphans(
        reaper=scope.node, node=scope.node, token=token, now=now, silent=_silent(silent), chosen=chosen
    )
    return (yield from _with_handed(q, tuple(sorted(row["handle"] for row in taken))))


def _with_handed(q: ColdQueries, handles: tuple[int, ...]) -> Verb[list[Claim]]:
    """Return these occurrences as claims, with the open attempts that engines carry out."""
    claims: list[Claim] = yield Claims(handles)
    handed: dict[int, list[HandedAttempt]] = {}
    for row in (yield q.handed_of(handles=handles)):
        handed.setdefault(row["handle"], []).append(HandedAttempt(row["task"], row["number"], row["handed_to"]))
    return [replace(claim, handed=tuple(sorted(handed.get(claim.handle, ())))) for claim in claims]


def _silent(silent: Mapping[str, int]) -> list[dict[str, object]]:
    return [{"node": node, "beats": beats} for node, beats in silent.items()]


def leave(q: ColdQueries, node: str) -> Verb[None]:
    """Note that the node beats no more: its beats are 0."""
    yield q.leave(node_id=node, now=(yield Ask.NOW))


def nodes(q: ColdQueries, _: Nodes) -> Verb[list[NodeRecord]]:
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
