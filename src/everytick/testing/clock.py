"""A clock that stands still until a test moves it."""

from datetime import UTC, datetime, timedelta

from everytick.domain.durations import duration, instant

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class ManualClock:
    """The time of a store in a test: `MemoryStore(clock)`, `SqliteStore(path, clock=clock)`, `PostgresStore(url, …)`.

    It begins where it is told to, else at midnight on 1 January 2026, UTC. A store's time
    follows it, also back: what was decided before a `set` to an earlier time stays decided, as
    on a host whose clock was set right.
    """

    def __init__(self, start: datetime | str = _BEGIN) -> None:
        self._now = instant(start)

    def __repr__(self) -> str:
        return f"ManualClock({self._now.isoformat()!r})"

    def __call__(self) -> datetime:
        return self._now

    @property
    def now(self) -> datetime:
        """The time this clock shows."""
        return self._now

    def advance(self, length: timedelta | str) -> datetime:
        """Move the clock by a duration, like "90m" or a timedelta, and return the new time."""
        self._now += duration(length)
        return self._now

    def set(self, to: datetime | str) -> datetime:
        """Show this time from now on, also an earlier one, and return it."""
        self._now = instant(to)
        return self._now
