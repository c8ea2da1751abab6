"""Limits and brakes: how people change those of a reach, and what a claim gives where one holds.

A claim reads how many run and have started under the lock of their reach, in a later statement than the one that took
the lock: so two claims never give the same place away. What people say stops all claims for a moment: a claim comes
wholly before it or sees it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from everytick.domain.durations import MICROSECOND
from everytick.domain.facts import Limiting
from everytick.domain.limit_changes import ENDED_BY_TIME, is_unsettled, settled, spent, wished
from everytick.domain.limits import (
    CHANGES_SHOWN,
    ROUNDS,
    SORTED_AT_ONCE,
    BrakeRecord,
    LimitChange,
    LimitRecord,
    Limits,
    Rate,
    RateWindow,
    Reach,
    ReachRecord,
    Releasing,
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
from everytick.domain.values import value
from everytick.schedules.codec import schedule
from everytick.stores.base import STEP, Claim, NodeScope, Receipt
from everytick.stores.sql.commands import Ask, Claims, Found, Rows, Verb, Versions
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Row

_TRIES = 5
"""How often a claim tries again after other claims took its choice. After the last try it rings the bell."""


class _Ready(NamedTuple):
    """One occurrence that is ready, as a claim chooses it."""

    handle: int
    needs: str
    place: tuple[int, datetime, str]


@value
class _Use:
    """How many of a reach run, how many have started in each of its windows, and when its next may start."""

    running: int
    started: Mapping[RateWindow, int]
    opens_at: datetime | None


# --------------------------------------------------------------------------------------------------------- what is said


def say(q: ColdQueries, subject: str, fact: Limiting) -> Verb[Receipt]:
    """Write what people say of a reach. Running occurrences count against the new limit."""
    name = reach_name(subject)
    yield q.stop_limited_claims()
    yield q.stop_claims()
    now: datetime = yield Ask.NOW
    known: dict[str, Reach] = yield from _reaches(q)
    after, what = wished(known.get(name, Reach(name)), fact, now)
    if not what:
        return Receipt(name, False)
    if name not in known:
        yield from _count_running(q, name, now)
    yield from _keep_reach(q, after)
    yield q.add_limit_change(changed_at=now, reach=name, what=what, reason=fact.reason, changed_by=fact.by)
    yield Ask.RING
    return Receipt(name, True)


def _count_running(q: ColdQueries, name: str, now: datetime) -> Verb[None]:
    """Let every occurrence of the reach that a node owns hold a place."""
    owned: Rows = yield q.owned()
    found: Found = yield Versions(tuple({(row["job_key"], row["version"]) for row in owned}))
    running = []
    for row in owned:
        compiled = found.read.get((row["job_key"], row["version"]))
        tags, job = ((), "") if compiled is None else (compiled.job.settings.tags, compiled.job.name)
        if name in reaches_of(in_lane(row["needs"], tags, job, (name,))):
            running.append(row)
    starts = [
        {"reach": name, "handle": row["handle"], "fence": row["fence"], "started_at": row["claimed_at"] or now}
        for row in running
    ]
    yield q.add_starts(starts=starts)
    yield q.hold_places(handles=[row["handle"] for row in running])


def limits(q: ColdQueries, _: LimitsAndBrakes) -> Verb[Limits]:
    """Return every reach that has a limit or brake, and the newest changes."""
    now: datetime = yield Ask.NOW
    known: dict[str, Reach] = yield from _reaches(q)
    waiting: Counter[str] = yield from _waiting(q, now)
    uses: dict[str, _Use] = yield from _uses(q, known.values(), now)
    changes: Rows = yield q.limit_changes(limit=CHANGES_SHOWN)
    return Limits(
        now,
        tuple(
            ReachRecord(
                reach,
                uses[name].running,
                waiting[name],
                closed_because(reach, now, uses[name].running, uses[name].started),
                uses[name].opens_at,
            )
            for name, reach in sorted(known.items())
        ),
        tuple(
            LimitChange(
                row["changed_at"], row["reach"], row["what"], row["reason"], row["changed_by"], row["change_key"]
            )
            for row in changes
        ),
    )


def opens_at(q: ColdQueries) -> Verb[datetime | None]:
    """Return when the next full or braked reach opens, if time alone opens it."""
    now: datetime = yield Ask.NOW
    known: dict[str, Reach] = yield from _reaches(q)
    uses: dict[str, _Use] = yield from _uses(q, known.values(), now)
    return min((use.opens_at for use in uses.values() if use.opens_at is not None), default=None)


# ------------------------------------------------------------------------------------------------------------ the claim


def claim(q: ColdQueries, scope: NodeScope, limit: int, token: int) -> Verb[list[Claim] | None]:
    """Give the node up to `limit` ready occurrences of its scope, by priority, then age, as far as there is room.

    None: no limit or brake holds.
    """
    # Before any occurrence is locked: the verb that stops claims locks in this order too.
    yield q.begin_limited_claim()
    known: dict[str, Reach] = yield from _reaches(q)
    if not known:
        return None
    handles: list[int] = []
    for _ in range(_TRIES):
        now: datetime = yield Ask.NOW
        ready: list[_Ready] = yield from _sort_into_lanes(q, scope, limit, known, now)
        taken, lost = yield from _take(q, scope, limit - len(handles), known, ready, token, now)
        handles += taken
        if not lost:
            break
    else:
        yield Ask.RING
    claims: list[Claim] = yield Claims(tuple(handles))
    return claims


def _sort_into_lanes(
    q: ColdQueries, scope: NodeScope, limit: int, known: Mapping[str, Reach], now: datetime
) -> Verb[list[_Ready]]:
    """Move the first ready occurrences into the lanes that they belong to. Return the first of each lane, in order.

    Occurrences that this process cannot read take no place of others.
    """
    lanes: Rows = yield q.known_lanes()
    texts = {row["needs"] for row in lanes}
    unsorted = met_lanes(scope.met, texts)
    yield q.release_early_in_lanes(needs=unsorted, now=now)
    seen: dict[str, tuple[list[Row], Found]] = yield from _first_of_all(q, scope, unsorted, limit, now)
    first: dict[str, list[_Ready]] = {}
    while unsorted:
        needs = unsorted.pop(0)
        for round_ in range(ROUNDS):
            if needs in seen:
                rows, found = seen.pop(needs)
            else:
                rows, found = yield from _first(q, scope, needs, limit if round_ == 0 else SORTED_AT_ONCE, now)
            strays = _strays(rows, found, needs, known)
            if not strays:
                first[needs] = [_ready(row, needs) for row in rows[:limit]]
                break
            new = sorted({stray["needs"] for stray in strays} - texts - set(scope.met))
            yield q.know_needs(texts=new)
            texts.update(new)
            unsorted += new
            yield q.move_lanes(moves=strays)
            for lane in sorted({stray["needs"] for stray in strays}):
                # It was read before these came to it.
                seen.pop(lane, None)
                if first.pop(lane, None) is not None:
                    unsorted.append(lane)
        else:
            yield Ask.RING
    return sorted((ready for some in first.values() for ready in some), key=lambda ready: ready.place)


def _strays(rows: Rows, found: Found, needs: str, known: Mapping[str, Reach]) -> list[dict[str, Any]]:
    """Return the occurrences of this lane that belong into another one, each with the needs of that lane."""
    strays = []
    for row in rows:
        job = found.read[row["job_key"], row["version"]].job
        lane = in_lane(needs, job.settings.tags, job.name, known)
        if lane != needs:
            strays.append({"handle": row["handle"], "needs": lane})
    return strays


def _first_of_all(
    q: ColdQueries, scope: NodeScope, lanes: Sequence[str], limit: int, now: datetime
) -> Verb[dict[str, tuple[list[Row], Found]]]:
    """Return the first ready occurrences of each of these needs, if this process can read all of them."""
    asked = [{"needs": needs} for needs in lanes]
    rows: Rows = yield q.ready_in_lanes(lanes=asked, job_ids=scope.unknown, now=now, limit=max(limit, 0))
    found: Found = yield Versions(tuple({(row["job_key"], row["version"]) for row in rows}))
    unreadable = {row["needs"] for row in rows if (row["job_key"], row["version"]) not in found.read}
    seen: dict[str, tuple[list[Row], Found]] = {needs: ([], found) for needs in lanes if needs not in unreadable}
    for row in sorted(rows, key=lambda row: _ready(row, row["needs"]).place):
        if row["needs"] in seen:
            seen[row["needs"]][0].append(row)
    return seen


def _first(q: ColdQueries, scope: NodeScope, needs: str, limit: int, now: datetime) -> Verb[tuple[list[Row], Found]]:
    """Return the first ready occurrences of these needs that this process can read, and their definitions."""
    unreadable: list[int] = []
    while True:
        rows: Rows = yield q.ready_in_lane(
            needs=needs, job_ids=scope.unknown, handles=unreadable, now=now, limit=max(limit, 0)
        )
        found: Found = yield Versions(tuple({(row["job_key"], row["version"]) for row in rows}))
        more = [row["handle"] for row in rows if (row["job_key"], row["version"]) not in found.read]
        if not more:
            return list(rows), found
        unreadable += more


def _ready(row: Row, needs: str) -> _Ready:
    return _Ready(row["handle"], needs, (-row["priority"], row["line_at"], row["occurrence_id"]))


def _take(
    q: ColdQueries,
    scope: NodeScope,
    limit: int,
    known: Mapping[str, Reach],
    ready: Sequence[_Ready],
    token: int,
    now: datetime,
) -> Verb[tuple[list[int], int]]:
    """Take the first of these for which there is room. Return their handles, and how many another claim has taken."""
    names = cached_names(known)
    wanted = {name for occurrence in ready for name in names(occurrence.needs)}
    # A reach that was full a moment ago is not waited for: the end that makes room rings.
    rooms: dict[str, int] = yield from _rooms(q, [known[name] for name in wanted], now)
    held_names = {name for name, left in rooms.items() if left}
    held_names |= {name for name, reach in known.items() if is_unsettled(reach, now)}
    reaches: dict[str, Reach] = {}
    if held_names:
        held_rows: Rows = yield q.hold_reaches(reaches=sorted(held_names))
        now = yield Ask.NOW
        reaches = yield from _read_reaches(q, held_rows)
        reaches = yield from _settled(q, reaches, now)
        rooms |= yield from _rooms(q, reaches.values(), now)
    picks = chosen(ready, rooms, limit)
    if not picks:
        return [], 0
    held: Rows = yield q.pick_ready(handles=[pick.handle for pick in picks])
    still = {row["handle"]: row["fence"] for row in held}
    lost, picks = len(picks), [pick for pick in picks if pick.handle in still]
    handles = [pick.handle for pick in picks]
    yield q.unlist_claimed(handles=handles)
    counted = cached_names(reaches)
    places = [pick.handle for pick in picks if counted(pick.needs)]
    yield q.own_in_lanes(handles=handles, node=scope.node, token=token, now=now, places=places)
    yield q.hear(node_id=scope.node, now=now, facts=None)
    yield from _note_starts(q, picks, still, reaches, now)
    return handles, lost - len(picks)


def _note_starts(
    q: ColdQueries, picks: Sequence[_Ready], fences: Mapping[int, int], reaches: Mapping[str, Reach], now: datetime
) -> Verb[None]:
    """Write the starts that limits count, and forget those that no limit counts any more."""
    names = cached_names(reaches)
    starts = [
        {"reach": name, "handle": pick.handle, "fence": fences[pick.handle] + 1, "started_at": now}
        for pick in picks
        for name in names(pick.needs)
    ]
    if not starts:
        return
    yield q.add_starts(starts=starts)
    overs = []
    for name, count in sorted(Counter(str(start["reach"]) for start in starts).items()):
        after = spent(reaches[name], count)
        if after != reaches[name]:
            yield from _keep_reach(q, after)
        if not after.is_empty:
            overs.append({"reach": name, "over_at": forgotten_at(after, now)})
    if overs:
        yield q.forget_starts(overs=overs)


# -------------------------------------------------------------------------------------------------------- what there is


def _settled(q: ColdQueries, reaches: Mapping[str, Reach], now: datetime) -> Verb[dict[str, Reach]]:
    """Return these reaches, whose rows are locked, as time has left them."""
    waiting: Counter[str] = Counter()
    if any(is_unsettled(reach, now) for reach in reaches.values()):
        waiting = yield from _waiting(q, now)
    found = {}
    for name in sorted(reaches):
        after = settled(reaches[name], now, partial(waiting.__getitem__, name))
        if any(brake.is_over(now) for brake in reaches[name].brakes):
            yield q.add_limit_change(changed_at=now, reach=name, what=ENDED_BY_TIME, reason="", changed_by="")
        if after != reaches[name]:
            yield from _keep_reach(q, after)
        if not after.is_empty:
            found[name] = after
    return found


def _waiting(q: ColdQueries, now: datetime) -> Verb["Counter[str]"]:
    """Return how many occurrences of each reach are ready and wait in its lanes."""
    found: Rows = yield q.waiting_in_lanes(now=now)
    count: Counter[str] = Counter()
    for row in found:
        for name in reaches_of(row["needs"]):
            count[name] += row["count"]
    return count


def _rooms(q: ColdQueries, reaches: Iterable[Reach], now: datetime) -> Verb[dict[str, int]]:
    asked = list(reaches)
    uses: dict[str, _Use] = yield from _uses(q, asked, now)
    return {reach.name: room(reach, now, uses[reach.name].running, uses[reach.name].started) for reach in asked}


def _uses(q: ColdQueries, reaches: Iterable[Reach], now: datetime) -> Verb[dict[str, _Use]]:
    """Return how far each of these reaches is used."""
    asked = list(reaches)
    if not asked:
        return {}
    running: Rows = yield q.running_in(reaches=[reach.name for reach in asked])
    counts = {row["reach"]: row["running"] for row in running}
    placed = [(reach, window) for reach in asked for window in windows(reach)]
    asks = [
        {"place": place, "reach": reach.name, "nth": window.most, "since_at": window.begins(now)}
        for place, (reach, window) in enumerate(placed)
    ]
    found: Rows = (yield q.started_in(spans=asks, ahead_at=now + STEP)) if asks else ()
    by_place = {row["place"]: row for row in found}
    uses = {}
    for reach in asked:
        own = [
            (window, by_place[place]) for place, (placed_reach, window) in enumerate(placed) if placed_reach is reach
        ]
        last = {window: row["nth_started_at"] for window, row in own}
        uses[reach.name] = _Use(
            counts.get(reach.name, 0),
            {window: row["count"] for window, row in own},
            opening(reach, now, last),
        )
    return uses


def _reaches(q: ColdQueries) -> Verb[dict[str, Reach]]:
    """Return every reach that has a limit, a brake or a release, by name."""
    rows: Rows = yield q.reaches()
    return (yield from _read_reaches(q, rows))


def _read_reaches(q: ColdQueries, rows: Rows) -> Verb[dict[str, Reach]]:
    """Return the reaches of these rows, each with its brakes."""
    if not rows:
        return {}
    braked: Rows = (yield q.brakes()) if rows[0]["has_brakes"] else ()
    brakes: dict[str, list[BrakeRecord]] = {}
    for row in braked:
        brakes.setdefault(row["reach"], []).append(
            BrakeRecord(
                row["since_at"],
                row["until_at"],
                row["reason"],
                row["braked_by"],
                *(None if row[column] is None else schedule(row[column]) for column in ("begins", "ends")),
            )
        )
    return {row["reach"]: _reach(row, tuple(brakes.get(row["reach"], ()))) for row in rows}


def _reach(row: Row, brakes: tuple[BrakeRecord, ...]) -> Reach:
    limit = release = None
    if row["set_at"] is not None:
        rate = _rate(row["rate_count"], row["rate_per"], row["is_burst"])
        limit = LimitRecord(row["most"], rate, row["reason"], row["set_by"], row["set_at"])
    if row["released_at"] is not None:
        rate = _rate(row["release_count"], row["release_per"], row["is_release_burst"])
        release = Releasing(row["released_at"], rate, row["release_left"], row["released_by"])
    return Reach(row["reach"], limit, brakes, release)


def _rate(count: int | None, per: int | None, burst: bool | None) -> Rate | None:
    return None if count is None or per is None else Rate(count, timedelta(microseconds=per), bool(burst))


def _keep_reach(q: ColdQueries, reach: Reach) -> Verb[None]:
    """Write the reach as it is now. Delete it if it has no limit, brake or release any more."""
    yield q.forget_brakes(reach=reach.name)
    if reach.is_empty:
        yield q.forget_starts_of(reach=reach.name)
        yield q.forget_reach(reach=reach.name)
        return
    limit, release = reach.limit, reach.release
    rate, soft = None if limit is None else limit.rate, None if release is None else release.rate
    yield q.keep_reach(
        reach=reach.name,
        most=None if limit is None else limit.most,
        rate_count=None if rate is None else rate.count,
        rate_per=None if rate is None else rate.per // MICROSECOND,
        is_burst=None if rate is None else rate.burst,
        reason="" if limit is None else limit.reason,
        set_by="" if limit is None else limit.by,
        set_at=None if limit is None else limit.at,
        release_count=None if soft is None else soft.count,
        release_per=None if soft is None else soft.per // MICROSECOND,
        is_release_burst=None if soft is None else soft.burst,
        release_left=None if release is None else release.left,
        released_at=None if release is None else release.since,
        released_by="" if release is None else release.by,
    )
    for brake in reach.brakes:
        yield q.add_brake(
            reach=reach.name,
            since_at=brake.since,
            until_at=brake.until,
            reason=brake.reason,
            braked_by=brake.by,
            begins=None if brake.begins is None else str(brake.begins),
            ends=None if brake.ends is None else str(brake.ends),
        )
