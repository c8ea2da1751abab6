"""A warning or an error in the log ends with what happens next, so that an operator knows whether to get up."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.tidy.tree import parsed, under

LOUD = ("warning", "error", "exception", "critical")

SENTENCES = {
    # What a beat logs is fixed, and `next` stands in a field beside it.
    "src/everytick/beat/handing.py": {"texts.NOT_ENQUEUED"},
    "src/everytick/beat/logs.py": {"sentence"},
    "src/everytick/beat/service.py": {
        "texts.NO_LOCK",
        "texts.NO_NEXT_RUN",
        "texts.NO_STATE",
        "texts.NOT_RECORDED",
    },
    # The last placeholder is a sentence that ends with what to do.
    "src/everytick/app/running.py": {"application '%s' defines no jobs: %s"},
    "src/everytick/app/store_access.py": {"FORKED_AFTER_START"},
    "src/everytick/app/stored_jobs.py": {"job '%s' %s"},
    "src/everytick/cli/logging.py": {"%s"},
    "src/everytick/node/outage.py": {"%s, %s"},
    # What is in parentheses is fixed, and is what follows.
    "src/everytick/sources/watching.py": {"job '%s' %s", "%s (keeping the last valid version)"},
}
"""Texts that are no literals, or that end with a sentence made elsewhere."""


def loud_texts(path: str) -> Iterator[tuple[int, str]]:
    """Give each text that a file logs as a warning or louder, with its line; one that is no literal as its code."""
    tree = parsed(path)
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        # The text of a long line is given a name just before it is logged.
        named: dict[str, ast.expr] = dict(constants)
        for node in sorted(
            (node for node in ast.walk(function) if isinstance(node, ast.Assign | ast.Call)),
            key=lambda node: (node.lineno, node.col_offset),
        ):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    named[name] = value
                case ast.Call(func=ast.Attribute(attr=level, value=logger), args=[text, *_]):
                    if level in LOUD and "log" in ast.unparse(logger).lower():
                        literals = texts_of(named.get(ast.unparse(text), text))
                        yield from ((node.lineno, said) for said in literals or [ast.unparse(text)])


def texts_of(value: ast.expr) -> list[str]:
    """Return the literals that an expression may be."""
    match value:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.IfExp(body=body, orelse=orelse):
            return [*texts_of(body), *texts_of(orelse)]
    return []


def ends_with_next_step(text: str) -> bool:
    """Whether a text says what happened and then, after a semicolon, colon or comma, what follows: no bare error."""
    last = re.split("[;:,]", text)[-1]
    return last != text and re.search("[a-z]{2}", last) is not None and not re.search(r"%\w\W*$", text)


def test_every_loud_line_of_the_log_ends_with_what_happens_next() -> None:
    found = [(path, line, text) for path in under("src/") for line, text in loud_texts(path)]

    assert len(found) > 100
    assert [
        f"{path}:{line}: {text}"
        for path, line, text in found
        if not ends_with_next_step(text) and text not in SENTENCES.get(path, ())
    ] == []


def test_every_text_that_is_let_pass_is_still_logged() -> None:
    assert {
        path: texts - {text for _, text in loud_texts(path)}
        for path, texts in SENTENCES.items()
        if texts - {text for _, text in loud_texts(path)}
    } == {}


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("job '%s' cannot run here: %s; it is left to other nodes", True),
        ("this node stops: %s", False),
        ("this node stops: %s.", False),
        ("the store has failed", False),
        ("%s; this node stops", True),
    ],
)
def test_a_raw_error_is_no_next_step(text: str, ends: bool) -> None:
    assert ends_with_next_step(text) is ends
