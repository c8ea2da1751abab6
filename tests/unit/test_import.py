"""`import everytick` costs next to nothing: what is heavy is imported where it is used."""

import subprocess
import sys

import pytest

HEAVY = [
    *("apsw", "asyncpg", "psycopg", "redis", "sqlite3"),
    *("django", "fastapi", "flask", "httpx2", "starlette", "uvicorn", "werkzeug"),
    *("asyncio", "click", "holidays", "pydantic", "watchfiles", "yaml"),
]


def modules_after(statement: str) -> set[str]:
    """Return the top names of all modules that a fresh interpreter has loaded after the statement."""
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    return modules_after("import everytick") - modules_after("")


@pytest.mark.parametrize("name", HEAVY)
def test_importing_everytick_loads_nothing_heavy(name: str, loaded: set[str]) -> None:
    assert "everytick" in loaded
    assert name not in loaded


def test_importing_the_part_for_django_loads_nothing_of_django() -> None:
    """A13: it is imported by name only, and used where settings can be read."""
    assert "django" not in modules_after("import everytick.django")
