"""A node is a tree: each part knows only parts that were made before it, and no pair of parts calls each other."""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from types import MethodType
from typing import Any

import pytest

from everytick.node.inbox import Inbox
from everytick.node.node import Node
from everytick.node.settings import node_settings
from everytick.runners.catalogue import Catalogue
from everytick.stores.memory.store import MemoryStore
from everytick.testing.clock import ManualClock


def held_by(part: object) -> Iterator[object]:
    """Give what the attributes of an object hold, and the owners of the methods among it."""
    names = [name for cls in type(part).__mro__ for name in getattr(cls, "__slots__", ())]
    contents = [getattr(part, name) for name in names if hasattr(part, name)]
    yield from unpacked([*contents, *getattr(part, "__dict__", {}).values()])


def unpacked(contents: Collection[Any]) -> Iterator[object]:
    for content in contents:
        match content:
            case MethodType():
                yield content.__self__
            case partial():
                yield from unpacked([content.func, *content.args, *content.keywords.values()])
            case Mapping():
                yield from unpacked(list(content.values()))
            case list() | tuple() | set() | frozenset():
                yield from unpacked(content)
            case _:
                yield content


def is_part(content: object) -> bool:
    """Whether it is of a class of `node`, but no inbox: into that every part puts what happened."""
    return type(content).__module__.startswith("everytick.node.") and not isinstance(content, Inbox)


def circles(part: object, above: tuple[object, ...] = (), seen: set[int] | None = None) -> Iterator[str]:
    """Give each way along which a part knows itself, by the names of the parts on it."""
    seen = set() if seen is None else seen
    begins = [place for place, upper in enumerate(above) if upper is part]
    if begins:
        yield " → ".join(type(upper).__name__ for upper in (*above[begins[0] :], part))
    elif id(part) not in seen:
        seen.add(id(part))
        for content in held_by(part):
            if is_part(content):
                yield from circles(content, (*above, part), seen)


@pytest.fixture
def node() -> Node:
    return Node(MemoryStore(ManualClock()), Catalogue({}), node_settings())


def test_no_part_of_a_node_knows_one_that_knows_it(node: Node) -> None:
    seen = set[int]()

    assert list(circles(node, seen=seen)) == []
    assert len(seen) > 25


def test_a_part_that_calls_back_is_found(node: Node) -> None:
    node.engine.slots.told = node.engine.claimer.slot_is_free  # type: ignore[attr-defined]

    assert list(circles(node)) == ["Slots → Claimer → Slots"]
