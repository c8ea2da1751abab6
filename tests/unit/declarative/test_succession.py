"""Who among several instances of a scheduler is the newest that lives."""

from datetime import datetime, timedelta

import pytest

from everytick.declarative.succession import successor
from everytick.domain.nodes import NodeFacts
from everytick.stores.base import NodeRecord
from tests.unit.declarative.kit import NOON, at


def node(id_: str, started: datetime, beat: datetime = NOON, application: str = "declarative:default") -> NodeRecord:
    facts = NodeFacts("0", "3", "2026a", "host", 1, 1, ("declarative:default",), started, application)
    return NodeRecord(id_, beat, 0, facts)


ME = node("me", at("11:00"))
SILENT = NOON - timedelta(seconds=21)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], None),
        ([node("older", at("10:00"))], None),
        ([node("twin", at("11:00"))], None),
        ([node("newer", at("11:30"))], "newer"),
        ([node("newer", at("11:30")), node("newest", at("11:40"))], "newest"),
        ([node("newer", at("11:30")), node("gone", at("11:40"), SILENT)], "newer"),
        ([node("gone", at("11:30"), SILENT)], None),
        ([node("other", at("11:30"), application="declarative:nightly")], None),
        ([NodeRecord("unknown", NOON, 0)], None),
    ],
)
def test_the_newest_that_lives_and_began_later(others: list[NodeRecord], expected: str | None) -> None:
    assert successor([ME, *others], "me", "declarative:default", NOON) == expected


def test_whoever_is_not_known_yet_has_no_successor() -> None:
    assert successor([node("newer", at("11:30"))], "me", "declarative:default", NOON) is None
