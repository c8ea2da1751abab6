"""Coverage: which of a job's instants are done, missing or done twice, as a ledger of spans."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Generic, TypeVar

from everytick.domain.decisions import Span
from everytick.domain.durations import MICROSECOND
from everytick.domain.questions import Covered
from everytick.domain.snapshots import Edition
from everytick.domain.statuses import ACTIVE, WELL
from everytick.domain.values import value

IDS_TOLD = 10

T = TypeVar("T")


class CoverageState(StrEnum):
    """What is known of the data for which an instant stands.

    UNKNOWN are instants that history does not tell of: from before the job was stored, or no longer kept.
    """

    DONE = "done"
    TWICE = "twice"
    UNDER_WAY = "under_way"
    MISSING = "missing"
    UNKNOWN = "unknown"


@value(frozen=True)
class CoverageSpan:
    """Instants in a row that stand alike: those in `(after, through]`, `count` of them.

    `after` is the instant before the first, from which its data begin. `why` says what became of those that are
    missing, or why nothing is known of them; `ids` are up to ten occurrences that stand for them.
    """

    after: datetime
    through: datetime
    state: CoverageState
    count: int
    why: str = ""
    ids: tuple[str, ...] = ()


@value(frozen=True)
class CoverageLedger:
    """Every instant of a job in `(after, through]`, once. `through` is earlier than asked for if there are too many."""

    job: str
    after: datetime
    through: datetime
    spans: tuple[CoverageSpan, ...]
    is_cut: bool = False

    def count(self, state: CoverageState) -> int:
        """Return how many instants have this state."""
        return sum(span.count for span in self.spans if span.state is state)

    @property
    def missing(self) -> tuple[CoverageSpan, ...]:
        """The gaps: what a repair would fill."""
        return tuple(span for span in self.spans if span.state is CoverageState.MISSING)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing


@value
class _Judged:
    instant: datetime
    before: datetime
    state: CoverageState
    why: str
    ids: tuple[str, ...]


class _Sweep(Generic[T]):
    """Values that stand for instants in `(after, through]`, asked for one instant after the other, oldest first."""

    def __init__(self, values: Iterable[T], begin: Callable[[T], datetime], end: Callable[[T], datetime]) -> None:
        self._left, self._begin, self._end = sorted(values, key=begin)[::-1], begin, end
        self._open: list[T] = []

    def at(self, instant: datetime) -> list[T]:
        """Return those that stand for the instant. It is not earlier than the last one that was asked for."""
        while self._left and self._begin(self._left[-1]) < instant:
            self._open.append(self._left.pop())
        self._open = [item for item in self._open if self._end(item) >= instant]
        return self._open


def coverage_spans(
    named: Iterable[tuple[datetime, datetime | None]],
    runs: Iterable[Covered],
    *,
    spans: Iterable[Span] = (),
    first: datetime | None = None,
    floor: datetime | None = None,
) -> tuple[CoverageSpan, ...]:
    """Return the ledger of these instants, each given with the one before it, by the runs that stand for them.

    A run that completed makes each instant in its `(after, through]` done. One that failed or did not run makes none
    done. Instants of one state in a row are one span. `spans` say why others did not run. The job was stored at
    `first`, and retention may have deleted runs of instants up to `floor`: without a run and a span, an instant up to
    the later of the two is unknown.
    """
    standing = _Sweep(runs, _begin, lambda run: run.through)
    held = _Sweep(spans, lambda span: span.after, lambda span: span.through)
    judged: list[_Judged] = []
    for instant, before in named:
        own, refused = standing.at(instant), held.at(instant)
        state, why = _state(own) if own else _without_run(instant, refused, first, floor)
        ids = [run.id for run in own if run.status in WELL] or [run.id for run in own]
        judged.append(_Judged(instant, before or instant - MICROSECOND, state, why, tuple(ids)))
    return tuple(_span(list(some)) for _, some in groupby(judged, key=lambda item: (item.state, item.why)))


def retention_floor(editions: Sequence[Edition], now: datetime) -> datetime | None:
    """Return the moment up to which occurrences may be deleted, by the retention of each definition in its time."""
    ends = [edition.in_force_after for edition in editions[1:]]
    floors = [
        min(end or now, now) - age
        for edition, end in zip(editions, [*ends, now], strict=True)
        for age in (edition.job.settings.retention.success, edition.job.settings.retention.failure)
        if age is not None
    ]
    return max(floors, default=None)


def _begin(run: Covered) -> datetime:
    """Return the start of a run's interval. A run by request covers its own moment only."""
    return run.through - MICROSECOND if run.after is None else run.after


def _state(own: Sequence[Covered]) -> tuple[CoverageState, str]:
    done = sum(run.status in WELL for run in own)
    if done:
        return (CoverageState.TWICE if done > 1 else CoverageState.DONE), ""
    if any(run.status in ACTIVE for run in own):
        return CoverageState.UNDER_WAY, ""
    return CoverageState.MISSING, str(own[-1].status)


def _without_run(
    instant: datetime, refused: Sequence[Span], first: datetime | None, floor: datetime | None
) -> tuple[CoverageState, str]:
    """Return the state of an instant for which no run stands, and the reason."""
    if refused:
        return CoverageState.MISSING, _why(refused[-1])
    if first is not None and instant <= first:
        return CoverageState.UNKNOWN, "before the job was stored"
    if floor is not None and instant <= floor:
        return CoverageState.UNKNOWN, "no longer kept"
    return CoverageState.MISSING, "no occurrence"


def _why(span: Span) -> str:
    """Return why a span did not run: `missed`, or `skipped: overlap`."""
    return str(span.status) if str(span.why) == str(span.status) else f"{span.status}: {span.why}"


def _span(some: Sequence[_Judged]) -> CoverageSpan:
    ids = tuple(dict.fromkeys(id_ for instant in some for id_ in instant.ids))[:IDS_TOLD]
    return CoverageSpan(some[0].before, some[-1].instant, some[0].state, len(some), some[0].why, ids)
