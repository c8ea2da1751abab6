"""The agreement machine: the same deeds done to two stores must get the same answers and leave the same records.

Handles and tokens are each store's own; everything else that a store answers is compared as it is.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from everytick import schedule
from everytick.deciding.advance import advance
from everytick.deciding.promises import judge
from everytick.domain.backfills import BackfillOrder, BackfillStatus
from everytick.domain.changes import Edit, Put, Remove, Rename, Tell
from everytick.domain.config import Level, overrides
from everytick.domain.decisions import Plan
from everytick.domain.facts import (
    Amend,
    Cancel,
    DropLimit,
    Fact,
    Fill,
    LookAgain,
    Move,
    Pause,
    PlanBackfill,
    PutBrake,
    ReleaseBrake,
    Reschedule,
    Resume,
    Rewind,
    SetLimit,
    Skip,
    SteerBackfill,
    Trigger,
    Undo,
    UndoReschedule,
)
from everytick.domain.limits import Rate
from everytick.domain.lookups import (
    Breaches,
    ComingRuns,
    ExistingIds,
    IdRange,
    LaterRequests,
    LimitsAndBrakes,
    NewestBackfills,
    Promises,
    Spans,
    UndefinedJobs,
)
from everytick.domain.notes import Log, Note, Progress
from everytick.domain.outcome import Failed, Lost, Outcome, Succeeded
from everytick.domain.payload import payload
from everytick.domain.policies import UpdatePolicy, update_policy
from everytick.domain.rollouts import RolloutVerdict, Way
from everytick.domain.snapshots import Missed
from everytick.domain.steps import (
    AttemptEnded,
    CancelRequested,
    Claimed,
    DeadlinePassed,
    LifeEvent,
    Reattached,
    Released,
    RunState,
    Step,
    Stopping,
    WaitOver,
)
from everytick.domain.upcoming import in_force, trial_of
from everytick.errors import EverytickError
from everytick.stores.base import (
    Batch,
    Claim,
    Commit,
    CommitAnswer,
    CommitFailed,
    Committed,
    HistoryFilter,
    JobRecord,
    NodeRecord,
    Nodes,
    NodeScope,
    Offer,
    Page,
    Receipt,
)
from tests.stores.acting import AnyStore, job, plans_of
from tests.stores.asking import questions
from tests.stores.clock import ManualClock

NAMES = ("alpha", "beta", "gamma")
NODES = ("node-1", "node-2", "node-3")
SILENCE = timedelta(seconds=20)
KEEP_LITTLE = {"success": "1h", "failure": "2h", "keep_last": 1}
FOR_EVER = {"max": None, "interval": "2s", "superseded_by_next": True}
VARIANTS: tuple[dict[str, Any], ...] = (
    {"when": "*/5 * * * *", "execution_timeout": "90s", "horizon": 5, "tags": ["crm"]},
    {"when": "every 7m", "overlap": "queue", "recovery": "execute_all", "retention": KEEP_LITTLE, "tags": ["erp"]},
    {
        "when": "*/3 * * * *",
        "overlap": "allow",
        "max_concurrent": 2,
        "tags": ["crm", "erp"],
        "priority": 3,
        "execution_timeout": "20m",
        "tasks": ("one", "two"),
    },
    {"when": "every 4m", "horizon": "25m", "overlap": "queue_latest", "on_orphan": "resume", "tasks": ("one", "two")},
    {"when": "*/6 * * * *", "overlap": "cancel_running", "on_orphan": "restart", "mode": "parallel", "tasks": ("x",)},
    {"when": "every 5m", "retry": {"max": 2, "interval": "1m"}, "recovery": "compressed", "on_create": "immediately"},
    {"when": "after: 3m", "horizon": 2, "on_create": "immediately", "retry": FOR_EVER},
    {"when": "*/5 * * * *", "enabled": False},
    {"when": "every 10m", "recovery": {"strategy": "bounded_window", "max_occurrences": 2}, "jitter": "2m"},
    {"when": "*/4 * * * *", "code": "shop", "tags": ["crm"]},
    {"when": "*/5 * * * *", "code": "bank", "queue": "gpu", "overlap": "queue", "jitter": "1m"},
    {"when": "*/4 * * * *", "start_by": "1m", "finish_by": "3m", "success_within": "9m"},
    {"when": "every 5m", "code": "shop", "success_within": "6m", "finish_by": "12:00", "recovery": "execute_all"},
    {"when": "*/5 * * * *", "depends_on": "alpha"},
    {
        "when": "*/3 * * * *",
        "overlap": "queue",
        "depends_on": [{"job": "beta", "within": "10m"}, {"job": "alpha", "otherwise": "skip", "deadline": "4m"}],
    },
    {
        "when": "*/4 * * * *",
        "overlap": "cancel_running",
        "depends_on": {"job": "gamma", "within": "7m", "requests": True, "deadline": "9m"},
    },
    {
        "when": "*/10 * * * *",
        "overlap": "queue",
        "grace": "6m",
        "stop_schedule": schedule("4-59/8 * * * *; tz=UTC"),
        "restart_schedule": schedule("*/9 * * * *; tz=UTC"),
    },
)
POLICIES = (
    "immediate",
    "graceful",
    "graceful 2",
    "graceful 7m",
    "windowed 3",
    "windowed 20m",
    "rollout 50% 100% after 2 failures 1",
    "rollout dry 2 50% after 3",
)
BEGINS, ENDS = (schedule("*/20 * * * *"), schedule("0 * * * *")), schedule("7-59/20 * * * *")
REACHES = ("tag:crm", "tag:erp", "queue:gpu", "queue:default", "job:alpha", "all", "label:crm")
NEEDS = ("", "lane:late", "code:shop", "code:bank\nqueue:gpu", "queue:gpu", "code:shop\nqueue:gpu", "retired")
LOWER_HALF = IdRange("occ_00000000-0000-0000-0000-000000000000", "occ_80000000-0000-0000-0000-000000000000", 1000)


WEIGHTS = {
    "do_set_clock_back": 1,
    "do_settle_clock": 1,
    "do_plan": 10,
    "do_tick": 10,
    "do_move_clock": 10,
    "do_claim": 8,
    "do_step": 10,
    "do_put": 4,
    "do_reap": 3,
    "do_hand_over": 8,
    "do_reattach": 5,
    "do_promises": 6,
    "do_remove": 1,
    "do_retire": 1,
    "do_refused_plan": 1,
    "do_refused_step": 1,
}


class Pair:
    """The specification and a store that must agree with it, on one clock."""

    names: Sequence[str] = NAMES
    variants: Sequence[dict[str, Any]] = VARIANTS
    weights: Mapping[str, int] = WEIGHTS
    usual = 2
    """How often a deed is done that `weights` does not name."""

    def __init__(self, specified: AnyStore, proven: AnyStore, clock: ManualClock, seed: int) -> None:
        self.stores = (specified, proven)
        self.clock = clock
        self.random = random.Random(seed)
        self.claims: list[tuple[Claim, Claim]] = []
        self.steps: dict[int, tuple[Step, Step]] = {}
        self.noted: set[int] = set()
        self.stale: tuple[_Decided, _Decided] | None = None
        self.seen_beats: dict[str, int] = {}
        self.done: list[str] = []
        self.asked: list[str] = []
        self.went_on = 0
        """How many claims began with attempts that engines carry out."""
        self.came_along = 0
        """How many claims the proven store gave together with the answers to plans."""

    async def act(self) -> None:
        """Do one random deed to both."""
        deeds = [deed for deed in dir(self) if deed.startswith("do_")]
        weights = [self.weights.get(deed, self.usual) for deed in deeds]
        [deed] = self.random.choices(deeds, weights)
        self.done.append(deed.removeprefix("do_"))
        await getattr(self, deed)()

    async def both(self, verb: str, *arguments: Any, **named: Any) -> Any:
        """Ask both and compare: equal answers, or the same error."""
        answers = [await _answer(store, verb, arguments, named) for store in self.stores]
        assert answers[0] == answers[1], f"{verb} after {self.done[-12:]}"
        return answers[0]

    def now(self) -> datetime:
        return self.clock.time

    async def job_id(self) -> str:
        records = await self.both("list")
        return str(self.random.choice(records).job.id) if records else "job_none"

    async def scope(self, likely: float) -> NodeScope:
        """A node that meets each of the needs so likely, and now and then does not know a job."""
        met = tuple(text for text in NEEDS if self.random.random() < likely)
        unknown = frozenset([await self.job_id()] if self.random.random() < 0.1 else ())
        return NodeScope(self.random.choice(NODES), met, unknown, self.random.randrange(6))

    # ----------------------------------------------------------------------------------------------------- deeds

    async def do_put(self) -> None:
        variant = dict(self.random.choice(self.variants))
        expected = self.random.choice([None, None, None, 1, 2])
        reports = self.random.random() < 0.5
        new = job(self.random.choice(self.names), reports=reports, **variant)
        await self.both("apply", [Put(new, expected, self.policy())])

    def policy(self) -> UpdatePolicy | None:
        """When a new version comes into force: as the job says, or later, or for a while, or once it was tried."""
        return None if self.random.random() < 0.5 else update_policy(self.random.choice(POLICIES))

    async def do_settle_rollout(self) -> None:
        """Let a version on trial go on or back; now and then one that is no longer on trial."""
        job_id = await self.job_id()
        seen = (await self.both("look", [job_id])).get(job_id)
        if seen is not None and (trial := trial_of(seen.editions)) is not None:
            way, late = self.random.choice(list(Way)), self.random.random() < 0.2
            known = trial.job if way is Way.ON else in_force(seen.editions, self.now())
            verdict = RolloutVerdict(way, trial.job.version - late, "said")
            await self.both("apply", [Put(known, verdict.version, verdict=verdict)], "rollout")

    async def do_apply(self) -> None:
        """Changes of several jobs, in any order; now and then a job is at another version than is expected."""
        records = {each.job.name: each.job.version for each in await self.both("list")}
        changes: list[Edit] = []
        for name in self.random.sample(NAMES, self.random.randrange(1, 4)):
            version = records.get(name, 0) + (self.random.random() < 0.1)
            expected = version if self.random.random() < 0.5 else None
            if self.random.random() < 0.7:
                changes.append(Put(job(name, **self.random.choice(VARIANTS)), expected))
            elif self.random.random() < 0.5:
                changes.append(Remove(name, timedelta(minutes=self.random.choice([0, 10])), expected))
            if self.random.random() < 0.4:
                facts = Pause(missed=Missed.CATCH_UP, reason="not yet", by="file"), Resume("file"), self.notice()
                changes.append(Tell(name, self.random.choice(facts), expected))
        self.random.shuffle(changes)
        await self.both("apply", changes, "ada")

    def notice(self) -> Trigger:
        """A run that is asked for with an edit; now and then by a key that was used before."""
        return Trigger(f"notice {self.random.randrange(4)}", payload(self.random.randrange(2)), by="rollout")

    async def do_rename(self) -> None:
        """Rename a job, and now and then edit it under its new name in the same transaction."""
        name, to = self.random.choice(NAMES), self.random.choice(NAMES)
        edits = [Put(job(to, **self.random.choice(VARIANTS)))] if self.random.random() < 0.3 else []
        await self.both("apply", [*edits, Rename(name, to)], "ada")

    async def do_remove(self) -> None:
        await self.both("apply", [Remove(self.random.choice(NAMES), timedelta(minutes=self.random.choice([0, 10])))])

    async def do_define(self) -> None:
        """A start that defines some jobs, and leaves out others of its owner."""
        names = self.random.sample(NAMES, self.random.randrange(3))
        left_out = [name for name in (*NAMES, "none") if name not in names and self.random.random() < 0.7]
        await self.both("define", names, left_out)

    async def do_retire(self) -> None:
        """Remove what is marked; now and then by a mark that is not the job's."""
        undefined = await self.both("ask", UndefinedJobs())
        wrong = timedelta(seconds=self.random.choice([0, 0, 0, 1]))
        marks = {each.job_id: each.since - wrong for each in undefined.jobs if self.random.random() < 0.5}
        await self.both("retire", marks, after=timedelta(minutes=self.random.choice([0, 10])), by="node-1")

    async def do_pause(self) -> None:
        until = self.random.choice([None, self.now() + timedelta(minutes=self.random.randrange(1, 30))])
        missed = self.random.choice(list(Missed))
        await self.both("request", await self.job_id(), Pause(until, missed, "why", "ada"))

    async def do_resume(self) -> None:
        missed = self.random.choice([None, *Missed])
        await self.both("request", await self.job_id(), Resume("ada", missed))

    async def do_request(self) -> None:
        """Ask by a key, now and then by the number of a call that was made before, as after a lost reply."""
        key, body = self.random.choice("abcdef"), self.random.choice([None, payload(1), payload({"x": [2]})])
        call = self.random.choice([None, self.random.randrange(8), self.random.randrange(1 << 63)])
        at = self.random.choice([None, self.now() + timedelta(seconds=self.random.choice([-90, 0, 45, 900]))])
        asked = Trigger(key, body, by="ada", call=call, at=at)
        receipt = await self.both("request", await self.job_id(), asked)
        if isinstance(receipt, Receipt):
            self.asked.append(receipt.id)

    async def do_backfill(self) -> None:
        begin, key = self.now() - timedelta(minutes=self.random.randrange(1, 60)), self.random.choice("xyz")
        if self.random.random() < 0.3:
            receipt = await self.both("request", await self.job_id(), Fill(key, begin))
            if isinstance(receipt, Receipt):
                self.asked.append(receipt.id)
            return
        again, as_of_now, newest_first = (self.random.random() < 0.3 for _ in range(3))
        rate = self.random.choice([1, 60, 6_000])
        order = BackfillOrder(
            f"{key}{self.random.randrange(4)}", begin, self.now(), again, as_of_now, newest_first, rate=rate
        )
        await self.both("request", await self.job_id(), PlanBackfill(order, self.random.random() < 0.7))

    async def do_steer(self) -> None:
        job_id = await self.job_id()
        known = await self.both("ask", NewestBackfills(job_id)) or ()
        ids = [each.id for each in known] or ["backfill_none"]
        to = self.random.choice([BackfillStatus.RUNNING, BackfillStatus.PAUSED, BackfillStatus.CANCELED])
        await self.both("request", job_id, SteerBackfill(self.random.choice(ids), to, "eve"))

    async def do_adjust(self) -> None:
        job_id = await self.job_id()
        records = await self.both("get", [job_id])
        instant = records[job_id].job.bound(None).next_after(self.now()) if records else None
        if instant is not None:
            own: list[dict[str, object]] = [{"queue": "gpu"}, {"payload": {"pages": 3}}, {"priority": 7}]
            elsewhere = overrides(Level.OCCURRENCE, self.random.choice(own))
            choices: list[Fact] = [
                Skip(instant, by="ada"),
                Move(instant, instant + timedelta(minutes=1), by="ada"),
                Amend(instant, elsewhere, by="ada"),
                Undo(instant, by="ada"),
            ]
            await self.both("request", job_id, self.random.choice(choices))

    async def do_reschedule(self) -> None:
        to = self.now() + timedelta(minutes=self.random.randrange(1, 20))
        await self.both("request", await self.job_id(), Reschedule(to, "ada"))

    async def do_undo_reschedule(self) -> None:
        """Take a next run back; now and then one that was never set."""
        job_id = await self.job_id()
        seen = (await self.both("look", [job_id])).get(job_id)
        to = self.now() if seen is None or seen.reschedule is None else seen.reschedule.to
        await self.both("request", job_id, UndoReschedule(to, "ada"))

    async def do_look_again(self) -> None:
        await self.both("request", await self.job_id(), LookAgain())

    async def do_cancel(self) -> None:
        found = (await self.both("history", HistoryFilter())).occurrences
        known = [each.id for each in found] + self.asked[-3:]
        await self.both("request", self.random.choice(known) if known else "occ_none", Cancel("by hand"))

    async def do_rewind(self) -> None:
        await self.both("request", await self.job_id(), Rewind())

    async def do_limit(self) -> None:
        """Limit a reach, brake it, release it, or take its limit away."""
        soon = self.now() + timedelta(seconds=self.random.choice([-60, 0, 30, 300]))
        until = self.random.choice([None, self.now() + timedelta(seconds=self.random.choice([20, 120, 900]))])
        rate = Rate(self.random.choice([1, 3, 70]), timedelta(minutes=1), self.random.random() < 0.5)
        choices: list[Fact] = [
            SetLimit(self.random.choice([None, 1, 2]), self.random.choice([None, rate]), "why", "ada"),
            DropLimit("why", "ada"),
            DropLimit("", "ada"),
            PutBrake(self.random.choice([None, soon]), until, "why", "ada"),
            PutBrake(reason="freeze", by="ada", begins=self.random.choice(BEGINS), ends=ENDS),
            ReleaseBrake(self.random.choice([None, rate]), self.random.random() < 0.3, "why", "ada"),
            ReleaseBrake(at_once=True),
        ]
        await self.both("request", self.random.choice(REACHES), self.random.choice(choices))

    async def do_limits(self) -> None:
        await self.both("ask", LimitsAndBrakes())

    async def do_plan(self) -> None:
        limit, scope = self.random.choice([1, 100]), await self.scope(0.9)
        by = None if self.random.random() < 0.8 else self.now() + timedelta(seconds=self.random.choice([-30, 0, 30]))
        await self._plan(scope, limit, self.offer(scope), by)

    async def do_tick(self) -> None:
        """Sleep until something is due, plan it and offer slots for it, as a node does."""
        met = NEEDS if self.random.random() < 0.3 else tuple(text for text in NEEDS if text != "lane:late")
        scope = NodeScope(self.random.choice(NODES), met)
        wake_at = (await self.both("ahead", scope)).wake_at
        if wake_at is not None and self.now() < wake_at < self.now() + timedelta(hours=1):
            self.clock.move(seconds=(wake_at - self.now()).total_seconds())
        await self._plan(scope, 100, Offer(scope, self.random.choice([1, 3, 100])))

    async def _plan(self, scope: NodeScope, limit: int, offer: Offer | None, by: datetime | None = None) -> None:
        done = [await _planned(store, scope, limit, by=by, offer=offer) for store in self.stores]
        assert done[0].shown == done[1].shown, f"plans after {self.done[-12:]}"
        self._took([each.claims for each in done], done[1].along)

    def offer(self, scope: NodeScope) -> Offer | None:
        """Offer slots to a commit of plans, as a node does with the last batch of a round; half the time none."""
        return self.random.choice([None, None, None, *(Offer(scope, limit) for limit in (1, 3, 100))])

    def _took(self, claims: Sequence[Sequence[Claim]], along: int = 0) -> None:
        """Compare what commits with an offer and the claims after them gave: which of the two, each store decides."""
        specified, proven = claims
        self.came_along += along
        assert list(map(_plain, specified)) == list(map(_plain, proven)), f"claims of an offer after {self.done[-12:]}"
        self.claims += list(zip(specified, proven, strict=True))

    async def do_promises(self) -> None:
        """Judge what is due, commit it twice, and tell of what is owed; the second commit finds it changed."""
        due = await self.both("promises", await self.scope(0.5), self.random.choice([1, 100]))
        judged = [judge(each, due.now) for each in due.snapshots]
        told = [each for each in due.owed if self.random.random() < 0.5]
        assert await self.both("commit_promises", judged, told) == [Commit.COMMITTED] * len(judged)
        assert await self.both("commit_promises", judged) == [Commit.STALE] * len(judged)

    async def do_repeat_commit(self) -> None:
        """Commit a batch twice: the second time answers what the first did, whatever came in between."""
        scope = await self.scope(0.9)
        offer, again_offer = self.offer(scope), self.offer(scope)
        done = [await _planned(store, scope, 100, offer=offer) for store in self.stores]
        self._took([each.claims for each in done])
        if self.random.random() < 0.5:
            self.clock.move(seconds=self.random.choice([1, 90]))
        again = [
            await _committed(store, first.batch, first.plans, again_offer)
            for store, first in zip(self.stores, done, strict=True)
        ]
        for (answers, _), first in zip(again, done, strict=True):
            assert answers == first.answers, f"a repeated commit after {self.done[-12:]}"
        self._took([claims for _, claims in again])

    async def do_refused_plan(self) -> None:
        """Let both refuse one plan of a batch: they set its job aside, and write the other plans."""
        scope, chance = await self.scope(0.9), self.random.random()
        offer = self.offer(scope)
        answers, taken = [], []
        for store in self.stores:
            async with store.due(scope, 100) as batch:
                plans = plans_of(batch)
                for place in [int(chance * len(plans))] if plans else []:
                    before = batch.snapshots[place].watermark - timedelta(seconds=1)
                    plans[place] = replace(plans[place], watermark=before)
                done, claims = await _committed(store, batch, plans, offer)
                answers.append(list(map(type, done)))
                taken.append(claims)
        assert answers[0] == answers[1], f"a refused plan after {self.done[-12:]}"
        assert answers[0].count(CommitFailed) == bool(answers[0]), f"a refused plan after {self.done[-12:]}"
        self._took(taken)

    async def do_open_two(self) -> None:
        """Open a second batch beside one that is open: it has none of its jobs, and both are written."""
        scope, limit = await self.scope(0.9), self.random.choice([1, 3])
        offer, found, taken = self.offer(scope), [], []
        for store in self.stores:
            async with store.due(scope, limit) as one, store.due(scope, 100) as other:
                shared = {each.job_id for each in one.snapshots} & {each.job_id for each in other.snapshots}
                assert not shared, f"in two open batches after {self.done[-12:]}"
                done = [await _committed(store, batch, plans_of(batch), offer) for batch in (one, other)]
                found.append((list(one.snapshots), list(other.snapshots), [answers for answers, _ in done]))
                taken.append([claim for _, claims in done for claim in claims])
        assert found[0] == found[1], f"two batches after {self.done[-12:]}"
        self._took(taken)

    async def do_plan_later(self) -> None:
        """Keep the plans of now, to commit them when they may be old."""
        found = [await _read(store, NodeScope("node-1", NEEDS), 100) for store in self.stores]
        assert found[0].shown == found[1].shown, f"snapshots after {self.done[-12:]}"
        self.stale = (found[0], found[1])

    async def do_commit_old_plans(self) -> None:
        if self.stale is not None:
            offer = self.offer(NodeScope("node-1", NEEDS))
            done = [
                await _committed(store, old.batch, old.plans, offer)
                for store, old in zip(self.stores, self.stale, strict=True)
            ]
            assert done[0][0] == done[1][0], f"old plans after {self.done[-12:]}"
            self._took([claims for _, claims in done])

    async def do_claim(self) -> None:
        scope, limit = await self.scope(0.8), self.random.choice([1, 5])
        claims = [await store.claim(scope, limit) for store in self.stores]
        assert list(map(_plain, claims[0])) == list(map(_plain, claims[1])), f"claims after {self.done[-12:]}"
        self.claims += list(zip(*claims, strict=True))

    async def do_step(self) -> None:
        if not self.claims:
            return
        place = self.random.randrange(len(self.claims))
        if place not in self.steps:
            self.went_on += bool(self.claims[place][0].handed)
            await self._feed(place, _first_event(self.claims[place][0]))
            return
        outcomes: list[Outcome] = [Succeeded(payload(7)), Succeeded(), Failed("boom")]
        running = self._running(place)
        waiting = [name for name, run in self._runs(place) if run.resume_at is not None]
        if running:
            await self._feed(place, AttemptEnded(*running[0], self.random.choice(outcomes)))
        elif waiting:
            await self._feed(place, WaitOver(waiting[0]))
        if self.random.random() < 0.2:
            await self._hand_over(place, self._running(place))

    async def do_tell(self) -> None:
        """Tell what has begun that it is canceled, late, or on a node that stops."""
        begun = [place for place in self.steps if self._running(place)]
        if begun:
            events: list[LifeEvent] = [CancelRequested("enough"), DeadlinePassed(), Stopping(), Stopping(drain=True)]
            await self._feed(self.random.choice(begun), self.random.choice(events))

    def _runs(self, place: int) -> list[tuple[str, RunState]]:
        """Return the runs of a claim as its last step left them, by task."""
        tasks = self.claims[place][0].header.rules.tasks
        return [(task.name, run) for task, run in zip(tasks, self.steps[place][0].after.runs, strict=True)]

    def _running(self, place: int) -> list[tuple[str, int]]:
        return [(name, run.attempts) for name, run in self._runs(place) if run.status == "running"]

    async def _feed(self, place: int, event: LifeEvent) -> None:
        """Decide what follows from an event, and write it if it is to be written."""
        last = self.steps.get(place)
        lives = [claim.life for claim in self.claims[place]] if last is None else [step.after for step in last]
        pairs = zip(self.claims[place], lives, strict=True)
        steps = [advance(claim.header, life, event, self.now()) for claim, life in pairs]
        self.steps[place] = (steps[0], steps[1])
        if steps[0].commits:
            await self._commit(place)

    async def do_give_back(self) -> None:
        """Give a claim back of which nothing has begun; now and then as a node that stops."""
        if fresh := self._unbegun():
            events: list[Released | Stopping] = [Released(), Released(), Stopping()]
            await self._feed(self.random.choice(fresh), self.random.choice(events))

    def _unbegun(self) -> list[int]:
        """Return the places of the claims of which nothing has begun, the oldest first."""
        return [place for place in range(len(self.claims)) if place not in self.steps and place not in self.noted]

    async def do_repeat_step(self) -> None:
        """Commit a step again, as after a lost reply; by now its owner may be another."""
        written = [place for place, (step, _) in self.steps.items() if step.commits]
        if written:
            await self._commit(self.random.choice(written))

    async def do_refused_step(self) -> None:
        """Write a step with a number that no database holds. Memory could hold it and is not asked: nothing changes.

        JSON holds it too, so a store in Redis is not asked either.
        """
        written = [place for place, (step, _) in self.steps.items() if step.commits]
        if written and self.stores[1].address.kind not in ("memory", "redis"):
            place = self.random.choice(written)
            step = replace(self.steps[place][1], number=2**70)
            [answer] = await self.stores[1].commit_steps([(self.claims[place][1], step)])
            assert answer is Commit.STALE or isinstance(answer, CommitFailed), f"{answer} after {self.done[-12:]}"

    async def _commit(self, place: int) -> None:
        answers = [
            await store.commit_steps([(claim, step)])
            for store, claim, step in zip(self.stores, self.claims[place], self.steps[place], strict=True)
        ]
        assert answers[0] == answers[1], f"steps after {self.done[-12:]}"

    async def do_step_of_another(self) -> None:
        """Write by a handle and a fence that another copy of the store gave to another owner: the token tells."""
        written = [place for place, (step, _) in self.steps.items() if step.commits]
        if written:
            place = self.random.choice(written)
            for store, claim, step in zip(self.stores, self.claims[place], self.steps[place], strict=True):
                other = replace(claim, key=claim.key._replace(token=claim.key.token ^ 1))
                assert await store.commit_steps([(other, step)]) == [Commit.STALE], self.done[-12:]

    async def do_beat(self) -> None:
        node = self.random.choice(NODES)
        known = [pair for pair in self.claims if self.random.random() < 0.5]
        orders = [await store.beat(node, [pair[side].key for pair in known]) for side, store in enumerate(self.stores)]
        names = [
            {pair[side].key: (pair[side].occurrence.id, pair[side].fence) for pair in self.claims} for side in (0, 1)
        ]
        told = [
            (
                sorted((names[side][key], why) for key, why in order.cancel),
                sorted(names[side][key] for key in order.gone),
                sorted(map(_plain, order.adopt), key=str),
                sorted(names[side][key] for key in order.parks),
            )
            for side, order in enumerate(orders)
        ]
        assert told[0] == told[1], f"orders after {self.done[-12:]}"
        if self.random.random() < 0.3:
            self._adopt(*(order.adopt for order in orders))

    def _adopt(self, specified: Sequence[Claim], proven: Sequence[Claim]) -> None:
        """Take what a node holds without knowing it, such as an answer that was lost, in the place of what is known."""
        places = {pair[0].key: place for place, pair in enumerate(self.claims)}
        other = {claim.occurrence.id: claim for claim in proven}
        for claim in specified:
            place = places[claim.key]
            self.claims[place] = (claim, other[claim.occurrence.id])
            self.steps.pop(place, None)
            self.noted.add(place)

    async def do_reap(self) -> None:
        """Take over from nodes that the store's clock shows silent, sometimes with old beats; and what is overdue."""
        known = await self._nodes()
        silent = {each.id: each.beats for each in known[0] if not each.is_alive(self.now(), SILENCE)}
        if self.random.random() < 0.3:
            silent = dict(self.seen_beats)
        self.seen_beats = {each.id: each.beats for each in known[0]}
        wanted, limit = self.random.random() < 0.3, self.random.choice([0, 1000, 1000])
        taken = []
        for store, nodes in zip(self.stores, known, strict=True):
            keys = [key for each in nodes for key in each.overdue] if wanted else []
            taken.append(await store.orphans("reaper", limit, silent, keys))
        assert sorted(map(_plain, taken[0]), key=str) == sorted(map(_plain, taken[1]), key=str), self.done[-12:]
        for store, claims in zip(self.stores, taken, strict=True):
            await store.commit_steps(
                [(claim, advance(claim.header, claim.life, Lost(), self.now())) for claim in claims]
            )

    async def do_hand_over(self) -> None:
        """Claim, and hand the first attempts over to an engine; the second task of a job is not always handed over.

        Offers have claimed most of it before.
        """
        await self.do_claim()
        for place in self._unbegun()[-5:]:
            await self._feed(place, Claimed())
            await self._hand_over(place, self._running(place)[: self.random.choice([1, 2])])
        if self.random.random() < 0.5:
            await self.do_reattach()

    async def _hand_over(self, place: int, attempts: Sequence[tuple[str, int]]) -> None:
        """Note that an engine has these attempts; now and then by a claim that is no longer the owner's."""
        self.noted.add(place)
        for task, number in attempts:
            note = Note(task, number, self.now(), handed_to=f"celery:{task}:{number}")
            told = zip(self.stores, self.claims[place], strict=True)
            answers = [list(await store.note([(claim, note)])) for store, claim in told]
            assert answers[0] == answers[1], f"handed over after {self.done[-12:]}"

    async def do_reattach(self) -> None:
        """Go on with what silent nodes have handed over to engines, sometimes with old beats or few needs."""
        known, scope = await self._nodes(), await self.scope(0.9)
        silent = {each.id: each.beats for each in known[0]}
        if self.random.random() < 0.3:
            silent = dict(self.seen_beats)
        # Which of two is older is each store's own affair if one commit has made both.
        limit = self.random.choice([0, 100, 100])
        taken = [await store.reattach(scope, limit, silent) for store in self.stores]
        by_id = [sorted(some, key=lambda claim: claim.occurrence.id) for some in taken]
        assert list(map(_plain, by_id[0])) == list(map(_plain, by_id[1])), f"reattach after {self.done[-12:]}"
        # What an engine carries out cannot be given back.
        self.noted.update(range(len(self.claims), len(self.claims) + len(by_id[0])))
        self.claims += list(zip(*by_id, strict=True))

    async def _nodes(self) -> list[list[NodeRecord]]:
        """Return the nodes of each store; the keys of what is overdue are each store's own."""
        known = [list(await store.ask(Nodes())) for store in self.stores]
        plain = [[(replace(each, overdue=()), len(each.overdue)) for each in nodes] for nodes in known]
        assert plain[0] == plain[1], f"nodes after {self.done[-12:]}"
        return known

    async def do_leave(self) -> None:
        await self.both("leave", self.random.choice(NODES))

    async def do_note(self) -> None:
        """Note something of an attempt of any claim there ever was, whether it is the owner's still or not."""
        if not self.claims:
            return
        [place] = self.random.choices(range(len(self.claims)), weights=range(1, len(self.claims) + 1))
        pair = self.claims[place]
        if place in self.steps and self.steps[place][0].restores:
            return
        self.noted.add(place)
        task = self.random.choice(pair[0].header.rules.tasks).name
        progress = self.random.choice([None, Progress(self.random.random(), 2.5, "half"), Progress(7)])
        log = self.random.choice([None, Log(self.random.choice(NODES), f"{task}.log")])
        engine = self.random.choice([None, None, f"celery:{self.random.randrange(3)}"])
        note = Note(task, self.random.choice([1, 1, 2]), self.now(), progress, log, engine)
        other = replace(note, number=1, progress=None)
        answers = [
            list(await store.note([(claim, note), (claim, other)]))
            for store, claim in zip(self.stores, pair, strict=True)
        ]
        assert answers[0] == answers[1]

    async def do_ahead(self) -> None:
        await self.both("ahead", await self.scope(0.6))

    async def do_look(self) -> None:
        await self.both("look", [await self.job_id(), "job_none"])

    async def do_later(self) -> None:
        """Ask for the requests that were asked for at a time."""
        await self.both("ask", LaterRequests([await self.job_id(), "job_none"], self.random.choice([1, 100])))

    async def do_coming(self) -> None:
        """Ask for the runs to come that are written down."""
        await self.both("ask", ComingRuns([await self.job_id(), "job_none"]))

    async def do_report(self) -> None:
        owed = await self.both("reports", await self.scope(0.8), 50)
        await self.both("reported", [each.id for each in owed if self.random.random() < 0.7])

    async def do_fold(self) -> None:
        """Write some of what has ended behind; the one in memory has nothing to fold."""
        await self.stores[1].fold(self.random.choice([1, 3, 10, 1000]))

    async def do_prune(self) -> None:
        await self.both("prune", 1000)

    async def do_move_clock(self) -> None:
        self.clock.move(seconds=self.random.choice([1, 15, 30, 60, 90, 240, 600, 4000]))

    async def do_set_clock_back(self) -> None:
        """A clock that was ahead is set right, and a node that notices lets everything go on."""
        self.clock.move(seconds=-self.random.choice([2, 20, 120, 1800, 5000]))
        await self.both("settle_clock")

    async def do_settle_clock(self) -> None:
        """Settle as a start does, also where nothing is ahead."""
        await self.both("settle_clock")

    # -------------------------------------------------------------------------------------------------- comparing

    async def compare(self) -> None:
        """Hold everything that both have written side by side."""
        await self.both("list", removed=True)
        records = await self.both("list")
        await self.both("get", [record.job.id for record in records])
        await self.both("look", [record.job.id for record in records])
        await self.both("ask", LaterRequests([record.job.id for record in records], 1000))
        await self.both("ask", ComingRuns([record.job.id for record in records]))
        await self.both("ahead", NodeScope("node-1", NEEDS))
        await self.both("ask", UndefinedJobs())
        await self.both("ask", LimitsAndBrakes())
        found = (await self.both("history", HistoryFilter())).occurrences
        for id_ in [each.id for each in found] + self.asked:
            await self.both("whole", id_)
        await self.both("ask", ExistingIds([each.id for each in found] + self.asked))
        await self.both("ask", LOWER_HALF)
        await self.both("ask", NewestBackfills())
        for job_id in {each.job_id for each in found} | {record.job.id for record in records}:
            await self.both("ask", Spans(job_id, self.now() - timedelta(days=9), self.now()))
        await self.both("reports", NodeScope("node-1", NEEDS), 1000)
        await self.both("promises", NodeScope("node-1", NEEDS), 1000)
        await self.both("ask", Promises())
        for job_id in (None, await self.job_id()):
            await self.both("ask", Breaches(job_id, self.random.random() < 0.5))
        for question in questions(self.now(), sorted({each.job_id for each in found})):
            await self.both("ask", question)
        await self._nodes()
        await self.do_plan()


class PlainPair(Pair):
    """The same with plain jobs and the verbs of a tick, where a store claims along with plans."""

    names = tuple(f"job-{number}" for number in range(8))
    variants = (
        {"when": "*/5 * * * *", "overlap": "allow"},
        {"when": "*/5 * * * *", "overlap": "allow", "priority": 3},
        {"when": "*/5 * * * *"},
        {"when": "every 4m", "overlap": "queue"},
        {"when": "*/10 * * * *", "code": "shop", "overlap": "allow"},
        {"when": "*/5 * * * *", "queue": "gpu", "priority": -1, "overlap": "allow"},
    )
    weights: Mapping[str, int] = {
        "do_put": 6,
        "do_tick": 20,
        "do_plan": 5,
        "do_step": 20,
        "do_request": 3,
        "do_claim": 1,
        "do_repeat_commit": 2,
        "do_open_two": 2,
        "do_plan_later": 1,
        "do_commit_old_plans": 1,
        "do_move_clock": 2,
        "do_beat": 2,
        "do_reap": 1,
        "do_give_back": 1,
    }
    usual = 0


async def _answer(store: AnyStore, verb: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    try:
        answer = await getattr(store, verb)(*arguments, **named)
        return _comparable(answer)
    except EverytickError as error:
        return type(error), str(error)


def _comparable(answer: Any) -> Any:
    """Return what two stores must agree on: whether there is a cursor, and whether a plan was refused, but not how."""
    if isinstance(answer, Page):
        return replace(answer, cursor=answer.cursor and "more")
    if isinstance(answer, JobRecord):
        return replace(answer, parked_reason=answer.parked_reason and "refused")
    if isinstance(answer, list):
        return [_comparable(each) for each in answer]
    return {key: _comparable(each) for key, each in answer.items()} if isinstance(answer, dict) else answer


class _Decided(NamedTuple):
    """A batch, what was decided about it, and where it was committed the answers and the claims."""

    batch: Batch
    plans: list[Plan]
    answers: Sequence[CommitAnswer] = ()
    claims: Sequence[Claim] = ()
    along: int = 0

    @property
    def shown(self) -> tuple[object, ...]:
        """All of it that two stores must agree on, but for the claims."""
        batch = self.batch
        return batch.now, list(batch.snapshots), batch.is_ahead, self.plans, self.answers


async def _read(store: AnyStore, scope: NodeScope, limit: int) -> _Decided:
    async with store.due(scope, limit) as batch:
        return _Decided(batch, plans_of(batch))


async def _planned(
    store: AnyStore, scope: NodeScope, limit: int, *, by: datetime | None = None, offer: Offer | None
) -> _Decided:
    async with store.due(scope, limit, by) as batch:
        plans = plans_of(batch)
        done = await store.commit_plans(batch, plans, offer)
        return _Decided(batch, plans, list(done.answers), await _claimed(store, done, offer), len(done.claims))


async def _committed(
    store: AnyStore, batch: Batch, plans: Sequence[Plan], offer: Offer | None
) -> tuple[list[CommitAnswer], list[Claim]]:
    """Commit plans as a node does. Return the answers, and the claims for all slots that it has offered."""
    done = await store.commit_plans(batch, plans, offer)
    return list(done.answers), await _claimed(store, done, offer)


async def _claimed(store: AnyStore, done: Committed, offer: Offer | None) -> list[Claim]:
    """Return the claims that came along, and others for the slots that are still free.

    A store claims as many along as it likes; those have to be the ones that `claim` would have given. One claim may
    end the release of a brake, and the next one gives what the release held back: none is left when they are compared.
    """
    claims = list(done.claims)
    while offer is not None and len(claims) < offer.limit:
        more = await store.claim(offer.scope, offer.limit - len(claims))
        if not more:
            break
        claims += more
    return claims


def _first_event(claim: Claim) -> LifeEvent:
    """Return what a node feeds to a claim that it gets: engines may carry out its attempts already."""
    return Reattached(frozenset(each.task for each in claim.handed)) if claim.handed else Claimed()


def _plain(claim: Claim) -> tuple[object, ...]:
    """A claim without its handle and token, and without times of writing that only people read."""
    return claim.fence, replace(claim.occurrence, updated_at=None), claim.header, claim.life, claim.handed
