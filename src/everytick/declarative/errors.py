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
    """An error whose arguments are its details, in the order of `keys`; its message is `text` filled with them."""

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
        """What the specification says is told with the error, as data."""
        return dict(zip(self.keys, self._given, strict=True))


class RegistrationsNotArrayError(_Specified):
    """What was given to initialize() is no list."""

    code = "registrations_not_array"
    text = "Registrations must be an array"


class RegistrationShapeError(_Specified):
    """A registration is not made of a name, an expression, an async function and a duration."""

    code = "registration_shape"
    keys = ("registrationIndex", "received")
    text = "Invalid registration shape: expected [string, string, function, Duration]"


class InvalidRegistrationError(_Specified):
    """A registration has the right shape, and a part that cannot be used."""

    code = "invalid_registration"
    keys = ("field", "value", "reason")
    text = "Invalid registration: {field} '{value}' {reason}"


class ScheduleDuplicateTaskError(_Specified):
    """Two registrations have one name."""

    code = "schedule_duplicate_task"
    keys = ("taskName",)
    text = 'Task with name "{taskName}" is already scheduled'


class NegativeRetryDelayError(_Specified):
    """A retry cannot come before the failure."""

    code = "negative_retry_delay"
    keys = ("retryDelayMs",)
    text = "Retry delay must be non-negative"


class SchedulerAlreadyActiveError(_Specified):
    """The scheduler is initializing or running; nothing was changed."""

    code = "scheduler_already_active"
    keys = ("currentState",)
    text = "Cannot initialize scheduler: scheduler is already {currentState}"


class TaskTryDeserializeError(_Specified):
    """What the store holds of a task cannot be read; everything else in it is as it was.

    The specification lays the message down; `details["taskName"]` and a note say which task it is.
    """

    task: str | None = None

    def about(self, task: str) -> Self:
        """Say whose state it is."""
        self.task = task
        self.add_note(f"in the persisted state of task '{shown(task, 300)}'")
        return self

    @property
    def details(self) -> Mapping[str, object]:
        """What the specification says is told with the error, and the task if it is known."""
        told = super().details
        return told if self.task is None else {**told, "taskName": self.task}

    def __reduce__(self) -> tuple[object, ...]:
        return (*super().__reduce__(), {"task": self.task, "__notes__": getattr(self, "__notes__", [])})

    code = "task_try_deserialize"
    keys: ClassVar[tuple[str, ...]] = ("field", "value", "expectedType")
    text = "Cannot read field '{field}': expected {expectedType}, got {value}"


class TaskMissingFieldError(TaskTryDeserializeError):
    """A field that every state document has is not there."""

    code = "task_missing_field"
    keys = ("field",)
    text = "Missing required field: {field}"


class TaskInvalidTypeError(TaskTryDeserializeError):
    """A field holds another kind of value than it must."""

    code = "task_invalid_type"
    keys = ("field", "value", "expectedType", "actualType")
    text = "Invalid type for field '{field}': expected {expectedType}, got {actualType}"


class TaskInvalidValueError(TaskTryDeserializeError):
    """A field holds a value that cannot be."""

    code = "task_invalid_value"
    keys = ("field", "value", "reason")
    text = "Invalid value for field '{field}': {reason}"


class TaskInvalidStructureError(TaskTryDeserializeError):
    """What stands in the place of a state document is none at all."""

    code = "task_invalid_structure"
    keys = ("value",)
    text = "Task state must be an object with fields, got {value}"


class UnexpectedError(_Specified):
    """Something went wrong that the specification has no name for; `details` holds its cause."""

    code = "declarative_unexpected"
    keys = ("operation", "cause")

    def _message(self) -> str:
        operation, cause = self._given
        return f"{operation} failed: {type(cause).__name__}: {shown(str(cause), 300)}"
