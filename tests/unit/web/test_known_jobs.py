"""What pages know of all jobs: read once for all of them, never old where it matters, and few questions to a page."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from everytick import Everytick, every
from everytick.domain.snapshots import Ended
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.memory import MemoryStore
from everytick.testing import ManualClock
from everytick.web.asgi import Service
from everytick.web.known_jobs import KnownJobs, end_in_doubt, trouble_of
from tests.unit.web.conftest import client_of

MOST_QUESTIONS = 8
"""The design allows a page so many."""

PAGES = (
    "/",
    "/?w=3d",
    "/jobs",
    "/jobs?q=orders",
    "/history",
    "/history?job=orders",
    "/agenda",
    "/nodes",
    "/files",
    "/audit",
    "/lab",
    "/jobs/orders",
    "/jobs/promised",
    "/year",
    "/year?job=orders",
    "/api/jobs",
    "/api/schedules",
    "/api/occurrences",
    "/api/jobs/orders",
    "/api/jobs/promised",
)


class Counted:
    """Passes everything on to a store, and writes down which verbs were asked."""

    def __init__(self, store: MemoryStore) -> None:
        self._store, self.questions = store, list[str]()
        self.lists: asyncio.Queue[str] = asyncio.Queue()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not asyncio.iscoroutinefunction(found):
            return found

        async def asking(*given: Any, **more: Any) -> Any:
            # The time is no question about the fleet, and comes with another answer where a server is asked.
            self.questions += [name] if name != "now" else []
            if name == "list":
                self.lists.put_nowait(name)
            return await found(*given, **more)

        return asking


@pytest.fixture
def store() -> Counted:
    return Counted(MemoryStore(ManualClock("2026-10-23T12:07:00Z")))


@pytest.fixture
async def tick(store: Counted) -> AsyncIterator[Everytick]:
    """An application with two jobs."""
    made = Everytick(store, name="shop")

    @made.job(every("1h"))
    def orders() -> None: ...

    @made.job(every("1d"))
    def nightly() -> None: ...

    promised = made.define("promised", every("1h"), success_within="3h")
    promised.command("first", "true")
    promised.command("second", "true", after=["first"])

    await made.sync()
    store.questions.clear()
    store.lists = asyncio.Queue()
    yield made
    await made.close()


def dear(tick: Everytick) -> Service:
    """Return a service to which a list of jobs is dear, as one of ten thousand is."""
    service = tick.asgi()
    service.app.state.known_jobs._cheap = 0.0
    return service


async def test_pages_ask_few_questions_and_share_one_list_of_all_jobs(
    tick: Everytick, store: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ten thousand jobs, no page reads definitions that it does not show, but for the one list of all pages."""
    monkeypatch.setattr("everytick.web.known_jobs._LATEST_SECONDS", 600.0)
    monkeypatch.setattr("everytick.web.known_jobs._SOONEST_SECONDS", 600.0)
    asked: dict[str, list[str]] = {}
    async with client_of(tick, service=dear(tick)) as asking:
        for path in PAGES:
            assert (await asking.get(path)).status_code == 200
        assert store.questions.count("list") == 1
        for path in PAGES:
            store.questions.clear()
            await asking.get(path)
            asked[path] = list(store.questions)

    assert not [path for path, questions in asked.items() if "list" in questions]
    assert not {path: each for path, each in asked.items() if len(each) > MOST_QUESTIONS}


async def test_a_list_that_is_cheap_is_read_for_every_page(tick: Everytick, store: Counted) -> None:
    known = KnownJobs(tick, cheap=60.0)
    for _ in range(3):
        await known.listed()

    assert store.questions.count("list") == 3


async def test_what_is_changed_through_the_service_is_seen_by_the_next_page(
    tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everytick.web.known_jobs._LATEST_SECONDS", 600.0)
    monkeypatch.setattr("everytick.web.known_jobs._SOONEST_SECONDS", 600.0)
    async with client_of(tick, service=dear(tick)) as asking:
        before = (await asking.get("/jobs?state=paused")).text
        done = await asking.post("/api/jobs/nightly/pause", json={})
        after = (await asking.get("/jobs?state=paused")).text

    assert done.is_success, done.text
    assert ("/jobs/nightly" in before, "/jobs/nightly" in after) == (False, True)


async def test_a_list_that_was_asked_for_before_a_change_is_not_kept(tick: Everytick, store: Counted) -> None:
    known = KnownJobs(tick, cheap=0.0)
    early = asyncio.create_task(known.listed())
    await store.lists.get()
    known.forget()
    await early
    store.questions.clear()
    await known.listed()

    assert store.questions == ["list", "ask"]


async def test_readers_at_once_ask_once_and_one_who_leaves_ends_it_for_nobody(tick: Everytick, store: Counted) -> None:
    known = KnownJobs(tick, cheap=0.0)
    leaving, staying = asyncio.create_task(known.listed()), asyncio.create_task(known.listed())
    await asyncio.sleep(0)
    leaving.cancel()

    assert [*(await staying).ids] == ["nightly", "orders", "promised"]
    assert store.questions.count("list") == 1


async def test_the_list_is_read_again_behind_the_pages_while_people_look(
    tick: Everytick, store: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another process changes is seen within some seconds, and no page waits for it."""
    monkeypatch.setattr("everytick.web.known_jobs._SOONEST_SECONDS", 0.0)
    monkeypatch.setattr("everytick.web.known_jobs.KEEP_FACTOR", 0.0)
    known = KnownJobs(tick, cheap=0.0)
    await known.listed()
    async with asyncio.timeout(10):
        for _ in range(3):
            await store.lists.get()
    known.forget()


async def test_who_takes_the_jobs_at_hand_has_them_neither_read_nor_kept(tick: Everytick, store: Counted) -> None:
    """S0-107: a program that asks for metrics now and then must not have ten thousand jobs read again and again."""
    known = KnownJobs(tick, cheap=0.0)
    assert known.at_hand() is None
    listed = await known.listed()
    wanted_at = known._wanted_at

    assert known.at_hand() is listed
    assert (known._wanted_at, store.questions.count("list")) == (wanted_at, 1)
    known.forget()
    assert known.at_hand() is None


AT = ManualClock("2026-10-23T12:00:00Z").now
END, BEFORE = (Ended(at, at, at, name) for at, name in ((AT, "occ_last"), (AT - timedelta(hours=1), "occ_before")))
_S = OccurrenceStatus


@pytest.mark.parametrize(
    ("status", "success", "failed_at", "trouble"),
    [
        (_S.FAILED, BEFORE, AT, _S.FAILED),
        (_S.FAILED, BEFORE, AT + timedelta(hours=1), _S.FAILED),
        (_S.FAILED_STALE, BEFORE, None, _S.FAILED),
        (_S.FAILED_STALE, None, None, _S.FAILED),
        (_S.COMPLETED_WITH_ERRORS, END, AT, _S.COMPLETED_WITH_ERRORS),
        (_S.COMPLETED, END, AT, None),
        (None, END, AT - timedelta(hours=2), None),
        (_S.CANCELED, BEFORE, AT - timedelta(hours=2), None),
        (_S.CANCELED, BEFORE, AT - timedelta(minutes=2), _S.FAILED),
        (None, BEFORE, AT, _S.FAILED),
    ],
)
async def test_how_a_job_ended_last_is_judged_by_the_status_of_its_last_end(
    tick: Everytick,
    status: OccurrenceStatus | None,
    success: Ended | None,
    failed_at: datetime | None,
    trouble: OccurrenceStatus | None,
) -> None:
    """A lost node leaves no failed attempt, a run with errors counts as a success, and retention forgets ends."""
    record = replace(await tick.job("orders"), last_end=END, last_success=success, last_failure_at=failed_at)
    ends = {} if status is None else {END.id: status}

    assert trouble_of(record, ends) == trouble
    assert end_in_doubt(record) == (None if trouble is None and status is None else END.id)


async def test_schedules_of_very_many_jobs_are_one_list_sent_in_parts(
    tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1-021: the shape is the same, whatever the number."""
    async with client_of(tick) as asking:
        whole = (await asking.get("/api/schedules")).json()
        monkeypatch.setattr("everytick.web.known_jobs.JOBS_AT_ONCE", 2)
        monkeypatch.setattr("everytick.web.api.schedules.JOBS_AT_ONCE", 2)
        parts = await asking.get("/api/schedules")

    assert [each["name"] for each in whole] == ["nightly", "orders", "promised"]
    assert (parts.json(), parts.headers["content-type"]) == (whole, "application/json")
