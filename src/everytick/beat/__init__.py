"""Beats: everytick in the place of the part of a queue that says when work is due.

`everytick.beat.celery` is a scheduler for Celery. The names below are a beat for any queue: schedules in a registry,
their state in Redis. They are resolved when they are first asked for, so that neither needs what only the other does.
"""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from everytick.beat.celery_queue import CeleryQueue
    from everytick.beat.definition import Priority, Schedule, ScheduleState
    from everytick.beat.lock import ScheduleLock
    from everytick.beat.logs import JsonLog
    from everytick.beat.problems import DuplicateSchedule, InvalidRegistration, InvalidTimezone, RegistrationFailed
    from everytick.beat.queues import BatchQueue, EnqueuedJob, JobQueue
    from everytick.beat.redis_queue import RedisQueue
    from everytick.beat.registry import Registry
    from everytick.beat.service import BeatService

__all__ = [
    "BatchQueue",
    "BeatService",
    "CeleryQueue",
    "DuplicateSchedule",
    "EnqueuedJob",
    "InvalidRegistration",
    "InvalidTimezone",
    "JobQueue",
    "JsonLog",
    "Priority",
    "RedisQueue",
    "RegistrationFailed",
    "Registry",
    "Schedule",
    "ScheduleLock",
    "ScheduleState",
]

_HOME_OF = {
    "BatchQueue": "queues",
    "BeatService": "service",
    "CeleryQueue": "celery_queue",
    "DuplicateSchedule": "problems",
    "EnqueuedJob": "queues",
    "InvalidRegistration": "problems",
    "InvalidTimezone": "problems",
    "JobQueue": "queues",
    "JsonLog": "logs",
    "Priority": "definition",
    "RedisQueue": "redis_queue",
    "RegistrationFailed": "problems",
    "Registry": "registry",
    "Schedule": "definition",
    "ScheduleLock": "lock",
    "ScheduleState": "definition",
}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'everytick.beat' has no attribute {name!r}")
    from importlib import import_module

    attribute = globals()[name] = getattr(import_module(f"everytick.beat.{home}"), name)
    return attribute


def __dir__() -> list[str]:
    return list(__all__)
