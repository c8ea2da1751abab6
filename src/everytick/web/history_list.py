"""Which occurrences a filter of the history means, and the pages that show them. Every look is bounded."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from everytick.domain.headlines import fingerprint
from everytick.domain.occurrence import Cause
from everytick.domain.questions import why_of
from everytick.domain.statuses import FAILURES, OccurrenceStatus
from everytick.domain.values import value
from everytick.web.forms import moment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from datetime import tzinfo
    from typing import TypeAlias

    from everytick.app import Everytick
    from everytick.domain.occurrence import Occurrence

    Readable: TypeAlias = Callable[[Sequence[Occurrence]], Awaitable[Sequence[Occurrence]]]
    """Returns those whose errors the reader may see."""

WINDOWS = {"1h": timedelta(hours=1), "24h": timedelta(hours=24), "7d": timedelta(days=7), "30d": timedelta(days=30)}
DEFAULT_WINDOW = "24h"
_LONGEST_CHARACTERS = 200
"""How much of a typed filter is read."""

MOST_LOOKED_AT = 2_000
"""Most occurrences that one page looks at for the text or the fingerprint of an error."""

_AT_ONCE = 500
"""Occurrences that one question to the store reads while errors are looked through."""


@value(frozen=True)
class HistoryWanted:
    """Which occurrences: of a job, in some statuses, of a cause, with an error, in a window or between two times.

    `mistakes` says what of the address cannot be read.
    """

    job: str = ""
    statuses: tuple[str, ...] = ()
    cause: str = ""
    window: str = DEFAULT_WINDOW
    begin: str = ""
    end: str = ""
    error: str = ""
    print: str = ""
    after: datetime | None = None
    through: datetime | None = None
    mistakes: tuple[str, ...] = ()

    @classmethod
    def read(cls, typed: Mapping[str, str], now: datetime, zone: tzinfo) -> HistoryWanted:
        """Return the filter that an address names."""
        names = ("job", "cause", "from", "to", "error", "fingerprint")
        job, cause, begin, end, error, print_ = (typed.get(name, "").strip()[:_LONGEST_CHARACTERS] for name in names)
        words = tuple(dict.fromkeys(typed.get("status", "").split()))
        mistakes = [f"{word} is no status" for word in words if word not in list(OccurrenceStatus)]
        mistakes += [f"{cause} is no cause"] if cause and cause not in list(Cause) else []
        window = typed.get("w", "") if typed.get("w") in WINDOWS else "" if begin or end else DEFAULT_WINDOW
        after = through = None
        try:
            after = moment(begin, zone) if begin else now - WINDOWS[window] if window else None
            through = moment(end, zone) if end else None
        except ValueError as wrong:
            mistakes.append(str(wrong))
        if after is not None and through is not None and through <= after:
            mistakes.append("the end comes before the beginning")
        known = tuple(word for word in words if word in list(OccurrenceStatus))
        cause = cause if cause in list(Cause) else ""
        return cls(
            job=job,
            statuses=known,
            cause=cause,
            window=window,
            begin=begin,
            end=end,
            error=error,
            print=print_,
            after=after,
            through=through,
            mistakes=tuple(mistakes),
        )

    @property
    def query(self) -> dict[str, str]:
        """What stands in the address. The usual window is left out."""
        named = {
            "job": self.job,
            "status": " ".join(self.statuses),
            "cause": self.cause,
            "w": "" if self.window == DEFAULT_WINDOW else self.window,
            "from": self.begin,
            "to": self.end,
            "error": self.error,
            "fingerprint": self.print,
        }
        return {name: said for name, said in named.items() if said}

    @property
    def has_text(self) -> bool:
        """Whether errors are looked through."""
        return bool(self.error or self.print)

    def has_error(self, occurrence: Occurrence) -> bool:
        """Whether the error of the occurrence is meant."""
        said = occurrence.error or ""
        if self.print and (not said or fingerprint(said) != self.print):
            return False
        return not self.error or self.error.lower() in why_of(occurrence.reason, said).lower()


@value(frozen=True)
class HistoryPage:
    """Occurrences, newest first; `cursor` asks for the next page. `looked_at` says through how many it looked."""

    occurrences: Sequence[Occurrence]
    cursor: str | None
    looked_at: int


async def history_page(
    tick: Everytick, wanted: HistoryWanted, size: int, cursor: str | None, readable: Readable
) -> HistoryPage:
    """Return a page of what is meant. Where errors are looked through, it may be short, and go on behind `cursor`.

    Errors that the reader may not see count as none: where the page ends must not tell whether one of them fits.
    """
    found: list[Occurrence] = []
    looked_at = 0
    while True:
        page = await _part(tick, wanted, size if not wanted.has_text else _AT_ONCE, cursor)
        cursor, looked_at = page.cursor, looked_at + len(page.occurrences)
        found += await _meant(page.occurrences, wanted, readable)
        if not wanted.has_text or cursor is None or len(found) >= size or looked_at >= MOST_LOOKED_AT:
            return HistoryPage(found, cursor, looked_at)


async def _meant(some: Sequence[Occurrence], wanted: HistoryWanted, readable: Readable) -> Sequence[Occurrence]:
    if not wanted.has_text:
        return some
    return [occurrence for occurrence in await readable(some) if wanted.has_error(occurrence)]


async def _part(tick: Everytick, wanted: HistoryWanted, size: int, cursor: str | None) -> HistoryPage:
    statuses: Sequence[str] | None = wanted.statuses or None
    if wanted.print and statuses is None:
        statuses = [str(status) for status in FAILURES]
    page = await tick.history(
        wanted.job or None,
        status=statuses,
        cause=wanted.cause or None,
        after=wanted.after,
        through=wanted.through,
        limit=size,
        cursor=cursor,
    )
    return HistoryPage(page.occurrences, page.cursor, len(page.occurrences))


async def matching(tick: Everytick, wanted: HistoryWanted, most: int, readable: Readable) -> AsyncIterator[Occurrence]:
    """Give what is meant, newest first, at most so many. Errors are looked through in at most ten times as many."""
    cursor: str | None = None
    given = looked_at = 0
    while looked_at < 10 * most:
        page = await _part(tick, wanted, _AT_ONCE, cursor)
        looked_at += len(page.occurrences)
        for occurrence in await _meant(page.occurrences, wanted, readable):
            yield occurrence
            given += 1
            if given >= most:
                return
        if page.cursor is None:
            return
        cursor = page.cursor
