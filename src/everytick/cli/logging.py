"""The lines that `everytick run` writes: readable on a terminal, or one JSON object each."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from everytick.cli.output import has_colour, safe
from everytick.domain.redaction import redacted, redacted_data
from everytick.runners.capture import RecordOrigin
from everytick.runners.tracing import active_trace_id

if TYPE_CHECKING:
    from everytick.config.settings import Setting, SettingsByName

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_COLOURS = {logging.WARNING: "yellow", logging.ERROR: "red", logging.CRITICAL: "red"}


class Lines(logging.Formatter):
    """Time, level and text, for people."""

    def __init__(self, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        """Return the line with control characters escaped."""
        at = datetime.fromtimestamp(record.created).astimezone()
        text = safe(redacted(record.getMessage()))
        if speaker := getattr(record, "everytick", None):
            text = f"{safe(speaker)} | {text}"
        if traceback := _traceback(self, record):
            text += "\n" + safe(redacted(traceback))
        level = f"{record.levelname.lower():7}"
        if self._colour and record.levelno in _COLOURS:
            level = click.style(level, fg=_COLOURS[record.levelno])
        return f"{at:%H:%M:%S}.{at.microsecond // 1000:03} {level} {text}"


class JsonLines(logging.Formatter):
    """One JSON object per line: ts, level, event, logger, and the fields of `extra`.

    everytick's own are component, job, occurrence, task, attempt, node, next_run and interval. Where spans are
    recorded, `trace_id` is that of the trace which the line is part of.
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
        speaker = getattr(record, "everytick", None)
        if isinstance(speaker, RecordOrigin):
            found |= {"job": speaker, "task": speaker.task, "occurrence": speaker.occurrence}
            found["attempt"] = speaker.attempt
        given = ((key, value) for key, value in record.__dict__.items() if key != "everytick")
        found |= {key: value for key, value in given if key not in _STANDARD and key not in found and value is not None}
        if traceback := _traceback(self, record):
            found["traceback"] = traceback
        occurrence = found.get("occurrence")
        if trace := active_trace_id(occurrence if isinstance(occurrence, str) else None):
            found.setdefault("trace_id", trace)
        return json.dumps(redacted_data(found), ensure_ascii=True, default=str)


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str | None:
    """Return the traceback of the exception that a record carries, or the text that stands for one."""
    return formatter.formatException(record.exc_info) if record.exc_info else record.exc_text


def set_up(level: str, format_: Setting) -> None:
    """Write records from this level on to stderr. An application that has set up logging itself keeps its own.

    But a format that is set outside of the code wins, as every such setting does.
    """
    from everytick.config.settings import SettingPlace

    root = logging.getLogger()
    if root.handlers and format_.place is SettingPlace.BUILT_IN:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if format_.value == "json" else Lines(has_colour(sys.stderr)))
    root.handlers = [handler]
    root.setLevel(level.upper())
    # asyncio logs every new event loop, which is noise here.
    logging.getLogger("asyncio").setLevel(max(root.level, logging.INFO))
    logging.captureWarnings(True)


def tell_open_secrets(settings: SettingsByName) -> None:
    """Warn of files with secrets that every user of this host can read."""
    from everytick.config.settings import open_secrets

    for sentence in open_secrets(settings):
        logging.getLogger("everytick").warning("%s", sentence)
