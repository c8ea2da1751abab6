"""A store between which and its node anything may go wrong: delays, silence, lost replies, a node that is no more."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any

from everytick.domain.decisions import Plan, put_off
from everytick.domain.fired import Fired
from everytick.domain.steps import Step
from everytick.errors import StoreUnavailable
from everytick.stores.base import (
    Batch,
    Claim,
    Commit,
    CommitAnswer,
    CommitFailed,
    Committed,
    NodeScope,
    Offer,
)
from everytick.stores.each_alone import each_alone
from tests.sim.chance import passing
from tests.sim.database import Database
from tests.stores.acting import AnyStore


class Wire:
    """What lies between one node and the store; the node touches the world through here and nowhere else.

    A node whose wire is cut for ever has crashed, wherever it was: before a verb had its
    effect, or after it and before the answer. What it goes on doing by itself is not seen.
    """

    def __init__(self, store: AnyStore, chance: Random, seconds: Callable[[], float], database: Database) -> None:
        self.store, self.chance, self._seconds, self.database = store, chance, seconds, database
        self.truth = store
        """What is looked at to judge an answer, in the moment in which it was given."""
        self.is_cut = self.is_over = False
        self.frozen_until = self.silent_until = self.held_until = 0.0
        self.lost, self.deaf, self.slow = 0.0, 0.0, 0.0
        self.freezes_with_claims = 0.0
        """For how many seconds the node stands still when the next claims are on their way to it; 0 for not at all."""
        self.written: set[tuple[int, int, int]] = set()
        self.arrived: dict[tuple[str, int], tuple[float, float]] = {}
        """When each claim was asked for and when it arrived, by occurrence and fence."""
        self.given_back: dict[tuple[str, int], float] = {}
        """When the node gave a claim back before it began anything of it, by occurrence and fence."""
        self.planned: set[str] = set()
        """The jobs of which the node has written a plan, by name."""

    @property
    def stands_until(self) -> float:
        """Until when nothing happens on the node's loop."""
        return max(self.frozen_until, self.held_until)

    async def stand_still(self) -> None:
        """Return when the node's loop goes on."""
        while self._seconds() < self.stands_until:
            await passing(self.stands_until - self._seconds())

    async def way(self, *, beats: bool = False) -> None:
        """Pass from one side to the other, or not; of a node whose loop a task holds up only the beat does."""
        if self.is_over:
            raise asyncio.CancelledError
        if self.slow:
            await passing(self.chance.random() * self.slow)
        while self._seconds() < (until := self.frozen_until if beats else self.stands_until):
            await passing(until - self._seconds())
        if self.is_cut:
            await asyncio.get_running_loop().create_future()
        if self._seconds() < self.silent_until or self.chance.random() < self.lost:
            raise StoreUnavailable("the simulated store", "does not answer")

    def note_claims(self, claims: Iterable[Claim], asked_at: float) -> None:
        """Note when these claims arrived at the node."""
        for claim in claims:
            self.arrived[claim.header.id, claim.fence] = asked_at, self._seconds()

    @property
    def seconds(self) -> float:
        """What the loop's clock shows."""
        return self._seconds()


class FaultyStore:
    """Every verb of the store, as a node reaches it over its wire."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def __getattr__(self, verb: str) -> Any:
        inner = getattr(self._wire.store, verb)
        if not inspect.iscoroutinefunction(inner):
            return inner

        async def over_the_wire(*arguments: Any, **named: Any) -> Any:
            await self._wire.way(beats=verb == "beat")
            self._wire.database.require(verb)
            answer = await inner(*arguments, **named)
            await self._wire.way(beats=verb == "beat")
            return answer

        return over_the_wire

    async def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        """Claim; the answer may find a node that stands still."""
        wire, asked_at = self._wire, self._wire.seconds
        await wire.way()
        wire.database.require("claim")
        claims = await wire.store.claim(scope, limit)
        if claims and wire.freezes_with_claims:
            wire.frozen_until, wire.freezes_with_claims = wire.seconds + wire.freezes_with_claims, 0.0
        await wire.way()
        wire.note_claims(claims, asked_at)
        return claims

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        """Write plans as an SQL store does: together, then each alone, and what the database refuses is set aside."""
        wire, asked_at, claims = self._wire, self._wire.seconds, list[Claim]()
        await wire.way()
        wire.database.require("commit_plans")

        async def write(some: Sequence[Plan]) -> Sequence[CommitAnswer]:
            wire.database.require_writable_plans(some)
            done = await wire.store.commit_plans(batch, some, offer if some is plans else None)
            claims.extend(done.claims)
            return done.answers

        async def set_aside(plan: Plan, reason: str) -> CommitAnswer:
            [snapshot] = [each for each in batch.snapshots if each.job_id == plan.job_id]
            aside = put_off(snapshot, await wire.store.now())
            wire.database.require_writable_plans([aside])
            done = await wire.store.commit_plans(replace(batch, token=-batch.token), [aside])
            return CommitFailed(reason) if Commit.COMMITTED in done.answers else done.answers[0]

        async def check_writable() -> None:
            wire.database.require("check_writable")

        answers = await each_alone(plans, write, "plans", set_aside, check_writable)
        written = {plan.job_id for plan, answer in zip(plans, answers, strict=True) if answer is Commit.COMMITTED}
        wire.planned |= {each.editions[-1].job.name for each in batch.snapshots if each.job_id in written}
        await wire.way()
        wire.note_claims(claims, asked_at)
        return Committed(answers, tuple(claims))

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write, and hold the answer to what the store says of each occurrence in this very moment."""
        await self._wire.way()
        self._wire.database.require("commit_steps")

        async def write(some: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
            self._wire.database.require_writable_steps(some)
            return await self._wire.store.commit_steps(some)

        answers = await each_alone(steps, write, "steps")
        for (claim, step), answer in zip(steps, answers, strict=True):
            await self._require_true(claim, step, answer)
        await self._wire.way()
        return answers

    async def record(self, job_id: str, fired: Fired) -> Sequence[int | None]:
        """Write down what was fired locally, unless the database refuses it."""
        await self._wire.way()
        self._wire.database.require("record")
        handles = await self._wire.store.record(job_id, fired)
        await self._wire.way()
        return handles

    async def _require_true(self, claim: Claim, step: Step, answer: CommitAnswer) -> None:
        if not isinstance(answer, Commit):
            return  # nothing of it was written
        record = (await self._wire.truth.whole(claim.occurrence.id)).occurrence
        key = claim.handle, claim.fence, step.number
        if answer is Commit.COMMITTED:
            self._wire.written.add(key)
            if step.restores:
                self._wire.given_back[claim.header.id, claim.fence] = self._wire.seconds
            if step.end is not None:
                assert record.status is step.end.status, f"{record} was to be {step.end.status}"
            assert record.fence in (claim.fence, claim.fence + 1), f"{record} was another's by then"
        else:
            is_last = record.fence == claim.fence + (step.end is not None)
            assert key not in self._wire.written or not is_last, f"step {step.number} of {record} is known already"

    async def bell(self, seconds: float) -> bool:
        """Wait for a hint that may never come."""
        await self._wire.way()
        if self._wire.chance.random() < self._wire.deaf:
            await passing(seconds)
            return False
        rang = await self._wire.store.bell(seconds)
        await self._wire.way()
        return rang

    @asynccontextmanager
    async def due(self, scope: NodeScope, limit: int, by: datetime | None = None) -> AsyncIterator[Batch]:
        """Give snapshots that are older than the wire is long."""
        await self._wire.way()
        self._wire.database.require("due")
        async with self._wire.store.due(scope, limit, by) as batch:
            await self._wire.way()
            yield batch

    async def open(self) -> None:
        """Return: it is open."""

    async def close(self) -> None:
        """Return: it stays open for the others."""

    def apart(self) -> None:
        """A store in memory lives in one loop."""


def heal(wires: Collection[Wire]) -> None:
    """End every fault but death; the way stays long, and half of the bells are not heard."""
    for wire in wires:
        wire.lost = wire.silent_until = wire.frozen_until = wire.held_until = wire.freezes_with_claims = 0.0
        wire.slow, wire.deaf = 0.4, 0.5
