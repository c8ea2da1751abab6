"""Facts: what people and programs ask of a job or an occurrence. A store writes one, a plan obeys it.

`request` of a store takes one fact and its subject: an occurrence for `Cancel`, a reach for limits and brakes, a job
for every other one. `by` says who asks and `reason` why, where the fact keeps them.
"""

from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

from everytick.domain.backfills import BackfillOrder, BackfillStatus
from everytick.domain.config import Overrides
from everytick.domain.limits import Rate
from everytick.domain.occurrence import Cause
from everytick.domain.payload import Payload
from everytick.domain.policies import Overlap
from everytick.domain.schedule import Schedule
from everytick.domain.snapshots import Adjustment, AdjustmentKind, Missed, Request
from everytick.domain.values import value


@value
class Trigger:
    """Run the job once. The same key again means the same run, until that one has failed or was canceled.

    `scheduled_for` is the instant it runs for; without it, the moment of the request. `call` is drawn at
    random by each call that names a key, so that a repeat of the call finds what the call made. `at` is
    when it runs; without it, or in the past, it runs at once.
    """

    key: str
    payload: Payload | None = None
    overlap: Overlap | None = None
    reason: str = ""
    by: str = ""
    scheduled_for: datetime | None = None
    call: int | None = None
    at: datetime | None = None


@value
class Replay:
    """Do again what the ended occurrence `of` did, for its instant; the tasks in `keeps` keep their results."""

    key: str
    of: str
    scheduled_for: datetime
    covers_after: datetime | None = None
    covers_through: datetime | None = None
    payload: Payload | None = None
    keeps: tuple[str, ...] = ()
    overlap: Overlap | None = None
    reason: str = ""
    by: str = ""
    call: int | None = None


@value
class Fill:
    """Run the one past instant `at`, which has no occurrence. The definition of its time names it."""

    key: str
    at: datetime
    overlap: Overlap | None = None
    reason: str = ""
    by: str = ""


@value
class PlanBackfill:
    """Keep a backfill, with `approved` as one that runs. The same key again means the same backfill."""

    order: BackfillOrder
    approved: bool = False


@value
class SteerBackfill:
    """Let a backfill of the job run, pause or end: `to` is RUNNING, PAUSED or CANCELED.

    What it has made and no node has claimed ends with a cancel. What runs is left to end.
    """

    id: str
    to: BackfillStatus
    by: str = ""


@value
class Pause:
    """Hold the schedule from now on; what was not claimed waits. A pause that holds already is replaced."""

    until: datetime | None = None
    missed: Missed = Missed.SKIP
    reason: str = ""
    by: str = ""


@value
class Resume:
    """End a pause now. It changes nothing where the job is not paused.

    `missed` says what becomes of the instants that were held; without it, what the pause itself says.
    """

    by: str = ""
    missed: Missed | None = None


@value
class Skip:
    """Skip one single future instant."""

    at: datetime
    reason: str = ""
    by: str = ""


@value
class Move:
    """Let one single future instant run at another time, under its own id."""

    at: datetime
    to: datetime
    reason: str = ""
    by: str = ""


@value
class Amend:
    """Run one single future instant with overrides of its own, where it stands or is moved to."""

    at: datetime
    overrides: Overrides
    reason: str = ""
    by: str = ""


@value
class Undo:
    """Let one single future instant run as the schedule and the definition say, whatever was said of it before."""

    at: datetime
    reason: str = ""
    by: str = ""


@value
class Reschedule:
    """Set the next run; the instants before it give way."""

    to: datetime
    by: str = ""


@value
class UndoReschedule:
    """Let the instants before `to` run again, and none at `to` that the schedule does not name.

    It changes nothing unless the next run is set to this time.
    """

    to: datetime
    by: str = ""


@value
class LookAgain:
    """Plan the job now: what names its instants has changed outside of its definition, as zone tables do."""


@value
class Rewind:
    """Set a watermark that lies ahead back to now, the one exception to Monotony. Else it changes nothing.

    An instant that has an occurrence keeps it. What was recorded as not run is decided anew,
    by the newest definition; a pause of the time ahead holds from now on.
    """


@value
class Cancel:
    """End an occurrence that no node has claimed, or ask its owner to stop. It changes nothing once that has ended."""

    reason: str = "canceled"


@value
class SetLimit:
    """Let at most `most` occurrences of the reach run at once, and start at this rate. It replaces an earlier limit."""

    most: int | None = None
    rate: Rate | None = None
    reason: str = ""
    by: str = ""


@value
class DropLimit:
    """Take the limit of the reach away. It changes nothing where there is none."""

    reason: str = ""
    by: str = ""


@value
class PutBrake:
    """Let nothing of the reach start from `since` on, or from now on, until `until` or until people release it.

    One that holds from now on replaces those that hold. What runs goes on. With `begins` and `ends` it comes again:
    from each instant of the one to the first of the other after it.
    """

    since: datetime | None = None
    until: datetime | None = None
    reason: str = ""
    by: str = ""
    begins: Schedule | None = None
    ends: Schedule | None = None


@value
class ReleaseBrake:
    """End the brakes of the reach that hold now; where none holds, take those away that are still to come.

    What has waited starts in order at this rate, or at one that suits its number; with `at_once`, at no rate.
    """

    rate: Rate | None = None
    at_once: bool = False
    reason: str = ""
    by: str = ""


Asks: TypeAlias = Trigger | Replay | Fill
Adjusts: TypeAlias = Skip | Move | Amend | Undo
BackfillFact: TypeAlias = PlanBackfill | SteerBackfill
Limiting: TypeAlias = SetLimit | DropLimit | PutBrake | ReleaseBrake
Tells: TypeAlias = Pause | Resume | Reschedule | UndoReschedule | LookAgain | Rewind
Fact: TypeAlias = Asks | Adjusts | BackfillFact | Tells | Cancel | Limiting

LIMITING: tuple[type[Limiting], ...] = (SetLimit, DropLimit, PutBrake, ReleaseBrake)
"""What is said of a reach and not of a job or an occurrence."""

ASKS: tuple[type[Asks], ...] = (Trigger, Replay, Fill)
"""What asks for occurrences. Only these take a transaction of the caller's own."""

REVISES: frozenset[type[Fact]] = frozenset(
    {
        Pause,
        Resume,
        Skip,
        Move,
        Amend,
        Undo,
        Reschedule,
        UndoReschedule,
        LookAgain,
        Rewind,
        PlanBackfill,
        SteerBackfill,
    }
)
"""What makes older snapshots of the job stale. A plan that did not see one of the others is only late."""


def request_of(fact: Asks, at: datetime) -> Request:
    """Return the request that a plan sees of a fact which was asked for at this time."""
    match fact:
        case Trigger():
            return Request(
                fact.key,
                Cause.TRIGGER,
                at,
                payload=fact.payload,
                overlap=fact.overlap,
                reason=fact.reason,
                by=fact.by,
                scheduled_for=fact.scheduled_for,
                call=fact.call,
                due_at=fact.at,
            )
        case Replay():
            return Request(
                fact.key,
                Cause.REPLAY,
                at,
                payload=fact.payload,
                overlap=fact.overlap,
                reason=fact.reason,
                by=fact.by,
                replay_of=fact.of,
                scheduled_for=fact.scheduled_for,
                covers_after=fact.covers_after,
                covers_through=fact.covers_through,
                keeps=fact.keeps,
                call=fact.call,
            )
        case Fill():
            return Request(
                fact.key,
                Cause.BACKFILL,
                at,
                overlap=fact.overlap,
                reason=fact.reason,
                by=fact.by,
                scheduled_for=fact.at,
            )


def adjusted(before: Adjustment | None, fact: Adjusts, now: datetime, decided_through: datetime) -> Adjustment | None:
    """Return the adjustment that a plan sees, or None where the fact changes nothing of what was said `before`.

    A skip and a move say where it runs, an amendment what it runs with: neither forgets the other. An undo forgets
    both. What is decided stays as it is; a move to a time that is still to come may be changed also after the old
    place is decided, but not undone.
    """
    is_undo, is_decided = isinstance(fact, Undo), fact.at <= decided_through
    if before is None and (is_undo or is_decided):
        return None
    if before is not None and (before.done or (is_undo and (before.is_undone or is_decided))):
        return None
    known = before or Adjustment(fact.at, AdjustmentKind.AMEND)
    told = replace(known, reason=fact.reason, by=fact.by, told_at=now)
    match fact:
        case Skip():
            return replace(told, kind=AdjustmentKind.SKIP, to=None)
        case Move():
            return replace(told, kind=AdjustmentKind.MOVE, to=fact.to)
        case Undo():
            return replace(told, kind=AdjustmentKind.MOVE, to=fact.at, overrides=None)
        case Amend():
            own = known.overrides
            merged = fact.overrides if own is None else own.with_all(fact.overrides)
            if known.is_undone:
                told = replace(told, kind=AdjustmentKind.AMEND, to=None)
            return replace(told, overrides=merged)
