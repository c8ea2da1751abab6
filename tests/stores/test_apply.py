"""apply: definitions, suspensions and removals in one transaction."""

from datetime import timedelta

import pytest

from everytick.domain.facts import Pause
from everytick.domain.snapshots import Missed
from everytick.errors import NotFound, TooManyEditions, VersionConflict
from everytick.stores.base import Edits, Stored
from tests.stores.acting import AnyStore, job, occurrences, plan_once
from tests.stores.clock import ManualClock

SOON = timedelta(minutes=10)


async def test_everything_that_is_said_is_done_at_one_moment(store: AnyStore, clock: ManualClock) -> None:
    """C-21, S4-009: new, changed, suspended, resumed and removed together."""
    for name in ("changed", "held", "gone"):
        await store.put(job(name))
    await store.request(job("held").id, Pause(missed=Missed.CATCH_UP, reason="wait", by="file"))
    clock.move(minutes=1)

    stored = await store.apply(
        Edits(
            puts=(job("new"), job("changed", when="30 * * * *")),
            expected={"new": 0, "changed": 1, "held": 1, "gone": 1},
            suspends={"new": "not yet", "changed": "nor this"},
            held_by="file",
            resumes=frozenset({"held"}),
            removes={"gone": SOON},
        ),
        by="ada",
    )

    assert stored == [Stored(job("new").id, 1, changed=True), Stored(job("changed").id, 2, changed=True)]
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
        await store.put(job(name, when="* * * * *"))
    clock.move(minutes=1)
    await plan_once(store)

    await store.request(job("one").id, Pause(missed=Missed.CATCH_UP, reason="r", by="file"))
    await store.apply(Edits(suspends={"other": "r"}, held_by="file"))
    a, b = (await store.get([job("one").id, job("other").id])).values()
    assert (a.revision, a.wake_at, a.pause) == (b.revision, b.wake_at, b.pause)
    assert [str(each.status) for each in await occurrences(store)] == ["queued", "queued"]

    clock.move(minutes=1)
    await store.remove(job("one").id, retire_after=SOON)
    await store.apply(Edits(removes={"other": SOON}))
    a, b = (await store.get([job("one").id, job("other").id])).values()
    assert (a.revision, a.wake_at, a.removed_at, a.retire_at) == (b.revision, b.wake_at, b.removed_at, b.retire_at)


@pytest.mark.parametrize(
    ("expected", "found"),
    [({"new": 1}, 0), ({"there": 0}, 1), ({"there": 2}, 1), ({"gone": 1}, 0)],
)
async def test_a_job_that_was_edited_meanwhile_refuses_all_of_it(
    store: AnyStore, expected: dict[str, int], found: int
) -> None:
    await store.put(job("there"))
    await store.put(job("gone"))
    await store.remove(job("gone").id)
    before = await store.list()
    puts = (job("fresh"), *(job(name, when="1 1 * * *") for name in expected))

    with pytest.raises(VersionConflict) as refused:
        await store.apply(Edits(puts=puts, expected=expected))

    assert refused.value.found == found
    assert await store.list() == before


@pytest.mark.parametrize("part", ["suspends", "resumes", "removes"])
async def test_what_is_refused_last_undoes_what_was_written_first(store: AnyStore, part: str) -> None:
    """Forced in the middle: the definitions and the first removal are written by then."""
    await store.put(job("there"))
    before = await store.list(), await store.get([job("fresh").id])
    missing = {
        "suspends": Edits(puts=(job("fresh"),), suspends={"fresh": "", "nobody": ""}),
        "resumes": Edits(puts=(job("fresh"),), resumes=frozenset({"nobody"})),
        "removes": Edits(puts=(job("fresh"),), removes={"there": SOON, "nobody": SOON}),
    }[part]

    with pytest.raises(NotFound, match="nobody"):
        await store.apply(missing)

    assert (await store.list(), await store.get([job("fresh").id])) == before


async def test_a_definition_with_too_many_versions_undoes_all(store: AnyStore, clock: ManualClock) -> None:
    await store.put(job("worn"))
    for number in range(1, 16):
        clock.move(seconds=1)
        await store.put(job("worn", when=f"{number} * * * *"))
    before = await store.list()

    with pytest.raises(TooManyEditions):
        await store.apply(Edits(puts=(job("new"), job("worn", description="more")), removes={"worn": SOON}))

    assert await store.list() == before


async def test_what_was_removed_a_moment_ago_comes_back_where_it_was(store: AnyStore, clock: ManualClock) -> None:
    """C-22: it counts as not there, and keeps its watermark."""
    first = await store.put(job("back"))
    before = (await store.get([first.job_id]))[first.job_id].watermark
    await store.remove(first.job_id, retire_after=SOON)
    clock.move(minutes=5)

    [stored] = await store.apply(Edits(puts=(job("back"),), expected={"back": 0}))

    assert stored.job_id == first.job_id
    record = (await store.get([first.job_id]))[first.job_id]
    assert (record.removed_at, record.retire_at, record.watermark) == (None, None, before)


async def test_nothing_is_nothing(store: AnyStore) -> None:
    assert await store.apply(Edits()) == []
