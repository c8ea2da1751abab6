"""`everytick serve` as a process: where it listens, who comes in, and what it writes of secrets."""

import asyncio
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest

from everytick import Everytick
from tests.acceptance.node.stoppable import StoppableServer
from tests.servers import keeper

PASSWORD = "canary-password-91f3"


class Served:
    """A service in a process of its own, and what it has written so far."""

    def __init__(self, folder: Path, *options: str, address: str = "") -> None:
        command = _command(folder, "serve", "--web-port", "0", *options, address=address)
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=_environment()
        )
        self.written = ""

    def line(self, part: str) -> str:
        """Return the next line with this part in it, once it is written."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.written += line
            if part in line:
                return line
        raise AssertionError(f"it ended without a word of {part}: {self.written}")

    def stop(self) -> None:
        """Stop it as a supervisor does."""
        self._process.send_signal(signal.SIGTERM)
        self.written += self._process.communicate(timeout=60)[0]
        assert self._process.returncode == 0, self.written


@contextmanager
def serving(folder: Path, *options: str, address: str = "") -> Iterator[tuple[str, Served]]:
    """Start the service on a free port and give its address. The store is the one in the folder, or at `address`."""
    served = Served(folder, *options, address=address)
    try:
        line = served.line("dashboard and API: ")
        yield f"http://127.0.0.1:{urlsplit(re.findall(r'http:[^; ]+', line)[0]).port}", served
    finally:
        served.stop()


def _environment() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if not name.startswith("EVERYTICK_")}


def _command(folder: Path, verb: str, *options: str, address: str = "") -> list[str]:
    return [sys.executable, "-m", "everytick", verb, *options, "--store", address or f"sqlite:///{folder / 'e.db'}"]


def _called(folder: Path, *options: str, given: str = "") -> "subprocess.CompletedProcess[str]":
    verb, *rest = options
    return subprocess.run(
        _command(folder, verb, *rest), input=given, capture_output=True, text=True, env=_environment(), timeout=60
    )


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A folder with a store that has its tables."""

    async def made() -> None:
        tick = Everytick(f"sqlite:///{tmp_path / 'e.db'}", name="shop")
        await tick.open()
        await tick.close()

    asyncio.run(made())
    return tmp_path


class Answer(NamedTuple):
    """What the service has answered."""

    status: int
    headers: Message
    text: str


def _asked(url: str, method: str, path: str, body: str | None = None, **headers: str) -> Answer:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): said for name, said in headers.items()})
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read().decode())
    finally:
        connection.close()


def test_it_listens_on_this_host_alone_and_tells_no_banner(store: Path) -> None:
    """S1: an address of the loopback network that was not bound is closed. S7: no server header."""
    with serving(store) as (url, served):
        port = urlsplit(url).port or 0
        answer = _asked(url, "GET", "/more", accept="text/html")
        other = _asked(url, "GET", "/more", host="example.net")
        with pytest.raises(OSError, match=r"refused|[Tt]imed out|assign"):
            socket.create_connection(("127.0.0.2", port), timeout=5)

    assert f"http://127.0.0.1:{port}/" in served.written
    assert (answer.status, other.status) == (200, 421)
    assert "server" not in answer.headers
    assert answer.headers["cache-control"] == "no-store"


def test_a_stop_tells_a_hundred_open_streams_to_end(store: Path) -> None:
    """SIGTERM waits for no reader: each is told why, and the process leaves with 0.

    A server that waits for its answers would not leave at all, and one that cuts them off would tell no reader.
    """
    with serving(store) as (url, _):
        place = urlsplit(url)
        opened = [socket.create_connection((place.hostname or "", place.port or 0), timeout=60) for _ in range(100)]
        for each in opened:
            each.sendall(b"GET /api/events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            assert each.recv(4096).startswith(b"HTTP/1.1 200 ")
    told = []
    for each in opened:
        with each, each.makefile("rb") as reading:
            told.append(reading.read().decode())

    assert [text for text in told if "the service stops" not in text] == []


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_another_address_without_users_is_refused(store: Path, address: str) -> None:
    """S1: with a message that says what to do, and an exit code of its own."""
    done = _called(store, "serve", "--web-address", address, "--web-port", "0")

    assert done.returncode == 4
    assert f"{address} can be reached from other hosts" in done.stderr
    assert "everytick user add" in done.stderr


def test_a_store_that_is_away_at_the_start_is_served_as_soon_as_it_answers(tmp_path: Path) -> None:
    """C-28: as one of several stores is. Nothing is said to be well before."""
    with keeper.folder() as scratch:
        server = StoppableServer(scratch)
        server.stop()
        with serving(tmp_path, address=server.address) as (url, served):
            away = {path: _asked(url, "GET", path) for path in ("/livez", "/readyz", "/", "/api/jobs")}
            server.start()
            back = {path: _asked(url, "GET", path).status for path in away}
        server.stop()

    assert {path: answer.status for path, answer in away.items()} == {
        "/livez": 200,
        "/readyz": 503,
        "/": 503,
        "/api/jobs": 503,
    }
    assert "does not answer" in away["/"].text
    assert set(back.values()) == {200}
    assert "the store is away: PostgreSQL at" in served.written


def test_with_a_user_all_sign_in_and_no_secret_is_written(store: Path) -> None:
    """S1, S2, S12: the service listens elsewhere; neither passwords nor tokens reach the log, at any level."""
    added = _called(store, "user", "add", "ann", "--role", "admin", "--password-file", "-", given=f"{PASSWORD}\n")
    token = _called(store, "token", "add", "ci", "--role", "viewer").stdout.strip()
    with serving(store, "--web-address", "0.0.0.0", "--log-level", "debug") as (url, served):
        closed = _asked(url, "GET", "/api/me")
        by_token = _asked(url, "GET", "/api/me", authorization=f"Bearer {token}")
        page = _asked(url, "GET", "/signin", accept="text/html")
        cookie = page.headers["set-cookie"].partition(";")[0]
        csrf = re.findall(r'name="csrf" value="(\w+)"', page.text)[0]
        form = urlencode({"csrf": csrf, "name": "ann", "password": PASSWORD})
        kind = "application/x-www-form-urlencoded"
        entered = _asked(url, "POST", "/signin", form, content_type=kind, cookie=cookie, origin=url)
        session = entered.headers["set-cookie"]

    assert added.returncode == 0, added.stderr
    assert (closed.status, by_token.status, entered.status) == (401, 200, 303)
    assert "HttpOnly; SameSite=Strict" in session
    for secret in (PASSWORD, token, token[17:], session.partition("=")[2][:43]):
        assert secret not in served.written
    rows = (store / "e.db").read_bytes() + b"".join(path.read_bytes() for path in store.glob("e.db-*"))
    for secret in (PASSWORD, token[17:], session.partition("=")[2][:43]):
        assert secret.encode() not in rows


def test_the_link_of_the_first_start_makes_an_admin(store: Path) -> None:
    with serving(store, "--web-auth", "users") as (url, served):
        [link] = re.findall(r"/welcome[?]link=[^ ]+", served.line("welcome").strip())
        before = _asked(url, "GET", "/more", accept="*/*")
        welcome = _asked(url, "GET", link, accept="text/html")

    assert (before.status, welcome.status) == (401, 200)
    assert "Make the first admin" in welcome.text


def test_the_password_of_an_address_is_not_shown(tmp_path: Path) -> None:
    """S12: where the store cannot be reached, and in the configuration."""
    variables = {**_environment(), "EVERYTICK_WEB_OIDC_CLIENT_SECRET": PASSWORD}
    address = f"postgresql://app:{PASSWORD}@127.0.0.1:1/app"
    # A port that is taken ends the service, after it has said that the store is away.
    with socket.create_server(("127.0.0.1", 0)) as taken:
        _require_no_password(tmp_path, variables, address, "serve", "--web-port", str(taken.getsockname()[1]))
    for verb in (["list"], ["config", "show"]):
        _require_no_password(tmp_path, variables, address, *verb)
    with serving(tmp_path, "--log-level", "debug", address=address) as (url, served):
        told = [_asked(url, "GET", path).text for path in ("/", "/readyz?verbose", "/api/jobs")]
    assert "is away" in served.written
    assert PASSWORD not in "".join((served.written, *told))


def _require_no_password(folder: Path, variables: dict[str, str], address: str, *verb: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "everytick", *verb, "--store", address, "--debug"],
        capture_output=True,
        text=True,
        env=variables,
        timeout=60,
        cwd=folder,
    )

    assert PASSWORD not in done.stdout + done.stderr, verb
