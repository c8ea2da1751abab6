"""Names: every text but the empty one may name a task. Texts that cannot name a job are escaped.

A character that a job's name cannot have is written as `%` and two hexadecimal digits for each
of its bytes, and so is `%` itself. What is too long ends in its own hash. Most names need neither.
"""

from hashlib import sha1
from urllib.parse import unquote_to_bytes

from everytick.domain.names import LONGEST_NAME, checked_name
from everytick.errors import InvalidName

LONGEST_SCHEDULER = 100
"""Characters of a scheduler's identifier: it is a part of the name of each of its jobs."""

_CUT = "%~"
"""Comes before the hash in a name that was cut. No other name contains it."""


def checked_scheduler(name: object) -> str:
    """Return the name if a scheduler may have it: it is part of the names of its jobs."""
    checked = checked_name("scheduler", name)
    if ":" in checked:
        raise InvalidName("scheduler", checked, "has a colon, which divides it from the names of tasks: leave it out")
    if len(checked) > LONGEST_SCHEDULER:
        raise InvalidName(
            "scheduler", checked, f"has {len(checked)} characters: at most {LONGEST_SCHEDULER} are allowed"
        )
    return checked


def prefix_of(scheduler: str) -> str:
    """Return the prefix of the names of this scheduler's jobs."""
    return f"declarative:{scheduler}:"


def job_name(scheduler: str, task: str) -> str:
    """Return the name of the task's job. No two tasks share one."""
    prefix = prefix_of(scheduler)
    plain = prefix + task
    if "%" not in task and len(plain) <= LONGEST_NAME and plain.isprintable() and not plain[-1].isspace():
        return plain
    return _shortened(prefix + _escaped(task), task)


def task_name(scheduler: str, job: str) -> str:
    """Return the name of the job's task. Of a name that was cut, return its beginning."""
    written = job.removeprefix(prefix_of(scheduler))
    return unquote_to_bytes(written).decode("utf-8", "surrogatepass") if _CUT not in written else written


def _escaped(task: str) -> str:
    kept_length = len(task.rstrip())
    return "".join(
        character if character != "%" and character.isprintable() and place < kept_length else _as_bytes(character)
        for place, character in enumerate(task)
    )


def _as_bytes(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def _shortened(name: str, task: str) -> str:
    if len(name) <= LONGEST_NAME:
        return name
    digest = _CUT + sha1(task.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    return name[: LONGEST_NAME - len(digest)] + digest
