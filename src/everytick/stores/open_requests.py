"""Requests that are not planned yet: their keys, how people see them, and what a cancel leaves of them.

The same rules for every store. A store reads the uses of a key under the key's lock, calls `under_key`, and writes
the result.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from everytick.domain.backfills import OpenBackfill
from everytick.domain.config import Level, Overrides
from everytick.domain.decisions import Creation, Why
from everytick.domain.durations import MICROSECOND
from everytick.domain.facts import ASKS, Fact
from everytick.domain.ids import EPOCH
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause, Occurrence
from everytick.domain.payload import Payload
from everytick.domain.snapshots import Edition, Past, Request
from everytick.domain.statuses import ACTIVE, OccurrenceStatus
from everytick.domain.values import value
from everytick.errors import OccurrenceExists
from everytick.stores.base import Whole

KEEPS_ITS_KEY = ACTIVE | {OccurrenceStatus.COMPLETED, OccurrenceStatus.COMPLETED_WITH_ERRORS}
"""While an occurrence has one of these statuses, the key of its request is taken."""

NOT_PLANNED = "asked for, not planned yet"
"""How the reason of an occurrence begins that is requested and not planned."""

LATER = "asked for later"
"""The same for one that was requested at a time."""

DUE_AT_ONCE = EPOCH
"""The `due_at` of a stored request without one: the earliest, so that SQL compares and sorts without a null."""

PAST_LIMIT = 16
"""How many old definitions a plan reads for one backfill. A plan fills 100 instants, and 16 mostly cover them."""


@value
class KeyUse:
    """The newest use of a key: how many uses came before it, the call that made it, and whether the key is taken."""

    nth: int
    call: int | None
    is_taken: bool
    payload: Payload | None


def refuse_within(fact: Fact) -> None:
    """Raise TypeError unless the fact may be written in a transaction of the caller's own."""
    if not isinstance(fact, ASKS):
        raise TypeError(f"within is for a trigger, a replay or a backfill, not for a {type(fact).__name__}")


def under_key(job_id: str, asked: Request, use: KeyUse | None) -> tuple[Request, bool]:
    """Return the request with its number among the uses of its key, and whether it exists already.

    A repeat of one call gets the request which that call made. Another call gets the request that took the key, and
    is refused if its payload differs. After a failure the key is free again, and the request is its next use.
    """
    if use is None:
        return asked, False
    same = replace(asked, nth=use.nth)
    if not use.is_taken and asked.call is not None:
        return (same, True) if asked.call == use.call else (replace(asked, nth=use.nth + 1), False)
    if use.payload != asked.payload:
        raise OccurrenceExists(same.occurrence_id(job_id))
    return same, True


def has_key_of_its_own(asked: Request) -> bool:
    """Tell whether uses of its key are counted: the caller named the key, for one single occurrence."""
    return asked.call is not None and asked.cause is not Cause.BACKFILL


def as_asked(job: Job, request: Request) -> Whole:
    """Return the pending occurrence that people see before a plan has answered the request."""
    creation = as_waiting(job, request)
    own = () if request.payload is None else (("payload", request.payload),)
    shown = Occurrence(
        creation.id,
        job.id,
        job.version,
        creation.scheduled_for,
        OccurrenceStatus.PENDING,
        request.cause,
        covers_after=creation.covers_after,
        covers_through=creation.covers_through,
        line_at=creation.line_at,
        overrides=Overrides(Level.OCCURRENCE, own),
        replay_of=request.replay_of,
        reason=", ".join(filter(None, (NOT_PLANNED if request.due_at is None else LATER, creation.detail))),
    )
    return Whole(shown, (), ())


def as_waiting(job: Job, request: Request) -> Creation:
    """Return the occurrence of a request that is canceled before a plan: queued, so that the cancel can end it."""
    asked = request.line_at
    scheduled_for = request.scheduled_for or asked
    return Creation(
        id=request.occurrence_id(job.id),
        scheduled_for=scheduled_for,
        status=OccurrenceStatus.QUEUED,
        version=job.version,
        cause=request.cause,
        line_at=asked,
        ready_at=asked,
        covers_after=request.covers_after,
        covers_through=request.covers_through or scheduled_for,
        late=False,
        why=Why.ASKED,
        detail=request.detail,
        payload=request.payload or job.settings.payload,
        replay_of=request.replay_of,
    )


def stored_due_at(request: Request) -> datetime:
    """Return the time from which a plan may see the request, as SQL keeps it."""
    return DUE_AT_ONCE if request.due_at is None else max(request.due_at, DUE_AT_ONCE)


def read_due_at(stored: datetime) -> datetime | None:
    """Return the time a run was asked for, None for at once."""
    return None if stored == DUE_AT_ONCE else stored


def shows_backfill(asked: tuple[Request, bool]) -> bool:
    """Tell whether a stored request, which may be still to come, is that of a backfill, without an instant."""
    return asked[0].cause is Cause.BACKFILL and asked[0].scheduled_for is None


def without_backfills(requests: Sequence[Request]) -> list[Request]:
    """Return the requests that ask for one occurrence each."""
    return [request for request in requests if request.cause is not Cause.BACKFILL or request.scheduled_for is not None]


@value
class PastAsked:
    """The past that a backfill or request of this key asks for: what was in force after `after` and through `through`.

    With `newest_first` the newest definitions come first, if there are more than a plan reads.
    """

    key: str
    after: datetime
    through: datetime
    newest_first: bool = False


def pasts_asked(
    requests: Sequence[Request], backfill: OpenBackfill | None, editions: Sequence[Edition]
) -> list[PastAsked]:
    """Return the pasts that need definitions which were in force before these editions."""
    since = editions[0].in_force_after
    if since is None:
        return []
    wanted = [
        PastAsked(request.key, request.scheduled_for - MICROSECOND, request.scheduled_for)
        for request in requests
        if request.cause is Cause.BACKFILL and request.scheduled_for is not None
    ]
    if backfill is not None and not backfill.order.as_of_now:
        order = backfill.order
        wanted.append(PastAsked(order.key, backfill.after, backfill.through, order.newest_first))
    return [past for past in wanted if past.after < since]


def past_of(asked: PastAsked, versions: Sequence[tuple[datetime | None, Edition | None]]) -> Past:
    """Return the past from its versions, the first asked for first, with one more than PAST_LIMIT if there are more.

    Each version comes with the moment after which it was in force. If this node cannot read a version, it is None,
    and the version before it takes its place.
    """
    shown = [edition for _, edition in versions[:PAST_LIMIT] if edition is not None]
    if asked.newest_first:
        since = versions[PAST_LIMIT - 1][0] if len(versions) > PAST_LIMIT else None
        return Past(asked.key, tuple(reversed(shown)), since=since)
    through = versions[PAST_LIMIT][0] if len(versions) > PAST_LIMIT else None
    return Past(asked.key, tuple(shown), through)
