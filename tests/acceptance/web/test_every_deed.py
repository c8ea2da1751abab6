"""Every deed in a browser, with script and without: from the link on a page to what the store holds afterwards.

The list of deeds comes from the routes themselves, so that a new one cannot be forgotten.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from fastapi.routing import APIRoute
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page, expect

from everytick import Everytick, Handle, Rollout
from everytick.domain.people import CameBy, Doer
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import EverytickError, NeedsApproval, NotFound
from everytick.web import pages
from tests.acceptance.web import functions
from tests.acceptance.web.accessible import faults
from tests.acceptance.web.browsing import DESK, PHONE, Reader, served
from tests.acceptance.web.test_people_deeds import STORIES as PEOPLE_STORIES

FUNCTIONS = functions.__name__

ELSEWHERE = {
    "/signin": "test_signing_in",
    "/signout": "test_signing_in",
    "/welcome": "test_people_deeds",
}
"""What is sent before a person has signed in, and where that is tested."""

PARTS = 3
"""The deeds are done in so many parts: a test has two minutes, also on a busy machine."""


def far_daily() -> str:
    """Return a daily schedule whose next instant is half a day away: it does not pass while a form is filled."""
    return f"cron: 0 {_hour(12).hour} * * *"


class Scene:
    """One service with a node beside it, and a person with a browser, who has script and a desk or neither."""

    def __init__(self, tick: Everytick, reader: Reader, page: Page, url: str, *, script: bool) -> None:
        self.tick, self.reader, self.page, self.url, self.script = tick, reader, page, url, script
        self._numbers = count(1)

    async def job(self, function: str = "quiet", schedule: str = "", **more: Any) -> str:
        """Store a job of its own for one deed, and return its name."""
        made = self.tick.define(f"job-{next(self._numbers)}", schedule or far_daily(), owner="shop", **more)
        await self.tick.apply([made.call(f"{FUNCTIONS}:{function}")])
        return made.name

    async def open(self, path: str, *, on: str = "") -> None:
        """Open a deed: by its link on the page `on`, where it is a dialog if there is script, or by its address.

        Every person can read what has opened, and the console has no error.
        """
        await self.page.goto(self.url + (on or path).lstrip("/"))
        if on:
            await self.page.locator(f"main a[href*='{path}']").first.click()
            await expect(self.page.locator("dialog.deed[open]" if self.script else "main h1")).to_be_visible()
        assert await faults(self.page) == []
        assert self.reader.complaints == []

    async def send(self, button: str, **typed: object) -> None:
        """Fill the form and press its button."""
        form = self.page.locator("dialog.deed[open] form, main form[method=post]").last
        for name, said in typed.items():
            field = form.locator(f"[name='{name.replace('__', '.')}']")
            kind = await field.first.get_attribute("type")
            if said is True:
                await field.check()
            elif kind == "radio":
                await form.locator(f"[name='{name}'][value='{said}']").check()
            elif await field.evaluate("field => field.tagName") == "SELECT":
                await field.select_option(
                    index=said if isinstance(said, int) else None, value=said if isinstance(said, str) else None
                )
            else:
                await field.fill(str(said))
        await form.get_by_role("button", name=button, exact=True).click()

    async def told(self, text: str) -> None:
        """The next page says that it was done."""
        await expect(self.page.locator(".banner[role=status]")).to_contain_text(text)

    async def deed(self, job: str, name: str, button: str, told: str, **typed: object) -> None:
        """Do one deed to a job, from the page that lists its deeds."""
        await self.open(f"/jobs/{job}/do/{name}", on=f"jobs/{job}/do")
        await self.send(button, **typed)
        await self.told(told)

    async def record(self, job: str) -> Any:
        return await self.tick.job(job)

    async def failed(self) -> tuple[str, str]:
        """Return a job, and its occurrence that failed."""
        job = await self.job("bad")
        return job, (await (await self.tick.trigger(job)).wait("60s")).id

    async def running(self) -> tuple[str, Handle]:
        """Return a job, and a handle of its occurrence that has begun."""
        job = await self.job("long")
        handle = await self.tick.trigger(job)
        async for _ in self.tick.events():
            if (await self.tick.entry(handle.id)).occurrence.status is OccurrenceStatus.RUNNING:
                return job, handle
        raise AssertionError("the stream of events has ended")


Story = Callable[[Scene], Awaitable[None]]
STORIES: dict[str, Story] = {}
"""What is done, by the route that it is sent to."""


def of(route: str) -> Callable[[Story], Story]:
    """Register the story of one route."""

    def register(story: Story) -> Story:
        STORIES[route] = story
        return story

    return register


def _typed(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M}"


def _hour(hours: int) -> datetime:
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=hours)


# ------------------------------------------------------------------------------------------------------------ one job


@of("/jobs/{job:name}/do/trigger")
async def _trigger(scene: Scene) -> None:
    job = await scene.job()
    await scene.deed(job, "trigger", f"Trigger {job}", f"Triggered {job}.", reason="now")
    [found] = [each for each in await scene.tick.history(job) if each.cause == "trigger"]
    assert "now" in str(found.reason)


@of("/jobs/{job:name}/do/pause")
async def _pause(scene: Scene) -> None:
    job = await scene.job()
    await scene.deed(job, "pause", f"Pause {job}", f"Paused {job}.", missed="catch_up", reason="stocktaking")
    assert (await scene.record(job)).pause.reason == "stocktaking"


@of("/jobs/{job:name}/do/resume")
async def _resume(scene: Scene) -> None:
    job = await scene.job()
    await scene.tick.pause(job)
    await scene.deed(job, "resume", f"Resume {job}", f"Resumed {job}.")
    assert (await scene.record(job)).pause is None


@of("/jobs/{job:name}/do/skip")
async def _skip(scene: Scene) -> None:
    job = await scene.job()
    [first, second] = await scene.tick.next_runs(job, 2)
    await scene.deed(job, "skip", "Skip this run", job, at=1, reason="holiday")
    assert (await scene.tick.next_runs(job, 1)) == [second] != [first]


@of("/jobs/{job:name}/do/move")
async def _move(scene: Scene) -> None:
    job = await scene.job()
    [first] = await scene.tick.next_runs(job, 1)
    to = first + timedelta(minutes=7)
    await scene.deed(job, "move", "Move this run", job, at=1, to=_typed(to))
    assert [run.at for run in await scene.tick.upcoming(job, 1)] == [to.replace(second=0, microsecond=0)]


@of("/jobs/{job:name}/do/amend")
async def _amend(scene: Scene) -> None:
    job = "greet"
    await scene.deed(job, "amend", "Amend this run", job, at=1, p__whom="Ben")
    [run] = await scene.tick.upcoming(job, 1)
    assert run.mark == "amended"


@of("/jobs/{job:name}/do/add")
async def _add(scene: Scene) -> None:
    job = await scene.job()
    at = _hour(5) + timedelta(minutes=11)
    await scene.deed(job, "add", "Add this run", job, at=_typed(at))
    assert at in [run.at for run in await scene.tick.upcoming(job, 10) if run.is_asked_for]


@of("/jobs/{job:name}/do/undo")
async def _undo(scene: Scene) -> None:
    job = await scene.job()
    [first] = await scene.tick.next_runs(job, 1)
    await scene.tick.skip(job, first)
    await scene.deed(job, "undo", "Undo it", job, at=1)
    assert await scene.tick.next_runs(job, 1) == [first]


@of("/jobs/{job:name}/do/reschedule")
async def _reschedule(scene: Scene) -> None:
    job, at = await scene.job(), _hour(9) + timedelta(minutes=3)
    await scene.deed(job, "reschedule", "Set the next run", job, at=_typed(at))
    assert (await scene.tick.status(job)).next_run == at


@of("/jobs/{job:name}/do/rewind")
async def _rewind(scene: Scene) -> None:
    """As if it had been planned while the clock was nine hours ahead."""
    job = await scene.job()
    store: Any = await scene.tick._opened_unsigned()
    store._shared.tables.jobs[(await scene.record(job)).job.id].watermark += timedelta(hours=9)
    await scene.deed(job, "rewind", "Let it go on", f"{job} goes on from now.")
    assert (await scene.record(job)).watermark <= await scene.tick.now()


@of("/jobs/{job:name}/do/backfill")
async def _backfill(scene: Scene) -> None:
    job = await scene.job()
    await scene.deed(
        job, "backfill", f"Backfill {job}", job, after=_typed(_hour(-100)), through=_typed(_hour(-1)), as_of="now"
    )
    [made] = await scene.tick.backfills(job)
    assert made.order.after == _hour(-100)


# -------------------------------------------------------------------------------------------------------- definitions


@of("/jobs/{job:name}/do/enable")
async def _enable(scene: Scene) -> None:
    job = await scene.job()
    await scene.tick.disable(job)
    await scene.deed(job, "enable", f"Enable {job}", f"Enabled {job}.")
    assert (await scene.record(job)).job.enabled


@of("/jobs/{job:name}/do/disable")
async def _disable(scene: Scene) -> None:
    job = await scene.job()
    await scene.deed(job, "disable", f"Disable {job}", f"Disabled {job}.")
    assert not (await scene.record(job)).job.enabled


@of("/jobs/{job:name}/do/edit")
async def _edit(scene: Scene) -> None:
    """What follows from another schedule, and from policies, is shown before it can be stored."""
    job = await scene.job()
    await scene.open(f"/jobs/{job}/do/edit", on=f"jobs/{job}/do")
    await scene.send("Look again", schedule="every 3h")
    await expect(scene.page.locator("main .happens")).to_contain_text("Then: every 3 hours")
    assert (await scene.record(job)).job.version == 1
    await scene.send("Store it")
    await scene.told(f"{job} is at version 2")
    assert (await scene.record(job)).job.schedule.describe() == "every 3 hours, UTC"
    await scene.open(f"/jobs/{job}/do/edit", on=f"jobs/{job}/do")
    await scene.send("Look again", policies="priority=5\nqueue=slow")
    await expect(scene.page.locator("main .happens")).to_contain_text("default → slow")
    await scene.send("Store it")
    await scene.told("priority and queue")
    assert (await scene.record(job)).job.settings.priority == 5


@of("/jobs/{job:name}/do/rollback")
async def _rollback(scene: Scene) -> None:
    job = await scene.job()
    before = str((await scene.record(job)).job.schedule)
    await scene.tick.update(job, "every 2h")
    await scene.deed(job, "rollback", "Go back", f"{job} is at version 3, equal to 1.", version="1")
    assert str((await scene.record(job)).job.schedule) == before


@of("/jobs/{job:name}/do/rollout")
async def _rollout(scene: Scene) -> None:
    job = await scene.job()
    await scene.tick.update(job, "every 2h", policy=Rollout(0.5))
    await scene.deed(job, "rollout", "End it", f"The rollout of {job} is over", end="keep")
    assert await scene.tick.rollout(job) is None
    assert (await scene.record(job)).job.schedule.describe() == "every 2 hours, UTC"


@of("/jobs/{job:name}/do/rename")
async def _rename(scene: Scene) -> None:
    job = await scene.job()
    before = (await scene.record(job)).job.id
    await scene.deed(job, "rename", f"Rename {job}", f"{job} is named {job}-new now.", new=f"{job}-new")
    assert (await scene.record(f"{job}-new")).job.id == before


@of("/jobs/{job:name}/do/remove")
async def _remove(scene: Scene) -> None:
    job = await scene.job()
    await scene.deed(job, "remove", f"Remove {job}", f"Removed {job}.", typed_name=job)
    with pytest.raises(NotFound):
        await scene.record(job)


# ------------------------------------------------------------------------------- occurrences, backfills and proposals


@of("/occurrences/{id}/do/cancel")
async def _cancel(scene: Scene) -> None:
    _, handle = await scene.running()
    await scene.open(f"/occurrences/{handle.id}/do/cancel", on=f"occurrences/{handle.id}")
    await scene.send("Cancel it", reason="too long")
    await scene.told("ancel")
    assert (await handle.wait("60s")).status is OccurrenceStatus.CANCELED


@of("/occurrences/{id}/do/replay")
async def _replay(scene: Scene) -> None:
    job, failed = await scene.failed()
    await scene.open(f"/occurrences/{failed}/do/replay", on=f"occurrences/{failed}")
    await scene.send("Replay it", reason="mended")
    await scene.told("Asked for a replay")
    [again] = await scene.tick.history(job, cause="replay")
    assert again.replay_of == failed


async def _planned_backfill(scene: Scene, *, approve: bool) -> tuple[str, str]:
    job = await scene.job()
    made = await scene.tick.backfill(job, _hour(-4000), _hour(-1), as_of="now", rate=1, approve=approve, confirmed=True)
    assert made.id is not None
    return job, made.id


async def _backfill_deed(scene: Scene, name: str, button: str, status: str, *, approve: bool, paused: bool) -> None:
    """Steer a backfill, with script from the page of its job and without from History: both link to it."""
    job, id_ = await _planned_backfill(scene, approve=approve)
    if paused:
        await (await scene.tick.find_backfill(id_)).pause()
    await scene.open(f"/backfills/{id_}/do/{name}", on=f"jobs/{job}" if scene.script else f"history?job={job}")
    await scene.send(button)
    await scene.told("ackfill")
    assert (await (await scene.tick.find_backfill(id_)).progress()).status == status


@of("/backfills/{backfill}/do/approve")
async def _approve_backfill(scene: Scene) -> None:
    await _backfill_deed(scene, "approve", "Approve it", "running", approve=False, paused=False)


@of("/backfills/{backfill}/do/pause")
async def _pause_backfill(scene: Scene) -> None:
    await _backfill_deed(scene, "pause", "Pause it", "paused", approve=True, paused=False)


@of("/backfills/{backfill}/do/resume")
async def _resume_backfill(scene: Scene) -> None:
    await _backfill_deed(scene, "resume", "Resume it", "running", approve=True, paused=True)


@of("/backfills/{backfill}/do/cancel")
async def _cancel_backfill(scene: Scene) -> None:
    await _backfill_deed(scene, "cancel", "Cancel it", "canceled", approve=True, paused=False)


async def _proposed_removal(scene: Scene) -> tuple[str, str]:
    """Let another person ask for a removal that needs two."""
    job = await scene.job(protected="two_people")
    with scene.tick.acting_as(Doer("ann", CameBy.COMMAND)), pytest.raises(NeedsApproval):
        await scene.tick.remove(job, confirmed=True)
    [proposal] = [each for each in await scene.tick.proposals() if job in each.jobs]
    return job, proposal.id


@of("/proposals/{id}/do/approve")
async def _approve(scene: Scene) -> None:
    job, id_ = await _proposed_removal(scene)
    await scene.open(f"/proposals/{id_}/do/approve", on="jobs")
    await scene.send("Approve it")
    await scene.told("Approved: the removal")
    with pytest.raises(NotFound):
        await scene.record(job)


@of("/proposals/{id}/do/reject")
async def _reject(scene: Scene) -> None:
    job, id_ = await _proposed_removal(scene)
    await scene.open(f"/proposals/{id_}/do/reject", on="jobs")
    await scene.send("Refuse it")
    await scene.told("Refused: the removal")
    assert (await scene.record(job)).job.enabled
    assert id_ not in [each.id for each in await scene.tick.proposals()]


# ------------------------------------------------------------------------------------------------------- many at once


@of("/do/brake")
async def _brake(scene: Scene) -> None:
    await scene.open("/do/brake", on="do")
    await scene.send("Put the brake on", reach="tag:slow", reason="moving")
    await scene.told("The brake of tag:slow holds.")
    [held] = [each for each in (await scene.tick.limits()).reaches if each.reach.name == "tag:slow"]
    assert [brake.reason for brake in held.reach.brakes] == ["moving"]


@of("/do/release")
async def _release(scene: Scene) -> None:
    await scene.tick.brake("tag:held")
    await scene.open("/do/release", on="do")
    await scene.send("Release it", reach="tag:held", at_once=True)
    await scene.told("Released tag:held.")
    assert "tag:held" not in [each.reach.name for each in (await scene.tick.limits()).reaches if each.reach.brakes]


@of("/do/limit")
async def _limit(scene: Scene) -> None:
    await scene.open("/do/limit", on="do")
    await scene.send("Set the limit", reach="queue:mail", most="3")
    await scene.told("The limit of queue:mail holds.")
    [held] = [each for each in (await scene.tick.limits()).reaches if each.reach.name == "queue:mail"]
    assert held.reach.limit is not None
    assert held.reach.limit.most == 3


@of("/do/apply")
async def _apply(scene: Scene) -> None:
    """What a document makes is shown before it is stored."""
    document = f"version: 1\njobs:\n  from-a-page:\n    schedule: '@daily'\n    call: {FUNCTIONS}:quiet\n"
    await scene.open("/do/apply", on="do")
    await scene.send("Look again", document=document)
    await expect(scene.page.locator("main .happens")).to_contain_text("from-a-page is added")
    with pytest.raises(NotFound):
        await scene.record("from-a-page")
    await scene.send("Store them")
    await scene.told("Jobs stored: 1 added.")
    assert (await scene.record("from-a-page")).job.schedule.describe() == "at 00:00, UTC"


@of("/jobs/do/pause")
async def _pause_many(scene: Scene) -> None:
    jobs = [await scene.job(tags=["many"]) for _ in range(2)]
    await scene.open("/jobs/do/pause?tag=many")
    await scene.send("Pause 2 jobs")
    await scene.told("Paused 2 jobs.")
    assert all([(await scene.record(job)).pause is not None for job in jobs])


@of("/jobs/do/resume")
async def _resume_many(scene: Scene) -> None:
    jobs = [await scene.job(tags=["held"]) for _ in range(2)]
    for job in jobs:
        await scene.tick.pause(job)
    await scene.open("/jobs/do/resume?tag=held")
    await scene.send("Resume 2 jobs")
    await scene.told("Resumed 2 jobs.")
    assert all([(await scene.record(job)).pause is None for job in jobs])


@of("/history/do/replay")
async def _replay_many(scene: Scene) -> None:
    job, failed = await scene.failed()
    await scene.open(f"/history/do/replay?job={job}&status=failed")
    await scene.send("Replay 1 occurrence")
    await scene.told("Asked for 1 replay.")
    assert [each.replay_of for each in await scene.tick.history(job, cause="replay")] == [failed]


@of("/history/do/cancel")
async def _cancel_many(scene: Scene) -> None:
    job, handle = await scene.running()
    await scene.open(f"/history/do/cancel?job={job}&status=running")
    await scene.send("Cancel 1 occurrence")
    await scene.told("1 occurrence.")
    assert (await handle.wait("60s")).status is OccurrenceStatus.CANCELED


@of("/agenda/spread")
async def _spread(scene: Scene) -> None:
    crowd = [await scene.job(schedule=f"{far_daily()}; spread=1h; offset=0s") for _ in range(12)]
    await scene.open("/agenda/spread")
    await scene.page.get_by_role("button", name="Store ").click()
    await scene.told("schedule")
    stored = {str((await scene.record(job)).job.schedule) for job in crowd}
    assert len(stored) > 1


@of("/views")
async def _view(scene: Scene) -> None:
    await scene.open("/views?page=jobs&query=tag%3Dmany")
    await scene.send("Save this view", name="many")
    await scene.page.goto(f"{scene.url}jobs")
    await expect(scene.page.get_by_role("link", name="many", exact=True).first).to_be_visible()


# ------------------------------------------------------------------------------------------------------------ the tests


@asynccontextmanager
async def shop(reader: Reader, *, script: bool) -> AsyncIterator[Scene]:
    """Serve an application whose node runs beside it."""
    tick = Everytick("memory://", name="shop", poll="100ms", slots=10, allow_calls=[FUNCTIONS])
    tick.job(far_daily(), name="greet", owner="shop")(functions.greet)
    async with tick, served(tick) as url:
        page = await reader.open(
            url, script=script, width=DESK if script else PHONE, theme="light" if script else "dark"
        )
        yield Scene(tick, reader, page, url, script=script)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
async def test_every_deed_is_done_from_its_page(reader: Reader, script: bool, part: int) -> None:
    """S1-026 among them: a button to pause and one to resume, and the next run is set with one form."""
    async with shop(reader, script=script) as scene:
        wrong = {}
        for route in sorted(STORIES)[part::PARTS]:
            try:
                await STORIES[route](scene)
            except (AssertionError, EverytickError, PlaywrightError) as error:
                wrong[route] = str(error)
        await reader.leave()

    assert wrong == {}


def test_no_deed_is_forgotten() -> None:
    """A new deed needs a story here, or a word about where it is tested."""
    routes = [route for router in pages.ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    assert {route.path for route in routes if "POST" in (route.methods or ())} == {
        *STORIES,
        *PEOPLE_STORIES,
        *ELSEWHERE,
    }
