"""The part of a form that is a job's payload: fields from the types of its functions, else one field of JSON."""

from __future__ import annotations

import inspect
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

from everytick.domain.parameters import EVERY_KEY
from everytick.domain.values import value
from everytick.web.fields import FieldKind, FormField, fields_of_kinds, fields_of_tasks, with_defaults
from everytick.web.forms import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from everytick.app import Everytick
    from everytick.domain.job import Job

WHOLE = "payload"
"""The name of the field for a payload of which no types are known."""


@value(frozen=True)
class PayloadForm:
    """The fields of a payload. `signature` is what they were made from, `own` is the payload of the job itself.

    Times without an offset are in the job's zone.
    """

    fields: Sequence[FormField] = ()
    signature: str = ""
    own: Any = None
    zone: tzinfo = UTC
    zone_name: str = "UTC"
    is_whole: bool = False

    def merged(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload to ask for: the job's own with what was given. Empty if nothing differs from it."""
        own = self.own if isinstance(self.own, dict) else {}
        if self.is_whole:
            whole = given.get(WHOLE)
            given = whole if isinstance(whole, dict) else {}
        merged = {**own, **given}
        return {} if merged == own else merged

    def inputs(self) -> Iterator[tuple[FormField, str]]:
        """Give every field that is an input, with the name of it."""
        yield from _inputs(self.fields, PREFIX)


def _inputs(fields: Sequence[FormField], prefix: str) -> Iterator[tuple[FormField, str]]:
    for field in fields:
        if field.kind is FieldKind.MODEL:
            yield from _inputs(field.fields, f"{prefix}{field.name}.")
        else:
            yield field, f"{prefix}{field.name}"


def payload_form(tick: Everytick, job: Job) -> PayloadForm:
    """Return the form of a job's payload: by the functions that are defined here, else by the stored definition."""
    own = None if job.settings.payload is None else job.settings.payload.read()
    zone_name, zone = _zone(job.settings.timezone)
    defined = next((definition for definition in tick.definitions if definition.job.id == job.id), None)
    functions = () if defined is None else tuple(defined.functions.values())
    kinds = [task.parameters for task in job.tasks]
    fields = fields_of_tasks(functions) if functions else fields_of_kinds(kinds)
    if fields:
        signature = _signature(functions[0]) if len(functions) == 1 else ""
        return PayloadForm(with_defaults(fields, own), signature, own, zone, zone_name)
    takes_any = any(kind is None or EVERY_KEY in dict(kind) for kind in kinds)
    if not takes_any and own is None:
        return PayloadForm(zone=zone, zone_name=zone_name)
    whole = FormField(WHOLE, FieldKind.JSON, may_be_none=True, schema="an object: its keys are added to the job's own")
    return PayloadForm((whole,), "", own, zone, zone_name, is_whole=True)


def _signature(function: Any) -> str:
    """Return the signature as its author wrote it, without its context and the types' modules."""
    from everytick.runners.signature import signature_of

    inner, context = inspect.unwrap(function), signature_of(function).context
    try:
        own = inspect.signature(inner)
    except ValueError:
        return ""
    asked = [parameter for name, parameter in own.parameters.items() if name != context]
    text = str(own.replace(parameters=asked, return_annotation=inspect.Signature.empty))
    name = getattr(inner, "__name__", "")
    for module in ("datetime.", "typing.", "everytick.", f"{getattr(inner, '__module__', '')}."):
        text = text.replace(module, "")
    return f"{name}{text}"


def _zone(name: str) -> tuple[str, tzinfo]:
    from everytick.web.framing import zone_named

    return zone_named(name)
