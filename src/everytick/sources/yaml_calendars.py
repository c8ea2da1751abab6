"""What a file of jobs has beside its jobs: calendars that its schedules may exclude, and other files that it uses.

calendars:
  closed: {dates: [2026-12-25], weekdays: [sat, sun], half_days: {2026-12-24: "13:00"}, country: DE, since: 2026-01-01}
jobs:
  invoices: {schedule: "(cron: 0 9 25 * *) - closed; roll=next", command: send-invoices}
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everytick.domain.names import did_you_mean
from everytick.domain.templates import Template, by_key
from everytick.domain.values import value
from everytick.errors import EverytickError, InvalidSchedule, shown
from everytick.schedules.calendars import TEN_YEARS, Calendar, calendar
from everytick.sources.yaml_reader import Several

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from everytick.sources.file_texts import FileTexts
    from everytick.sources.yaml_reader import PathStep

KEYS = ("dates", "weekdays", "half_days", "country", "region", "ics", "since")


class Unusable(Exception):
    """A file that another one uses cannot be used. The text is the reason."""


@value
class SharedParts:
    """The calendars and templates that one file offers to files that use it, and the files that it was read with."""

    calendars: tuple[Calendar, ...] = ()
    templates: tuple[Template, ...] = ()
    files: tuple[Path, ...] = ()


class Beside:
    """The calendars and templates that the jobs of a file may name.

    `files` are those that were read beside it: when one of them changes, the file has changed.
    `share` reads a file that this one uses. With `texts`, calendar files are taken from there.
    """

    def __init__(self, file: str, share: Callable[[Path], SharedParts], texts: FileTexts | None = None) -> None:
        self._file, self._share, self._texts = file, share, texts
        self.calendars: dict[str, Calendar] = {}
        self.templates: dict[str, Template] = {}
        self.files: list[Path] = []

    def use_files(self, given: Any) -> None:
        """Take over the calendars and templates of other files, or refuse all files that cannot be used."""
        paths = [given] if isinstance(given, str) else given
        if not isinstance(paths, list) or not paths or not all(isinstance(path, str) and path for path in paths):
            raise ValueError("use must be the path of a file, or a list of paths, like [shared.yaml]")
        found: list[tuple[tuple[PathStep, ...], str]] = []
        for position, written in enumerate(paths):
            path = Path(self._file).parent / written
            self.files.append(path)
            try:
                shared = self._share(path)
            except Unusable as error:
                found.append(((position,) if isinstance(given, list) else (), f"use '{shown(written, 200)}': {error}"))
                continue
            self.files = list(dict.fromkeys((*self.files, *shared.files)))
            self.calendars.update((one.name, one) for one in shared.calendars)
            self.add_templates(shared.templates)
        if found:
            raise Several(found)

    def add_templates(self, templates: Iterable[Template]) -> None:
        """Let the jobs of the file name these templates too."""
        self.templates.update(by_key(templates))

    def read_calendars(self, given: Any) -> None:
        """Read the calendars, or refuse all mistakes in them. A calendar with a mistake counts as empty."""
        if given is not None and not isinstance(given, dict):
            raise ValueError("calendars must be a table of names, each with its dates, weekdays, country or ics")
        found: list[tuple[tuple[PathStep, ...], str]] = []
        for name, parts in (given or {}).items():
            self.calendars[name] = Calendar("mistaken")
            found += [((name, *path), said) for path, said in self._mistakes(name, parts)]
        if found:
            raise Several(found)

    def _mistakes(self, name: str, parts: Any) -> Iterator[tuple[tuple[PathStep, ...], str]]:
        """Give the mistakes of one calendar. Add it if it has none."""
        if not isinstance(parts, dict):
            yield (), f"calendar '{shown(name, 60)}' must be a table of {', '.join(KEYS)}"
            return
        read: dict[str, Any] = {}
        wrong = {key: said for key, written in parts.items() if (said := self._part(name, key, written, read))}
        try:
            if not wrong:
                self.calendars[name] = calendar(name, **_resolved(name, read))
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
        if key == "half_days":
            texts = [*written, *written.values()] if isinstance(written, dict) else written
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                raise ValueError('half_days must be a list like [2026-12-24], or a table like {2026-12-24: "13:00"}')
            calendar(name, half_days=written)
            return written
        if not isinstance(written, str):
            raise ValueError(f"{key} '{shown(written, 60)}' must be a text")
        if key == "since":
            return _date(written)
        return self._ics(written) if key == "ics" else written

    def _ics(self, written: str) -> Path | str:
        """Return the path of the ics file, relative to this file; its text if files come as texts."""
        path = Path(self._file).parent / written
        self.files.append(path)
        text = None if self._texts is None else self._texts.text(path)
        if text is None and (self._texts is not None or not path.is_file()):
            raise ValueError(f"ics '{shown(written, 200)}': there is no such file beside this one")
        return path if text is None else text


def _resolved(name: str, read: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a calendar with the text of an ics file resolved to its dates."""
    text = read.get("ics")
    if not isinstance(text, str):
        return read
    if "since" not in read:
        raise InvalidSchedule(name, "since", "must say from which date on events are resolved")
    from everytick.schedules.ics import read_ics

    since = read["since"]
    rest = {key: part for key, part in read.items() if key != "ics"}
    return {**rest, "dates": [*read.get("dates", ()), *read_ics(text, since, since + TEN_YEARS)]}


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
                "half_days": {
                    "anyOf": [
                        {"type": "array", "items": date_},
                        {"type": "object", "additionalProperties": {**text, "pattern": "^[0-9]{1,2}:[0-9]{2}$"}},
                    ],
                    "description": "Dates that are open until noon, or until the time that is given for each.",
                },
                "country": {**text, "description": "Holidays of a country, by its code; needs since."},
                "region": text,
                "ics": {**text, "description": "A file of events beside this one; needs since."},
                "since": {**date_, "description": "From when on holidays and events count, for ten years."},
            },
        },
    }
