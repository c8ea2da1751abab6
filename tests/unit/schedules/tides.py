"""A user-defined schedule, for tests: high water, every 12 hours and 25 minutes after a first one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

PERIOD = timedelta(hours=12, minutes=25)


@dataclass(frozen=True)
class Tide:
    first: datetime

    def last_at(self, instant: datetime) -> datetime | None:
        past = (instant - self.first) // PERIOD
        return self.first + past * PERIOD if past >= 0 else None

    def next_after(self, instant: datetime) -> datetime | None:
        last = self.last_at(instant)
        return self.first if last is None else last + PERIOD

    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> Sequence[datetime]:
        found: list[datetime] = []
        instant = self.next_after(after)
        while instant is not None and instant <= through and (limit is None or len(found) < limit):
            found.append(instant)
            instant = self.next_after(instant)
        return found

    def describe(self) -> str:
        return "at high water"

    def __str__(self) -> str:
        return f"tide: {self.first.isoformat()}"


def read(text: str) -> Tide:
    return Tide(datetime.fromisoformat(text))
