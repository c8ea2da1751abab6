"""A small world of nodes, jobs and people on one store: what happens in it follows from a seed."""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, TypeVar, cast

from everytick.domain.config import Level, overrides
from everytick.domain.facts import Amend, Cancel, Fact, Move, Pause, Resume, Skip, Trigger, Undo
from everytick.domain.job import Job
from everytick.domain.snapshots import Missed
from everytick.domain.statuses import ENDED
from everytick.domain.upcoming import upcoming
from everytick.errors import EverytickError
from everytick.node.clock import Offset
from everytick.node.node import Node
from everytick.node.settings import node_settings
from everytick.stores.base import HistoryFilter
from everytick.stores.memory import MemoryStore
from tests.sim.bodies import Bodies, Deed
from tests.sim.chance import ChanceLoop, passing
from tests.sim.database import Database, Refused
from tests.sim.faults import FaultyStore, Wire, heal
from tests.sim.jobs import JOBS, NEVER, Words, defined
from tests.stores.acting import AnyStore, put

BEGIN = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
FAULTS = ("crash", "freeze", "hang", "partition", "outage", "weather", "weather", "clock_step")


@dataclass
class Peer:
    """A node and its wire."""

    name: str
    node: Node
    wire: Wire
    application: str = ""
    begun: "asyncio.Task[None] | None" = None


@dataclass
class World:
    """Everything there is; `seed` decides what happens."""

    faults: ClassVar[tuple[str, ...]] = FAULTS
    slots: ClassVar[int] = 4

    loop: ChanceLoop
    seed: int
    peers: list[Peer] = field(default_factory=list)
    deeds: list[Deed] = field(default_factory=list)
    offset: timedelta = timedelta(0)
    told: list[str] = field(default_factory=list)
    ended: dict[str, Any] = field(default_factory=dict)
    watermarks: dict[str, datetime] = field(default_factory=dict)
    started: Counter[str] = field(default_factory=Counter)
    wires: list[Wire] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        tokens = random.Random(self.seed)
        self.store: AnyStore = MemoryStore(self.store_time, tokens=lambda: tokens.getrandbits(63))
        self.database = Database(self.loop.time)

    def host_time(self) -> datetime:
        """Return the time of the hosts' monotonic clocks."""
        return BEGIN + timedelta(seconds=self.loop.time())

    def store_time(self) -> datetime:
        """Return what the store's clock shows."""
        return self.host_time() + self.offset

    # ----------------------------------------------------------------------------------------- what there is to do

    @property
    def words(self) -> Words:
        """What there is to do."""
        return JOBS

    async def define(self) -> None:
        """Bring the jobs into the store."""
        for name in self.words:
            await put(self.store, defined(name, words=self.words))

    def defined(self, name: str, when: str | None = None, **policies: object) -> Job:
        """Return the definition of a job, with another schedule or other policies where they are given."""
        return defined(name, when, words=self.words, **policies)

    def edited(self, name: str) -> Job:
        """Return the definition of a job with a change that means nothing."""
        return replace(self.defined(name), owner=str(self.chance.randrange(9)))

    def length_of(self, job: str) -> float:
        """Return for how many seconds the next body of this job runs."""
        longest: float = self.words[job].get("lasts", 6.0)
        return min(self.chance.choice([0.0, 0.5, 2.0, 6.0]), longest)

    async def end_schedules(self) -> None:
        """Let no more instants come, and ask for two last occurrences of each job."""
        for name in self.words:
            stored = await put(self.store, self.defined(name, NEVER))
            for key in ("last", "and last"):
                await self.store.request(stored.job_id, Trigger(key))

    # ---------------------------------------------------------------------------------------------------- its nodes

    def begin(self) -> None:
        """Let the first nodes come to life."""
        for _ in range(3):
            self.join()

    def join(
        self, application: str = "", queues: tuple[str, ...] = ("default",), known: Collection[str] | None = None
    ) -> Peer:
        """Let one more node come to life."""
        self.started["node"] += 1
        name = f"node-{self.started['node']}"
        wire = self.wire()
        node = Node(
            cast("Any", FaultyStore(wire)),
            Bodies(self, name, wire, known),
            node_settings(slots=self.slots, grace_period="2s", queues=queues),
            name=name,
            application=application,
            monotonic=self.loop.time,
            # What it says of its host's clock is said through the wire, too: the real clock would be a second chance.
            offset=Offset(self.host_time),
        )
        peer = Peer(name, node, wire, application)
        peer.begun = self.loop.create_task(self._begin(peer))
        self.peers.append(peer)
        return peer

    def wire(self) -> Wire:
        """Return a way to the store."""
        wire = Wire(self.store, self.chance, self.loop.time, self.database)
        self.wires.append(wire)
        return wire

    async def _begin(self, peer: Peer) -> None:
        while True:
            try:
                await peer.node.start()
            except EverytickError:
                await passing(1.0)
            else:
                return

    def replace_dead(self, peer: Peer) -> None:
        """Let a node come in the place of one that is gone."""
        self.join()

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
            kind = self.chance.choice([*self.faults, "people", "people"])
            self.told.append(f"{self.loop.time():.3f} {kind}")
            await getattr(self, kind)()

    async def crash(self) -> None:
        """A node is gone without a word; sometimes another comes."""
        peer = self.chance.choice(self.living)
        peer.wire.is_cut = True
        if len(self.living) < 2 or self.chance.random() < 0.7:
            self.replace_dead(peer)

    async def freeze(self) -> None:
        """A node stands still, maybe for so long that others take it for dead, and then goes on."""
        self.chance.choice(self.living).wire.frozen_until = self.loop.time() + self.chance.choice([3, 15, 40])

    async def hang(self) -> None:
        """A task holds the loop of a node up, which goes on beating, while all jobs are edited."""
        self.chance.choice(self.living).wire.held_until = self.loop.time() + self.chance.choice([5, 30, 90])
        if self.chance.random() < 0.5:
            for name in sorted(self.words):
                await put(self.store, self.edited(name))

    async def partition(self) -> None:
        """A node does not reach the store for a while, but goes on with what it does."""
        self.chance.choice(self.living).wire.silent_until = self.loop.time() + self.chance.choice([2, 15, 40])

    async def outage(self) -> None:
        """The store is away for a while."""
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
        """A request is made."""
        name = self.chance.choice(sorted(self.words))
        [job_id] = [record.job.id for record in await self.store.list() if record.job.name == name]
        match self.chance.choice(["pause", "resume", "trigger", "cancel", "edit", "adjust", "adjust"]):
            case "pause":
                await self.store.request(job_id, Pause(missed=self.chance.choice(list(Missed))))
            case "resume":
                await self.store.request(job_id, Resume(missed=self.chance.choice([None, *Missed])))
            case "adjust":
                await self.adjust(job_id)
            case "trigger":
                key = f"key-{self.chance.randrange(1000)}"
                await self.store.request(job_id, Trigger(key))
            case "cancel":
                found = (await self.store.history(HistoryFilter(job_id=job_id, limit=3))).occurrences
                if found:
                    await self.store.request(self.chance.choice(found).id, Cancel("by hand"))
            case _:
                await put(self.store, self.edited(name))

    async def adjust(self, job_id: str) -> None:
        """A person speaks of one of the next instants, or takes back what was said of one."""
        seen = (await self.store.look([job_id]))[job_id]
        now = await self.store.now()
        coming = upcoming(seen, now, 4)
        told = [adjustment.at for adjustment in seen.adjustments]
        if not coming:
            return
        instant, to = self.chance.choice([*coming, *told]), now + timedelta(seconds=self.chance.choice([1, 20, 90]))
        own = overrides(Level.OCCURRENCE, {"payload": {"by": "hand"}})
        facts: list[Fact] = [
            Skip(instant), Move(instant, to), Amend(instant, own), Undo(instant), Trigger(f"added:{to}", at=to)
        ]  # fmt: skip
        await self.store.request(job_id, self.chance.choice(facts))

    async def recover(self) -> None:
        """End all trouble: enough nodes live, and nothing is held."""
        self.database.mend()
        heal([peer.wire for peer in self.peers])
        self.fill_up()
        for record in await self.store.list():
            await self.store.request(record.job.id, Resume())

    def fill_up(self) -> None:
        """Let nodes come until there are enough."""
        while len(self.living) < 3:
            self.join()

    # ------------------------------------------------------------------------------------------ what is true meanwhile

    async def watch(self) -> None:
        """Look at the store again and again: what is over stays as it is, and no watermark moves back."""
        while True:
            await passing(2.0)
            await self.look()

    async def look(self) -> None:
        """Hold the store to what it showed before."""
        busy: Counter[str] = Counter()
        for each in (await self.store.history(HistoryFilter(limit=100_000))).occurrences:
            if each.status in ENDED:
                known = self.ended.setdefault(each.id, each)
                assert known == each, f"{each.id} had ended {known.status} and is now {each.status}"
            elif each.status != "queued":
                busy[each.job_id] += 1
        for record in await self.store.list():
            before = self.watermarks.get(record.job.id, record.watermark)
            assert record.watermark >= before, f"the watermark of {record.job.name} moved back"
            self.watermarks[record.job.id] = record.watermark
            if record.job.settings.on_store_outage == "fire_local":
                continue
            limit = record.job.settings.max_concurrent or 1
            assert busy[record.job.id] <= limit, f"{record.job.name} has more than {limit} at once"


class _Mistakes(logging.Handler):
    """Keeps what a loop logged with a traceback: it goes on after a mistake of ours, but a simulation must not."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the error, unless the simulated database has raised it."""
        if record.exc_info is not None and record.exc_info[1] is not None:
            error = record.exc_info[1]
            if not isinstance(error, Refused):
                self.found.append(error)


AnyWorld = TypeVar("AnyWorld", bound=World)


def run_world(
    seed: int, story: Callable[[AnyWorld], Awaitable[None]], make: Callable[[ChanceLoop, int], AnyWorld]
) -> AnyWorld:
    """Let the story happen in a world of its own and return that world."""
    loop = ChanceLoop(seed)
    random.seed(seed)
    world = make(loop, seed)
    mistakes, log = _Mistakes(), logging.getLogger("everytick")

    async def main() -> None:
        try:
            await story(world)
        finally:
            for wire in world.wires:
                wire.is_over = True

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
