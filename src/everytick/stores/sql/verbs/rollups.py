"""fold: what ended occurrences add up to, written behind.

An end writes nothing for it. Occurrences are looked at in the order of their handles, each once: one that is over is
counted, and one that is not is noted as passed and looked at again until it is over. Where that has come to is written
in the same transaction as the counts, under one lock, so each end is counted once, whichever node does it and wherever
one dies. What is deleted is counted first.
"""

import json
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from everytick.domain.durations import MICROSECOND
from everytick.domain.headlines import fingerprint
from everytick.domain.questions import CELLS_KEPT, DAY, LATEST, LOOKED_AT, lengths_of
from everytick.stores.sql.commands import Ask, Rows, Verb
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Row

MEASURED_AT_ONCE = 100
"""So many jobs get their lengths measured by one call."""

PATIENCE = timedelta(seconds=10)
"""So long the next occurrence may take to end before it is passed: most do, and are then looked at once."""

LONG_PATIENCE = timedelta(minutes=2)
"""So long it may take where more than a few wait: to note one and look at it again costs more than to wait."""

FEW = 0.05
"""This part of those that one call looks at."""

GAP_KEPT = timedelta(hours=1)
"""So long a handle without a row is looked at again. No transaction of ours is under way for longer."""


def lags(q: ColdQueries) -> Verb[tuple[bool, bool]]:
    """Return whether `fold` has anything to do, and whether `measure` has."""
    [found] = yield q.rollup_lags()
    return bool(found["is_behind"]), bool(found["is_stale"])


def fold(q: ColdQueries, limit: int) -> Verb[int]:
    """Count up to `limit` occurrences that were not looked at before, and of those that were passed as many.

    Return how many were counted or passed, of the more numerous: as many as `limit` says that there may be more.
    """
    [state] = yield q.hold_rollup()
    now: datetime = yield Ask.NOW
    unseen = yield from _unseen(q, state["last_handle"], limit, now)
    swept = {"swept_key": state["swept_key"], "swept_handle": state["swept_handle"]}
    [passed] = yield q.sweep(**swept, limit=limit, given_up_at=now - GAP_KEPT)
    if unseen["count"]:
        yield from _pass(q, state["last_handle"], unseen, now)
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
    """Look at the next ones. Where most of them wait, they stand in a line and end soon, in about this order.

    Where all of them are over and no handle is without a row, there is nothing to look at closer.
    """
    unseen: Row
    [unseen] = yield q.next_ended(last_handle=last, limit=limit)
    if not unseen["count"] or (unseen["is_over"] and unseen["count"] == unseen["top"] - last):
        return {**unseen, "waiting": (), "gaps": ()}
    [unseen] = yield q.unseen(last_handle=last, limit=limit, young_at=now - PATIENCE)
    if len(numbers(unseen["waiting"])) > FEW * limit:
        [unseen] = yield q.unseen(last_handle=last, limit=limit, young_at=now - LONG_PATIENCE)
    return unseen


def _pass(q: ColdQueries, last: int, unseen: Row, now: datetime) -> Verb[None]:
    """Count the next ones that are over. Note those that are not, and the handles among them that no row has.

    An end is final: what was over when `unseen` was read is what is neither waiting nor a gap.
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
    # PostgreSQL writes several tables by one statement, which reads the occurrences fewer times.
    if q.fold_days_between is not None:
        yield q.fold_days_between(**these)
    if q.touch_lengths_between is not None:
        yield q.touch_lengths_between(**between)
    if unseen["has_others"]:
        yield from _keep_failures(q, (yield q.failed_between(**between, left_out=left_out)))


def numbers(found: str | Sequence[int]) -> Sequence[int]:
    """Return numbers that one store gives as a list and the other as its text."""
    known: Sequence[int] = json.loads(found) if isinstance(found, str) else found
    return known


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
    """Add these, which are over, to the rollups."""
    if not handles:
        return
    yield q.fold_these(handles=handles, added=1, left=1)
    yield q.fold_days_of_these(handles=handles, added=1, left=1)
    yield from _keep_failures(q, (yield q.failed_of(handles=handles)))
    yield q.touch_lengths(handles=handles)


def count_deleted(q: ColdQueries, handles: Collection[int]) -> Verb[None]:
    """Count these, which are about to be deleted in this transaction: each that is over has ended, and is not kept."""
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
    took: Rows = yield q.latest_lengths(job_ids=list(keys), most=LOOKED_AT, latest=LATEST)
    yield q.keep_lengths(lengths=[_length_row(keys[row["job_id"]], row["took"]) for row in took])
    return len(stale)


def _length_row(job_key: int, took: str | Sequence[int]) -> Row:
    found = lengths_of(each * MICROSECOND for each in numbers(took))
    known = (
        (0, 0, 0, 0)
        if found is None
        else (found.count, found.p5 // MICROSECOND, found.p50 // MICROSECOND, found.p95 // MICROSECOND)
    )
    return {"job_key": job_key, **dict(zip(("count", "p5", "p50", "p95"), known, strict=True)), "is_stale": False}
