"""YAML as data: what a text means, where each value stands, and what is refused."""

import math
from time import process_time
from typing import Any

import pytest

from everytick.sources.yaml_reader import LARGEST_FILE, MOST_MISTAKES, YamlNode, read_yaml


def root(text: str) -> YamlNode:
    document = read_yaml(text.encode(), "jobs.yaml")
    assert document.mistakes == ()
    assert document.root is not None
    return document.root


def mistakes(text: str | bytes) -> list[str]:
    document = read_yaml(text if isinstance(text, bytes) else text.encode(), "jobs.yaml")
    return [str(each) for each in document.mistakes]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("NO", "NO"),
        ("on", "on"),
        ("yes", "yes"),
        ("12:30", "12:30"),
        ("1:30:00", "1:30:00"),
        ("2026-01-31", "2026-01-31"),
        ("010", "010"),
        ("1_000", "1_000"),
        ("-x", "-x"),
        (".", "."),
        ("~", None),
        ("", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("0", 0),
        ("-17", -17),
        ("+1", 1),
        ("0o17", 15),
        ("0x1F", 31),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-.inf", -math.inf),
        ("'1'", "1"),
        ('"true"', "true"),
        ("''", ""),
        ("[a, {b: 2}]", ["a", {"b": 2}]),
        ("|\n  one\n  two\n", "one\ntwo\n"),
        ("9" * 400, "9" * 400),
    ],
)
def test_values_are_those_of_yaml_1_2(written: str, read: object) -> None:
    found = root(f"a: {written}").data["a"]

    assert found == read
    assert type(found) is type(read)


def test_what_is_no_number_at_all_is_a_number() -> None:
    assert math.isnan(root(".nan").data)


def test_keys_are_text_as_it_was_written() -> None:
    assert root("on: 1\n404: 2\nnull: 3\n").data == {"on": 1, "404": 2, "null": 3}


def test_every_value_and_key_has_its_place() -> None:
    found = root("version: 1\njobs:\n  a:\n    tags: [x,\n      y]\n")

    assert found.place_of(("version",)) == (1, 10)
    assert found.place_of(("jobs", "a", "tags", 1)) == (5, 7)
    assert found.place_of(("jobs", "a", "tags"), key=True) == (4, 5)
    assert found.place_of(("jobs", "a", "nowhere", "at all")) == (4, 5)


def test_an_alias_stands_for_the_value_of_its_anchor() -> None:
    assert root("a: &usual {max: 3}\nb: *usual\n").data == {"a": {"max": 3}, "b": {"max": 3}}


def test_a_byte_order_mark_is_no_content() -> None:
    assert root("\ufeffa: 1").data == {"a": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "jobs.yaml:1:1: the file is empty"),
        ("# nothing\n", "jobs.yaml:1:1: the file is empty"),
        ("a: 1\n---\nb: 2\n", "jobs.yaml:2:1: a second document begins"),
        ("%YAML 1.1\n---\na: 1\n", "jobs.yaml:1:1: files are read as YAML 1.2"),
        ("%TAG ! tag:x,2000:\n---\na: 1\n", "jobs.yaml:1:1: %TAG is refused"),
        ("a: !!python/object:os.system x\n", "jobs.yaml:1:4: the tag 'tag:yaml.org,2002:python/object:os.system'"),
        ("a: !secret x\n", "jobs.yaml:1:4: the tag '!secret' is refused"),
        ("!!str a: 1\n", "jobs.yaml:1:1: the tag 'tag:yaml.org,2002:str' is refused"),
        ("a: *b\n", "jobs.yaml:1:4: *b stands for nothing"),
        ("a: &b [*b]\n", "jobs.yaml:1:8: *b stands inside of what it stands for"),
        ("? [a, b]\n: 1\n", "jobs.yaml:1:3: a key must be plain text"),
        ("<<: {a: 1}\n", "jobs.yaml:1:1: << is not YAML 1.2"),
        ("a: [b: c: d]\n", "jobs.yaml:1:9: not YAML: did not find expected ',' or ']'"),
        ("a: [1\n", "jobs.yaml:2:1: not YAML: did not find expected"),
        (b"a: \xff\n", "jobs.yaml:1:4: this is not UTF-8"),
        ("a: 1".encode("utf-16"), "jobs.yaml:1:1: this is not UTF-8"),
        ("a: b\x07\n", "jobs.yaml:1:5: the control character U+0007 is refused"),
        ('a: "\\e[31mred"\n', "jobs.yaml:1:4: '\\x1b[31mred' holds the control character U+001B"),
        ('"\\0": 1\n', "jobs.yaml:1:1: '\\x00' holds the control character U+0000"),
    ],
)
def test_what_is_no_plain_data_is_refused_with_its_place(text: str | bytes, said: str) -> None:
    """S11: tags of Python objects among them."""
    [found] = mistakes(text)

    assert found.startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: * * * * *\n", 'jobs.yaml:1:5: a value that begins with * needs quotes: "* * * * *"'),
        (
            "b: 1\r\na: */5 * * * *  # often\r\n",
            'jobs.yaml:2:5: a value that begins with * needs quotes: "*/5 * * * *"',
        ),
        ("a:\n  - * * * * *\n", 'jobs.yaml:2:6: a value that begins with * needs quotes: "* * * * *"'),
        ("a: [* * * * *]\n", 'jobs.yaml:1:6: a value that begins with * needs quotes: "* * * * *"'),
        ("a: @daily\n", 'jobs.yaml:1:4: a value that begins with @ needs quotes: "@daily"'),
        ("a: `b`\n", 'jobs.yaml:1:4: a value that begins with ` needs quotes: "`b`"'),
        ("a: %d\n", 'jobs.yaml:1:4: a value that begins with % needs quotes: "%d"'),
        ("a: b: c\n", 'jobs.yaml:1:5: a value with a colon and a space in it needs quotes: "b: c"'),
        ("a: b@c: d\n", 'jobs.yaml:1:7: a value with a colon and a space in it needs quotes: "b@c: d"'),
        (
            'a:\n  - x: echo "b: c"  # says it\n',
            "jobs.yaml:2:15: a value with a colon and a space in it needs quotes: 'echo \"b: c\"'",
        ),
        ('a: 1\nb: "c\nd: 2\n', "jobs.yaml:2:4: the quote that begins here has no end"),
        ("a:\n  b c\n  d: 1\n", "jobs.yaml:3:4: the line above this one has no colon behind its key: b c"),
        (
            'a:\n  b: "x"\n   c: 1\n',
            "jobs.yaml:3:4: this line begins in column 4, and no line above it does: line up the keys of a table",
        ),
        (
            "a:\n  b: x\n   c: 1\n",
            "jobs.yaml:3:5: this line begins in column 4, and no line above it does: line up the keys of a table",
        ),
        (
            "a:\n  b: 1\n c: 1\n",
            "jobs.yaml:3:2: this line begins in column 2, and no line above it does: line up the keys of a table",
        ),
        (
            "a:\n- b: 1\n  c: 1\n # no\n - b: 1\n",
            "jobs.yaml:5:2: this line begins in column 2, and no line above it does: line up the keys of a table",
        ),
        ("a:\n\tb: 1\n", "jobs.yaml:2:1: YAML takes no tabs for indentation: use spaces"),
        ("a:\n  b: 1\n\tc: 1\n", "jobs.yaml:3:1: YAML takes no tabs for indentation: use spaces"),
        ("a:\n  \tb: 1\n", "jobs.yaml:2:3: YAML takes no tabs for indentation: use spaces"),
    ],
)
def test_frequent_slips_are_answered_with_what_to_type(text: str, said: str) -> None:
    """B4, B5: a cron text without quotes, tabs, a colon in a value, keys that are not lined up."""
    assert mistakes(text) == [said]


def test_every_key_that_comes_twice_is_named() -> None:
    """S11"""
    assert mistakes("a: 1\nb: {c: 1, c: 2}\na: 2\n") == [
        "jobs.yaml:2:11: the key 'c' stands here twice, first in line 2",
        "jobs.yaml:3:1: the key 'a' stands here twice, first in line 1",
    ]


def _bomb() -> str:
    """Nine times nine times …: a few hundred bytes that stand for 9**30 values."""
    first = "a0: &a0 [x, x, x, x, x, x, x, x, x]"
    return "\n".join([first, *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))])


HOSTILE: dict[str, Any] = {
    "anchors": _bomb(),
    "brackets": "[" * 500_000,
    "braces": "{a: " * 300_000,
    "dashes": "- " * 500_000,
    "many values": "[" + "a," * 500_000,
    "one key a hundred thousand times": "? a\n" * 100_000,
    "an open quote": "a: 'b\n" * 100_000,
    "too long": "x" * (LARGEST_FILE + 1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_in_no_time(name: str) -> None:
    """S11: within a second, which `bench/files.py` measures; here only a hang is noticed."""
    begun = process_time()
    found = mistakes(HOSTILE[name])

    assert process_time() - begun < 10
    assert 1 <= len(found) <= MOST_MISTAKES + 1
