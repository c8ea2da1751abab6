"""Shell completion of job names, which only the store knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def job_argument(name: str, **attributes: Any) -> Callable[[F], F]:
    """Return an argument that is the name of a job, completed by those in the store."""
    return click.argument(name, shell_complete=job_names, **attributes)


def job_names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the job names that begin with this text, none after any error: a completion must print no errors."""
    from everytick.cli.asking import look

    try:
        with ctx.scope(cleanup=False):
            records = look(lambda app: app.jobs())
    except Exception:  # noqa: BLE001, half a line is no place for an error
        return []
    return [
        record.job.name
        for record in records
        if record.job.name.startswith(incomplete) and record.job.name.isprintable()
    ]
