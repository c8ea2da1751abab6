"""The application of a Django project, and requests that wait for its transactions."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec
from urllib.parse import quote

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from everytick.app import Everytick
from everytick.app.definition import arguments
from everytick.domain.names import did_you_mean

if TYPE_CHECKING:
    from everytick.app.definition import JobFunction

P = ParamSpec("P")


def application() -> Everytick:
    """Return a new application with what the setting EVERYTICK says; what it leaves out follows from other settings.

    The store is `everytick.db` in BASE_DIR, the zone is TIME_ZONE, the name is the project's package.
    """
    given = getattr(settings, "EVERYTICK", {})
    if not isinstance(given, Mapping):
        raise ImproperlyConfigured('EVERYTICK must be a dict, like {"store": "postgresql://…"}')
    known = signature(Everytick).parameters
    for key in given:
        if key not in known:
            near = did_you_mean(str(key), known) or f"; there are: {', '.join(known)}"
            raise ImproperlyConfigured(f"EVERYTICK has an unknown key {key!r}{near}")
    defaults = {"store": _store_in_project(), "timezone": settings.TIME_ZONE or "UTC", "name": _project_name()}
    return Everytick(**{**defaults, **given})


def _store_in_project() -> str:
    folder = Path(getattr(settings, "BASE_DIR", "")).absolute()
    return f"sqlite:///{quote(str(folder / 'everytick.db'))}"


def _project_name() -> str:
    """Return the package of the settings: `mysite` of `mysite.settings`."""
    module: str | None = settings.SETTINGS_MODULE
    return module.partition(".")[0] if module else "django"


def trigger_on_commit(job: JobFunction[Any, P, Any], /, *args: P.args, **kwargs: P.kwargs) -> None:
    """Ask for a run of the job, called with these arguments, once the transaction of the default database commits.

    If that is rolled back, nothing is asked for. Outside of a transaction it is asked for at once. Arguments that do
    not fit the function are refused here and now.
    """
    from everytick.django import tick

    arguments(getattr(job, "__wrapped__", job), args, kwargs)
    transaction.on_commit(lambda: tick.wait(job.trigger(*args, **kwargs)))
