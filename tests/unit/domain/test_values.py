"""Values in production, where they share what a dataclass writes for each class: they must be as values under test."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

import pytest

from everytick.domain.values import light


class Parcel:
    name: str
    weight: int = 3
    place: str = field(default="here", repr=False)
    label: str = field(default="", compare=False)


class Empty:
    """Nothing to tell."""


class Named:
    name: str

    def __repr__(self) -> str:
        return f"<{self.name}>"


def _copy(cls: type) -> Any:
    """A class of the same name and content: `light` changes what it is given."""
    namespace = {name: each for name, each in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    return type(cls.__name__, (), namespace)


def test_a_light_value_is_equal_hashed_and_shown_as_a_dataclass_is() -> None:
    heavy = dataclass(slots=True, unsafe_hash=True)(_copy(Parcel))
    ours = light(_copy(Parcel))
    for arguments in (("a",), ("a", 4), ("a", 3, "there"), ("b", 3, "here", "fragile")):
        assert repr(ours(*arguments)) == repr(heavy(*arguments))
        for others in (("a",), ("a", 4), ("a", 3, "there"), ("b", 3, "here", "solid")):
            assert (ours(*arguments) == ours(*others)) == (heavy(*arguments) == heavy(*others))
            if ours(*arguments) == ours(*others):
                assert hash(ours(*arguments)) == hash(ours(*others))
    assert ours("b", 3, "here", "fragile") == ours("b", 3, "here", "solid")


def test_light_values_of_two_classes_are_never_equal() -> None:
    one, other = light(_copy(Parcel)), light(_copy(Parcel))
    assert one("a") != other("a")
    assert one("a") != "a"
    assert one("a").__eq__(other("a")) is NotImplemented


def test_a_light_value_without_content_equals_its_like() -> None:
    ours = light(_copy(Empty))
    assert ours() == ours()
    assert hash(ours()) == hash(ours())
    assert repr(ours()) == f"{ours.__qualname__}()"


def test_a_light_value_is_slotted_and_can_be_replaced() -> None:
    ours = light(_copy(Parcel))
    parcel = ours("a")
    assert replace(parcel, weight=5) == ours("a", 5)
    assert [each.name for each in fields(parcel)] == ["name", "weight", "place", "label"]
    with pytest.raises(AttributeError):
        parcel.color = "red"


def test_what_a_light_value_says_of_itself_stays() -> None:
    ours = light(_copy(Named))
    assert repr(ours("a")) == "<a>"
    assert ours("a") == ours("a")
