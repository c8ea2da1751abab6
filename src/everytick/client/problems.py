"""Errors of a service, raised here as what they are there: the same classes, with what these know."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from everytick import errors
from everytick.errors import EverytickError

_BY_STATUS: Mapping[int, type[EverytickError]] = {
    401: errors.NotAllowed,
    403: errors.NotAllowed,
    404: errors.NotFound,
    409: errors.Conflict,
    412: errors.Conflict,
    413: errors.DefinitionError,
    415: errors.DefinitionError,
    422: errors.DefinitionError,
    429: errors.StoreUnavailable,
    503: errors.StoreUnavailable,
}
_NAMES = {"occurrence_id": "id"}
_NOT_TOLD = ("type", "title", "status", "detail", "code")


def error_of(told: Mapping[str, Any]) -> EverytickError:
    """Return the error that a problem tells of. Its text is the service's, and its attributes are the members."""
    kind = _CLASSES.get(str(told.get("code"))) or _BY_STATUS.get(int(told.get("status", 500)), EverytickError)
    error = kind.__new__(kind)
    Exception.__init__(error, str(told.get("detail", "the service has failed")))
    vars(error).update(
        {_NAMES.get(name, name): _value(name, value) for name, value in told.items() if name not in _NOT_TOLD}
    )
    return error


def _value(name: str, told: Any) -> Any:
    if name == "expires_at":
        return datetime.fromisoformat(told)
    return tuple(told) if isinstance(told, list) else told


def _all_kinds(kind: type[EverytickError]) -> Iterator[type[EverytickError]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _all_kinds(subclass)


# A class that another one has under a second name comes later, and does not take its code.
_CLASSES: dict[str, type[EverytickError]] = {}
for _kind in _all_kinds(EverytickError):
    _CLASSES.setdefault(_kind.code, _kind)
