"""Questions change nothing: they make no store, store no job, and say what is missing instead."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from everytick import Everytick
from everytick.cli.main import called
from everytick.domain.nodes import NodeFacts, unmet_needs
from everytick.errors import NotFound
from everytick.stores.addresses import store_of
from tests.unit.cli.conftest import Cli

APPLICATION = """
from everytick import Everytick
tick = Everytick("sqlite:///own.db")
@tick.job("0 0 1 1 *")
def yearly(): ...
"""

FILE = "version: 1\njobs:\n  a: {schedule: '0 0 1 1 *', command: 'true'}\n"

QUESTIONS = [
    ("list",),
    ("history",),
    ("history", "yearly"),
    ("nodes",),
    ("show", "yearly"),
    ("explain", "yearly", "--at", "2026-01-01"),
    ("logs", "yearly"),
    ("export", "jobs"),
    ("export", "history"),
]


@pytest.fixture
def application(tmp_path: Path) -> str:
    """A module that no other test has imported."""
    name = f"asked_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(APPLICATION)
    return name


@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_a_question_makes_no_store(plain: Cli, tmp_path: Path, application: str, question: tuple[str, ...]) -> None:
    """A15: the answer names the file and what makes it."""
    done = plain(*question, "-a", application)

    assert done.code == 3
    assert f"there is no store own.db yet: everytick run -a {application} makes it" in done.err
    assert not (tmp_path / "own.db").exists()


def test_a_missing_store_of_a_django_project_is_made_by_its_own_command(
    application: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`everytick run -a everytick.django:tick` would find no settings: `manage.py` brings them."""
    assert called(["list"], program="manage.py everytick", application=application) == 3
    said = "yet: manage.py everytick run makes it; manage.py everytick next shows what the application defines"
    assert said in capsys.readouterr().err


def test_the_doctor_and_a_simulation_make_no_store_and_answer_all_the_same(
    plain: Cli, tmp_path: Path, application: str
) -> None:
    """A15."""
    checks = json.loads(plain("doctor", "-a", application, "--json").out)
    simulated = plain("simulate", "-a", application, "--days", "1")

    assert [each["result"] for each in checks if each["check"] == "store"] == ["warning"]
    assert simulated.code == 0
    assert not (tmp_path / "own.db").exists()


@pytest.mark.parametrize(
    "question",
    [("show", "unfinished"), ("history", "unfinished"), ("explain", "unfinished", "--at", "2026-01-01"),
     ("logs", "unfinished"), ("export", "jobs", "unfinished")],
    ids=" ".join,
)  # fmt: skip
def test_a_question_stores_no_job_that_only_the_code_here_knows(
    plain: Cli, cli: Cli, shop: Everytick, address: str, tmp_path: Path, question: tuple[str, ...]
) -> None:
    """A15: an unfinished job on a laptop must not start in the store that it looks at."""
    name = f"laptop_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(
        f"from everytick import Everytick\ntick = Everytick({address!r}, name='shop')\n"
        "@tick.job('0 0 1 1 *')\ndef unfinished(): ...\n"
    )

    done = plain(*question, "-a", name)

    assert done.code == 3
    assert "the application defines job 'unfinished', but the store does not hold it yet" in done.err
    assert [row[0] for row in cli("list").rows] == ["both", "broken", "nightly"]


async def test_questions_in_python_store_no_job(address: str) -> None:
    """A15: only operations and a start do."""
    app = Everytick(address, name="shop")

    @app.job("0 0 1 1 *")
    def yearly() -> None: ...

    for question in (app.status, app.next_runs, app.upcoming, app.history):
        with pytest.raises(NotFound, match="there is no job 'yearly'"):
            await question("yearly")
    stored = await app.jobs()
    await app.close()

    assert stored == []


# ---------------------------------------------------------------------------------------------------- files and stores


def test_apply_makes_the_store_beside_the_folder(plain: Cli, tmp_path: Path) -> None:
    """A14: as run --jobs does; the first example of moving.md works."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(FILE)

    first = plain("apply", "jobs")
    second = plain("apply", "jobs/a.yaml")
    following = plain("next", "--jobs", "jobs", "-n", "1")

    assert first.code == second.code == following.code == 0
    assert f"made the store {tmp_path / 'everytick.db'}: everytick run --jobs jobs runs what it holds" in first.err
    assert "0 changes, 1 unchanged" in second.err
    assert [row[1] for row in following.rows] == ["a"]


@pytest.mark.parametrize("verb", [("diff",), ("apply", "--dry-run")], ids=" ".join)
def test_a_comparison_makes_no_store(plain: Cli, tmp_path: Path, verb: tuple[str, ...]) -> None:
    """A14, A15."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(FILE)

    done = plain(*verb, "jobs")

    assert done.code == 3
    assert "everytick apply jobs" in done.err
    assert not (tmp_path / "everytick.db").exists()


def test_apply_names_the_jobs_that_the_files_no_longer_have(plain: Cli, tmp_path: Path) -> None:
    """Without --prune they stay, and that must not happen without a word."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text(FILE + FILE.splitlines()[-1].replace("a:", "b:", 1) + "\n")
    assert "--prune" not in plain("apply", "jobs").err
    (tmp_path / "jobs/a.yaml").write_text(FILE)

    done = plain("apply", "jobs")

    assert done.code == 0
    assert "1 job of owner 'file' not in these files: b; --prune removes such jobs\n" in done.err
    assert "--prune" not in plain("apply", "jobs", "--prune", "--yes").err
    assert "--prune" not in plain("apply", "jobs").err


def test_apply_makes_no_store_for_files_with_mistakes(plain: Cli, tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text("version: 1\njobs:\n  a: {schedule: never}\n")

    assert plain("apply", "jobs").code == 65
    assert not (tmp_path / "everytick.db").exists()


def test_an_import_names_the_packages_that_nodes_must_allow(plain: Cli, tmp_path: Path) -> None:
    """A14: jobs of Celery and APScheduler are calls, which no node runs unless it allows them."""
    schedule = {"tidy": {"task": "shop.tasks.tidy", "schedule": 60}, "mail": {"task": "post.send", "schedule": 60}}
    (tmp_path / "beat.json").write_text(json.dumps(schedule))

    done = plain("import", "celery-beat", "beat.json", "--timezone", "UTC")

    assert 'write allow_calls = ["post", "shop"] into everytick.toml' in done.err


# --------------------------------------------------------------------------------------------------------------- nodes


def test_a_list_says_that_no_node_runs(cli: Cli, shop: Everytick) -> None:
    """A16: the next run in the list will not come."""
    assert "no node is running: everytick run starts one" in cli("list").err


def test_a_job_whose_call_no_node_allows_says_what_is_missing(plain: Cli, tmp_path: Path) -> None:
    """It stood there as enabled: a node that does not meet its needs is never offered it."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/a.yaml").write_text("version: 1\njobs:\n  a: {schedule: '0 0 1 1 *', call: 'os:getcwd'}\n")
    plain("apply", "jobs")
    began = datetime(2026, 1, 1, tzinfo=UTC)
    facts = NodeFacts("1.0", "3.11.4", "2025b (system)", "h", 7, 50, ("default",), began)
    instant = timedelta(microseconds=1)

    async def beat() -> None:
        store = store_of(f"sqlite:///{tmp_path / 'everytick.db'}")
        await store.open()
        await store.beat("h", [], replace(facts, met=("",), heartbeat=instant))
        await store.close()

    asyncio.run(beat())
    done = plain("list", "--jobs", "jobs")

    assert [row[:2] for row in done.rows] == [["a", "no node can run it"]]
    assert 'no living node can run a: start one that has allow_calls = ["os"]' in done.err


def test_what_a_node_meets_is_judged_once_it_had_time_to_tell() -> None:
    """It tells with its next beat that it meets the needs of a new job."""
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    facts = NodeFacts("1.0", "3.11.4", "2025b", "h", 7, 50, ("default",), now - timedelta(hours=1), met=("",))
    app = Everytick("memory://", name="shop")

    @app.job("0 0 1 1 *")
    def yearly() -> None: ...

    [job] = [each.job for each in app.definitions]
    old, new = (replace(job, updated_at=now - timedelta(seconds=age)) for age in (11, 9))

    assert unmet_needs([old], [facts], now) == {"yearly": "start one that has the application shop"}
    assert unmet_needs([new], [facts], now) == {}
    assert unmet_needs([old], [replace(facts, started_at=now)], now) == {}
    assert unmet_needs([old], [replace(facts, met=("", old.needs))], now) == {}
    assert unmet_needs([old], [], now) == {}
