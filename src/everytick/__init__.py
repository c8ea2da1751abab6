"""everytick: every tick, exactly once.

The names below are the public ones; nothing else is API. They are resolved when they are
first asked for, so that `import everytick` loads none of them.
"""

TYPE_CHECKING = False  # type checkers know better; importing it would cost more than the rest of this file

if TYPE_CHECKING:
    from everytick.domain.schedule import Schedule as Schedule
    from everytick.errors import (
        CronCalculationError as CronCalculationError,
    )
    from everytick.errors import (
        CronExpressionInvalidError as CronExpressionInvalidError,
    )
    from everytick.errors import (
        DefinitionError as DefinitionError,
    )
    from everytick.errors import (
        EverytickError as EverytickError,
    )
    from everytick.errors import (
        InvalidSchedule as InvalidSchedule,
    )
    from everytick.schedules.calendars import Calendar as Calendar
    from everytick.schedules.calendars import calendar as calendar
    from everytick.schedules.codec import schedule as schedule
    from everytick.schedules.combine import any_of as any_of
    from everytick.schedules.cron import cron as cron
    from everytick.schedules.interval import every as every
    from everytick.schedules.interval import repeat as repeat
    from everytick.schedules.once import after_completion as after_completion
    from everytick.schedules.once import once as once

__version__ = "0.1.0.dev0"

_HOMES = {
    "Calendar": "schedules.calendars",
    "CronCalculationError": "errors",
    "CronExpressionInvalidError": "errors",
    "DefinitionError": "errors",
    "DuplicateDefinition": "errors",
    "EverytickError": "errors",
    "FieldParseError": "errors",
    "InvalidCronExpressionError": "errors",
    "InvalidDuration": "errors",
    "InvalidInstant": "errors",
    "InvalidName": "errors",
    "InvalidPolicies": "errors",
    "InvalidSchedule": "errors",
    "MissingExtra": "errors",
    "Schedule": "domain.schedule",
    "UnboundSchedule": "errors",
    "after_completion": "schedules.once",
    "any_of": "schedules.combine",
    "calendar": "schedules.calendars",
    "cron": "schedules.cron",
    "every": "schedules.interval",
    "once": "schedules.once",
    "repeat": "schedules.interval",
    "schedule": "schedules.codec",
    "zone_data": "schedules.timezones",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'everytick' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(f"everytick.{home}"), name)
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
