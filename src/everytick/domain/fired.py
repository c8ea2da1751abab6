"""What a node fired while its store was away, as it is written down when the store is back."""

from datetime import datetime

from everytick.domain.decisions import Creation, Span
from everytick.domain.steps import Row
from everytick.domain.values import value


@value
class FiredRun:
    """One occurrence that was created and ended without the store.

    `creation` has its final status; `rows` are its attempts in order, each with where its run
    stood in the end.
    """

    creation: Creation
    started_at: datetime | None
    ended_at: datetime
    error: str | None
    rows: tuple[Row, ...]


@value
class Fired:
    """What was decided and run of one job: every instant in `(after, through]` is a run, a span, or not over yet."""

    after: datetime
    through: datetime
    runs: tuple[FiredRun, ...] = ()
    spans: tuple[Span, ...] = ()
