"""Nodes, limits, backfills and proposals as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everytick.answers.wire import data_of, moment, value_of
from everytick.domain.backfills import BackfillRecord, BackfillStatus
from everytick.domain.limits import BrakeRecord, LimitChange, LimitRecord, Limits, Reach, ReachRecord, Releasing
from everytick.domain.nodes import facts_from
from everytick.domain.proposals import Proposal
from everytick.schedules.codec import schedule
from everytick.stores.base import NodeRecord

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

# ---------------------------------------------------------------------------------------------------------------- nodes


def node_state(node: NodeRecord, now: datetime, limit: timedelta) -> str:
    """Return in a word whether a node lives: it is silent if its last beat is older than the limit."""
    if not node.beats:
        return "stopped"
    return "alive" if node.is_alive(now, limit) else "silent"


def node_data(node: NodeRecord, state: str) -> dict[str, Any]:
    """Return a node as data, with the facts that it told."""
    facts = {} if node.facts is None else node.facts.as_data()
    return {"id": node.id, "status": state, "heard_at": node.beat_at, "holds": node.holds, **facts}


def node_record(node: NodeRecord, state: str) -> dict[str, Any]:
    """Return the same with the number of its beats, and of its claims past their deadline.

    The keys of claims stay inside: who has one may write as that node.
    """
    return node_data(node, state) | {"beats": node.beats, "overdue": len(node.overdue)}


def node_of(data: Mapping[str, Any]) -> NodeRecord:
    """Return the node that `node_record` wrote, without its claims."""
    beat_at = moment(data["heard_at"])
    assert beat_at is not None, "every node was heard of"
    facts = facts_from(data) if "started_at" in data else None
    return NodeRecord(data["id"], beat_at, data["holds"], facts, data["beats"])


# --------------------------------------------------------------------------------------------------------------- limits


def limits_data(limits: Limits) -> dict[str, Any]:
    """Return the limits and brakes of a store as data."""
    return {
        "reaches": [_reach_data(reach) for reach in limits.reaches],
        "changes": [
            {"at": change.at, "reach": change.reach, "what": change.what, "reason": change.reason, "by": change.by}
            for change in limits.changes
        ],
    }


def _reach_data(record: ReachRecord) -> dict[str, Any]:
    limit, release = record.reach.limit, record.reach.release
    return {
        "reach": record.reach.name,
        "most": None if limit is None else limit.most,
        "rate": None if limit is None or limit.rate is None else str(limit.rate),
        "reason": None if limit is None else limit.reason,
        "set_by": None if limit is None else limit.by,
        "set_at": None if limit is None else limit.at,
        "running": record.running,
        "waiting": record.waiting,
        "closed": record.closed,
        "opens_at": record.opens_at,
        "brakes": [
            {
                "since": brake.since,
                "until": brake.until,
                "reason": brake.reason,
                "by": brake.by,
                "begins": None if brake.begins is None else str(brake.begins),
                "ends": None if brake.ends is None else str(brake.ends),
            }
            for brake in record.reach.brakes
        ],
        "release": None
        if release is None
        else {
            "since": release.since,
            "rate": None if release.rate is None else str(release.rate),
            "left": release.left,
            "by": release.by,
        },
    }


def limits_record(limits: Limits) -> dict[str, Any]:
    """Return the same with the store's time."""
    return limits_data(limits) | {"now": limits.now}


def limits_of(data: Mapping[str, Any]) -> Limits:
    """Return the limits that `limits_record` wrote."""
    now = moment(data["now"])
    assert now is not None, "a store has a time"
    return Limits(now, tuple(map(_reach_of, data["reaches"])), value_of(tuple[LimitChange, ...], data["changes"]))


def _reach_of(data: Mapping[str, Any]) -> ReachRecord:
    limit = None
    if data["set_at"] is not None:
        limit = value_of(LimitRecord, {**data, "by": data["set_by"], "at": data["set_at"]})
    brakes = tuple(map(_brake_of, data["brakes"]))
    release = None if data["release"] is None else value_of(Releasing, data["release"])
    reach = Reach(data["reach"], limit, brakes, release)
    return ReachRecord(reach, data["running"], data["waiting"], data["closed"], moment(data["opens_at"]))


def _brake_of(data: Mapping[str, Any]) -> BrakeRecord:
    since = moment(data["since"])
    assert since is not None, "a brake has a beginning"
    rules = (None if data[key] is None else schedule(data[key]) for key in ("begins", "ends"))
    return BrakeRecord(since, moment(data["until"]), data["reason"], data["by"], *rules)


# ------------------------------------------------------------------------------------------------------------ backfills


def backfill_data(record: BackfillRecord) -> dict[str, Any]:
    """Return a backfill and how far it has come as data."""
    order, left = record.order, record.time_left
    is_going = record.status in (BackfillStatus.PLANNED, BackfillStatus.RUNNING, BackfillStatus.PAUSED)
    return {
        "id": record.id,
        "job": record.job,
        "status": str(record.status),
        "after": order.after,
        "through": order.through,
        "again": order.again,
        "as_of": "now" if order.as_of_now else "then",
        "newest_first": order.newest_first,
        "rate": order.rate,
        "pace": record.pace,
        "count": order.count,
        "created": record.created,
        "done": record.done,
        "failed": record.failed,
        "canceled": record.canceled,
        "running": record.running,
        "waiting": record.waiting,
        "left": record.left,
        "seconds_to_go": left.total_seconds() if left is not None and is_going else None,
        "reason": order.reason,
        "planned_at": record.planned_at,
        "planned_by": order.by,
        "approved_at": record.approved_at,
        "approved_by": record.approved_by,
        "ended_at": record.ended_at,
    }


def backfill_record(record: BackfillRecord) -> dict[str, Any]:
    """Return the same with every field that the store has: the order, and the span that is left to fill."""
    left = {"after": record.after, "through": record.through}
    more = {"job_id": record.job_id, "behind": record.behind, "changed_by": record.changed_by}
    return backfill_data(record) | more | {"order": data_of(record.order), "to_fill": left}


def backfill_of(data: Mapping[str, Any]) -> BackfillRecord:
    """Return the backfill that `backfill_record` wrote."""
    return value_of(BackfillRecord, {**data, **data["to_fill"]})


# ------------------------------------------------------------------------------------------------------------ proposals


def proposal_data(proposal: Proposal, now: datetime) -> dict[str, Any]:
    """Return a proposal as data, without its changes."""
    return {
        "id": proposal.id,
        "what": proposal.what,
        "jobs": proposal.jobs,
        "by": proposal.by,
        "at": proposal.at,
        "expires_at": proposal.expires_at,
        "expired": proposal.expires_at <= now,
    }


def proposal_of(data: Mapping[str, Any]) -> Proposal:
    """Return the proposal that `proposal_data` wrote, without its changes."""
    at, expires_at = moment(data["at"]), moment(data["expires_at"])
    assert at is not None, "a proposal has a time"
    assert expires_at is not None, "a proposal has an end"
    return Proposal(data["id"], data["what"], tuple(data["jobs"]), data["by"], at, expires_at)
