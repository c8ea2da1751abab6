"""Runs asked for later on virtual time (A9)."""

from everytick.app import Everytick
from everytick.schedules.once import on_request
from everytick.testing import ManualClock, drain, simulate
from tests.stores.acting import AnyStore


async def test_drain_runs_it_once_the_clock_is_there(everytick_store: AnyStore, everytick_clock: ManualClock) -> None:
    """A9: as a node does."""
    tick, told = Everytick(everytick_store, name="shop"), list[int]()

    @tick.job(on_request())
    async def remind(user: int) -> None:
        told.append(user)

    await remind.trigger(user=7, after="10m")
    await drain(tick)
    assert told == []
    everytick_clock.advance("10m")
    await drain(tick)
    everytick_clock.advance("10m")
    await drain(tick)
    assert told == [7]


def test_a_simulation_runs_it_at_its_time_also_after_an_outage() -> None:
    """A9: one in time, one when the node is back."""
    tick = Everytick("memory://", name="shop")

    @tick.job(on_request())
    async def remind(user: int) -> None: ...

    chronicle = simulate(
        tick,
        "2026-01-01T09:00:00Z",
        "2026-01-01T12:00:00Z",
        outages=[("2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z")],
        at={
            "2026-01-01T09:30:00Z": lambda: remind.trigger(user=7, after="10m"),
            "2026-01-01T09:31:00Z": lambda: remind.trigger(user=8, at="2026-01-01T10:30:00Z"),
        },
    )

    started = [f"{entry.started_at:%H:%M}" for entry in chronicle if entry.started_at is not None]
    assert started == ["09:40", "11:00"]
