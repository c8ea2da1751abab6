"""NodeVerbs: their beats, what the store tells them, and what becomes of the claims of silent ones."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from everytick.domain.nodes import NodeFacts
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.base import NAME_SETS_KEPT, NODES_KEPT, Claim, ClaimKey, NodeRecord, Nodes, NodeScope, Orders
from everytick.stores.memory.base import Shared
from everytick.stores.memory.claims import claim_of, is_handed, key_of, with_handed
from everytick.stores.memory.rows import NodeRow, OccurrenceRow

_S = OccurrenceStatus


class NodeVerbs:
    """Beats and orphans."""

    def __init__(self, shared: Shared) -> None:
        self._shared, self._tables = shared, shared.tables

    def beat(self, node: str, keys: Collection[ClaimKey], facts: NodeFacts | None) -> Orders:
        """Record that the node lives and which claims it holds. Return the claims about which the store differs."""
        now = self._shared.now()
        row = self._shared.record_beat(node, now)
        if facts is not None:
            row.facts = facts
            self._forget_nodes(now)
        return self.orders(node, keys)

    def orders(self, node: str, keys: Collection[ClaimKey]) -> Orders:
        """Return the claims about which the store differs from the node."""
        now = self._shared.now()
        named, own = set(keys), {key_of(row): row for row in self._tables.owned[node].values()}
        return Orders(
            cancel=tuple((key, row.cancel) for key, row in own.items() if row.cancel is not None and key in named),
            gone=tuple(sorted(named - own.keys())),
            adopt=tuple(with_handed(row, claim_of(row)) for key, row in own.items() if key not in named),
            parks=tuple(key for key, row in own.items() if key in named and row.job.is_out_of_service(now)),
        )

    def _forget_nodes(self, now: datetime) -> None:
        """Delete nodes that have been silent for NODES_KEPT, and the sets of names that only they refer to."""
        nodes, name_sets = self._tables.nodes, self._tables.name_sets
        for silent in [node for node, known in nodes.items() if now - known.beat_at > NODES_KEPT]:
            if not self._tables.owned.get(silent):
                del nodes[silent]
        named = {hash_ for known in nodes.values() if known.facts is not None for hash_ in known.facts.defines}
        for name_set in list(name_sets.values()):
            if name_set.hash not in named and now - name_set.stored_at > NAME_SETS_KEPT:
                del name_sets[name_set.hash]

    def leave(self, node: str) -> None:
        """Record that the node has stopped: its `beats` become 0, and its claims are orphans at once."""
        nodes = self._tables.nodes
        if node in nodes:
            nodes[node].beats, nodes[node].beat_at = 0, self._shared.now()

    def orphans(self, reaper: str, limit: int, silent: Mapping[str, int], keys: Collection[ClaimKey]) -> list[Claim]:
        """Take over the claims in `keys`, and those of each silent node whose `beats` still has the value named."""
        orphans = {row.handle: row for row in self._held_by(silent) if not is_handed(row)}
        for key in keys:
            row = self._tables.handles.get(key.handle)
            if row is not None and key_of(row) == key and row.owner is not None:
                orphans[key.handle] = row
        return [claim_of(row) for row in self._taken_over(orphans.values(), reaper, limit)]

    def reattach(self, scope: NodeScope, limit: int, silent: Mapping[str, int]) -> list[Claim]:
        """Give the node of the scope what these silent nodes have handed over to engines."""
        wanted = [row for row in self._held_by(silent) if is_handed(row) and row.needs in scope.met]
        known = [row for row in wanted if row.job.id not in scope.unknown]
        taken = self._taken_over(known, scope.node, limit)
        for row in taken:
            row.node = scope.node
        return [with_handed(row, claim_of(row)) for row in taken]

    def _held_by(self, silent: Mapping[str, int]) -> list[OccurrenceRow]:
        """Return the occurrences of those of these nodes whose `beats` still has the value named."""
        nodes = self._tables.nodes
        still_silent = [node for node, beats in silent.items() if (nodes[node].beats if node in nodes else 0) == beats]
        return [row for node in still_silent for row in self._tables.owned.get(node, {}).values()]

    def _taken_over(self, rows: Iterable[OccurrenceRow], node: str, limit: int) -> list[OccurrenceRow]:
        """Fence out the owners of these, oldest first. A wait for a retry lost no attempt: it only gets no owner."""
        now = self._shared.now()
        orphans, token = sorted(rows, key=lambda row: row.handle), self._shared.tokens()
        for row in [row for row in orphans if row.status is _S.AWAITING_RETRY]:
            self._tables.change(row, owner=None, fence=row.fence + 1, token=token, updated_at=now)
            self._shared.bell.ring()
        taken = [row for row in orphans if row.status is not _S.AWAITING_RETRY][: max(limit, 0)]
        for row in taken:
            self._tables.change(row, owner=node, fence=row.fence + 1, token=token, updated_at=now)
        return taken

    def records(self, _: Nodes) -> Sequence[NodeRecord]:
        """Return every node that has beaten and every other owner of an occurrence, by id."""
        now, held = self._shared.now(), {node: rows.values() for node, rows in self._tables.owned.items() if rows}
        records = []
        for node in sorted({*self._tables.nodes, *held}):
            own = held.get(node, ())
            known = self._tables.nodes.get(node) or NodeRow(max(row.updated_at for row in own))
            overdue = [row for row in own if row.deadline_at is not None and row.deadline_at <= now]
            keys = tuple(key_of(row) for row in sorted(overdue, key=lambda row: row.handle))
            records.append(NodeRecord(node, known.beat_at, len(own), known.facts, known.beats, keys))
        return records
