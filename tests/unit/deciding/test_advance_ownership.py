"""Cancel, a silent owner, a stopping node: which node goes on, and how it ends if none does."""

from dataclasses import replace
from datetime import timedelta

import pytest

from everytick.domain.outcome import Canceled, Lost
from everytick.domain.retry import Retry
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.steps import CancelRequested, DeadlinePassed, Step, Stopping, WaitOver
from everytick.domain.texts import EXECUTION_TIMEOUT, SILENT
from tests.unit.deciding.lives import BOOM, NOON, Life, Tasks, job

DIAMOND: Tasks = {"a": {}, "b": {}, "c": {"after": "a"}}


def started(step: Step) -> list[str]:
    return [f"{start.task}#{start.number}" for start in step.starts]


def attempts(step: Step) -> list[tuple[str, int, str, str]]:
    return [(row.task, row.number, str(row.attempt), str(row.run.status)) for row in step.rows]


# ---------------------------------------------------------------------------------------------------------- cancel


def test_a_cancel_tells_every_open_attempt_and_skips_what_never_began() -> None:
    tasks: Tasks = {"a": {"failure": "continue"}, "b": {}, "c": {"after": "a", "failure": "continue"}}
    life = Life(job(tasks))
    life.claim()

    step = life.take(CancelRequested("by alice"))

    assert [(cancel.task, cancel.number, cancel.reason) for cancel in step.cancels] == [
        ("a", 1, "by alice"),
        ("b", 1, "by alice"),
    ]
    assert life.statuses()["c"] == "skipped"
    life.end("a", Canceled())
    step = life.end("b", BOOM)
    assert step.end is not None
    assert (step.end.status, step.end.error, step.end.report().outcome) == ("canceled", "by alice", "canceled")
    assert life.statuses() == {"a": "canceled", "b": "canceled", "c": "skipped"}
    assert (life.run("a").error, life.run("b").error) == ("by alice", "boom")


@pytest.mark.parametrize("wait", ["2s", "2m"])
def test_a_cancel_during_a_wait_ends_the_run_as_canceled(wait: str) -> None:
    """S0-084: kept or parked."""
    life = Life(job(retry=Retry(3, wait)))
    life.claim()
    life.fail("a")
    step = life.take(CancelRequested())
    assert attempts(step) == [("a", 0, "None", "canceled")]
    assert step.after.status == "canceled"
    assert life.take(WaitOver("a")).starts == ()


@pytest.mark.parametrize("status", [OccurrenceStatus.PENDING, OccurrenceStatus.QUEUED])
def test_a_cancel_of_an_unclaimed_occurrence_ends_it_at_once(status: OccurrenceStatus) -> None:
    life = Life(job("a b"), status=status)
    step = life.take(CancelRequested("not needed"))
    assert step.end is not None
    assert (step.end.status, step.end.error) == ("canceled", "not needed")
    assert set(life.statuses().values()) == {"skipped"}


def test_a_second_cancel_changes_nothing() -> None:
    life = Life(job())
    life.claim()
    life.take(CancelRequested("one"))
    assert life.take(CancelRequested("two")).cancels == ()
    assert life.take(DeadlinePassed()).cancels == ()
    assert life.end("a", Canceled()).after.error == "one"


def test_a_cancel_after_the_deadline_changes_nothing() -> None:
    life = Life(job())
    life.claim()
    life.take(DeadlinePassed())
    assert life.take(CancelRequested()).cancels == ()
    assert life.end("a", Canceled()).after.status == "failed"


def test_what_succeeded_in_spite_of_a_cancel_is_completed() -> None:
    """A final status tells what happened, not what was asked."""
    life = Life(job())
    life.claim()
    life.take(CancelRequested())
    assert life.end("a").after.status == "completed"


def test_a_cancel_after_a_failure_under_fail_fast_leaves_it_failed() -> None:
    life = Life(job({"a": {"failure": "continue"}, "b": {}, "c": {}}, mode="parallel"))
    life.claim()
    life.fail("b")
    assert [cancel.task for cancel in life.take(CancelRequested()).cancels] == ["a"], "c was told already"
    life.end("a", Canceled())
    assert life.end("c", Canceled()).after.status == "failed"
    assert life.run("a").error == "canceled"


def test_a_cancel_that_was_asked_for_before_the_claim_starts_nothing() -> None:
    life = Life(job("a b"), cancel="changed my mind")
    step = life.claim()
    assert step.end is not None
    assert (step.starts, step.end.status, step.end.error) == ((), "canceled", "changed my mind")


# ------------------------------------------------------------------------------------------------------------ lost


def test_by_default_a_lost_occurrence_fails() -> None:
    """C-10: open attempts lost, the occurrence failed_stale."""
    tasks: Tasks = {"a": {}, "b": {"retry": Retry(1, "1m")}, "c": {"after": "a"}, "d": {}}
    life = Life(job(tasks))
    life.claim()
    life.fail("b")
    life.end("d")
    life.pass_time("30s")

    step = life.take(Lost())

    assert attempts(step) == [("a", 1, "lost", "failed"), ("b", 0, "None", "failed"), ("c", 0, "None", "skipped")]
    assert step.end is not None
    assert (step.end.status, step.end.error, step.end.report().outcome) == ("failed_stale", SILENT, "failed")
    assert step.rows[0].started_at == NOON
    assert not any(run.out_of_time for run in step.after.runs), "it was silence that ended it"


@pytest.mark.parametrize("stored", [True, False])
def test_resume_keeps_what_is_finished_and_tries_the_rest_again(stored: bool) -> None:
    """C-10: whether the reaper knows only what is stored, or all that the owner knew."""
    life = Life(job("a b c", on_orphan="resume"))
    life.claim()
    life.pass_time("10s")
    life.end("a")
    life.pass_time("10s")
    if stored:
        life.state = life.stored

    step = life.take(Lost())

    assert attempts(step) == [("b", 1, "lost", "pending")]
    assert [row.started_at for row in step.rows] == [NOON + timedelta(seconds=10)]
    assert life.run("b").started_at == NOON + timedelta(seconds=10)
    assert (step.release, step.after.status, step.after.is_owned, step.after.lost) == (True, "pending", False, 1)
    assert started(life.claim_again()) == ["b#2"]
    life.end("b")
    assert life.end("c").after.status == "completed"


@pytest.mark.parametrize("stored", [True, False])
def test_restart_runs_all_tasks_again_and_numbers_go_on(stored: bool) -> None:
    """C-10: the one move out of a final run status."""
    life = Life(job("a b c", on_orphan="restart"))
    life.claim()
    life.end("a")
    if stored:
        life.state = life.stored

    step = life.take(Lost())

    assert attempts(step) == [("b", 1, "lost", "pending"), ("a", 0, "None", "pending")]
    assert step.release
    assert started(life.claim_again()) == ["a#2"]
    assert started(life.end("a")) == ["b#2"]
    assert started(life.end("b")) == ["c#1"]
    assert life.end("c").after.status == "completed"


def test_a_restart_begins_anew_though_a_task_had_failed() -> None:
    life = Life(job("a b", mode="parallel", on_orphan="restart", retry=Retry(0, "1s")))
    life.claim()
    life.fail("a")
    assert life.take(Lost()).release
    assert started(life.claim_again()) == ["a#2", "b#2"]


def test_lost_attempts_do_not_count_against_max() -> None:
    life = Life(job(on_orphan="resume", retry=Retry(1, "1s")))
    life.claim()
    life.take(Lost())
    life.claim_again()
    assert [wait.number for wait in life.fail("a").waits] == [3]
    life.wait_over("a")
    assert life.fail("a").after.status == "failed"


@pytest.mark.parametrize("most", [0, 1, 3])
@pytest.mark.parametrize("on_orphan", ["resume", "restart"])
def test_after_so_many_take_overs_it_fails(most: int, on_orphan: str) -> None:
    """max_lost, 3 unless said."""
    life = Life(job(on_orphan=on_orphan) if most == 3 else job(on_orphan=on_orphan, max_lost=most))
    for _ in range(most):
        life.claim() if not life.steps else life.claim_again()
        assert life.take(Lost()).release
    life.claim() if not life.steps else life.claim_again()
    step = life.take(Lost())
    assert step.end is not None
    assert step.end.status == "failed_stale"
    assert step.end.error == f"{SILENT}, and it was lost {most} times before: max_lost allows no more"


def test_without_max_lost_it_is_taken_over_for_ever() -> None:
    life = Life(job(on_orphan="resume", max_lost=None))
    life.claim()
    for _ in range(50):
        assert life.take(Lost()).release
        life.claim_again()
    assert life.open == {"a": 51}


def test_a_silent_owner_that_only_waited_lost_nothing() -> None:
    """It is only released, whatever on_orphan says, and no loss is counted."""
    life = Life(job(retry=Retry(1, "3s")))
    life.claim()
    step = life.fail("a")
    step = life.take(Lost())
    assert (step.rows, step.resume_at, step.after.status) == ((), NOON + timedelta(seconds=3), "awaiting_retry")
    assert (step.after.is_owned, step.after.lost) == (False, 0)
    assert life.take(Lost()).commits is False, "nobody owns it now"
    assert started(life.claim_again()) == ["a#2"]


def test_an_unclaimed_occurrence_cannot_be_lost() -> None:
    assert Life(job()).take(Lost()).commits is False


def test_a_job_without_tasks_can_be_lost_too() -> None:
    """Its end is written behind the claim."""
    life = Life(job({}), status=OccurrenceStatus.RUNNING, is_owned=True, started_at=NOON)
    assert life.take(Lost()).after.status == "failed_stale"


def test_a_wait_survives_the_loss_of_the_owner() -> None:
    life = Life(job({"a": {}, "b": {"retry": Retry(1, "1h")}}, mode="parallel", on_orphan="resume"))
    life.claim()
    life.fail("b")
    life.take(Lost())
    step = life.claim_again()
    assert started(step) == ["a#2"]
    assert [(wait.task, wait.until) for wait in step.waits] == [("b", NOON + timedelta(hours=1))]


def test_what_a_claim_began_is_lost_though_no_row_tells_of_it() -> None:
    """Intent first: also after a wait that was parked."""
    life = Life(job(on_orphan="resume", retry=Retry(1, "1m")))
    life.claim()
    life.fail("a")
    life.claim_again()
    claimed_at = life.now
    life.pass_time("20s")
    life.state = life.stored
    step = life.take(Lost())
    assert attempts(step) == [("a", 2, "lost", "pending")]
    assert step.rows[0].started_at == claimed_at
    assert life.run("a").started_at == NOON


def test_a_loss_after_the_deadline_is_stale_whatever_on_orphan_says() -> None:
    """S0-068, S0-075."""
    life = Life(job(on_orphan="resume", execution_timeout="1m"))
    life.claim()
    life.pass_time("90s")
    step = life.take(Lost())
    assert step.end is not None
    assert (step.end.status, step.end.error) == ("failed_stale", "Execution exceeded timeout")


def test_an_owned_wait_that_was_left_beyond_the_deadline_has_failed() -> None:
    life = Life(job(retry=Retry(1, "3s"), execution_timeout="4s"))
    life.claim()
    life.fail("a")
    life.pass_time("20s")
    assert life.take(Lost()).after.error == EXECUTION_TIMEOUT


@pytest.mark.parametrize("on_orphan", ["fail", "resume", "restart"])
def test_a_lost_occurrence_that_was_asked_to_cancel_is_canceled(on_orphan: str) -> None:
    life = Life(job("a b", on_orphan=on_orphan))
    life.claim()
    life.stored = life.state = replace(life.state, cancel="by alice")
    step = life.take(Lost())
    assert attempts(step) == [("a", 1, "lost", "canceled"), ("b", 0, "None", "skipped")]
    assert (step.after.status, step.after.error) == ("canceled", "by alice")


def test_resume_does_not_try_again_what_a_failure_had_called_off() -> None:
    life = Life(job({"a": {}, "b": {}, "c": {"failure": "continue"}}, mode="parallel", on_orphan="resume"))
    life.claim()
    life.fail("b")
    step = life.take(Lost())
    assert attempts(step) == [("a", 1, "lost", "canceled"), ("c", 1, "lost", "pending")]
    assert step.rows[0].run.because_of == "b"
    assert started(life.claim_again()) == ["c#2"]
    assert life.end("c").after.status == "failed"


def test_a_cancel_of_what_is_left_after_a_loss_cancels_it() -> None:
    """Pending again: there is no way from there to failed."""
    life = Life(job({"b": {}, "c": {"failure": "continue"}}, mode="parallel", on_orphan="resume"))
    life.claim()
    life.fail("b")
    life.take(Lost())
    step = life.take(CancelRequested("by alice"))
    assert (step.after.status, step.after.error) == ("canceled", "by alice")
    assert life.statuses() == {"b": "failed", "c": "canceled"}


def test_a_loss_that_leaves_nothing_to_resume_ends_it() -> None:
    life = Life(job("a b", mode="parallel", on_orphan="resume"))
    life.claim()
    life.fail("b")
    step = life.take(Lost())
    assert (step.after.status, step.after.error) == ("failed", "task b failed, aborting due to fail-fast: boom")


def test_a_single_lost_attempt_is_tried_again_at_once() -> None:
    """A runner elsewhere may lose one attempt while its owner lives."""
    life = Life(job("a b", mode="parallel", on_orphan="resume", max_lost=1))
    life.claim()
    step = life.end("a", Lost())
    assert attempts(step) == [("a", 1, "lost", "pending")]
    assert (started(step), step.after.lost) == (["a#2"], 1)
    step = life.end("a", Lost("the worker is gone"))
    assert attempts(step)[0] == ("a", 2, "lost", "failed")
    assert [cancel.task for cancel in step.cancels] == ["b"]
    assert life.end("b", Lost()).after.status == "failed"


def test_a_single_lost_attempt_fails_the_task_by_default() -> None:
    life = Life(job("a b", failure="continue", retry=Retry(3, "1s")))
    life.claim()
    assert started(life.end("a", Lost())) == ["b#1"]
    assert life.end("b").after.status == "completed_with_errors"


# ------------------------------------------------------------------------------------------------------------ stop


def test_a_claim_that_never_began_is_given_back() -> None:
    life = Life(job("a b"), status=OccurrenceStatus.RUNNING, is_owned=True)
    step = life.take(Stopping())
    assert (step.rows, step.release, step.after.status, step.after.is_owned) == ((), True, "pending", False)
    assert life.take(Stopping()).commits is False


def test_a_claim_of_something_parked_is_parked_again() -> None:
    life = Life(job(retry=Retry(1, "1m")))
    life.claim()
    life.fail("a")
    life.stored = life.state = replace(life.stored, status=OccurrenceStatus.RUNNING, is_owned=True)
    step = life.take(Stopping())
    assert (step.resume_at, step.release) == (NOON + timedelta(minutes=1), False)


def test_a_stop_cancels_open_attempts_and_by_default_the_occurrence() -> None:
    """An attempt canceled by a stop ends canceled: shutdown."""
    life = Life(job({"a": {}, "b": {"retry": Retry(1, "1h")}, "c": {}, "d": {"after": "a"}}))
    life.claim()
    life.fail("b")

    step = life.take(Stopping())
    assert [(cancel.task, cancel.reason) for cancel in step.cancels] == [("a", "shutdown"), ("c", "shutdown")]
    step = life.end("a", Canceled())
    assert attempts(step) == [
        ("a", 1, "canceled", "canceled"),
        ("b", 0, "None", "canceled"),
        ("d", 0, "None", "skipped"),
    ]
    assert step.rows[0].error == "shutdown"
    step = life.end("c", Canceled())
    assert step.end is not None
    assert (step.end.status, step.end.error) == ("canceled", "shutdown")


@pytest.mark.parametrize(("on_orphan", "next_"), [("resume", ["b#2"]), ("restart", ["a#2", "b#2"])])
def test_a_stopped_occurrence_goes_on_elsewhere(on_orphan: str, next_: list[str]) -> None:
    life = Life(job("a b", mode="parallel", on_orphan=on_orphan))
    life.claim()
    life.end("a")
    life.take(Stopping())
    life.pass_time("1s")
    step = life.end("b", Canceled())
    assert ("b", 1, "canceled", "pending") in attempts(step)
    assert (step.release, step.after.status, step.after.stop, step.after.lost) == (True, "pending", None, 0)
    life.pass_time("1s")
    assert started(life.claim_again()) == next_


def test_a_restart_waits_until_every_attempt_has_ended() -> None:
    life = Life(job("a b", mode="parallel", on_orphan="restart"))
    life.claim()
    life.take(Stopping())
    assert life.end("a", Canceled()).after.status == "running"
    step = life.end("b")
    assert attempts(step) == [("b", 1, "success", "pending"), ("a", 0, "None", "pending")]
    assert started(life.claim_again()) == ["a#2", "b#2"]


def test_an_attempt_that_fails_while_it_is_stopped_is_no_retry() -> None:
    life = Life(job(on_orphan="resume", retry=Retry(1, "1s")))
    life.claim()
    life.take(Stopping())
    step = life.fail("a")
    assert attempts(step) == [("a", 1, "failed", "pending")]
    assert (step.release, life.run("a").retries) == (True, 0)


def test_what_ends_well_during_a_stop_is_recorded_and_the_rest_given_back() -> None:
    life = Life(job("a b"))
    life.claim()
    life.take(Stopping())
    step = life.end("a")
    assert (started(step), step.release, life.statuses()) == ([], True, {"a": "success", "b": "pending"})
    assert started(life.claim_again()) == ["b#1"]


def test_the_last_attempt_that_ends_well_during_a_stop_ends_the_occurrence() -> None:
    life = Life(job())
    life.claim()
    life.take(Stopping())
    assert life.end("a").after.status == "completed"


def test_what_becomes_ready_during_a_stop_does_not_seem_to_have_begun() -> None:
    life = Life(job(DIAMOND))
    life.claim()
    life.take(Stopping(drain=True))

    step = life.end("a")
    assert started(step) == []
    assert attempts(step) == [("a", 1, "success", "success"), ("c", 0, "None", "pending")]
    assert life.end("b").release
    assert started(life.claim_again()) == ["c#1"]


def test_a_drain_cancels_nothing_and_keeps_no_wait() -> None:
    life = Life(job("a b", mode="parallel", retry=Retry(1, "2s")))
    life.claim()
    assert life.take(Stopping(drain=True)).cancels == ()
    assert life.take(Stopping(drain=True)).cancels == ()
    step = life.fail("a")
    assert step.after.status == "running"
    step = life.fail("b")
    assert (step.resume_at, step.after.is_owned, step.waits) == (NOON + timedelta(seconds=2), False, ())


def test_a_drain_that_takes_too_long_becomes_a_stop() -> None:
    life = Life(job())
    life.claim()
    life.take(Stopping(drain=True))
    assert [cancel.reason for cancel in life.take(Stopping()).cancels] == ["shutdown"]
    assert life.take(Stopping(drain=True)).cancels == ()


def test_a_kept_wait_is_given_back_when_the_node_stops() -> None:
    life = Life(job(retry=Retry(1, "3s")))
    life.claim()
    life.fail("a")
    step = life.take(Stopping())
    assert (step.resume_at, step.after.is_owned, step.after.status) == (
        NOON + timedelta(seconds=3),
        False,
        "awaiting_retry",
    )
    assert started(life.claim_again()) == ["a#2"]


def test_a_wait_that_ends_during_a_stop_starts_nothing() -> None:
    life = Life(job({"a": {"retry": Retry(1, "2s")}, "b": {}}, mode="parallel", on_orphan="resume"))
    life.claim()
    life.fail("a")
    life.take(Stopping())
    assert life.wait_over("a").starts == ()
    step = life.end("b", Canceled())
    assert step.release
    assert started(life.claim_again()) == ["a#2", "b#2"]


def test_a_stop_after_a_failure_tells_no_task_twice() -> None:
    life = Life(job("a b", mode="parallel"))
    life.claim()
    life.fail("b")
    assert life.take(Stopping()).cancels == ()
    assert life.end("a", Canceled()).after.status == "failed"


def test_a_cancel_during_a_stop_tells_no_task_twice_and_gives_nothing_back() -> None:
    life = Life(job("a b", on_orphan="resume"))
    life.claim()
    life.take(Stopping())
    assert life.take(CancelRequested("enough")).cancels == ()
    assert life.end("a", Canceled()).after.error == "enough"
