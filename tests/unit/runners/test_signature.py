"""What a function wants, and where it comes from (S0-026)."""

from __future__ import annotations

import functools
from functools import partial
from typing import TYPE_CHECKING, Any, Optional

import pytest

from everytick.domain.payload import payload
from everytick.errors import InvalidPolicies
from everytick.runners.context import Context
from everytick.runners.context import Context as Told
from everytick.runners.signature import (
    Signature,
    Unfilled,
    is_async,
    may_ask_for_previous,
    refuse_unfilled,
    signature_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from everytick import runners


class Unrelated:
    """Another library's class, used under a confusing name below."""


def plain() -> None: ...
def with_context(ctx: Context) -> None: ...
def renamed(c: Told) -> None: ...
def optional(ctx: Context | None = None) -> None: ...
def old_style(ctx: Optional[Context] = None) -> None: ...  # noqa: UP045
def for_checkers_only(ctx: runners.context.Context) -> None: ...
def by_name(x: int, ctx: Context, *, y: str = "y") -> None: ...
def everything(ctx: Context, **given: Any) -> None: ...
def by_position(x: int, /) -> None: ...
async def coroutine(ctx: Context) -> None: ...


class Callable_:
    async def __call__(self, ctx: Context) -> None: ...

    def method(self, ctx: Context, x: int) -> None: ...


@pytest.mark.parametrize(
    "function",
    [with_context, renamed, optional, old_style, for_checkers_only, coroutine, Callable_(), partial(with_context)],
)
def test_the_context_is_found_by_its_annotation(function: Callable[..., Any]) -> None:
    found = signature_of(function)

    assert found.context in ("ctx", "c")
    assert found.context_first
    assert not found.takes_payload


def test_a_class_of_another_package_is_not_the_context() -> None:
    def function(ctx: Context) -> None: ...

    function.__annotations__["ctx"] = Unrelated
    assert signature_of(function).context is None

    function.__annotations__["ctx"] = "Unrelated"
    assert signature_of(function).context is None


def test_annotations_are_read_as_classes_too() -> None:
    def function(ctx: Context) -> None: ...

    for annotation in (Context, Context | None, Optional[Context]):  # noqa: UP045
        function.__annotations__["ctx"] = annotation
        assert signature_of(function).context == "ctx"


def test_other_parameters_are_filled_by_name_and_the_rest_of_the_payload_is_left() -> None:
    ctx = object()

    assert signature_of(by_name).arguments(ctx, {"x": 1, "z": 3}) == {"x": 1, "ctx": ctx}
    assert signature_of(everything).arguments(ctx, {"x": 1}) == {"x": 1, "ctx": ctx}
    assert signature_of(everything).arguments(ctx, {"ctx": "not this one"}) == {"ctx": ctx}
    assert signature_of(Callable_().method).arguments(ctx, {"x": 1}) == {"x": 1, "ctx": ctx}
    assert signature_of(plain).arguments(ctx, [1, 2]) == {}


def test_what_the_payload_lacks_is_named() -> None:
    with pytest.raises(Unfilled, match=r"does not fill 'x': trigger it with payload=\{\"x\": …\}"):
        signature_of(by_name).arguments(object(), None)
    with pytest.raises(Unfilled, match="the payload is a list"):
        signature_of(by_name).arguments(object(), [1])


def test_a_function_that_says_nothing_about_itself_wants_nothing() -> None:
    assert signature_of(dict.fromkeys) == Signature() or signature_of(dict.fromkeys).context is None


def test_a_job_whose_schedule_cannot_fill_a_parameter_is_refused_at_definition() -> None:
    with pytest.raises(InvalidPolicies, match=r"task 'first' needs 'x'.*payload=.*a default for 'x'"):
        refuse_unfilled("etl", "first", by_name, None)
    with pytest.raises(InvalidPolicies, match="needs 'x'"):
        refuse_unfilled("etl", "first", by_name, payload({"y": 1}))
    with pytest.raises(InvalidPolicies, match="needs 'x'"):
        refuse_unfilled("etl", "first", by_name, payload([1]))
    with pytest.raises(InvalidPolicies, match="'x' by position only"):
        refuse_unfilled("etl", "first", by_position, payload({"x": 1}))

    refuse_unfilled("etl", "first", by_name, payload({"x": None}))
    refuse_unfilled("etl", "first", optional, None)
    refuse_unfilled("etl", "first", everything, payload([1]))


def test_a_forgotten_annotation_is_guessed_at_in_the_refusal() -> None:
    with pytest.raises(InvalidPolicies, match="ctx: Context"):
        refuse_unfilled("etl", "first", lambda ctx: None, None)


def test_a_generator_is_refused_because_calling_it_does_nothing() -> None:
    def generates() -> Any:
        yield 1

    async def generates_too() -> Any:
        yield 1

    for function in (generates, generates_too):
        with pytest.raises(InvalidPolicies, match="is a generator"):
            refuse_unfilled("etl", "first", function, None)


def test_a_coroutine_function_is_known_through_partial_and_objects() -> None:
    assert is_async(coroutine)
    assert is_async(partial(coroutine))
    assert is_async(Callable_())
    assert not is_async(with_context)
    assert not is_async(Callable_().method)


def asks_directly(ctx: Context) -> object:
    return ctx.previous


def hands_on(ctx: Context) -> object:
    return asks_directly(ctx)


def hands_on_beside(ctx: Context) -> object:
    return print(ctx, ctx.attempt)  # noqa: T201 - never called


def closes_over(ctx: Context) -> object:
    return lambda: ctx.previous


def keeps(ctx: Context) -> object:
    kept = ctx
    return kept.previous


@functools.wraps(asks_directly)
def decorated(*positional: Any, **named: Any) -> object:
    return asks_directly(*positional, **named)


def uses_current() -> object:
    from everytick.runners.context import current

    return current().previous


def asks_for_others(ctx: Context) -> object:
    ctx.progress(1, 2, note=str(ctx.attempt))
    for _ in range(ctx.attempt):
        ctx.log.info("%s", ctx.scheduled_for)
    return ctx.results["a"] if ctx.late else ctx.payload


@pytest.mark.parametrize(
    "function", [asks_directly, hands_on, hands_on_beside, closes_over, keeps, decorated, uses_current, len]
)
def test_a_function_that_could_ask_for_the_previous_occurrence_is_known(function: Callable[..., Any]) -> None:
    """S0-027: the last run time is looked up for those who may want it."""
    assert may_ask_for_previous(function, signature_of(function))


@pytest.mark.parametrize("function", [asks_for_others, plain, coroutine])
def test_a_function_that_shows_it_does_not_ask_costs_no_question(function: Callable[..., Any]) -> None:
    assert not may_ask_for_previous(function, signature_of(function))
