"""The declarative scheduler: registrations in, callbacks run by the minute, on everytick's own core.

It implements a normative specification, whose words its names are; what they mean is told on
the page docs/declarative.md.
"""

from everytick.declarative.errors import (
    InvalidRegistrationError,
    NegativeRetryDelayError,
    RegistrationShapeError,
    RegistrationsNotArrayError,
    ScheduleDuplicateTaskError,
    SchedulerAlreadyActiveError,
    TaskInvalidStructureError,
    TaskInvalidTypeError,
    TaskInvalidValueError,
    TaskMissingFieldError,
    TaskTryDeserializeError,
    UnexpectedError,
)
from everytick.declarative.events import DeclarativeEvent
from everytick.declarative.scheduler import DeclarativeScheduler
from everytick.declarative.states import TaskState, state_document, task_states, write_state_document
from everytick.errors import (
    CronCalculationError,
    CronExpressionInvalidError,
    DeclarativeError,
    FieldParseError,
    InvalidCronExpressionError,
)

__all__ = [
    "CronCalculationError",
    "CronExpressionInvalidError",
    "DeclarativeError",
    "DeclarativeEvent",
    "DeclarativeScheduler",
    "FieldParseError",
    "InvalidCronExpressionError",
    "InvalidRegistrationError",
    "NegativeRetryDelayError",
    "RegistrationShapeError",
    "RegistrationsNotArrayError",
    "ScheduleDuplicateTaskError",
    "SchedulerAlreadyActiveError",
    "TaskInvalidStructureError",
    "TaskInvalidTypeError",
    "TaskInvalidValueError",
    "TaskMissingFieldError",
    "TaskState",
    "TaskTryDeserializeError",
    "UnexpectedError",
    "state_document",
    "task_states",
    "write_state_document",
]
