"""What an edit means for the runs to come."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from everytick import schedule
from everytick.deciding.revise import Revision, resumed, revise, suspended, with_edit
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.snapshots import Adjustment, AdjustmentKind, JobSnapshot

NOW = datetime(2026, 1, 1, 0, 30, tzinfo=UTC)


def job(when: str, **policies: object) -> Job:
    return define_job("report", schedule(when), policies=policies, tasks=[define_task("report", "main")])


def at(*hours: float) -> tuple[datetime, ...]:
    return tuple(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hour) for hour in hours)


def stored(when: str) -> JobSnapshot:
    return with_edit(None, job(when), NOW)


def test_an_edit_of_the_schedule_adds_removes_and_keeps() -> None:
    """Compared as far as both are known: every hour knows less of the future than every two."""
    before = stored("0 * * * *")

    found = revise(before, with_edit(before, job("0 */2 * * *"), NOW), NOW, limit=4)

    assert found == Revision(added=(), removed=at(1, 3), kept=at(2, 4), through=at(4)[0])


def test_what_is_new_is_added_and_what_is_gone_is_removed() -> None:
    new, few = stored("0 * * * *"), stored("R2/2026-01-01T01:00:00Z/PT1H")

    assert revise(None, new, NOW, limit=3) == Revision(at(1, 2, 3), (), (), at(3)[0])
    assert revise(few, None, NOW, limit=3) == Revision((), at(1, 2), (), None)


def test_a_policy_that_moves_no_run_keeps_all() -> None:
    before = stored("0 * * * *")

    found = revise(before, with_edit(before, job("0 * * * *", priority=5), NOW), NOW, limit=2)

    assert (found.added, found.removed, found.kept) == ((), (), at(1, 2))


def test_the_instant_of_the_edit_belongs_to_the_old_definition() -> None:
    before, now = stored("30 * * * *"), NOW

    found = revise(before, with_edit(before, job("30 0 * * *"), now), now, limit=2)

    assert found.removed == at(1.5, 2.5)


def test_disabling_and_suspending_remove_and_resuming_adds() -> None:
    before = stored("0 * * * *")
    held = suspended(before, NOW - timedelta(minutes=1))

    assert revise(before, with_edit(before, job("0 * * * *", enabled=False), NOW), NOW, limit=2).removed == at(1, 2)
    assert revise(before, suspended(before, NOW), NOW, limit=2).removed == at(1, 2)
    assert revise(held, resumed(held, NOW), NOW, limit=2).added == at(1, 2)


def test_what_people_said_about_single_instants_is_seen() -> None:
    skipped = replace(stored("0 * * * *"), adjustments=(Adjustment(at(1)[0], AdjustmentKind.SKIP),))

    found = revise(skipped, with_edit(skipped, job("0,30 * * * *"), NOW), NOW, limit=3)

    assert (found.added, found.kept) == (at(1.5, 2.5), at(2))
