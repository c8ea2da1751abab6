"""apply: definitions, suspensions and removals in one transaction."""

from dataclasses import replace
from datetime import timedelta

import pytest

from everytick.domain.changes import Edit, Put, Remove, Rename, Tell
from everytick.domain.facts import Pause, Resume, Trigger
from everytick.domain.payload import payload
from everytick.domain.snapshots import Missed
from everytick.errors import JobDisabled, NotFound, OccurrenceExists, TooManyEditions, VersionConflict
from everytick.stores.base import Stored
from tests.stores.acting import AnyStore, job, occurrences, plan_once, put, remove
from tests.stores.clock import ManualClock

SOON = timedelta(minutes=10)


def held(name: str, reason: str) -> Tell:
    """Hold a job's schedule as a file does that suspends it."""
    return Tell(name, Pause(None, Missed.CATCH_UP, reason, "file"))


async def test_everything_that_is_said_is_done_at_one_moment(store: AnyStore, clock: ManualClock) -> None:
    """C-21, S4-009: new, changed, suspended, resumed and removed together."""
    for name in ("changed", "held", "gone"):
        await put(store, job(name))
    await store.request(job("held").id, Pause(missed=Missed.CATCH_UP, reason="wait", by="file"))
    clock.move(minutes=1)

    stored = await store.apply(
        [
            Remove("gone", SOON, 1),
            held("new", "not yet"),
            Put(job("new"), 0),
            Put(job("changed", when="30 * * * *"), 1),
            held("changed", "nor this"),
            Tell("held", Resume("file"), 1),
        ],
        "ada",
    )

    names = ("gone", 1), ("new", 1), ("new", 1), ("changed", 2), ("changed", 2), ("held", 1)
    assert stored == [Stored(job(name).id, version, changed=True) for name, version in names]
    records = {each.job.name: each for each in await store.list()}
    assert set(records) == {"new", "changed", "held"}
    assert records["held"].pause is None
    for name, reason in (("new", "not yet"), ("changed", "nor this")):
        pause = records[name].pause
        assert pause is not None
        assert (pause.since, pause.missed, pause.reason, pause.by) == (clock.time, Missed.CATCH_UP, reason, "file")
    gone = (await store.get([job("gone").id]))[job("gone").id]
    assert (gone.removed_at, gone.retire_at) == (clock.time, clock.time + SOON)


async def test_it_leaves_what_the_single_verbs_leave(store: AnyStore, clock: ManualClock) -> None:
    for name in ("one", "other"):
        await put(store, job(name, when="* * * * *"))
    clock.move(minutes=1)
    await plan_once(store)

    await store.request(job("one").id, Pause(missed=Missed.CATCH_UP, reason="r", by="file"))
    await store.apply([held("other", "r")])
    a, b = (await store.get([job("one").id, job("other").id])).values()
    assert (a.revision, a.wake_at, a.pause) == (b.revision, b.wake_at, b.pause)
    assert [str(each.status) for each in await occurrences(store)] == ["queued", "queued"]

    clock.move(minutes=1)
    await remove(store, job("one").id, retire_after=SOON)
    await store.apply([Remove("other", SOON)])
    a, b = (await store.get([job("one").id, job("other").id])).values()
    assert (a.revision, a.wake_at, a.removed_at, a.retire_at) == (b.revision, b.wake_at, b.removed_at, b.retire_at)


@pytest.mark.parametrize(
    ("expected", "found"),
    [({"new": 1}, 0), ({"there": 0}, 1), ({"there": 2}, 1), ({"gone": 1}, 0)],
)
async def test_a_job_that_was_edited_meanwhile_refuses_all_of_it(
    store: AnyStore, expected: dict[str, int], found: int
) -> None:
    await put(store, job("there"))
    await put(store, job("gone"))
    await remove(store, job("gone").id)
    before = await store.list()
    puts = [Put(job("fresh")), *(Put(job(name, when="1 1 * * *"), version) for name, version in expected.items())]

    with pytest.raises(VersionConflict) as refused:
        await store.apply(puts)

    assert refused.value.found == found
    assert await store.list() == before


@pytest.mark.parametrize("part", ["pause", "resume", "remove", "rename"])
async def test_what_is_refused_last_undoes_what_was_written_first(store: AnyStore, part: str) -> None:
    """Forced in the middle: the definitions and the first removal are written by then."""
    await put(store, job("there"))
    before = await store.list(), await store.get([job("fresh").id])
    parts: dict[str, list[Edit]] = {
        "pause": [held("fresh", ""), held("nobody", "")],
        "resume": [Tell("nobody", Resume())],
        "remove": [Remove("there", SOON), Remove("nobody", SOON)],
        "rename": [Rename("there", "elsewhere"), Rename("nobody", "somebody")],
    }

    with pytest.raises(NotFound, match="nobody"):
        await store.apply([Put(job("fresh")), *parts[part]])

    assert (await store.list(), await store.get([job("fresh").id])) == before


async def test_a_definition_with_too_many_versions_undoes_all(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job("worn"))
    for number in range(1, 16):
        clock.move(seconds=1)
        await put(store, job("worn", when=f"{number} * * * *"))
    before = await store.list()

    with pytest.raises(TooManyEditions):
        await store.apply([Put(job("new")), Put(job("worn", description="more")), Remove("worn", SOON)])

    assert await store.list() == before


async def test_what_was_removed_a_moment_ago_comes_back_where_it_was(store: AnyStore, clock: ManualClock) -> None:
    """C-22: it counts as not there, and keeps its watermark."""
    first = await put(store, job("back"))
    before = (await store.get([first.job_id]))[first.job_id].watermark
    await remove(store, first.job_id, retire_after=SOON)
    clock.move(minutes=5)

    [stored] = await store.apply([Put(job("back"), 0)])

    assert stored.job_id == first.job_id
    record = (await store.get([first.job_id]))[first.job_id]
    assert (record.removed_at, record.retire_at, record.watermark) == (None, None, before)


async def test_nothing_is_nothing(store: AnyStore) -> None:
    assert await store.apply([]) == []


async def test_a_job_is_told_before_it_is_removed_whatever_the_order_of_the_list(store: AnyStore) -> None:
    """Renames, definitions, pauses and removals are done in this order; the first that is refused is named."""
    await put(store, job("held"))
    stored = await store.apply([Remove("held", timedelta(0)), Tell("held", Pause(by="ada"))])
    assert [each.changed for each in stored] == [True, True]
    with pytest.raises(NotFound, match="'told'"):
        await store.apply([Remove("removed", timedelta(0)), Tell("told", Pause())])


async def test_a_run_is_asked_for_with_an_edit_or_not_at_all(store: AnyStore) -> None:
    """The request is written where the edit is, also of a job that the same transaction makes."""
    await put(store, job("edited"))
    edit, sender = Put(job("edited", when="30 * * * *"), 1), Put(job("sender", when="0 0 1 1 *"))
    asked = Tell("sender", Trigger("rollout 2", payload({"version": 2}), by="rollout"))

    stored = await store.apply([edit, sender, asked], "rollout")

    assert [each.changed for each in stored] == [True, True, True]
    await plan_once(store)
    [made] = await occurrences(store, stored[1].job_id)
    assert (str(made.cause), made.overrides.get("payload")) == ("trigger", payload({"version": 2}))
    with pytest.raises(VersionConflict):
        await store.apply([edit, sender, replace(asked, fact=Trigger("other"))], "rollout")
    again = await store.apply([sender, asked], "rollout")
    assert [each.changed for each in again] == [False, False], "the same key asks once"
    await plan_once(store)
    assert len(await occurrences(store, stored[1].job_id)) == 1


@pytest.mark.parametrize("refused", ["disabled", "taken"])
async def test_an_edit_whose_run_is_refused_is_not_made(store: AnyStore, refused: str) -> None:
    await put(store, job("edited"))
    sender = await put(store, job("sender", when="0 0 1 1 *"))
    await store.request(sender.job_id, Trigger("taken", payload(1)))
    if refused == "disabled":
        await put(store, job("sender", when="0 0 1 1 *", enabled=False))
    before = await store.list()
    changes: list[Edit] = [Put(job("edited", when="30 * * * *")), Tell("sender", Trigger("taken", payload(2)))]
    with pytest.raises(JobDisabled if refused == "disabled" else OccurrenceExists):
        await store.apply(changes, "rollout")
    assert await store.list() == before
