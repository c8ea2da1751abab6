"""Redaction: secrets by name and by form become `***`, and other text stays as it is."""

import json
import logging
from datetime import UTC, datetime
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everytick.cli.logging import JsonLines, Lines
from everytick.domain.redaction import HIDDEN, RedactedLines, is_secret_name, redacted, redacted_data
from everytick.runners.outcomes import failed

CANARY = "c4n4ryVa1ue9Z"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"

SECRETS = [
    f"password={CANARY}",
    f"PGPASSWORD={CANARY} pg_dump app",
    f'{{"api_key": "{CANARY}"}}',
    f"{{'client_secret': '{CANARY} with blanks'}}",
    f"connect to postgresql://app:{CANARY}@db:5432/app failed",
    f"redis://:{CANARY}@cache/0",
    f"Authorization: Bearer {CANARY}",
    f"authorization: Basic {CANARY}==",
    f"curl -H 'X-Token: {CANARY}' https://example.org",
    f"GET /hook?token={CANARY}&page=2",
    f"secret => {CANARY}",
    f"db.password: {CANARY}",
    f"AWS key AKIA{'B' * 16}",
    f"token ghp_{'a' * 36}",
    f"xoxb-1234567890-{CANARY}",
    f"sk_live_{CANARY}",
    f"cookie is {JWT}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{CANARY}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN PRIVATE KEY-----\n{CANARY} (cut here)",
]

PLAIN = [
    "the password is wrong",
    "token expired at 09:00",
    "KeyError: 'orders'",
    "https://example.org/a/b?page=2",
    "connect to postgresql://db:5432/app failed",
    "user@example.org wrote 12 basic reports",
    "passed: 3, failed: 0",
    "it takes 3 tokens",
]


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_is_hidden(text: str) -> None:
    """S12: canary values in addresses, tokens, arguments, environment and exceptions."""
    found = redacted(text)
    assert HIDDEN in found
    for secret in (CANARY, JWT, "AKIAB", "ghp_a"):
        assert secret not in found


@pytest.mark.parametrize("text", PLAIN)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert redacted(text) == text


def test_what_is_beside_a_secret_stays() -> None:
    assert redacted(f"GET /hook?token={CANARY}&page=2 took 3 ms") == "GET /hook?token=***&page=2 took 3 ms"
    assert redacted(f"postgresql://app:{CANARY}@db/app?x=1") == "postgresql://app:***@db/app?x=1"


def test_values_are_hidden_by_their_names_at_any_depth() -> None:
    given_ = {
        "db": {"password": CANARY, "host": "db"},
        "tokens": ["a"],
        "token_count": 3,
        "password_file": "/run/secrets/db",
        "headers": [{"Authorization": f"Bearer {CANARY}"}],
        "note": f"login with password={CANARY}",
        "secret": None,
    }
    found = redacted_data(given_)
    assert CANARY not in json.dumps(found)
    assert found["db"]["host"] == "db"
    assert (found["token_count"], found["password_file"], found["secret"]) == (3, "/run/secrets/db", None)


@pytest.mark.parametrize(("name", "is_secret"), [("DB_PASSWORD", True), ("api-key", True), ("monkey", False)])
def test_names_of_secrets(name: str, is_secret: bool) -> None:
    assert is_secret_name(name) is is_secret


@given(st.text(max_size=200))
def test_a_redacted_text_has_nothing_more_to_hide(text: str) -> None:
    once = redacted(text)
    assert redacted(once) == once


def test_a_long_text_takes_no_long_time() -> None:
    for piece in ("password=", 'secret="', "a" * 50 + "://", "eyJ" + "a" * 60 + ".", "-----BEGIN PRIVATE KEY-----"):
        text = piece * (200_000 // len(piece))
        begun = process_time()
        redacted(text)
        assert process_time() - begun < 5


def test_the_error_of_an_attempt_is_stored_without_its_secret() -> None:
    """S12: an exception with an address in it."""
    found = failed(ConnectionError(f"postgresql://app:{CANARY}@db/app does not answer"))
    assert "postgresql://app:***@db/app does not answer" in found.error


def test_log_lines_are_written_without_secrets() -> None:
    record = logging.makeLogRecord(
        {"msg": "calling %s", "args": (f"https://u:{CANARY}@example.org/",), "levelname": "INFO", "api_key": CANARY}
    )
    record.created = datetime(2026, 10, 23, tzinfo=UTC).timestamp()
    for formatter in (Lines(colour=False), JsonLines()):
        assert CANARY not in formatter.format(record)


def kept(*parts: bytes) -> bytes:
    """Return what is kept of output that comes in these parts."""
    lines = RedactedLines()
    return b"".join([*map(lines.take, parts), lines.rest()])


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([b"plain\n", b"text"], b"plain\ntext"),
        ([b"password=hunter2\nnext\n"], b"password=***\nnext\n"),
        ([b"pass", b"word=hun", b"ter2\nnext"], b"password=***\nnext"),
        ([b"10 %\r", b"20 %\r"], b"10 %\r20 %\r"),
        ([b"\xff\xfe token=abc\n"], b"\xff\xfe token=***\n"),
        ([b"x" * 5_000, b"y"], b"x" * 5_000 + b"y"),
        (
            [b"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", b"AAAA\n", b"BBBB\n-----END RSA PRIVATE KEY-----\nafter\n"],
            b"***\nafter\n",
        ),
        ([b"-----BEGIN PRIVATE KEY-----\nMIIE\n", b"never ended"], b"***\n"),
    ],
)
def test_output_that_comes_in_parts_holds_no_secret(parts: list[bytes], text: bytes) -> None:
    """S12: captured output, before it is kept."""
    assert kept(*parts) == text


def test_output_is_there_with_the_end_of_its_line() -> None:
    """It is read while the attempt runs."""
    lines = RedactedLines()

    assert (lines.take(b"one\ntw"), lines.take(b"o\n")) == (b"one\n", b"two\n")
