"""Policies in force as people read them: the value in words, and who set it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from everytick.app.stored_jobs import API
from everytick.domain.config import POLICIES, Level
from everytick.domain.durations import format_duration
from everytick.domain.payload import Payload
from everytick.domain.policy_checks import as_data
from everytick.domain.retry import Retry
from everytick.domain.values import value
from everytick.web.pictures.trail import localized

if TYPE_CHECKING:
    from everytick.domain.job import Job
    from everytick.web.words import Viewer

ALWAYS_SHOWN = (
    "overlap",
    "recovery",
    "retry",
    "failure",
    "execution_timeout",
    "task_timeout",
    "grace",
    "queue",
    "retention",
)
"""The policies that people ask for first, shown also where they have their default."""

_ELSEWHERE = frozenset({"description", "tags", "depends_on", "enabled", "success_within", "start_by", "finish_by"})
"""The policies that the page tells of in another place."""

_FILE_OWNER = "file"
"""Whose the jobs of a folder are, unless `jobs_owner` names another."""

_DAY_HOURS = 24
_HIDDEN = frozenset({"payload", "on_failure", "on_recovery", "on_success", "on_breach"})
"""The policies that may hold secrets."""


@value(frozen=True)
class PolicyLine:
    """One policy: its key, its value in words, who set it, and what it is about."""

    key: str
    said: str
    origin: str
    about: str


def policy_lines(job: Job, viewer: Viewer, *, with_payloads: bool) -> tuple[list[PolicyLine], list[PolicyLine]]:
    """Return the policies to show, and those that are as built in and of less interest."""
    shown: list[PolicyLine] = []
    others: list[PolicyLine] = []
    for key, setting in job.settings.effective().items():
        if key in _ELSEWHERE:
            continue
        is_hidden = key in _HIDDEN and setting.value is not None and not with_payloads
        said = "set, and hidden from viewers" if is_hidden else localized(policy_words(setting.value), viewer)
        line = PolicyLine(key, said, origin_words(job, key, setting.origin), POLICIES[key].sentence)
        is_first = setting.origin is not Level.DEFAULT or key in ALWAYS_SHOWN
        (shown if is_first else others).append(line)
    shown.sort(key=lambda line: ALWAYS_SHOWN.index(line.key) if line.key in ALWAYS_SHOWN else len(ALWAYS_SHOWN))
    return shown, others


def policy_words(given: object) -> str:
    """Return the value of a policy in words."""
    if given is None:
        return "none"
    if isinstance(given, bool):
        return "yes" if given else "no"
    if isinstance(given, Retry):
        return _retry_words(given)
    if isinstance(given, Payload):
        return json.dumps(given.read(), ensure_ascii=False)
    return _data_words(as_data(given))


def _data_words(data: object) -> str:
    if isinstance(data, Mapping):
        return ", ".join(f"{key} {_data_words(part)}" for key, part in data.items()) or "none"
    if isinstance(data, (list, tuple)):
        return ", ".join(map(_data_words, data)) or "none"
    return "none" if data is None else re.sub(r"\b(\d+)h\b", _in_days, str(data))


def _in_days(hours: re.Match[str]) -> str:
    """Return whole days as days: `720h` is `30d`, and `36h` stays."""
    days, rest = divmod(int(hours[1]), _DAY_HOURS)
    return hours[0] if rest or days < 2 else f"{days}d"


def _retry_words(retry: Retry) -> str:
    often = "without end" if retry.max is None else f"{retry.max} ×"
    parts = [
        f"{often} from {format_duration(retry.interval)}"
        if retry.factor != 1.0
        else f"{often} after {format_duration(retry.interval)}"
    ]
    data = as_data(retry)
    assert isinstance(data, Mapping), "a retry is a mapping"
    parts += [f"{key} {_data_words(part)}" for key, part in data.items() if key not in ("max", "interval")]
    return ", ".join(parts)


def origin_words(job: Job, key: str, origin: Level) -> str:
    """Return who set a policy. What a job has from a file says so."""
    if origin is Level.TEMPLATE and job.templates is not None:
        return f"template {job.templates.source(key)}"
    if origin is Level.APPLICATION and not _is_of_code(job):
        return "file defaults" if job.owner == _FILE_OWNER else "defaults"
    return "file" if origin is Level.JOB and job.owner == _FILE_OWNER else str(origin)


def _is_of_code(job: Job) -> bool:
    return job.owner.startswith("code") or job.owner == API
