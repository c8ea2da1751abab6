"""Signatures: what a task's function wants, and where that comes from.

A parameter annotated `Context` is given the context; every other one is filled by name
from the payload, which is then a JSON object.
"""

import dis
import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from types import CodeType, UnionType
from typing import Any, Union, get_args, get_origin

from everytick.domain.parameters import ANY, EVERY_KEY, KINDS, Parameters
from everytick.domain.payload import Payload
from everytick.domain.values import value
from everytick.errors import InvalidPolicies, shown
from everytick.runners.context import Context

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_AS_TEXT = re.compile(r"^(?:[\w.]+\.)?Context$")


class Unfilled(TypeError):
    """The payload lacks an argument that the function needs."""


@value
class Signature:
    """The parameters of one function: which one takes the context, which must and which may be filled."""

    context: str | None = None
    context_first: bool = False
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    nameless: tuple[str, ...] = ()
    takes_all: bool = False

    @property
    def takes_payload(self) -> bool:
        """Whether the function takes anything from the payload."""
        return bool(self.required or self.optional or self.takes_all)

    def missing(self, given: Mapping[str, object]) -> tuple[str, ...]:
        """Return the required parameters that a payload does not fill."""
        return tuple(name for name in self.required if name not in given)

    def arguments(self, context: Any, given: object) -> dict[str, object]:
        """Return the arguments for a call of the function."""
        arguments: dict[str, object] = {} if self.context is None else {self.context: context}
        if not self.takes_payload:
            return arguments
        filled = _object_of(given, self)
        if missing := self.missing(filled):
            raise Unfilled(f"the payload does not fill {_listed(missing)}: trigger it with {_example(missing)}")
        known = filled if self.takes_all else {key: filled[key] for key in filled if key in self._names}
        return {**known, **arguments}

    @property
    def _names(self) -> tuple[str, ...]:
        return (*self.required, *self.optional)


def signature_of(function: Callable[..., Any]) -> Signature:
    """Return a function's signature. A function whose signature cannot be read is called without arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some callables written in C
        return Signature()
    names = getattr(_unwrapped(function), "__globals__", {})
    context = next((parameter.name for parameter in parameters if _is_context(parameter.annotation, names)), None)
    others = [parameter for parameter in parameters if parameter.name != context]
    return Signature(
        context=context,
        context_first=context is not None and _comes_first(context, list(parameters)),
        required=tuple(
            parameter.name for parameter in others if parameter.kind in _NAMED and parameter.default is parameter.empty
        ),
        optional=tuple(
            parameter.name
            for parameter in others
            if parameter.kind in _NAMED and parameter.default is not parameter.empty
        ),
        nameless=tuple(
            parameter.name
            for parameter in others
            if parameter.kind is parameter.POSITIONAL_ONLY and parameter.default is parameter.empty
        ),
        takes_all=any(parameter.kind is parameter.VAR_KEYWORD for parameter in others),
    )


def refuse_unfilled(
    job: str, task: str, function: Callable[..., Any], payload: Payload | None, *, is_on_request: bool = False
) -> None:
    """Raise unless the definition's own payload has the arguments that the function needs.

    A job that runs only on request gets them with each request.
    """
    where = f"task '{shown(task)}'"
    if inspect.isgeneratorfunction(_unwrapped(function)) or inspect.isasyncgenfunction(_unwrapped(function)):
        raise InvalidPolicies(job, f"{where} is a generator, and calling it does nothing", ("a function that returns",))
    signature = signature_of(function)
    if signature.nameless:
        reason = f"{where} takes {_listed(signature.nameless)} by position only, and a payload fills by name"
        raise InvalidPolicies(job, reason, ("the same parameter without the `/`",))
    if not signature.required:
        return
    if signature.required[0] == "self" and "." in getattr(function, "__qualname__", ""):
        reason = f"{where} is a method, and a node has no object to call it on"
        raise InvalidPolicies(job, reason, ("a function", "a bound method: tick.job(…)(the_object.method)"))
    given = {} if payload is None else payload.read()
    missing = signature.missing(given) if isinstance(given, dict) else signature.required
    if missing and not is_on_request:
        reason = f"{where} needs {_listed(missing)}, and the payload of this definition does not fill it"
        raise InvalidPolicies(job, reason, tuple(_ways(missing)))


def parameters_of(function: Callable[..., Any]) -> Parameters:
    """Return what the function takes from a payload, with the kinds of JSON that its annotations name."""
    signature = signature_of(function)
    parameters = {} if not (signature.takes_all or signature.context is not None) else {EVERY_KEY: ANY}
    if not signature._names:
        return tuple(parameters.items())
    known = inspect.signature(function).parameters
    for name in signature._names:
        kinds = _kinds(known[name].annotation)
        is_none = known[name].default is None and ANY not in kinds
        parameters[name] = "|".join(sorted({*kinds, "None"} if is_none else kinds))
    return tuple(sorted(parameters.items()))


def _kinds(annotation: Any) -> set[str]:
    """Return the kinds of JSON that an annotation names: `any` if it names another type, or none."""
    if annotation is None or annotation is type(None):
        return {"None"}
    if isinstance(annotation, str):
        parts = [part.strip() for part in annotation.split("|")]
        kinds = {part.partition("[")[0] for part in parts}
        return kinds if kinds <= KINDS and annotation.count("[") <= 1 else {ANY}
    if get_origin(annotation) in (Union, UnionType):
        kinds = {kind for part in get_args(annotation) for kind in _kinds(part)}
        return {ANY} if ANY in kinds else kinds
    plain = get_origin(annotation) or annotation
    name = getattr(plain, "__name__", "")
    return {name} if plain in (int, float, str, bool, list, dict) else {ANY}


def is_async(function: Callable[..., Any]) -> bool:
    """Tell whether a call of this returns a coroutine, also through partial() and callable objects.

    Calling a class gives an object, whatever can be done with that.
    """
    inner = _unwrapped(function)
    if isinstance(inner, type):
        return False
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(getattr(inner, "__call__", None))  # noqa: B004


def may_ask_for_previous(function: Callable[..., Any], signature: Signature) -> bool:
    """Tell whether a coroutine is likely to read `ctx.previous`, so that the node asks the store before it begins.

    Where the code shows that it uses its context only for other things the answer is no; in
    every other case, such as handing the context on, it is yes. Nothing wrong follows from a
    no: what was not asked for is looked up when the task wants it.
    """
    inner = _unwrapped(function)
    code = getattr(inner, "__code__", None)
    if not isinstance(code, CodeType) or hasattr(inner, "__wrapped__") or "current" in _all_names(code):
        return True
    if signature.context is None:
        return False
    return signature.context in code.co_cellvars or not _only_asked_for_others(code, signature.context)


def _only_asked_for_others(code: CodeType, context: str) -> bool:
    instructions = [instruction for instruction in dis.get_instructions(code) if instruction.opname != "CACHE"]
    for position, instruction in enumerate(instructions):
        named = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        if "FAST" not in instruction.opname or context not in named:
            continue
        after = instructions[position + 1] if position + 1 < len(instructions) else instruction
        if named[-1] != context or named.count(context) > 1 or after.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
            return False
        if after.argval == "previous":
            return False
    return True


def _all_names(code: CodeType) -> set[str]:
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*map(_all_names, inner))


def _unwrapped(function: Any) -> Any:
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__func__", function)


def _comes_first(context: str, parameters: list[inspect.Parameter]) -> bool:
    """Whether the function can be called with the context as its only, positional argument."""
    first, *rest = parameters
    by_position = first.kind in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD)
    alone = all(parameter.kind is parameter.VAR_POSITIONAL for parameter in rest)
    return first.name == context and by_position and alone


def _is_context(annotation: object, names: Mapping[str, Any]) -> bool:
    if isinstance(annotation, str):
        return _text_is_context(annotation, names)
    if get_origin(annotation) in (Union, UnionType):
        return any(_is_context(argument, names) for argument in get_args(annotation))
    return isinstance(annotation, type) and issubclass(annotation, Context)


def _text_is_context(annotation: str, names: Mapping[str, Any]) -> bool:
    """An annotation as text, `Context | None` and `Optional[Context]` too; no code of it is run.

    What the name means is looked up; where it means nothing at run time, because it is
    imported for type checkers only, the name itself must do.
    """
    text = annotation.strip().strip("'\"")
    inner = re.fullmatch(r"(?:[\w.]+\.)?(?:Optional|Union)\[(.*)\]", text)
    parts = re.split(r"[|,]", inner.group(1) if inner else text)
    return any(_name_is_context(part.strip().strip("'\""), names) for part in parts)


def _name_is_context(dotted: str, names: Mapping[str, Any]) -> bool:
    first, *rest = dotted.split(".")
    annotation: Any = names.get(first)
    if annotation is None:
        return _AS_TEXT.fullmatch(dotted) is not None
    for part in rest:
        annotation = getattr(annotation, part, None)
    return isinstance(annotation, type) and issubclass(annotation, Context)


def _object_of(given: object, signature: Signature) -> dict[str, object]:
    if given is None:
        return {}
    if isinstance(given, dict):
        return given
    wanted = _listed(signature._names) if signature._names else "keywords"
    raise Unfilled(f"the payload is a {type(given).__name__}, and {wanted} are filled by name from a JSON object")


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{shown(name, 60)}'" for name in names)


def _example(names: tuple[str, ...]) -> str:
    return "payload={" + ", ".join(f'"{shown(name, 60)}": …' for name in names) + "}"


def _ways(missing: tuple[str, ...]) -> list[str]:
    ways = [_example(missing), f"a default for {_listed(missing)}"]
    if "ctx" in missing or "context" in missing:
        ways.insert(0, "ctx: Context, if it is the context: the annotation says so")
    return ways
