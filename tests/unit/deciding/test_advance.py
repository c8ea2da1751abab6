"""`advance` over whole lives: order, retries, waits, parking, deadlines, and the worked examples of the seeds."""

from dataclasses import replace
from datetime import timedelta

import pytest

from everytick.deciding.retry import jittered
from everytick.domain.config import Level, overrides
from everytick.domain.durations import duration
from everytick.domain.outcome import Canceled, Failed, Succeeded, TimedOut
from everytick.domain.payload import payload
from everytick.domain.policies import Failure, Mode
from everytick.domain.retry import Retry
from everytick.domain.statuses import OccurrenceStatus, RunStatus
from everytick.domain.steps import (
    NOT_STARTED,
    AttemptEnded,
    Claimed,
    DeadlinePassed,
    LifeEvent,
    RunState,
    Start,
    Step,
    WaitOver,
    deadline_of,
    rules_of,
)
from everytick.domain.texts import EXECUTION_TIMEOUT, TASK_TIMEOUT
from tests.unit.deciding.lives import BOOM, NOON, Life, Tasks, job


def started(step: Step) -> list[str]:
    return [f"{start.task}#{start.number}" for start in step.starts]


# ----------------------------------------------------------------------------------------------------------- order


def test_a_claim_starts_the_first_attempt_and_writes_nothing() -> None:
    """The claim is the durable start."""
    life = Life(job(task_timeout="2m"))

    step = life.claim()

    assert step.starts == (Start("a", 1, NOON + timedelta(minutes=2)),)
    assert not step.commits
    assert (step.after.status, step.after.started_at, step.after.claimed_at) == ("running", NOON, NOON)


def test_an_attempt_without_a_task_timeout_has_no_deadline() -> None:
    assert Life(job(task_timeout=None)).claim().starts == (Start("a", 1, None),)


def test_a_timeout_longer_than_the_calendar_is_none() -> None:
    rules = rules_of(job(task_timeout="P900000D", execution_timeout="P900000D"))
    assert (rules.tasks[0].timeout, rules.execution_timeout) == (None, None)


def test_success_ends_the_run_and_the_occurrence() -> None:
    """S0-024: the last task ended well."""
    life = Life(job())
    life.claim()
    life.pass_time("3s")

    step = life.end("a", Succeeded(payload({"rows": 7})))

    [row] = step.rows
    assert (row.task, row.number, row.attempt, row.run.status) == ("a", 1, "success", "success")
    assert (row.started_at, row.ended_at, row.error) == (NOON, NOON + timedelta(seconds=3), None)
    assert row.run.result == payload({"rows": 7})
    assert step.end is not None
    assert (step.end.status, step.end.error, step.after.is_owned) == ("completed", None, False)
    assert step.end.report().duration == timedelta(seconds=3)


def test_a_job_without_tasks_completes_with_its_claim() -> None:
    step = Life(job({})).claim()
    assert step.end is not None
    assert (step.end.status, step.commits, step.end.report().tasks) == ("completed", True, ())


def test_sequential_tasks_start_one_after_another() -> None:
    """S0-028."""
    life = Life(job("a b c"))
    assert started(life.claim()) == ["a#1"]
    assert started(life.end("a")) == ["b#1"]
    assert started(life.end("b")) == ["c#1"]
    assert life.end("c").after.status == "completed"


def test_parallel_tasks_start_at_once_and_all_are_waited_for() -> None:
    """S0-029."""
    life = Life(job("a b c", mode="parallel"))
    assert started(life.claim()) == ["a#1", "b#1", "c#1"]
    assert life.end("b").after.status == "running"
    assert life.end("a").after.status == "running"
    assert life.end("c").after.status == "completed"


def test_graph_tasks_start_when_all_they_come_after_ended_well() -> None:
    tasks: Tasks = {"d": {"after": ("b", "c")}, "a": {}, "b": {"after": "a"}, "c": {"after": "a"}}
    life = Life(job(tasks))
    assert life.rules.mode is Mode.GRAPH
    assert started(life.claim()) == ["a#1"]
    assert started(life.end("a")) == ["b#1", "c#1"]
    assert started(life.end("c")) == []
    assert started(life.end("b")) == ["d#1"]
    assert life.end("d").after.status == "completed"


def test_a_replay_from_a_later_task_leaves_out_the_ones_before() -> None:
    """Runs that were decided before the first claim stay as they are."""
    left_out = RunState(RunStatus.SKIPPED, ended_at=NOON)
    life = Life(job("a b"), runs=(left_out, NOT_STARTED))
    assert started(life.claim()) == ["b#1"]
    assert life.end("b").after.status == "completed"


# --------------------------------------------------------------------------------------------------------- retries


def test_retries_wait_one_two_and_four_minutes_and_then_the_failure_counts() -> None:
    """S0-082, S0-085, C-33: Retry(3, 1m, 2.0) makes four attempts."""
    life = Life(job(retry=Retry(3, "1m", factor=2.0)))
    life.claim()
    waits = []
    for number in (1, 2, 3):
        life.pass_time("10s")
        step = life.fail("a")
        assert [(row.number, row.attempt, row.run.status, row.error) for row in step.rows] == [
            (number, "failed", "pending", "boom")
        ]
        assert (step.after.status, step.after.is_owned, step.waits) == ("awaiting_retry", False, ())
        assert step.resume_at is not None
        waits.append(step.resume_at - life.now)
        assert started(life.claim_again()) == [f"a#{number + 1}"]
    step = life.fail("a")

    assert waits == [timedelta(minutes=1), timedelta(minutes=2), timedelta(minutes=4)]
    assert step.end is not None
    assert (step.end.status, step.end.error) == ("failed", "boom (4 attempts)")
    [told] = step.end.report().tasks
    assert (told.attempts, told.status, told.error, told.waits) == (4, "failed", "boom", tuple(waits))


def test_without_a_policy_nothing_is_retried() -> None:
    """S0-083."""
    life = Life(job())
    life.claim()
    assert life.fail("a").after.status == "failed"


def test_a_short_wait_is_kept_by_the_owner_and_its_attempt_begins_with_a_row() -> None:
    """Every wait is awaiting_retry; intent before act."""
    life = Life(job(retry=Retry(1, "5s")))
    life.claim()

    step = life.fail("a")
    until = NOON + timedelta(seconds=5)
    assert (step.after.status, step.after.is_owned, step.after.ready_at) == ("awaiting_retry", True, until)
    assert [(wait.task, wait.number, wait.until) for wait in step.waits] == [("a", 2, until)]
    assert step.resume_at is None

    step = life.wait_over("a")
    assert started(step) == ["a#2"]
    assert [(row.number, row.attempt, row.started_at, row.run.status) for row in step.rows] == [
        (2, "running", until, "running")
    ]
    assert step.after.status == "running"
    assert life.end("a").after.status == "completed"


def test_a_wait_of_more_than_five_seconds_is_parked() -> None:
    life = Life(job(retry=Retry(1, timedelta(seconds=5, microseconds=1))))
    life.claim()
    step = life.fail("a")
    assert (step.after.is_owned, step.waits, step.resume_at) == (
        False,
        (),
        life.now + timedelta(seconds=5, microseconds=1),
    )


def test_a_parallel_occurrence_parks_only_when_nothing_else_of_it_runs() -> None:
    """awaiting_retry means that no attempt runs."""
    life = Life(job({"a": {"retry": Retry(1, "1m")}, "b": {}}, mode="parallel"))
    life.claim()

    step = life.fail("a")
    assert (step.after.status, step.resume_at) == ("running", None)
    assert [wait.until for wait in step.waits] == [NOON + timedelta(minutes=1)]
    life.pass_time("20s")
    step = life.end("b")
    assert (step.after.status, step.resume_at) == ("awaiting_retry", NOON + timedelta(minutes=1))


def test_a_long_wait_that_ends_while_a_peer_runs_is_kept() -> None:
    life = Life(job({"a": {"retry": Retry(1, "1m")}, "b": {}}, mode="parallel"))
    life.claim()
    life.fail("a")
    assert started(life.wait_over("a")) == ["a#2"]
    life.end("b")
    assert life.end("a").after.status == "completed"


def test_the_rest_of_a_wait_is_kept_if_it_is_short_when_the_last_peer_ends() -> None:
    life = Life(job({"a": {"retry": Retry(1, "1m")}, "b": {}}, mode="parallel"))
    life.claim()
    life.fail("a")
    life.pass_time("56s")
    step = life.end("b")
    assert (step.after.status, step.after.is_owned, step.resume_at) == ("awaiting_retry", True, None)


def test_a_claim_begins_the_waits_that_are_over_and_keeps_the_others() -> None:
    """The one it was claimed for follows from the claim; another that is due by now has a row of its own."""
    waits = {"a": {"retry": Retry(1, "1m")}, "b": {"retry": Retry(1, "2m")}, "c": {"retry": Retry(1, "1h")}}
    life = Life(job(waits, mode="parallel"))
    life.claim()
    for task in "abc":
        life.fail(task)
    life.pass_time("3m")

    step = life.claim_again()

    assert started(step) == ["a#2", "b#2"]
    assert [(row.task, row.number, row.attempt) for row in step.rows] == [("b", 2, "running")]
    assert [(wait.task, wait.number, wait.until) for wait in step.waits] == [("c", 2, NOON + timedelta(hours=1))]


def test_a_claim_begins_what_it_was_made_for_though_the_nodes_clock_is_behind() -> None:
    """The store's clock let it be claimed; what began must follow from the store alone."""
    life = Life(job(retry=Retry(1, "1m")))
    life.claim()
    life.fail("a")
    life.pass_time("1s")
    assert started(life.claim()) == ["a#2"]


def test_a_claim_with_nothing_to_begin_yet_is_parked_again() -> None:
    life = Life(job(retry=Retry(1, "1m")))
    life.claim()
    life.fail("a")
    life.stored = life.state = replace(life.stored, ready_at=None)
    step = life.claim()
    assert (step.starts, step.resume_at, step.after.is_owned) == ((), NOON + timedelta(minutes=1), False)


def test_waits_that_end_together_begin_together() -> None:
    """Otherwise a reaper could not tell the second from one that had begun."""
    life = Life(job("a b", mode="parallel", retry=Retry(1, "3s")))
    life.claim()
    life.fail("a")
    life.fail("b")
    assert started(life.wait_over("b")) == ["a#2", "b#2"]
    assert life.take(WaitOver("a")).commits is False


def test_a_wait_of_zero_begins_behind_the_claim() -> None:
    life = Life(job("a b", mode="parallel", retry=Retry(None, "0s")))
    life.claim()
    step = life.fail("a")
    assert [wait.until for wait in step.waits] == [NOON + timedelta(microseconds=1)]
    assert life.run("a").waits == (timedelta(0),)


def test_the_attempt_after_a_wait_does_not_count_against_the_peers() -> None:
    """S0-088: a sequential job waits at the failed task."""
    life = Life(job("a b", retry=Retry(1, "2s")))
    life.claim()
    assert started(life.fail("a")) == []
    assert started(life.wait_over("a")) == ["a#2"]
    assert started(life.end("a")) == ["b#1"]


def test_a_timed_out_attempt_is_retried_and_gives_its_status_to_the_run() -> None:
    """S0-065, S0-066, C-34."""
    life = Life(job(retry=Retry(1, "1s")))
    life.claim()
    step = life.end("a", TimedOut())
    assert [(row.attempt, row.error, row.run.status) for row in step.rows] == [("timeout", TASK_TIMEOUT, "pending")]
    life.wait_over("a")
    step = life.end("a", TimedOut())
    assert [(row.attempt, row.run.status) for row in step.rows] == [("timeout", "timeout")]
    assert TASK_TIMEOUT == "task execution timeout"
    assert step.after.status == "failed"


def test_the_last_error_stays_on_the_run_until_it_succeeds() -> None:
    """S0-089."""
    life = Life(job(retry=Retry(2, "1s")))
    life.claim()
    life.fail("a")
    life.wait_over("a")
    assert (life.run("a").error, life.run("a").attempts) == ("boom", 2)
    life.end("a")
    assert life.run("a").error is None


def test_try_again_counts_against_max_with_its_own_wait() -> None:
    life = Life(job(retry=Retry(1, "1m", jitter=1.0)))
    life.claim()
    step = life.end("a", Failed("later", try_again_after=timedelta(seconds=2)))
    assert [wait.until - life.now for wait in step.waits] == [timedelta(seconds=2)]
    life.wait_over("a")
    assert life.end("a", Failed("later", try_again_after=timedelta(seconds=2))).after.status == "failed"


def test_give_up_ends_the_run_without_further_retries() -> None:
    life = Life(job(retry=Retry(3, "1s")))
    life.claim()
    assert life.end("a", Failed("no use", give_up=True)).after.status == "failed"


def test_an_attempt_canceled_without_a_request_is_a_failure_without_retry() -> None:
    life = Life(job("a b", retry=Retry(3, "1s")))
    life.claim()
    step = life.end("a", Canceled("revoked"))
    row = step.rows[0]
    assert (row.attempt, row.run.status, row.error) == ("canceled", "failed", "revoked")
    assert step.after.status == "failed"


@pytest.mark.parametrize("given", ["1s", "1m"])
def test_a_store_can_see_that_the_next_instant_supersedes_the_retries(given: str) -> None:
    """S2-021…024: Retry without limit, given up when the next instant comes."""
    life = Life(job(retry=Retry(None, given, superseded_by_next=True), overlap="skip"))
    life.claim()
    assert life.fail("a").superseded_by_next is True
    assert (life.wait_over("a") if given == "1s" else life.claim_again()).superseded_by_next is False


def test_one_retry_that_is_not_superseded_protects_the_occurrence() -> None:
    kept, given_up = Retry(1, "1m"), Retry(None, "1m", superseded_by_next=True)
    life = Life(job({"a": {"retry": kept}, "b": {"retry": given_up}}, mode="parallel"))
    life.claim()
    life.fail("a")
    assert life.fail("b").superseded_by_next is False


def test_retries_without_limit_keep_only_the_newest_waits() -> None:
    """S2-024."""
    life = Life(job(retry=Retry(None, "1s")))
    life.claim()
    for _ in range(105):
        life.fail("a")
        life.wait_over("a")
    assert (life.run("a").attempts, life.run("a").retries) == (106, 105)
    assert len(life.run("a").waits) == 100


def test_jitter_stretches_a_wait_by_a_share_that_the_attempts_id_fixes() -> None:
    one, other = (Life(job(retry=Retry(3, "10m", jitter=0.5))) for _ in range(2))
    for life in (one, other):
        life.claim()
    first = one.fail("a").resume_at
    assert first == other.fail("a").resume_at
    assert first is not None
    assert timedelta(minutes=10) < first - NOON < timedelta(minutes=15)
    one.claim_again()
    second = one.fail("a").resume_at
    assert second is not None
    assert second - one.now != first - NOON
    task, retry = one.rules.tasks[0], Retry(3, "10m", jitter=0.5)
    assert first - NOON == jittered(retry.interval, retry.jitter, one.header.id, task.id, 2)


# -------------------------------------------------------------------------------------------------------- deadlines


def test_a_retry_that_could_not_start_before_the_deadline_is_not_planned() -> None:
    """S0-064, S0-067: the run ends, the occurrence is failed."""
    life = Life(job(retry=Retry(9, "1m"), execution_timeout="90s"))
    life.claim()
    assert life.fail("a").resume_at is not None
    life.claim_again()
    step = life.fail("a")
    assert step.end is not None
    assert (step.end.status, step.end.error) == ("failed", "Execution exceeded timeout")
    assert (life.run("a").status, life.run("a").error) == ("failed", "boom")


def test_a_retry_exactly_at_the_deadline_is_too_late() -> None:
    for timeout, planned in (("60s", False), ("60.000001s", True)):
        life = Life(job(retry=Retry(1, "1m"), execution_timeout=timeout))
        life.claim()
        assert (life.fail("a").resume_at is not None) == planned


def test_a_continuing_task_without_time_for_its_retry_lets_the_others_go_on() -> None:
    life = Life(job("a b", failure="continue", retry=Retry(1, "1h"), execution_timeout="1m"))
    life.claim()
    assert started(life.fail("a")) == ["b#1"]
    step = life.end("b")
    assert step.end is not None
    assert (step.end.status, step.end.error) == ("failed", EXECUTION_TIMEOUT)


def test_the_deadline_cancels_all_tasks_whatever_their_strategy() -> None:
    """S0-067."""
    tasks: Tasks = {"a": {}, "b": {"failure": "continue"}, "c": {"retry": Retry(1, "59s")}}
    life = Life(job(tasks, mode="parallel", execution_timeout="1m"))
    life.claim()
    life.end("c", TimedOut())
    life.pass_time("60s")

    step = life.take(DeadlinePassed())
    assert [(cancel.task, cancel.number, cancel.reason) for cancel in step.cancels] == [
        ("a", 1, EXECUTION_TIMEOUT),
        ("b", 1, EXECUTION_TIMEOUT),
    ]
    assert life.statuses()["c"] == "timeout"
    life.end("a", TimedOut())
    step = life.end("b", Canceled())
    assert step.end is not None
    assert (step.end.status, step.end.error) == ("failed", EXECUTION_TIMEOUT)
    assert life.statuses() == {"a": "timeout", "b": "canceled", "c": "timeout"}
    assert {life.run(task).error for task in "ab"} == {EXECUTION_TIMEOUT}


def test_the_deadline_skips_what_never_began() -> None:
    life = Life(job("a b", execution_timeout="1m"))
    life.claim()
    life.pass_time("1m")
    [row] = life.take(DeadlinePassed()).rows
    assert (row.run.status, row.run.out_of_time) == ("skipped", False)
    assert life.take(DeadlinePassed()).cancels == ()


@pytest.mark.parametrize("length", ["1m", "2m"])
def test_nothing_starts_at_or_after_the_deadline_without_an_event_of_it(length: str) -> None:
    life = Life(job("a b", execution_timeout="1m"))
    life.claim()
    life.pass_time(length)
    step = life.end("a")
    assert step.end is not None
    assert (step.starts, step.end.status, step.end.error) == ((), "failed", EXECUTION_TIMEOUT)
    assert life.statuses() == {"a": "success", "b": "skipped"}


def test_an_occurrence_whose_last_task_succeeds_a_moment_too_late_is_completed() -> None:
    life = Life(job(execution_timeout="1m"))
    life.claim()
    life.pass_time("2m")
    assert life.end("a").after.status == "completed"


def test_parking_does_not_move_the_deadline() -> None:
    life = Life(job("a b", retry=Retry(1, "1m"), execution_timeout="2m"))
    life.claim()
    life.fail("a")
    life.pass_time("3m")
    step = life.claim_again()
    assert step.end is not None
    assert (step.starts, step.end.status, step.end.error) == ((), "failed", EXECUTION_TIMEOUT)
    assert life.statuses() == {"a": "failed", "b": "skipped"}


def test_a_kept_wait_that_ends_after_the_deadline_starts_nothing() -> None:
    life = Life(job(retry=Retry(1, "3s"), execution_timeout="4s"))
    life.claim()
    life.fail("a")
    life.pass_time("5s")
    step = life.wait_over("a")
    assert (step.starts, step.after.status, step.after.error) == ((), "failed", EXECUTION_TIMEOUT)


# ------------------------------------------------------------------------------------------------- what is not asked


def test_an_event_that_does_not_concern_it_changes_nothing() -> None:
    life = Life(job("a b"))
    life.claim()
    life.end("a")
    strange: list[LifeEvent] = [AttemptEnded("a", 1, BOOM), AttemptEnded("b", 2, BOOM), WaitOver("b")]
    for event in strange:
        assert life.take(event).after is life.steps[-2].after
    life.end("b")
    strange = [Claimed(), DeadlinePassed(), AttemptEnded("b", 1, BOOM)]
    for event in strange:
        step = life.take(event)
        assert not step.commits
        assert step.after.status == "completed"


def test_a_wait_that_ends_after_the_occurrence_was_parked_starts_nothing() -> None:
    """It has no owner then, and its fence has not risen."""
    life = Life(job(retry=Retry(1, "1m")))
    life.claim()
    life.fail("a")
    assert life.wait_over("a").starts == ()


def test_a_queued_occurrence_cannot_be_claimed_and_an_unclaimed_one_has_no_deadline() -> None:
    life = Life(job(execution_timeout="1m"), status=OccurrenceStatus.QUEUED)
    assert life.take(DeadlinePassed()).after is life.state
    pending = Life(job(execution_timeout="1h"))
    assert deadline_of(pending.header, pending.state) is None
    life.stored = life.state
    assert life.claim().starts == ()


def test_the_occurrences_own_overrides_rule() -> None:
    definition = job({"a": {"failure": "continue", "retry": Retry(5, "1s")}}, failure="fail_fast")
    own = overrides(
        Level.OCCURRENCE, {"failure": "fail_fast", "retry": None, "task_timeout": "9s", "execution_timeout": "1h"}
    )
    rules = rules_of(definition, own)
    assert (rules.failure, rules.execution_timeout) == (Failure.FAIL_FAST, duration("1h"))
    assert (rules.tasks[0].continues, rules.tasks[0].retry, rules.tasks[0].timeout) == (False, None, duration("9s"))
    assert rules_of(definition).tasks[0].continues is True
