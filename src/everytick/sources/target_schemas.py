"""JSON Schema of what a task does, for editors: a call, a command, a request or the target of an engine."""

from everytick.domain.policy_readers import DURATION, TEXT, Schema, described, table

COMMAND: Schema = {
    "description": "A program: text for sh -c, or a list of arguments without a shell.",
    "anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}],
}
CALL: Schema = {
    "description": "A function to call: package.module:function.",
    "type": "string",
    "pattern": r"^[^\s:]+:[^\s:]+$",
}
ENVIRONMENT: Schema = {
    "description": "Environment variables of a command, beside the node's own.",
    "type": "object",
    "additionalProperties": TEXT,
}
ENGINE_TARGET: Schema = {
    "description": "What the engine that `runner` names is to call, such as tasks.send_report of Celery.",
    "type": "string",
    "minLength": 1,
}
ENGINE_OPTIONS: Schema = {
    "description": "How Celery brings the task to a worker, or what it takes of a Ray cluster.",
    **table(
        (),
        queue=TEXT,
        priority={"type": "integer"},
        exchange=TEXT,
        routing_key=TEXT,
        num_cpus={"type": "number", "minimum": 0},
        num_gpus={"type": "number", "minimum": 0},
    ),
}
FOLDER = described(TEXT, "The folder that a command starts in.")
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
