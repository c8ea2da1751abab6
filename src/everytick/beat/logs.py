"""What a beat logs: sentences of its contract, with their fields beside them (S3-027)."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from everytick.domain.redaction import redacted_data

COMPONENT = "scheduler"
NEXT = "the next tick tries again"
"""What follows every error of a beat; the sentences themselves are fixed."""

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class BeatLog:
    """Logs to `everytick.beat`; every record says which part speaks."""

    def __init__(self) -> None:
        self._log = logging.getLogger("everytick.beat")

    def debug(self, sentence: str, **fields: Any) -> None:
        """Log a detail that helps to find a fault."""
        self._log.debug(sentence, extra={"component": COMPONENT, **fields})

    def info(self, sentence: str, **fields: Any) -> None:
        """Log what happened as it should."""
        self._log.info(sentence, extra={"component": COMPONENT, **fields})

    def warning(self, sentence: str, **fields: Any) -> None:
        """Log what an operator may want to look at. The beat goes on."""
        self._log.warning(sentence, extra={"component": COMPONENT, **fields})

    def error(self, sentence: str, **fields: Any) -> None:
        """Log what went wrong. The next tick tries it again, and the record says so."""
        self._log.error(sentence, extra={"component": COMPONENT, "next": NEXT, **fields})


class JsonLog(logging.Formatter):
    """One JSON object per line: time, level, msg, component, and the fields of the sentence."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "msg": record.getMessage(),
        }
        line |= {key: content for key, content in record.__dict__.items() if key not in _STANDARD}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(redacted_data(line), ensure_ascii=True, default=str)
