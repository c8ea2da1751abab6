"""An instant that came while another ran, and then that one failed: its retry gives way to who stands in line."""

from typing import Any

from everytick.deciding.plan import plan
from tests.unit.deciding.planning import active, at, ended, job, snapshot_of

LATEST: dict[str, Any] = {
    "overlap": "queue_latest",
    "retry": {"max": None, "interval": "30m", "superseded_by_next": True},
}


def test_a_retry_gives_way_to_an_instant_that_waits_already() -> None:
    """S2-023: it is due, so it does not wait for the retry; it starts once its place is surely free."""
    failed = active("failed", at("09:00"), "awaiting_retry", superseded_by_next=True)
    waits = active("waits", at("10:00"), "queued")
    snapshot = snapshot_of(job(**LATEST), at("10:00"), active=(failed, waits))

    decided = plan(snapshot, at("10:01"))

    assert ended(decided) == [("failed", "superseded", f"by {at('10:00').isoformat()}")]
    assert (decided.releases, decided.wake_at) == ((), at("10:01"))
    after = snapshot_of(job(**LATEST), at("10:01"), active=(waits,))
    assert plan(after, at("10:01")).releases == ("waits",)


def test_a_request_is_no_instant_and_waits_behind_the_retry() -> None:
    failed = active("failed", at("09:00"), "awaiting_retry", superseded_by_next=True)
    asked = active("asked", at("09:30"), "queued", "trigger")
    snapshot = snapshot_of(job(**LATEST), at("09:40"), active=(failed, asked))

    assert ended(plan(snapshot, at("09:41"))) == []


def test_a_retry_that_nothing_supersedes_keeps_its_place() -> None:
    failed = active("failed", at("09:00"), "awaiting_retry")
    waits = active("waits", at("10:00"), "queued")
    snapshot = snapshot_of(job(overlap="queue"), at("10:00"), active=(failed, waits))

    assert ended(plan(snapshot, at("10:01"))) == []
