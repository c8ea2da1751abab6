"""Coverage: which of a job's instants are done, missing or done twice, as a ledger of spans."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import groupby

from everytick.domain.durations import MICROSECOND
from everytick.domain.questions import Covered
from everytick.domain.statuses import ACTIVE, WELL
from everytick.domain.values import value

IDS_TOLD = 10


class CoverageState(StrEnum):
    """What is known of the data for which an instant stands."""

    DONE = "done"
    TWICE = "twice"
    UNDER_WAY = "under_way"
    MISSING = "missing"


@value(frozen=True)
class CoverageSpan:
    """Instants in a row that stand alike: those in `(after, through]`, `count` of them.

    `after` is the instant before the first, from which its data begin. `why` says what became of the last that is
    missing; `ids` are up to ten occurrences that stand for them.
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
        """Return how many instants stand so."""
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


def coverage_spans(
    named: Iterable[tuple[datetime, datetime | None]], runs: Iterable[Covered]
) -> tuple[CoverageSpan, ...]:
    """Return the ledger of these instants, each given with the one before it, by the runs that stand for them.

    A run that completed makes each instant in its `(after, through]` done. One that failed or did not run makes none
    done. Instants of one state in a row are one span.
    """
    judged = _judged(named, sorted(runs, key=_begin))
    return tuple(_span(list(some)) for _, some in groupby(judged, key=lambda each: (each.state, each.why)))


def _judged(named: Iterable[tuple[datetime, datetime | None]], runs: Sequence[Covered]) -> Iterator[_Judged]:
    """Give the state of each instant, oldest first. `open_` are the runs that have begun to stand for instants."""
    left, open_ = iter([*runs, None]), list[Covered]()
    coming = next(left)
    for instant, before in named:
        while coming is not None and _begin(coming) < instant:
            open_.append(coming)
            coming = next(left)
        open_ = [run for run in open_ if run.through >= instant]
        state, why = _state(open_)
        ids = [run.id for run in open_ if run.status in WELL] or [run.id for run in open_]
        yield _Judged(instant, before or instant - MICROSECOND, state, why, tuple(ids))


def _begin(run: Covered) -> datetime:
    """Return the moment after which a run stands for instants. What was asked for stands for its own moment only."""
    return run.through - MICROSECOND if run.after is None else run.after


def _state(own: Sequence[Covered]) -> tuple[CoverageState, str]:
    done = sum(run.status in WELL for run in own)
    if done:
        return (CoverageState.TWICE if done > 1 else CoverageState.DONE), ""
    if any(run.status in ACTIVE for run in own):
        return CoverageState.UNDER_WAY, ""
    return CoverageState.MISSING, str(own[-1].status) if own else "no occurrence"


def _span(some: Sequence[_Judged]) -> CoverageSpan:
    ids = tuple(dict.fromkeys(id_ for each in some for id_ in each.ids))[:IDS_TOLD]
    return CoverageSpan(some[0].before, some[-1].instant, some[0].state, len(some), some[0].why, ids)
