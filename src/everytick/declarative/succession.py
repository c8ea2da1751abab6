"""Succession: of all living instances of one scheduler the newest starts callbacks, and the others rest (C-43).

Callbacks are functions of a process. After a deploy the newer process has the newer callbacks, so an older instance
that still runs must not start its own any more. Callbacks that it has started run to their end. Each instance checks
every two seconds which others live. Until the older one has checked, a minute may run in either, never in both. When
the newer instances are gone, the older one stores its registrations again, since they may have stored others.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from everytick.declarative.instances import Instance, Instances, later_than
from everytick.errors import StoreUnavailable

if TYPE_CHECKING:
    from datetime import datetime

_log = logging.getLogger("everytick.declarative")

EVERY = 2.0
"""Seconds between two checks: short against a minute, and one small query each."""


class Succession:
    """Lets an instance rest while a newer one lives, and take up its tasks when it is the newest again."""

    def __init__(
        self, instances: Instances, me: str, rest: Callable[[], None], take_up: Callable[[], Awaitable[None]]
    ) -> None:
        """`take_up` stores the registrations again, settles leftovers of dead instances, and lets the node claim."""
        self._instances, self._me, self._rest, self._take_up = instances, me, rest, take_up
        self._newer: str | None = None
        self._survived: tuple[datetime, str] | None = None
        self._known_dead: set[str] = set()

    async def watch(self, beat: Callable[[], Awaitable[object]] | None = None) -> None:
        """Check every `EVERY` seconds until canceled. Call `beat` each time if no node does."""
        while True:
            await asyncio.sleep(EVERY)
            try:
                if beat is not None:
                    await beat()
                await self.look()
            except StoreUnavailable:
                # The next check tries again. An instance that cannot reach the store starts nothing anyway.
                continue
            except Exception:  # noqa: BLE001, the next look may succeed
                _log.exception("the look at other instances of this scheduler failed; the next one comes in 2 s")

    async def look(self) -> None:
        """Rest if a newer instance lives; take up the tasks if the last newer one is gone, or an older one died."""
        instances = await self._instances.all()
        later = later_than(self._me, instances)
        living = [instance for instance in later if instance.lives]
        if living:
            self._step_back(living[-1])
            return
        died = {
            instance.id for instance in instances if instance.holds and not instance.lives and instance.id != self._me
        } - self._known_dead
        newest = later[-1].place if later else None
        if self._newer is not None or newest != self._survived or died:
            await self._step_forward(later, died)
            self._newer, self._survived = None, newest
            self._known_dead |= died

    def _step_back(self, newer: Instance) -> None:
        if newer.id != self._newer:
            self._newer = newer.id
            self._rest()
            _log.warning(
                "a newer instance runs this scheduler, %s: nothing is started here while it lives, and what runs here "
                "runs to its end. If that is another service, give each scheduler a name of its own (name=…)",
                newer.id,
            )

    async def _step_forward(self, later: list[Instance], died: set[str]) -> None:
        if died:
            _log.warning("these instances of this scheduler died: %s; their callbacks start again", ", ".join(died))
        if later:
            _log.warning("the newer instance of this scheduler is gone: callbacks are started here again")
        await self._take_up()
