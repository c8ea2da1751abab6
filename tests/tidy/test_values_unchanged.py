"""No attribute of a value is assigned outside its class: at run time most values are not frozen.

mypy refuses such an assignment where it knows the type. This test refuses what is left: code
that mypy cannot type, and ways around plain assignment.
"""

import ast
from collections.abc import Iterator
from functools import cache

from tests.tidy.tree import parsed, under, walked

SETTERS = {
    "src/everytick/domain/policy_checks.py": "`fill` sets the fields of a value that is being built",
    "src/everytick/domain/values.py": "gives a class its shared methods",
    "src/everytick/runners/capture.py": "replaces sys.stdout and sys.stderr",
    "src/everytick/stores/memory/tables.py": "changes a row, which is no value",
    "src/everytick/stores/queries.py": "fills the queries of a schema",
    "src/everytick/stores/redis/rows.py": "fills a row, which is no value",
    "src/everytick/stores/redis/watched.py": "puts a table in the place of a dict",
    "src/everytick/stores/sql/statements.py": "fills the statements of a schema",
    "src/everytick/stores/sqlite/queries.py": "fills the statements that are sent rows",
}
"""The modules that may set an attribute by its name, and what they set."""


@cache
def classes() -> list[tuple[str, ast.ClassDef]]:
    return [(path, node) for path in under("src/") for node in walked(path) if isinstance(node, ast.ClassDef)]


def is_value(cls: ast.ClassDef) -> bool:
    names = [each.func if isinstance(each, ast.Call) else each for each in cls.decorator_list]
    return any(isinstance(each, ast.Name) and each.id == "value" for each in names)


def fields_of(cls: ast.ClassDef) -> set[str]:
    return {
        each.target.id for each in cls.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }


def setters_of(cls: ast.ClassDef) -> set[str]:
    """Return the properties that may be set."""
    functions = [each for each in cls.body if isinstance(each, ast.FunctionDef)]
    return {each.name for each in functions if any(ast.unparse(one).endswith(".setter") for one in each.decorator_list)}


def assigned(node: ast.AST) -> Iterator[ast.Attribute]:
    """Give every attribute that is assigned or deleted below the node."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store | ast.Del):
            yield each


def base_of(attribute: ast.Attribute) -> str:
    return attribute.value.id if isinstance(attribute.value, ast.Name) else ""


@cache
def values() -> dict[str, set[str]]:
    """Return the fields of each value by its name."""
    return {cls.name: fields_of(cls) for _, cls in classes() if is_value(cls)}


@cache
def fields() -> set[str]:
    return set().union(*values().values())


@cache
def others() -> list[ast.ClassDef]:
    return [cls for _, cls in classes() if not is_value(cls)]


@cache
def changeable() -> set[str]:
    """Return the attributes of classes that are no values."""
    return {
        name
        for cls in others()
        for name in (
            *fields_of(cls),
            *setters_of(cls),
            *(each.attr for each in assigned(cls) if base_of(each) == "self"),
        )
    }


@cache
def names_of_values() -> set[str]:
    """Return the names that no other class has."""
    return values().keys() - {cls.name for cls in others()}


def test_values_are_found() -> None:
    assert len(values()) > 150
    assert {"status", "runs", "watermark"} <= fields()


def test_no_value_assigns_its_own_attributes() -> None:
    assert [
        f"{path}:{each.lineno}"
        for path, cls in classes()
        if is_value(cls)
        for each in assigned(cls)
        if base_of(each) == "self"
    ] == []


def test_no_attribute_that_only_values_have_is_assigned() -> None:
    assert [
        f"{path}:{each.lineno}"
        for path in under("src/")
        for each in assigned(parsed(path))
        if each.attr in fields() and each.attr not in changeable()
    ] == []


def test_no_attribute_of_a_parameter_that_is_a_value_is_assigned() -> None:
    assert [
        f"{path}:{each.lineno}"
        for path in under("src/")
        for function in walked(path)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for each in assigned(function)
        if base_of(each) in value_parameters(function)
    ] == []


def value_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the parameters whose annotation is the name of a value, or of a value or None."""
    found = function.args
    return {
        each.arg
        for each in (*found.posonlyargs, *found.args, *found.kwonlyargs)
        if each.annotation is not None
        and ast.unparse(each.annotation).removesuffix(" | None").strip("'\"") in names_of_values()
    }


def test_attributes_are_set_by_name_only_while_a_value_is_built() -> None:
    """`object.__setattr__` and `fill` take `self`; other setters are named above with what they set."""
    found = []
    for path in under("src/"):
        for node in walked(path):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            target = ast.unparse(node.args[0]) if node.args else ""
            by_name = called in ("object.__setattr__", "fill") and target != "self"
            if (by_name or called in ("setattr", "object.__delattr__", "delattr")) and path not in SETTERS:
                found.append(f"{path}:{node.lineno}")
    assert found == []
