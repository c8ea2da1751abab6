"""A node asks for one notice per outage of a job and one at its recovery, on every store."""

from datetime import timedelta
from typing import Any

from everytick.deciding.notices import notice_job
from everytick.domain.changes import Put
from everytick.domain.facts import Cancel
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.notices import OWNER, NoticeKind
from everytick.domain.occurrence import Occurrence
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import StoreUnavailable
from everytick.runners.context import Context
from everytick.schedules.interval import every
from everytick.sources.drafting import edited
from everytick.stores.base import Receipt
from everytick.stores.memory import MemoryStore
from tests.stores.acting import put
from tests.unit.node.conftest import Live
from tests.unit.node.test_outage import LOCAL, MINUTELY, laid
from tests.unit.node.worlds import NOON, World, living, passing, pause

HOOK = {"webhook": {"url": "https://example.org/hook"}}


class Receivers:
    """Stands for the receivers of a job's notices: keeps the events that they are sent."""

    def __init__(self, world: World, job: Job) -> None:
        self.events: list[dict[str, Any]] = []
        for kind in NoticeKind:
            sender = notice_job(job, kind)
            if sender is not None:
                world.functions[sender.id] = dict.fromkeys((task.name for task in sender.tasks), self._receive)

    async def _receive(self, context: Context) -> None:
        self.events.append(context.payload)

    @property
    def told(self) -> list[str]:
        return [event["type"].removeprefix("io.everytick.occurrence.").removesuffix(".v1") for event in self.events]


async def _failing(world: World, outcomes: list[bool], **policies: Any) -> Job:
    """Define a job whose runs end as the list says, each taking one away."""

    async def body() -> None:
        if not outcomes.pop(0):
            raise ValueError("boom")

    return await world.define("nightly", body, **({"on_failure": HOOK, "on_recovery": HOOK} | policies))


async def _run(world: World, job: Job, *keys: str) -> list[Occurrence]:
    return [await world.ended(await world.trigger(job, key)) for key in keys]


async def _sent(world: World, job: Job, kind: NoticeKind) -> list[Occurrence]:
    """Return the runs of the job that sends this kind of notice, oldest first."""
    sender = notice_job(job, kind)
    assert sender is not None
    return await world.history(sender)


def test_every_success_of_a_run_of_its_own_time_is_told_to_on_success(live: Live) -> None:
    """A18: a check that waits for signs of life hears of each; a run of a past instant is no sign of today."""

    async def story(world: World) -> None:
        job = await _failing(world, [True, False, True, True, True], on_failure=None, on_success=HOOK)
        receivers = Receivers(world, job)
        node = world.node()
        await node.start()
        for key in "abcd":
            await _run(world, job, key)
        past = (await world.history(job))[0].scheduled_for - timedelta(days=1)
        await world.ended(await world.trigger(job, "past", scheduled_for=past))
        await pause("1s")
        assert receivers.told.count("succeeded") == 3
        assert receivers.told.count("recovered") == 1
        [first, *_] = [event for event in receivers.events if event["type"].endswith("succeeded.v1")]
        assert first["id"] == f"{first['data']['occurrence_id']}.succeeded"
        assert (first["data"]["job"], first["data"]["status"]) == ("nightly", "completed")
        await node.stop()

    live(story)


def test_one_notice_per_outage_and_one_at_recovery(live: Live) -> None:
    """A18: failed, failed, well, well, failed: told of the first, the third and the fifth."""

    async def story(world: World) -> None:
        job = await _failing(world, [True, False, False, True, True, False])
        receivers = Receivers(world, job)
        node = world.node()
        await node.start()
        for key in "abcdef":
            await _run(world, job, key)
            await pause("1s")
        assert receivers.told == ["failed", "recovered", "failed"]
        first = receivers.events[0]
        [_, failed, *_] = await world.history(job)
        assert (first["specversion"], first["subject"], first["id"]) == ("1.0", "nightly", f"{failed.id}.failed")
        assert first["data"]["occurrence_id"] == failed.id
        assert "boom" in first["data"]["error"]
        [task] = first["data"]["failed_tasks"]
        assert (task["task"], task["status"], task["attempts"]) == ("a", "failed", 1)
        assert receivers.events[1]["data"]["failed_tasks"] == []
        assert await world.store.reports(node.scope.current, 10) == []
        await node.stop()

    live(story)


def test_the_job_that_sends_notices_is_kept_like_any_other(live: Live) -> None:
    """A18: it has an owner of its own, no instants, the queue of its job, and says who asked for its runs."""

    async def story(world: World) -> None:
        job = await _failing(world, [False])
        Receivers(world, job)
        node = world.node()
        await node.start()
        [failed] = await _run(world, job, "a")
        await pause("1s")
        [sent] = await _sent(world, job, NoticeKind.ON_FAILURE)
        [record] = [each for each in await world.store.list() if each.job.owner == OWNER]
        assert (record.job.name, record.next_run, record.wake_at) == ("nightly.on_failure", None, None)
        assert record.job.schedule.describe() == "when the job begins to fail"
        assert sent.status is OccurrenceStatus.COMPLETED
        assert failed.id in (sent.reason or "")
        await node.stop()

    live(story)


def test_a_notice_that_was_owed_by_a_node_that_is_gone_is_asked_for_by_the_next(live: Live) -> None:
    """A18: the failure is written, the node is gone before it asks for the notice; another one asks."""

    async def story(world: World) -> None:
        job = await _failing(world, [False])
        receivers = Receivers(world, job)
        first = world.node()
        first.reporter._notifier = None  # it dies before it gets there
        await first.start()
        await _run(world, job, "a")
        await first.stop()
        assert receivers.told == []
        second = world.node()
        await second.start()
        await pause("5s")
        assert receivers.told == ["failed"]
        await second.stop()

    live(story)


def test_a_lost_node_is_a_failure_that_is_told_of(live: Live) -> None:
    """A18, S0-074: what the reaper ends as failed_stale begins an outage too."""

    async def story(world: World) -> None:
        async def body() -> None:
            await passing(3600)

        job = await world.define("nightly", body, on_failure=HOOK)
        receivers = Receivers(world, job)
        silent = world.node()
        await silent.start()
        asked = await world.trigger(job)
        await pause("2s")
        other = world.node()
        await other.start()
        await silent._beat.stop()
        await silent._loops.end("bell", "planner", "reaper", "janitor", "reports", "unknown", "claims", "writer")
        assert (await world.ended(asked)).status is OccurrenceStatus.FAILED_STALE
        await pause("31s")
        assert receivers.told == ["failed"]
        await other.stop()

    live(story)


def test_skipped_and_canceled_runs_neither_begin_nor_end_an_outage(live: Live) -> None:
    """A18: between two failures they change nothing."""

    async def story(world: World) -> None:
        job = await _failing(world, [False, False])
        receivers = Receivers(world, job)
        node = world.node()
        await node.start()
        await _run(world, job, "a")
        await world.store.apply([Put(edited(job, None, {"queue": "elsewhere"}))])
        canceled = await world.trigger(job, "b")
        await pause("1s")
        await world.store.request(canceled, Cancel())
        assert (await world.ended(canceled)).status is OccurrenceStatus.CANCELED
        await world.store.apply([Put(edited(job, None, {"queue": "default"}))])
        await _run(world, job, "c")
        await pause("31s")
        assert receivers.told == ["failed"]
        await node.stop()

    live(story)


def test_the_newest_definition_says_who_is_told(live: Live) -> None:
    """A18: a corrected receiver counts from the next notice on, without a restart."""

    async def story(world: World) -> None:
        job = await _failing(world, [False, True, False])
        Receivers(world, job)
        node = world.node()
        await node.start()
        await _run(world, job, "a", "b")
        await pause("1s")
        newer = edited(job, None, {"on_failure": [HOOK, {"ping": "https://example.org/check"}], "on_recovery": None})
        receivers = Receivers(world, newer)
        await put(world.store, newer)
        await _run(world, job, "c")
        await pause("1s")
        assert receivers.told == ["failed", "failed"], "one by the webhook, one by the ping"
        [record] = [each for each in await world.store.list() if each.job.name == "nightly.on_failure"]
        assert [task.name for task in record.job.tasks] == ["webhook", "ping"]
        await node.stop()

    live(story)


def test_notices_are_muted_by_disabling_the_job_that_sends_them(live: Live) -> None:
    """A18: it stays disabled although the next outage comes to it, and the report counts as delivered."""

    async def story(world: World) -> None:
        job = await _failing(world, [False, True, False], on_recovery=None)
        receivers = Receivers(world, job)
        node = world.node()
        await node.start()
        await _run(world, job, "a", "b")
        await pause("1s")
        [sender] = [each.job for each in await world.store.list() if each.job.owner == OWNER]
        await put(world.store, edited(sender, None, {"enabled": False}))
        await _run(world, job, "c")
        await pause("1s")
        assert receivers.told == ["failed"]
        assert await world.store.reports(node.scope.current, 10) == []
        await node.stop()

    live(story)


def test_a_hook_elsewhere_keeps_the_report_for_the_node_that_has_it(live: Live) -> None:
    """A18, S0-033: a node without the job's on_complete leaves the report to the one with it."""

    async def story(world: World) -> None:
        async def body() -> None:
            raise ValueError("boom")

        reports: list[object] = []
        policies = {"on_failure": HOOK}
        tasks = [define_task("told", "a")]
        job = define_job("told", every("P1Y", start=NOON), policies=policies, tasks=tasks, reports=True)
        world.functions[job.id] = {"a": body}
        receivers = Receivers(world, job)
        await put(world.store, job)
        without = world.node()
        await without.start()
        await _run(world, job, "a")
        await pause("31s")
        assert (reports, receivers.told) == ([], [])
        await without.stop()
        world.hooks[job.id] = {"on_complete": reports.append}
        node = world.node()
        await node.start()
        await pause("31s")
        assert (len(reports), receivers.told) == (1, ["failed"])
        await node.stop()

    live(story)


class Away(MemoryStore):
    """A store that does not answer when it is first asked for a run of a job that sends notices."""

    refused = 0

    async def request(self, subject: str, fact: Any, within: Any = None) -> Receipt:
        if getattr(fact, "by", "") == OWNER and not self.refused:
            self.refused += 1
            raise StoreUnavailable("the store", "cut off")
        return await super().request(subject, fact, within)


def test_a_notice_that_the_store_did_not_hear_of_is_asked_for_again() -> None:
    """A18: the report is marked only once the notice is asked for."""

    async def story(world: World) -> None:
        job = await _failing(world, [False])
        receivers = Receivers(world, job)
        node = world.node()
        await node.start()
        await _run(world, job, "a")
        await pause("1m")
        assert (world.store.refused, receivers.told) == (1, ["failed"])
        await node.stop()

    living(story, Away)


class Full(MemoryStore):
    """Answers questions, and takes no notice for a minute; after a thousand tries it takes them all the same."""

    tries = 0

    async def request(self, subject: str, fact: Any, within: Any = None) -> Receipt:
        if getattr(fact, "by", "") == OWNER:
            self.tries += 1
            if self.tries < 1_000 and await self.now() < NOON + timedelta(minutes=1):
                raise StoreUnavailable("the store", "the disk is full")
        return await super().request(subject, fact, within)


def test_a_store_that_takes_no_notice_is_not_asked_all_the_time() -> None:
    """The reporter asked again at once, as often as the store could answer."""

    async def story(world: World) -> None:
        job = await _failing(world, [False])
        receivers = Receivers(world, job)
        node = world.node()
        await node.start()
        await _run(world, job, "a")
        await pause("2m")
        assert receivers.told == ["failed"]
        assert 10 < world.store.tries < 100
        await node.stop()

    living(story, Full)


def test_runs_of_past_instants_are_judged_among_themselves(live: Live) -> None:
    """A18: one replay fails and one succeeds while the job runs well; its own row knows nothing of them."""

    async def story(world: World) -> None:
        job = await _failing(world, [*[True] * 60, False, False, True, False, True, False], on_failure=HOOK)
        receivers = Receivers(world, job)
        node = world.node()
        await node.start()
        for number in range(60):
            await _run(world, job, str(number))
        past = (await world.history(job))[0].scheduled_for - timedelta(days=1)

        async def rerun(hours: int) -> None:
            at = past + hours * timedelta(hours=1)
            await world.ended(await world.trigger(job, f"past {hours}", scheduled_for=at))
            await pause("1s")

        await rerun(0)
        await rerun(1)
        await _run(world, job, "well as before")
        await pause("1s")
        assert receivers.told == ["failed"]
        await _run(world, job, "fails now")
        await pause("1s")
        assert receivers.told == ["failed", "failed"]
        await rerun(2)
        assert receivers.told == ["failed", "failed", "recovered"]
        await _run(world, job, "fails still")
        await pause("1s")
        assert receivers.told == ["failed", "failed", "recovered"]
        await node.stop()

    live(story)


def test_a_run_that_failed_while_the_store_was_away_is_told_of_once_it_is_back(live: Live) -> None:
    """A18, C-28: what was fired locally owes its report to the store, which has the history."""

    async def story(world: World) -> None:
        line = laid(world)
        job = await _failing(world, [True, False, False, True, True], **LOCAL)
        await put(world.store, edited(job, MINUTELY, {}))
        receivers = Receivers(world, job)
        node = world.node()
        await node.start()
        await pause("1m30s")
        line.is_away = True
        await pause("2m")
        assert receivers.told == []
        line.is_away = False
        await pause("1m30s")
        assert receivers.told == ["failed", "recovered"]
        await node.stop()

    live(story)
