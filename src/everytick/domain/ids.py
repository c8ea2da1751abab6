"""The id rules, in one place: equal inputs give equal ids on every node, for ever.

Occurrence, run and attempt ids are version-5 UUIDs, so that any program can recompute them
with a standard library; jobs and tasks carry a plain SHA-1. Nothing here reads a clock
or a random source: a key that a caller did not give is made by the verb that is called, before the
first write, so that a repeated write finds its own effect.
"""

import re
from datetime import UTC, datetime
from hashlib import sha1

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_JOB_ID = re.compile("job_[0-9a-f]{40}")
_OCCURRENCE_ID = re.compile(r"occ_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OCCURRENCES = bytes.fromhex("6ba7b8109dad11d180b400c04fd430c8")
_RUNS = bytes.fromhex("6ba7b8119dad11d180b400c04fd430c8")
_ATTEMPTS = bytes.fromhex("6ba7b8129dad11d180b400c04fd430c8")
# RFC 9562 keeps two bits of the ninth byte for the variant: each hex digit has one it becomes.
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def job_id(name: str, nth: int = 1) -> str:
    """Return the id of the job first defined under this name.

    A rename keeps the id, so a later job of the old name may find it held: then `nth`
    counts on from 2 until an id is free.
    """
    text = f"job:{name}" if nth == 1 else f"job:{name}:{nth}"
    return "job_" + sha1(text.encode(), usedforsecurity=False).hexdigest()


def is_job_id(text: str) -> bool:
    """Tell whether a text is the id of a job, rather than a name."""
    return _JOB_ID.fullmatch(text) is not None


def task_id(job_id: str, name: str) -> str:
    """Return the id of the task of this name within a job."""
    return "task_" + sha1(f"task:{job_id}:{name}".encode(), usedforsecurity=False).hexdigest()


def occurrence_id(job_id: str, instant: datetime) -> str:
    """Return the id of an instant of a job, however it came to exist.

    A moved occurrence keeps the id of its original instant, a reschedule has that of its
    target, a backfill that of the instant it fills.
    """
    return "occ_" + _uuid5(_OCCURRENCES, f"{job_id}:{unix_text(instant)}")


def is_occurrence_id(text: str) -> bool:
    """Tell whether a text is the id of an occurrence."""
    return _OCCURRENCE_ID.fullmatch(text) is not None


def trigger_id(job_id: str, key: str, nth: int = 1) -> str:
    """Return the id of the occurrence that a trigger with this key asks for.

    A key is free again after a failure: `nth` counts the occurrences that were asked for by it.
    """
    return "occ_" + _uuid5(_OCCURRENCES, f"{job_id}:{_counted('trigger', nth)}:{key}")


def replay_id(job_id: str, key: str, nth: int = 1) -> str:
    """Return the id of the occurrence that a replay with this key asks for."""
    return "occ_" + _uuid5(_OCCURRENCES, f"{job_id}:{_counted('replay', nth)}:{key}")


def create_id(job_id: str, version: int) -> str:
    """Return the id of the occurrence that a definition runs at once when it is created."""
    return "occ_" + _uuid5(_OCCURRENCES, f"{job_id}:create:{version}")


def restart_id(job_id: str, instant: datetime) -> str:
    """Return the id of the occurrence that follows an instant of the restart schedule."""
    return "occ_" + _uuid5(_OCCURRENCES, f"{job_id}:restart:{unix_text(instant)}")


def backfill_id(job_id: str, key: str) -> str:
    """Return the id of a backfill as a whole."""
    return "backfill_" + _uuid5(_OCCURRENCES, f"{job_id}:backfill:{key}")


def backfill_again_id(job_id: str, key: str, instant: datetime) -> str:
    """Return the id of an instant that the backfill of this key runs though it already has an occurrence."""
    return "occ_" + _uuid5(_OCCURRENCES, f"{job_id}:backfill:{key}:{unix_text(instant)}")


def run_id(occurrence_id: str, task_id: str) -> str:
    """Return the id of one task within one occurrence."""
    return "run_" + _uuid5(_RUNS, f"{occurrence_id}:{task_id}")


def attempt_id(run_id: str, number: int) -> str:
    """Return the id of the n-th try at a run, counted from 1."""
    return "attempt_" + _uuid5(_ATTEMPTS, f"{run_id}:{number}")


def unix_text(instant: datetime) -> str:
    """Return whole seconds since 1970, and `.ffffff` after them where the instant has a fraction.

    The seconds are the floor, also before 1970, and the fraction is what is left above
    it: half a second before 1970 is `-1.500000`.
    """
    since = instant - EPOCH
    seconds = since.days * 86_400 + since.seconds
    return f"{seconds}.{since.microseconds:06d}" if since.microseconds else str(seconds)


def _counted(cause: str, nth: int) -> str:
    return cause if nth == 1 else f"{cause}@{nth}"


def _uuid5(namespace: bytes, text: str) -> str:
    """Equal to `str(uuid.uuid5(namespace, text))` at a fraction of its time: no object is built to be printed."""
    digest = sha1(namespace + text.encode(), usedforsecurity=False).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-{_VARIANT[digest[16]]}{digest[17:20]}-{digest[20:32]}"
