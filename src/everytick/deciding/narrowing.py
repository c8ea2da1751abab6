"""What an edit of `recovery` means for the catch-up that already waits in line (S4-031).

What the new strategy would not have kept at the moment of the edit ends, once; time that passes
afterwards ends nothing.
"""

from collections.abc import Sequence
from datetime import datetime

from everytick.domain.occurrence import Cause
from everytick.domain.policies import Recovery, Strategy
from everytick.domain.snapshots import Active


def unwanted(waiting: Sequence[Active], recovery: Recovery, narrowed_at: datetime) -> list[Active]:
    """Return those in line, the oldest first, that a strategy would not have kept at that moment."""
    late = [occurrence for occurrence in waiting if occurrence.late and occurrence.cause is Cause.SCHEDULE]
    match recovery.strategy:
        case Strategy.EXECUTE_ALL | Strategy.COMPRESSED:
            return []
        case Strategy.MARK_AS_MISSED:
            return late
        case Strategy.EXECUTE_LAST:
            return late[:-1]
    assert recovery.strategy is Strategy.BOUNDED_WINDOW, f"{recovery.strategy} is a strategy without a rule"
    edge = None if recovery.max_duration is None else narrowed_at - recovery.max_duration
    inside = [occurrence for occurrence in late if edge is None or occurrence.scheduled_for > edge]
    most = len(inside) if recovery.max_occurrences is None else recovery.max_occurrences
    kept_ids = {occurrence.id for occurrence in inside[max(len(inside) - most, 0) :]}
    return [occurrence for occurrence in late if occurrence.id not in kept_ids]
