"""The service itself, its nodes, and the changes that wait for a second person."""

from dataclasses import replace

from fastapi import Response

from everytick import __version__
from everytick.access.people import Role, tags_of
from everytick.answers.fleet import node_record, node_state, proposal_data
from everytick.answers.wire import data_of
from everytick.web.api import bodies, fleet_models, models
from everytick.web.api.hiding import parked_shown_to
from everytick.web.api.shapes import Routes, told
from everytick.web.asking import Tick, Who

routes = Routes("fleet")
router = routes.router


@routes.question("/api", models.InfoData)
async def read_info(tick: Tick, who: Who) -> Response:
    """Return the version of the service, the store's time, and who asks."""
    timeout = tick.settings.node_timeout
    data = {"version": __version__, "now": await tick.now(), "node_timeout": timeout}
    return told(data | {"person": who.name, "role": str(who.role)})


@routes.question("/api/nodes", list[fleet_models.NodeData])
async def list_nodes(tick: Tick) -> Response:
    """List the nodes of the store, each with its last beat and the facts that it told."""
    now, timeout = await tick.now(), tick.settings.node_timeout
    return told([node_record(node, node_state(node, now, timeout)) for node in await tick.nodes()])


@routes.question("/api/queues", list[fleet_models.QueueData])
async def list_queues(tick: Tick) -> Response:
    """List the queues that living nodes serve or that occurrences wait in, by name."""
    return told(data_of(await tick.queues()))


@routes.question("/api/reports", fleet_models.ReportsData)
async def read_reports(tick: Tick, who: Who) -> Response:
    """Return what living nodes report: job files that they cannot read, and jobs that none of them can run."""
    records = await tick.jobs()
    found = await tick.reports(records)
    tags = {record.job.name: tags_of(record.job.name, record.job.settings.tags) for record in records}
    return told(data_of(replace(found, parked=parked_shown_to(who, found.parked, tags))))


@routes.question("/api/proposals", list[fleet_models.ProposalData])
async def list_proposals(tick: Tick) -> Response:
    """List the changes that wait for a second person, oldest first."""
    now = await tick.now()
    return told([proposal_data(proposal, now) for proposal in await tick.proposals()])


@routes.operation("/api/proposals/{proposal}/approve", fleet_models.ProposalData, role=Role.ADMIN)
async def approve_proposal(proposal: str, body: bodies.NothingBody, tick: Tick) -> Response:
    """Carry out what another person has proposed. All of it is one transaction."""
    return told(proposal_data(await tick.approve(proposal), await tick.now()))


@routes.operation("/api/proposals/{proposal}/reject", fleet_models.ProposalData, role=Role.OPERATOR)
async def reject_proposal(proposal: str, body: bodies.NothingBody, tick: Tick) -> Response:
    """Drop a proposal; the one who proposed it may do so too."""
    return told(proposal_data(await tick.reject(proposal), await tick.now()))
