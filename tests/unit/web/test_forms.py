"""Forms are made from types, and what was typed is read by them."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import pytest
from annotated_types import Ge, Le

from everytick import Context
from everytick.domain.config import UNSET
from everytick.web.fields import FieldKind, FormField, fields_of, fields_of_kinds, fields_of_tasks, with_defaults
from everytick.web.forms import moment, read_fields, typed_defaults


class Region(Enum):
    EU = "eu"
    US = "us"


@dataclass
class Range:
    first: int
    last: int = 9


def report(
    ctx: Context,
    day: date,
    at: datetime | None = None,
    full: bool = False,
    regions: list[str] = ["eu", "us"],  # noqa: B006
    size: Annotated[int, Ge(1), Le(9)] = 5,
    mode: Literal["fast", "slow"] = "fast",
    region: Region = Region.EU,
    span: Range = Range(1),  # noqa: B008
    anything: dict[str, int] | None = None,
    *,
    ratio: float = 0.5,
    note: str = "",
) -> None: ...


FIELDS = {field.name: field for field in fields_of(report)}


def read(function: Any, typed: dict[str, str]) -> tuple[dict[str, Any], list[str]]:
    found = read_fields(fields_of(function), typed, UTC)
    return found.payload, [f"{each.name} {each.text}" for each in found.mistakes]


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("day", FieldKind.DATE, "date, required"),
        ("at", FieldKind.MOMENT, "date and time"),
        ("full", FieldKind.SWITCH, "yes or no"),
        ("regions", FieldKind.LINES, "list of text, one per line"),
        ("size", FieldKind.WHOLE, "whole number, 1 to 9"),
        ("mode", FieldKind.CHOICE, "choice"),
        ("region", FieldKind.CHOICE, "choice"),
        ("span", FieldKind.MODEL, "fields"),
        ("anything", FieldKind.JSON, "JSON"),
        ("ratio", FieldKind.NUMBER, "number"),
        ("note", FieldKind.TEXT, "text"),
    ],
)
def test_each_type_has_its_field(name: str, kind: FieldKind, words: str) -> None:
    assert (FIELDS[name].kind, FIELDS[name].words) == (kind, words)


def test_the_context_is_no_field_and_the_order_is_that_of_the_function() -> None:
    assert list(FIELDS)[:4] == ["day", "at", "full", "regions"]


def test_what_holds_if_a_field_is_left_is_said() -> None:
    assert FIELDS["regions"].if_left == 'left empty: ["eu", "us"]'
    assert FIELDS["day"].if_left == ""
    assert FIELDS["region"].choices == ("eu", "us")
    assert FIELDS["region"].default == "eu"
    assert [part.name for part in FIELDS["span"].fields] == ["first", "last"]


def test_what_was_typed_becomes_json() -> None:
    typed = {
        "p.day": "2026-10-23",
        "p.at": "2026-10-23T02:30",
        "p.full": "true",
        "p.regions": "eu\n\n us ",
        "p.size": "7",
        "p.mode": "slow",
        "p.region": "us",
        "p.span.first": "3",
        "p.anything": '{"a": 1}',
        "p.ratio": "0.25",
        "p.note": "one\r\ntwo",
    }

    assert read(report, typed) == (
        {
            "day": "2026-10-23",
            "at": "2026-10-23T02:30:00+00:00",
            "full": True,
            "regions": ["eu", "us"],
            "size": 7,
            "mode": "slow",
            "region": "us",
            "span": {"first": 3},
            "anything": {"a": 1},
            "ratio": 0.25,
            "note": "one\ntwo",
        },
        [],
    )


def test_an_empty_field_is_not_given_and_a_required_one_is_a_mistake() -> None:
    assert read(report, {}) == ({"full": False}, ["p.day is required"])


@pytest.mark.parametrize(
    ("name", "text", "mistake"),
    [
        ("p.day", "yesterday", "is no date"),
        ("p.at", "noon", "is no date and time"),
        ("p.size", "7.5", "is no whole number"),
        ("p.size", "10", "is more than 9"),
        ("p.size", "0", "is less than 1"),
        ("p.ratio", "nan", "is no number that JSON has"),
        ("p.mode", "medium", "is none of fast, slow"),
        ("p.anything", "{", "is no JSON"),
    ],
)
def test_a_mistake_says_what_is_wrong(name: str, text: str, mistake: str) -> None:
    _, mistakes = read(report, {"p.day": "2026-10-23", name: text})

    assert len(mistakes) == 1
    assert mistakes[0].startswith(name)
    assert mistake in mistakes[0]


def test_parts_of_a_model_are_checked_once_one_of_them_is_given() -> None:
    _, mistakes = read(report, {"p.day": "2026-10-23", "p.span.last": "4"})

    assert mistakes == ["p.span.first is required"]


def test_a_time_without_an_offset_is_in_the_zone_of_the_job() -> None:
    assert moment("2026-07-01T02:30", ZoneInfo("Europe/Berlin")).astimezone(UTC).hour == 0


def test_several_tasks_share_one_form_and_what_one_requires_is_required() -> None:
    def first(day: str = "today") -> None: ...
    def second(day: str, size: int = 1) -> None: ...

    assert [(field.name, field.is_required) for field in fields_of_tasks([first, second])] == [
        ("day", True),
        ("size", False),
    ]


def test_a_stored_definition_has_fields_by_its_kinds() -> None:
    found = fields_of_kinds([(("*", "any"), ("day", "str"), ("size", "int|None"), ("is_full", "bool")), None])

    assert [(field.name, field.kind) for field in found] == [
        ("day", FieldKind.TEXT),
        ("size", FieldKind.WHOLE),
        ("is_full", FieldKind.CHOICE),
    ]
    assert read_fields(found, {"p.size": "null", "p.is_full": "true"}, UTC).payload == {"size": None, "is_full": True}


def test_the_payload_of_the_job_is_what_stands_in_the_form() -> None:
    fields = with_defaults(fields_of(report), {"day": "2026-01-01", "regions": ["x", "y"], "span": {"first": 2}})
    typed = typed_defaults(fields)

    assert typed["p.day"] == "2026-01-01"
    assert typed["p.regions"] == "x\ny"
    assert typed["p.span.first"] == "2"
    assert typed["p.full"] == "false"
    assert read_fields(fields, typed, UTC).payload["day"] == "2026-01-01"


def test_annotations_that_mean_nothing_here_are_asked_for_as_json() -> None:
    def odd(what: "Unknown", other=3) -> None: ...  # type: ignore[no-untyped-def,name-defined] # noqa: F821

    assert [(field.name, field.kind, field.schema) for field in fields_of(odd)] == [
        ("what", FieldKind.JSON, "Unknown"),
        ("other", FieldKind.JSON, ""),
    ]
    assert FormField("x", FieldKind.TEXT).default is UNSET
