"""Versions through the public API: listed, compared, gone back to, seen before they are stored."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from everytick.app import Everytick
from everytick.app.versions import JobVersion
from everytick.domain.changes import Edit, Put
from everytick.domain.config import UNSET
from everytick.domain.ids import occurrence_id
from everytick.domain.rollouts import Rollout
from everytick.errors import Conflict, InvalidPolicies, NotFound, PlanMoved, VersionConflict
from everytick.sources.drafting import edited
from everytick.stores.base import Stored
from everytick.stores.memory import MemoryStore
from tests.stores.acting import plan_once
from tests.stores.clock import ManualClock

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def work(x: int = 1) -> int:
    return x


def more() -> None: ...


@pytest.fixture
async def daily(tick: Everytick, clock: ManualClock) -> str:
    """A job of the API, daily at five, stored at noon."""
    clock.time = NOON
    await tick.apply([tick.define("report", "0 5 * * *", owner="api").call("tests.unit.app.test_versions:work")])
    return "report"


def told(versions: list[JobVersion]) -> list[tuple[int, str, bool, bool]]:
    return [(each.version, each.by, each.is_in_force, each.is_coming) for each in versions]


async def runs(tick: Everytick, n: int = 3) -> list[str]:
    return [f"{run:%d %H:%M}" for run in await tick.next_runs("report", n)]


async def test_versions_say_who_wrote_them_when_and_what_changed(tick: Everytick, daily: str) -> None:
    """S0-115: the newest first, with those that are still to come."""
    await tick.update(daily, "0 6 * * *", policy="graceful", by="anna")
    await tick.update(daily, priority=5, policy="graceful", by="ben")
    found = await tick.versions(daily)
    assert told(found) == [(3, "ben", False, True), (2, "anna", False, False), (1, "code:shop", True, False)]
    assert [[str(change) for change in each.changes] for each in found] == [
        ["priority: 0 → 5"],
        ["schedule: cron: 0 5 * * *; tz=UTC → cron: 0 6 * * *; tz=UTC"],
        [],
    ]
    assert found[0].edited_at == NOON
    assert found[0].in_force_after == datetime(2026, 3, 4, tzinfo=UTC) - timedelta(microseconds=1)
    assert [each.version for each in await tick.versions(daily, 2)] == [3, 2]
    with pytest.raises(NotFound):
        await tick.versions("nobody")


async def test_two_versions_are_compared_in_their_parts_and_their_runs(tick: Everytick, daily: str) -> None:
    await tick.update(daily, "0 6 * * *", payload={"x": 2})
    found = await tick.compare(daily, 1, 2)
    assert [str(each) for each in found.changes] == [
        "schedule: cron: 0 5 * * *; tz=UTC → cron: 0 6 * * *; tz=UTC",
        'payload: null → {"x": 2}',
    ]
    assert (len(found.runs.added), len(found.runs.removed), len(found.runs.moved)) == (30, 30, 30)
    assert found.runs.moved[0] == (NOON + timedelta(hours=17), NOON + timedelta(hours=18))
    with pytest.raises(NotFound, match="there is no version 7 of job 'report'"):
        await tick.compare(daily, 1, 7)


async def test_a_rollback_is_a_new_version_that_follows_the_update_policy(tick: Everytick, daily: str) -> None:
    """Name, owner and whether it is enabled stay; the rest is as it was."""
    await tick.update(daily, "0 6 * * *", priority=5, update_policy="graceful", policy="immediate")
    await tick.rename(daily, "other")
    assert await tick.rollback("other", 1, by="anna") == 4
    record = await tick.job("other")
    assert (str(record.job.schedule), record.job.settings.priority) == ("cron: 0 5 * * *; tz=UTC", 0)
    assert [f"{run:%d %H:%M}" for run in await tick.next_runs("other", 3)] == ["03 06:00", "04 05:00", "05 05:00"]
    assert (await tick.versions("other"))[0].by == "anna"
    await tick.disable("other")
    await tick.rollback("other", 1)
    assert not (await tick.job("other")).job.enabled
    with pytest.raises(NotFound):
        await tick.rollback("other", 99)


async def test_what_code_defines_is_rolled_back_there(tick: Everytick) -> None:
    tick.job("0 5 * * *", name="mine")(work)
    await tick.sync()
    with pytest.raises(Conflict, match="the code of application"):
        await tick.rollback("mine", 1)
    assert await tick.rollback("mine", 1, detach=True) == 2


async def test_a_preview_shows_the_runs_and_its_hash_stores_exactly_that(
    tick: Everytick, daily: str, clock: ManualClock
) -> None:
    """S0-121, S0-122, S0-124: time may pass; a second time there is nothing left to do."""
    seen = await tick.preview_update(daily, "0 6 * * *", policy="graceful")
    [change], found = seen.changes, seen.runs[daily]
    assert (change.kind, change.parts) == ("changed", ("schedule",))
    assert (len(found.kept), len(found.moved)) == (1, 29)
    assert found.moments == (datetime(2026, 3, 4, tzinfo=UTC) - timedelta(microseconds=1),)
    clock.move(minutes=5)
    assert await tick.update(daily, "0 6 * * *", policy="graceful", plan=seen.hash) == 2
    assert await runs(tick) == ["03 05:00", "04 06:00", "05 06:00"]
    assert await tick.update(daily, "0 6 * * *", policy="graceful", plan=seen.hash) == 2


async def test_a_plan_is_refused_once_something_has_moved(tick: Everytick, daily: str, clock: ManualClock) -> None:
    """An edit, a pause, another moment, other arguments: nothing is stored, and the error says what it was."""
    seen = await tick.preview_update(daily, "0 6 * * *", policy="graceful")
    with pytest.raises(PlanMoved, match="the definitions or the options are others") as refused:
        await tick.update(daily, "0 7 * * *", policy="graceful", plan=seen.hash)
    assert refused.value.found != seen.hash
    clock.move(minutes=1)
    await tick.pause(daily)
    with pytest.raises(PlanMoved, match=r"job 'report' was paused at 2026-03-02T12:01"):
        await tick.update(daily, "0 6 * * *", policy="graceful", plan=seen.hash)
    await tick.resume(daily)
    clock.time = NOON
    seen = await tick.preview_update(daily, "0 6 * * *", policy="graceful")
    clock.move(days=1)
    await plan_once(await tick._opened())
    with pytest.raises(PlanMoved, match="a run has come meanwhile"):
        await tick.update(daily, "0 6 * * *", policy="graceful", plan=seen.hash)
    seen = await tick.preview_update(daily, "0 6 * * *")
    clock.move(minutes=1)
    await tick.update(daily, priority=1, by="ben")
    with pytest.raises(PlanMoved, match=r"job 'report' is at version 2: edited at 2026-03-03T12:01.* by ben"):
        await tick.update(daily, "0 6 * * *", plan=seen.hash)
    with pytest.raises(Conflict, match="is the hash of no plan"):
        await tick.update(daily, "0 6 * * *", plan="yesterday's")
    assert (await tick.job(daily)).job.version == 2


async def test_tasks_that_come_and_go_are_told_and_concern_what_is_to_come(tick: Everytick, daily: str) -> None:
    """S0-125, S0-126, S0-127: an occurrence to come has the new tasks, history keeps the old ones."""
    new = tick.define("report", "0 5 * * *", owner="api")
    new.call("tests.unit.app.test_versions:work", name="first")
    new.call("tests.unit.app.test_versions:more", name="second")
    seen = await tick.preview([new])
    found = seen.runs["report"]
    assert (found.tasks_added, found.tasks_removed, found.added, found.removed) == (
        ("first", "second"), ("work",), (), (),
    )  # fmt: skip
    await tick.apply([new], plan=seen.hash)
    assert [task.name for task in (await tick.job("report")).job.tasks] == ["first", "second"]
    assert "task second: none → " in " ".join(str(each) for each in (await tick.versions(daily))[0].changes)


async def test_a_version_conflict_tells_both_sides(tick: Everytick, daily: str) -> None:
    """S0-115."""
    await tick.update(daily, "0 6 * * *", by="anna")
    with pytest.raises(VersionConflict, match="is at version 2, not 1") as refused:
        await tick.update(daily, priority=5, expected_version=1)
    assert refused.value.theirs == ("schedule: cron: 0 5 * * *; tz=UTC → cron: 0 6 * * *; tz=UTC",)
    assert refused.value.yours == ("priority: 0 → 5",)
    assert "changed since: schedule" in str(refused.value)
    assert "your edit: priority: 0 → 5" in str(refused.value)


class FasterEditor(MemoryStore):
    """A store in which, once `job` is set, another program edits this job just before the next change is stored."""

    job = ""

    async def apply(self, changes: Sequence[Edit], by: str = "") -> list[Stored]:
        """Store the edit of the other one first."""
        if self.job:
            name, self.job = self.job, ""
            [record] = [each for each in await self.list() if each.job.name == name]
            await super().apply([Put(edited(record.job, None, {"priority": 7}))], "ben")
        return await super().apply(changes, by)


@pytest.mark.parametrize("verb", ["remove", "rename"])
async def test_an_edit_that_comes_between_the_look_and_the_change_is_a_conflict_too(verb: str) -> None:
    """S0-115: the store itself compares the version; nothing is removed or renamed."""
    store = FasterEditor(lambda: NOON)
    tick = Everytick(store, name="shop")
    await tick.apply([tick.define("report", "0 5 * * *", owner="api").call("tests.unit.app.test_versions:work")])
    store.job = "report"
    ask = tick.remove if verb == "remove" else partial(tick.rename, new="other")
    with pytest.raises(VersionConflict, match="is at version 2, not 1") as refused:
        await ask("report", expected_version=1)

    assert refused.value.theirs == ("priority: 0 → 7",)
    assert refused.value.yours == (("removed",) if verb == "remove" else ("name: report → other",))
    assert (await tick.job("report")).job.version == 2


async def test_code_that_still_says_what_a_window_was_for_changes_nothing(tick: Everytick, clock: ManualClock) -> None:
    """S0-119: else every start would open the window again."""
    clock.time = NOON
    later = Everytick(await tick._opened(), name="shop")
    tick.job("0 5 * * *", name="mine", update_policy="windowed 1")(work)
    later.job("0 6 * * *", name="mine", update_policy="windowed 1")(work)
    await tick.sync()
    assert [change.kind for change in await later.sync()] == ["changed"]
    for days in (0, 3):
        clock.move(days=days)
        await plan_once(await tick._opened())
        assert [change.kind for change in await later.sync()] == ["unchanged"]
    assert [f"{run:%H:%M}" for run in await later.next_runs("mine", 2)] == ["05:00", "05:00"]


async def test_a_policy_that_makes_no_sense_is_refused_before_anything_is_asked(tick: Everytick, daily: str) -> None:
    with pytest.raises(InvalidPolicies, match="update_policy 'later' is not known"):
        await tick.update(daily, "0 6 * * *", policy="later")
    assert await tick.update(daily, priority=UNSET, policy=None) == 1


async def test_an_explanation_says_which_version_names_the_instant(tick: Everytick, daily: str) -> None:
    """And when it comes into force, or which one follows."""
    await tick.update(daily, "0 6 * * *", policy="graceful")
    before = await tick.explain(daily, "2026-03-03T05:00:00Z")
    after = await tick.explain(daily, "2026-03-04T06:00:00Z")
    never = await tick.explain(daily, "2026-03-03T06:00:00Z")
    moment = "comes into force after 2026-03-03T23:59:59.999999+00:00"
    assert before.text.endswith(f"; by version 1; version 2 {moment}")
    assert after.text.endswith(f"; by version 2, which {moment}")
    assert (never.verdict, never.text.endswith(f"; by version 1; version 2 {moment}")) == (
        "not named by the schedule",
        True,
    )
    await tick.update(daily, "0 9 * * *", policy="windowed 1")
    back = await tick.explain(daily, "2026-03-05T06:00:00Z")
    assert back.text.endswith(f"; by version 4, which {moment}, at the end of the window of version 3")


async def test_a_rollout_is_shown_and_ended_by_hand(tick: Everytick, daily: str, clock: ManualClock) -> None:
    version = await tick.update(daily, priority=5, policy=Rollout(share=0.5, after=3, max_failures=1), by="anna")
    found = await tick.rollout(daily)
    assert found is not None
    assert (found.version, found.in_force, str(found)) == (
        version,
        1,
        "version 2: 50% of the occurrences, 0 of 3 ended, 0 failed, 1 may",
    )
    [trial, first] = await tick.versions(daily)
    assert (trial.is_on_trial, trial.is_in_force, str(trial.rollout)) == (True, False, "50% after 3 failures 1")
    assert first.is_in_force
    assert await tick.end_rollout(daily, keep=False, by="ben") == 3
    assert await tick.rollout(daily) is None
    assert (await tick.job(daily)).job.settings.priority == 0
    await tick.update(daily, priority=5, policy="rollout 50%")
    assert await tick.end_rollout(daily, keep=True) == 5
    assert (await tick.job(daily)).job.settings.priority == 5
    with pytest.raises(NotFound, match="rollout of job 'report'"):
        await tick.end_rollout(daily, keep=True)


async def test_a_run_to_come_says_which_version_it_tries(tick: Everytick, daily: str, clock: ManualClock) -> None:
    await tick.update(daily, priority=5, policy="rollout 50%")
    share = Rollout(share=0.5)
    for at in await tick.next_runs(daily, 6):
        said = str(await tick.explain(daily, at))
        is_tried = share.takes(occurrence_id((await tick.job(daily)).job.id, at))
        assert ("tries version 2 (50% of the occurrences)" in said) == is_tried, said


async def test_code_that_still_says_what_was_rolled_back_changes_nothing(tick: Everytick, clock: ManualClock) -> None:
    """Else every start would try it again."""
    clock.time = NOON
    later = Everytick(await tick._opened(), name="shop")
    tick.job("0 5 * * *", name="mine", priority=1, update_policy="rollout 50%")(work)
    later.job("0 5 * * *", name="mine", priority=5, update_policy="rollout 50%")(work)
    await tick.sync()
    assert [change.version for change in await later.sync()] == [2]
    assert [change.kind for change in await later.sync()] == ["unchanged"]
    assert await later.end_rollout("mine", keep=False) == 3
    assert [change.kind for change in await later.sync()] == ["unchanged"]
    assert (await later.job("mine")).job.settings.priority == 1


async def test_a_preview_says_how_the_version_is_tried(tick: Everytick, daily: str) -> None:
    found = await tick.preview_update(daily, "0 6 * * *", policy="rollout 10% after 5")
    runs = found.runs[daily]
    assert (str(runs.rollout), runs.added, runs.moments) == ("10% after 5", (), ())
    assert await tick.update(daily, "0 6 * * *", policy="rollout 10% after 5", plan=found.hash) == 2
