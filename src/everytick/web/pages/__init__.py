"""The pages of the dashboard, one module each."""

from collections.abc import Sequence

from fastapi import APIRouter

from everytick.web.pages import (
    access,
    agenda,
    audit,
    doing,
    files,
    history,
    job,
    jobs,
    lab,
    live,
    nodes,
    now,
    occurrence,
    oidc,
    settings,
    signin,
    spread,
    views,
    year,
)

ROUTERS: Sequence[APIRouter] = (
    access.router,
    agenda.router,
    audit.router,
    doing.router,
    files.router,
    history.router,
    job.router,
    jobs.router,
    lab.router,
    live.router,
    nodes.router,
    now.router,
    occurrence.router,
    oidc.router,
    settings.router,
    signin.router,
    spread.router,
    views.router,
    year.router,
)
"""The routers of all pages."""
