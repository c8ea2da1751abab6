"""Parameters: what the functions of a job take from a payload, as a definition keeps it.

A payload is judged by it where the functions are not at hand: on the command line, or in another application.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from everytick.domain.names import did_you_mean
from everytick.errors import InvalidPayload, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Parameters: TypeAlias = tuple[tuple[str, str], ...]
"""Each parameter with the kinds of JSON that it takes: `int`, `str|None`, `any`."""

ANY = "any"
EVERY_KEY = "*"
"""Stands among the parameters of a function that sees the whole payload: by its context, or by **keywords."""

_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "list": "a list",
    "dict": "an object",
    "None": "null",
}
KINDS = frozenset(_WORDS)


def refuse_unfit(job: str, tasks: Iterable[Parameters | None], payload: object) -> None:
    """Return if the tasks of the job can take this payload.

    Each key must be a parameter of some task, unless one sees them all, and have a kind of value that every task which
    names it takes. None stands for a task that is no function: it may use the whole payload.
    """
    of_tasks = list(tasks)
    known = dict.fromkeys(name for parameters in of_tasks if parameters is not None for name, _ in parameters)
    if not isinstance(payload, dict):
        _refuse_nameless(job, payload, [name for name in known if name != EVERY_KEY])
        return
    sees_all = EVERY_KEY in known or any(parameters is None for parameters in of_tasks)
    for key, given in payload.items():
        if key not in known:
            if sees_all:
                continue
            reason = f"has '{shown(str(key), 60)}', which is no parameter of its tasks{did_you_mean(str(key), known)}"
            listed = ", ".join(f"'{shown(name)}'" for name in sorted(known)) or "none"
            raise InvalidPayload(f"the payload for job '{shown(job)}'", f"{reason}; there are: {listed}")
        for parameters in of_tasks:
            _refuse_kind(job, key, given, dict(parameters or ()))


def _refuse_nameless(job: str, payload: object, known: list[str]) -> None:
    """Refuse a payload that is no object where a function takes parameters: they are filled by name."""
    if payload is not None and known:
        given = _WORDS.get(type(payload).__name__, "no object")
        reason = f'is {given}, and an object fills the parameters by name: {{"{shown(sorted(known)[0])}": …}}'
        raise InvalidPayload(f"the payload for job '{shown(job)}'", reason)


def _refuse_kind(job: str, key: str, given: object, parameters: Mapping[str, str]) -> None:
    kinds = parameters.get(key, ANY).split("|")
    if ANY in kinds or _is_one_of(given, kinds):
        return
    wanted = " or ".join(_WORDS[kind] for kind in kinds)
    value = shown(repr(given), 60)
    raise InvalidPayload(f"the payload for job '{shown(job)}'", f"has '{shown(key)}': {value}, and it must be {wanted}")


def _is_one_of(given: object, kinds: Iterable[str]) -> bool:
    if isinstance(given, float) and given.is_integer():
        return "float" in kinds or "int" in kinds
    if isinstance(given, int) and not isinstance(given, bool):
        return "int" in kinds or "float" in kinds
    return ("None" if given is None else type(given).__name__) in kinds
