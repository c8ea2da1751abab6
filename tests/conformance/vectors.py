"""Reads the tables of this folder: one case per line, its reason beside it.

An instant is written with the offset of its zone, so that a reader can check it against a
wall clock. `next` lists the first instants after `after`, in order; a final null says that
there is none left.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OPTIONS = ("tz", "dialect", "dst_gap", "dst_fold", "day_match")


def table(name: str) -> Any:
    """Return the content of one table."""
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


def at(text: str) -> datetime:
    """Return the instant that a table names."""
    return datetime.fromisoformat(text).astimezone(UTC)


def expected(case: dict[str, Any]) -> list[datetime | None]:
    """Return the answers of a case, None for "nothing more"."""
    return [None if text is None else at(text) for text in case["next"]]


def questions(case: dict[str, Any]) -> list[tuple[datetime, datetime | None]]:
    """Return each moment to ask about with its answer; every answer is the next question."""
    answers = expected(case)
    return list(zip([at(case["after"]), *(answer for answer in answers if answer)], answers, strict=False))


def options(case: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a case as `cron` takes them."""
    chosen: dict[str, Any] = {key: case[key] for key in OPTIONS if key in case}
    return chosen | {key: at(case[key]) for key in ("start", "end") if key in case}
