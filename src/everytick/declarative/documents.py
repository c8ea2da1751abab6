"""State documents: the registration of a task, as one versioned JSON value on its job (S2-050…054, S2-060).

The document is part of the job's definition, so it can neither be lost nor be older than the
rest of it. When a task ran and how that ended is not repeated here: the core's own records say
so, and two truths could part in a crash.
"""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import lru_cache

from everytick.declarative.errors import (
    TaskInvalidStructureError,
    TaskInvalidTypeError,
    TaskInvalidValueError,
    TaskMissingFieldError,
    TaskTryDeserializeError,
)
from everytick.declarative.registrations import Registration, milliseconds
from everytick.domain.job import Job
from everytick.domain.values import value
from everytick.errors import InvalidSchedule
from everytick.schedules.cron import cron

VERSION = 1
"""The version of the document's form. It goes up with a change that older code cannot read."""

PREFIX = "declarative: "
"""The target of a declarative scheduler's task begins with this; the document follows."""

_NUMBER, _STRING = "number", "string"
_FIELDS = {
    "version": _NUMBER,
    "name": _STRING,
    "cronExpression": _STRING,
    "retryDelayMs": _NUMBER,
    "schedulerIdentifier": _STRING,
}


@value
class TaskDocument:
    """The registration of a task, and the instance of the scheduler that wrote it."""

    name: str
    cron_expression: str
    retry_delay: timedelta
    scheduler_identifier: str

    def says_the_same(self, registration: Registration) -> bool:
        """Whether the registration is identical: the same name, expression text and delay."""
        return (self.name, self.cron_expression, self.retry_delay) == (
            registration.name,
            registration.cron_expression,
            registration.retry_delay,
        )


def document_of(registration: Registration, identifier: str) -> TaskDocument:
    """Return the document that an instance writes for a registration."""
    return TaskDocument(registration.name, registration.cron_expression, registration.retry_delay, identifier)


def written(document: TaskDocument) -> str:
    """Return the target of a task that carries the document."""
    return target_of(
        {
            "version": VERSION,
            "name": document.name,
            "cronExpression": document.cron_expression,
            "retryDelayMs": milliseconds(document.retry_delay),
            "schedulerIdentifier": document.scheduler_identifier,
        }
    )


def target_of(data: object) -> str:
    """Return the target with this JSON value, unchecked."""
    return PREFIX + json.dumps(data, separators=(",", ":"))


def data_of(job: Job) -> object:
    """Return the JSON value on the job, unchecked; text that is not JSON is returned as text."""
    target: object = job.tasks[0].target if job.tasks else ""
    if not isinstance(target, str):
        return target
    text = target.removeprefix(PREFIX)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def read_document(data: object, is_name: Callable[[str], bool]) -> TaskDocument:
    """Return the document. Raise the specification's error for a wrong one, also if it names another task."""
    if not isinstance(data, Mapping):
        raise TaskInvalidStructureError(data)
    for field, kind in _FIELDS.items():
        _check_kind(data, field, kind)
    if data["version"] != VERSION:
        raise TaskInvalidValueError(
            "version", data["version"], f"is not a version that is known here, which is {VERSION}"
        )
    if not is_name(data["name"]):
        raise TaskInvalidValueError("name", data["name"], "is not the name of this task")
    if not data["schedulerIdentifier"]:
        raise TaskInvalidValueError("schedulerIdentifier", "", "is empty")
    return TaskDocument(
        data["name"],
        _expression(data["cronExpression"]),
        _delay(data["retryDelayMs"]),
        data["schedulerIdentifier"],
    )


def document_on(job: Job, task: str, is_name: Callable[[str], bool]) -> TaskDocument:
    """Return the document on the job of a task. The error of a wrong one names the task."""
    try:
        return read_document(data_of(job), is_name)
    except TaskTryDeserializeError as error:
        raise error.about(task) from error.__cause__


def _check_kind(data: Mapping[str, object], field: str, expected: str) -> None:
    if field not in data:
        raise TaskMissingFieldError(field)
    kind = kind_of(data[field])
    if kind != expected:
        raise TaskInvalidTypeError(field, data[field], expected, kind)


def kind_of(data: object) -> str:
    """Return the kind of a JSON value, in the words of JSON."""
    if data is None:
        return "null"
    kinds = ((bool, "boolean"), ((int, float), _NUMBER), (str, _STRING), ((list, tuple), "array"), (Mapping, "object"))
    return next((name for kind, name in kinds if isinstance(data, kind)), type(data).__name__)


@lru_cache(maxsize=4096)
def _expression(text: str) -> str:
    """Return the text if it is an expression. Many tasks share one, so the result is cached."""
    try:
        cron(text, dialect="posix")
    except InvalidSchedule as error:
        raise TaskInvalidValueError("cronExpression", text, str(error)) from error
    return text


def _delay(given: int | float) -> timedelta:
    longest = milliseconds(timedelta.max)
    if not 0 <= given <= longest:
        raise TaskInvalidValueError("retryDelayMs", given, f"must be from 0 to {longest:.0f}")
    micros = given * 1000 if isinstance(given, int) else round(given * 1000)
    return timedelta(microseconds=min(micros, timedelta.max // timedelta(microseconds=1)))
