"""Limits and brakes of a store: how many of a tag, a queue or a job may run or start, on all nodes together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.app.store_access import StoreAccess
from everytick.app.text_reading import moment_of
from everytick.domain.lookups import LimitsAndBrakes
from everytick.errors import InvalidLimit

if TYPE_CHECKING:
    from datetime import datetime

    from everytick.domain.facts import Limiting
    from everytick.domain.limits import Limits, Rate
    from everytick.domain.schedule import Schedule


class LimitRequests(StoreAccess):
    """What people say of a reach: `all`, `queue:NAME`, `tag:NAME` or `job:NAME`. `by` says who, and is kept."""

    async def set_limit(
        self,
        reach: str,
        *,
        most: int | None = None,
        rate: str | Rate | None = None,
        burst_allowed: bool = False,
        reason: str = "",
        by: str | None = None,
    ) -> None:
        """Let at most `most` occurrences of the reach run at once, and start at the rate, such as `"60/1m"`.

        It holds from now on, for all nodes of the store, and replaces an earlier limit of this reach. What runs counts
        and goes on. Without `burst_allowed` the starts of a rate are spread over its time.
        """
        from everytick.domain.facts import SetLimit
        from everytick.domain.limits import checked_most, rate_of

        starts = None if rate is None else rate_of(rate, burst=burst_allowed)
        await self._say(reach, SetLimit(checked_most(most), starts, reason, self._by(by)))

    async def remove_limit(self, reach: str, *, reason: str = "", by: str | None = None) -> bool:
        """Take the limit of the reach away. Return whether there was one."""
        from everytick.domain.facts import DropLimit

        return await self._say(reach, DropLimit(reason, self._by(by)))

    async def brake(
        self,
        reach: str = "all",
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        begins: Schedule | str | None = None,
        ends: Schedule | str | None = None,
        timezone: str = "UTC",
        reason: str = "",
        by: str | None = None,
    ) -> None:
        """Let nothing of the reach start, from now on or from `since` on, until `until` or until `release`.

        With `begins` and `ends` it is a freeze window that comes again: `begins="0 16 * * fri", ends="0 6 * * mon"`.
        Schedules that name no zone are in `timezone`. What runs goes on, and instants are still decided: their
        occurrences wait, as the job's policies say.
        """
        from everytick.domain.facts import PutBrake

        begin, end = (None if at is None else moment_of(at) for at in (since, until))
        window = _window(begins, ends, timezone)
        if window and (begin is not None or end is not None):
            raise InvalidLimit(str(begins), "comes again by itself: give since and until, or begins and ends")
        await self._say(reach, PutBrake(begin, end, reason, self._by(by), *window))

    async def release(
        self,
        reach: str = "all",
        *,
        rate: str | Rate | None = None,
        at_once: bool = False,
        reason: str = "",
        by: str | None = None,
    ) -> bool:
        """End the brakes of the reach that hold; where none holds, take those away that are to come.

        Return whether there was one. What has waited starts by priority, then age, at this rate; without one, in about
        ten minutes, and with `at_once` as fast as the nodes can.
        """
        from everytick.domain.facts import ReleaseBrake
        from everytick.domain.limits import rate_of

        if rate is not None and at_once:
            raise InvalidLimit(rate, "is a rate, and at_once wants none: give one of them")
        starts = None if rate is None else rate_of(rate)
        return await self._say(reach, ReleaseBrake(starts, at_once, reason, self._by(by)))

    async def limits(self) -> Limits:
        """Return the limits and brakes of the store, how far each is used, and who changed them last."""
        return await (await self._opened()).ask(LimitsAndBrakes())

    async def _say(self, reach: str, fact: Limiting) -> bool:
        from everytick.domain.limits import reach_name

        name = reach_name(reach)
        return (await (await self._opened()).request(name, fact)).changed


def _window(
    begins: Schedule | str | None, ends: Schedule | str | None, timezone: str
) -> tuple[Schedule, Schedule] | tuple[()]:
    """Return the schedules of a window that comes again; nothing where none is given."""
    from everytick.app.text_reading import in_zone, schedule_of
    from everytick.schedules.combine import calendars_of

    if begins is None and ends is None:
        return ()
    if begins is None or ends is None:
        raise InvalidLimit(str(begins or ends), "is one end of a window: give begins and ends, like 0 16 * * fri")
    found = in_zone(schedule_of(begins), timezone), in_zone(schedule_of(ends), timezone)
    for schedule in found:
        if list(calendars_of(schedule)):
            raise InvalidLimit(str(schedule), "names a calendar, and a brake has no dates of its own: write the days")
    return found
