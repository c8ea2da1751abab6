"""register and nodes: what a node says of itself, and how long it is remembered."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from everytick.domain.nodes import NodeFacts
from everytick.stores.base import Nodes
from tests.stores.acting import AnyStore, claim_one, job, plan_once, put
from tests.stores.clock import ManualClock

FACTS = NodeFacts(
    version="1.2.3",
    python="3.11.4",
    zone_data="2025b (system)",
    host="höst",
    pid=4711,
    slots=50,
    queues=("default", "mail"),
    started_at=datetime(2026, 3, 1, 12, tzinfo=UTC),
    application="shop",
    clock_offset=timedelta(seconds=-1.5),
    unknown_targets=(("job_1", "there is no \ud800 module\x00"),),
    broken_files=(("jobs/a.yaml", "line 3: \ud800 'schedul' is not a key\x00"),),
)


async def test_what_a_node_says_of_itself_reads_back_equal(store: AnyStore, clock: ManualClock) -> None:
    await store.beat("node-1", [], FACTS)
    [found] = await store.ask(Nodes())
    assert (found.id, found.beat_at, found.holds) == ("node-1", clock.time, 0)
    assert found.facts == FACTS


async def test_neither_a_beat_nor_a_claim_forgets_what_a_node_said(store: AnyStore, clock: ManualClock) -> None:
    await store.beat("node-1", [], FACTS)
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    await claim_one(store)
    await store.beat("node-1", [])
    [found] = await store.ask(Nodes())
    assert (found.facts, found.beat_at, found.holds) == (FACTS, clock.time, 1)


async def test_a_node_may_say_something_else_later(store: AnyStore, clock: ManualClock) -> None:
    await store.beat("node-1", [], FACTS)
    now = replace(FACTS, broken_files=())
    await store.beat("node-1", [], now)
    assert [each.facts for each in await store.ask(Nodes())] == [now]


async def test_one_that_only_beats_is_known_without_facts(store: AnyStore, clock: ManualClock) -> None:
    await store.beat("node-1", [])
    assert [(each.id, each.facts) for each in await store.ask(Nodes())] == [("node-1", None)]


async def test_long_gone_nodes_are_forgotten_unless_they_hold_something(store: AnyStore, clock: ManualClock) -> None:
    await store.beat("gone", [], FACTS)
    await store.beat("node-1", [], FACTS)
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    await claim_one(store)
    clock.move(days=6)
    await store.beat("new", [], FACTS)
    assert [each.id for each in await store.ask(Nodes())] == ["gone", "new", "node-1"]
    clock.move(days=2)
    await store.beat("new", [], FACTS)
    assert [each.id for each in await store.ask(Nodes())] == ["new", "node-1"]
