"""everytick: every tick, exactly once.

The names below are the public ones; nothing else is API. They are resolved when they are
first asked for, so that `import everytick` loads none of them.
"""

TYPE_CHECKING = False  # type checkers know better; importing it would cost more than the rest of this file

if TYPE_CHECKING:
    from everytick.answers.values import JobStatus, JobVersion, Preview, RolloutStatus, UpcomingRun, VersionDiff
    from everytick.app import Everytick
    from everytick.app.backfills import Backfill
    from everytick.app.definition import Definition, JobFunction
    from everytick.app.handle import Handle
    from everytick.app.history import History
    from everytick.app.templates import TemplateDefinition
    from everytick.deciding.explanation import Explanation, Verdict
    from everytick.deciding.forecast import LikelyBreach
    from everytick.deciding.revise import Revision
    from everytick.domain.backfills import BackfillRecord, BackfillStatus
    from everytick.domain.changes import Change
    from everytick.domain.config import UNSET
    from everytick.domain.dependencies import Dependency
    from everytick.domain.limits import Limits, Rate
    from everytick.domain.occurrence import Cause, EndedOccurrence, Occurrence
    from everytick.domain.policies import backfill_from, bounded_window
    from everytick.domain.promise_policies import PromiseKind
    from everytick.domain.promises import Breach, BreachRecord, PromiseRecord
    from everytick.domain.proposals import Proposal
    from everytick.domain.report import ExecutionReport
    from everytick.domain.retry import Retry
    from everytick.domain.rollouts import Rollout
    from everytick.domain.schedule import Schedule
    from everytick.domain.statuses import OccurrenceStatus
    from everytick.domain.templates import Template
    from everytick.errors import (
        AlreadyRunning,
        Conflict,
        CronCalculationError,
        CronExpressionInvalidError,
        DefinitionError,
        DefinitionWarning,
        DuplicateDefinition,
        EverytickError,
        Fenced,
        FieldParseError,
        GiveUp,
        InvalidCronExpressionError,
        InvalidDuration,
        InvalidInstant,
        InvalidLimit,
        InvalidName,
        InvalidPayload,
        InvalidPolicies,
        InvalidSchedule,
        InvalidSetting,
        JobDisabled,
        MissingExtra,
        MoveRefused,
        NeedsApproval,
        NeedsConfirmation,
        NotFound,
        OccurrenceExists,
        PlanMoved,
        RecoveryFailed,
        SchemaMismatch,
        StoreArriving,
        StoreBroken,
        StoreGone,
        StoreMoved,
        StoreUnavailable,
        TooManyEditions,
        TransactionsUnsupported,
        TryAgain,
        UnboundSchedule,
        VersionConflict,
    )
    from everytick.node.events import Event, Happening
    from everytick.runners.context import Context, current
    from everytick.runners.receivers import command, email, http, ping, webhook
    from everytick.runners.targets import EnvironmentValue
    from everytick.schedules.calendars import Calendar, calendar
    from everytick.schedules.codec import schedule, schedule_kind
    from everytick.schedules.combine import any_of
    from everytick.schedules.cron import cron
    from everytick.schedules.interval import every, repeat
    from everytick.schedules.once import after_completion, on_request, once
    from everytick.schedules.timezones import zone_data
    from everytick.stores.base import JobRecord, NodeRecord, Whole
    from everytick.stores.moving.move import MovedStore, move_store

__version__ = "0.1.0.dev0"

_HOMES = {
    "answers.values": (
        "JobStatus",
        "JobVersion",
        "Preview",
        "RolloutStatus",
        "UpcomingRun",
        "VersionDiff",
    ),
    "app": ("Everytick",),
    "app.backfills": ("Backfill",),
    "app.definition": (
        "Definition",
        "JobFunction",
    ),
    "app.handle": ("Handle",),
    "app.history": ("History",),
    "app.templates": ("TemplateDefinition",),
    "deciding.explanation": (
        "Explanation",
        "Verdict",
    ),
    "deciding.forecast": ("LikelyBreach",),
    "deciding.revise": ("Revision",),
    "domain.backfills": (
        "BackfillRecord",
        "BackfillStatus",
    ),
    "domain.changes": ("Change",),
    "domain.config": ("UNSET",),
    "domain.dependencies": ("Dependency",),
    "domain.limits": (
        "Limits",
        "Rate",
    ),
    "domain.occurrence": (
        "Cause",
        "EndedOccurrence",
        "Occurrence",
    ),
    "domain.policies": (
        "backfill_from",
        "bounded_window",
    ),
    "domain.promise_policies": ("PromiseKind",),
    "domain.promises": (
        "Breach",
        "BreachRecord",
        "PromiseRecord",
    ),
    "domain.proposals": ("Proposal",),
    "domain.report": ("ExecutionReport",),
    "domain.retry": ("Retry",),
    "domain.rollouts": ("Rollout",),
    "domain.schedule": ("Schedule",),
    "domain.statuses": ("OccurrenceStatus",),
    "domain.templates": ("Template",),
    "errors": (
        "AlreadyRunning",
        "Conflict",
        "CronCalculationError",
        "CronExpressionInvalidError",
        "DefinitionError",
        "DefinitionWarning",
        "DuplicateDefinition",
        "EverytickError",
        "Fenced",
        "FieldParseError",
        "GiveUp",
        "InvalidCronExpressionError",
        "InvalidDuration",
        "InvalidInstant",
        "InvalidLimit",
        "InvalidName",
        "InvalidPayload",
        "InvalidPolicies",
        "InvalidSchedule",
        "InvalidSetting",
        "JobDisabled",
        "MissingExtra",
        "MoveRefused",
        "NeedsApproval",
        "NeedsConfirmation",
        "NotFound",
        "OccurrenceExists",
        "PlanMoved",
        "RecoveryFailed",
        "SchemaMismatch",
        "StoreArriving",
        "StoreBroken",
        "StoreGone",
        "StoreMoved",
        "StoreUnavailable",
        "TooManyEditions",
        "TransactionsUnsupported",
        "TryAgain",
        "UnboundSchedule",
        "VersionConflict",
    ),
    "node.events": (
        "Event",
        "Happening",
    ),
    "runners.context": (
        "Context",
        "current",
    ),
    "runners.receivers": (
        "command",
        "email",
        "http",
        "ping",
        "webhook",
    ),
    "runners.targets": ("EnvironmentValue",),
    "schedules.calendars": (
        "Calendar",
        "calendar",
    ),
    "schedules.codec": (
        "schedule",
        "schedule_kind",
    ),
    "schedules.combine": ("any_of",),
    "schedules.cron": ("cron",),
    "schedules.interval": (
        "every",
        "repeat",
    ),
    "schedules.once": (
        "after_completion",
        "on_request",
        "once",
    ),
    "schedules.timezones": ("zone_data",),
    "stores.base": (
        "JobRecord",
        "NodeRecord",
        "Whole",
    ),
    "stores.moving.move": (
        "MovedStore",
        "move_store",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "UNSET",
    "AlreadyRunning",
    "Backfill",
    "BackfillRecord",
    "BackfillStatus",
    "Breach",
    "BreachRecord",
    "Calendar",
    "Cause",
    "Change",
    "Conflict",
    "Context",
    "CronCalculationError",
    "CronExpressionInvalidError",
    "Definition",
    "DefinitionError",
    "DefinitionWarning",
    "Dependency",
    "DuplicateDefinition",
    "EndedOccurrence",
    "EnvironmentValue",
    "Event",
    "Everytick",
    "EverytickError",
    "ExecutionReport",
    "Explanation",
    "Fenced",
    "FieldParseError",
    "GiveUp",
    "Handle",
    "Happening",
    "History",
    "InvalidCronExpressionError",
    "InvalidDuration",
    "InvalidInstant",
    "InvalidLimit",
    "InvalidName",
    "InvalidPayload",
    "InvalidPolicies",
    "InvalidSchedule",
    "InvalidSetting",
    "JobDisabled",
    "JobFunction",
    "JobRecord",
    "JobStatus",
    "JobVersion",
    "LikelyBreach",
    "Limits",
    "MissingExtra",
    "MoveRefused",
    "MovedStore",
    "NeedsApproval",
    "NeedsConfirmation",
    "NodeRecord",
    "NotFound",
    "Occurrence",
    "OccurrenceExists",
    "OccurrenceStatus",
    "PlanMoved",
    "Preview",
    "PromiseKind",
    "PromiseRecord",
    "Proposal",
    "Rate",
    "RecoveryFailed",
    "Retry",
    "Revision",
    "Rollout",
    "RolloutStatus",
    "Schedule",
    "SchemaMismatch",
    "StoreArriving",
    "StoreBroken",
    "StoreGone",
    "StoreMoved",
    "StoreUnavailable",
    "Template",
    "TemplateDefinition",
    "TooManyEditions",
    "TransactionsUnsupported",
    "TryAgain",
    "UnboundSchedule",
    "UpcomingRun",
    "Verdict",
    "VersionConflict",
    "VersionDiff",
    "Whole",
    "after_completion",
    "any_of",
    "backfill_from",
    "bounded_window",
    "calendar",
    "command",
    "cron",
    "current",
    "email",
    "every",
    "http",
    "move_store",
    "on_request",
    "once",
    "ping",
    "repeat",
    "schedule",
    "schedule_kind",
    "webhook",
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
