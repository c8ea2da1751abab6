"""The schedule of a job that sends notices: it names no instant. Each run is asked for by an end of another job."""

from datetime import datetime

from everytick.domain.notices import NoticeKind
from everytick.domain.values import value
from everytick.schedules.combine import Combinable, checked_limit
from everytick.schedules.timezones import Zone

_WORDS = {
    NoticeKind.ON_FAILURE: "when the job begins to fail",
    NoticeKind.ON_RECOVERY: "when the job runs well again",
    NoticeKind.ON_BREACH: "when the job breaks a promise",
    NoticeKind.ON_SUCCESS: "when the job has run well",
}


@value
class NoticeSchedule(Combinable):
    """No instants at all."""

    kind: NoticeKind

    @property
    def tz(self) -> Zone | None:
        """None: an end needs no zone."""
        return None

    def __str__(self) -> str:
        return f"notice: {self.kind}"

    def describe(self) -> str:
        """Say the rule in plain English."""
        return _WORDS[self.kind]

    def next_after(self, instant: datetime) -> datetime | None:
        """Return None: it names no instant."""
        return None

    def last_at(self, instant: datetime) -> datetime | None:
        """Return None: it names no instant."""
        return None

    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> list[datetime]:
        """Return nothing: it names no instant."""
        checked_limit(limit)
        return []
