"""Laws of depends_on: two jobs that live side by side, one of which needs the other, through every order of events."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from everytick import schedule
from everytick.deciding.plan import plan
from everytick.domain.decisions import Plan, Why
from everytick.domain.ids import occurrence_id
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.occurrence import Cause
from everytick.domain.snapshots import (
    Dependence,
    Edition,
    Ended,
    InLine,
    JobSnapshot,
    Request,
    Upstream,
    UpstreamRun,
)
from everytick.domain.statuses import OccurrenceStatus
from tests.laws.worlds import BEGIN, committed, with_active

MINUTE = timedelta(minutes=1)
OVERLAPS = ("skip", "queue", "queue_latest", "allow", "cancel_running")
POLICIES = st.fixed_dictionaries(
    {"job": st.just("extract")},
    optional={
        "within": st.sampled_from(["3m", "20m"]),
        "otherwise": st.sampled_from(["wait", "skip"]),
        "deadline": st.sampled_from(["4m", "25m"]),
        "requests": st.booleans(),
    },
).filter(lambda found: not ("within" in found and found.get("otherwise") == "skip" and "deadline" in found))
DEEDS = st.lists(
    st.tuples(
        st.sampled_from(["plan", "plan", "plan", "upstream", "succeed", "fail", "end", "ask"]),
        st.sampled_from([0, 1, 3, 7, 30]),
    ),
    max_size=40,
)


def defined(name: str, when: str, **policies: Any) -> Job:
    return define_job(name, schedule(when), policies=policies, tasks=[define_task(name, "main")])


class Both:
    """A job that depends on `extract`, and `extract`, of which only its runs and its watermark matter here."""

    def __init__(self, policy: dict[str, Any], overlap: str, when: str) -> None:
        self.job = defined("load", when, depends_on=policy, overlap=overlap, recovery="execute_all")
        self.within = self.job.settings.depends_on[0].within
        self.now = BEGIN
        self.seen = JobSnapshot(self.job.id, 1, 1, BEGIN, (Edition(self.job),))
        self.created: dict[str, datetime] = {}
        self.stands_for: dict[str, datetime] = {}
        self.causes: dict[str, Cause] = {}
        self.decided: dict[str, str] = {}
        self.upstream = Upstream("extract", "job_extract", "extract", watermark=BEGIN)
        self.runs: dict[datetime, UpstreamRun] = {}
        self.asked = 0
        self.given_up: dict[str, datetime] = {}
        self.until: dict[str, datetime] = {}

    def facts(self) -> Dependence:
        line = tuple(InLine(each.id, self.created[each.id], self.stands_for[each.id]) for each in self.seen.waiting)
        instants = sorted({each.instant for each in line}) if self.within is None else []
        runs = tuple(self.runs.get(instant, UpstreamRun(instant)) for instant in instants)
        return Dependence((replace(self.upstream, runs=runs),), line)

    def met(self, instant: datetime) -> bool:
        """Whether the other job has succeeded, said once more in other words."""
        if self.within is None:
            run = self.runs.get(instant)
            return run is not None and run.succeeded_at is not None
        last = self.upstream.last_success
        return last is not None and self.now - last.ended_at <= self.within

    def plan(self) -> Plan:
        seen = replace(self.seen, dependence=self.facts())
        decided = plan(seen, self.now)
        for each in decided.creations:
            assert each.id not in self.decided, "one decision for each"
            self.created.setdefault(each.id, self.now)
            self.stands_for[each.id], self.causes[each.id] = each.covers_through, each.cause
            self.decided[each.id] = "made"
            if (deadline := self.job.settings.depends_on[0].deadline) is not None:
                self.until[each.id] = (self.now if each.late else each.line_at) + deadline
            obeys = each.cause is Cause.SCHEDULE or self.job.settings.depends_on[0].requests
            assert not obeys or each.status is not OccurrenceStatus.PENDING, "nothing starts before it was judged"
        for id_ in decided.releases:
            obeys = self.causes[id_] is Cause.SCHEDULE or self.job.settings.depends_on[0].requests
            assert not obeys or self.met(self.stands_for[id_]), f"{id_} starts without what it depends on"
        for ending in decided.endings:
            if ending.why is Why.DEPENDENCY:
                self.given_up[ending.id] = self.now
        for span in decided.spans:
            for instant in self.job.bound(None).instants(span.after, span.through, 10_000):
                id_ = occurrence_id(self.job.id, instant)
                assert id_ not in self.decided, "one decision for each instant"
                self.decided[id_] = "skipped"
        self.seen = replace(committed(replace(self.seen, requests=seen.requests), decided), dependence=None)
        return decided

    def settle(self) -> Plan:
        """Plan until the job is not due, as a planner does."""
        for _ in range(60):
            decided = self.plan()
            if decided.wake_at is None or decided.wake_at > self.now:
                return decided
        raise AssertionError("the planner does not come to rest")

    def do(self, deed: str, minutes: int) -> None:
        self.now += minutes * MINUTE
        match deed:
            case "plan":
                self.settle()
            case "upstream":
                self.upstream = replace(self.upstream, watermark=self.now)
            case "succeed" | "fail":
                waiting = [self.stands_for[each.id] for each in self.seen.waiting] or [self.now]
                self.finish(waiting[0], well=deed == "succeed")
            case "end":
                if self.seen.busy:
                    gone = self.seen.busy[0]
                    rest = [each for each in (*self.seen.busy, *self.seen.waiting) if each is not gone]
                    self.seen = with_active(self.seen, rest)
            case _:
                self.asked += 1
                request = Request(f"k{self.asked}", Cause.TRIGGER, self.now)
                self.seen = replace(self.seen, requests=(*self.seen.requests, request))

    def finish(self, instant: datetime, *, well: bool) -> None:
        before = self.runs.get(instant, UpstreamRun(instant))
        status = OccurrenceStatus.COMPLETED if well else OccurrenceStatus.FAILED
        succeeded_at = before.succeeded_at or (self.now if well else None)
        self.runs[instant] = UpstreamRun(instant, succeeded_at, False, status)
        if well:
            ended = Ended(instant, self.now, self.now, "occ")
            self.upstream = replace(self.upstream, last_success=ended)


@given(POLICIES, st.sampled_from(OVERLAPS), st.sampled_from(["*/10 * * * *", "0 * * * *"]), DEEDS)
def test_nothing_starts_without_what_it_depends_on_and_nothing_waits_for_ever(
    policy: dict[str, Any], overlap: str, when: str, deeds: list[tuple[str, int]]
) -> None:
    """S1-042: each instant has one decision, the planner comes to rest, and every wait ends at its `wake_at`."""
    both = Both(policy, overlap, when)
    for deed, minutes in deeds:
        both.do(deed, minutes)
    both.settle()
    last = both.now
    # From here on the other job does nothing more, what runs ends, and only the times that plans name are looked at.
    for _ in range(200):
        both.do("end", 0)
        decided = both.settle()
        old = [each for each in both.seen.waiting if both.created[each.id] <= last]
        if not old and not both.seen.busy:
            break
        assert decided.wake_at is not None or both.seen.busy, "it waits for ever"
        if decided.wake_at is not None and not both.seen.busy:
            both.now = decided.wake_at
    assert not [each for each in both.seen.waiting if both.created[each.id] <= last], "it waits for ever"
    for id_, at in both.given_up.items():
        assert at <= last or id_ not in both.until or at <= max(both.until[id_], last), "it waits past its deadline"
    for instant in both.job.bound(None).instants(BEGIN, both.seen.watermark, 10_000):
        assert occurrence_id(both.job.id, instant) in both.decided, "every instant is decided"


@given(st.sampled_from(OVERLAPS), st.integers(0, 10))
def test_what_has_all_it_needs_when_its_instant_comes_starts_then(overlap: str, minutes: int) -> None:
    """S1-042, liveness: nothing has to happen after the plan that puts it in line."""
    both = Both({"job": "extract", "within": "20m"}, overlap, "*/10 * * * *")
    both.do("succeed", minutes)
    both.now = BEGIN + 10 * MINUTE
    both.settle()
    assert (len(both.seen.busy), both.seen.waiting) == (1, ())


@given(st.sampled_from(OVERLAPS), st.integers(0, 9))
def test_a_success_releases_what_waits_at_the_next_plan(overlap: str, minutes: int) -> None:
    """S1-042, liveness: whatever the rule, as long as nothing else is busy."""
    both = Both({"job": "extract"}, overlap, "*/10 * * * *")
    both.now += 10 * MINUTE
    both.settle()
    both.do("succeed", 0)
    both.now += minutes * MINUTE
    seen = both.seen.waiting
    decided = both.plan()
    assert decided.releases == tuple(each.id for each in seen)
    assert len(seen) == 1
