"""Claims within limits: what people say of a reach, and what a claim gives where one is limited or braked."""

from collections import Counter
from dataclasses import replace
from datetime import datetime
from heapq import merge
from itertools import islice

from everytick.domain.facts import Limiting
from everytick.domain.limit_changes import ENDED_BY_TIME, is_unsettled, settled, spent, wished
from everytick.domain.limits import (
    CHANGES_SHOWN,
    ROUNDS,
    SORTED_AT_ONCE,
    LimitChange,
    Limits,
    RateWindow,
    Reach,
    ReachRecord,
    cached_names,
    chosen,
    closed_because,
    forgotten_at,
    in_lane,
    met_lanes,
    opening,
    reach_name,
    reaches_of,
    room,
    windows,
)
from everytick.domain.lookups import LimitsAndBrakes
from everytick.stores.base import STEP, Claim, NodeScope, Receipt
from everytick.stores.memory.base import Shared
from everytick.stores.memory.claims import claim_of, claim_order, waits_for_a_plan
from everytick.stores.memory.rows import CountedStart, OccurrenceRow


class LimitVerbs:
    """The limits and brakes of the store, and claims that obey them."""

    def __init__(self, shared: Shared) -> None:
        self._shared, self._tables = shared, shared.tables

    def say(self, subject: str, fact: Limiting, now: datetime) -> Receipt:
        """Write what people say of a reach. Running occurrences count against the new limit."""
        name = reach_name(subject)
        before = self._tables.reaches.get(name, Reach(name))
        after, what = wished(before, fact, now)
        if not what:
            return Receipt(name, False)
        if name not in self._tables.reaches:
            running = [row for rows in self._tables.owned.values() for row in rows.values()]
            for row in sorted(running, key=lambda row: row.handle):
                if name in self._reaches_of(row):
                    row.holds_place = True
                    self._tables.touch(row)
                    self._tables.starts[name].append(CountedStart(row.handle, row.fence, row.claimed_at or now))
        self._keep_reach(after)
        self._note_limit_change(LimitChange(now, name, what, fact.reason, fact.by))
        self._shared.bell.ring()
        return Receipt(name, True)

    def records(self, _: LimitsAndBrakes) -> Limits:
        """Return every limit and brake with what it counts now, and the last changes."""
        now = self._shared.now()
        records = []
        for name in sorted(self._tables.reaches):
            reach, running = self._tables.reaches[name], self._running(name)
            started = self._started(reach, now)
            records.append(
                ReachRecord(
                    reach,
                    running,
                    self._waiting(name, now),
                    closed_because(reach, now, running, started),
                    self._opening(reach, now),
                )
            )
        return Limits(now, tuple(records), tuple(self._tables.limit_changes[: -CHANGES_SHOWN - 1 : -1]))

    def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        """Give the node ready occurrences of its scope, as many of each reach as may start now."""
        now = self._shared.now()
        lanes = self._sorted_lanes(scope, limit, now)
        for name in sorted(name for name, reach in self._tables.reaches.items() if is_unsettled(reach, now)):
            self._settle(self._tables.reaches[name], now)
        rooms = {name: self._room(reach, now) for name, reach in self._tables.reaches.items()}
        names, started = cached_names(rooms), Counter[str]()
        lines = [islice(self._ready(scope, needs, now), limit) for needs in lanes]
        taken = chosen(merge(*lines, key=claim_order), rooms, limit)
        if taken:
            self._shared.record_beat(scope.node, now)
        token, claims = self._shared.tokens(), []
        for row in taken:
            row.holds_place = bool(names(row.needs))
            self._tables.own(row, scope.node, token, now)
            claims.append(claim_of(row))
            for name in names(row.needs):
                self._tables.starts[name].append(CountedStart(row.handle, row.fence, now))
                started[name] += 1
        for name, count in started.items():
            self._keep_reach(spent(self._tables.reaches[name], count))
        self._forget_starts(now)
        return claims

    def _sorted_lanes(self, scope: NodeScope, limit: int, now: datetime) -> list[str]:
        """Let the first occurrences of each line that the scope meets wait in the lanes that they belong to.

        Returns the lines whose first occurrences do so. If there are too many others before them, the bell rings.
        """
        unsorted, done = met_lanes(scope.met, self._tables.needs), list[str]()
        self._tables.release_early(unsorted)
        while unsorted:
            needs, size = unsorted.pop(0), limit
            for _ in range(ROUNDS):
                first = list(islice(self._ready(scope, needs, now), size))
                strays = [(row, lane) for row in first if (lane := self._lane(row)) != needs]
                for row, lane in strays:
                    unsorted += [lane] if lane not in self._tables.needs and lane not in unsorted else []
                    self._tables.change(row, needs=lane)
                if not strays:
                    done.append(needs)
                    break
                size = SORTED_AT_ONCE
            else:
                self._shared.bell.ring()
        return done

    def _ready(self, scope: NodeScope, needs: str, now: datetime) -> "filter[OccurrenceRow]":
        rows = self._tables.ready.get(needs, ())
        return filter(lambda row: row.job.id not in scope.unknown and not waits_for_a_plan(row, now), rows)

    def _lane(self, row: OccurrenceRow) -> str:
        job = row.job.versions[row.version][0]
        return in_lane(row.needs, job.settings.tags, job.name, self._tables.reaches)

    def _reaches_of(self, row: OccurrenceRow) -> list[str]:
        """Return every reach that the occurrence belongs to, limited or not."""
        job = row.job.versions[row.version][0]
        tags = {f"tag:{tag}" for tag in job.settings.tags}
        return reaches_of(in_lane(row.needs, job.settings.tags, job.name, {f"job:{job.name}", *tags}))

    # ------------------------------------------------------------------------------------------------ what there is

    def _keep_reach(self, reach: Reach) -> None:
        if not reach.is_empty:
            self._tables.reaches[reach.name] = reach
        elif self._tables.reaches.pop(reach.name, None) is not None:
            self._tables.starts.pop(reach.name, None)

    def _settle(self, reach: Reach, now: datetime) -> None:
        if any(brake.is_over(now) for brake in reach.brakes):
            self._note_limit_change(LimitChange(now, reach.name, ENDED_BY_TIME, "", ""))
        self._keep_reach(settled(reach, now, lambda: self._waiting(reach.name, now)))

    def _note_limit_change(self, change: LimitChange) -> None:
        self._tables.limit_changes.append(replace(change, number=len(self._tables.limit_changes) + 1))

    def _running(self, name: str) -> int:
        return len({start.handle for start in self._tables.starts.get(name, ()) if self._is_owned(start)})

    def _is_owned(self, start: CountedStart) -> bool:
        row = self._tables.handles.get(start.handle)
        return row is not None and row.owner is not None

    def _waiting(self, name: str, now: datetime) -> int:
        known = (*self._tables.ready.items(), *self._tables.early.items())
        lanes = [rows for needs, rows in known if name in reaches_of(needs)]
        return sum(1 for rows in lanes for row in rows if row.ready_at <= now)

    def _started(self, reach: Reach, now: datetime) -> dict[RateWindow, int]:
        moments = self._moments(reach.name, now)
        return {window: sum(1 for at in moments if at > window.begins(now)) for window in windows(reach)}

    def _moments(self, name: str, now: datetime) -> list[datetime]:
        """Return when the reach has had starts, newest first. One far ahead was written before a clock was set back."""
        return sorted((start.at for start in self._tables.starts.get(name, ()) if start.at <= now + STEP), reverse=True)

    def _opening(self, reach: Reach, now: datetime) -> datetime | None:
        moments = self._moments(reach.name, now)
        last = {window: moments[window.most - 1] if len(moments) >= window.most else None for window in windows(reach)}
        return opening(reach, now, last)

    def _room(self, reach: Reach, now: datetime) -> int:
        return room(reach, now, self._running(reach.name), self._started(reach, now))

    def _forget_starts(self, now: datetime) -> None:
        for name, reach in self._tables.reaches.items():
            over = forgotten_at(reach, now)
            kept = [start for start in self._tables.starts[name] if start.at > over or self._is_owned(start)]
            self._tables.starts[name] = kept

    def opens_at(self, now: datetime) -> datetime | None:
        """Return when a reach opens of which nothing may start now, if time alone decides that."""
        openings = [self._opening(reach, now) for reach in self._tables.reaches.values()]
        return min((at for at in openings if at is not None), default=None)
