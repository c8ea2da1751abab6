"""The HTTP API: every operation and question of an application, as JSON under `/api/`."""

from collections.abc import Sequence

from fastapi import APIRouter

from everytick.web.api import (
    access,
    backfills,
    document,
    documents,
    events,
    fleet,
    jobs,
    limits,
    occurrences,
    operations,
    overviews,
    schedules,
    versions,
)

ROUTERS: Sequence[APIRouter] = tuple(
    module.router
    for module in (
        fleet,
        jobs,
        operations,
        versions,
        occurrences,
        backfills,
        limits,
        schedules,
        overviews,
        documents,
        events,
        access,
        document,
    )
)
"""The routers of the API."""
