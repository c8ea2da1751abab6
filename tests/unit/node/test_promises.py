"""Nodes find broken promises, record each once and tell of it, whichever application the job belongs to (A18, A19)."""

from typing import Any, cast

from everytick.deciding.notices import notice_job
from everytick.domain.changes import Put
from everytick.domain.facts import Pause, PutBrake, Trigger
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.lookups import Breaches, Promises
from everytick.domain.notices import NoticeKind
from everytick.node.events import Event
from everytick.schedules.interval import every
from everytick.sources.drafting import edited
from tests.stores.acting import put
from tests.unit.node.conftest import Live
from tests.unit.node.test_notices import HOOK, Receivers
from tests.unit.node.worlds import NOON, World, living, pause

ALL = Breaches()
TOLD = {"on_failure": HOOK, "on_recovery": HOOK}


async def _foreign(world: World, **policies: Any) -> Job:
    """Store a job of an application that no node here belongs to: it is neither planned nor run by them."""
    written = [define_task("nightly", "a")]
    job = define_job("nightly", every("2m", start=NOON), policies=policies, tasks=written, code="shop")
    await put(world.store, job)
    return job


def _told(receivers: Receivers) -> list[tuple[str, str]]:
    return [(event["data"]["status"], event["data"]["promise"]) for event in receivers.events]


def test_a_node_of_another_application_tells_of_a_breach_once(live: Live) -> None:
    """A18: the job's own nodes are dead. Three others live; they have neither its code nor its labels."""

    async def story(world: World) -> None:
        job = await _foreign(world, start_by="1m", **TOLD)
        receivers, events = Receivers(world, job), list[Event]()
        sender = notice_job(job, NoticeKind.ON_BREACH, "default")
        assert sender is not None
        assert sender.needs == ""
        nodes = [world.node() for _ in range(3)]
        for node in nodes:
            node.listeners.listen(events.append)
            await node.start()
        await pause("5m30s")

        [found] = await world.store.ask(ALL)
        assert (found.breach.count, found.breach.reason) == (2, "no node has planned it")
        assert _told(receivers) == [("broken", "start_by")]
        [event] = [each for each in events if each.kind == "promise_broken"]
        assert (event.job, event.scheduled_for, event.text) == ("nightly", found.breach.broken_for, event.text)
        assert event.text.startswith("start_by: the start for 2024-01-01T12:02:00+00:00 was promised by")
        told = receivers.events[0]
        assert (told["type"], told["time"]) == ("io.everytick.promise.broken.v1", "2024-01-01T12:03:00+00:00")
        assert (told["data"]["promised"], told["data"]["due_at"]) == ("1m", "2024-01-01T12:03:00+00:00")
        [record] = [each for each in await world.store.list() if each.job.name == "nightly.on_breach"]
        assert record.job.schedule.describe() == "when the job breaks a promise"
        for node in nodes:
            await node.stop()

    live(story)


def test_a_broken_promise_is_kept_again_and_both_are_told_once(live: Live) -> None:
    """A19: one notice when it is broken, one when it is kept again, and none in between."""

    async def story(world: World) -> None:
        seconds = [40.0, 40.0, 1.0, 1.0]

        async def body() -> None:
            await pause(f"{seconds.pop(0)}s")

        job = await world.define("nightly", body, every("1m", start=NOON), finish_by="20s", **TOLD)
        receivers, events = Receivers(world, job), list[Event]()
        node = world.node()
        node.listeners.listen(events.append)
        await node.start()
        await pause("3m50s")
        assert _told(receivers) == [("broken", "finish_by"), ("kept", "finish_by")]
        [found] = await world.store.ask(ALL)
        assert (found.breach.count, found.breach.ended_at is None) == (2, False)
        assert [each.kind for each in events if "promise" in each.kind] == ["promise_broken", "promise_kept"]
        assert not (await world.store.promises(node.scope.current, 10)).owed
        await node.stop()

    live(story)


def test_a_success_by_hand_ends_a_breach_of_success_within() -> None:
    async def story(world: World) -> None:
        async def body() -> None: ...

        job = await world.define("nightly", body, success_within="1h", on_breach=HOOK, on_recovery=HOOK)
        receivers = Receivers(world, job)
        node = world.node()
        await node.start()
        await pause("61m")
        assert _told(receivers) == [("broken", "success_within")]
        await world.ended((await world.store.request(job.id, Trigger("by hand"))).id)
        await pause("30s")
        assert _told(receivers) == [("broken", "success_within"), ("kept", "success_within")]
        await node.stop()

    living(story)


def test_a_breach_that_began_while_no_node_was_up_is_told_at_the_next_start() -> None:
    """A18: with its real times: by when it was promised, and when it was found."""

    async def story(world: World) -> None:
        job = await _foreign(world, start_by="1m", **TOLD)
        receivers = Receivers(world, job)
        await pause("1h")
        node = world.node()
        await node.start()
        await pause("20s")
        [found] = await world.store.ask(ALL)
        assert (found.breach.due_at.minute, found.breach.found_at.hour) == (3, 13)
        assert _told(receivers) == [("broken", "start_by")]
        await node.stop()

    living(story)


def test_a_notice_that_its_finder_did_not_ask_for_is_asked_for_by_another_node() -> None:
    """A18: the breach is written, and the node is gone before it has asked for the notice."""

    async def story(world: World) -> None:
        job = await _foreign(world, start_by="1m", **TOLD)
        receivers = Receivers(world, job)

        class Gone:
            async def tell_breach(self, *_: object) -> None:
                raise ConnectionError("the node is gone")

        first = world.node()
        await first.start()
        await pause("3m")
        first.promises._notifier = cast("Any", Gone())
        committed = world.store.commit_promises

        async def commit(judgements: Any, told: Any = ()) -> Any:
            return await committed(judgements) if judgements else []

        first.promises._store = _Committing(world.store, commit)
        await pause("30s")
        assert len(await world.store.ask(ALL)) == 1
        assert receivers.events == []
        await first.stop()
        second = world.node()
        await second.start()
        await pause("40s")
        assert _told(receivers) == [("broken", "start_by")]
        await second.stop()

    living(story)


class _Committing:
    """A store of which one verb is another one."""

    def __init__(self, store: Any, commit: Any) -> None:
        self._store, self.commit_promises = store, commit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_who_is_told_of_a_breach() -> None:
    """on_breach names them, else on_failure; `None` names no receiver."""

    async def story(world: World) -> None:
        job = await _foreign(world, start_by="1m", on_failure=HOOK)
        told = edited(job, None, {"on_breach": {"ping": "https://example.org/check"}})
        muted = edited(job, None, {"on_breach": None})
        senders = [notice_job(each, NoticeKind.ON_BREACH) for each in (job, told, muted)]
        assert [each and [task.name for task in each.tasks] for each in senders] == [["webhook"], ["ping"], None]
        await world.store.apply([Put(muted)])
        node = world.node()
        await node.start()
        await pause("4m")
        assert len(await world.store.ask(ALL)) == 1
        assert {each.job.name for each in await world.store.list()} == {"nightly"}
        await node.stop()

    living(story)


def test_a_paused_job_breaks_no_promise() -> None:
    async def story(world: World) -> None:
        job = await _foreign(world, start_by="1m", success_within="5m")
        await world.store.request(job.id, Pause())
        node = world.node()
        await node.start()
        await pause("1h")
        assert await world.store.ask(ALL) == []
        await node.stop()

    living(story)


def test_a_braked_job_breaks_no_promise() -> None:
    async def story(world: World) -> None:
        job = await _foreign(world, start_by="1m", success_within="5m")
        await world.store.request("all", PutBrake(reason="incident", by="ada"))
        node = world.node()
        await node.start()
        await pause("15m")
        assert await world.store.ask(ALL) == []
        assert {each.state.held_after for each in await world.store.ask(Promises([job.id]))} == {NOON}
        await node.stop()

    living(story)
