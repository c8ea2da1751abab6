"""The verbs: all listed, each loaded when it is called, and every error a sentence with a code."""

import subprocess
import sys
from types import ModuleType

import click
import pytest

from everytick import Everytick, errors
from everytick import __main__ as door
from everytick.cli.exits import Refused, code_of, sentence_of
from everytick.cli.main import SECTIONS, everytick
from everytick.errors import EverytickError
from everytick.exits import Exit
from tests.unit.cli.conftest import Cli

VERBS = [(verb, said) for section in SECTIONS.values() for verb, (_, said) in section.items()]


@pytest.mark.parametrize(("verb", "said"), VERBS)
def test_the_help_of_each_verb_begins_with_what_the_list_of_verbs_says(verb: str, said: str) -> None:
    with click.Context(everytick) as ctx:
        command = everytick.get_command(ctx, verb)

    assert command is not None
    assert (command.help or "").startswith(said.rstrip("."))


@pytest.mark.parametrize(("verb", "said"), VERBS)
def test_no_two_parameters_of_a_verb_share_a_name(verb: str, said: str) -> None:
    """Of two that did, one would overwrite the other, and a warning would stand before the help."""
    with click.Context(everytick) as ctx:
        command = everytick.get_command(ctx, verb)
        assert command is not None
        parts = [command, *(command.commands.values() if isinstance(command, click.Group) else ())]
        for part in parts:
            names = [each.name for each in part.get_params(ctx)]
            assert len(names) == len({*names}), f"{part.name}: {sorted(map(str, names))}"


@pytest.mark.parametrize(("verb", "said"), VERBS)
def test_every_verb_has_help(verb: str, said: str, plain: Cli) -> None:
    done = plain(verb, "--help")

    assert done.code == 0
    assert f"Usage: everytick {verb}" in done.out
    assert "as for every verb: see everytick --help" in " ".join(done.out.split())
    assert "EVERYTICK_STORE" not in done.out


def test_the_options_of_every_verb_are_explained_once(plain: Cli) -> None:
    """B24: `everytick --help` has them, and no verb repeats them."""
    done = plain("--help")

    for option in ("--app", "--store", "--jobs", "--config", "--debug"):
        assert option in done.out
    assert "EVERYTICK_STORE" in done.out


def test_help_loads_no_verb_and_nothing_heavy() -> None:
    program = (
        "import sys\nfrom everytick.cli.main import called\ncode = called(['--help'])\n"
        "print(code, *sorted(sys.modules), file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    loaded = set(done.stderr.split())
    assert "everytick.cli.main" in loaded
    assert loaded.isdisjoint(
        {"everytick.app", "everytick.cli.run", "asyncio", "sqlite3", "pydantic", "zoneinfo", "rich"}
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidInstant("x", "is wrong"), 2),
        (errors.InvalidSchedule("x", "minute", "is wrong"), 2),
        (errors.NotFound("job", "x"), 3),
        (PermissionError(13, "Permission denied", "jobs.db"), 4),
        (errors.VersionConflict("x", 1, 2), 5),
        (errors.JobDisabled("x"), 5),
        (errors.StoreUnavailable("db", "gone"), 69),
        (errors.SchemaMismatch("db", "newer"), 69),
        (errors.MissingExtra("PostgreSQL", "postgres"), 69),
        (ZeroDivisionError("oops"), 70),
        (errors.TooManyEditions("x", 16), 75),
        (Refused("no", Exit.TIMED_OUT), 124),
    ],
)
def test_every_error_has_its_code_and_a_sentence(error: Exception, code: int) -> None:
    assert code_of(error) == code
    assert sentence_of(error)


def test_every_error_of_ours_has_a_documented_code() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, EverytickError)]

    assert {code_of(kind.__new__(kind)) for kind in kinds} <= set(Exit) - {Exit.OUR_FAULT}


def test_an_unknown_verb_is_answered_with_the_nearest(plain: Cli) -> None:
    done = plain("histroy")

    assert (done.code, done.out) == (2, "")
    assert "there is no verb 'histroy' (did you mean 'history'?)" in done.err


def test_an_unknown_option_is_wrong_usage(plain: Cli) -> None:
    done = plain("list", "--jsn")

    assert done.code == 2
    assert "--jsn" in done.err


def test_common_options_may_stand_anywhere(plain: Cli, address: str, shop: Everytick) -> None:
    for arguments in (
        ["--store", address, "db", "status"],
        ["db", "--store", address, "status"],
        ["db", "status", "--store", address],
        ["--store", "sqlite:///tpyo.db", "db", "status", "--store", address],
    ):
        assert plain(*arguments).code == 0, arguments


def test_an_application_and_a_store_given_together_are_refused(plain: Cli) -> None:
    done = plain("list", "-a", "shop:tick", "--store", "sqlite:///jobs.db")

    assert done.code == 2
    assert "name both an application and a store" in done.err


def test_running_on_another_store_than_the_applications_own_is_refused(
    plain: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERYTICK_APP", "shop:tick")

    done = plain("run", "--store", "sqlite:///jobs.db")

    assert done.code == 2
    assert "--store names a store, and EVERYTICK_APP an application that has its own" in done.err


def test_a_store_that_is_not_there_is_not_made_by_a_question(plain: Cli) -> None:
    done = plain("list", "--store", "sqlite:///tpyo.db")

    assert done.code == 3
    assert "there is no file tpyo.db: correct the address" in done.err


def test_a_store_in_memory_is_refused(plain: Cli) -> None:
    done = plain("list", "--store", "memory://")

    assert done.code == 2
    assert "name one that others can reach" in done.err


def test_an_interrupt_while_the_command_is_loaded_shows_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the first second of a command is spent on loading it."""

    class Loading(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "everytick.cli.main", Loading("everytick.cli.main"))
    with pytest.raises(SystemExit) as left:
        door.main()
    assert left.value.code == 130
