"""Times as people write and read them: in the zone of this machine unless `--utc` says otherwise."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from everytick.cli.output import is_terminal
from everytick.errors import InvalidInstant, InvalidPolicies

if TYPE_CHECKING:
    from datetime import tzinfo

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?\+00:00")


class Times:
    """Shows and reads times in one zone."""

    def __init__(self, utc: bool = False, zone: str | None = None) -> None:
        self.zone = "UTC" if utc else zone or _local()
        self.info: tzinfo = _info(self.zone)
        self.today = datetime.now(self.info).date()

    def shown(self, instant: datetime) -> str:
        """Return the time to the second, with its zone's letters on a terminal and its offset in a pipe."""
        local = instant.astimezone(self.info)
        if is_terminal():
            return f"{local:%Y-%m-%d %H:%M:%S %Z}"
        return local.isoformat(timespec="seconds")

    def in_table(self, instant: datetime, *, short: bool = False) -> str:
        """Return the time to the second for a column whose heading names the zone.

        `short` leaves out the day of today and the year of this year; of another year it has the day alone, as `ls`
        does. An hour that the clock repeats has the zone's letters, which alone tell the first from the second.
        """
        local = instant.astimezone(self.info)
        text = f"{local:%Y-%m-%d %H:%M:%S}" if not short else self._short(local)
        is_repeated = local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
        return f"{text} {local:%Z}" if is_repeated else text

    def _short(self, local: datetime) -> str:
        if local.date() == self.today:
            return f"{local:%H:%M:%S}"
        day = f"{local:%b} {local.day:2}"
        return f"{day} {local:%H:%M:%S}" if local.year == self.today.year else f"{day}  {local:%Y}"

    def in_text(self, text: str, beside: datetime) -> str:
        """Return the text with every moment in it, which is in UTC, as this zone has it.

        It stands beside a time of this zone: on a terminal it names neither the zone again nor the same day. What only
        looks like a moment stays as it is: an error may hold any text.
        """

        def said(found: re.Match[str]) -> str:
            try:
                return shown(datetime.fromisoformat(found[0]))
            except (ValueError, OverflowError):
                return found[0]

        def shown(moment: datetime) -> str:
            if not is_terminal():
                return self.shown(moment)
            is_same_day = moment.astimezone(self.info).date() == beside.astimezone(self.info).date()
            whole = self.in_table(moment)
            return whole.partition(" ")[2] if is_same_day else whole

        return _MOMENT.sub(said, text)

    def heading(self, text: str) -> str:
        """Return a column's heading with the zone's name."""
        return f"{text} ({self.zone})"

    def read(self, text: str) -> datetime:
        """Return the moment of an ISO-8601 text. One without an offset is in this time zone."""
        from everytick.app.text_reading import moment_of

        written = re.sub(r"^(\d{4}-\d\d-\d\d) (?=\d)", r"\1T", text.strip())
        has_zone = re.search(r"(Z|T.*[+-]\d\d(:?\d\d)?|\])$", written)
        try:
            return moment_of(written if has_zone else f"{written}[{self.zone}]")
        except InvalidInstant as error:
            reason = f"{error.reason}; write it like 2026-07-01T09:00, 2026-07-01T09:00:00Z or with [Europe/Berlin]"
            raise InvalidInstant(text, reason) from None


def before(now: datetime, text: str) -> datetime:
    """Return the moment so long before now: `24h`, `7d`."""
    from everytick.domain.durations import duration

    length: timedelta = duration(text)
    return now - min(length, now - datetime(2, 1, 1, tzinfo=UTC))


def _info(name: str) -> tzinfo:
    """Return the time zone, which may be a rule that `zoneinfo` does not know."""
    if name == "UTC":
        return UTC
    from everytick.schedules.timezones import zone

    return zone(name).info


def _local() -> str:
    from everytick.config.host import local_timezone

    try:
        return local_timezone()
    except InvalidPolicies:
        # The time zone of this machine is unknown: every time is shown with its zone.
        return "UTC"


def zone_of(name: str | None) -> str | None:
    """Return the time zone of this name. The error suggests a similar name."""
    if name is None:
        return None
    from everytick.app.text_reading import zone_named

    return zone_named(name).name
