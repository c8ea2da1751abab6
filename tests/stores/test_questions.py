"""ask and fold: what pages ask, answered alike before, between and after what has ended is written behind."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everytick.domain.facts import Cancel, Pause, Resume, Trigger
from everytick.domain.headlines import fingerprint
from everytick.domain.lookups import Editions, MissedSpans, OccurrenceStatuses, Spans, SpansOfJobs
from everytick.domain.outcome import Failed, Outcome
from everytick.domain.questions import (
    CELLS_KEPT,
    Alike,
    Buckets,
    By,
    Counts,
    Coverage,
    Days,
    LastRuns,
    Lengths,
    Question,
    QuestionBatch,
    TimeWindow,
)
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.base import WholeRuns
from tests.stores.acting import (
    AnyStore,
    began,
    claim_one,
    deliver,
    ended,
    everything,
    job,
    occurrences,
    plan_once,
    put,
    put_all,
    remove,
)
from tests.stores.asking import HOUR, questions
from tests.stores.clock import START, ManualClock

_S = OccurrenceStatus
DAY = timedelta(days=1)
KEEP_LITTLE = {"success": "1h", "failure": "1h", "keep_last": 0}
MIDNIGHT = START.replace(hour=0)


async def run(store: AnyStore, clock: ManualClock, outcome: Outcome | None = None, minutes: int = 1) -> str:
    """Plan, claim what is ready, let it take its time, commit its end and return its id."""
    await plan_once(store)
    claim = await claim_one(store)
    step = began(claim, await store.now())
    clock.move(minutes=minutes)
    await store.commit_steps([(claim, ended(claim, step, await store.now(), outcome))])
    await plan_once(store)
    return claim.occurrence.id


async def hours(store: AnyStore, clock: ManualClock, errors: Sequence[str]) -> list[str]:
    """Let an hourly job run once for each of these errors; "" is no error. The first run takes a minute, and so on."""
    ids = []
    for minutes, error in enumerate(errors, 1):
        clock.time = clock.time.replace(minute=0) + HOUR
        ids.append(await run(store, clock, Failed(error) if error else None, minutes))
    return ids


async def answers(store: AnyStore, clock: ManualClock) -> list[Any]:
    ids = sorted({each.job_id for each in await occurrences(store)})
    return [await store.ask(question) for question in questions(clock.time, ids)]


async def fold_all(store: AnyStore) -> None:
    while await store.fold(2):
        pass


async def total(store: AnyStore, question: Question[Any]) -> int:
    return sum(each.tally.total for each in await store.ask(question))


async def test_an_answer_is_the_same_before_between_and_after_the_folds(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job("one", tags=["crm"], retry=None))
    await hours(store, clock, ["", "no row 7", "", "no row 12", ""])
    await put(store, job("two", "30 * * * *"))
    clock.move(hours=1)
    await plan_once(store)
    [waiting, *_] = await store.claim(await everything(store), 1)
    before = await answers(store, clock)
    while await store.fold(1):
        assert await answers(store, clock) == before
    assert await answers(store, clock) == before
    step = ended(waiting, began(waiting, clock.time), clock.time)
    await store.commit_steps([(waiting, step)])
    after = await answers(store, clock)
    assert after != before
    await fold_all(store)
    assert await answers(store, clock) == after


async def test_what_retention_deletes_stays_counted_by_day_and_band(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job("one", tags=["crm"], retention=KEEP_LITTLE))
    await hours(store, clock, ["", "boom", ""])
    await store.fold(2)
    days, steps = Days(stored.job_id, START.year), Buckets(MIDNIGHT, clock.time, HOUR, By.BAND)
    before = await store.ask(days), await store.ask(steps)
    assert [each.group for each in before[1]] == ["crm", "crm", "crm"]
    await deliver(store)
    clock.move(hours=3)
    assert await store.prune(1) == 1
    assert await store.prune() == 2
    assert (await store.ask(days), await store.ask(steps)) == before
    await fold_all(store)
    assert (await store.ask(days), await store.ask(steps)) == before
    assert before[0][0].took == timedelta(minutes=2), "the mean of one and three minutes"
    assert (await store.ask(Counts())).total == 0
    assert await store.ask(Alike(MIDNIGHT)) == ()
    assert await store.ask(Lengths()) == {}


async def test_a_purged_job_takes_its_days_along_and_leaves_its_band(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job("one", tags=["crm"]))
    await hours(store, clock, ["", "boom"])
    await store.fold(1)
    await store.request(stored.job_id, Trigger("more"))
    await plan_once(store)
    await remove(store, stored.job_id)
    await plan_once(store)
    ended_ones = Buckets(MIDNIGHT, clock.time, DAY, By.BAND)
    [day] = await store.ask(ended_ones)
    while not await store.purge(stored.job_id, 1):
        pass
    await fold_all(store)
    [left] = await store.ask(ended_ones)
    assert (left.group, left.tally.of(_S.COMPLETED, _S.FAILED)) == ("crm", day.tally.of(_S.COMPLETED, _S.FAILED))
    assert await store.ask(Days(stored.job_id, START.year)) == ()
    assert await store.ask(Alike(MIDNIGHT)) == ()
    again = await put(store, job("one", tags=["erp"]))
    assert await store.ask(Days(again.job_id, START.year)) == ()


async def test_a_band_is_that_of_the_definition_under_which_it_ran(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job("one", tags=["crm", "x"]))
    await hours(store, clock, [""])
    await put(store, job("one", queue="gpu"))
    await hours(store, clock, [""])
    await fold_all(store)
    found = await store.ask(Buckets(MIDNIGHT, clock.time, HOUR, By.BAND))
    assert [each.group for each in found] == ["crm", "code"], "the first tag, else the owner"
    assert [each.group for each in await store.ask(Buckets(MIDNIGHT, clock.time, HOUR))] == ["", ""]


async def test_steps_of_minutes_are_known_for_eight_days_and_days_for_good(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job("one"))
    await hours(store, clock, [""])
    await remove(store, (await occurrences(store))[0].job_id)
    await fold_all(store)
    minutes, days = (Buckets(START, START + DAY, step) for step in (HOUR, DAY))
    clock.time = START.replace(minute=30) + CELLS_KEPT
    assert (await total(store, minutes), await total(store, days)) == (1, 1)
    clock.move(hours=2)
    assert (await total(store, minutes), await total(store, days)) == (0, 1)
    clock.move(days=2)
    await put(store, job("two"))
    clock.time = clock.time.replace(minute=0) + HOUR
    await plan_once(store)
    await fold_all(store)
    assert (await total(store, minutes), await total(store, days)) == (0, 1)


async def test_failures_alike_are_found_by_their_end(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job("one", retry=None))
    ids = await hours(store, clock, ["no row 7", "boom", "no row 12"])
    for _ in range(2):
        kinds = await store.ask(Alike(START))
        assert [(each.headline, each.count, each.last_id) for each in kinds] == [
            ("no row 12", 2, ids[2]),
            ("boom", 1, ids[1]),
        ]
        assert kinds[0].job_ids == (stored.job_id,)
        [only] = await store.ask(Alike(START + 2 * HOUR, fingerprint("no row 1")))
        assert (only.count, only.first_at) == (1, only.last_at)
        assert await store.ask(Alike(clock.time)) == ()
        await fold_all(store)


@pytest.mark.parametrize("many", [False, True])
async def test_lengths_are_those_of_the_latest_runs(store: AnyStore, clock: ManualClock, many: bool) -> None:
    """Of more than a hundred jobs they are read as they were measured, which a fold does."""
    stored = await put(store, job("one"))
    await hours(store, clock, ["", "boom", ""])
    asked = Lengths((stored.job_id, *(f"job_{number}" for number in range(200 if many else 3))))
    while await store.fold():
        pass
    await store.fold()
    lengths = (await store.ask(asked))[stored.job_id]
    assert (lengths.count, lengths.p50, lengths.p95) == (2, timedelta(minutes=2), timedelta(minutes=2, seconds=54))


async def test_a_window_has_its_instants_and_what_is_held_since_before(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job("one", overlap="allow"))
    other = await put(store, job("other", "0 0 1 1 *"))
    ids = await hours(store, clock, ["", "no\nrow"])
    clock.move(hours=1)
    await plan_once(store)
    held = (await claim_one(store)).occurrence.id
    clock.move(hours=2)
    await plan_once(store)
    seen = await store.ask(TimeWindow(clock.time - HOUR, clock.time))
    assert [each.status for each in seen.runs] == [_S.PENDING, _S.RUNNING]
    assert (seen.runs[1].id, seen.runs[1].node, seen.is_cut) == (held, "node-1", False)
    assert await store.ask(TimeWindow(clock.time - HOUR, clock.time, 5_000, (stored.job_id,))) == seen
    assert (await store.ask(TimeWindow(clock.time - HOUR, clock.time, 5_000, (other.job_id,)))).runs == ()
    cut = await store.ask(TimeWindow(START, clock.time, 2))
    assert (len(cut.runs), cut.is_cut) == (2, True)
    last = await store.ask(LastRuns((stored.job_id, other.job_id), 50))
    assert [each.id for each in last[stored.job_id]][-2:] == ids[::-1]
    assert last[stored.job_id][-2].why == "no"
    assert other.job_id not in last


async def test_coverage_goes_on_behind_a_cut(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job("one"))
    ids = await hours(store, clock, ["", "", ""])
    first = await store.ask(Coverage(stored.job_id, START, clock.time, 2))
    assert ([each.id for each in first.runs], first.is_cut) == (ids[:2], True)
    rest = await store.ask(Coverage(stored.job_id, first.runs[-1].scheduled_for, clock.time, 2))
    assert ([each.id for each in rest.runs], rest.is_cut) == (ids[2:], False)
    assert rest.runs[0].through == rest.runs[0].scheduled_for


async def test_what_never_ran_is_counted_too(store: AnyStore, clock: ManualClock) -> None:
    stored = await put(store, job("one"))
    clock.move(hours=1)
    await plan_once(store)
    [made] = await occurrences(store)
    await store.fold()
    await store.request(made.id, Cancel("not today"))
    for _ in range(2):
        assert (await store.ask(Counts(stored.job_id))).counts == ((_S.CANCELED, 1),)
        [day] = await store.ask(Days(stored.job_id, START.year))
        assert (day.tally.counts, day.took) == (((_S.CANCELED, 1),), None)
        await fold_all(store)
    assert (await store.ask(Counts(stored.job_id, datetime(2020, 1, 1, tzinfo=UTC), START))).total == 0


async def test_several_questions_are_answered_in_their_order(store: AnyStore, clock: ManualClock) -> None:
    """A page asks for many things of one state of the store."""
    one = job()
    await put(store, one)
    ids = await hours(store, clock, ["", "boom"])
    questions_ = (Counts(), Lengths((one.id,)), Editions(one.id, (1,)), WholeRuns([*ids, "occ_none"]))

    assert await store.ask(QuestionBatch(questions_)) == tuple([await store.ask(each) for each in questions_])
    assert await store.ask(WholeRuns([*ids, "occ_none"])) == tuple([await store.whole(id_) for id_ in ids])
    assert await store.ask(QuestionBatch(())) == ()


async def test_spans_of_many_jobs_are_told_by_job(store: AnyStore, clock: ManualClock) -> None:
    paused, running = job("paused"), job("running")
    await put_all(store, [paused, running])
    await store.request(paused.id, Pause())
    clock.move(hours=3)
    await plan_once(store)
    await store.request(paused.id, Resume())
    await plan_once(store)
    asked = SpansOfJobs((paused.id, running.id, "job_none"), clock.time - 9 * HOUR, clock.time)

    assert await store.ask(asked) == {
        each.id: spans
        for each in (paused, running)
        if (spans := tuple(await store.ask(Spans(each.id, clock.time - 9 * HOUR, clock.time))))
    }
    assert paused.id in await store.ask(asked)
    assert await store.ask(SpansOfJobs((), clock.time - HOUR, clock.time)) == {}


async def test_jobs_are_listed_in_pages_by_name(store: AnyStore) -> None:
    """No caller has to hold ten thousand definitions; order is by code points, whatever the server's language."""
    names = ["B", "Zürich", "a", "a-b", "a/b", "ab", "é"]
    await put_all(store, [job(name) for name in reversed(names)])
    await remove(store, job("ab").id)
    first = await store.list(limit=3)
    second = await store.list(after=first[-1].job.name, limit=3)
    third = await store.list(after=second[-1].job.name, limit=3)

    assert [each.job.name for each in first] == ["B", "Zürich", "a"]
    assert [each.job.name for each in (*second, *third)] == ["a-b", "a/b", "é"]
    assert [each.job.name for each in await store.list(after="a/b", removed=True, limit=9)] == ["ab", "é"]
    assert await store.list(limit=0) == []


async def test_the_newest_missed_spans_of_all_jobs_name_their_jobs(store: AnyStore, clock: ManualClock) -> None:
    """What a pause or recovery left out is none of them, nor is a span that ends before the moment."""
    lost = [job(f"lost-{number}", f"{number} * * * *", recovery="mark_as_missed") for number in (0, 20, 40)]
    paused = job("paused")
    await put_all(store, [*lost, paused, job("kept")])
    await store.request(paused.id, Pause())
    clock.move(hours=3, minutes=59)
    await plan_once(store)
    first = clock.time
    clock.move(hours=2)
    await plan_once(store)
    spans = {each.id: await store.ask(Spans(each.id, first - 9 * HOUR, clock.time)) for each in lost}
    everything_ = [(id_, span) for id_, own in spans.items() for span in own]

    begin, now = first - 9 * HOUR, clock.time
    found = await store.ask(MissedSpans(begin, now))
    assert len(found) == 6
    assert list(found) == sorted(everything_, key=lambda each: each[1].through, reverse=True)
    assert list(await store.ask(MissedSpans(begin, now, 4))) == list(found[:4])
    assert list(await store.ask(MissedSpans(first, now))) == list(found[:3])
    assert list(await store.ask(MissedSpans(now, now))) == []
    inner = max(span.after for _, span in found)
    assert (
        list(await store.ask(MissedSpans(begin, inner, 3)))
        == [(id_, span) for id_, span in found if span.after < inner][:3]
    ), "newer spans take no place of older ones"
    assert list(await store.ask(MissedSpans(begin, begin))) == []


async def test_the_statuses_of_occurrences_are_told_by_id(store: AnyStore, clock: ManualClock) -> None:
    await put(store, job("one", retry=None))
    ids = await hours(store, clock, ["", "boom"])
    clock.move(hours=1)
    await plan_once(store)
    [waits] = [each.id for each in await occurrences(store) if each.id not in ids]
    none = "occ_00000000-0000-0000-0000-000000000000"

    assert await store.ask(OccurrenceStatuses([*ids, waits, none])) == {
        ids[0]: _S.COMPLETED,
        ids[1]: _S.FAILED,
        waits: _S.PENDING,
    }
    assert await store.ask(OccurrenceStatuses(())) == {}
