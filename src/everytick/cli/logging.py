"""The lines that `everytick run` writes: readable on a terminal, or one JSON object each."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from everytick.cli.output import has_colour, safe

if TYPE_CHECKING:
    from everytick.app import Everytick
    from everytick.config.settings import Setting
    from everytick.node.events import Event

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_COLOURS = {logging.WARNING: "yellow", logging.ERROR: "red", logging.CRITICAL: "red"}
_TOLD_ELSEWHERE = frozenset({"store_lost", "store_found", "definition_broken", "definition_mended"})
_FAILED = frozenset({"failed", "failed_stale", "timeout", "lost", "completed_with_errors"})

_log = logging.getLogger("everytick.events")


class Lines(logging.Formatter):
    """Time, level and text, for people."""

    def __init__(self, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a control character in it is spelled out."""
        at = datetime.fromtimestamp(record.created).astimezone()
        text = safe(record.getMessage())
        if record.exc_info:
            text += "\n" + safe(self.formatException(record.exc_info))
        level = f"{record.levelname.lower():7}"
        if self._colour and record.levelno in _COLOURS:
            level = click.style(level, fg=_COLOURS[record.levelno])
        return f"{at:%H:%M:%S}.{at.microsecond // 1000:03} {level} {text}"


class JsonLines(logging.Formatter):
    """One JSON object per line: ts, level, event, logger, and whatever fields its writer gave as `extra`.

    everytick's own are component, job, occurrence, task, attempt, node, next_run and interval.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC)
        found: dict[str, object] = {
            "ts": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
        }
        given = record.__dict__.items()
        found |= {key: value for key, value in given if key not in _STANDARD and key not in found and value is not None}
        if record.exc_info:
            found["traceback"] = self.formatException(record.exc_info)
        return json.dumps(found, ensure_ascii=True, default=str)


def set_up(level: str, format_: Setting) -> None:
    """Write everything from this level on to stderr; an application that has set up logging itself keeps its own.

    Unless somebody names a format outside of the code: that wins, as every setting does.
    """
    from everytick.config.settings import SettingPlace

    root = logging.getLogger()
    if root.handlers and format_.place is SettingPlace.BUILT_IN:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if format_.value == "json" else Lines(has_colour(sys.stderr)))
    root.handlers = [handler]
    root.setLevel(level.upper())
    # It tells of every loop that begins, and nobody asked for that.
    logging.getLogger("asyncio").setLevel(max(root.level, logging.INFO))
    logging.captureWarnings(True)


class Failures:
    """How many occurrences ended badly."""

    count = 0


def log_events(app: Everytick) -> Failures:
    """Log what the node does, and count what fails."""
    failures = Failures()

    def tell(event: Event) -> None:
        if event.kind == "ended" and event.status in _FAILED:
            failures.count += 1
        level = _level(event)
        if _log.isEnabledFor(level):
            about = {"job": event.job, "occurrence": event.occurrence_id, "task": event.task, "attempt": event.attempt}
            _log.log(level, "%s", _words(event), extra=about)

    app.on_event(tell)
    return failures


def _level(event: Event) -> int:
    """The store's outages and broken files are told by those who see them; what merely begins is for the curious."""
    if event.kind in _TOLD_ELSEWHERE or event.kind in ("created", "started"):
        return logging.DEBUG
    if event.kind == "attempt_ended":
        return logging.WARNING if event.status in _FAILED else logging.DEBUG
    return logging.WARNING if event.status in _FAILED or event.kind == "lost" else logging.INFO


def _words(event: Event) -> str:
    what = event.kind.replace("_", " ")
    parts = [event.job or "node"]
    if event.scheduled_for is not None:
        parts.append(event.scheduled_for.strftime("%Y-%m-%dT%H:%M:%SZ"))
    if event.task is not None and event.task != event.job:
        parts.append(f"task {event.task}")
    if event.attempt is not None:
        parts.append(f"attempt {event.attempt}")
    parts.append(event.status if event.kind in ("ended", "attempt_ended") and event.status else what)
    return " ".join(parts) + (f": {event.text}" if event.text else "")
