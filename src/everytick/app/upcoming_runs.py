"""Upcoming runs of a job that is in no store yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.deciding.revise import with_edit
from everytick.domain.upcoming import upcoming

if TYPE_CHECKING:
    from datetime import datetime

    from everytick.domain.job import Job


def coming(job: Job, now: datetime, n: int) -> list[datetime]:
    """Return up to `n` times after now at which a job would run if it were stored now."""
    return upcoming(with_edit(None, job, now), now, n)
