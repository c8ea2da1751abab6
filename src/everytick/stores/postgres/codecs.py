"""Times on the wire: the driver's own way costs more than everything else that is read of an occurrence.

What is meant stays the same: aware datetimes in UTC come out; what goes in without a zone
is local time, as the driver has it.
"""

from datetime import UTC, date, datetime, time
from typing import Any

from everytick.domain.durations import MICROSECOND

Wire = tuple[int]
"""Microseconds since the server's epoch."""

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_KEPT = 4096
"""Times that each cache holds: a tick or claim has some dozens. A full cache is emptied."""

# As the driver has them, without a zone.
_ENDLESS: dict[Wire, datetime] = {(2**63 - 1,): datetime.max, (-(2**63),): datetime.min}  # noqa: DTZ901


async def set_codecs(db: Any) -> None:
    """Set the codecs of times on this connection."""
    write, read = _Wires().__getitem__, _Times().__getitem__
    await db.set_type_codec("timestamptz", schema="pg_catalog", encoder=write, decoder=read, format="tuple")


def write_time(at: Any) -> Wire:
    """Return a time as the server takes it."""
    try:
        since = at - _EPOCH
    except TypeError:
        for wire, endless in _ENDLESS.items():
            if at == endless:
                return wire
        since = _aware(at) - _EPOCH
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds,)


def read_time(wire: Wire) -> datetime:
    """Return a time as the server sent it."""
    return _ENDLESS.get(wire) or _EPOCH + wire[0] * MICROSECOND


class _Times(dict[Wire, datetime]):
    """The times read last: of one tick or one claim, most are the same."""

    def __missing__(self, wire: Wire) -> datetime:
        if len(self) >= _KEPT:
            self.clear()
        made = self[wire] = read_time(wire)
        return made


class _Wires(dict[Any, Wire]):
    """The times written last: a step says the same moment of a task, its attempt and its occurrence.

    Only times in UTC are kept: in another zone two that are equal may be an hour apart, when clocks go back.
    """

    def __missing__(self, at: Any) -> Wire:
        wire = write_time(at)
        if getattr(at, "tzinfo", None) is UTC:
            if len(self) >= _KEPT:
                self.clear()
            self[at] = wire
        return wire


def _aware(at: date) -> datetime:
    moment = at if isinstance(at, datetime) else datetime.combine(at, time())
    return moment.astimezone(UTC)
