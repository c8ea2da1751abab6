"""The page before the first job: what is ready, three ways to a first job, and where it will stand."""

from datetime import timedelta

from fastapi import Request
from fastapi.responses import HTMLResponse

from everytick.domain.values import value
from everytick.web import words
from everytick.web.framing import live_frame, viewer_of
from everytick.web.now_board import FleetState
from everytick.web.pictures.axis import axis_around, labels, over, under
from everytick.web.pictures.lanes import LaneUsual, PlannedRun, lane_picture
from everytick.web.rendering import page

_LENGTH = timedelta(hours=15)


@value(frozen=True)
class ReadyCheck:
    """One thing that a first job needs, and whether it is there."""

    mark: str
    name: str
    said: str


async def answer(request: Request, fleet: FleetState) -> HTMLResponse:
    """Return the page of an application without jobs."""
    viewer, axis = viewer_of(request, fleet.now), axis_around(fleet.now, _LENGTH)
    often = [PlannedRun(fleet.now + timedelta(minutes=12 + 22 * place), is_held=True) for place in range(8)]
    once = [PlannedRun(fleet.now + timedelta(minutes=53), is_held=True)]
    short, long = timedelta(minutes=9), timedelta(minutes=40)
    frame = live_frame(request, viewer, refresh=10)
    found = checks(fleet)
    is_ready = all(check.mark == "completed" for check in found[:-1])
    return await page(
        request,
        "empty.html",
        viewer=viewer,
        frame=frame,
        said="No job yet. Everything else is ready." if is_ready else "No job yet, and no node to run one.",
        checks=found,
        labels=labels(axis, viewer),
        below=under(axis, viewer),
        above=over(axis),
        first=lane_picture([], often, axis, LaneUsual(short, short), ""),
        second=lane_picture([], once, axis, LaneUsual(long, long), ""),
    )


def checks(fleet: FleetState) -> list[ReadyCheck]:
    """Return what a first job needs: a store, a node, a clock that agrees, and the job itself."""
    living = fleet.living
    facts = [node.facts for node in living if node.facts is not None]
    took = max(round(fleet.took * 1000), 1)
    found = [ReadyCheck("completed", "Store", f"{fleet.store} answered in {took} ms, tables are current")]
    if facts:
        slots = sum(node_facts.slots for node_facts in facts)
        names = words.listed([node.id for node in living], 2)
        found.append(
            ReadyCheck("completed", "Node", f"{names} {'is' if len(living) == 1 else 'are'} live, {slots} slots free")
        )
        offset = max(abs(node_facts.clock_offset) for node_facts in facts)
        said = f"within {words.length(offset)} of the store's; zone data {facts[0].zone_data.partition(' ')[0]}"
        found.append(ReadyCheck("completed", "Clock", said))
    else:
        found.append(ReadyCheck("pending", "Node", "none is live: everytick run starts one"))
    found.append(ReadyCheck("pending", "Jobs", "none in code, none in files"))
    return found
