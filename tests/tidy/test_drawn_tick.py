"""The drawing of one tick in the architecture shows what runs: each call in it is made by the part that it names."""

import ast
import re
from collections.abc import Iterator
from functools import cache

from tests.tidy.tree import ROOT, parsed, under

NODE = "src/everytick/node/"
EVENT_COLUMN = "then it puts"

NOT_DRAWN = {("Waking", "settle_clock")}
"""It follows a step of the store's clock, and no tick."""


@cache
def drawn() -> tuple[tuple[str, str, str], ...]:
    """Return each line of the drawing: the part that it is about, what the part does, and the event that it puts."""
    page = (ROOT / "docs/architecture.md").read_text()
    [drawing] = re.findall(rf"^```\n(   part .*? {EVENT_COLUMN}\n.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    header, *rows = drawing.splitlines()
    does_at, puts_at, part = header.index("what it does"), header.index(EVENT_COLUMN), ""
    drawing_lines = []
    for row in rows:
        part = re.sub(r"\W", "", row[:does_at]) or part
        drawing_lines.append((part, row[does_at:puts_at], row[puts_at:].strip()))
    return tuple(drawing_lines)


@cache
def module_of(part: str) -> ast.Module:
    """Return the module of `node` that defines this class."""
    [module] = [
        parsed(path)
        for path in under(NODE)
        if any(isinstance(node, ast.ClassDef) and node.name == part for node in parsed(path).body)
    ]
    return module


def calls_of(module: ast.Module) -> Iterator[str]:
    """Give every call of the module as `object.method` or `function`, by the names that these have at home."""
    imported = {
        alias.asname: alias.name
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is not None
    }
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                yield imported.get(name, name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=method)):
                yield f"{owner.lstrip('_')}.{method}"


def test_every_call_of_the_drawn_tick_is_made_by_its_part() -> None:
    named = [(part, call) for part, does, _ in drawn() for call in re.findall(r"[a-z_]+(?:\.[a-z_]+)?(?=\()", does)]

    assert len(named) > 15
    assert [(part, call) for part, call in named if call not in set(calls_of(module_of(part)))] == []


def test_every_event_of_the_drawn_tick_is_made_by_its_part() -> None:
    named = [(part, event) for part, _, event in drawn() if event]

    assert len(named) > 5
    assert [(part, event) for part, event in named if event not in set(calls_of(module_of(part)))] == []


def test_the_drawn_tick_leaves_out_no_question_to_the_store() -> None:
    """A reader who counts the round trips of a tick finds all of them."""
    asked = {
        (part, call.removeprefix("store."))
        for part in {part for part, _, _ in drawn() if part}
        for call in calls_of(module_of(part))
        if call.startswith("store.")
    }
    shown = {(part, verb) for part, does, _ in drawn() for verb in re.findall(r"store\.([a-z_]+)\(", does)}

    assert asked - shown == NOT_DRAWN


def test_the_drawn_tick_names_the_arguments_of_each_verb_as_the_store_does() -> None:
    protocols = parsed("src/everytick/stores/protocols.py")
    parameters = {
        verb.name: [argument.arg for argument in verb.args.args[1:]]
        for part in protocols.body
        if isinstance(part, ast.ClassDef) and part.name in {"Store", "PlanStore", "RunStore"}
        for verb in part.body
        if isinstance(verb, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    verbs = [verb for _, does, _ in drawn() for verb in re.findall(r"store\.([a-z_]+)\(([^)]*)\)", does)]

    assert verbs
    for verb, arguments in verbs:
        named = [argument for argument in arguments.split(", ") if argument]
        assert named == parameters[verb][: len(named)], verb
