"""The store in Redis or Valkey.

A second, faster way: with `reads_own` changes that other writers did not touch are sent again as they are.
Price: `bench/redis_store.py` with three processes, 8,860 a second with it and 7,030 without: 21 %.

Each process has a copy of the rows, and the verbs of the store in memory run on it. A verb begins with what others
have written since (one round trip, which also brings the server's time), and its own changes are written by one
script, which refuses them if anything was written meanwhile. Then the verb runs again on the newer copy. So every
commit is conditional on all that the verb has read, and no lock and no lease is needed (decision 0056).
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, TypeVar

from everytick.domain.changes import Edit
from everytick.domain.decisions import Plan
from everytick.domain.facts import Fact
from everytick.domain.fired import Fired
from everytick.domain.nodes import NodeFacts
from everytick.domain.notes import Note
from everytick.domain.promises import DuePromises, Judgement, OwedBreach
from everytick.domain.questions import Question
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.steps import OccurrenceEnd, Step
from everytick.errors import Contended, StoreBroken, StoreUnavailable, TransactionsUnsupported
from everytick.stores.base import (
    Ahead,
    Batch,
    Claim,
    ClaimKey,
    Commit,
    CommitAnswer,
    Committed,
    HistoryFilter,
    JobRecord,
    NodeScope,
    Offer,
    Orders,
    Page,
    Receipt,
    StoreAddress,
    Stored,
    Whole,
    new_token,
)
from everytick.stores.open_batches import OpenBatches
from everytick.stores.open_requests import refuse_within
from everytick.stores.protocols import ClaimTransaction
from everytick.stores.redis.access import RedisAccess
from everytick.stores.redis.connections import RedisConnections, read_address
from everytick.stores.redis.ended_rows import Cold
from everytick.stores.redis.entries import Changes, entry_of, member_lines
from everytick.stores.redis.log import Answer, Behind, ChangeLog, number_of
from everytick.stores.redis.own_beat import OwnBeat
from everytick.stores.redis.reading_ended import EndedReader
from everytick.stores.redis.replica import JOB, Replica
from everytick.stores.redis.server_facts import ServerFacts, server_facts

T = TypeVar("T")
A = TypeVar("A")

_log = logging.getLogger("everytick.store")

_HEARING_SECONDS = 60.0
"""How long the bell is listened for before the connection is looked at."""

_TRIES = 200
"""How often a verb runs again because another process was faster, or had the turn. One of them succeeds each time."""

_LOST_AT_MOST = 2
"""How often a verb loses before it asks for the next turn: a slow process would lose to fast ones for ever."""

HELD_AT_MOST = 20_000
"""About how many occurrences that have ended the copy of a process holds; others are read when a verb needs them."""


async def _nothing(replica: Replica) -> None:
    """Read nothing in advance."""


class RedisStore:
    """Jobs and history in Redis, shared by any number of processes. `clock` takes the server's place, for tests."""

    folds_at_once: ClassVar[int] = 1

    def __init__(
        self, url: str, *, clock: Callable[[], datetime] | None = None, held_at_most: int = HELD_AT_MOST
    ) -> None:
        self._connections = RedisConnections(read_address(url))
        self._clock, self._time = clock, datetime.min.replace(tzinfo=UTC)
        self._log, self._ended = ChangeLog(self._connections), EndedReader(self._connections)
        self._held_at_most = held_at_most
        self._replica: Replica | None = None
        self._open_batches = OpenBatches[str]()
        self._turn = asyncio.Lock()
        self._rung = asyncio.Event()
        self._must_wait = False
        self._listener: asyncio.Task[None] | None = None
        self._access = RedisAccess(self._read, self._write)

    @property
    def address(self) -> StoreAddress:
        """Where the store is."""
        known = self._connections.address
        return StoreAddress("redis", url=known.url, schema=known.prefix)

    @property
    def access(self) -> RedisAccess:
        """The part of the store that is about people."""
        return self._access

    # --------------------------------------------------------------------------------------------------- the copy

    async def open(self) -> None:
        """Make the store ready, and read it."""
        # The loop may be another one than that of an earlier opening.
        self._turn, self._rung = asyncio.Lock(), asyncio.Event()
        async with self._turn:
            await self._load()
        await self._warn_of_eviction()

    async def _warn_of_eviction(self) -> None:
        """Say so if the server deletes any key when its memory is full; `everytick doctor` says more."""
        # A server that does not tell its settings may be well.
        with suppress(StoreBroken):
            facts = await self.server()
            if facts.memory_limit and facts.policy.startswith("allkeys"):
                _log.warning(
                    "%s deletes keys when its memory is full (maxmemory-policy %s), and so rows of this store; nothing "
                    "is lost yet: set maxmemory-policy noeviction",
                    self._connections.address,
                    facts.policy,
                )

    async def close(self) -> None:
        """Close the connections. A second call does nothing."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)
        self._replica = None
        await self._connections.close()

    def _now(self) -> datetime:
        return self._time if self._clock is None else self._clock()

    async def _load(self) -> Replica:
        """Read the store into a new copy, and follow the log from where the reading began."""
        while True:
            made = Replica(self._now, new_token, self._open_batches, self._held_at_most)
            self._replica = None
            await self._log.open()
            tables, job_ids = await self._log.tables(made.tables)
            made.take(tables)
            rows = await self._ended.rows([JOB + id_ for id_ in job_ids])
            made.left_out = {JOB + id_ for id_ in job_ids} - rows.keys()
            made.take(rows)
            await self._ended.begin(made, job_ids)
            self._replica = made
            with suppress(Behind):
                self._follow(made, await self._log.sync())
                await self._refuse_damage(made)
                return made

    async def _refuse_damage(self, replica: Replica) -> None:
        """Raise StoreBroken if the server names rows that it does not have.

        What others have deleted while the copy was read is no longer named.
        """
        lacking = sorted(filter(replica.lacks, replica.left_out))
        if lacking and (named := await self._ended.named(lacking)):
            self._replica = None
            raise self._log.damaged(named[0])

    def _follow(self, replica: Replica, answer: Answer) -> None:
        self._time, self._must_wait = answer.now, answer.must_wait
        for changes in answer.entries:
            replica.take(changes)

    async def _synced(self) -> Replica:
        """Return the copy with all that was written until now."""
        # The store may be closed meanwhile, which forgets its copy.
        if (replica := self._replica) is None:
            return await self._load()
        try:
            self._follow(replica, await self._log.sync())
        except Behind as behind:
            self._tell(behind)
            return await self._load()
        return replica

    def _tell(self, behind: Behind) -> None:
        """Say so if the server has lost what it had confirmed."""
        if behind.is_lost:
            _log.warning(
                "%s has lost changes that it had confirmed, as after a failover or a restart from an older copy; this "
                "process goes on with what is there, and what was lost is decided and run again",
                self._connections.address,
            )

    async def _read(
        self, verb: Callable[[Replica], Awaitable[T]], prepare: Callable[[Replica], Awaitable[None]] = _nothing
    ) -> T:
        """Answer from the copy. `prepare` reads into it what the verb is known to need."""
        async with self._turn:
            replica = await self._synced()
            await prepare(replica)
            try:
                while True:
                    try:
                        return await verb(replica)
                    except Cold as asked:
                        await self._ended.answer(replica, asked)
            finally:
                replica.cool()

    async def _write(
        self,
        verb: Callable[[Replica], Awaitable[T]],
        prepare: Callable[[Replica], Awaitable[None]] = _nothing,
        *,
        reads_own: bool = False,
    ) -> T:
        """Let the verb change the copy, and write what it changed; again if another process was faster.

        `reads_own` says that the verb reads no rows but those that it names, and their jobs. If another process was
        faster and changed none of these, the changes are sent again as they are.
        """
        async with self._turn:
            replica = await self._synced()
            for lost in range(_TRIES):
                if self._must_wait:
                    await self._log.wait()
                    replica = await self._synced()
                    continue
                await prepare(replica)
                answer = await self._run(replica, verb)
                if await self._commit(replica, turn=lost >= _LOST_AT_MOST, reads_own=reads_own):
                    replica.cool()
                    return answer
                if self._replica is None:
                    replica = await self._load()
        raise Contended(str(self._connections.address), "other processes were faster each time")

    async def _run(self, replica: Replica, verb: Callable[[Replica], Awaitable[T]]) -> T:
        """Carry out a verb that changes the copy. If it asks for rows that are not held, it runs again with them."""
        while True:
            replica.begin()
            try:
                return await verb(replica)
            except Cold as asked:
                replica.undo(replica.changes())
                await self._ended.answer(replica, asked)
            except BaseException:
                replica.undo(replica.changes())
                raise

    async def _commit(self, replica: Replica, *, turn: bool, reads_own: bool) -> bool:
        """Write what the verb has changed. Return whether the server took it; if not, the copy is as new as can be."""
        changes, rings = replica.changes(), replica.has_rung
        # Others wait for the next entry of a writer that has the turn, also when it has found nothing to change.
        if not changes and not rings and not self._log.has_turn:
            return True
        try:
            answer = await self._send(replica, changes, turn=turn, reads_own=reads_own)
        except Behind as behind:
            self._tell(behind)
            self._replica = None
            return False
        except BaseException:
            # Whether the server has written it is not known: the log tells.
            replica.undo(changes)
            raise
        if answer.written:
            replica.keep(changes)
            self._time = answer.now
            if rings:
                self._rung.set()
            return True
        replica.undo(changes)
        self._follow(replica, answer)
        return False

    async def _send(self, replica: Replica, changes: Changes, *, turn: bool, reads_own: bool) -> Answer:
        """Return the server's answer to the changes. `_write` says when they are sent again as they are."""
        entry, members, rings = entry_of(changes), member_lines(replica.members()), replica.has_rung
        while True:
            answer = await self._log.commit(entry, members, rings=rings, turn=turn)
            if answer.written or not reads_own or not replica.is_apart_from(answer.entries, changes):
                return answer
            self._follow(replica, answer)
            if answer.must_wait:
                await self._log.wait()
            # The verb has run: with the turn, it loses to one more commit at most.
            turn = True

    # -------------------------------------------------------------------------------------------- time and bell

    async def now(self) -> datetime:
        """Return the store's time. It follows the server's clock, also when that is set back."""

        async def ask(replica: Replica) -> datetime:
            return await replica.verbs.now()

        return await self._read(ask)

    async def settle_clock(self) -> Sequence[tuple[str, datetime]]:
        """Correct the times that were written while the clock was ahead. Return the jobs whose watermark lies ahead."""
        return await self._write(lambda replica: replica.verbs.settle_clock())

    async def check_writable(self) -> None:
        """Return if the server takes writes, and still has the store."""
        async with self._turn:
            await self._synced()
            await self._log.check_writable()

    async def server(self) -> ServerFacts:
        """Return what the server says of itself."""
        return server_facts(await self._connections.asked(self._connections.client.info()))

    async def bell(self, seconds: float) -> bool:
        """Wait up to `seconds` for a hint that something changed. Return whether one came."""
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(self._listen(), name="everytick-bell")
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    async def _listen(self) -> None:
        """Hear the bell. Without a connection there is no hint, and nodes look by themselves."""
        with suppress(StoreUnavailable):
            async with self._connections.subscribed(self._log.bell) as heard:
                # What was written before the channel was heard would be missed.
                self._rung.set()
                while True:
                    message = await heard.get_message(timeout=_HEARING_SECONDS)
                    if message is not None and number_of(message["data"]) > self._log.number:
                        self._rung.set()

    async def ahead(self, scope: NodeScope) -> Ahead:
        """Return when the next job or occurrence of this scope comes, so that a node can sleep until then."""
        return replace(await self._read(lambda replica: replica.verbs.ahead(scope)), alone=False)

    # ------------------------------------------------------------------------------------------------- the planner

    @asynccontextmanager
    async def due(self, scope: NodeScope, limit: int, by: datetime | None = None) -> AsyncIterator[Batch]:
        """Give up to `limit` jobs of the scope whose `wake_at` has come, longest-waiting first."""
        async with AsyncExitStack() as stack:
            batch = await self._read(lambda replica: stack.enter_async_context(replica.verbs.due(scope, limit, by)))
            yield batch

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        """Write each whole plan whose job still has the revision of the snapshot."""
        return await self._write(
            lambda replica: replica.verbs.commit_plans(batch, plans, offer),
            lambda replica: self._ended.for_plans(replica, plans),
        )

    # ------------------------------------------------------------------------------------------------- the runner

    async def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        """Give the node up to `limit` ready occurrences of its scope, by priority, then age."""
        return await self._write(lambda replica: replica.verbs.claim(scope, limit))

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write each step whose claim still has the fence and token of the occurrence."""
        # A step that is written again, since its answer was lost, finds the end that it made.
        ids = [claim.header.id for claim, _ in steps]
        return await self._write(
            lambda replica: replica.verbs.commit_steps(steps),
            lambda replica: self._ended.know(replica, ids),
            reads_own=True,
        )

    async def beat(self, node: str, keys: Collection[ClaimKey], facts: NodeFacts | None = None) -> Orders:
        """Record that the node lives and which claims it holds. Return the claims about which the store differs."""
        return await self._write(lambda replica: replica.verbs.beat(node, keys, facts))

    async def leave(self, node: str) -> None:
        """Record that the node has stopped: its `beats` become 0, and its claims are orphans at once."""
        await self._write(lambda replica: replica.verbs.leave(node))

    async def orphans(
        self, reaper: str, limit: int, silent: Mapping[str, int], keys: Collection[ClaimKey] = ()
    ) -> list[Claim]:
        """Take over the claims in `keys`, and those of each silent node whose `beats` still has the value named."""
        return await self._write(lambda replica: replica.verbs.orphans(reaper, limit, silent, keys))

    async def reattach(self, scope: NodeScope, limit: int, silent: Mapping[str, int]) -> list[Claim]:
        """Give the node of the scope what these silent nodes have handed over to engines."""
        return await self._write(lambda replica: replica.verbs.reattach(scope, limit, silent))

    async def note(self, notes: Sequence[tuple[Claim, Note]]) -> Sequence[CommitAnswer]:
        """Write the row of a running attempt, for people, if the claim still has its fence and token."""
        ids = [claim.header.id for claim, _ in notes]
        return await self._write(
            lambda replica: replica.verbs.note(notes), lambda replica: self._ended.know(replica, ids)
        )

    def transaction(self, claim: Claim) -> AbstractAsyncContextManager[ClaimTransaction]:
        """Refuse: a task cannot write its own rows in a script."""
        raise TransactionsUnsupported("redis")

    def apart(self) -> AbstractAsyncContextManager[OwnBeat]:
        """Give the node that calls this what it needs to beat on another loop, through a connection of its own."""
        connections, home = RedisConnections(self._connections.address), asyncio.get_running_loop()
        return OwnBeat(connections, self._log.epoch, self._clock, self._orders, home).opened()

    async def _orders(self, node: str, keys: Collection[ClaimKey]) -> Orders:
        return await self._read(lambda replica: replica.verbs.orders(node, keys))

    async def reports(self, scope: NodeScope, limit: int) -> list[OccurrenceEnd]:
        """Return ended occurrences of the scope whose report was not delivered yet, oldest end first."""
        return await self._read(lambda replica: replica.verbs.reports(scope, limit))

    async def reported(self, occurrence_ids: Collection[str]) -> None:
        """Record that these reports were delivered. A report may be delivered twice; it is never lost."""
        await self._write(lambda replica: replica.verbs.reported(occurrence_ids))

    # ------------------------------------------------------------------------------------------------------- jobs

    async def apply(self, changes: Sequence[Edit], by: str = "") -> list[Stored]:
        """Make every change in one transaction, or none. Return the result of each."""
        return await self._write(lambda replica: replica.verbs.apply(changes, by))

    async def get(self, job_ids: Collection[str]) -> dict[str, JobRecord]:
        """Return the jobs with these ids that exist, by id."""
        return await self._read(lambda replica: replica.verbs.get(job_ids))

    async def list(self, *, removed: bool = False, after: str = "", limit: int | None = None) -> Sequence[JobRecord]:
        """Return every job that is not removed, by name. With `removed`, return removed jobs too."""
        return await self._read(lambda replica: replica.verbs.list(removed=removed, after=after, limit=limit))

    async def look(self, job_ids: Collection[str]) -> dict[str, JobSnapshot]:
        """Return the snapshot of each of these jobs that exists, due or not. No job is locked."""
        return await self._read(lambda replica: replica.verbs.look(job_ids))

    async def record(self, job_id: str, fired: Fired) -> Sequence[int | None]:
        """Record the runs that a node fired while this store was away. Return the handle of each run, or None."""
        ids = [run.creation.id for run in fired.runs]
        return await self._write(
            lambda replica: replica.verbs.record(job_id, fired), lambda replica: self._ended.know(replica, ids)
        )

    async def define(self, names: Collection[str], left_out: Collection[str] = ()) -> None:
        """Store the names that a starting process defines, once under their hash, and mark the jobs in `left_out`."""
        await self._write(lambda replica: replica.verbs.define(names, left_out))

    async def retire(self, marks: Mapping[str, datetime], *, after: timedelta, by: str = "") -> frozenset[str]:
        """Remove each of these jobs, by id, if it still has this mark. Return those that were removed."""
        return await self._write(lambda replica: replica.verbs.retire(marks, after=after, by=by))

    async def purge(self, job_id: str, limit: int = 1000) -> bool:
        """Delete up to `limit` occurrences of a removed job, and the job with the last of them."""

        async def purge(replica: Replica) -> bool:
            with replica.patchy():
                return await replica.verbs.purge(job_id, limit)

        return await self._write(purge, lambda replica: self._ended.oldest(replica, job_id, limit))

    async def request(self, subject: str, fact: Fact, within: Any = None) -> Receipt:
        """Write one fact about a job or an occurrence, and make its job due."""
        if within is not None:
            refuse_within(fact)
            raise TransactionsUnsupported("redis")
        return await self._write(lambda replica: replica.verbs.request(subject, fact))

    # ----------------------------------------------------------------------------------------- history and nodes

    async def history(self, filter: HistoryFilter) -> Page:
        """Return a page of occurrences, newest first."""
        return await self._read(lambda replica: replica.verbs.history(filter))

    async def whole(self, occurrence_id: str) -> Whole:
        """Return one occurrence with its runs and attempts."""
        return await self._read(lambda replica: replica.verbs.whole(occurrence_id))

    async def prune(self, limit: int = 1000) -> int:
        """Delete up to `limit` ended occurrences that the retention of their job no longer keeps. Return how many."""

        async def prune(replica: Replica) -> int:
            with replica.patchy():
                return await replica.verbs.prune(limit)

        return await self._write(prune, self._ended.for_pruning)

    # ----------------------------------------------------------------------------------- promises and questions

    async def promises(self, scope: NodeScope, limit: int) -> DuePromises:
        """Return up to `limit` promises that may be broken now, and breaches that were not told for a while."""
        return await self._read(lambda replica: replica.verbs.promises(scope, limit))

    async def commit_promises(
        self, judgements: Sequence[Judgement], told: Sequence[OwedBreach] = ()
    ) -> Sequence[Commit]:
        """Write each whole judgement whose promise still has the revision that was read, and what was told."""
        return await self._write(lambda replica: replica.verbs.commit_promises(judgements, told))

    async def ask(self, question: Question[A]) -> A:
        """Answer one of the questions in `domain.questions`."""

        async def answer(replica: Replica) -> A:
            with replica.patchy() if self._ended.is_broad(replica, question) else nullcontext():
                return await replica.verbs.ask(question)

        return await self._read(answer, lambda replica: self._ended.for_question(replica, question))

    async def fold(self, limit: int = 1000) -> int:
        """Return 0: every answer is read from the rows."""
        return 0
