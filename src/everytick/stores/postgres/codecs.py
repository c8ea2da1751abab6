"""Times on the wire: the driver's own way costs more than everything else that is read of an occurrence.

What is meant stays the same: aware datetimes in UTC come out; what goes in without a zone
is local time, as the driver has it.
"""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

Wire = tuple[int]
"""Microseconds since the server's epoch."""

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_KEPT = 4096

# As the driver has them, without a zone.
_ENDLESS: dict[Wire, datetime] = {(2**63 - 1,): datetime.max, (-(2**63),): datetime.min}  # noqa: DTZ901


async def set_codecs(db: Any) -> None:
    """Let this connection read and write times in our way."""
    await db.set_type_codec(
        "timestamptz", schema="pg_catalog", encoder=write_time, decoder=_Times().__getitem__, format="tuple"
    )


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
    return _ENDLESS.get(wire) or _EPOCH + timedelta(0, 0, wire[0])


class _Times(dict[Wire, datetime]):
    """The times read last: of one tick or one claim, most are the same."""

    def __missing__(self, wire: Wire) -> datetime:
        if len(self) >= _KEPT:
            self.clear()
        made = self[wire] = read_time(wire)
        return made


def _aware(at: date) -> datetime:
    moment = at if isinstance(at, datetime) else datetime.combine(at, time())
    return moment.astimezone(UTC)
