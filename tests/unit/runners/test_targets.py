"""What a task does, as text in a store."""

from datetime import timedelta

import pytest

from everytick.domain.payload import payload
from everytick.errors import InvalidPolicies
from everytick.runners.targets import (
    CallTarget,
    CommandTarget,
    EnvironmentValue,
    FunctionTarget,
    HttpTarget,
    call_target,
    command_target,
    http_target,
    read_target,
)


def test_every_kind_of_target_reads_back_as_it_was_written() -> None:
    assert read_target("pkg.mod:Class.method") == FunctionTarget("pkg.mod:Class.method")
    assert read_target(call_target("pkg.mod:fn")) == CallTarget("pkg.mod:fn")
    assert read_target(command_target("ls | wc")) == CommandTarget("ls | wc")
    assert read_target(command_target(["a", "{{ scratch }}/b"], env={"B": "2", "A": "1"}, cwd="/srv")) == CommandTarget(
        ("a", "{{ scratch }}/b"), (("A", "1"), ("B", "2")), "/srv"
    )
    assert read_target(
        http_target(
            "https://example.org/a?b=c",
            method="POST",
            headers={"X-A": "b", "Authorization": EnvironmentValue("TOKEN")},
            json={"a": 1},
            expect=[202],
            timeout=timedelta(seconds=5),
        )
    ) == HttpTarget(
        "POST",
        "https://example.org/a?b=c",
        (("X-A", "b"), ("Authorization", EnvironmentValue("TOKEN"))),
        payload({"a": 1}),
        (202,),
        timedelta(seconds=5),
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not JSON"),
        ("{}", "names none of command, http, call"),
        ('{"kommand": "x"}', "names none"),
        ('{"command": []}', "neither shell text nor a list"),
        ('{"command": "  "}', "says nothing to run"),
        ('{"command": ["", "x"]}', "names no program"),
        ('{"command": ["x", 1]}', "is not text"),
        ('{"command": ["x\\u0000"]}', "is not text"),
        ('{"command": "x", "enf": {}}', "not part of a command"),
        ('{"command": "x", "env": {"A B": "c"}}', "name of an environment variable"),
        ('{"command": "x", "env": {"A": 1}}', "is not text"),
        ('{"command": "x", "env": ["A"]}', "table of environment variables"),
        ('{"command": "x", "cwd": 1}', "cwd must be"),
        ('{"command": ["x", "{{ scrach }}"]}', "did you mean"),
        ('{"command": ["x", "{{ ctx }}"]}', "one of job, task"),
        ('{"command": "rm {{ scratch }}/x"}', r"\"\$EVERYTICK_SCRATCH\""),
        ('{"command": ["x"], "env": {"A": "{{ scratch }}"}}', "outside of a list of arguments"),
        ('{"command": ["x"], "cwd": "{{ scratch }}"}', "outside of a list of arguments"),
        ('{"call": "os"}', "is not a function's place"),
        ('{"call": "os:__dict__"}', "two underscores"),
        ('{"call": "a.b:c.__class__.d"}', "two underscores"),
        ('{"call": ["os:system"]}', "is not a function's place"),
        ('{"http": "https://example.org"}', "is not a request"),
        ('{"http": {}}', "url must be"),
        ('{"http": {"url": "file:///etc/passwd"}}', "neither http: nor https:"),
        ('{"http": {"url": "gopher://x/"}}', "neither http: nor https:"),
        ('{"http": {"url": "https:example"}}', "no host"),
        ('{"http": {"url": "http://example.org /"}}', "blanks"),
        ('{"http": {"url": "http://example.org:99999/"}}', "is not an address"),
        ('{"http": {"url": "http://example.org/", "method": "BREW"}}', "is not a method"),
        ('{"http": {"url": "http://example.org/", "headers": {"A\\r\\nB": "c"}}}', "is not a header"),
        ('{"http": {"url": "http://example.org/", "headers": {"Host": "c"}}}', "is not a header"),
        ('{"http": {"url": "http://example.org/", "headers": {"A": "b\\r\\nC: d"}}}', "not printable"),
        ('{"http": {"url": "http://example.org/", "headers": {"A": {"file": "x"}}}}', "environment variable"),
        ('{"http": {"url": "http://example.org/", "expect": [99]}}', "is not a status"),
        ('{"http": {"url": "http://example.org/", "expect": 200}}', "list of statuses"),
        ('{"http": {"url": "http://example.org/", "timeout": 5}}', "timeout of the request"),
        ('{"http": {"url": "http://example.org/", "timeout": "0s"}}', "no time to answer"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(text: str, says: str) -> None:
    with pytest.raises(InvalidPolicies, match=says) as refused:
        read_target(text, "etl")

    assert refused.value.job == "etl"


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    """S12"""
    with pytest.raises(InvalidPolicies, match="carries a name or password") as refused:
        http_target("https://user:hunter2@example.org/")

    assert "hunter2" not in str(refused.value)
    assert "user" not in str(refused.value)


def test_a_target_that_is_not_json_is_refused_where_it_is_written() -> None:
    with pytest.raises(InvalidPolicies, match="is not JSON"):
        http_target("https://example.org/", json=object())
