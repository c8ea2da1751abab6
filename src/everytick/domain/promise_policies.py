"""What a job may promise, and how it is written: a length of time, or a time of day in the job's zone."""

import re
from datetime import timedelta
from enum import StrEnum
from typing import TypeAlias

from everytick.domain.durations import MICROSECOND
from everytick.domain.policy_checks import length, refused
from everytick.domain.policy_readers import DURATION, PolicyReader, or_none
from everytick.domain.values import value


class PromiseKind(StrEnum):
    """What is promised: the policy that says so."""

    SUCCESS_WITHIN = "success_within"
    START_BY = "start_by"
    FINISH_BY = "finish_by"


@value
class WallTime:
    """A time of day in the job's zone."""

    hour: int
    minute: int

    def __str__(self) -> str:
        return f"{self.hour:02}:{self.minute:02}"

    def as_data(self) -> str:
        """Return the text, such as `06:00`."""
        return str(self)


Promised: TypeAlias = timedelta | WallTime
"""How long it may take, or by which time of day."""

# A text, compiled by `re` when first used: most programs need none.
_CLOCK = r"([01][0-9]|2[0-3]):([0-5][0-9])"


def _finish_by(key: str, given: object) -> Promised:
    """Read a duration such as `1h`, or a time of day such as `06:00`."""
    if isinstance(given, WallTime):
        return given
    if isinstance(given, str) and ":" in given:
        read = re.fullmatch(_CLOCK, given.strip())
        if read is None:
            raise refused(key, given, "is no time of day", f'{key}="06:00"', f'{key}="1h", after the instant')
        return WallTime(int(read[1]), int(read[2]))
    return length(key, given, MICROSECOND, f"{key}=None, for none")


FINISH_BY = or_none(
    PolicyReader(
        _finish_by,
        {"anyOf": [DURATION, {"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$", "examples": ["06:00"]}]},
        "Duration",
        python='"06:00"',
    )
)
"""A length of time after the instant, a time of day, or None for none."""
