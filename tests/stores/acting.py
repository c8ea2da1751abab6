"""Short ways to make jobs and to let a planner, a claimer and a reaper act once, as the loops will."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from everytick import schedule
from everytick.deciding.advance import advance
from everytick.deciding.plan import plan
from everytick.domain.changes import Put, Remove, Rename
from everytick.domain.decisions import Plan
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.occurrence import Occurrence
from everytick.domain.outcome import Failed, Lost, Outcome, Succeeded
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.steps import AttemptEnded, Claimed, Step
from everytick.stores.addresses import AnyStore as AnyStore
from everytick.stores.base import Batch, Claim, Commit, CommitAnswer, HistoryFilter, Nodes, NodeScope, Stored, new_token

QUEUES = ("default",)


def job(
    name: str = "report",
    when: str = "0 * * * *",
    tasks: tuple[str, ...] = ("main",),
    *,
    reports: bool = True,
    code: str = "",
    **policies: Any,
) -> Job:
    """Return a job: hourly, of one task, with reports, unless said otherwise."""
    written = [define_task(name, task) for task in tasks]
    return define_job(name, schedule(when), policies=policies, tasks=written, reports=reports, code=code)


async def everything(store: AnyStore, node: str = "node-1") -> NodeScope:
    """Return the scope of a node that meets whatever any job needs."""
    return NodeScope(node, (await store.ahead(NodeScope(node))).needs)


async def plan_once(store: AnyStore, limit: int = 100, scope: NodeScope | None = None) -> list[CommitAnswer]:
    """Plan every due job once, of this scope where one is given, and commit what was decided."""
    async with store.due(scope or await everything(store), limit) as batch:
        return list((await store.commit_plans(batch, plans_of(batch))).answers)


def plans_of(batch: Batch) -> list[Plan]:
    """Return what is decided about each job of the batch."""
    return [plan(snapshot, batch.now) for snapshot in batch.snapshots]


def batch_of(now: datetime, *snapshots: JobSnapshot) -> Batch:
    """Return a batch of jobs as `look` or an earlier batch saw them."""
    return Batch(now, snapshots, new_token())


async def occurrences(store: AnyStore, job_id: str | None = None) -> list[Occurrence]:
    """Return what exists, oldest first."""
    return list(reversed((await store.history(HistoryFilter(job_id=job_id, limit=1000))).occurrences))


async def statuses(store: AnyStore, job_id: str | None = None) -> list[str]:
    """Return where everything stands, oldest first."""
    return [str(each.status) for each in await occurrences(store, job_id)]


async def claim_one(store: AnyStore, node: str = "node-1", scope: NodeScope | None = None) -> Claim:
    """Return the one occurrence that is ready."""
    [claim] = await store.claim(scope or await everything(store, node), 10)
    return claim


def began(claim: Claim, now: datetime) -> Step:
    """Return what follows from the claim: the first attempts."""
    return advance(claim.header, claim.life, Claimed(), now)


def ended(claim: Claim, step: Step, now: datetime, outcome: Outcome | None = None) -> Step:
    """Return what follows when the first attempt of a step has ended, well unless said otherwise."""
    first = step.starts[0]
    return advance(claim.header, step.after, AttemptEnded(first.task, first.number, outcome or Succeeded()), now)


async def run_one(
    store: AnyStore, outcome: Outcome | None = None, node: str = "node-1", scope: NodeScope | None = None
) -> Claim:
    """Claim what is ready, run its only task and commit the end."""
    claim = await claim_one(store, node, scope)
    now = await store.now()
    assert await store.commit_steps([(claim, ended(claim, began(claim, now), now, outcome))]) == [Commit.COMMITTED]
    return claim


async def unheard(store: AnyStore, silence: timedelta = timedelta(seconds=20)) -> dict[str, int]:
    """Return the nodes that were not heard of for so long, each with its beats, as a reaper would name them."""
    now = await store.now()
    return {each.id: each.beats for each in await store.ask(Nodes()) if not each.is_alive(now, silence)}


async def reap(store: AnyStore, node: str = "reaper") -> Sequence[CommitAnswer]:
    """Report `Lost` for everything that silent nodes held."""
    now = await store.now()
    claims = await store.orphans(node, 100, await unheard(store))
    return await store.commit_steps([(claim, advance(claim.header, claim.life, Lost(), now)) for claim in claims])


async def deliver(store: AnyStore, scope: NodeScope | None = None) -> list[str]:
    """Deliver every report that is due, as a node does, and return whose they were."""
    found = [snapshot.id for snapshot in await store.reports(scope or await everything(store), 100)]
    await store.reported(found)
    return found


FAILED = Failed("boom")


async def put(store: AnyStore, job: Job, *, expected: int | None = None, by: str = "") -> Stored:
    """Store one definition."""
    [stored] = await store.apply([Put(job, expected)], by)
    return stored


async def put_all(store: AnyStore, jobs: Sequence[Job], *, by: str = "") -> list[Stored]:
    """Store these definitions together."""
    return await store.apply([Put(job) for job in jobs], by)


async def remove(store: AnyStore, job_id: str, *, retire_after: timedelta = timedelta(0), by: str = "") -> Stored:
    """Take the job of this id out of service."""
    [stored] = await store.apply([Remove(await _name_of(store, job_id), retire_after)], by)
    return stored


async def rename(store: AnyStore, job_id: str, name: str, *, by: str = "") -> Stored:
    """Give the job of this id another name."""
    [stored] = await store.apply([Rename(await _name_of(store, job_id), name)], by)
    return stored


async def _name_of(store: AnyStore, job_id: str) -> str:
    found = (await store.get([job_id])).get(job_id)
    return "nobody" if found is None else found.job.name
