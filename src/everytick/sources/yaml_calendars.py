"""The calendars of a file of jobs, which its schedules may exclude.

calendars:
  closed: {dates: [2026-12-24], weekdays: [sat, sun], country: DE, since: 2026-01-01}
jobs:
  invoices: {schedule: "(cron: 0 9 25 * *) - closed; roll=next", command: send-invoices}
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everytick.domain.names import did_you_mean
from everytick.errors import EverytickError, shown
from everytick.schedules.calendars import Calendar, calendar
from everytick.sources.yaml_reader import Several

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from everytick.sources.yaml_reader import Step

KEYS = ("dates", "weekdays", "country", "region", "ics", "since")


class Beside:
    """The calendars that a file names, for reading its schedules.

    `files` are those that were read beside it: when one of them changes, the file has changed.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self.calendars: dict[str, Calendar] = {}
        self.files: list[Path] = []

    def read_calendars(self, given: Any) -> None:
        """Read the calendars, or refuse all mistakes in them. A calendar with a mistake counts as empty."""
        if given is not None and not isinstance(given, dict):
            raise ValueError("calendars must be a table of names, each with its dates, weekdays, country or ics")
        found: list[tuple[tuple[Step, ...], str]] = []
        for name, parts in (given or {}).items():
            self.calendars[name] = Calendar("mistaken")
            found += [((name, *path), said) for path, said in self._mistakes(name, parts)]
        if found:
            raise Several(found)

    def _mistakes(self, name: str, parts: Any) -> Iterator[tuple[tuple[Step, ...], str]]:
        """Give the mistakes of one calendar. Add it if it has none."""
        if not isinstance(parts, dict):
            yield (), f"calendar '{shown(name, 60)}' must be a table of {', '.join(KEYS)}"
            return
        read: dict[str, Any] = {}
        wrong = {key: said for key, written in parts.items() if (said := self._part(name, key, written, read))}
        try:
            if not wrong:
                self.calendars[name] = calendar(name, **read)
        except EverytickError as error:
            yield (), str(error)
        for key, said in wrong.items():
            yield (key,), said

    def _part(self, name: str, key: str, written: Any, read: dict[str, Any]) -> str:
        """Read one key. Return its mistake, if any."""
        if key not in KEYS:
            near = did_you_mean(key, KEYS) or f"; it may have {', '.join(KEYS)}"
            return f"calendar '{shown(name, 60)}': unknown key '{shown(key, 60)}'{near}"
        try:
            read[key] = self._value(name, key, written)
        except (EverytickError, ValueError) as error:
            return str(error)
        return ""

    def _value(self, name: str, key: str, written: Any) -> object:
        if key in ("dates", "weekdays"):
            if not isinstance(written, list) or not all(isinstance(date, str) for date in written):
                raise ValueError(f"{key} must be a list, like {'[2026-12-24]' if key == 'dates' else '[sat, sun]'}")
            # Read this part alone, so that its mistakes are told even if other parts have mistakes too.
            calendar(name, **{key: written})  # type: ignore[arg-type]
            return written
        if not isinstance(written, str):
            raise ValueError(f"{key} '{shown(written, 60)}' must be a text")
        if key == "since":
            return _date(written)
        return self._ics(written) if key == "ics" else written

    def _ics(self, written: str) -> Path:
        """Return the path of the ics file, relative to this file."""
        path = Path(self._file).parent / written
        self.files.append(path)
        if not path.is_file():
            raise ValueError(f"ics '{shown(written, 200)}': there is no such file beside this one")
        return path


def _date(written: str) -> date:
    try:
        return datetime.strptime(written, "%Y-%m-%d").replace(tzinfo=UTC).date()
    except ValueError:
        raise ValueError(f"since '{shown(written, 60)}' must be a date like 2026-01-01") from None


def schema(text: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of calendars; `text` is that of a text."""
    date_ = {**text, "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
    return {
        "type": "object",
        "description": "Dates that schedules of this file may exclude: (cron: 0 9 * * *) - name; roll=next.",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "dates": {"type": "array", "items": date_},
                "weekdays": {"type": "array", "items": {"enum": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]}},
                "country": {**text, "description": "Holidays of a country, by its code; needs since."},
                "region": text,
                "ics": {**text, "description": "A file of events beside this one; needs since."},
                "since": {**date_, "description": "From when on holidays and events count, for ten years."},
            },
        },
    }
