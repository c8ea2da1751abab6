"""What the tasks of the simulated fleet do, and the trace that each leaves."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from everytick.domain.job import Job
from everytick.domain.outcome import Failed, Outcome, Succeeded
from everytick.runners.base import Body
from everytick.runners.context import Context
from tests.sim.chance import passing
from tests.sim.faults import Wire

if TYPE_CHECKING:
    from tests.sim.world import World


@dataclass
class Deed:
    """One execution of a body: of which attempt, under which fence, by which node, and whether it came to its end.

    `called_at` and `begun_at` are seconds on the loop's clock; between the two the node may have stood still.
    """

    occurrence_id: str
    task: str
    attempt: int
    fence: int
    node: str
    job: str
    called_at: float
    begun_at: float
    ended: bool = False


class Bodies:
    """What the tasks do on one node: they take a while, fail now and then, and write down that they ran.

    `known` are the jobs whose functions this node has, by name; None says all.
    """

    def __init__(self, world: "World", node: str, wire: Wire, known: Collection[str] | None = None) -> None:
        self._world, self._node, self._wire, self._known = world, node, wire, known

    def bodies(self, job: Job) -> tuple[Body, ...] | None:
        """Return one body per task; None for a job that this node has no function for."""
        if self._known is not None and job.name not in self._known:
            return None
        return tuple(_Body(self._world, self._node, self._wire) for _ in job.tasks)

    def why(self, job: Job) -> str:
        """Say why the job cannot run here."""
        return f"no function for job '{job.name}' in this program"

    def forget(self, occurrence_id: str) -> None:
        """Return: nothing was kept for it."""

    def close(self) -> None:
        """Return: nothing was kept ready."""


class _Body:
    wants_previous = False
    begins_later = False

    def __init__(self, world: "World", node: str, wire: Wire) -> None:
        self._world, self._node, self._wire = world, node, wire

    async def run(self, context: Context) -> Outcome:
        """Take a while; a node that is gone or stands still neither begins nor ends anything."""
        world = self._world
        called_at = world.loop.time()
        await self._wire.stand_still()
        if self._wire.is_cut:
            await asyncio.get_running_loop().create_future()
        attempt = context.occurrence_id, context.task, context.attempt, context.fence
        deed = Deed(*attempt, self._node, context.job, called_at, world.loop.time())
        world.deeds.append(deed)
        await passing(world.length_of(context.job))
        await self._wire.stand_still()
        if self._wire.is_cut:
            await asyncio.get_running_loop().create_future()
        deed.ended = True
        return Failed("by chance") if world.chance.random() < 0.15 else Succeeded()
