"""Lines for the person who started the program: what it runs, and what a stop waits for.

They go to the log where it is configured for them, and to standard error where logging is not configured or a
person looks at a terminal.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from everytick.domain.durations import format_duration

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from everytick.domain.job import Job
    from everytick.stores.base import StoreAddress

_log = logging.getLogger("everytick")

_FORETOLD_JOBS = 1_000
"""The first run is looked for among so many jobs at most: that takes some milliseconds."""

_NAMED_JOBS = 5


def tell(text: str) -> None:
    """Write one line for the person who started this program."""
    has_handlers = _log.hasHandlers()
    if has_handlers and _log.isEnabledFor(logging.INFO):
        _log.info("%s", text)
    elif not has_handlers or sys.stderr.isatty():
        # A terminal that was closed cannot be written to, and the stop that this line tells of goes on.
        with suppress(OSError, ValueError):
            sys.stderr.write(f"everytick: {text}\n")
            sys.stderr.flush()


def greeting(jobs: Sequence[Job], folder: object, address: StoreAddress, now: datetime) -> str:
    """Say what runs here, on which store, and when it begins."""
    code = "" if folder is not None and not jobs else counted(len(jobs), "job")
    what = " and ".join(filter(None, (code, "" if folder is None else f"the jobs in {folder}")))
    return f"running {what} on {where(address)}{_first_run(jobs, now)}; Ctrl-C stops it"


def counted(number: int, what: str) -> str:
    """Return a number of things: `1 job`, `2 jobs`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def where(address: StoreAddress) -> str:
    """Return in words where a store is, without its password."""
    from everytick.config.settings import without_password

    if address.file is not None:
        return str(address.file)
    return "a store in memory" if address.is_in_memory else without_password(address.url)


def _first_run(jobs: Sequence[Job], now: datetime) -> str:
    from everytick.app.upcoming_runs import coming

    runs = [(at, job.name) for job in jobs[:_FORETOLD_JOBS] for at in coming(job, now, 1)]
    if not runs:
        return ""
    at, name = min(runs)
    return f"; the first run is {name} at {at:%Y-%m-%d %H:%M:%S} UTC"


def waiting_for(running: Counter[str], grace: timedelta | None) -> str:
    """Say what a stop waits for, and how long at most; nothing if nothing runs."""
    if not running:
        return ""
    names = [name if count == 1 else f"{name} ({count} runs)" for name, count in sorted(running.items())]
    more = f" and {len(names) - _NAMED_JOBS} other jobs" if len(names) > _NAMED_JOBS else ""
    limit = "" if grace is None else f" up to {format_duration(grace)}"
    return f"; waiting{limit} for {', '.join(names[:_NAMED_JOBS])}{more}"
