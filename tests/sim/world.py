"""A small world of nodes, jobs and people on one store: what happens in it follows from a seed."""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from everytick import schedule
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.occurrence import Cause
from everytick.domain.outcome import Failed, Outcome, Succeeded
from everytick.domain.snapshots import Missed, Request
from everytick.domain.statuses import ENDED
from everytick.errors import EverytickError
from everytick.node.node import Node
from everytick.node.offset import Offset
from everytick.node.settings import node_settings
from everytick.runners.base import Body
from everytick.runners.context import Context
from everytick.stores.memory import MemoryStore
from tests.sim.chance import ChanceLoop, passing
from tests.sim.faults import FaultyStore, Wire, heal

BEGIN = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
NEVER = "once: 2099-01-01T00:00:00Z"
JOBS: dict[str, dict[str, Any]] = {
    "plain": {"when": "every: 30s", "policies": {}},
    "queue": {"when": "every: 20s", "policies": {"overlap": "queue", "recovery": "execute_all"}},
    "restart": {"when": "every: 40s", "policies": {"on_orphan": "restart", "max_lost": None}, "tasks": ("one", "two")},
    "resume": {
        "when": "every: 45s",
        "policies": {"on_orphan": "resume", "overlap": "queue", "recovery": "execute_all", "max_lost": None},
        "tasks": ("one", "two", "three"),
    },
    "retry": {"when": "every: 1m", "policies": {"retry": {"max": 3, "interval": "2s", "factor": 3}}},
    "parallel": {
        "when": "every: 50s",
        "policies": {"mode": "parallel", "on_orphan": "resume", "failure": "continue", "max_lost": None},
        "tasks": ("a", "b"),
    },
    "limit": {
        "when": "every: 25s",
        "policies": {"execution_timeout": "8s", "overlap": "queue", "on_orphan": "resume", "max_lost": None},
        "tasks": ("one", "two"),
    },
    "newest": {"when": "every: 15s", "policies": {"overlap": "queue_latest"}},
    "cancel": {"when": "every: 35s", "policies": {"overlap": "cancel_running"}},
    "often": {"when": "every: 4s", "policies": {"grace": "1s"}, "lasts": 0.5},
    "wide": {"when": "every: 10s", "policies": {"overlap": "allow", "max_concurrent": 3, "recovery": "execute_all"}},
    "local": {
        "when": "every: 12s",
        "policies": {
            **{"overlap": "allow", "on_store_outage": "fire_local", "recovery": "execute_all"},
            **{"on_orphan": "resume", "max_lost": None, "retry": {"max": 2, "interval": "8s"}},
        },
        "tasks": ("one", "two"),
    },
}
"""What there is to do; `local` does not wait for the store, so that several nodes may run one instant of it."""


def defined(name: str, when: str | None = None) -> Job:
    """Return one of the jobs above, with another schedule if one is given."""
    given = JOBS[name]
    tasks = [define_task(name, task) for task in given.get("tasks", ("main",))]
    return define_job(name, schedule(when or given["when"]), policies=given["policies"], tasks=tasks)


@dataclass
class Deed:
    """One execution of a body: of which attempt, under which fence, by which node, and whether it came to its end."""

    occurrence_id: str
    task: str
    attempt: int
    fence: int
    node: str
    job: str
    ended: bool = False


@dataclass
class Peer:
    """A node and its wire."""

    name: str
    node: Node
    wire: Wire
    begun: "asyncio.Task[None] | None" = None


@dataclass
class World:
    """Everything there is; `seed` decides what happens."""

    loop: ChanceLoop
    seed: int
    peers: list[Peer] = field(default_factory=list)
    deeds: list[Deed] = field(default_factory=list)
    offset: timedelta = timedelta(0)
    told: list[str] = field(default_factory=list)
    ended: dict[str, Any] = field(default_factory=dict)
    watermarks: dict[str, datetime] = field(default_factory=dict)
    started: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        tokens = random.Random(self.seed)
        self.store = MemoryStore(lambda: self.host_time() + self.offset, tokens=lambda: tokens.getrandbits(63))

    def host_time(self) -> datetime:
        """Return what the hosts' clocks show, which nobody sets."""
        return BEGIN + timedelta(seconds=self.loop.time())

    # ---------------------------------------------------------------------------------------------------- its nodes

    def join(self) -> Peer:
        """Let one more node come to life."""
        self.started["node"] += 1
        name = f"node-{self.started['node']}"
        wire = Wire(self.store, self.chance, self.loop.time)
        settings = node_settings(slots=4, grace_period="2s")
        node = Node(
            cast("Any", FaultyStore(wire)),
            Bodies(self, name, wire),
            settings,
            name=name,
            monotonic=self.loop.time,
            # What it says of its host's clock is said through the wire, too: the real clock would be a second chance.
            offset=Offset(self.host_time),
        )
        peer = Peer(name, node, wire)
        peer.begun = self.loop.create_task(self._begin(peer))
        self.peers.append(peer)
        return peer

    async def _begin(self, peer: Peer) -> None:
        while True:
            try:
                await peer.node.start()
            except EverytickError:
                await passing(1.0)
            else:
                return

    @property
    def living(self) -> list[Peer]:
        """The nodes that have not crashed."""
        return [peer for peer in self.peers if not peer.wire.is_cut]

    # ----------------------------------------------------------------------------------------------- what goes wrong

    async def trouble(self, seconds: float) -> None:
        """Let things go wrong for that long."""
        over = self.loop.time() + seconds
        while self.loop.time() < over:
            await passing(self.chance.random() * 12)
            kind = self.chance.choice([*FAULTS, "people", "people"])
            self.told.append(f"{self.loop.time():.3f} {kind}")
            await getattr(self, kind)()

    async def crash(self) -> None:
        """A node is gone without a word; sometimes another comes."""
        peer = self.chance.choice(self.living)
        peer.wire.is_cut = True
        if len(self.living) < 2 or self.chance.random() < 0.7:
            self.join()

    async def freeze(self) -> None:
        """A node stands still, maybe for so long that others take it for dead, and then goes on."""
        self.chance.choice(self.living).wire.frozen_until = self.loop.time() + self.chance.choice([3, 15, 40])

    async def hang(self) -> None:
        """A task holds the loop of a node up, which goes on beating, and somebody edits all jobs meanwhile."""
        self.chance.choice(self.living).wire.held_until = self.loop.time() + self.chance.choice([5, 30, 90])
        if self.chance.random() < 0.5:
            for name in sorted(JOBS):
                await self.store.put(replace(defined(name), owner=str(self.chance.randrange(9))))

    async def partition(self) -> None:
        """A node does not reach the store for a while, but goes on with what it does."""
        self.chance.choice(self.living).wire.silent_until = self.loop.time() + self.chance.choice([2, 15, 40])

    async def outage(self) -> None:
        """Nobody reaches the store for a while."""
        until = self.loop.time() + self.chance.choice([1, 10, 30])
        for peer in self.peers:
            peer.wire.silent_until = until

    async def weather(self) -> None:
        """Replies get lost, bells are not heard, ways take long."""
        for peer in self.peers:
            peer.wire.lost = self.chance.choice([0, 0, 0.02, 0.2])
            peer.wire.deaf = self.chance.choice([0, 0.5, 1])
            peer.wire.slow = self.chance.choice([0, 0.01, 0.5, 5])

    async def clock_step(self) -> None:
        """The store's clock is set."""
        self.offset += timedelta(seconds=self.chance.choice([-120, -30, -3, 3, 40, 300]))

    async def people(self) -> None:
        """Somebody asks for something."""
        name = self.chance.choice(sorted(JOBS))
        [job_id] = [record.job.id for record in await self.store.list() if record.job.name == name]
        match self.chance.choice(["pause", "resume", "trigger", "cancel", "edit"]):
            case "pause":
                await self.store.pause(job_id, missed=self.chance.choice(list(Missed)))
            case "resume":
                await self.store.resume(job_id)
            case "trigger":
                key = f"key-{self.chance.randrange(1000)}"
                await self.store.request(job_id, Request(key, Cause.TRIGGER, await self.store.now()))
            case "cancel":
                found = (await self.store.history(job_id=job_id, limit=3)).occurrences
                if found:
                    await self.store.cancel(self.chance.choice(found).id, "by hand")
            case _:
                await self.store.put(replace(defined(name), owner=str(self.chance.randrange(9))))

    async def recover(self) -> None:
        """End all trouble: three nodes live, and nothing is held."""
        heal([peer.wire for peer in self.peers])
        while len(self.living) < 3:
            self.join()
        for record in await self.store.list():
            await self.store.resume(record.job.id)

    # ------------------------------------------------------------------------------------------ what is true meanwhile

    async def watch(self) -> None:
        """Look at the store again and again: what is over stays as it is, and no watermark moves back."""
        while True:
            await passing(2.0)
            await self.look()

    async def look(self) -> None:
        """Hold the store to what it showed before."""
        busy: Counter[str] = Counter()
        for each in (await self.store.history(limit=100_000)).occurrences:
            if each.status in ENDED:
                known = self.ended.setdefault(each.id, each)
                assert known == each, f"{each.id} had ended {known.status} and is now {each.status}"
            elif each.status != "queued":
                busy[each.job_id] += 1
        for record in await self.store.list():
            before = self.watermarks.get(record.job.id, record.watermark)
            assert record.watermark >= before, f"the watermark of {record.job.name} moved back"
            self.watermarks[record.job.id] = record.watermark
            if record.job.name == "local":
                continue
            limit = record.job.settings.max_concurrent or 1
            assert busy[record.job.id] <= limit, f"{record.job.name} has more than {limit} at once"


FAULTS = ("crash", "freeze", "hang", "partition", "outage", "weather", "weather", "clock_step")


class Bodies:
    """What the tasks do on one node: they take a while, fail now and then, and write down that they ran."""

    def __init__(self, world: World, node: str, wire: Wire) -> None:
        self._world, self._node, self._wire = world, node, wire

    def bodies(self, job: Job) -> tuple[Body, ...] | None:
        """Return one body per task."""
        return tuple(_Body(self._world, self._node, self._wire) for _ in job.tasks)

    def why(self, job: Job) -> str:
        """Never asked: every node can run everything."""
        return ""

    def forget(self, occurrence_id: str) -> None:
        """Return: nothing was kept for it."""

    def close(self) -> None:
        """Return: nothing was kept ready."""


class _Body:
    wants_previous = False
    begins_later = False

    def __init__(self, world: World, node: str, wire: Wire) -> None:
        self._world, self._node, self._wire = world, node, wire

    async def run(self, context: Context) -> Outcome:
        """Take a while; a node that is gone or stands still neither begins nor ends anything."""
        world = self._world
        await self._stand_still()
        deed = Deed(context.occurrence_id, context.task, context.attempt, context.fence, self._node, context.job)
        world.deeds.append(deed)
        longest = JOBS[context.job].get("lasts", 6.0)
        await passing(min(world.chance.choice([0.0, 0.5, 2.0, 6.0]), longest))
        await self._stand_still()
        deed.ended = True
        return Failed("by chance") if world.chance.random() < 0.15 else Succeeded()

    async def _stand_still(self) -> None:
        seconds = self._world.loop.time
        while seconds() < self._wire.stands_until:
            await passing(self._wire.stands_until - seconds())
        if self._wire.is_cut:
            await asyncio.get_running_loop().create_future()


class _Mistakes(logging.Handler):
    """Keeps what a loop logged with a traceback: it goes on after a mistake of ours, but a simulation must not."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the error."""
        if record.exc_info is not None and record.exc_info[1] is not None:
            self.found.append(record.exc_info[1])


def run_world(seed: int, story: Callable[[World], Awaitable[None]]) -> World:
    """Let the story happen in a world of its own and return that world."""
    loop = ChanceLoop(seed)
    random.seed(seed)
    world = World(loop, seed)
    mistakes, log = _Mistakes(), logging.getLogger("everytick")

    async def main() -> None:
        try:
            await story(world)
        finally:
            for peer in world.peers:
                peer.wire.is_over = True

    log.addHandler(mistakes)
    try:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(main())
    finally:
        log.removeHandler(mistakes)
        # Said first: what came of it may look like something else.
        for mistake in mistakes.found:
            raise mistake
    return world
