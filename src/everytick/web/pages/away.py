"""The page while the store does not answer: what was known last, and nothing that writes."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse

from everytick.config.settings import without_password
from everytick.domain.policies import OnStoreOutage
from everytick.errors import shown
from everytick.web import words
from everytick.web.framing import frame_of, viewer_of
from everytick.web.now_view import View
from everytick.web.paths import path_of
from everytick.web.rendering import page

RETRY_SECONDS = 5


async def answer(
    request: Request, error: Exception, known: View | None, draw: Callable[..., Awaitable[dict[str, Any]]]
) -> HTMLResponse:
    """Return what was known last with its time, drawn again, and what is known of the outage, as 503."""
    viewer = viewer_of(request)
    frame = replace(frame_of(request, path_of(request.scope), viewer), is_away=True)
    said = "The store does not answer; jobs may be running."
    values: dict[str, Any] = {"timeline": None}
    if known is not None:
        said = f"Known until {viewer.clock(known.fleet.now, seconds=True)}; jobs may be running."
        values = await draw(known)
    return await page(
        request,
        "away.html",
        status=503,
        headers={"retry-after": str(RETRY_SECONDS)},
        **values,
        viewer=viewer,
        frame=frame,
        said=said,
        known=None if known is None else known.fleet,
        facts=_facts(request, error, known),
        every=RETRY_SECONDS,
    )


def _facts(request: Request, error: Exception, known: View | None) -> list[tuple[str, str]]:
    """Return what is known: where the store is, what it said last, and what goes on without it."""
    why = shown(without_password(str(error)), 300) if str(error) else "no answer in time"
    facts = [("Said", why)]
    viewer = viewer_of(request)
    if known is not None:
        fleet = known.fleet
        running = sum(run.started_at is not None for run in fleet.active)
        due = sum(
            record.next_run is not None and record.next_run <= viewer.now and record.pause is None
            for record in fleet.records.values()
        )
        local = [
            record.job.name
            for record in fleet.records.values()
            if record.job.settings.on_store_outage is OnStoreOutage.FIRE_LOCAL
        ]
        facts = [
            ("Store", fleet.store),
            ("Said", why),
            ("Last answer", f"{viewer.when(fleet.now, seconds=True)}, in {max(round(fleet.took * 1000), 1)} ms"),
            ("Nodes then", f"{len(fleet.living)} live, {words.count(running, 'occurrence')} running"),
            ("Due since", f"{words.count(due, 'job')}, by the schedules alone"),
        ]
        if local:
            facts.append(("Fired by nodes", f"{words.listed(local, 5)}: on_store_outage is fire_local"))
    facts.append(("Look at", "everytick doctor on a node, /readyz?verbose here"))
    return facts
