"""ctx.transaction(): the task's writes, its success and what follows from it, in one commit."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

from everytick.domain.facts import Trigger
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.retry import Retry
from everytick.domain.statuses import ENDED, AttemptStatus, OccurrenceStatus
from everytick.domain.steps import Step
from everytick.errors import Fenced, NotFound, TransactionsUnsupported
from everytick.node.inbox import GraceOver, TimeoutPassed
from everytick.node.node import Node
from everytick.node.settings import node_settings
from everytick.runners.catalogue import Catalogue
from everytick.runners.context import Context
from everytick.schedules.interval import every
from everytick.stores.base import Claim, Commit, CommitAnswer, Nodes, Whole
from everytick.stores.memory import MemoryStore
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import put
from tests.unit.node.worlds import NOON, Function, World, living, passing, pause

if TYPE_CHECKING:
    from everytick.node.occurrence import OpenAttempt


class GatedStore(SqliteStore):
    """A store that writes no steps while its gate is closed."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.gate = asyncio.Event()
        self.gate.set()

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write the steps once the gate is open."""
        await self.gate.wait()
        return await super().commit_steps(steps)


class LendingStore(MemoryStore):
    """A store in memory with transactions. While one is open no step is written, as on SQLite."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__(clock)
        self._turn = asyncio.Lock()

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write the steps once no transaction is open."""
        async with self._turn:
            return await super().commit_steps(steps)

    @asynccontextmanager
    async def transaction(self, claim: Claim) -> AsyncIterator["LentSteps"]:
        """Lend it to one task at a time."""
        async with self._turn:
            yield LentSteps(super().commit_steps, claim)


class LentSteps:
    """A transaction that writes the step of its commit, and has no rows of a task."""

    connection = None

    def __init__(
        self, write: Callable[[Sequence[tuple[Claim, Step]]], Awaitable[Sequence[CommitAnswer]]], claim: Claim
    ) -> None:
        self._write, self._claim = write, claim

    async def execute(self, sql: str, *arguments: object) -> None:
        """Write no row."""

    async def fetch(self, sql: str, *arguments: object) -> Sequence[tuple[object, ...]]:
        """Return no row."""
        return ()

    async def commit(self, step: Step) -> Commit:
        """Write the step."""
        [answer] = await self._write([(self._claim, step)])
        assert isinstance(answer, Commit)
        return answer


class Bench:
    """A SQLite file with a table of the user's own, and a node on it."""

    def __init__(self, file: Path, store: SqliteStore) -> None:
        self.file, self.store = file, store
        self.functions: dict[str, dict[str, Function]] = {}

    async def define(self, tasks: dict[str, Function], **policies: object) -> Job:
        written = [define_task("bank", name) for name in tasks]
        job = define_job("bank", every("P1Y", start=NOON), policies=policies, tasks=written)
        # Before it is stored: the node may look at once, and leaves a job alone whose functions it does not know.
        self.functions[job.id] = tasks
        await put(self.store, job)
        return job

    def rows(self) -> list[int]:
        with sqlite3.connect(self.file) as db:
            return [row[0] for row in db.execute("select amount from money order by amount")]

    async def ended(self, job: Job, key: str = "k") -> Whole:
        asked = (await self.store.request(job.id, Trigger(key))).id
        async with asyncio.timeout(60):
            while True:
                try:
                    whole = await self.store.whole(asked)
                except NotFound:
                    whole = None
                if whole is not None and whole.occurrence.status in ENDED:
                    return whole
                # The bell is the node's: it would not hear what is taken from it here.
                await passing(0.02)


@asynccontextmanager
async def bench(file: Path, kind: type[SqliteStore] = SqliteStore) -> AsyncIterator[Bench]:
    store = kind(file)
    await store.open()
    with sqlite3.connect(file) as db:
        db.execute("create table money (amount integer)")
    made = Bench(file, store)
    node = Node(store, Catalogue(made.functions), node_settings(grace_period="1s"))
    await node.start()
    try:
        yield made
    finally:
        await node.stop()
        await store.close()


async def test_the_writes_and_the_success_are_one_commit(tmp_path: Path) -> None:
    """C-15, S0-015, S0-027: the result given to the transaction is the task's, and the next task sees it."""
    async with bench(tmp_path / "e.db") as world:
        seen: list[object] = []

        async def pay(ctx: Context) -> None:
            async with ctx.transaction() as tx:
                await tx.execute("insert into money values (?)", 5)
                assert await tx.fetch("select amount from money") == [(5,)]
                tx.result({"paid": 5})

        async def look(ctx: Context) -> None:
            seen.append(ctx.results["pay"])

        job = await world.define({"pay": pay, "look": look})
        whole = await world.ended(job)
        assert whole.occurrence.status is OccurrenceStatus.COMPLETED
        assert world.rows() == [5]
        assert seen == [{"paid": 5}]


async def test_what_raises_inside_writes_nothing_and_is_tried_again(tmp_path: Path) -> None:
    """S0-015: the block is left by an error: rolled back, a failed attempt like any other."""
    async with bench(tmp_path / "e.db") as world:
        tries = 0

        async def pay(ctx: Context) -> None:
            nonlocal tries
            tries += 1
            async with ctx.transaction() as tx:
                await tx.execute("insert into money values (?)", tries)
                if tries == 1:
                    raise ValueError("not this time")

        job = await world.define({"pay": pay}, retry=Retry(1, "10ms"))
        whole = await world.ended(job)
        assert whole.occurrence.status is OccurrenceStatus.COMPLETED
        assert world.rows() == [2]
        assert [attempt.status for _, attempt in whole.attempts] == [AttemptStatus.FAILED, AttemptStatus.SUCCESS]


async def test_what_is_raised_afterwards_changes_nothing(tmp_path: Path) -> None:
    """The success is committed when the block is left; the function's last words are only logged."""
    async with bench(tmp_path / "e.db") as world:

        async def pay(ctx: Context) -> None:
            async with ctx.transaction() as tx:
                await tx.execute("insert into money values (1)")
            raise ValueError("too late")

        whole = await world.ended(await world.define({"pay": pay}))
        assert whole.occurrence.status is OccurrenceStatus.COMPLETED
        assert world.rows() == [1]


async def test_a_second_transaction_of_one_attempt_is_refused(tmp_path: Path) -> None:
    """At most one, and last."""
    async with bench(tmp_path / "e.db") as world:
        refused: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def pay(ctx: Context) -> None:
            async with ctx.transaction() as tx:
                await tx.execute("insert into money values (1)")
            try:
                async with ctx.transaction():
                    raise AssertionError
            except RuntimeError as error:
                refused.set_result(str(error))

        await world.ended(await world.define({"pay": pay}))
        async with asyncio.timeout(60):
            assert "one transaction" in await refused
        assert world.rows() == [1]


async def test_parallel_tasks_take_turns_and_all_is_written(tmp_path: Path) -> None:
    """S0-015; steps of one occurrence are numbered: two transactions at once, and an end between them, all hold."""
    async with bench(tmp_path / "e.db") as world:

        def paying(amount: int) -> Function:
            async def pay(ctx: Context) -> None:
                async with ctx.transaction() as tx:
                    await tx.execute("insert into money values (?)", amount)
                    await asyncio.sleep(0)

            return pay

        async def plain() -> None:
            return

        tasks: dict[str, Function] = {f"pay-{n}": paying(n) for n in range(5)}
        tasks["plain"] = plain
        whole = await world.ended(await world.define(tasks, mode="parallel"))
        assert whole.occurrence.status is OccurrenceStatus.COMPLETED
        assert world.rows() == [0, 1, 2, 3, 4]
        assert len(whole.attempts) == 6


async def test_a_task_that_fails_takes_back_its_own_writes_and_no_peers(tmp_path: Path) -> None:
    """S0-015: each task has a transaction of its own, so what one of them rolls back is not the others'."""
    async with bench(tmp_path / "e.db") as world:
        has_written = asyncio.Event()

        async def good(ctx: Context) -> None:
            await has_written.wait()
            async with ctx.transaction() as tx:
                await tx.execute("insert into money values (1)")

        async def bad(ctx: Context) -> None:
            async with ctx.transaction() as tx:
                await tx.execute("insert into money values (2)")
                has_written.set()
                raise ValueError("taken back")

        job = await world.define({"good": good, "bad": bad}, mode="parallel", failure="continue")
        whole = await world.ended(job)
        assert whole.occurrence.status is OccurrenceStatus.COMPLETED_WITH_ERRORS
        assert world.rows() == [1]


async def test_a_task_that_was_taken_over_writes_nothing(tmp_path: Path) -> None:
    """Fenced: the other node's fence is newer, so everything is rolled back and the task is told."""
    async with bench(tmp_path / "e.db") as world:
        told: asyncio.Future[type[BaseException]] = asyncio.get_running_loop().create_future()

        async def pay(ctx: Context) -> None:
            other = SqliteStore(world.file)
            await other.open()
            try:
                claims = await other.orphans("other", 10, {each.id: each.beats for each in await other.ask(Nodes())})
                assert [claim.occurrence.id for claim in claims] == [ctx.occurrence_id]
                async with ctx.transaction() as tx:
                    await tx.execute("insert into money values (1)")
            except BaseException as error:
                told.set_result(type(error))
                raise
            finally:
                await other.close()

        job = await world.define({"pay": pay})
        await world.store.request(job.id, Trigger("k"))
        async with asyncio.timeout(60):
            assert await told is Fenced
        assert world.rows() == []


def test_a_store_without_transactions_says_so() -> None:
    """On memory the attempt fails with what to use instead."""

    async def story(world: World) -> None:
        raised: list[BaseException] = []

        async def pay(ctx: Context) -> None:
            try:
                async with ctx.transaction():
                    raise AssertionError
            except TransactionsUnsupported as error:
                raised.append(error)

        job = await world.define("bank", pay)
        node = world.node()
        await node.start()
        assert (await world.ended(await world.trigger(job))).status is OccurrenceStatus.COMPLETED
        assert "sqlite:///" in str(raised[0])
        await node.stop()

    living(story)


async def test_a_timeout_inside_a_transaction_takes_it_back(tmp_path: Path) -> None:
    """A block that is held too long ends with the attempt, and others can write again."""
    async with bench(tmp_path / "e.db") as world:

        async def pay(ctx: Context) -> None:
            async with ctx.transaction() as tx:
                await tx.execute("insert into money values (1)")
                await asyncio.Event().wait()

        whole = await world.ended(await world.define({"pay": pay}, task_timeout="300ms"))
        assert whole.occurrence.status is OccurrenceStatus.FAILED
        assert world.rows() == []


async def test_a_task_canceled_before_its_transaction_began_harms_no_other(tmp_path: Path) -> None:
    """It waited for what was decided before to be written; the writer goes on without it."""
    async with bench(tmp_path / "e.db", GatedStore) as world:
        assert isinstance(world.store, GatedStore)
        gate, waiting = world.store.gate, asyncio.Event()

        async def quick() -> None:
            gate.clear()

        async def pay(ctx: Context) -> None:
            await asyncio.sleep(0)
            try:
                waiting.set()
                async with ctx.transaction():
                    raise AssertionError
            finally:
                gate.set()

        job = await world.define({"quick": quick, "pay": pay}, mode="parallel", task_timeout="300ms")
        whole = await world.ended(job)
        assert waiting.is_set()
        assert whole.occurrence.status is OccurrenceStatus.FAILED
        again = await world.ended(job, "again")
        assert again.occurrence.status is OccurrenceStatus.FAILED, "the writer still writes"


async def test_a_task_that_will_not_leave_its_transaction_loses_it(tmp_path: Path) -> None:
    """It swallowed its cancel inside the block: rolled back, recorded as timed out, and others can write again."""
    async with bench(tmp_path / "e.db") as world:
        is_over = asyncio.Event()

        async def pay(ctx: Context) -> None:
            async with ctx.transaction() as tx:
                await tx.execute("insert into money values (1)")
                while not is_over.is_set():
                    try:
                        await is_over.wait()
                    except asyncio.CancelledError:
                        continue

        stuck = await world.define({"pay": pay}, task_timeout="200ms")
        whole = await world.ended(stuck)
        assert whole.occurrence.status is OccurrenceStatus.FAILED
        assert world.rows() == []
        is_over.set()


async def _statuses(world: World, occurrence: str) -> list[tuple[str, AttemptStatus]]:
    """Return how each attempt ended, once the occurrence has."""
    await world.ended(occurrence)
    return [(task, attempt.status) for task, attempt in (await world.store.whole(occurrence)).attempts]


def test_an_attempt_left_behind_before_its_turn_leaves_the_transaction_of_another_alone() -> None:
    """Its own end waits for that transaction, as every event of the occurrence does."""

    async def story(world: World) -> None:
        has_turn = asyncio.Event()

        async def first(ctx: Context) -> None:
            async with ctx.transaction():
                has_turn.set()
                await pause("1m")

        async def second(ctx: Context) -> None:
            await has_turn.wait()
            try:
                async with ctx.transaction():
                    raise AssertionError
            except asyncio.CancelledError:
                await pause("20s")

        own = {"second": {"task_timeout": "5s"}}
        job = await world.define("bank", {"first": first, "second": second}, own=own, mode="parallel")
        node = world.node(grace_period="1s")
        await node.start()
        ended = await _statuses(world, await world.trigger(job))
        assert ended == [("first", AttemptStatus.SUCCESS), ("second", AttemptStatus.TIMEOUT)]
        await node.stop()

    living(story, LendingStore)


def test_a_transaction_is_taken_back_at_once() -> None:
    """Its task leaves the block in the same turn of the loop: its success must not be written beside its timeout."""

    async def story(world: World) -> None:
        fenced: list[bool] = []

        async def pay(ctx: Context) -> None:
            try:
                async with ctx.transaction():
                    attempt = cast("OpenAttempt", ctx._services)
                    node.engine.inbox.put(TimeoutPassed(attempt))
                    node.engine.inbox.put(GraceOver(attempt))
            except Fenced:
                fenced.append(True)
                raise

        job = await world.define("bank", pay)
        node = world.node()
        await node.start()
        assert await _statuses(world, await world.trigger(job)) == [("a", AttemptStatus.TIMEOUT)]
        assert fenced == [True]
        await node.stop()

    living(story, LendingStore)


def test_one_that_waited_for_a_transaction_that_was_taken_back_does_not_begin_beside_the_next_one() -> None:
    """Of two transactions at once, the events that waited for the first would be lost with it: `plain` never ended."""

    async def story(world: World) -> None:
        is_over, tries = asyncio.Event(), list[int]()

        async def stuck(ctx: Context) -> None:
            tries.append(ctx.attempt)
            async with ctx.transaction():
                if ctx.attempt == 2:
                    await pause("30s")
                while ctx.attempt == 1 and not is_over.is_set():
                    with suppress(asyncio.CancelledError):
                        await is_over.wait()

        async def waits(ctx: Context) -> None:
            await pause("1s")
            async with ctx.transaction():
                pass

        async def plain() -> None:
            await pause("70s")

        tasks: dict[str, Function] = {"stuck": stuck, "waits": waits, "plain": plain}
        own = {"stuck": {"task_timeout": "60s", "retry": Retry(1, "10ms")}}
        job = await world.define("bank", tasks, own=own, mode="parallel")
        node = world.node(grace_period="1s")
        await node.start()
        occurrence = await world.trigger(job)
        await pause("80s")
        assert tries == [1, 2]
        is_over.set()
        ended = await _statuses(world, occurrence)
        assert [status for task, status in ended if task != "stuck"] == [AttemptStatus.SUCCESS] * 2
        await node.stop()

    living(story, LendingStore)
