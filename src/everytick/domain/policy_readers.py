"""How the value of a policy is written, said once: read it, and tell it to type checkers, editors and people.

A `PolicyReader` goes into the declaration of a policy (`domain/config.py`). The keywords of the
API, the schema of job files and the pages of options follow from it.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from everytick.domain.durations import MICROSECOND, instant
from everytick.domain.names import checked_name
from everytick.domain.payload import payload
from everytick.domain.policy_checks import LARGEST, choice, length, names, refused, switch, whole
from everytick.domain.schedule import Schedule

Schema: TypeAlias = dict[str, Any]
"""JSON Schema of what a file may say. It is for editors; what is accepted is decided by `read`."""

DURATION: Schema = {
    "type": "string",
    "pattern": r"^(P.+|([0-9]+(\.[0-9]+)?(ms|us|[wdhms]) ?)+)$",
    "examples": ["30s", "1h30m", "PT5M"],
}
TEXT: Schema = {"type": "string"}
NAMES: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
SWITCH: Schema = {"type": "boolean"}
SCHEDULE: Schema = {
    "anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}],
    "examples": ["30 2 * * 1-5", "every 10s", "R12/2024-01-31T09:00:00[Europe/Berlin]/P1M"],
}


def or_null(schema: Schema) -> Schema:
    """Return the schema of the same, or none at all."""
    return {"anyOf": [schema, {"type": "null"}]}


def table(required: tuple[str, ...] = (), **parts: Schema) -> Schema:
    """Return the schema of a table with these keys and no others."""
    schema: Schema = {"type": "object", "additionalProperties": False, "properties": parts}
    return {**schema, "required": list(required)} if required else schema


def described(schema: Schema, sentence: str) -> Schema:
    """Return the schema with a sentence for people."""
    return {**schema, "description": sentence}


class PolicyReader(NamedTuple):
    """How one kind of value is written.

    `read` takes the policy's name and anything at all; it returns the value or refuses it with
    alternatives. `types` is the annotation of the keyword, and `python` an example of what only
    Python can say. `choices` are the words to choose from. `base` is the least table that is
    accepted: upon it the parts of a table can be checked one by one.
    """

    read: Callable[[str, Any], object]
    schema: Schema
    types: str
    python: str = ""
    choices: type[StrEnum] | None = None
    base: Mapping[str, object] | None = None
    is_optional: bool = False


def or_none(reader: PolicyReader) -> PolicyReader:
    """Return the reader that also takes None, for none."""

    def read(key: str, given: object) -> object:
        return None if given is None else reader.read(key, given)

    return reader._replace(read=read, schema=or_null(reader.schema), is_optional=True)


def one_of(kind: type[StrEnum], read: Callable[[object], object] | None = None) -> PolicyReader:
    """Return the reader of one word of several; `read` refuses what the words alone do not tell."""
    return PolicyReader(
        (lambda key, given: choice(key, kind, given)) if read is None else own(read),
        {"enum": [str(word) for word in kind]},
        f"{kind.__name__}Word",
        choices=kind,
    )


def duration(least: timedelta = MICROSECOND, *instead: str) -> PolicyReader:
    """Return the reader of a length of time that is not shorter than `least`."""
    return PolicyReader(lambda key, given: length(key, given, least, *instead), DURATION, "Duration")


def _length_or_none(key: str, given: object) -> timedelta | None:
    return None if given is None else length(key, given, MICROSECOND, f"{key}=None, for none")


OPTIONAL_DURATION = or_none(duration())._replace(read=_length_or_none)
"""A length of time that is not zero, or None for none."""


def count(least: int, *instead: str, most: int = LARGEST) -> PolicyReader:
    """Return the reader of a whole number within its bounds."""
    bounds = {"minimum": least} if most == LARGEST else {"minimum": least, "maximum": most}
    return PolicyReader(
        lambda key, given: whole(key, given, least, most, *instead), {"type": "integer", **bounds}, "int"
    )


def own(read: Callable[[Any], object]) -> Callable[[str, Any], object]:
    """Return what reads values of one policy alone, and knows its name already."""
    return lambda key, given: read(given)


def _schedule(key: str, given: object) -> Schedule | None:
    """Return the schedule; texts are read before, where calendars are known."""
    if given is None or isinstance(given, Schedule):
        return given
    raise refused(key, given, "is not a schedule", f'{key}=cron("0 6 * * *")')


ON_OR_OFF = PolicyReader(switch, SWITCH, "bool")
NAME = PolicyReader(checked_name, TEXT, "str")
SET_OF_NAMES = PolicyReader(names, NAMES, "str | Iterable[str]", python='{"nightly", "billing"}')
MOMENT = PolicyReader(
    own(instant), {**TEXT, "examples": ["2026-01-31T09:00:00Z"]}, "datetime | str", python="datetime(…, tzinfo=UTC)"
)
JSON = PolicyReader(own(payload), {}, "Any")
OPTIONAL_SCHEDULE = or_none(PolicyReader(_schedule, SCHEDULE, "Schedule | str", python='cron("0 6 * * *")'))
