"""Options that several verbs share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from everytick.cli.exits import Refused
from everytick.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")
T = TypeVar("T")

_WATCH_SECONDS = 2.0
"""How often --watch shows the answer again."""


def reading(function: F) -> F:
    """Add `--json` and `--utc`, which every reading verb has."""
    as_json = click.option("--json", "as_json", is_flag=True, help="Write one JSON document; times in UTC.")
    return as_json(in_utc(function))


def in_utc(function: F) -> F:
    """Add `--utc`."""
    return click.option("--utc", is_flag=True, help="Show and read times in UTC, not in this machine's zone.")(function)


def watchable(function: F) -> F:
    """Add `--watch`, which shows the answer again and again until Ctrl-C."""
    import time
    from functools import wraps

    @click.option("--watch", is_flag=True, help="At a terminal: show it anew every two seconds, until Ctrl-C.")
    @wraps(function)
    def watched(*args: Any, watch: bool, **kwargs: Any) -> Any:
        from everytick.cli.output import is_terminal

        if not watch:
            return function(*args, **kwargs)
        if kwargs.get("as_json") or not is_terminal():
            raise Refused("--watch needs a terminal and draws a table: leave it out here")
        while True:
            click.clear()
            function(*args, **kwargs)
            time.sleep(_WATCH_SECONDS)

    return cast("F", watched)


def sure(function: F) -> F:
    """Add `--yes`."""
    return click.option("--yes", is_flag=True, help="Do not ask; needed where no terminal can ask.")(function)


def agreed(work: Callable[[bool], T], yes: bool) -> T:
    """Return what the operation returns. If it is guarded and not confirmed yet, ask, and carry it out confirmed."""
    from everytick.errors import NeedsConfirmation

    try:
        return work(yes)
    except NeedsConfirmation as need:
        then = "propose it to a second person" if need.is_for_two else "go on"
        confirm(f"{need.what} ({need.cost}): {'; '.join(need.reasons)}; {then}?", False)
    return work(True)


def confirm(question: str, yes: bool) -> None:
    """Return if the user says yes. A verb that deletes asks on a terminal and needs `--yes` everywhere else."""
    import sys

    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(f"{question.rstrip('?')}: not a terminal, cannot ask for confirmation: pass --yes")
    from everytick.cli.output import safe

    if not click.confirm(safe(question), err=True):
        raise Refused("nothing was changed", Exit.FAILED)


def one_of(*words: str) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """Return a callback that refuses every other word, and says which one is near."""

    def checked(ctx: click.Context, parameter: click.Parameter, given: str | None) -> str | None:
        if given is not None and given not in words:
            raise _unknown_word(parameter, given, words)
        return given

    return checked


def status_option(function: F) -> F:
    """Add the option that names the statuses of occurrences."""
    said = "Only this status, like missed; may be repeated."
    return click.option("--status", multiple=True, metavar="STATUS", callback=_statuses, help=said)(function)


def _statuses(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse what is no status of an occurrence."""
    if given:
        from everytick.domain.statuses import OccurrenceStatus

        words = tuple(str(status) for status in OccurrenceStatus)
        for word in given:
            if word not in words:
                raise _unknown_word(parameter, word, words)
    return given


def _unknown_word(parameter: click.Parameter, given: str, words: tuple[str, ...]) -> click.UsageError:
    from everytick.domain.names import did_you_mean
    from everytick.errors import shown

    near, listed = did_you_mean(given, words), ", ".join(words)
    return click.UsageError(f"{parameter.opts[0]} {shown(given)} is not known{near}: give {listed}")
