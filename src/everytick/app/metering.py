"""The metrics of this application: what its node has counted, and what its store holds."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from everytick.app.store_access import StoreAccess
from everytick.errors import StoreUnavailable

if TYPE_CHECKING:
    from everytick.metrics.of_store import StoreReading
    from everytick.node.events import Listeners
    from everytick.node.settings import NodeSettings

_KEPT_SECONDS = 5.0
"""So long a reading of the store is used again: two servers that scrape ask it once."""

_ANSWER_SECONDS = 5.0
"""How long the store may take. A scrape usually waits ten seconds, and the node's own numbers must not be lost."""


class Metering(StoreAccess):
    """Writes metrics."""

    settings: NodeSettings
    _listeners: Listeners
    _reading: tuple[float, StoreReading] | None = None

    async def metrics(self) -> str:
        """Return all metrics in Prometheus' text format. If the store does not answer, those of this node alone."""
        import platform

        from everytick import __version__
        from everytick.metrics.of_node import write_node
        from everytick.metrics.of_store import write_store
        from everytick.metrics.text import Series
        from everytick.schedules.timezones import zone_data

        series, meter = Series(), self._listeners.meter
        series.add("everytick_build_info", 1, __version__, platform.python_version(), zone_data().version)
        write_node(series, meter)
        try:
            reading = await self._read()
        except (StoreUnavailable, TimeoutError):
            series.add("everytick_store_up", 0)
            return series.text()
        series.add("everytick_store_up", 1)
        write_store(series, reading, meter, self.settings.node_timeout)
        return series.text()

    async def _read(self) -> StoreReading:
        """Return what the store holds, some seconds old at most."""
        import asyncio

        from everytick.metrics.of_store import read_store

        kept = self._reading
        if kept is not None and monotonic() - kept[0] < _KEPT_SECONDS:
            return kept[1]
        async with asyncio.timeout(_ANSWER_SECONDS):
            found = await read_store(await self._opened())
        self._reading = (monotonic(), found)
        return found
