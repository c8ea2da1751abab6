"""JSON Schema of every policy, for editors: they complete and underline while somebody writes.

It says what is usually written; what is accepted is decided by the policies themselves, which
are read from files exactly as they are from Python.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from everytick.domain.policies import (
    Failure,
    FirstSight,
    LateOverlap,
    Mode,
    OnOrphan,
    OnStoreOutage,
    Overlap,
    Strategy,
    UpdatePolicy,
)

Schema = dict[str, Any]

_LENGTH = r"^(P.+|([0-9]+(\.[0-9]+)?(ms|us|[wdhms]) ?)+)$"
DURATION: Schema = {"type": "string", "pattern": _LENGTH, "examples": ["30s", "1h30m", "PT5M"]}
TEXT: Schema = {"type": "string"}
NAMES: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
SWITCH: Schema = {"type": "boolean"}
SCHEDULE: Schema = {
    "description": "When: a cron expression, every 10s, R…/…, once: …, after: …; several are a list.",
    "anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}],
    "examples": ["30 2 * * 1-5", "every 10s", "R12/2024-01-31T09:00:00[Europe/Berlin]/P1M"],
}
COMMAND: Schema = {
    "description": "A program: text for sh -c, or a list of arguments without a shell.",
    "anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}],
}
CALL: Schema = {
    "description": "A function to call: package.module:function.",
    "type": "string",
    "pattern": r"^[^\s:]+:[^\s:]+$",
}
ENVIRONMENT: Schema = {"type": "object", "additionalProperties": TEXT}


def or_null(schema: Schema) -> Schema:
    """Return the schema of the same, or none at all."""
    return {"anyOf": [schema, {"type": "null"}]}


def words(kind: Iterable[StrEnum] | type[StrEnum], description: str) -> Schema:
    """Return the schema of one word out of several."""
    return {"enum": [str(each) for each in kind], "description": description}


def table(required: tuple[str, ...] = (), **parts: Schema) -> Schema:
    """Return the schema of a table with these keys and no others."""
    found: Schema = {"type": "object", "additionalProperties": False, "properties": parts}
    return {**found, "required": list(required)} if required else found


def _count(least: int = 0) -> Schema:
    return {"type": "integer", "minimum": least}


HTTP: Schema = {
    "description": "A request: its address, or a table.",
    "anyOf": [
        {"type": "string", "format": "uri"},
        table(
            ("url",),
            url={"type": "string", "format": "uri"},
            method={"enum": ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]},
            headers={"type": "object", "additionalProperties": {"anyOf": [TEXT, table(("env",), env=TEXT)]}},
            json={},
            expect={"type": "array", "items": {"type": "integer", "minimum": 100, "maximum": 599}},
            timeout=DURATION,
        ),
    ],
}

_BOUNDS = {"max_occurrences": _count(1), "max_duration": DURATION}

POLICY_SCHEMAS: dict[str, Schema] = {
    "timezone": {"type": "string", "examples": ["Europe/Berlin", "UTC"]},
    "overlap": words(Overlap, "What an instant does that comes while the job is busy."),
    "max_concurrent": or_null(_count(1)),
    "mode": words(Mode, "In which order the tasks start."),
    "failure": words(Failure, "What a task that failed for good means for the others."),
    "retry": or_null(
        table(
            ("max", "interval"),
            max=or_null(_count()),
            interval=DURATION,
            factor={"type": "number", "exclusiveMinimum": 0},
            max_interval=or_null(DURATION),
            jitter={"type": "number", "minimum": 0, "maximum": 1},
            on=NAMES,
            superseded_by_next=SWITCH,
        )
    ),
    "execution_timeout": or_null(DURATION),
    "task_timeout": or_null(DURATION),
    "recovery": {
        "description": "Which late instants are still run.",
        "anyOf": [
            words(Strategy, "Which late instants are still run."),
            table(("strategy",), strategy=words(Strategy, ""), **_BOUNDS),
        ],
    },
    "late_overlap": words(LateOverlap, "How late instants come in while the job is busy."),
    "grace": DURATION,
    "on_create": {
        "anyOf": [
            words([each for each in FirstSight if each is not FirstSight.BACKFILL_FROM], "Where a new job begins."),
            table(("backfill_from",), backfill_from=TEXT),
        ]
    },
    "on_orphan": words(OnOrphan, "What becomes of an occurrence whose node fell silent."),
    "update_policy": words(UpdatePolicy, "When a changed schedule counts."),
    "priority": {"type": "integer", "minimum": -32_768, "maximum": 32_767},
    "queue": TEXT,
    "spread": or_null(DURATION),
    "jitter": or_null(DURATION),
    "payload": {"description": "What every occurrence is given, unless somebody gives it something else."},
    "description": {"type": "string", "maxLength": 10_000},
    "tags": NAMES,
    "enabled": SWITCH,
    "start": or_null(TEXT),
    "end": or_null(TEXT),
    "skip_if_successful": SWITCH,
    "stop_schedule": or_null(SCHEDULE),
    "restart_schedule": or_null(SCHEDULE),
    "max_queued": _count(1),
    "late_cap": _count(1),
    "max_lost": or_null(_count()),
    "on_store_outage": words(OnStoreOutage, "Whether instants wait for a store that cannot be reached."),
    "retention": table(success=or_null(DURATION), failure=or_null(DURATION), keep_last=_count()),
    "runner": or_null(TEXT),
}
