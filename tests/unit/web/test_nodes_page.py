"""The page of the nodes: who lives, who differs from the others, and what waits in each queue."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from everytick import Everytick, every
from everytick.domain.nodes import NodeFacts
from everytick.domain.values import value
from everytick.sources.drafting import edited
from everytick.stores.base import NodeRecord
from everytick.stores.memory import MemoryStore
from everytick.web.pages.nodes import _notes, _row, _said, _usual
from everytick.web.pictures.slots import queue_meter, slot_squares
from everytick.web.words import Viewer
from tests.stores.acting import everything, plan_once, put
from tests.stores.clock import START, ManualClock
from tests.unit.web.conftest import client_of

NOW = datetime(2026, 10, 23, 12, 7, tzinfo=UTC)
SILENCE = timedelta(seconds=20)
FACTS = NodeFacts(
    version="0.9.0",
    python="3.13.1",
    zone_data="2026b",
    host="shop-web-1",
    pid=7,
    slots=20,
    queues=("default", "billing"),
    started_at=NOW - timedelta(hours=4),
)


@value(frozen=True)
class Fleet:
    """What the page says of some nodes."""

    said: str
    notes: list[tuple[str, str]]
    differs: list[set[str]]
    states: list[str]


def fleet(*nodes: NodeRecord) -> Fleet:
    """Return what the page says of these nodes."""
    viewer = Viewer("UTC", UTC, NOW)
    living = [each for each in nodes if each.is_alive(NOW, SILENCE)]
    usual = _usual([each.facts for each in living if each.facts is not None])
    rows = [_row(each, usual, viewer, SILENCE) for each in nodes]
    said = _said(len(living), rows)
    return Fleet(said, _notes(rows, usual), [set(row.differs) for row in rows], [row.state for row in rows])


def node(name: str, ago: float = 1, **facts: object) -> NodeRecord:
    """Return a node that was heard so many seconds ago."""
    return NodeRecord(name, NOW - timedelta(seconds=ago), 3, replace(FACTS, **facts))  # type: ignore[arg-type]


def test_equal_nodes_are_quiet() -> None:
    found = fleet(node("a"), node("b"), node("c"))
    assert found == Fleet("Three nodes live.", [], [set(), set(), set()], ["live"] * 3)


def test_the_one_with_other_zone_tables_stands_out_and_the_others_do_not() -> None:
    found = fleet(node("a"), node("b"), node("d", zone_data="2025c"))
    assert found.said == "Three nodes live; one has other zone data."
    assert found.differs == [set(), set(), {"zone_data"}]
    [(first, rest)] = found.notes
    assert first == "d has zone data 2025c"
    assert rest.startswith(", the others 2026b: they may name different instants")


def test_of_two_versions_the_newer_is_the_usual_one() -> None:
    assert fleet(node("a", version="0.8.4"), node("b")).differs == [{"version"}, set()]


def test_a_silent_node_is_told_before_anything_else_and_is_compared_with_the_living() -> None:
    found = fleet(node("a"), node("e", ago=5 * 3600, version="0.8.4"))
    assert found.said == "One node lives; one fell silent."
    assert found.states == ["live", "silent 5 h"]
    assert found.differs[1] == {"version"}
    assert found.notes == []


def test_several_silent_nodes_are_counted_in_words() -> None:
    assert fleet(node("a"), node("d", ago=7200), node("e", ago=7200)).said == "One node lives; two fell silent."


def test_a_wrong_clock_is_told() -> None:
    found = fleet(node("a"), node("b", clock_offset=timedelta(seconds=-2.5)))
    assert found.said == "Two nodes live; one has a wrong clock."
    assert found.notes[0][0] == "The clock of b is off by −2.5 s"


def test_a_square_for_each_slot_and_the_taken_ones_filled() -> None:
    drawn = slot_squares(4, 22, "said")
    assert (drawn.count("m-present"), drawn.count('class="slot"')) == (4, 18)
    many = slot_squares(999, 1000, "said")
    assert many.count("<rect") == 200
    assert slot_squares(0, 0, "said").count("<rect") == 0


def test_what_waits_stands_behind_what_runs() -> None:
    drawn = queue_meter(6, 4, 8, "said")
    assert re.findall(r'class="(\S+)"[^>]*?width="([\d.]+%)"', drawn) == [
        ("slot", "80%"),
        ("m-present", "60%"),
        ("w-look", "40%"),
    ]


async def test_the_page_of_a_running_node(tick: Everytick) -> None:
    tick.settings = replace(tick.settings, queues=("default", "<i>"))
    await tick.start()
    try:
        async with client_of(tick) as client:
            page = await client.get("/nodes")
    finally:
        await tick.stop()
    assert page.status_code == 200
    assert "<h1>One node lives.</h1>" in page.text
    assert "&lt;i&gt;" in page.text
    assert "tag look" not in page.text
    await tick.close()


async def test_no_node_at_all_says_how_to_start_one(tick: Everytick) -> None:
    await tick.sync()
    async with client_of(tick) as client:
        page = await client.get("/nodes")
    assert "<h1>No node lives.</h1>" in page.text
    assert "everytick run" in page.text
    await tick.close()


async def test_waiting_occurrences_are_counted_by_queue() -> None:
    tick = Everytick("memory://", name="shop")
    for name, queue in (("a", "default"), ("b", "billing"), ("c", "billing")):
        tick.job(every("1d"), name=name, queue=queue)(lambda: None)
    await tick.sync()
    for name in "abc":
        await tick.trigger(name)
    await tick.trigger("a", after="1h")
    await plan_once(await tick._opened())
    found = await tick.queues()
    assert [(each.queue, each.running, each.waiting, each.nodes) for each in found] == [
        ("billing", 0, 2, 0),
        ("default", 0, 1, 0),
    ]
    assert all(each.oldest is not None for each in found)
    await tick.close()


async def test_what_runs_is_counted_in_the_queue_in_which_it_waited() -> None:
    """One run was amended, and the job of the other was edited while it ran."""
    clock = ManualClock()
    tick = Everytick(MemoryStore(clock), name="shop")
    for name in ("amended", "edited"):
        tick.job(every("1d", start=START), name=name, queue="slow")(lambda: None)
    await tick.sync()
    [instant] = await tick.next_runs("amended", 1)
    await tick.amend("amended", instant, queue="gpu")
    clock.move(days=1)
    store = await tick._opened()
    await plan_once(store)
    waiting = [(each.queue, each.waiting) for each in await tick.queues()]
    assert waiting == [("gpu", 1), ("slow", 1)]

    await store.claim(await everything(store), 2)
    [record] = [each for each in await store.list() if each.job.name == "edited"]
    await put(store, edited(record.job, None, {"queue": "fast"}))

    assert [(each.queue, each.running) for each in await tick.queues()] == waiting
    await tick.close()


async def test_the_longest_wait_is_that_of_the_oldest_however_many_wait() -> None:
    """More than a thousand wait, and what waits longest is not among the newest thousand."""
    clock = ManualClock()
    tick = Everytick(MemoryStore(clock), name="shop")
    for name in ("one", "two"):
        tick.job(every("1m", start=START), name=name, queue="billing", overlap="allow", recovery="execute_all")(
            lambda: None
        )
    await tick.sync()
    clock.move(minutes=900)
    store = await tick._opened()
    while await plan_once(store):
        pass
    [found] = [each for each in await tick.queues() if each.queue == "billing"]
    assert found.oldest == START + timedelta(minutes=1)
    assert (found.waiting > 1_000, found.is_cut) == (True, True)
    await tick.close()
