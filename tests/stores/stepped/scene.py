"""One job in the middle of its life, and everything that two parties may do to it at the same moment.

An hourly job with two places: its first occurrence is run by a node that fell silent, the
second may be claimed, the third waits in line, the fourth instant is due, and a person asks
for one more that no plan has answered. A version that has waited for an hour comes into force
at this moment: the next plan gives it to what no node has claimed.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from everytick.deciding.plan import plan
from everytick.domain.changes import Put
from everytick.domain.decisions import Plan
from everytick.domain.facts import Cancel, DropLimit, Pause, Resume, SetLimit, Trigger
from everytick.domain.lookups import LimitsAndBrakes, Spans
from everytick.domain.policies import update_policy
from everytick.domain.statuses import ENDED
from everytick.domain.steps import Step
from everytick.errors import EverytickError
from everytick.stores.base import Batch, Claim, CommitAnswer, Nodes, NodeScope, Orders
from tests.stores.acting import FAILED, AnyStore, began, ended, job, occurrences, plan_once, put, reap, remove
from tests.stores.clock import ManualClock

POLICIES: Mapping[str, Any] = {
    "overlap": "queue",
    "max_concurrent": 2,
    "recovery": "execute_all",
    "on_orphan": "restart",
    "retry": {"max": 1, "interval": "10m"},
}


@dataclass
class Scene:
    """What the deeds are about: the first occurrence's claim, the others' ids, and a plan that may grow old."""

    job_id: str
    claim: Claim
    success: Step
    failure: Step
    pending_id: str
    beats: int
    asked_id: str
    batch: Batch
    plans: Sequence[Plan]


async def set_up(store: AnyStore, clock: ManualClock) -> Scene:
    """Bring a job to where two parties may meet; the clock has moved four hours."""
    stored = await put(store, job(**POLICIES))
    clock.move(hours=1)
    await plan_once(store)
    [claim] = await store.claim(NodeScope("node-1"), 5)
    begun = began(claim, clock.time)
    for _ in range(2):
        clock.move(hours=1)
        await plan_once(store)
    await store.apply([Put(job(when="0,30 * * * *", **POLICIES, priority=3), 1, update_policy("graceful 1h"))])
    clock.move(hours=1)
    now = await store.now()
    asked_id = (await store.request(stored.job_id, Trigger("open", call=1))).id
    async with store.due(NodeScope("node-1"), 10) as batch:
        plans = [plan(snapshot, now) for snapshot in batch.snapshots]
    made = await occurrences(store)
    assert [str(each.status) for each in made] == ["running", "pending", "queued"]
    success, failure = ended(claim, begun, now), ended(claim, begun, now, FAILED)
    [silent] = await store.ask(Nodes())
    return Scene(stored.job_id, claim, success, failure, made[1].id, silent.beats, asked_id, batch, plans)


# ----------------------------------------------------------------------------------------------------------- deeds

Deed: TypeAlias = Callable[[AnyStore, Scene], Awaitable[Any]]


async def _commit_old_plans(store: AnyStore, scene: Scene) -> list[CommitAnswer]:
    return list((await store.commit_plans(scene.batch, scene.plans)).answers)


DEEDS: Mapping[str, Deed] = {
    "claim": lambda store, scene: store.claim(NodeScope("node-3"), 5),
    "end": lambda store, scene: store.commit_steps([(scene.claim, scene.success)]),
    "park": lambda store, scene: store.commit_steps([(scene.claim, scene.failure)]),
    "plan": lambda store, scene: plan_once(store),
    "old_plan": _commit_old_plans,
    "beat": lambda store, scene: store.beat("node-1", [scene.claim.key]),
    "orphans": lambda store, scene: store.orphans("node-2", 10, {"node-1": scene.beats}),
    "overdue": lambda store, scene: store.orphans("node-2", 10, {}, [scene.claim.key]),
    "leave": lambda store, scene: store.leave("node-1"),
    "edit": lambda store, scene: put(store, job(**POLICIES, priority=5)),
    "window": lambda store, scene: store.apply([Put(job(**POLICIES, priority=7), None, update_policy("windowed 2"))]),
    "pause": lambda store, scene: store.request(scene.job_id, Pause()),
    "remove": lambda store, scene: remove(store, scene.job_id),
    "cancel_running": lambda store, scene: store.request(scene.claim.occurrence.id, Cancel("by hand")),
    "cancel_pending": lambda store, scene: store.request(scene.pending_id, Cancel("by hand")),
    "request": lambda store, scene: store.request(
        scene.job_id, Trigger("key", scheduled_for=scene.claim.occurrence.scheduled_for)
    ),
    "limit": lambda store, scene: store.request("all", SetLimit(most=1)),
    "cancel_asked": lambda store, scene: store.request(scene.asked_id, Cancel("by hand")),
}

PASSES_OVER = frozenset({"claim", "orphans", "overdue", "plan"})
"""What another holds at this moment is not waited for: these may come back as if there had been nothing to do."""

ANSWERS_LATE = frozenset({"beat", "plan"})
"""Their answer may be older than their effect, and is told again: the next beat or look says the rest."""


async def done(name: str, store: AnyStore, scene: Scene) -> Any:
    """Do it, and return the answer in words that every store shares."""
    try:
        answer = await DEEDS[name](store, scene)
    except EverytickError as error:
        return type(error).__name__
    if name in ANSWERS_LATE:
        return None
    return _plain(answer)


def _plain(answer: Any) -> Any:
    match answer:
        case Claim():
            return answer.fence, _untimed(answer.occurrence), answer.header, answer.life
        case Orders():
            return len(answer.cancel), len(answer.gone), len(answer.adopt)
        case list():
            return [_plain(each) for each in answer]
        case _:
            return answer


def _untimed(record: Any) -> Any:
    return replace(record, updated_at=None)


async def state(store: AnyStore, scene: Scene) -> dict[str, Any]:
    """Return everything that is written about the job, without the store's own keys."""
    wholes = [await store.whole(each.id) for each in await occurrences(store)]
    return {
        "job": await store.get([scene.job_id]),
        "seen by a plan": await store.look([scene.job_id]),
        "occurrences": [(_untimed(whole.occurrence), whole.runs, whole.attempts) for whole in wholes],
        "spans": list(await store.ask(Spans(scene.job_id, scene.batch.snapshots[0].watermark, await store.now()))),
        "reports": [each.id for each in await store.reports(NodeScope("node-1"), 100)],
        "limits": await store.ask(LimitsAndBrakes()),
        "nodes": [(node.id, node.beat_at, node.holds, node.beats) for node in await store.ask(Nodes())],
    }


# ------------------------------------------------------------------------------------------------------ invariants


async def require_sound(store: AnyStore, scene: Scene, clock: ManualClock) -> None:
    """Hold what must be true in the moment after: one owner, no more than two busy, no wake-up lost."""
    made = await occurrences(store)
    record = (await store.get([scene.job_id]))[scene.job_id]
    assert len({(each.cause, each.scheduled_for) for each in made}) == len(made), "an instant has two occurrences"
    for each in made:
        assert (each.owner is not None) <= (each.status in ("running", "awaiting_retry")), each
        assert (each.ended_at is not None) == (each.status in ENDED), each
    busy = sum(each.status in ("pending", "running", "awaiting_retry") for each in made)
    waiting = sum(each.status == "queued" for each in made)
    assert busy <= 2 + sum(each.cause != "schedule" for each in made)
    held = record.pause is not None or record.removed_at is not None
    assert held or record.wake_at is not None, "nobody will look at the job again"
    if waiting and busy < 2 and not held:
        assert record.wake_at is not None
        assert record.wake_at <= clock.time, "there is room and somebody waits, but nobody was woken"


async def require_settles(store: AnyStore, scene: Scene, clock: ManualClock) -> None:
    """Let time pass and nodes work; then everything has ended once, and what had ended is as it was."""
    before = {each.id: each for each in await occurrences(store) if each.status in ENDED}
    await store.request(scene.job_id, Resume())
    await store.request("all", DropLimit())
    for _ in range(8):
        clock.move(minutes=11)
        for node in ("worker", "reaper"):
            await store.beat(node, [])
        await reap(store)
        await plan_once(store)
        while await run_what_is_ready(store):
            await plan_once(store)
    made = await occurrences(store)
    assert all(each.status in ENDED for each in made), [(each.scheduled_for, str(each.status)) for each in made]
    assert {id_: each for id_, each in ((each.id, each) for each in made) if id_ in before} == before
    for each in made:
        attempts = (await store.whole(each.id)).attempts
        numbers = [attempt.number for _, attempt in attempts]
        assert numbers == list(range(1, len(numbers) + 1)), (each, attempts)
        assert sum(attempt.status == "success" for _, attempt in attempts) == (each.status == "completed"), attempts


async def run_what_is_ready(store: AnyStore) -> int:
    """Run everything that may start, well, and return how much it was; what is to be canceled only says so."""
    now = await store.now()
    claims = await store.claim(NodeScope("worker"), 10)
    begun = [(claim, began(claim, now)) for claim in claims]
    await store.commit_steps([(claim, ended(claim, step, now) if step.starts else step) for claim, step in begun])
    return len(claims)
