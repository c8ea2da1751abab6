"""The metrics of this application: what its node has counted, and what its store holds."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from everytick.app.store_access import StoreAccess
from everytick.errors import StoreUnavailable

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Sequence

    from everytick.metrics.of_store import StoreReading
    from everytick.metrics.text import Series
    from everytick.node.events import Listeners
    from everytick.node.settings import NodeSettings
    from everytick.stores.base import JobRecord

_KEPT_SECONDS = 5.0
"""How long a reading of the store is used again: two servers that scrape ask it once."""

_ANSWER_SECONDS = 5.0
"""How long the store may take. A scrape usually waits ten seconds, and the node's own numbers must not be lost."""


class Metering(StoreAccess):
    """Writes metrics."""

    settings: NodeSettings
    _listeners: Listeners
    _reading: tuple[float, StoreReading] | None = None
    _asking: Task[StoreReading] | None = None
    _written: tuple[StoreReading, int, Series] | None = None

    async def metrics(self, *, records: Sequence[JobRecord] | None = None, asks_store: bool = True) -> str:
        """Return all metrics in Prometheus' text format. If the store does not answer, those of this node alone.

        Give `records` if all jobs are known already: then the store is not asked for them. Without `asks_store` it is
        known that the store does not answer.
        """
        import platform

        from everytick import __version__
        from everytick.metrics.of_node import write_node
        from everytick.metrics.text import Series
        from everytick.schedules.timezones import zone_data

        series, meter = Series(), self._listeners.meter
        series.add("everytick_build_info", 1, __version__, platform.python_version(), zone_data().version)
        write_node(series, meter)
        try:
            reading = await self._read(records) if asks_store else None
        except (StoreUnavailable, TimeoutError):
            reading = None
        if reading is None:
            series.add("everytick_store_up", 0)
            return series.text()
        series.add("everytick_store_up", 1)
        series.include(self._series_of(reading))
        return series.text()

    def _series_of(self, reading: StoreReading) -> Series:
        """Return the series of a reading. They are written once, unless the node has begun to count another job."""
        from everytick.metrics.of_store import write_store
        from everytick.metrics.text import Series

        # The meter gives a label of its own to each job that it counts: their number says which have one.
        meter, written = self._listeners.meter, self._written
        if written is not None and written[0] is reading and written[1] == len(meter.jobs):
            return written[2]
        number, series = len(meter.jobs), Series()
        write_store(series, reading, meter, self.settings.node_timeout)
        self._written = (reading, number, series)
        return series

    async def _read(self, records: Sequence[JobRecord] | None) -> StoreReading:
        """Return what the store holds, some seconds old at most. Who asks at the same time waits for one reading."""
        import asyncio

        kept = self._reading
        if kept is not None and monotonic() - kept[0] < _KEPT_SECONDS:
            return kept[1]
        asking = self._asking
        # A task belongs to its loop: the service beside a node has another one.
        if asking is None or asking.done() or asking.get_loop() is not asyncio.get_running_loop():
            asking = self._asking = asyncio.ensure_future(self._ask(records))
            asking.add_done_callback(_told)
        # Shielded: a scrape that is given up must not end what others wait for.
        return await asyncio.shield(asking)

    async def _ask(self, records: Sequence[JobRecord] | None) -> StoreReading:
        import asyncio

        from everytick.metrics.of_store import read_store

        async with asyncio.timeout(_ANSWER_SECONDS):
            found = await read_store(await self._opened(), records)
        self._reading = (monotonic(), found)
        return found


def _told(asking: Task[StoreReading]) -> None:
    """Take note of the error: the scrapes that wait for it say that the store does not answer."""
    if not asking.cancelled():
        asking.exception()
