"""An application with a folder of job files: watched from its start to its stop, mistakes told through its node."""

import asyncio
from collections.abc import Collection
from pathlib import Path

import pytest

from everytick import Everytick, every
from everytick.domain.nodes import NodeFacts
from everytick.errors import InvalidSetting, StoreUnavailable
from everytick.node.events import Event, Happening
from everytick.stores.addresses import store_of
from everytick.stores.base import ClaimKey, Orders

WITHIN = 60


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    (tmp_path / "jobs").mkdir()
    return tmp_path / "jobs"


def write(jobs: Path, name: str, more: str = "") -> None:
    """Write a file at once, as editors do: half of it would be a mistake of its own."""
    text = f'version: 1\njobs:\n  {name}: {{schedule: "0 0 1 1 *", command: "true"{more}}}\n'
    (jobs / ".half").write_text(text)
    (jobs / ".half").rename(jobs / f"{name}.yaml")


class Heard:
    """What an application tells of its files."""

    def __init__(self, tick: Everytick) -> None:
        self._told: asyncio.Queue[Event] = asyncio.Queue()
        tick.on_event(self._told.put_nowait)

    async def until(self, kind: Happening) -> Event:
        async with asyncio.timeout(WITHIN):
            while (event := await self._told.get()).kind is not kind:
                pass
            return event


async def names(tick: Everytick) -> list[str]:
    return [each.job.name for each in await tick.jobs()]


async def test_what_the_folder_holds_is_planned_from_the_start(jobs: Path) -> None:
    """S4-045: definitions are loaded before anything is planned; code and files stand side by side."""
    write(jobs, "nightly")
    tick = Everytick("memory://", name="shop", jobs=jobs)

    @tick.job(every("P1Y"))
    def hello() -> None: ...

    async with tick:
        assert await names(tick) == ["hello", "nightly"]
        assert [each.job.owner for each in await tick.jobs()] == ["code:shop", "file"]


async def test_jobs_of_files_that_cannot_or_will_not_run_are_warned_of_at_the_start(
    jobs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A9, B9: with what to write, before the first instant comes."""
    old = "  old: {schedule: 'once: 2020-01-01T00:00:00Z', command: [date]}"
    (jobs / "more.yaml").write_text(f"version: 1\njobs:\n  calls: {{schedule: '@yearly', call: 'os:getcwd'}}\n{old}\n")

    async with Everytick("memory://", jobs=jobs):
        pass

    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    advice = "calls of 'os' are not allowed here: write allow_calls = [\"os\"] into everytick.toml"
    assert f"job 'calls' cannot run on this node: task 'calls': {advice}; its runs wait for a node that can" in said
    assert any(text.startswith("job 'old' will not run: its schedule (once, at 2020-01-01") for text in said)


async def test_jobs_of_a_file_that_appears_later_and_cannot_run_are_warned_of_too(
    jobs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B9: the log of the running node is where an operator looks after saving a file."""
    tick = Everytick("memory://", jobs=jobs)
    heard = Heard(tick)
    async with tick:
        # Moved into the folder: a file that is written there may be seen while it is empty, and is broken then.
        whole = jobs.parent / "calls.yaml"
        whole.write_text("version: 1\njobs:\n  calls: {schedule: '@yearly', call: 'os:getcwd'}\n")
        whole.rename(jobs / "calls.yaml")
        # The broken file comes with the same look or a later one, and the event says that the look is over.
        (jobs / "broken.yaml").write_text("version: 1\njobs: 3\n")
        await heard.until(Happening.DEFINITION_BROKEN)

    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    advice = "calls of 'os' are not allowed here: write allow_calls = [\"os\"] into everytick.toml"
    assert f"job 'calls' cannot run on this node: task 'calls': {advice}; its runs wait for a node that can" in said


async def test_a_folder_that_is_not_there_is_refused_at_the_start(jobs: Path) -> None:
    with pytest.raises(InvalidSetting, match="is no folder: make it, or name another one"):
        async with Everytick("memory://", jobs=jobs / "gone"):
            pass


@pytest.mark.parametrize("given", [3, ""])
def test_what_is_no_path_is_refused_on_the_line_that_wrote_it(given: object) -> None:
    with pytest.raises(InvalidSetting, match="must be the path of a folder"):
        Everytick("memory://", jobs=given)  # type: ignore[arg-type]


async def test_a_broken_file_is_told_by_event_health_and_record_until_it_is_mended(jobs: Path) -> None:
    """Other processes read it from the node's record; meters from the node's health."""
    write(jobs, "nightly")
    tick = Everytick("memory://", jobs=jobs)
    heard = Heard(tick)
    async with tick:
        assert tick.node is not None
        assert tick.node.health.definition_errors == {}
        write(jobs, "nightly", more=", overlap: skp, recovery: none")
        told = await heard.until(Happening.DEFINITION_BROKEN)
        file = str(jobs / "nightly.yaml")
        assert told.text.startswith(f"{file}:3:")
        assert len(told.text.splitlines()) == 2
        assert tick.node.health.definition_errors == {file: 2}
        assert await names(tick) == ["nightly"]

        assert await broken_files(tick) == {file: told.text}
        [node] = await tick.nodes()
        assert node.facts is not None
        assert node.facts.stale_jobs == (("nightly", file),)

        write(jobs, "nightly", more=", overlap: skip")
        assert (await heard.until(Happening.DEFINITION_MENDED)).text == file
        assert tick.node.health.definition_errors == {}
        assert await broken_files(tick) == {}


async def broken_files(tick: Everytick) -> dict[str, str]:
    [node] = await tick.nodes()
    return {} if node.facts is None else dict(node.facts.broken_files)


async def test_a_file_that_is_broken_at_the_start_is_told_too_and_taken_back_at_the_end(jobs: Path) -> None:
    write(jobs, "nightly", more=", overlap: skp")
    tick = Everytick(store_of("memory://"), jobs=jobs)
    heard = Heard(tick)
    async with tick:
        await heard.until(Happening.DEFINITION_BROKEN)
        assert tick.node is not None
        assert list(tick.node.health.definition_errors.values()) == [1]
        assert await names(tick) == []
        assert len(await broken_files(tick)) == 1
    assert await broken_files(tick) == {}


async def test_a_store_that_is_away_for_a_moment_does_not_keep_a_node_from_starting(jobs: Path) -> None:
    """What could not be told is told with the node's facts, once the store answers."""
    write(jobs, "nightly", more=", overlap: skp")
    store = store_of("memory://")
    beat, errors = store.beat, [StoreUnavailable("the store", "gone fishing")]

    async def sometimes(node: str, keys: Collection[ClaimKey], facts: NodeFacts | None = None) -> Orders:
        if facts is not None and facts.broken_files and errors:
            raise errors.pop()
        return await beat(node, keys, facts)

    store.beat = sometimes  # type: ignore[method-assign]
    async with Everytick(store, jobs=jobs) as tick:
        assert errors == []
        assert tick.node is not None
        await tick.node.register()
        assert len(await broken_files(tick)) == 1


async def test_a_stopped_application_watches_no_longer_and_may_be_started_again(jobs: Path) -> None:
    tick = Everytick(store_of("memory://"), jobs=jobs)
    async with tick:
        task = next(each for each in asyncio.all_tasks() if each.get_name() == "everytick-files")
    assert task.done()
    write(jobs, "nightly")
    assert await names(tick) == []

    async with tick:
        assert await names(tick) == ["nightly"]


async def test_two_folders_on_one_store_keep_to_their_owners(jobs: Path, tmp_path: Path) -> None:
    """C-21: what is not in a folder is gone only if it belongs to the folder's owner."""
    store, other = store_of("memory://"), tmp_path / "other"
    other.mkdir()
    write(jobs, "a")
    write(other, "b")
    async with Everytick(store, jobs=jobs), Everytick(store, jobs=other, jobs_owner="second") as tick:
        assert [(each.job.name, each.job.owner) for each in await tick.jobs()] == [("a", "file"), ("b", "second")]
