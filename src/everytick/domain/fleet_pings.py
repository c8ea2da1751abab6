"""What a fleet tells an outside address every minute: that it lives, and which promises hang on that.

There is no secret in it: names of jobs, kinds of promises and moments.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from everytick.domain.promises import PromiseRecord
from everytick.domain.values import value

TOLD_AHEAD = timedelta(hours=1)
"""Promises that could be broken within this time are told."""

_MOST_TOLD = 200
"""Promises that one ping names; the others are counted."""

_LONGEST_NAME = 200
"""Characters of a name in a ping."""


@value(frozen=True)
class PromiseAtRisk:
    """A promise that is broken, or will be at `due_at` if nothing runs until then."""

    job: str
    promise: str
    due_at: datetime
    is_broken: bool = False


@value(frozen=True)
class FleetPing:
    """One ping: when, by which node, how many nodes live, and the promises at risk, soonest first.

    `more` is how many promises are not listed.
    """

    sent_at: datetime
    node: str
    nodes: int
    at_risk: tuple[PromiseAtRisk, ...] = ()
    more: int = 0

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON can carry it."""
        return {
            "sent_at": self.sent_at.isoformat(),
            "node": self.node,
            "nodes": self.nodes,
            "at_risk": [
                {
                    "job": promise.job,
                    "promise": promise.promise,
                    "due_at": promise.due_at.isoformat(),
                    "broken": promise.is_broken,
                }
                for promise in self.at_risk
            ],
            "more": self.more,
        }


def ping_of(promised: Iterable[PromiseRecord], now: datetime, node: str, nodes: int) -> FleetPing:
    """Return the ping of this moment."""
    risky = [risk for record in promised if (risk := _risk(record, now)) is not None]
    risky.sort(key=lambda promise: (promise.due_at, promise.job, promise.promise))
    return FleetPing(now, node, nodes, tuple(risky[:_MOST_TOLD]), max(len(risky) - _MOST_TOLD, 0))


def _risk(record: PromiseRecord, now: datetime) -> PromiseAtRisk | None:
    state, name = record.state, record.job[:_LONGEST_NAME]
    if state.breach is not None:
        return PromiseAtRisk(name, state.kind, state.breach.due_at, is_broken=True)
    if state.check_at is None or state.check_at > now + TOLD_AHEAD:
        return None
    return PromiseAtRisk(name, state.kind, state.check_at)


def ping_from(data: Mapping[str, Any]) -> FleetPing:
    """Return what `as_data` gave. Raise ValueError if it is none: any program may post to an address."""
    try:
        risky = [
            PromiseAtRisk(
                str(told["job"])[:_LONGEST_NAME],
                str(told["promise"])[:40],
                datetime.fromisoformat(told["due_at"]).astimezone(UTC),
                bool(told.get("broken", False)),
            )
            for told in list(data.get("at_risk", ()))[:_MOST_TOLD]
        ]
        sent_at = datetime.fromisoformat(data["sent_at"]).astimezone(UTC)
        return FleetPing(
            sent_at, str(data["node"])[:_LONGEST_NAME], int(data["nodes"]), tuple(risky), int(data.get("more", 0))
        )
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"it is no ping of a fleet: {error}") from error
