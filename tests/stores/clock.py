"""A clock that tests move by hand."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self, start: datetime = START) -> None:
        self.time = start

    def __call__(self) -> datetime:
        return self.time

    def move(self, **length: float) -> datetime:
        """Let that much time pass and return the new time."""
        self.time += timedelta(**length)
        return self.time
