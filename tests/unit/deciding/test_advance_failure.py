"""What a failure does to its peers: mode × strategy × per-task override, and the report that tells of it."""

from datetime import timedelta

import pytest

from everytick.domain.durations import duration
from everytick.domain.outcome import Canceled, Failed, TimedOut, error_types
from everytick.domain.policies import Failure
from everytick.domain.report import group_outcome
from everytick.domain.retry import Retry
from everytick.domain.statuses import ENDED, OccurrenceStatus
from everytick.domain.steps import CancelRequested, Step
from tests.unit.deciding.lives import BOOM, DONE, Life, Tasks, job

FAIL_FAST_TEXT = "task b failed, aborting due to fail-fast: boom"


def started(step: Step) -> list[str]:
    return [start.task for start in step.starts]


def live(life: Life, failing: str) -> None:
    """Live it to its end: the failing tasks fail, what is told to stop stops, the others succeed; b goes first."""
    life.claim()
    told: set[str] = set()
    while life.open:
        task = min(life.open, key=lambda name: (name != "b", name))
        step = life.end(task, Canceled() if task in told else BOOM if task in failing.split() else DONE)
        told |= {cancel.task for cancel in step.cancels}


# The mode, the job's strategy, the own strategies of a, b and c (- for none), and what b's failure for good comes to.
TABLE = [
    # sequential: a ends before b fails, c would come next
    ("sequential", "fail_fast", "- - -", "success failed skipped", "failed"),
    ("sequential", "fail_fast", "- - continue", "success failed success", "failed"),
    ("sequential", "fail_fast", "- continue -", "success failed success", "completed_with_errors"),
    ("sequential", "continue", "- - -", "success failed success", "completed_with_errors"),
    ("sequential", "continue", "- fail_fast -", "success failed success", "failed"),
    ("sequential", "continue", "- fail_fast fail_fast", "success failed skipped", "failed"),
    ("sequential", "continue", "- retry_on_failure retry_on_failure", "success failed skipped", "failed"),
    ("sequential", "retry_on_failure", "- - -", "success failed skipped", "failed"),
    ("sequential", "retry_on_failure", "- - continue", "success failed success", "failed"),
    # parallel: b fails first while a and c run
    ("parallel", "fail_fast", "- - -", "canceled failed canceled", "failed"),
    ("parallel", "fail_fast", "- - continue", "canceled failed success", "failed"),
    ("parallel", "fail_fast", "- continue -", "success failed success", "completed_with_errors"),
    ("parallel", "continue", "- - -", "success failed success", "completed_with_errors"),
    ("parallel", "continue", "- fail_fast -", "success failed success", "failed"),
    ("parallel", "continue", "fail_fast fail_fast -", "canceled failed success", "failed"),
    ("parallel", "retry_on_failure", "- - -", "canceled failed canceled", "failed"),
    ("parallel", "retry_on_failure", "continue - -", "success failed canceled", "failed"),
    # graph: c comes after b, a beside them
    ("graph", "fail_fast", "- - -", "canceled failed skipped", "failed"),
    ("graph", "fail_fast", "- - continue", "canceled failed success", "failed"),
    ("graph", "fail_fast", "continue - -", "success failed skipped", "failed"),
    ("graph", "fail_fast", "- continue -", "success failed skipped", "completed_with_errors"),
    ("graph", "continue", "- - -", "success failed success", "completed_with_errors"),
    ("graph", "continue", "- - fail_fast", "success failed skipped", "completed_with_errors"),
    ("graph", "continue", "- fail_fast -", "success failed success", "failed"),
    ("graph", "retry_on_failure", "- - -", "canceled failed skipped", "failed"),
]


@pytest.mark.parametrize(("mode", "failure", "own", "runs", "status"), TABLE)
def test_a_failure_for_good_reaches_its_peers_by_mode_and_strategy(
    mode: str, failure: str, own: str, runs: str, status: str
) -> None:
    """S0-030…032, S0-035, S0-086…088: its own effective strategy counts, in every mode."""
    written = {
        name: {} if strategy == "-" else {"failure": strategy}
        for name, strategy in zip("abc", own.split(), strict=True)
    }
    tasks: Tasks = {**written, "c": {**written["c"], "after": "b"}} if mode == "graph" else written
    life = Life(job(tasks, mode=mode, failure=failure, retry=None))

    live(life, failing="b")

    assert list(life.statuses().values()) == runs.split()
    assert life.status == status
    stopped = {"skipped", "canceled"} & set(runs.split())
    failed = FAIL_FAST_TEXT if stopped else "task b failed: boom"
    assert life.state.error == (failed if status == "failed" else "1 of 3 tasks failed: b: boom")


@pytest.mark.parametrize("failure", ["fail_fast", "continue", "retry_on_failure"])
def test_the_error_of_a_job_of_one_task_is_the_error_of_its_task(failure: str) -> None:
    """A2: no word of fail-fast where no other task was stopped, and the attempts are counted."""
    text = 'Traceback (most recent call last):\n  File "jobs.py", line 7, in flaky\n    raise ValueError("boom")\n'
    life = Life(job("a", failure=failure, retry=Retry(3, "1s")))
    life.claim()
    for _ in range(3):
        life.end("a", Failed(f"{text}ValueError: boom"))
        life.wait_over("a")
    step = life.end("a", Failed(f"{text}ValueError: boom"))
    assert step.end is not None
    assert step.end.error == "ValueError: boom (4 attempts)"
    assert life.run("a").error == f"{text}ValueError: boom", "the whole traceback stays with the task"


def test_a_last_task_that_fails_alone_is_named_without_fail_fast() -> None:
    """A2: nothing came after it that its failure could stop."""
    life = Life(job("a b"))
    life.claim()
    life.end("a")
    step = life.fail("b")
    assert step.end is not None
    assert step.end.error == "task b failed: boom"


@pytest.mark.parametrize("mode", ["sequential", "parallel", "graph"])
def test_a_failure_counts_only_when_its_retries_are_used_up(mode: str) -> None:
    """S0-085, S0-088: retry_on_failure brings Retry(3, 30s)."""
    life = Life(job("b", mode=mode, failure="retry_on_failure"))
    life.claim()
    for _ in range(3):
        step = life.fail("b")
        assert step.resume_at == life.now + timedelta(seconds=30)
        life.claim_again()
    assert life.fail("b").after.status == "failed"


def test_task_ten_still_runs_though_task_seven_failed() -> None:
    """S0-030, S0-031: the ten-task job of the seed with its clean-up task."""
    ten: Tasks = {f"t{n}": {"failure": "continue"} if n == 10 else {} for n in range(1, 11)}
    life = Life(job(ten, mode="parallel", retry=Retry(1, "30s")))
    assert len(life.claim().starts) == 10
    life.fail("t7")
    assert started(life.wait_over("t7")) == ["t7"]
    life.fail("t3")

    step = life.fail("t7")

    told = {cancel.task: cancel.reason for cancel in step.cancels}
    assert list(told) == ["t1", "t2", "t4", "t5", "t6", "t8", "t9"]
    assert set(told.values()) == {"task t7 failed, aborting due to fail-fast"}
    assert life.statuses()["t3"] == "canceled", "a wait for a retry ends canceled (S0-084)"
    assert life.statuses()["t10"] == "running"
    for task in told:
        life.end(task, Canceled())
    step = life.end("t10")
    assert step.end is not None
    report = step.end.report()
    assert (step.end.status, report.outcome, report.task("t10").status) == ("failed", "failed", "success")
    assert report.canceled_by("t7") == ("t1", "t2", "t3", "t4", "t5", "t6", "t8", "t9")
    assert report.task("t1").error == "task t7 failed, aborting due to fail-fast"


def test_a_continuing_peer_keeps_its_retries_after_a_failure() -> None:
    life = Life(job({"b": {}, "c": {"failure": "continue", "retry": Retry(1, "2s")}}, mode="parallel"))
    life.claim()
    life.fail("b")
    assert [wait.task for wait in life.fail("c").waits] == ["c"]
    assert started(life.wait_over("c")) == ["c"]
    assert life.end("c").after.status == "failed"


def test_a_peer_that_succeeds_though_it_was_told_to_stop_has_succeeded() -> None:
    life = Life(job("a b c", mode="parallel"))
    life.claim()
    life.fail("b")
    life.end("a")
    step = life.end("c", Canceled())
    assert life.statuses() == {"a": "success", "b": "failed", "c": "canceled"}
    assert step.end is not None
    assert step.end.report().canceled_by("b") == ("c",)


@pytest.mark.parametrize("outcome", [BOOM, TimedOut()])
def test_a_peer_that_fails_after_it_was_told_to_stop_is_canceled_and_not_retried(outcome: Failed | TimedOut) -> None:
    life = Life(job({"a": {"retry": Retry(3, "1s")}, "b": {}}, mode="parallel"))
    life.claim()
    life.fail("b")
    [row] = life.end("a", outcome).rows
    assert (row.attempt, row.error, row.run.status) == (
        "failed" if outcome is BOOM else "timeout",
        outcome.error,
        "canceled",
    )
    assert life.state.error == FAIL_FAST_TEXT


def test_what_comes_after_a_skipped_task_is_skipped_and_says_because_of_whom() -> None:
    tasks: Tasks = {
        "b": {"failure": "continue"},
        "c": {"after": "b"},
        "d": {"after": "c"},
        "e": {"after": "d", "failure": "continue"},
        "a": {"after": ("c", "b"), "failure": "continue"},
    }
    life = Life(job(tasks))
    life.claim()
    assert started(life.fail("b")) == ["e", "a"]
    life.end("e")
    life.end("a")
    assert life.statuses() == {"b": "failed", "c": "skipped", "d": "skipped", "e": "success", "a": "success"}
    report = life.report()
    assert [report.task(name).because_of for name in "cdea"] == ["b", "b", None, None]
    assert report.canceled_by("b") == (), "skipped is not canceled"


def test_a_graph_task_that_continues_waits_until_all_it_comes_after_are_over() -> None:
    tasks: Tasks = {"a": {}, "b": {}, "c": {"after": ("a", "b"), "failure": "continue"}}
    life = Life(job(tasks))
    life.claim()
    assert started(life.fail("b")) == []
    assert started(life.end("a", Canceled())) == ["c"]


def test_retry_on_failure_holds_the_job_at_the_failed_task_until_its_retries_are_used_up() -> None:
    """S0-088: by the job's own policy; the task behind it starts only after a success."""
    for outcome in ("success", "failed"):
        life = Life(job("a b", failure="retry_on_failure", retry=Retry(2, "1s", factor=3.0)))
        life.claim()
        for wait in ("1s", "3s"):
            step = life.fail("a")
            assert (step.after.status, started(step)) == ("awaiting_retry", [])
            assert life.run("a").resume_at == life.now + duration(wait)
            assert started(life.wait_over("a")) == ["a"]
        assert life.statuses() == {"a": "running", "b": "pending"}
        if outcome == "success":
            assert started(life.end("a")) == ["b"]
        else:
            assert life.fail("a").after.status == "failed"
            assert life.statuses() == {"a": "failed", "b": "skipped"}


def test_errors_under_continue_are_counted() -> None:
    """S0-023, S0-087: the status itself says it, and the error how many."""
    life = Life(job("a b c", failure="continue"))
    life.claim()
    life.fail("a")
    life.end("b", TimedOut())
    step = life.end("c")
    assert step.end is not None
    assert (step.end.status, step.end.error) == (
        "completed_with_errors",
        "2 of 3 tasks failed: the first was a: boom",
    )
    assert step.end.report().outcome == "completed"


def test_a_parallel_job_with_a_failed_task_ends_failed() -> None:
    """S0-035."""
    life = Life(job("a b", mode="parallel"))
    life.claim()
    life.end("a")
    assert life.fail("b").after.status == "failed"


# ---------------------------------------------------------------------------------------------------------- report


def test_the_report_tells_the_attempts_the_waits_and_the_canceled_peers() -> None:
    """S0-033, S0-034: five retries with 30s, 1m, 2m, 4m and 8m (six attempts by C-33), and 8 peers canceled."""
    nine: Tasks = {"B": {"retry": Retry(5, "30s", factor=2.0)}, **{f"p{n}": {} for n in range(8)}}
    life = Life(job(nine, mode="parallel"), is_recovery_run=True)
    life.claim()
    for _ in range(5):
        life.fail("B")
        life.wait_over("B")
    step = life.fail("B")
    life.pass_time("1s")
    for cancel in step.cancels:
        step = life.end(cancel.task, Canceled())

    assert step.end is not None
    report = step.end.report()
    assert (report.occurrence_id, report.failure, report.outcome) == (life.header.id, Failure.FAIL_FAST, "failed")
    assert (report.scheduled_for, report.is_recovery_run) == (life.header.scheduled_for, True)
    told = report.task("B")
    assert (told.id, told.name, told.attempts, told.status) == (life.rules.tasks[0].id, "B", 6, "failed")
    assert told.duration == timedelta(minutes=15, seconds=30)
    assert told.describe() == "task 'B' failed after 6 attempts with waits of 30s, 1m, 2m, 4m, 8m: boom"
    assert len(report.canceled_by("B")) == 8
    first, told_b, *peers = report.describe().splitlines()
    error = "task B failed, aborting due to fail-fast: boom (6 attempts)"
    assert first == f"occurrence {report.occurrence_id} failed: {error}"
    assert told_b == told.describe() + "; canceled 8 other tasks"
    assert peers[0] == ("task 'p0' was canceled because task 'B' failed: task B failed, aborting due to fail-fast")


def test_the_report_names_tasks_that_never_started() -> None:
    life = Life(job("a b"))
    life.claim()
    life.fail("a")
    report = life.report()
    assert [(task.name, task.status, task.attempts, task.duration) for task in report.tasks] == [
        ("a", "failed", 1, timedelta(0)),
        ("b", "skipped", 0, None),
    ]
    assert report.task("b").describe() == "task 'b' skipped because task 'a' failed"
    with pytest.raises(KeyError):
        report.task("x")


def test_a_report_without_trouble_is_short() -> None:
    life = Life(job())
    life.claim()
    life.end("a")
    report = life.report()
    assert report.describe() == f"occurrence {report.occurrence_id} completed\ntask 'a' succeeded"


def test_the_report_of_what_never_started_has_no_duration() -> None:
    life = Life(job())
    step = life.take(CancelRequested("not today"))
    assert step.end is not None
    assert (step.end.report().duration, step.end.report().outcome) == (None, "canceled")


def test_every_end_has_one_of_four_group_outcomes() -> None:
    """S0-107's label."""
    words = {str(status): group_outcome(status) for status in ENDED}
    assert words == {
        "completed": "completed",
        "completed_with_errors": "completed",
        "failed": "failed",
        "failed_stale": "failed",
        "canceled": "canceled",
        "skipped": "skipped",
        "missed": "skipped",
        "superseded": "skipped",
    }
    with pytest.raises(AssertionError, match="has not ended"):
        group_outcome(OccurrenceStatus.RUNNING)


def test_an_error_is_named_by_its_class_and_bases_as_retry_on_names_them() -> None:
    class Flaky(ConnectionError):
        pass

    named = error_types(Flaky())
    assert named[0] == Retry(1, "1s", on=Flaky).on[0]
    assert named[1:] == ("builtins.ConnectionError", "builtins.OSError", "builtins.Exception", "builtins.BaseException")
