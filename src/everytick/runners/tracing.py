"""Traces: a span for each attempt and each occurrence, where the application has set up OpenTelemetry.

All spans of an occurrence are in one trace, whichever nodes and programs make them: its id follows from the
occurrence's. A program that a task starts finds its place in `TRACEPARENT`, also where nothing records spans.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from everytick.domain.ids import is_occurrence_id
from everytick.domain.outcome import Failed, Outcome, Succeeded, TimedOut
from everytick.domain.trace_ids import span_id, trace_id, traceparent

if TYPE_CHECKING:
    from everytick.domain.steps import OccurrenceEnd, OccurrenceHeader
    from everytick.runners.context import Context

_log = logging.getLogger("everytick.runners")

VARIABLE = "TRACEPARENT"
_SDK = "opentelemetry.sdk.trace"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOSECONDS_IN_A_MICROSECOND = 1000
_GOOD = ("completed", "completed_with_errors")


def is_on() -> bool:
    """Whether the application records spans: it has loaded OpenTelemetry's SDK. Without it, nothing is loaded here."""
    return _SDK in sys.modules


def _tracer() -> Any:
    from opentelemetry import trace

    return trace.get_tracer("everytick")


def _root(occurrence_id: str) -> Any:
    """Return the place of an occurrence as a context: what all its spans are children of."""
    from opentelemetry import trace

    return trace.set_span_in_context(trace.NonRecordingSpan(_span_context(occurrence_id)))


def _span_context(occurrence_id: str) -> Any:
    from opentelemetry.trace import SpanContext, TraceFlags

    numbers = int(trace_id(occurrence_id), 16), int(span_id(occurrence_id), 16)
    return SpanContext(*numbers, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))


class AttemptSpan:
    """The span of one attempt, which is the current one while the attempt runs."""

    def __init__(self, context: Context) -> None:
        from opentelemetry import context as contexts
        from opentelemetry import trace

        self._span = _tracer().start_span(
            f"{context.job} {context.task}",
            context=_root(context.occurrence_id),
            attributes={
                "everytick.job.name": context.job,
                "everytick.task.name": context.task,
                "everytick.occurrence.id": context.occurrence_id,
                "everytick.attempt": context.attempt,
                "everytick.scheduled_time": context.scheduled_for.isoformat(),
            },
        )
        self._contexts = contexts
        self._token = contexts.attach(trace.set_span_in_context(self._span))

    def end(self, outcome: Outcome | None) -> None:
        """End the span with the outcome, None if the node ends."""
        from opentelemetry.trace import StatusCode

        self._contexts.detach(self._token)
        try:
            if outcome is None or not isinstance(outcome, Succeeded):
                self._span.set_attribute("error.type", _kind(outcome))
                self._span.set_status(StatusCode.ERROR)
            self._span.end()
        except Exception:  # noqa: BLE001, as above
            _log.exception("the span of an attempt is not recorded; its outcome is")


def attempt_span(context: Context) -> AttemptSpan | None:
    """Begin the span of an attempt. None if nothing records spans, or what records them fails: the attempt goes on."""
    if _SDK not in sys.modules:
        return None
    try:
        return AttemptSpan(context)
    except Exception:  # noqa: BLE001, what the application records spans with may raise anything
        _log.exception("the span of an attempt of job '%s' is not recorded; the attempt runs", context.job)
        return None


def describe_span(**attributes: str | int) -> None:
    """Add attributes to the current span if one is recorded: `process_pid` is written as `process.pid`."""
    if not is_on():
        return
    from opentelemetry import trace

    try:
        trace.get_current_span().set_attributes(
            {name.replace("_", "."): content for name, content in attributes.items()}
        )
    except Exception:  # noqa: BLE001, as above
        _log.exception("the span of an attempt lacks %s; the attempt runs", ", ".join(attributes))


def active_trace_id(occurrence: str | None) -> str | None:
    """Return the id of the trace that a log line is part of: that of the current span, else of the occurrence.

    None where nothing records spans, or the line is part of no trace. `occurrence` is what the line says of it: an
    application may say anything there, and only the id of an occurrence has a trace.
    """
    if not is_on():
        return None
    from opentelemetry import trace

    span = trace.get_current_span().get_span_context()
    if span.is_valid:
        return f"{span.trace_id:032x}"
    return trace_id(occurrence) if occurrence is not None and is_occurrence_id(occurrence) else None


def _kind(outcome: Outcome | None) -> str:
    if isinstance(outcome, Failed):
        return outcome.error_types[0].removeprefix("builtins.") if outcome.error_types else "failed"
    return "timeout" if isinstance(outcome, TimedOut) else "canceled"


def record_occurrence(job: str, header: OccurrenceHeader, end: OccurrenceEnd) -> None:
    """Record the span of an occurrence that has ended, from its start to its end."""
    from opentelemetry.trace import StatusCode

    life = end.life
    if life.started_at is None or life.ended_at is None:
        return
    span = _tracer().start_span(
        job,
        context=_root(header.id),
        start_time=_nanoseconds(life.started_at),
        attributes={
            "everytick.job.name": job,
            "everytick.occurrence.id": header.id,
            "everytick.status": str(life.status),
            "everytick.cause": str(header.cause),
            "everytick.scheduled_time": header.scheduled_for.isoformat(),
        },
    )
    if life.status not in _GOOD:
        span.set_status(StatusCode.ERROR)
    span.end(_nanoseconds(life.ended_at))


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * _NANOSECONDS_IN_A_MICROSECOND


def link_trigger(occurrence_id: str) -> None:
    """Link the span that asks for an occurrence, if there is one, to the trace of that occurrence."""
    if not is_on():
        return
    from opentelemetry import trace

    span = trace.get_current_span()
    if span.is_recording():
        span.add_link(_span_context(occurrence_id), {"everytick.occurrence.id": occurrence_id})


def traceparent_of(context: Context) -> str:
    """Return what a program that this attempt starts finds in its environment."""
    if is_on():
        from opentelemetry import trace

        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"
    return traceparent(context.occurrence_id, context.attempt_id)
