"""everytick: every tick, exactly once.

The names below are the public ones; nothing else is API. They are resolved when they are
first asked for, so that `import everytick` loads none of them.
"""

TYPE_CHECKING = False  # type checkers know better; importing it would cost more than the rest of this file

if TYPE_CHECKING:
    from everytick.app import Everytick
    from everytick.domain.config import UNSET
    from everytick.domain.policies import backfill_from, bounded_window
    from everytick.domain.retry import Retry
    from everytick.domain.schedule import Schedule
    from everytick.errors import (
        CronCalculationError,
        CronExpressionInvalidError,
        DefinitionError,
        DefinitionWarning,
        DuplicateDefinition,
        EverytickError,
        FieldParseError,
        InvalidCronExpressionError,
        InvalidDuration,
        InvalidInstant,
        InvalidName,
        InvalidPayload,
        InvalidPolicies,
        InvalidSchedule,
        MissingExtra,
        UnboundSchedule,
    )
    from everytick.schedules.calendars import Calendar, calendar
    from everytick.schedules.codec import schedule
    from everytick.schedules.combine import any_of
    from everytick.schedules.cron import cron
    from everytick.schedules.interval import every, repeat
    from everytick.schedules.once import after_completion, once
    from everytick.schedules.timezones import zone_data

__version__ = "0.1.0.dev0"

_HOMES = {
    "app": ("Everytick",),
    "domain.config": ("UNSET",),
    "domain.policies": ("backfill_from", "bounded_window"),
    "domain.retry": ("Retry",),
    "domain.schedule": ("Schedule",),
    "errors": (
        "CronCalculationError",
        "CronExpressionInvalidError",
        "DefinitionError",
        "DefinitionWarning",
        "DuplicateDefinition",
        "EverytickError",
        "FieldParseError",
        "InvalidCronExpressionError",
        "InvalidDuration",
        "InvalidInstant",
        "InvalidName",
        "InvalidPayload",
        "InvalidPolicies",
        "InvalidSchedule",
        "MissingExtra",
        "UnboundSchedule",
    ),
    "schedules.calendars": ("Calendar", "calendar"),
    "schedules.codec": ("schedule",),
    "schedules.combine": ("any_of",),
    "schedules.cron": ("cron",),
    "schedules.interval": ("every", "repeat"),
    "schedules.once": ("after_completion", "once"),
    "schedules.timezones": ("zone_data",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "UNSET",
    "Calendar",
    "CronCalculationError",
    "CronExpressionInvalidError",
    "DefinitionError",
    "DefinitionWarning",
    "DuplicateDefinition",
    "Everytick",
    "EverytickError",
    "FieldParseError",
    "InvalidCronExpressionError",
    "InvalidDuration",
    "InvalidInstant",
    "InvalidName",
    "InvalidPayload",
    "InvalidPolicies",
    "InvalidSchedule",
    "MissingExtra",
    "Retry",
    "Schedule",
    "UnboundSchedule",
    "after_completion",
    "any_of",
    "backfill_from",
    "bounded_window",
    "calendar",
    "cron",
    "every",
    "once",
    "repeat",
    "schedule",
    "zone_data",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'everytick' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"everytick.{home}"), name)
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
