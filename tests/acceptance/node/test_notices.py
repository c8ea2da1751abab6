"""Notices of real nodes to a real server: none is lost with its node, and a receiver that was away hears later."""

import json
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import NamedTuple

import pytest

from everytick.runners.notices import signature
from tests.acceptance.node.asking import ask
from tests.acceptance.node.fleet import WITHIN, Fleet

SLASHES = "//"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Message(NamedTuple):
    """One message that came, and what it was answered with."""

    headers: dict[str, str]
    body: bytes
    status: int

    @property
    def type(self) -> str:
        return str(json.loads(self.body)["type"])


class Receiver:
    """A web server of the test; it is out of order for the first `failing` messages."""

    def __init__(self) -> None:
        self.messages: Queue[Message] = Queue()
        self.failing = 0
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.failing -= 1
                status = 503 if receiver.failing >= 0 else 204
                self.send_response(status)
                self.end_headers()
                receiver.messages.put(Message({k.lower(): v for k, v in self.headers.items()}, body, status))

            def log_message(self, *_: object) -> None:
                """Say nothing: the test listens to the nodes."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http:{SLASHES}127.0.0.1:{self._server.server_port}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def next(self) -> Message:
        """Return the next message that comes; its signature is checked."""
        found = self.messages.get(timeout=WITHIN)
        named = found.headers["webhook-id"], int(found.headers["webhook-timestamp"])
        assert found.headers["webhook-signature"] == signature(SECRET, *named, found.body)
        return found


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setenv("OPS_SECRET", SECRET)
    made = Receiver()
    yield made
    made.close()


def test_a_notice_outlives_the_node_that_owed_it(
    address: str, fleet: Fleet, receiver: Receiver, tmp_path: Path
) -> None:
    """A18: killed after the failure is written and before the notice is asked for; the next node sends it."""
    mended = tmp_path / "mended"
    first = fleet.start("notices", address, receiver.url, mended, "dies")
    assert first.ended() == -signal.SIGKILL
    assert receiver.messages.empty()

    second = fleet.start("notices", address, receiver.url, mended)
    told = receiver.next()
    assert told.type == "io.everytick.occurrence.failed.v1"
    event = json.loads(told.body)
    assert (event["subject"], event["id"]) == ("nightly", told.headers["webhook-id"])
    assert "not mended yet" in event["data"]["error"]

    mended.touch()
    ask(address, "nightly")
    assert receiver.next().type == "io.everytick.occurrence.recovered.v1"
    ask(address, "nightly")
    for _ in range(2):
        fleet.hear("runs", by=second)
    second.tell_to_stop()
    assert second.ended() == 0
    assert receiver.messages.empty()


def test_a_receiver_that_was_away_hears_of_it_later(
    address: str, fleet: Fleet, receiver: Receiver, tmp_path: Path
) -> None:
    """A18: two tries fail, the third succeeds, and all three carry the same id."""
    receiver.failing = 2
    node = fleet.start("notices", address, receiver.url, tmp_path / "mended")

    tries = [receiver.next() for _ in range(3)]

    assert [each.status for each in tries] == [503, 503, 204]
    assert len({each.headers["webhook-id"] for each in tries}) == 1
    assert len({each.body for each in tries}) == 1
    node.tell_to_stop()
    assert node.ended() == 0
    assert receiver.messages.empty()
