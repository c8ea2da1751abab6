"""What viewers do not see: payloads, results, errors and where output is. Their keys stay, with nothing in them."""

from collections.abc import Iterable, Mapping
from typing import Any

from everytick.access.people import Person
from everytick.answers.wire import plain
from everytick.domain.headlines import headline
from everytick.domain.statuses import OccurrenceStatus
from everytick.web.parked_reasons import WHY_PARKED_HIDDEN, why_parked, without_why_parked

_NOTHING: Mapping[str, Any] = {
    "payload": None,
    "overrides": {},
    "result": None,
    "results": {},
    "returned": None,
    "error": None,
    "last_error": None,
    "log": None,
    "progress": None,
    "headline": "",
}
_HIDDEN = "hidden"
_FAILED = frozenset({OccurrenceStatus.FAILED, OccurrenceStatus.FAILED_STALE, OccurrenceStatus.COMPLETED_WITH_ERRORS})


def shown_to(who: Person, data: Any, tags: Iterable[str] = ()) -> Any:
    """Return the data as this person may see them, of a job with these tags."""
    return data if who.sees_payloads(tags) else without_payloads(plain(data))


def without_payloads(data: Any) -> Any:
    """Return the data without payloads, results and errors."""
    if isinstance(data, list):
        return [without_payloads(item) for item in data]
    if not isinstance(data, dict):
        return data
    if data.keys() >= {"part", "old", "new"}:
        return _part(data)
    return {key: _value(key, value) for key, value in data.items()}


def _value(key: str, found: Any) -> Any:
    if key in _NOTHING:
        return _NOTHING[key]
    if key == "parked_reason":
        return found and WHY_PARKED_HIDDEN
    if key in ("policies", "application") and isinstance(found, dict):
        # Of a definition: a policy that is not there reads back, one that is null may not.
        return {name: without_payloads(value) for name, value in found.items() if name != "payload"}
    return without_payloads(found)


def _part(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a definition that differs. The text of a task may hold a payload of its own."""
    is_private = data["part"] == "payload" or str(data["part"]).startswith("task ")
    return {**data, "old": _HIDDEN, "new": _HIDDEN} if is_private else dict(data)


def parked_shown_to(who: Person, parked: Mapping[str, str], tags: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Return why jobs are parked, by name, as this person may see it. `tags` are those of jobs, by name."""
    return {
        name: why_parked(reason, with_errors=who.sees_payloads(tags.get(name, ()))) for name, reason in parked.items()
    }


def glance_shown_to(who: Person, data: Mapping[str, Any], tags: Iterable[str] = ()) -> dict[str, Any]:
    """Return an occurrence at a glance: of a failure, a viewer does not see the headline."""
    is_private = data["status"] in _FAILED and not who.sees_payloads(tags)
    return {**data, "why": ""} if is_private else dict(data)


def explanation_shown_to(who: Person, data: Mapping[str, Any], tags: Iterable[str], error: str | None) -> Any:
    """Return an explanation: for a viewer, without the error or the reason of a parked job that its sentence quotes."""
    if who.sees_payloads(tags):
        return shown_to(who, data, tags)
    said = without_why_parked(str(data["text"]))
    for quoted in (error, headline(error)) if error else ():
        said = said.replace(quoted, _HIDDEN)
    return shown_to(who, {**data, "text": said}, tags)
