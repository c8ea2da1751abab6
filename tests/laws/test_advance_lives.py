"""The laws of running, over random jobs and events in any order.

Every step of every life here is also held to what `Life.take` checks: one answer to one
question, the same by the short way as by the long one, legal moves only, numbers without
holes, nothing started after the end, a cancel or the deadline, and a reaper that knows from
the store alone what was open.
"""

import copy
from collections import Counter
from datetime import timedelta
from random import Random

from hypothesis import assume, given, settings
from hypothesis import event as note
from hypothesis import strategies as st

from everytick.deciding.advance import advance, advance_in_full
from everytick.deciding.plain_steps import plain_step
from everytick.domain.job import Job
from everytick.domain.outcome import Canceled, Failed, Lost, Outcome, Succeeded, TimedOut
from everytick.domain.retry import Retry
from everytick.domain.statuses import FINISHED, OccurrenceStatus, RunStatus
from everytick.domain.steps import (
    AttemptEnded,
    CancelRequested,
    Claimed,
    DeadlinePassed,
    LifeEvent,
    Step,
    Stopping,
    WaitOver,
)
from tests.unit.deciding.lives import BOOM, DONE, Life, job

NAMES = "abcde"
STRATEGIES = st.sampled_from(["fail_fast", "continue", "retry_on_failure"])
LENGTHS = st.sampled_from(["0s", "1s", "4s", "5s", "6s", "1m", "10m"])
BAD: list[Outcome] = [BOOM, TimedOut(), Failed("no use", give_up=True), Failed("later", try_again_after=timedelta(0))]
OUTCOMES = st.sampled_from([DONE, DONE, DONE, *BAD, Canceled(), Lost()])


@st.composite
def retries(draw: st.DrawFn) -> Retry | None:
    return draw(
        st.none()
        | st.builds(
            Retry,
            st.sampled_from([0, 1, 2, None]),
            LENGTHS,
            factor=st.sampled_from([1.0, 2.0, 0.5]),
            jitter=st.sampled_from([0.0, 0.5]),
            superseded_by_next=st.booleans(),
        )
    )


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """A job of up to five tasks in any mode, with policies of its own for some of them."""
    names = draw(st.permutations(NAMES[: draw(st.integers(0, 5))]))
    mode = draw(st.sampled_from(["sequential", "parallel", "graph"]))
    tasks = {}
    for name in names:
        own: dict[str, object] = {}
        if draw(st.booleans()):
            own["failure"] = draw(STRATEGIES)
        if draw(st.booleans()):
            own["retry"] = draw(retries())
        if mode == "graph":
            # Only after smaller names, so that there is no cycle; their order in the job is another.
            own["after"] = tuple(sorted(peer for peer in names if peer < name and draw(st.booleans())))
        tasks[name] = own
    return job(
        tasks,
        mode=mode,
        failure=draw(STRATEGIES),
        execution_timeout=draw(st.sampled_from([None, None, "20s", "5m"])),
        on_orphan=draw(st.sampled_from(["fail", "resume", "restart"])),
        max_lost=draw(st.sampled_from([0, 1, 3, None])),
        overlap="skip",
    )


def likely(life: Life) -> list[st.SearchStrategy[LifeEvent]]:
    """What an owner would tell of this life next."""
    found: list[st.SearchStrategy[LifeEvent]] = [
        st.builds(AttemptEnded, st.just(task), st.just(number), OUTCOMES) for task, number in life.open.items()
    ]
    waiting = [task.name for task in life.rules.tasks if life.run(task.name).resume_at is not None]
    if life.state.is_owned:
        found += [st.just(WaitOver(task)) for task in waiting]
    else:
        found.append(st.just(Claimed()))
    return found


def disturbing() -> st.SearchStrategy[LifeEvent]:
    """What may come at any time, also when it makes no sense."""
    task, number = st.sampled_from(NAMES), st.integers(1, 3)
    return st.one_of(
        st.just(Lost()),
        st.just(CancelRequested("enough")),
        st.just(DeadlinePassed()),
        st.builds(Stopping, st.booleans()),
        st.just(Claimed()),
        st.builds(WaitOver, task),
        st.builds(AttemptEnded, task, number, OUTCOMES),
    )


def happens(life: Life, told: LifeEvent) -> None:
    """Deliver one event to the node that it would reach."""
    names = {task.name for task in life.rules.tasks}
    if isinstance(told, (AttemptEnded, WaitOver)) and told.task not in names:
        return
    if isinstance(told, Claimed):
        if life.state.is_owned or life.status in FINISHED:
            return
        life.state = life.stored
        life.now = max(life.now, life.state.ready_at or life.now)
    if isinstance(told, Lost):
        # A reaper knows what is stored, and nothing else.
        life.state = life.stored
    life.take(told)


def live_on(life: Life) -> None:
    """Nothing disturbs it any more: open attempts succeed, waits end, a node claims."""
    for _ in range(200):
        if life.status in FINISHED:
            return
        if not life.state.is_owned:
            life.claim_again()
        elif life.open:
            life.end(next(iter(life.open)), Succeeded())
        else:
            waiting = [task.name for task in life.rules.tasks if life.run(task.name).resume_at is not None]
            life.wait_over(min(waiting, key=lambda name: str(life.run(name).resume_at)))
    raise AssertionError(f"still {life.status} after 200 events")


class Compared(Life):
    """A life in which every snapshot that `advance` was given is compared with a copy that was made before."""

    def take(self, event: LifeEvent) -> Step:
        given, before, told = self.state, copy.deepcopy(self.state), copy.deepcopy(event)
        step = super().take(event)
        assert given == before, "advance changed its snapshot"
        assert event == told, "advance changed its event"
        return step


def lived(data: st.DataObject, *, disturbed: bool, kind: type[Life] = Life) -> Life:
    life = kind(data.draw(jobs()))
    life.claim()
    for _ in range(data.draw(st.integers(0, 15))):
        usual = likely(life)
        choices = [*usual, *([disturbing()] if disturbed else [])]
        life.pass_time(data.draw(st.sampled_from([timedelta(0), timedelta(seconds=1), timedelta(seconds=7)])))
        happens(life, data.draw(st.one_of(choices)))
    live_on(life)
    note(str(life.status))
    return life


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_whatever_happens_a_claimed_occurrence_ends_once_and_is_reported_whole(data: st.DataObject) -> None:
    """Always reported (S0-025, S0-033)."""
    life = lived(data, disturbed=True)

    ends = [step.end for step in life.steps if step.end is not None]
    assert [end.status for end in ends] == [life.status]
    assert life.status in FINISHED
    report = ends[0].report()
    assert [task.name for task in report.tasks] == [task.name for task in life.rules.tasks]
    assert report.status == life.status
    assert report == life.report(), "whoever reads the store can tell the same"


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_advance_leaves_its_snapshot_and_event_as_they_were(data: st.DataObject) -> None:
    """Values are not frozen at run time: this law holds `advance` and `plain_step` to it."""
    lived(data, disturbed=True, kind=Compared)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_attempts_are_numbered_without_holes_and_each_ends_once(data: st.DataObject) -> None:
    """C-33: also over losses, restarts and stops."""
    life = lived(data, disturbed=True)

    ended = Counter(
        (row.task, row.number)
        for step in life.steps
        for row in step.rows
        if row.attempt is not None and row.attempt != "running"
    )
    assert set(ended.values()) <= {1}
    for task in life.rules.tasks:
        numbers = sorted(number for name, number in ended if name == task.name)
        assert numbers == list(range(1, life.run(task.name).attempts + 1))
    begun = [(start.task, start.number) for step in life.steps for start in step.starts]
    assert len(begun) == len(set(begun)), "no attempt is begun twice"
    assert set(begun) == set(ended)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_the_final_status_follows_from_the_tasks_alone_when_nothing_disturbs(data: st.DataObject) -> None:
    """The table of final statuses, S0-035, S0-086, S0-087."""
    life = lived(data, disturbed=False)
    runs = list(zip(life.rules.tasks, life.state.runs, strict=True))
    failed = [task for task, run in runs if run.status in (RunStatus.FAILED, RunStatus.TIMEOUT)]

    if life.state.error == "Execution exceeded timeout":
        assert life.status is OccurrenceStatus.FAILED
        assert life.rules.execution_timeout is not None
    elif any(not task.continues for task in failed):
        assert life.status is OccurrenceStatus.FAILED
    elif failed:
        assert life.status is OccurrenceStatus.COMPLETED_WITH_ERRORS
    else:
        assert life.status is OccurrenceStatus.COMPLETED
        assert all(run.status is RunStatus.SUCCESS for _, run in runs)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_a_task_that_continues_always_runs_when_nothing_disturbs(data: st.DataObject) -> None:
    """S0-031: peers cannot cancel it, and in a graph it runs though what it comes after failed."""
    life = lived(data, disturbed=False)
    assume(not life.state.expired)
    for task, run in zip(life.rules.tasks, life.state.runs, strict=True):
        if task.continues:
            assert run.status in (RunStatus.SUCCESS, RunStatus.FAILED, RunStatus.TIMEOUT)
            assert run.because_of is None


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_tasks_start_in_the_order_of_their_mode(data: st.DataObject) -> None:
    """S0-028: nothing starts before its turn, whatever happens."""
    life = lived(data, disturbed=True)
    tasks = life.rules.tasks
    over = (RunStatus.SUCCESS, RunStatus.FAILED, RunStatus.TIMEOUT, RunStatus.CANCELED, RunStatus.SKIPPED)
    for step in life.steps:
        open_ = [place for place, run in enumerate(step.after.runs) if run.status is RunStatus.RUNNING]
        for place in open_:
            if life.rules.mode == "sequential":
                assert open_ == [place]
                assert all(run.status in over for run in step.after.runs[:place])
            for peer in tasks[place].after:
                before = step.after.runs[peer].status
                assert before is RunStatus.SUCCESS or (tasks[place].continues and before in over)


@settings(max_examples=60, deadline=None)
@given(jobs(), st.randoms(use_true_random=False))
def test_the_order_in_which_tasks_succeed_does_not_matter(definition: Job, order: Random) -> None:
    life = Life(definition)
    life.claim()
    while life.open:
        life.end(order.choice(sorted(life.open)))
    assert life.status is OccurrenceStatus.COMPLETED
    assert {run.attempts for run in life.state.runs} <= {1}


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_the_short_way_says_what_the_long_way_says(data: st.DataObject) -> None:
    """Whatever is told at any place of any life, likely or not: the short way is never another one."""
    life = lived(data, disturbed=True)
    names = {task.name for task in life.rules.tasks}
    lived_through = [*(step.after for step in life.steps)]
    for state in lived_through:
        told = data.draw(st.one_of(disturbing(), st.just(Claimed())))
        if not isinstance(told, (AttemptEnded, WaitOver)) or told.task in names:
            assert advance(life.header, state, told, life.now) == advance_in_full(life.header, state, told, life.now)


def test_the_short_way_is_taken() -> None:
    for definition in (job(), job("a b c", execution_timeout="1h"), job(mode="graph")):
        life = Life(definition)
        assert plain_step(life.header, life.state, Claimed(), life.now) is not None
        life.claim()
        while life.open:
            ((task, number),) = life.open.items()
            assert plain_step(life.header, life.state, AttemptEnded(task, number, DONE), life.now) is not None
            life.end(task)
        assert life.status is OccurrenceStatus.COMPLETED
