"""What is decided is decided in one place: no layer above or beside it has rules of its own to keep."""

import ast
from collections.abc import Iterator

from tests.tidy.tree import module_name, under, walked

# Who may ask for a decision: the loops, and what shows what they would decide.
ASKERS = ("everytick.node", "everytick.app", "everytick.simulate", "everytick.testing", "everytick.beat.decision")
HANDING_ON = ("everytick.answers.", "everytick.client.")
ADMISSION = "everytick.deciding.admission"


def imports(path: str) -> Iterator[str]:
    for node in walked(path):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module)):
                yield module


def test_only_the_loops_and_those_who_foretell_ask_for_a_decision() -> None:
    """S4-001, S4-008, S4-046: no store, runner, source or page decides whether something may run."""
    asking = {
        module_name(path)
        for path in under("src/")
        if not module_name(path).startswith("everytick.deciding")
        for imported in imports(path)
        if imported.startswith("everytick.deciding")
    }

    # The front door, the JSON of answers and the client only hand on what an explanation is made of.
    handing_on = {name for name in asking if name == "everytick" or name.startswith(HANDING_ON)}
    assert [name for name in sorted(asking - handing_on) if not name.startswith(ASKERS)] == []


def test_overlap_is_judged_by_the_planner_alone() -> None:
    """S4-046."""
    users = {module_name(path) for path in under("src/") if ADMISSION in imports(path)}

    assert users
    assert all(name.startswith("everytick.deciding.") for name in users)
