"""depends_on: what is in line waits for other jobs, is released by their success, and ends at its deadline."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from everytick.deciding.plan import plan
from everytick.domain.snapshots import (
    Active,
    Dependence,
    Edition,
    Ended,
    InLine,
    JobSnapshot,
    PausedSpan,
    Upstream,
    UpstreamRun,
)
from everytick.domain.statuses import OccurrenceStatus
from tests.unit.deciding.planning import active, at, created, ended, job, snapshot_of, trigger

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
NINE = at("09:00")


def waits(id_: str = "waits", when: datetime = NINE, **more: Any) -> Active:
    return active(id_, when, "queued", **more)


def ran(status: str | None = None, ended_at: datetime | None = None, **more: Any) -> UpstreamRun:
    """Return the other job's run for nine o'clock."""
    return UpstreamRun(NINE, ended_at, status=None if status is None else OccurrenceStatus(status), **more)


def extract(*runs: UpstreamRun, **more: Any) -> Upstream:
    return Upstream("extract", "job_extract", "extract", **{"watermark": at("09:00"), "runs": runs, **more})


def success(ended_at: datetime) -> Ended:
    return Ended(NINE, ended_at - MINUTE, ended_at, "occ")


def dependent(
    *line: Active, known: Upstream | None = None, policy: Any = "extract", when: str = "0 * * * *", **more: Any
) -> JobSnapshot:
    """Return a job that depends on extract, decided through 09:00, with these in line."""
    policies = {key: more.pop(key) for key in ("overlap", "late_overlap", "max_concurrent") if key in more}
    facts = Dependence((known or extract(),), tuple(InLine(each.id, each.line_at, each.scheduled_for) for each in line))
    made = job(when, depends_on=policy, **policies)
    return snapshot_of(made, NINE, active=(*line, *more.pop("busy", ())), dependence=facts, **more)


def test_an_instant_is_put_in_line_and_the_next_plan_comes_at_once() -> None:
    """S1-042: what is known of the other job may be older than the occurrence."""
    decided = plan(dependent(known=extract(ran("completed", at("09:59")))), at("10:00:01"))

    assert created(decided) == [(at("10:00"), "queued")]
    assert decided.creations[0].detail == f"waits for extract until {at('11:00').isoformat()}"
    assert decided.wake_at == at("10:00:01")


@pytest.mark.parametrize("status", ["running", "failed", None])
def test_without_a_success_for_the_same_instant_it_waits_until_the_next_one(status: str | None) -> None:
    """S1-042: the deadline is among the times at which the job is planned."""
    decided = plan(dependent(waits(), known=extract(ran(status))), at("09:30"))

    assert (decided.releases, decided.endings, decided.wake_at) == ((), (), at("10:00"))
    assert decided.awaits_ends


def test_a_success_for_the_same_instant_releases_it() -> None:
    """S1-042: so does one that the other job remembers and whose run is deleted."""
    run = plan(dependent(waits(), known=extract(ran("completed", at("09:20")))), at("09:30"))
    remembered = plan(dependent(waits(), known=extract(last_success=success(at("09:20")))), at("09:30"))

    assert run.releases == remembered.releases == ("waits",)


@pytest.mark.parametrize(("ended_at", "released"), [("09:00", True), ("08:59:59", False), ("09:31", True)])
def test_a_success_counts_within_its_time(ended_at: str, released: bool) -> None:
    """S1-042: also one that lies ahead, written before the clock was set back."""
    seen = dependent(
        waits(), known=extract(last_success=success(at(ended_at))), policy={"job": "extract", "within": "30m"}
    )
    assert plan(seen, at("09:30")).releases == (("waits",) if released else ())


def test_at_the_deadline_it_ends_with_what_was_missing() -> None:
    """S1-042: the next instant takes its place."""
    decided = plan(dependent(waits(), known=extract(ran("failed"))), at("10:00"))

    assert ended(decided) == [("waits", "skipped", f"on extract: its run for {NINE.isoformat()} is failed")]
    assert str(decided.endings[0].why) == "dependency"
    assert created(decided) == [(at("10:00"), "queued")]


@pytest.mark.parametrize(("deadline", "gives_up"), [("20m", "09:20"), ("90m", "10:30")])
def test_a_deadline_counts_from_the_instant(deadline: str, gives_up: str) -> None:
    seen = dependent(waits(), policy={"job": "extract", "deadline": deadline}, when="0 0 * * *")

    assert plan(seen, at(gives_up) - MINUTE).wake_at == at(gives_up)
    assert len(plan(seen, at(gives_up)).endings) == 1


def test_without_a_next_instant_it_waits_a_day() -> None:
    """S1-042: nothing waits for ever."""
    seen = dependent(waits(), when="once: 2026-11-16T09:00:00Z")

    assert plan(seen, at("09:30")).wake_at == at("1 09:00")


def test_what_came_late_waits_from_its_creation_on() -> None:
    """S1-042: both jobs catch up after an outage, in whatever order."""
    late = waits(late=True)
    seen = dependent(late, policy={"job": "extract", "deadline": "20m"}, when="0 0 * * *")
    assert seen.dependence is not None
    known = replace(seen.dependence, in_line=(InLine("waits", at("12:00"), NINE),))

    assert plan(replace(seen, dependence=known), at("12:10")).wake_at == at("12:20")


@pytest.mark.parametrize(("ended_at", "runs"), [("09:59", True), ("10:01", False)])
def test_a_planner_that_comes_after_the_deadline_decides_as_one_in_time(ended_at: str, runs: bool) -> None:
    """S1-042: a success by the deadline counts, and a later one does not."""
    decided = plan(dependent(waits(), known=extract(ran("completed", at(ended_at)))), at("10:05"))

    assert ("waits" in decided.releases, len(decided.endings)) == (runs, not runs)


SKIP = {"job": "extract", "otherwise": "skip", "deadline": "5h"}


@pytest.mark.parametrize(
    ("known", "gives_up"),
    [
        (extract(ran("running", is_active=True)), False),
        (extract(ran("failed", is_active=True)), False),
        (extract(watermark=at("08:59")), False),
        (extract(watermark=at("08:59"), state="paused"), False),
        (extract(ran("failed")), True),
        (extract(), True),
        (extract(watermark=at("08:59"), state="removed"), True),
        (Upstream("extract", "job_extract", state="deleted"), True),
    ],
)
def test_skip_gives_up_once_only_people_could_help(known: Upstream, gives_up: bool) -> None:
    """S1-042: a replay under way is hope too."""
    decided = plan(dependent(waits(), known=known, policy=SKIP), at("09:30"))
    assert len(decided.endings) == gives_up


def test_skip_within_a_time_decides_at_once() -> None:
    """S1-042: B runs only if A succeeded in the last hour."""
    policy = {"job": "extract", "within": "1h", "otherwise": "skip"}
    decided = plan(dependent(waits(), policy=policy), at("09:00:01"))

    assert ended(decided) == [
        ("waits", "skipped", "on extract: it has not succeeded yet, and one in the last 1h counts")
    ]


def test_all_of_several_must_hold_and_the_first_that_gives_up_decides() -> None:
    """S1-042."""
    policy = ["extract", {"job": "prices", "within": "1h", "deadline": "20m"}]
    seen = dependent(waits(), policy=policy, known=extract(ran("completed", at("09:01"))))
    prices = Upstream("prices", "job_prices", "prices", watermark=NINE)
    assert seen.dependence is not None
    lacking = replace(seen, dependence=replace(seen.dependence, upstreams=(*seen.dependence.upstreams, prices)))
    fresh = replace(prices, last_success=success(at("09:10")))
    whole = replace(seen, dependence=replace(seen.dependence, upstreams=(*seen.dependence.upstreams, fresh)))

    assert (plan(lacking, at("09:11")).releases, plan(lacking, at("09:11")).wake_at) == ((), at("09:20"))
    assert plan(whole, at("09:11")).releases == ("waits",)
    assert [each.detail[:9] for each in plan(lacking, at("09:20")).endings] == ["on prices"]


def test_a_job_of_which_nothing_is_known_never_counts_as_successful() -> None:
    """S1-042: a snapshot without the facts lets nothing run."""
    seen = replace(dependent(waits()), dependence=None)
    assert (plan(seen, at("09:30")).releases, plan(seen, at("09:30")).wake_at) == ((), at("10:00"))


# ---------------------------------------------------------------------------------------------------------- the line


def test_what_people_ask_for_passes_by() -> None:
    """S1-042: a dependency holds the schedule and not people, unless it says so."""
    free = plan(dependent(waits(), requests=(trigger(),)), at("09:45"))
    policy = {"job": "extract", "requests": True, "within": "1h"}
    held = plan(dependent(requests=(trigger(),), policy=policy), at("09:45"))
    behind = plan(dependent(waits(), active("asked", at("09:10"), "queued", "trigger")), at("09:45"))

    assert created(free) == [(at("09:40"), "pending")]
    assert created(held) == [(at("09:40"), "queued")]
    assert behind.releases == ("asked",)


LONG = {"job": "extract", "deadline": "9h"}


@pytest.mark.parametrize(
    ("overlap", "creations", "endings"),
    [
        ("skip", [], []),
        ("queue", [(at("10:00"), "queued")], []),
        ("queue_latest", [(at("10:00"), "queued")], ["waits"]),
        ("cancel_running", [(at("10:00"), "queued")], ["waits"]),
        ("allow", [(at("10:00"), "queued")], []),
    ],
)
def test_it_counts_as_one_in_line(overlap: str, creations: list[Any], endings: list[str]) -> None:
    """S1-042, S0-102."""
    decided = plan(dependent(waits(), policy=LONG, overlap=overlap), at("10:00:01"))

    assert (created(decided), [each.id for each in decided.endings]) == (creations, endings)
    assert decided.cancels == ()
    if overlap == "skip":
        assert [(str(each.why), each.detail) for each in decided.spans] == [("overlap", "behind waits")]


@pytest.mark.parametrize(("overlap", "released"), [("queue", ()), ("allow", ("next",))])
def test_the_line_keeps_its_order_where_one_runs_at_a_time(overlap: str, released: tuple[str, ...]) -> None:
    """S1-042: the second has what it depends on, and the first has not."""
    second = waits("next", at("10:00"))
    met = UpstreamRun(at("10:00"), at("10:10"), status=OccurrenceStatus.COMPLETED)
    known = extract(ran("failed"), met, watermark=at("10:00"))

    seen = dependent(waits(), second, known=known, policy=LONG, overlap=overlap)

    decided = plan(replace(seen, watermark=at("10:00")), at("10:30"))

    assert decided.releases == released
    assert decided.wake_at == at("11:00")


def test_cancel_running_stops_what_runs_only_when_its_successor_can_start() -> None:
    """S1-042."""
    runs = active("runs", at("08:00"))
    early = plan(dependent(waits(), policy=LONG, overlap="cancel_running", busy=(runs,)), at("09:30"))
    known = extract(ran("completed", at("09:29")))
    ready = plan(dependent(waits(), known=known, policy=LONG, overlap="cancel_running", busy=(runs,)), at("09:30"))

    assert (early.cancels, early.releases) == ((), ())
    assert (ready.cancels, ready.releases) == (("runs",), ())


def test_what_has_all_it_needs_waits_for_room_and_not_until_the_deadline() -> None:
    """S1-042: it is not skipped because the job is busy."""
    runs, known = active("runs", at("08:00")), extract(ran("completed", at("09:10")))
    decided = plan(dependent(waits(), known=known, busy=(runs,), when="0 0 * * *"), at("12:00"))

    assert (decided.releases, decided.endings, decided.wake_at) == ((), (), at("1 00:00"))


def test_a_pause_keeps_it_where_it_is() -> None:
    seen = dependent(waits(), known=extract(ran("completed", at("09:10"))), pauses=(PausedSpan(at("09:05")),))
    decided = plan(seen, at("12:00"))
    assert (decided.releases, decided.endings) == ((), ())


def test_late_instants_are_put_in_line_in_one_plan() -> None:
    """S1-042: a catch-up of many is not one plan for each."""
    made = job("0 * * * *", depends_on="extract", recovery="execute_all")
    seen = snapshot_of(made, at("05:00"), dependence=Dependence((extract(),)))
    decided = plan(seen, at("09:30"))

    assert created(decided) == [(at(f"0{hour}:00"), "queued") for hour in range(6, 10)]
    assert decided.watermark == at("09:30")


# ------------------------------------------------------------------------------------------- the one that is needed


@pytest.mark.parametrize("policies", [{}, {"enabled": False}])
def test_the_plan_of_a_job_that_others_need_tells_them_and_awaits_its_ends(policies: dict[str, Any]) -> None:
    """S1-042."""
    seen = snapshot_of(job(**policies), at("09:10"), is_needed=True)
    decided = plan(seen, at("09:30"))
    plain = plan(replace(seen, is_needed=False), at("09:30"))

    assert (decided.tells, decided.awaits_ends) == (True, True)
    assert (plain.tells, plain.awaits_ends) == (False, False)
    assert replace(decided, tells=False, awaits_ends=False) == plain


@pytest.mark.parametrize(("awaited", "wake_at"), [(False, at("09:30")), (True, at("10:00"))])
def test_an_end_that_did_not_wake_it_is_not_slept_through(awaited: bool, wake_at: datetime) -> None:
    """S1-042, decision 10: a run began before another job depended on its job."""
    runs = active("runs", at("09:00"))
    seen = snapshot_of(job(), at("09:10"), active=(runs,), is_needed=True, awaited=awaited)
    assert plan(seen, at("09:30")).wake_at == wake_at


@pytest.mark.parametrize("is_later", [True, False])
def test_the_version_in_force_says_what_is_waited_for(is_later: bool) -> None:
    """An edit may lie ahead of a plan: a clock was set back, or the plan is of an earlier moment."""
    seen = dependent()
    [depending] = seen.editions
    plain = job("0 * * * *")
    first, second = (plain, depending.job) if is_later else (depending.job, plain)
    editions = Edition(first), Edition(replace(second, version=2), at("10:20"))
    decided = plan(replace(seen, editions=editions), at("10:00:01"))

    assert created(decided) == [(at("10:00"), "pending" if is_later else "queued")]
    if is_later:
        assert decided.wake_at == at("10:20"), "the planner looks again when the edit is in force"


def test_what_waits_for_a_job_of_the_old_version_alone_is_released_by_the_new_one() -> None:
    seen = dependent(waits())
    [depending] = seen.editions
    editions = depending, Edition(replace(job("0 * * * *"), version=2), at("09:20"))
    before, after = (plan(replace(seen, editions=editions), at(when)) for when in ("09:10", "09:21"))

    assert (before.releases, before.wake_at) == ((), at("09:20"))
    assert after.releases == ("waits",)
