"""The code and the repository, looked through for what must not be there (S10, S18)."""

import ast
import re

from tests.tidy.tree import files, lines, under, walked

EVALUATING = {"eval", "exec", "compile", "__import__"}
MODULES = {"pickle", "cPickle", "dill", "marshal", "shelve", "jsonpickle"}
ALLOWED = {
    # The fields of a class become the parameters of its __init__, as dataclasses does it: no text of a user is there.
    "src/everytick/domain/values.py:exec",
    # The columns of a statement of ours become the keys of its rows.
    "src/everytick/stores/sql/statements.py:exec",
}
SECRETS = re.compile(
    "|".join(
        (
            r"-----BEGIN (?:RSA |EC |OPENSSH |PGP )?PRIVATE KEY",
            r"\bAKIA[0-9A-Z]{16}\b",
            r"\bgh[pousr]_[A-Za-z0-9]{36}\b",
            r"\bxox[abp]-[0-9A-Za-z-]{20,}",
            r"\beyJ[A-Za-z0-9_-]{20,}\.eyJ[A-Za-z0-9_-]{20,}\.",
            r"\betk_[0-9a-f]{12}_[A-Za-z0-9_-]{43}\b",
            r"\bpypi-[A-Za-z0-9_-]{50,}",
        )
    )
)


EXAMPLES = {"tests/unit/domain/test_redaction.py"}
"""Files that must name what secrets look like, since they test that such are hidden."""


def _dangers(path: str) -> list[str]:
    found = []
    for node in walked(path):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            found += [f"{path}:{name}" for name in names if name.partition(".")[0] in MODULES]
        elif isinstance(node, ast.Call):
            found += [f"{path}:{what}" for what in _of_call(node)]
    return found


def _of_call(call: ast.Call) -> list[str]:
    name = ast.unparse(call.func)
    found = [name] if name in EVALUATING | {"os.system", "os.popen", "yaml.load", "yaml.unsafe_load"} else []
    shells = [word for word in call.keywords if word.arg == "shell"]
    return found + [f"{name}(shell=…)" for word in shells if not _is_false(word.value)]


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def test_nothing_is_evaluated_unpickled_or_given_to_a_shell() -> None:
    """S10: a stored text or a payload is never code."""
    found = {danger for path in under("src/") for danger in _dangers(path)}

    assert found - ALLOWED == set()
    assert found >= ALLOWED, "what is allowed and gone is to be taken out"


def test_no_secret_stands_in_the_repository() -> None:
    """S18: neither keys nor tokens, also not of an example."""
    found = [place for path in set(files()) - EXAMPLES for place, line in lines(path) if SECRETS.search(line)]

    assert found == []
