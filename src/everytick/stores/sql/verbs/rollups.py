"""fold: adds ended occurrences to the rollups, behind their ends.

An end writes nothing into the rollups. `fold` walks through the occurrences in the order of their handles. It counts
those that have ended. The others it notes as passed, in `unfolded`, and looks at them again until they have ended. The
place that the walk has reached is written in one transaction with the counts, under one lock: so each end is counted
once, whichever node folds and wherever one dies. Occurrences are counted before they are deleted.
"""

import json
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from everytick.domain.durations import MICROSECOND
from everytick.domain.headlines import fingerprint
from everytick.domain.questions import CELLS_KEPT, DAY, LATEST, RUNS_MEASURED, lengths_of
from everytick.stores.sql.commands import Ask, Rows, Verb
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Row

MEASURED_AT_ONCE = 100
"""How many jobs get their lengths measured by one call."""

PASSED_AFTER = timedelta(seconds=10)
"""How long the walk waits for an occurrence to end before it passes it. Most end sooner, and are looked at once."""

CROWD_PASSED_AFTER = timedelta(minutes=2)
"""How long it waits if it would pass more than `FEW_SHARE`: to note them and look again costs more than to wait."""

FEW_SHARE = 0.05
"""A share of the occurrences that one call looks at."""

GAP_KEPT = timedelta(hours=1)
"""How long a handle without a row is looked at again. No transaction of ours is under way for longer."""


def lags(q: ColdQueries) -> Verb[tuple[bool, bool]]:
    """Return whether `fold` has anything to do, and whether `measure` has."""
    [found] = yield q.rollup_lags()
    return bool(found["is_behind"]), bool(found["is_stale"])


def fold(q: ColdQueries, limit: int) -> Verb[int]:
    """Walk on by up to `limit` occurrences, and look again at up to as many that were passed.

    Return the larger of how far it walked and how many of the passed it counted. As many as `limit` says that there may
    be more.
    """
    [state] = yield q.hold_rollup()
    now: datetime = yield Ask.NOW
    unseen = yield from _unseen(q, state["last_handle"], limit, now)
    swept = {"swept_key": state["swept_key"], "swept_handle": state["swept_handle"]}
    [passed] = yield q.sweep(**swept, limit=limit, given_up_at=now - GAP_KEPT)
    if unseen["count"]:
        yield from _walk_on(q, state["last_handle"], unseen, now)
    over, gone = numbers(passed["over"]), numbers(passed["gone"])
    yield from _count(q, over)
    if over or gone:
        last = {"last_key": passed["last_key"], "last_handle": passed["last_handle"]}
        yield q.forget_passed(**swept, **last, handles=[*over, *gone])
    yield from _note_place(q, state, unseen, passed, limit)
    if unseen["count"] < limit:
        yield q.forget_cells(is_day=False, forgotten_at=now - CELLS_KEPT - DAY)
    folded: int = max(unseen["count"], len(over))
    return folded


def _unseen(q: ColdQueries, last: int, limit: int, now: datetime) -> Verb[Row]:
    """Return how far the walk may go, and which occurrences up to there have not ended.

    If many have not, they stand in a line and end soon, in about this order: then it waits longer for them. If all have
    ended and no handle is without a row, the second question is spared.
    """
    unseen: Row
    [unseen] = yield q.next_ended(last_handle=last, limit=limit)
    handles = min(limit, unseen["newest"] - last)
    if handles <= 0 or (unseen["is_over"] and unseen["count"] == handles):
        return {**unseen, "top": last + unseen["count"], "waiting": (), "gaps": ()}
    [unseen] = yield q.unseen(last_handle=last, limit=limit, young_at=now - PASSED_AFTER)
    if len(numbers(unseen["waiting"])) > FEW_SHARE * limit:
        [unseen] = yield q.unseen(last_handle=last, limit=limit, young_at=now - CROWD_PASSED_AFTER)
    return unseen


def _walk_on(q: ColdQueries, last: int, unseen: Row, now: datetime) -> Verb[None]:
    """Count the occurrences up to there that have ended. Note the others, and the handles that no row has.

    An end is final: those that are neither waiting nor a gap had ended when `unseen` was read.
    """
    waiting, gaps = numbers(unseen["waiting"]), numbers(unseen["gaps"])
    if waiting:
        yield q.note_unfolded(handles=waiting)
    if gaps:
        yield q.note_gaps(handles=gaps, now=now)
    if len(waiting) == unseen["count"]:
        return
    between = {"first_handle": last, "last_handle": unseen["top"]}
    left_out = [*waiting, *gaps]
    these = {**between, "left_out": left_out, "is_whole": not left_out}
    yield q.fold_between(**these)
    yield from _fold_days(q, these)
    if unseen["has_others"]:
        yield from _keep_failures(q, (yield q.failed_between(**between, left_out=left_out)))


def _fold_days(q: ColdQueries, these: Row) -> Verb[None]:
    """Add the same to the days of their jobs, which then have to be measured again.

    PostgreSQL has done both by one statement for several tables. SQLite sums the days once, in a table in memory.
    """
    make, add, touch, forget = q.make_ended_day, q.add_ended_days, q.touch_lengths_of_days, q.forget_ended_days
    if q.sum_ended_days is None or make is None or add is None or touch is None or forget is None:
        return
    yield make()
    yield q.sum_ended_days(**these)
    yield add()
    yield touch()
    yield forget()


def numbers(found: str | Sequence[int]) -> Sequence[int]:
    """Return numbers that one store gives as a list and the other as its text."""
    read: Sequence[int] = json.loads(found) if isinstance(found, str) else found
    return read


def _keep_failures(q: ColdQueries, failed: Rows) -> Verb[None]:
    if failed:
        kinds = [{"handle": row["handle"], "fingerprint": fingerprint(row["error"] or "")} for row in failed]
        yield q.add_failures(kinds=kinds)


def _note_place(q: ColdQueries, state: Row, unseen: Row, passed: Row, limit: int) -> Verb[None]:
    last = unseen["top"] if unseen["count"] else state["last_handle"]
    key, handle = (0, 0) if passed["count"] < limit else (passed["last_key"], passed["last_handle"])
    if (last, key, handle) != (state["last_handle"], state["swept_key"], state["swept_handle"]):
        yield q.move_rollup(last_handle=last, swept_key=key, swept_handle=handle)


def _count(q: ColdQueries, handles: Sequence[int]) -> Verb[None]:
    """Add these occurrences, which have ended, to the rollups."""
    if not handles:
        return
    yield q.fold_these(handles=handles, added=1, left=1)
    yield q.fold_days_of_these(handles=handles, added=1, left=1)
    yield from _keep_failures(q, (yield q.failed_of(handles=handles)))
    yield q.touch_lengths(handles=handles)


def count_deleted(q: ColdQueries, handles: Collection[int]) -> Verb[None]:
    """Count occurrences that this transaction is about to delete: they have ended, and are no longer kept."""
    yield q.hold_rollup()
    found: Rows = yield q.counted_among(handles=handles)
    for is_counted, (added, left) in ((False, (1, 0)), (True, (0, -1))):
        own = [row["handle"] for row in found if bool(row["is_counted"]) is is_counted]
        if own:
            yield q.fold_these(handles=own, added=added, left=left)
            yield q.fold_days_of_these(handles=own, added=added, left=left)
    if found:
        yield q.touch_lengths(handles=[row["handle"] for row in found])
    yield q.forget_unfolded(handles=handles)
    yield q.forget_failures_of(handles=handles)


def measure(q: ColdQueries, limit: int = MEASURED_AT_ONCE) -> Verb[int]:
    """Measure the lengths of some jobs whose runs have ended since. Return how many jobs it looked at."""
    yield q.hold_rollup()
    stale: Rows = yield q.stale_lengths(limit=limit)
    if not stale:
        return 0
    keys = {row["job_id"]: row["job_key"] for row in stale}
    took: Rows = yield q.latest_lengths(job_ids=list(keys), most=RUNS_MEASURED, latest=LATEST)
    yield q.keep_lengths(lengths=[_length_row(keys[row["job_id"]], row["took"]) for row in took])
    return len(stale)


def _length_row(job_key: int, took: str | Sequence[int]) -> Row:
    lengths = lengths_of(microseconds * MICROSECOND for microseconds in numbers(took))
    columns = {"count": 0, "p5": 0, "p50": 0, "p95": 0}
    if lengths is not None:
        columns = {
            "count": lengths.count,
            "p5": lengths.p5 // MICROSECOND,
            "p50": lengths.p50 // MICROSECOND,
            "p95": lengths.p95 // MICROSECOND,
        }
    return {"job_key": job_key, **columns, "is_stale": False}
