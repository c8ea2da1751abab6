"""The command line over HTTP: the same verbs, the same output, the same exit codes."""

import asyncio
import re
import sys
import threading
from asyncio.subprocess import PIPE
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import click
import pytest

from everytick import Everytick, every
from everytick.app.serving import Listening
from everytick.cli.asking import who
from everytick.cli.main import SECTIONS, everytick
from everytick.client import Client
from everytick.errors import NeedsApproval
from everytick.testing import drain
from everytick.web.service import WebServer
from tests.unit.cli.conftest import Cli, Said, ran

Both = Callable[..., tuple[Said, Said]]


class Served:
    """A service of a store, on a port of this host, in a thread with a loop of its own."""

    def __init__(self, address: str) -> None:
        self.tick = Everytick(address, name="service")
        self.url, self._ready = "", threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(60), "the service starts"

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        await self.tick.open()
        server = WebServer(self.tick, Listening(port=0))
        self.url = await server.start()
        self._ready.set()
        await self._end.wait()
        await server.close()
        await self.tick.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(60)


@pytest.fixture
def served(shop: Everytick, address: str) -> Iterator[Served]:
    """The service of the shop's store."""
    made = Served(address)
    yield made
    made.stop()


@pytest.fixture
def both(plain: Cli, address: str, served: Served) -> Both:
    """Call the command on the store and on its service."""

    def call(*arguments: str) -> tuple[Said, Said]:
        return plain("--store", address, *arguments), plain("--url", served.url, *arguments)

    return call


@pytest.fixture
def past(shop: Everytick) -> list[str]:
    """Two occurrences that have ended."""
    return ran(shop, "nightly", "broken")


READING = [
    ["list"],
    ["list", "--json"],
    ["list", "--failed", "--all"],
    ["list", "-k", "night", "--tag", "night"],
    ["show", "nightly"],
    ["show", "nightly", "--json"],
    ["show", "both"],
    ["history"],
    ["history", "--json"],
    ["history", "broken", "--json"],
    ["history", "--failed", "--since", "1d"],
    ["next"],
    ["next", "nightly", "-n", "3", "--json"],
    ["next", "-n", "5"],
    ["nodes"],
    ["nodes", "--json"],
    ["limits"],
    ["limits", "--json"],
    ["backfills"],
    ["backfills", "--json"],
    ["proposals"],
    ["proposals", "--json"],
    ["versions", "nightly"],
    ["versions", "nightly", "--json"],
    ["explain", "broken"],
    ["explain", "broken", "--json"],
    ["explain", "30 2 * * *"],
    ["diff", "nightly", "v1", "v1"],
    ["export", "history"],
    ["export", "jobs"],
    ["coverage", "broken", "--after", "2026-01-01T00:00Z", "--through", "2026-01-01T06:00Z"],
    ["coverage", "nightly", "--after", "2026-01-01T00:00Z", "--through", "2026-01-03T00:00Z", "--json"],
    ["rollout", "nightly"],
    ["rollout", "canary"],
    ["rollout", "canary", "--json"],
    ["backfill", "show", "{planned}"],
    ["backfill", "show", "{running}", "--json"],
    ["logs", "{done}"],
    ["audit"],
    ["user", "list"],
    ["token", "list"],
]


@pytest.fixture
def there(shop: Everytick, past: list[str]) -> dict[str, str]:
    """What verbs name by an id: ended occurrences, backfills, proposals. A version of `canary` is on trial."""

    async def made() -> dict[str, str]:
        shop.define("canary", every("1d"), owner="api").call("tests.unit.cli.test_remote:no_task")
        shop.define("pay", every("1d"), owner="api", protected="two_people").call("tests.unit.cli.test_remote:no_task")
        await shop.sync()
        await shop.update("canary", priority=5, policy="rollout 10% after 20")
        found = dict(zip(("done", "failed"), past, strict=True))
        begin, end = "2026-01-01T00:00Z", "2026-01-01T06:00Z"
        for name, approve in (("planned", False), ("running", True), ("rested", True)):
            backfill = await shop.backfill("broken", begin, end, approve=approve, by="ann")
            found[name], begin, end = str(backfill.id), end, f"{end[:11]}{int(end[11:13]) + 6}:00Z"
        await (await shop.find_backfill(found["rested"])).pause()
        for name, priority in (("first", 3), ("second", 4)):
            with suppress(NeedsApproval):
                await shop.update("pay", priority=priority, confirmed=True, by="ann")
            found[name] = (await shop.proposals())[-1].id
        await shop.close()
        return found

    return asyncio.run(made())


def no_task() -> None: ...


def filled(verb: list[str], there: dict[str, str]) -> list[str]:
    """Return the verb with the ids that its words name."""
    return [word.format(**there) if word.startswith("{") and word[1:-1] in there else word for word in verb]


def test_every_reading_verb_says_the_same_over_http(
    there: dict[str, str], past: list[str], cli: Cli, both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("limit", "set", "tag:night", "--most", "3", "--rate", "60/1m", "--reason", "slow")
    cli("brake", "queue:slow", "--reason", "down")
    cli("pause", "nightly", "--reason", "holiday", "--until", "2099-01-01T00:00Z")
    cli("backfill", "plan", "broken", "--from", "2026-01-01T00:00Z", "--through", "2026-01-02T00:00Z")
    for verb in [*READING, ["show", past[0]], ["show", past[1], "--json"], ["show", past[0][4:12]]]:
        ours, theirs = both(*filled(verb, there))

        silent = ("nodes", "diff", "logs", "audit", "user", "token")
        assert ours.out or verb[0] in silent or verb == ["rollout", "nightly"], verb
        assert (theirs.out, theirs.code) == (ours.out, ours.code), verb


OPERATIONS = [
    ["pause", "nightly", "--reason", "holiday"],
    ["resume", "nightly"],
    ["disable", "nightly"],
    ["enable", "nightly"],
    ["reschedule", "nightly", "2099-01-01T00:00Z"],
    ["undo", "nightly", "2099-01-01T00:00Z"],
    ["skip", "both", "2099-01-01T00:00Z"],
    ["undo", "both", "2099-01-01T00:00Z"],
    ["move", "both", "2099-01-01T00:00Z", "2099-01-01T05:00Z"],
    ["amend", "both", "2098-01-01T00:00Z", "--set", "priority=5"],
    ["limit", "set", "tag:x", "--most", "3"],
    ["limit", "remove", "tag:x"],
    ["brake", "--tag", "x", "--reason", "down"],
    ["release", "--tag", "x", "--at-once"],
    ["backfill", "plan", "broken", "--from", "2026-01-01T00:00Z", "--through", "2026-01-02T00:00Z", "--dry-run"],
    ["update", "nightly", "--set", "priority=5", "--detach", "--yes"],
    ["rollback", "nightly", "v1", "--yes"],
    ["rename", "nightly", "daily", "--yes"],
    ["rename", "daily", "nightly", "--yes"],
    ["remove", "both", "--yes"],
    ["trigger", "nightly", "--payload", '{"pages": 3}'],
    ["trigger", "nightly", "--at", "2099-01-01T00:00Z", "--key", "k"],
    ["replay", "{done}", "--reason", "again"],
    ["replay", "{failed}", "--reason", "mended"],
    ["add", "nightly", "2099-01-01T00:07Z"],
    ["cancel", "{done}", "--yes"],
    ["backfill", "approve", "{planned}"],
    ["backfill", "pause", "{running}"],
    ["backfill", "resume", "{rested}"],
    ["backfill", "cancel", "{rested}", "--yes"],
    ["approve", "{first}"],
    ["reject", "{second}"],
    ["rollout", "canary", "--keep", "--yes"],
    ["db", "rewind", "nightly", "--yes"],
]


def test_every_operation_says_the_same_over_http(there: dict[str, str], twins: Both) -> None:
    """Each is carried out on one store directly, and on a copy of it through its service."""
    for verb in OPERATIONS:
        ours, _ = twins(*filled(verb, there))

        assert ours.code == 0, (verb, ours.err)


NEEDS_THE_STORE = [
    ["run"],
    ["serve"],
    ["sync"],
    ["simulate"],
    ["doctor"],
    ["db", "status"],
    ["db", "migrate"],
    ["db", "backup", "copy.db"],
    ["db", "prune", "--yes"],
    ["db", "rewind", "--yes"],
]
"""Verbs that work on a store or on code themselves."""

ASKS_NOBODY = ["validate", "schema", "templates", "import", "init", "completion", "systemd", "config", "watch"]
"""Verbs that ask neither a store nor a service: of `watch` its caller is the node."""


def verbs_of(names: Iterable[str]) -> Iterator[str]:
    """Give the verbs with their second words, as in `backfill plan`."""
    for name in names:
        command = everytick.get_command(click.Context(everytick), name)
        if isinstance(command, click.Group):
            yield from (f"{name} {word}" for word in command.commands)
        else:
            yield name


def test_every_verb_is_in_one_of_the_lists() -> None:
    """S6: a new verb works on a remote service, or is named as one that cannot."""
    # `apply` has tests of its own below, with files; `db move` names both of its stores.
    apart = ["apply", "db move"]
    listed = [*READING, *OPERATIONS, *PEOPLE, *NEEDS_THE_STORE, *(verb.split() for verb in verbs_of(ASKS_NOBODY))]
    known = {" ".join(verb[:size]) for verb in listed for size in (1, 2)} | {*apart}

    assert sorted({*verbs_of(verb for verbs in SECTIONS.values() for verb in verbs)} - known) == []


def test_the_page_of_the_client_names_the_verbs_that_need_the_store_itself() -> None:
    page = (Path(__file__).parents[3] / "docs/client.md").read_text(encoding="utf-8")
    [refused] = re.findall(r"work on a store or on code themselves \(([^)]+)\) say so", page)
    [silent] = re.findall(r"ask neither \(([^)]+)\)", page)

    assert {*re.findall(r"`(\w+)`", refused)} == {verb[0] for verb in NEEDS_THE_STORE}
    assert {*re.findall(r"`(\w+)`", silent)} == {*ASKS_NOBODY}


PASSWORD = "correct horse battery staple"
PEOPLE = [
    ["user", "add", "ann", "--role", "admin", "--password-file", "secret"],
    ["user", "add", "ann", "--role", "viewer", "--no-password"],
    ["user", "add", "ben@example.org", "--role", "viewer", "--grant", "night:operator", "--no-password"],
    ["user", "role", "ben@example.org", "--role", "operator"],
    ["user", "role", "ben@example.org", "--role", "operator"],
    ["user", "role", "ben@example.org", "--role", "operator", "--no-grants"],
    ["user", "password", "ann", "--password-file", "secret"],
    ["user", "password", "nobody", "--password-file", "secret"],
    ["user", "password", "ann", "--password-file", "short"],
    ["user", "role", "ann", "--role", "viewer"],
    ["token", "add", "deploy", "--role", "operator", "--owner", "ann", "--lasts", "30d"],
    ["token", "add", "deploy", "--role", "viewer"],
    ["token", "add", "own", "--role", "viewer", "--owner", "nobody"],
    ["token", "add", "report", "--role", "viewer", "--grant", "job:nightly:operator", "--for-ever"],
    ["token", "revoke", "report"],
    ["token", "revoke", "report"],
    ["user", "remove", "ben@example.org"],
    ["user", "remove", "ben@example.org", "--yes"],
    ["user", "remove", "ann", "--yes"],
]
"""What changes people, and what is refused: taken names, the last admin, a short password, no `--yes`."""


def test_people_are_cared_for_the_same_over_http(
    twins: Both, both: Both, plain: Cli, served: Served, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S6: the same words and exit codes; the text of a token is written once, and opens the service."""
    root = plain("--store", address, "token", "add", "root", "--role", "admin").out.strip()
    monkeypatch.setenv("EVERYTICK_TOKEN", root)
    (tmp_path / "secret").write_text(f"{PASSWORD}\n")
    (tmp_path / "short").write_text("short\n")
    assert both("user", "list")[1].err == "there is no user: this host alone may use the service, without signing in\n"
    codes = [twins(*verb)[1].code for verb in PEOPLE]

    assert codes == [0, 5, 0, 0, 0, 0, 0, 3, 2, 5, 0, 5, 3, 0, 0, 3, 2, 0, 5]
    for verb in (
        ["user", "list"],
        ["user", "list", "--json"],
        ["token", "list"],
        ["token", "list", "--json"],
        ["audit"],
        ["audit", "--json", "--utc"],
        ["audit", "--by", "root", "-n", "2"],
        ["audit", "--job", "nightly"],
        ["audit", "--job", "nobody"],
    ):
        ours, theirs = both(*verb)
        assert theirs == ours, verb
    text = plain("--url", served.url, "token", "add", "eyes", "--role", "viewer").out.strip()
    assert text not in plain("--url", served.url, "token", "list", "--json").out
    monkeypatch.setenv("EVERYTICK_TOKEN", text)
    assert plain("--url", served.url, "list").code == 0
    assert plain("--url", served.url, "user", "list").code == 4


SHARED = """\
version: 1
calendars:
  closed: {dates: [2099-12-25], ics: days.ics, since: 2026-01-01}
templates:
  gentle: {retry: {max: 3, interval: 10s}}
jobs: {}
"""
DAYS = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART:20270101\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
MAILS = """\
version: 1
use: ../shared/common.yaml
defaults: {timezone: Europe/Berlin, tags: [mail]}
jobs:
  mail: {schedule: "(cron: 0 9 * * *) - closed; roll=next", template: gentle, call: "shop.jobs:mail"}
  held: {schedule: "@hourly", suspended: true, call: "shop.jobs:held"}
"""
BILLS = """\
version: 1
defaults: {priority: 3}
jobs:
  bills: {schedule: "0 6 1 * *", call: "shop.jobs:bills", protected: true}
  ever: {schedule: "once: 2020-01-01T00:00:00Z", call: "shop.jobs:ever", depends_on: [bills]}
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of job files that use calendars and templates of a file beside it."""
    for name, text in {"jobs/mails.yaml": MAILS, "jobs/bills.yaml": BILLS, "shared/common.yaml": SHARED}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "shared/days.ics").write_bytes(DAYS.encode())
    return tmp_path / "jobs"


@pytest.fixture
def twins(shop: Everytick, plain: Cli, address: str, served: Served, tmp_path: Path) -> Both:
    """Call the command on a copy of the store, and on the service of the store; nothing they say may differ."""
    twin = tmp_path / "twin.db"
    assert plain("--store", address, "db", "backup", str(twin)).code == 0

    def call(*arguments: str) -> tuple[Said, Said]:
        ours = plain("--store", f"sqlite:///{twin}", *arguments)
        theirs = plain("--url", served.url, *arguments)
        for one, other in zip(_lines(theirs), _lines(ours), strict=True):
            assert one == other, arguments
        return ours, theirs

    return call


def _lines(said: Said) -> list[str]:
    """Return what was said, without the moments of the calls and who made them. The digest of a plan stays."""
    text = re.sub(r"\b[0-9a-f]{8,16}-([0-9a-f]{16})\b", r"…-\1", f"{said.code}\n{said.out}\n{said.err}")
    text = re.sub(r"\bocc_[0-9a-f-]{36}", "occ_…", text)
    text = re.sub(r"\betk_[\w-]+|(?<=token )[0-9a-f]{12}\b", "…", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}|(?<=until )\S+", "…", text)
    return re.sub(rf"\bby ({who()}|local)\b", "by …", text).splitlines()


def _plan(said: Said) -> str:
    [found] = set(re.findall(r"\b[0-9a-f]{8,16}-[0-9a-f]{16}\b", said.err))
    return str(found)


def test_files_are_compared_and_stored_the_same_over_http(twins: Both, served: Served, files: Path) -> None:
    """Calendars, templates, defaults, suspended jobs: nothing is lost on the way, so a second apply changes nothing."""
    served.tick.settings = replace(served.tick.settings, allow_calls=("shop",))
    twins("apply", "jobs", "--dry-run", "--json")
    _, theirs = twins("diff", "jobs", "--runs")
    twins("apply", "jobs", "--dry-run", "--policy", "nonsense")
    assert (stored := twins("apply", "jobs", "--plan", _plan(theirs))[0]).code == 0, stored.err
    assert "4 changes" in stored.err
    for verb in (
        ["show", "mail", "--json"],
        ["show", "held", "--json"],
        ["next", "mail", "-n", "60"],
    ):
        twins(*verb)
    again, _ = twins("apply", "jobs")
    assert "0 changes, 4 unchanged" in again.err


def test_guards_conflicts_and_mistakes_of_files_end_the_same_over_http(
    twins: Both, served: Served, files: Path
) -> None:
    served.tick.settings = replace(served.tick.settings, allow_calls=("shop",))
    _, theirs = twins("diff", "jobs")
    plan = _plan(theirs)
    assert twins("apply", "jobs")[0].code == 0
    (files / "bills.yaml").write_text(BILLS.replace("0 6 1", "0 7 1"))
    assert twins("apply", "jobs")[0].code == 2, "a protected job needs --yes"
    assert twins("apply", "jobs", "--plan", plan, "--yes")[0].code == 5, "the plan has moved"
    assert twins("apply", "jobs", "--plan", "nonsense", "--yes")[0].code == 5
    assert twins("apply", "jobs", "--yes")[0].code == 0
    (files / "mails.yaml").unlink()
    assert twins("apply", "jobs", "--prune")[0].code == 2, "removing needs --yes"
    gone, _ = twins("apply", "jobs", "--prune", "--yes")
    assert "gone\theld" in gone.out
    (files / "taken.yaml").write_text('version: 1\njobs: {nightly: {schedule: "@daily", call: "shop.jobs:x"}}\n')
    assert "belongs to code:shop" in twins("diff", "jobs")[0].err
    assert twins("apply", "jobs")[0].code == 5
    assert twins("apply", "nowhere")[0].code == 3
    (files / "taken.yaml").write_text("version: 1\njobs: {x: {}}\n")
    assert twins("apply", "jobs")[0].code == 65


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("command: ls", 'switch it on by name in the service, api_targets = ["command"]'),
        ('http: "https://example.org"', 'api_targets = ["http"]'),
        ('call: "os:system"', "'os:system' is in no package that the setting allow_calls of this service names"),
    ],
)
def test_a_service_refuses_files_with_targets_that_it_does_not_allow(
    served: Served, plain: Cli, tmp_path: Path, job: str, said: str
) -> None:
    (tmp_path / "jobs.yaml").write_text(f'version: 1\njobs:\n  good: {{schedule: "@daily", {job}}}\n')

    for verb in (["apply", "jobs.yaml"], ["diff", "jobs.yaml"]):
        refused = plain("--url", served.url, *verb)
        assert (refused.code, refused.out) == (65, ""), refused.err
        assert said in refused.err
    assert plain("--url", served.url, "show", "good").code == 3


def test_files_that_are_too_large_for_a_service_are_refused_before_they_are_sent(
    served: Served, plain: Cli, tmp_path: Path
) -> None:
    lines = "".join(
        f'  j{n}: {{schedule: "@daily", call: "shop.jobs:a", description: {"x" * 900}}}\n' for n in range(1200)
    )
    (tmp_path / "jobs.yaml").write_text(f"version: 1\njobs:\n{lines}")

    refused = plain("--url", served.url, "apply", "jobs.yaml")

    assert refused.code == 65
    assert "a service takes 1,048,576: send less at once" in refused.err


def test_output_is_followed_over_http_while_the_task_runs(shop: Everytick, both: Both, served: Served) -> None:
    """The task ends only once its first line was seen through the service."""
    is_seen = threading.Event()
    talk = shop.define("talk", every("1h"))

    @talk.task
    def speak() -> None:
        sys.stdout.write("one\n")
        sys.stdout.flush()
        assert is_seen.wait(60)
        sys.stdout.write("two\n")
        raise ValueError("three")

    async def followed() -> tuple[bytes, str]:
        async with shop, asyncio.timeout(60):
            asked = await shop.trigger("talk")
            command = [sys.executable, "-m", "everytick", "--url", served.url, "logs", asked.id, "-f"]
            following = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
            assert following.stdout is not None
            first = await following.stdout.readline()
            is_seen.set()
            rest, _ = await following.communicate()
            return first + rest, asked.id

    copied, id_ = asyncio.run(followed())
    assert copied == b"one\ntwo\n"
    for ours, theirs in (both("logs", id_), both("logs", "talk", "-f"), both("logs", id_, "--attempt", "2")):
        assert theirs == ours
    assert "speak, attempt 1 failed" in both("logs", id_)[1].err


def test_a_trigger_over_http_is_found_in_the_store(shop: Everytick, plain: Cli, cli: Cli, served: Served) -> None:
    asked = plain("--url", served.url, "trigger", "nightly", "--payload", '{"pages": 3}')
    added = plain("--url", served.url, "add", "nightly", "2099-01-01T00:07Z")
    canceled = plain("--url", served.url, "cancel", asked.out.strip(), "--yes")

    assert (asked.code, added.code, canceled.code) == (0, 0, 0)
    assert added.out.strip() in cli("show", added.out.strip(), "--json").out


def test_errors_end_with_the_same_codes(both: Both, plain: Cli) -> None:
    for verb in (
        ["show", "nobody"],
        ["trigger", "nightly", "--at", "nonsense"],
        ["rollback", "nightly", "v9", "--yes"],
    ):
        ours, theirs = both(*verb)
        assert (theirs.code, theirs.err) == (ours.code, ours.err), verb
    assert plain("--url", "http://127.0.0.1:1", "list").code == 69
    assert plain("--url", "nonsense", "list").code == 2


@pytest.mark.parametrize("verb", NEEDS_THE_STORE)
def test_a_verb_that_needs_the_store_itself_says_so(served: Served, plain: Cli, verb: list[str]) -> None:
    said = plain("--url", served.url, *verb)

    assert (said.code, said.out) == (2, ""), said.err
    assert "works on a store or an application itself" in said.err


def test_a_service_and_a_store_at_one_place_are_refused(served: Served, plain: Cli, address: str) -> None:
    assert plain("--url", served.url, "--store", address, "list").code == 2


def test_the_address_and_the_token_come_from_the_environment(
    served: Served, plain: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that the service does not know is not allowed, and is not shown."""
    secret = tmp_path / "token"
    secret.write_text("tick_not-a-token\n")
    monkeypatch.setenv("EVERYTICK_URL", served.url)
    assert plain("list").code == 0
    monkeypatch.setenv("EVERYTICK_TOKEN_FILE", str(secret))
    said = plain("list")

    assert said.code == 4
    assert "not-a-token" not in said.out + said.err


async def test_a_client_hears_what_happens_as_it_happens(served: Served, shop: Everytick) -> None:
    """The service asks the store for what other nodes do, and tells it to every open stream."""
    heard = asyncio.Event()
    told: set[str] = set()

    async def listen(client: Client) -> None:
        async for event in client.events("nightly"):
            told.add(event.job)
            heard.set()

    async with Client(served.url) as client, asyncio.timeout(60):
        listening = asyncio.create_task(listen(client))
        while not heard.is_set():
            await client.trigger("nightly")
            await drain(shop)
            with suppress(TimeoutError):
                await asyncio.wait_for(heard.wait(), 1)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    await shop.close()

    assert told == {"nightly"}


def test_a_viewer_is_told_that_output_needs_more(
    plain: Cli, address: str, served: Served, past: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service hides from viewers where output is: that is no reason to say that none was kept."""
    token = plain("--store", address, "token", "add", "eyes", "--role", "viewer").out.strip()
    monkeypatch.setenv("EVERYTICK_TOKEN", token)
    done = plain("--url", served.url, "logs", past[0])
    assert (done.code, done.err) == (4, "everytick: output needs operator: eyes is viewer\n")
