"""explain: a test per verdict, through the public API, on memory and on SQLite."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from everytick.app import Everytick
from everytick.deciding.explanation import Explanation, Verdict
from everytick.domain.nodes import NodeFacts
from everytick.errors import NotFound
from everytick.schedules.calendars import calendar
from everytick.schedules.cron import cron
from everytick.schedules.once import after_completion
from everytick.stores.addresses import AnyStore
from tests.stores.acting import FAILED, claim_one, deliver, everything, occurrences, plan_once, run_one
from tests.stores.clock import START, ManualClock

BERLIN = ZoneInfo("Europe/Berlin")


def work() -> None:
    """Do nothing."""


def at(hour: int, minute: int = 0, day: int = 0) -> datetime:
    return START.replace(hour=hour, minute=minute) + timedelta(days=day)


class Told:
    """An hourly job, and short ways to let time pass."""

    def __init__(self, tick: Everytick, store: AnyStore, clock: ManualClock) -> None:
        self.tick, self.store, self.clock = tick, store, clock

    async def define(self, schedule: Any = "0 * * * *", **policies: Any) -> None:
        self.tick.job(schedule, name="report", **policies)(work)
        await self.tick.sync()

    async def until(self, moment: datetime, *, planned: bool = True) -> None:
        """Let a live node plan every minute until then, or no node plan at all."""
        while planned and self.clock.time + timedelta(minutes=1) < moment:
            self.clock.move(minutes=1)
            await plan_once(self.store)
        self.clock.time = moment
        if planned:
            await plan_once(self.store)

    async def outage(self, moment: datetime) -> None:
        """Let no node plan until then."""
        self.clock.time = moment
        await plan_once(self.store)

    async def asked(self, moment: datetime | str) -> Explanation:
        return await self.tick.explain("report", moment)


@pytest.fixture
def told(tick: Everytick, store: AnyStore, clock: ManualClock) -> Told:
    return Told(tick, store, clock)


# --------------------------------------------------------------------------------------------------- what happened


async def test_what_no_living_node_can_run_is_told_with_the_reason(told: Told) -> None:
    """C-21: the explanation says that no node can run it."""
    await told.define()
    await told.until(at(10))
    [record] = await told.tick.jobs()
    facts = NodeFacts("1.0", "3.11.4", "2025b (system)", "h", 7, 50, ("default",), START)
    await told.store.beat("one", [], replace(facts, unknown_targets=((record.job.id, "there is no module x"),)))

    found = await told.asked(at(10))
    assert found.verdict is Verdict.UNKNOWN_TARGET
    assert "it is pending, and no living node can run it: there is no module x" in found.text

    await told.store.beat("two", [], replace(facts, met=(record.needs,)))
    assert (await told.asked(at(10))).verdict is Verdict.WAITING_FOR_A_SLOT


async def test_what_a_limit_or_brake_holds_back_is_told_with_its_reach(told: Told) -> None:
    """S1-040: how far the limit is used; a brake comes before it."""
    await told.define(tags=["crm"], overlap="allow")
    await told.until(at(10))
    await told.tick.set_limit("tag:crm", most=1)
    await claim_one(told.store)
    await told.until(at(11))

    found = await told.asked(at(11))
    assert found.verdict is Verdict.HELD_BACK
    assert "it is pending and waits: limit of tag crm (1 of 1)" in found.text
    assert (await told.tick.status("report")).waits == "limit of tag crm (1 of 1)"

    await told.tick.brake(reason="the database moves")
    assert "waits: brake of all (the database moves)" in (await told.asked(at(11))).text
    await told.tick.release(at_once=True)
    await told.tick.remove_limit("tag:crm")
    assert (await told.asked(at(11))).verdict is Verdict.WAITING_FOR_A_SLOT
    assert (await told.tick.status("report")).waits == ""


async def test_what_came_behind_an_occurrence_that_no_node_can_run_is_told_so(told: Told) -> None:
    """B10: the job was not busy, it stood still."""
    await told.define()
    await told.until(at(11))
    [record] = await told.tick.jobs()
    facts = NodeFacts("1.0", "3.11.4", "2025b (system)", "h", 7, 50, ("default",), START)
    await told.store.beat("one", [], replace(facts, unknown_targets=((record.job.id, "there is no module x"),)))

    found = await told.asked(at(11))

    assert found.verdict is Verdict.OVERLAP
    assert found.text.endswith("; that one has not begun, no living node can run it: there is no module x")


async def test_what_no_node_that_is_up_can_run_is_told_so(told: Told) -> None:
    """C-41, A3: an application that is down is its own outage, and its jobs are not called busy."""
    await told.define()
    told.clock.move(hours=3)
    facts = NodeFacts("1.0", "3.11.4", "2025b (system)", "h", 7, 50, ("default",), START, met=("", "code:other"))
    await told.store.beat("other", [], facts)
    found = await told.asked(at(10))
    assert found.verdict is Verdict.NOT_DECIDED_YET
    [record] = await told.tick.jobs()
    how = f"start one that has the application {record.needs.removeprefix('code:')}"
    assert f"; no node that can run it is up ({how}); the next plan would say" in found.text

    await told.store.beat("own", [], replace(facts, met=(record.needs,)))
    assert "no node that can run it is up" not in (await told.asked(at(10))).text


async def test_what_ran_is_told_with_its_occurrence_and_status(told: Told) -> None:
    await told.define()
    await told.until(at(10))
    await run_one(told.store, FAILED)
    found = await told.asked(at(10))
    [occurrence] = await occurrences(told.store)
    assert (found.verdict, found.occurrence) == (Verdict.RAN, occurrence)
    assert str(found) == (
        f"report at 2026-11-16T10:00:00+00:00: it ran as {occurrence.id}, from 2026-11-16T10:00:00+00:00 to "
        f"2026-11-16T10:00:00+00:00: failed (boom)"
    )
    assert (found.previous, found.next) == (at(9), at(11))


async def test_what_runs_now_is_told_with_its_node(told: Told) -> None:
    await told.define()
    await told.until(at(10))
    await claim_one(told.store, "node-7")
    found = await told.asked(at(10))
    assert found.verdict is Verdict.RUNNING
    assert "it has been running since 2026-11-16T10:00:00+00:00 on node-7" in found.text


async def test_what_waits_for_a_slot_is_pending(told: Told) -> None:
    await told.define()
    await told.until(at(10))
    found = await told.asked(at(10))
    assert found.verdict is Verdict.WAITING_FOR_A_SLOT
    assert "no node with a free slot of its queue has claimed it yet" in found.text


async def test_what_waits_in_line_is_told_behind_whom(told: Told) -> None:
    await told.define(overlap="queue")
    await told.until(at(10))
    first = await claim_one(told.store)
    await told.until(at(11))
    found = await told.asked(at(11))
    assert (found.verdict, found.behind) == (Verdict.WAITING_IN_LINE, first.occurrence.id)


async def test_what_overlap_skipped_is_told_behind_whom(told: Told) -> None:
    """S0-060: in history with its reason."""
    await told.define()
    await told.until(at(10))
    first = await claim_one(told.store)
    await told.until(at(11))
    found = await told.asked(at(11))
    assert (found.verdict, found.behind) == (Verdict.OVERLAP, first.occurrence.id)
    assert found.span is not None
    assert found.text.endswith(f"since the job was still busy: it came behind {first.occurrence.id}")


async def test_what_a_newer_one_superseded_is_told_so(told: Told) -> None:
    await told.define(overlap="queue_latest")
    await told.until(at(10))
    await claim_one(told.store)
    await told.until(at(12))
    found = await told.asked(at(11))
    assert found.verdict is Verdict.SUPERSEDED
    assert found.occurrence is not None
    assert (await told.asked(at(12))).verdict is Verdict.WAITING_IN_LINE


async def test_what_was_canceled_before_it_started_is_told_by_whom(told: Told) -> None:
    await told.define()
    await told.until(at(10))
    [waiting] = await occurrences(told.store)
    await told.tick.cancel(waiting.id, by="ada")
    found = await told.asked(at(10))
    assert found.verdict is Verdict.CANCELED
    assert found.text.endswith("it was canceled before it started (canceled by ada)")


@pytest.mark.parametrize(
    ("recovery", "verdict", "words"),
    [
        ("mark_as_missed", Verdict.MISSED, "recovery mark_as_missed runs nothing late"),
        ("execute_last", Verdict.MISSED, "recovery execute_last keeps only the newest"),
        ({"strategy": "bounded_window", "max_duration": "90m"}, Verdict.MISSED, "outside the bounds of recovery"),
        ("compressed", Verdict.COMPRESSED, "it came late and was compressed into occ_"),
    ],
)
async def test_what_the_recovery_strategy_dropped_is_told_by_its_rule(
    told: Told, recovery: Any, verdict: Verdict, words: str
) -> None:
    """C-06."""
    await told.define(recovery=recovery)
    await told.outage(at(14, 30))
    found = await told.asked(at(12))
    assert found.verdict is verdict
    assert words in found.text


async def test_what_the_cap_cut_is_told_so(told: Told) -> None:
    """C-06: what was cut is recorded, never silent."""
    await told.define(recovery="execute_all", late_cap=2)
    await told.outage(at(14, 30))
    assert [(await told.asked(at(hour))).verdict for hour in (12, 13)] == [
        Verdict.CUT_BY_CAP,
        Verdict.WAITING_FOR_A_SLOT,
    ]


async def test_a_full_line_and_a_recent_success_are_told(told: Told) -> None:
    await told.define(overlap="queue", max_queued=1)
    await told.until(at(10))
    await claim_one(told.store)
    await told.until(at(12))
    assert (await told.asked(at(12))).verdict is Verdict.QUEUE_FULL


async def test_an_instant_after_a_success_is_told_as_already_successful(told: Told) -> None:
    await told.define(skip_if_successful=True)
    await told.until(at(10, 30))
    await run_one(told.store)
    await told.tick.trigger("report")
    await plan_once(told.store)
    await run_one(told.store)
    await told.until(at(11))
    found = await told.asked(at(11))
    assert found.verdict is Verdict.ALREADY_SUCCESSFUL


# ----------------------------------------------------------------------------------------------- what people said


async def test_a_pause_is_told_by_whom_and_until_when_while_it_lasts_and_after(told: Told) -> None:
    """S0-043: also before any plan has written it down, and for what is to come."""
    await told.define()
    await told.tick.pause("report", until=at(12), reason="holiday", by="ada")
    await told.until(at(11, 30), planned=False)
    for moment, tense in ((at(11), "it was skipped"), (at(12), "it is skipped")):
        found = await told.asked(moment)
        assert found.verdict is Verdict.PAUSED
        assert found.pause is not None
        assert found.text.endswith(
            f"paused by ada (holiday) since 2026-11-16T09:00:00+00:00, until 2026-11-16T12:00:00+00:00: {tense}, "
            "unless the resume says otherwise"
        )
    assert (await told.asked(at(13))).verdict is Verdict.WILL_RUN
    await told.outage(at(13))
    after = await told.asked(at(11))
    assert (after.verdict, after.span is not None) == (Verdict.PAUSED, True)
    assert after.text.endswith("since the job was paused by ada (holiday)")


async def test_who_ended_a_pause_is_told_beside_who_began_it(told: Told) -> None:
    """C-18: before a plan has written it down, and after; in the history too."""
    await told.define()
    await told.tick.pause("report", reason="holiday", by="ada")
    await told.until(at(11, 30), planned=False)
    assert await told.tick.resume("report", by="bob")
    before = await told.asked(at(11))
    assert before.pause is not None
    assert before.pause.resumed_by == "bob"
    assert "paused by ada (holiday)" in before.text
    await told.outage(at(13))
    after = await told.asked(at(11))
    assert after.text.endswith("since the job was paused by ada (holiday), resumed by bob")


async def test_a_pause_without_an_end_that_catches_up_leaves_it_to_recovery(told: Told) -> None:
    await told.define()
    await told.tick.pause("report", missed="catch_up")
    found = await told.asked(at(11))
    assert found.verdict is Verdict.PAUSED
    said = "until a person resumes it: once resumed, recovery decides about it, unless the resume says otherwise"
    assert found.text.endswith(said)


async def test_what_was_disabled_is_told_before_and_after(told: Told) -> None:
    await told.define()
    await told.tick.disable("report")
    assert (await told.asked(at(10))).verdict is Verdict.DISABLED
    await told.until(at(10, 30), planned=False)
    assert (await told.asked(at(10))).verdict is Verdict.DISABLED
    await told.tick.enable("report")
    await plan_once(told.store)
    found = await told.asked(at(10))
    assert (found.verdict, found.span is not None) == (Verdict.DISABLED, True)


async def test_skips_moves_and_reschedules_are_explained(told: Told) -> None:
    """Before it comes by the planner, afterwards from what was stored."""
    await told.define()
    await told.tick.skip("report", at(10), by="ada", reason="release")
    await told.tick.move("report", at(11), at(11, 20))
    expected = {at(10): Verdict.SKIPPED_BY_HAND, at(11): Verdict.MOVED_BY_HAND}
    for moment, verdict in expected.items():
        assert (await told.asked(moment)).verdict is verdict
    moved = await told.asked(at(11, 20))
    assert moved.verdict is Verdict.WILL_RUN
    assert moved.text.endswith("it is moved from 2026-11-16T11:00:00+00:00 by code:shop")
    await told.until(at(11, 20))
    await run_one(told.store)
    for moment, verdict in {**expected, at(11, 20): Verdict.RAN}.items():
        assert (await told.asked(moment)).verdict is verdict
    assert (await told.asked(at(11))).moved_to == at(11, 20)
    assert (await told.asked(at(10))).text.endswith("it was skipped by hand by ada (release)")

    await told.tick.reschedule("report", at(13, 30))
    assert (await told.asked(at(12))).verdict is Verdict.RESCHEDULED
    assert (await told.asked(at(13, 30))).verdict is Verdict.WILL_RUN
    assert (await told.asked(at(14))).verdict is Verdict.WILL_RUN
    await told.until(at(13, 30))
    assert (await told.asked(at(12))).moved_to == at(13, 30)


async def test_a_removed_job_is_still_explained(told: Told) -> None:
    await told.define()
    await told.until(at(10))
    await run_one(told.store)
    await told.tick.remove("report")
    await told.until(at(11, 30))
    assert [(await told.asked(at(hour))).verdict for hour in (10, 11, 12)] == [
        Verdict.RAN,
        Verdict.REMOVED,
        Verdict.REMOVED,
    ]
    with pytest.raises(NotFound):
        await told.tick.explain("nobody", at(10))


# ------------------------------------------------------------------------------------------- what the schedule says


async def test_what_the_schedule_does_not_name_is_told_with_its_neighbours(told: Told) -> None:
    await told.define()
    found = await told.asked(at(10, 17))
    assert (found.verdict, found.previous, found.next) == (Verdict.NOT_NAMED, at(10), at(11))
    assert "the nearest are 2026-11-16T10:00:00+00:00 and 2026-11-16T11:00:00+00:00" in found.text


@pytest.mark.parametrize("how", ["policy", "schedule"])
async def test_what_lies_outside_the_window_is_told_with_its_edge(told: Told, how: str) -> None:
    """S0-048, S0-049."""
    if how == "policy":
        await told.define(start=at(12), end=at(14))
    else:
        await told.define(cron("0 * * * *", start=at(12), end=at(14)))
    early, late = await told.asked(at(11)), await told.asked(at(15))
    assert (early.verdict, late.verdict) == (Verdict.OUTSIDE_WINDOW, Verdict.OUTSIDE_WINDOW)
    assert "the schedule starts later, at 2026-11-16T12:00:00+00:00" in early.text
    assert "the schedule has ended before, at 2026-11-16T14:00:00+00:00" in late.text
    assert (await told.asked(at(14))).verdict is Verdict.WILL_RUN


async def test_what_a_calendar_excludes_is_told_with_the_day(told: Told) -> None:
    weekend = calendar("weekend", weekdays=("sat", "sun"))
    await told.define(cron("0 9 * * *").excluding(weekend))
    found = await told.asked(at(9, day=5))
    assert found.verdict is Verdict.EXCLUDED
    assert found.text.endswith("it does not run: 2026-11-21 is among weekend")


async def test_what_a_calendar_rolls_is_told_where_it_goes(told: Told) -> None:
    weekend = calendar("weekend", weekdays=("sat", "sun"))
    await told.define(cron("0 9 * * sat", tz="Europe/Berlin").excluding(weekend, roll="next"))
    found = await told.asked(datetime(2026, 11, 21, 9, tzinfo=BERLIN))
    assert (found.verdict, found.moved_to) == (Verdict.EXCLUDED, datetime(2026, 11, 23, 9, tzinfo=BERLIN))
    assert (await told.asked(datetime(2026, 11, 23, 9, tzinfo=BERLIN))).verdict is Verdict.WILL_RUN


async def test_what_a_half_day_excludes_is_told_with_its_time(told: Told) -> None:
    halves = calendar("halves", half_days={"2026-11-20": "13:00"})
    await told.define(cron("0 * * * *").excluding(halves))
    found = await told.asked(at(13, day=4))
    assert found.verdict is Verdict.EXCLUDED
    assert found.text.endswith("it does not run: 2026-11-20 is a half day of halves, until 13:00")
    assert (await told.asked(at(12, day=4))).verdict is Verdict.WILL_RUN


async def test_the_past_is_explained_by_the_calendar_of_its_time(told: Told) -> None:
    """An edit of a calendar is an edit of the job: the version before it keeps its own dates."""
    closed = calendar("closed", dates=["2026-11-17"])
    await told.define(cron("0 9 * * *").excluding(closed))
    await told.until(at(10, day=2))
    opened = calendar("closed", dates=["2026-11-18"], half_days=["2026-11-20"])
    await told.tick.update("report", cron("0 9 * * *").excluding(opened), detach=True)

    assert (await told.asked(at(9, day=1))).text.endswith("it does not run: 2026-11-17 is among closed")
    assert (await told.asked(at(9, day=2))).verdict is not Verdict.EXCLUDED
    assert (await told.asked(at(9, day=4))).verdict is Verdict.WILL_RUN


async def test_what_a_clock_change_moves_is_told_from_both_sides(told: Told) -> None:
    """C-03: 02:30 does not exist in Berlin on 2027-03-28; it comes at 03:00."""
    await told.define(cron("30 2 * * *", tz="Europe/Berlin"))
    gone = await told.asked("2027-03-28T02:30:00[Europe/Berlin]")
    come = datetime(2027, 3, 28, 3, 0, tzinfo=BERLIN)
    assert (gone.verdict, gone.moved_to) == (Verdict.MOVED_BY_CLOCK, come)
    here = await told.asked(come)
    assert here.verdict is Verdict.WILL_RUN
    assert "moved here from 2027-03-28 02:30:00, which the clock skipped" in here.text


async def test_what_a_clock_change_drops_is_told_with_the_rule(told: Told) -> None:
    """C-03: in the gap under skip, and the second of two equal wall times."""
    await told.define(cron("30 2 * * *", tz="Europe/Berlin", dst_gap="skip"))
    gap = await told.asked(datetime(2027, 3, 28, 2, 30, tzinfo=BERLIN))
    fold = await told.asked(datetime(2027, 10, 31, 2, 30, tzinfo=BERLIN, fold=1))
    assert (gap.verdict, fold.verdict) == (Verdict.DROPPED_BY_CLOCK, Verdict.DROPPED_BY_CLOCK)
    assert "(dst_gap=skip)" in gap.text
    assert "2027-10-31 02:30 twice, and only the first time counts (dst_fold=first)" in fold.text
    assert (await told.asked(datetime(2027, 10, 31, 2, 30, tzinfo=BERLIN))).verdict is Verdict.WILL_RUN


async def test_what_follows_an_end_depends_on_the_one_that_runs(told: Told) -> None:
    await told.define(after_completion("10m"))
    await told.until(at(9, 10))
    await claim_one(told.store)
    found = await told.asked(at(9, 30))
    assert found.verdict is Verdict.NOT_NAMED
    assert "the next instant follows from the end of the occurrence that is not over yet" in found.text


# -------------------------------------------------------------------------------------------------- what is to come


async def test_what_is_to_come_will_run_with_its_id_already_known(told: Told) -> None:
    """However far away it is: everything before it is taken as decided by then."""
    await told.define(recovery="execute_all")
    found = await told.asked(at(12, day=300))
    await told.until(at(10))
    assert found.verdict is Verdict.WILL_RUN
    soon = await told.asked(at(11))
    [claim] = await told.store.claim(await everything(told.store), 10)
    while_busy = await told.asked(at(11))
    assert (soon.behind, while_busy.behind) == (claim.occurrence.id, claim.occurrence.id)
    assert while_busy.text.endswith(
        f"unless {claim.occurrence.id} is still not over then: skipped by overlap under overlap skip"
    )


async def test_what_is_due_and_undecided_is_told_with_what_the_next_plan_says(told: Told) -> None:
    """No node runs: nothing has looked."""
    await told.define(recovery="mark_as_missed")
    await told.until(at(12, 30), planned=False)
    found = await told.asked(at(11))
    assert found.verdict is Verdict.NOT_DECIDED_YET
    assert "; the next plan would say: " in found.text
    assert "recovery mark_as_missed runs nothing late" in found.text


async def test_what_came_before_the_job_or_is_no_longer_kept_is_told_so(told: Told) -> None:
    await told.define(retention={"success": "1h", "failure": "1h", "keep_last": 0})
    assert (await told.asked(at(8))).verdict is Verdict.BEFORE_ITS_TIME
    await told.until(at(10))
    await run_one(told.store)
    await deliver(told.store)
    told.clock.move(hours=5)
    assert await told.store.prune() == 1
    assert (await told.asked(at(10))).verdict is Verdict.FORGOTTEN


async def test_what_was_decided_while_a_clock_was_ahead_is_told_with_the_way_out(told: Told, tick: Everytick) -> None:
    """C-45: neither what was decided nor what is to come hides that nothing fires meanwhile."""
    await told.define()
    await told.until(at(12, 30))
    told.clock.time = at(9, 30)
    for moment in (at(11), at(14)):
        text = (await told.asked(moment)).text
        assert "job 'report' is decided through 2026-11-16T12:00:00+00:00, ahead of the store's clock" in text
        assert "`everytick db rewind report` sets it right" in text
    assert "ahead" not in (await told.asked(at(9))).text
    assert await tick.rewind("report")
    assert "ahead" not in (await told.asked(at(14))).text


async def test_what_depends_on_another_job_says_what_it_waits_for_and_until_when(told: Told) -> None:
    """S1-042: before its time, while it waits, and after it was given up."""
    told.tick.job("0 * * * *", name="extract")(work)
    await told.define(depends_on={"job": "extract", "deadline": "30m"})
    before = await told.asked(at(10))
    assert before.verdict is Verdict.WILL_RUN
    assert "it waits for extract until 2026-11-16T10:30:00+00:00" in before.text

    await told.until(at(10, 1))
    await run_one(told.store, FAILED)
    await told.until(at(10, 5))
    waits = await told.asked(at(10))
    assert waits.verdict is Verdict.WAITING_FOR_A_JOB
    assert "it waits until 2026-11-16T10:30:00+00:00 for what it depends on extract" in waits.text
    assert waits.text.endswith("its run for 2026-11-16T10:00:00+00:00 is failed")

    await told.until(at(10, 31))
    over = await told.asked(at(10))
    assert over.verdict is Verdict.DEPENDENCY
    assert "it was skipped: dependency on extract: its run for" in over.text


def test_every_verdict_has_a_test_here() -> None:
    """Every verdict is reached by a test."""
    import ast
    from pathlib import Path

    used = {
        node.attr
        for node in ast.walk(ast.parse(Path(__file__).read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Verdict"
    }
    assert used == {verdict.name for verdict in Verdict}


async def test_an_old_instant_is_explained_by_the_definition_that_was_in_force_then(
    told: Told, tick: Everytick
) -> None:
    """Every version is kept: what a later edit took away is still told of the time before it."""
    await told.define(recovery="mark_as_missed")
    await told.outage(at(14))
    await tick.update("report", "30 * * * *", detach=True)
    await told.until(at(16), planned=True)
    await tick.update("report", "45 3 1 1 *", detach=True)
    await told.until(at(17), planned=True)

    missed = await told.asked(at(11))
    assert (missed.verdict, missed.previous, missed.next) == (Verdict.MISSED, at(10), at(12))
    assert "by version 1 of its definition" in missed.text
    between = await told.asked(at(11, 30))
    assert between.verdict is Verdict.NOT_NAMED
    assert (between.previous, between.next) == (at(11), at(12))
    assert "oldest at hand" not in between.text
    second = await told.asked(at(14, 30))
    assert (second.verdict, second.next) == (Verdict.OVERLAP, at(15, 30))
