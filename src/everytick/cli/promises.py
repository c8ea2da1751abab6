"""Promises as `show`, `list` and `history` tell of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.cli.output import listed
from everytick.domain.policy_checks import as_data
from everytick.domain.promises import promises_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from everytick.answers.values import JobStatus
    from everytick.cli.times import Times
    from everytick.domain.promises import Breach, BreachRecord
    from everytick.stores.base import JobRecord


def breach_words(breach: Breach, times: Times) -> str:
    """Return a breach in one line: since when, for how many instants, why, and until when."""
    many = f", {breach.count} instants" if breach.count > 1 else ""
    until = "" if breach.ended_at is None else f" until {times.shown(breach.ended_at)}"
    taken_back = ", taken back" if breach.is_withdrawn else ""
    return f"{breach.kind} broken since {times.shown(breach.due_at)}{until}{taken_back}{many}: {breach.reason}"


def promise_pairs(
    record: JobRecord, status: JobStatus, past: Sequence[BreachRecord], times: Times
) -> Iterator[tuple[str, object]]:
    """Give the lines of `show` about promises."""
    broken = {breach.kind: breach for breach in status.breaches}
    promised = promises_of(record.job.settings)
    yield from listed(
        "promises", (f"{kind} {as_data(promise)}: {_stand(kind, broken)}" for kind, promise in promised.items())
    )
    yield from listed("forecast", map(str, status.forecasts))
    yield from listed("breaches", (breach_words(broken_before.breach, times) for broken_before in past))


def _stand(kind: str, broken: Iterable[str]) -> str:
    return "broken" if kind in broken else "kept"
