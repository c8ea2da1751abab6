"""`@value`: equal, hashed and shown as a dataclass is, with methods that all values share."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace
from importlib import import_module
from typing import Any

import pytest

import everytick
from everytick.domain.job import Job, Task
from everytick.domain.occurrence import Attempt, Occurrence, TaskRun
from everytick.domain.policies import OnCreate, Recovery, Retention
from everytick.domain.report import AttemptReport, Report, TaskReport
from everytick.domain.values import by_name, value

HELD_BY_USERS = (
    AttemptReport,
    Attempt,
    Job,
    Occurrence,
    OnCreate,
    Recovery,
    Report,
    Retention,
    Task,
    TaskReport,
    TaskRun,
)
"""What users are handed though no public name leads to it."""


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


@value
class Plain:
    name: str
    parts: tuple[int, ...] = ()


@value(frozen=True)
class Frozen:
    name: str
    parts: tuple[int, ...] = ()


def _copy(cls: type) -> Any:
    """A class of the same name and content: `value` changes what it is given."""
    namespace = {name: each for name, each in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    return type(cls.__name__, (), namespace)


@pytest.fixture(params=[value, value(frozen=True)], ids=["plain", "frozen"])
def decorate(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_value_is_equal_hashed_and_shown_as_a_dataclass_is(decorate: Any) -> None:
    standard = dataclass(slots=True, unsafe_hash=True)(_copy(Parcel))
    ours = decorate(_copy(Parcel))
    for arguments in (("a",), ("a", 4), ("a", 3, "there"), ("b", 3, "here", "fragile")):
        assert repr(ours(*arguments)) == repr(standard(*arguments))
        for others in (("a",), ("a", 4), ("a", 3, "there"), ("b", 3, "here", "solid")):
            assert (ours(*arguments) == ours(*others)) == (standard(*arguments) == standard(*others))
            if ours(*arguments) == ours(*others):
                assert hash(ours(*arguments)) == hash(ours(*others))
    assert ours("b", 3, "here", "fragile") == ours("b", 3, "here", "solid")


def test_values_of_two_classes_are_never_equal(decorate: Any) -> None:
    one, other = decorate(_copy(Parcel)), decorate(_copy(Parcel))
    assert one("a") != other("a")
    assert one("a") != "a"
    assert one("a").__eq__(other("a")) is NotImplemented


def test_two_values_of_a_class_without_fields_are_equal(decorate: Any) -> None:
    ours = decorate(_copy(Empty))
    assert ours() == ours()
    assert hash(ours()) == hash(ours())
    assert repr(ours()) == f"{ours.__qualname__}()"


def test_a_value_is_slotted_and_can_be_replaced(decorate: Any) -> None:
    ours = decorate(_copy(Parcel))
    parcel = ours("a")
    assert replace(parcel, weight=5) == ours("a", 5)
    assert [each.name for each in fields(parcel)] == ["name", "weight", "place", "label"]
    assert not hasattr(parcel, "__dict__")


def test_a_value_keeps_the_methods_its_class_defines(decorate: Any) -> None:
    ours = decorate(_copy(Named))
    assert repr(ours("a")) == "<a>"
    assert ours("a") == ours("a")


@pytest.mark.parametrize("cls", [Plain, Frozen])
def test_a_value_can_be_copied_and_pickled(cls: Any) -> None:
    one = cls("a", (1, 2))
    assert copy.deepcopy(one) == copy.copy(one) == pickle.loads(pickle.dumps(one)) == one


def test_the_first_value_of_a_class_is_built_as_every_other(decorate: Any) -> None:
    class Box:
        name: str
        parts: list[int] = field(default_factory=list)
        size: int = 3
        label: str = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "label", f"{self.name}/{self.size}")

    cls = decorate(Box)
    with pytest.raises(TypeError, match=r"Box.__init__\(\) missing 1 required positional argument: 'name'"):
        cls()
    first, second = cls("a"), cls("a")
    assert first == second == cls(name="a", parts=[], size=3)
    assert first.parts is not second.parts
    assert (first.label, cls("b", size=4).label) == ("a/3", "b/4")
    with pytest.raises(TypeError, match="unexpected keyword argument 'weight'"):
        cls("a", weight=3)


def test_a_value_built_by_name_is_the_value_that_its_class_builds(decorate: Any) -> None:
    cls = decorate(_copy(Parcel))
    built = by_name(cls)

    for arguments in ({"name": "a"}, {"name": "a", "weight": 4}, {"weight": 3, "name": "b", "place": "there"}):
        assert built(**arguments) == cls(**arguments)
        assert type(built(**arguments)) is cls
    with pytest.raises(TypeError, match=r"Parcel\.by_name\(\) .* unexpected keyword"):
        built(name="a", colour="red")
    with pytest.raises(TypeError, match=r"Parcel\.by_name\(\) missing"):
        built()


def test_what_is_built_by_name_shares_no_default_that_is_made_anew() -> None:
    """A default_factory is called for each value, and __post_init__ after the fields are set."""

    @dataclass
    class Line:
        name: str
        rows: list[int] = field(default_factory=list)
        shown: str = field(init=False)

        def __post_init__(self) -> None:
            self.shown = f"<{self.name}>"

    built = by_name(Line)
    first, second = built(name="a"), built(name="b")

    assert first.rows is not second.rows
    assert (first.shown, second.shown) == ("<a>", "<b>")


def test_only_a_frozen_value_refuses_a_change_at_run_time() -> None:
    plain: Any = Plain("a")
    frozen: Any = Frozen("a")
    plain.name = "b"

    assert plain == Plain("b")
    with pytest.raises(FrozenInstanceError):
        frozen.name = "b"
    with pytest.raises(FrozenInstanceError):
        del frozen.name


def test_the_values_that_users_hold_are_frozen() -> None:
    public = [getattr(import_module(f"everytick.{home}"), name) for name, home in everytick._HOME_OF.items()]
    values: set[Any] = {each for each in public if inspect.isclass(each) and is_dataclass(each)} | set(HELD_BY_USERS)

    for each in values:
        unfilled = object.__new__(each)
        with pytest.raises(FrozenInstanceError):
            setattr(unfilled, fields(each)[0].name, None)
    assert len(values) > 15
