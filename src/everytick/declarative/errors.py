"""The errors of the declarative specification: names, messages and keys of `details` as it writes them (S2-040…057).

    DeclarativeError
    ├── RegistrationsNotArrayError            initialize() got no list
    ├── RegistrationShapeError                a registration has another length or other types
    ├── InvalidRegistrationError              … or a part that says nothing sensible
    ├── ScheduleDuplicateTaskError            one name twice
    ├── NegativeRetryDelayError
    ├── SchedulerAlreadyActiveError           initialize() while initializing or running
    ├── InvalidCronExpressionError            in `everytick.errors`, and so are the next three
    │   └── CronExpressionInvalidError
    ├── FieldParseError
    ├── CronCalculationError
    ├── TaskTryDeserializeError               a state document cannot be read
    │   ├── TaskMissingFieldError
    │   ├── TaskInvalidTypeError
    │   ├── TaskInvalidValueError
    │   └── TaskInvalidStructureError
    └── UnexpectedError                       anything else that went wrong, with its cause

`details` is what a program reads; values in it are the given ones, while a message shows
them shortened and without control characters.
"""

from collections.abc import Mapping
from typing import ClassVar, Self

from everytick.errors import DeclarativeError, shown


class _Specified(DeclarativeError):
    """An error whose arguments are its details, in the order of `keys`. Its message is `text` with the details."""

    keys: ClassVar[tuple[str, ...]] = ()
    text: ClassVar[str] = ""

    def __init__(self, *given: object) -> None:
        self._given = given
        super().__init__(self._message())

    def _message(self) -> str:
        return self.text.format(**{key: shown(given, 300) for key, given in self.details.items()})

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._given

    @property
    def details(self) -> Mapping[str, object]:
        """The details of the error, by the keys of the specification."""
        return dict(zip(self.keys, self._given, strict=True))


class RegistrationsNotArrayError(_Specified):
    """The argument of initialize() is no list."""

    code = "registrations_not_array"
    text = "Registrations must be an array"


class RegistrationShapeError(_Specified):
    """A registration is not made of a name, an expression, an async function and a duration."""

    code = "registration_shape"
    keys = ("registrationIndex", "received")
    text = "Invalid registration shape: expected [string, string, function, Duration]"


class InvalidRegistrationError(_Specified):
    """A registration has the right shape and an invalid part."""

    code = "invalid_registration"
    keys = ("field", "value", "reason")
    text = "Invalid registration: {field} '{value}' {reason}"


class ScheduleDuplicateTaskError(_Specified):
    """Two registrations have the same name."""

    code = "schedule_duplicate_task"
    keys = ("taskName",)
    text = 'Task with name "{taskName}" is already scheduled'


class NegativeRetryDelayError(_Specified):
    """A retry delay is negative."""

    code = "negative_retry_delay"
    keys = ("retryDelayMs",)
    text = "Retry delay must be non-negative"


class SchedulerAlreadyActiveError(_Specified):
    """The scheduler is initializing or running; nothing was changed."""

    code = "scheduler_already_active"
    keys = ("currentState",)
    text = "Cannot initialize scheduler: scheduler is already {currentState}"


class TaskTryDeserializeError(_Specified):
    """The stored state of a task cannot be read. The rest of the store is unchanged.

    The specification lays the message down; `details["taskName"]` and a note say which task it is.
    """

    task: str | None = None

    def about(self, task: str) -> Self:
        """Name the task whose state it is."""
        self.task = task
        self.add_note(f"in the persisted state of task '{shown(task, 300)}'")
        return self

    @property
    def details(self) -> Mapping[str, object]:
        """The details of the error, by the keys of the specification, and the task if it is known."""
        told = super().details
        return told if self.task is None else {**told, "taskName": self.task}

    def __reduce__(self) -> tuple[object, ...]:
        return (*super().__reduce__(), {"task": self.task, "__notes__": getattr(self, "__notes__", [])})

    code = "task_try_deserialize"
    keys: ClassVar[tuple[str, ...]] = ("field", "value", "expectedType")
    text = "Cannot read field '{field}': expected {expectedType}, got {value}"


class TaskMissingFieldError(TaskTryDeserializeError):
    """A required field of a state document is missing."""

    code = "task_missing_field"
    keys = ("field",)
    text = "Missing required field: {field}"


class TaskInvalidTypeError(TaskTryDeserializeError):
    """A field has a value of the wrong type."""

    code = "task_invalid_type"
    keys = ("field", "value", "expectedType", "actualType")
    text = "Invalid type for field '{field}': expected {expectedType}, got {actualType}"


class TaskInvalidValueError(TaskTryDeserializeError):
    """A field has an impossible value."""

    code = "task_invalid_value"
    keys = ("field", "value", "reason")
    text = "Invalid value for field '{field}': {reason}"


class TaskInvalidStructureError(TaskTryDeserializeError):
    """The stored value is no state document."""

    code = "task_invalid_structure"
    keys = ("value",)
    text = "Task state must be an object with fields, got {value}"


class UnexpectedError(_Specified):
    """An error that the specification has no name for. `details` has its cause."""

    code = "declarative_unexpected"
    keys = ("operation", "cause")

    def _message(self) -> str:
        operation, cause = self._given
        return f"{operation} failed: {type(cause).__name__}: {shown(str(cause), 300)}"
