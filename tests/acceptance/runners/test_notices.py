"""Notices to real receivers on this machine: a web server, a mail server and a program."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from everytick import Everytick, email
from everytick.domain.outcome import Failed, Outcome
from everytick.runners.base import Body
from everytick.runners.catalogue import Catalogue
from everytick.runners.context import Halt
from everytick.runners.mail import MailServer, mail_server
from everytick.runners.notices import signature
from tests.acceptance.runners.test_http import WEB, Server, answer
from tests.listening import listening
from tests.mailbox import MailTaker, mail_taker
from tests.unit.runners.attempts import Remembering, attempt, begun, carried_out, error_of, job_of, stopped

HERE = ["127.0.0.1"]
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "occ_1.failed",
    "source": "/everytick/jobs/job_1",
    "type": "io.everytick.occurrence.failed.v1",
    "subject": "nightly",
    "time": "2026-01-31T03:00:07+00:00",
    "data": {
        "job": "nightly",
        "occurrence_id": "occ_1",
        "scheduled_for": "2026-01-31T03:00:00+00:00",
        "status": "failed",
        "error": "ValueError: $(boom) — 'ä'\nsecond line",
    },
}
RECOVERED = EVENT | {"id": "occ_2.recovered", "type": "io.everytick.occurrence.recovered.v1"}


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    async with listening(made.serve) as made.port:
        yield made


@pytest.fixture
async def mail() -> AsyncIterator[MailTaker]:
    async with mail_taker() as made:
        yield made


def _body(
    receiver: dict[str, Any], mail: MailServer | None = None, allowed: Sequence[str] = HERE
) -> tuple[Catalogue, Body]:
    """Return the body of a notice, as a node finds it, with what it belongs to."""
    catalogue = Catalogue({}, allow_addresses=allowed, mail=mail)
    job = job_of(json.dumps({"notice": receiver, "needs": []}))
    bodies = catalogue.bodies(job)
    assert bodies is not None, catalogue.why(job)
    return catalogue, bodies[0]


async def _sent(
    receiver: dict[str, Any], event: object = EVENT, mail: MailTaker | None = None, services: Remembering | None = None
) -> Outcome:
    server = None if mail is None else mail_server(f"smtp+plain://127.0.0.1:{mail.port}", "tick@example.org")
    catalogue, body = _body(receiver, server)
    try:
        return await carried_out(body, attempt(payload_given=event, services=services))
    finally:
        catalogue.close()


# ---------------------------------------------------------------------------------------------------------- webhooks


def test_a_signature_is_that_of_the_published_example() -> None:
    """A18: the example of the Standard Webhooks libraries."""
    signed = signature(SECRET, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')

    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


async def test_a_webhook_posts_the_event_and_signs_it(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPS_SECRET", SECRET)

    outcome = await _sent({"webhook": {"url": server.url("/hook?team=ops"), "secret_env": "OPS_SECRET"}})

    assert not isinstance(outcome, Failed), outcome
    [asked] = server.requests
    assert (asked.method, asked.path) == ("POST", "/hook?team=ops")
    assert asked.headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    assert json.loads(asked.body) == EVENT
    timestamp = int(asked.headers["webhook-timestamp"])
    expected = signature(SECRET, "occ_1.failed", timestamp, asked.body)
    assert asked.headers["webhook-id"] == "occ_1.failed"
    assert asked.headers["webhook-signature"] == expected.lower(), "this server lowers the case of what it reads"


@pytest.mark.parametrize("status", [301, 307, 400, 429, 500])
async def test_other_answers_are_tried_again_and_no_redirect_is_followed(server: Server, status: int) -> None:
    server.answers["/hook"] = lambda: answer(status, Location=server.url("/elsewhere"))

    outcome = await _sent({"webhook": {"url": server.url("/hook")}})

    assert isinstance(outcome, Failed)
    assert not outcome.give_up
    assert f"status {status}" in outcome.error
    assert len(server.requests) == 1


async def test_a_receiver_that_is_gone_for_good_is_not_tried_again(server: Server) -> None:
    server.answers["/hook"] = lambda: answer(410)

    outcome = await _sent({"webhook": {"url": server.url("/hook")}})

    assert isinstance(outcome, Failed)
    assert outcome.give_up


async def test_no_error_tells_a_secret(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A18: neither the secret nor the address behind its host stands in an error or in output."""
    server.answers["/token-abc"] = lambda: answer(500)
    monkeypatch.setenv("OPS_SECRET", "whsec_not base64!")
    services = Remembering()

    missing = error_of(await _sent({"webhook": {"url": server.url("/token-abc"), "secret_env": "OPS_NONE"}}))
    wrong = error_of(await _sent({"webhook": {"url": server.url("/token-abc"), "secret_env": "OPS_SECRET"}}))
    failed = error_of(await _sent({"webhook": {"url": server.url("/token-abc?key=1")}}, services=services))

    assert "OPS_NONE is not set" in missing
    assert "OPS_SECRET is not whsec_" in wrong
    assert "base64!" not in wrong
    assert "token-abc" not in failed + services.written.decode()


async def test_a_silent_receiver_is_given_up_after_its_time_and_at_a_stop(server: Server) -> None:
    late = await _sent({"webhook": {"url": server.url("/silent"), "timeout": "50ms"}})
    assert "no answer within 0.05 seconds" in error_of(late)

    server.silent.clear()
    catalogue, body = _body({"webhook": {"url": server.url("/silent")}})
    context = attempt(payload_given=EVENT)
    running = begun(body, context)
    await server.silent.wait()
    assert await stopped(running, context, Halt.SHUTDOWN) is None
    catalogue.close()


@pytest.mark.parametrize("said", [b"", b"SSH-2.0\r\n", b"HTTP/1.1 OK\r\n\r\n", b"x" * 20_000])
async def test_what_is_no_answer_is_an_error(server: Server, said: bytes) -> None:
    server.answers["/hook"] = lambda: said

    assert isinstance(await _sent({"webhook": {"url": server.url("/hook")}}), Failed)


async def test_an_announcement_before_the_answer_is_passed_over(server: Server) -> None:
    server.answers["/hook"] = lambda: b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + answer(204)

    assert not isinstance(await _sent({"webhook": {"url": server.url("/hook")}}), Failed)


async def test_a_notice_goes_where_the_node_allows(server: Server) -> None:
    """S9: an address that is not public is refused for good, unless the node names it."""
    catalogue, body = _body({"webhook": {"url": server.url("/hook")}}, allowed=())

    outcome = await carried_out(body, attempt(payload_given=EVENT))

    assert isinstance(outcome, Failed)
    assert outcome.give_up
    assert "allow_addresses" in outcome.error
    assert server.requests == []
    catalogue.close()


async def test_nobody_listens(unused_port: int) -> None:
    error = error_of(await _sent({"webhook": {"url": f"{WEB}127.0.0.1:{unused_port}/hook"}}))

    assert "ConnectionRefusedError" in error


@pytest.fixture
async def unused_port() -> int:
    async with listening(Server().serve) as port:
        return port


# ------------------------------------------------------------------------------------------------ pings and requests


@pytest.mark.parametrize(("event", "path"), [(EVENT, "/check/fail?rid=1"), (RECOVERED, "/check?rid=1")])
async def test_a_ping_tells_a_check(server: Server, event: object, path: str) -> None:
    """A18: as Healthchecks wants it; the error is what it shows."""
    assert not isinstance(await _sent({"ping": server.url("/check?rid=1")}, event), Failed)

    [asked] = server.requests
    assert asked.path == path
    assert asked.body.decode() == EVENT["data"]["error"]


@pytest.mark.parametrize(("own", "sent"), [({}, EVENT), ({"json": {"text": "look"}}, {"text": "look"})])
async def test_a_request_sends_the_event_or_its_own_body(server: Server, own: dict[str, Any], sent: object) -> None:
    assert not isinstance(await _sent({"http": {"url": server.url("/incidents"), **own}}), Failed)

    [asked] = server.requests
    assert (asked.method, json.loads(asked.body)) == ("POST", sent)


# ------------------------------------------------------------------------------------------------------------ e-mail


async def test_an_e_mail_is_handed_in(mail: MailTaker) -> None:
    outcome = await _sent({"email": {"to": ["ops@example.org", "boss@example.org"]}}, mail=mail)

    assert not isinstance(outcome, Failed), outcome
    message = await mail.came()
    assert mail.receivers == [["boss@example.org", "ops@example.org"]]
    assert (message["Subject"], message["From"]) == ("[everytick] job 'nightly' failed", "tick@example.org")
    assert message["Message-ID"] == "<occ_1.failed@everytick>"
    text = message.get_payload(decode=True)
    assert isinstance(text, bytes)
    assert "status: failed" in text.decode()
    assert "second line" in text.decode()


async def test_an_e_mail_tells_the_error_of_each_task_that_failed(mail: MailTaker) -> None:
    tasks = [{"task": "dump", "error": "exit code 3\nno disk"}, {"task": "ship", "error": None}]

    await _sent({"email": {"to": "a@b.org"}}, EVENT | {"data": EVENT["data"] | {"failed_tasks": tasks}}, mail)

    text = (await mail.came()).get_payload(decode=True)
    assert isinstance(text, bytes)
    assert "task 'dump': exit code 3\nno disk" in text.decode().replace("\r\n", "\n")
    assert "ship" not in text.decode()


async def test_a_job_with_an_odd_name_gets_its_e_mail(mail: MailTaker) -> None:
    """A name may hold what is no header: it stays in the subject, and adds no line."""
    odd = EVENT | {"data": EVENT["data"] | {"job": "näch\u2028tlich\r\nBcc: all@example.org"}}

    outcome = await _sent({"email": {"to": "ops@example.org", "sender": "a@example.org"}}, odd, mail)

    assert not isinstance(outcome, Failed), outcome
    message = await mail.came()
    assert (message["Bcc"], message["From"]) == (None, "a@example.org")
    assert "näch" in message["Subject"]


async def test_a_mail_server_that_refuses_is_tried_again(mail: MailTaker) -> None:
    mail.refusing = 1

    outcome = await _sent({"email": {"to": "ops@example.org"}}, mail=mail)

    assert isinstance(outcome, Failed)
    assert not outcome.give_up
    assert "451" in outcome.error


async def test_a_server_without_starttls_gets_nothing(mail: MailTaker) -> None:
    """A18: smtp:// means encrypted; a server that offers no encryption is told neither password nor e-mail."""
    server = mail_server(f"smtp://user:geheim@127.0.0.1:{mail.port}")
    catalogue, body = _body({"email": {"to": "ops@example.org"}}, server)

    error = error_of(await carried_out(body, attempt(payload_given=EVENT)))

    assert "STARTTLS" in error
    assert "geheim" not in error
    assert mail.messages == []
    catalogue.close()


# ----------------------------------------------------------------------------------------------------------- commands


async def test_a_command_reads_the_event_and_is_told_the_facts(tmp_path: Path) -> None:
    """A18: on its standard input and in its environment; what stands in an error is never run."""
    script = (
        "cat > event.json; "
        'printf "%s|%s|%s|%s|%s" "$EVERYTICK_EVENT" "$EVERYTICK_JOB" "$EVERYTICK_OCCURRENCE_ID" '
        '"$EVERYTICK_STATUS" "$EVERYTICK_ERROR" > facts'
    )

    outcome = await _sent({"command": script, "cwd": str(tmp_path), "env": {"A": "b"}})

    assert not isinstance(outcome, Failed), outcome
    assert json.loads((tmp_path / "event.json").read_text()) == EVENT
    assert (tmp_path / "facts").read_text() == f"failed|nightly|occ_1|failed|{EVENT['data']['error']}"


async def test_a_list_is_filled_with_what_the_event_is_about(tmp_path: Path) -> None:
    arguments = ["sh", "-c", 'printf %s "$1" > told', "-", "{{ job }} {{ occurrence_id }}"]

    assert not isinstance(await _sent({"command": arguments, "cwd": str(tmp_path)}), Failed)

    assert (tmp_path / "told").read_text() == "nightly occ_1"


async def test_a_command_that_fails_is_tried_again(tmp_path: Path) -> None:
    outcome = await _sent({"command": ["sh", "-c", "echo no; exit 3"]})

    assert isinstance(outcome, Failed)
    assert "exit code 3" in outcome.error


# -------------------------------------------------------------------------------------------------------- all of them


@pytest.mark.parametrize(
    "receiver",
    [
        {"webhook": {"url": "https://example.org/"}},
        {"ping": "https://example.org/"},
        {"http": "https://example.org/"},
        {"command": ["false"]},
        {"email": {"to": "ops@example.org"}},
    ],
)
async def test_a_run_without_an_event_says_so(receiver: dict[str, Any], mail: MailTaker) -> None:
    """A18: `everytick trigger nightly.on_failure` has nothing to tell."""
    outcome = await _sent(receiver, {"other": 1}, mail)

    assert isinstance(outcome, Failed)
    assert outcome.give_up
    assert "no event" in outcome.error


def test_a_node_without_a_mail_server_cannot_run_e_mail() -> None:
    """A18: `doctor` and `list` say why; another node may have one."""
    job = job_of(json.dumps({"notice": {"email": {"to": "ops@example.org"}}, "needs": []}))

    assert "EVERYTICK_SMTP" in Catalogue({}).why(job)


async def test_a_failed_job_sends_an_e_mail_by_its_node(mail: MailTaker) -> None:
    """A18: from the failure to the mailbox, by a node in real time; the server refuses the first try."""
    mail.refusing = 1
    tick = Everytick("memory://", name="shop", smtp=f"smtp+plain://127.0.0.1:{mail.port}")

    @tick.job("0 0 1 1 *", on_failure=email("ops@example.org"))
    def nightly() -> None:
        raise ValueError("boom")

    async with tick:
        await tick.trigger("nightly")
        async with asyncio.timeout(60):
            message = await mail.came()
        [sent] = (await tick.history("nightly.on_failure")).occurrences

    text = message.get_payload(decode=True)
    assert isinstance(text, bytes)
    assert "ValueError: boom" in text.decode()
    assert message["Message-ID"] == f"<{sent.payload['id']}@everytick>"


async def test_a_file_that_wants_e_mail_is_warned_of_on_a_node_without_a_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A18: another node may have one, so that this one starts."""
    job = 'version: 1\njobs:\n  nightly: {schedule: "0 0 1 1 *", command: work, on_failure: {email: {to: a@b.org}}}\n'
    (tmp_path / "jobs.yaml").write_text(job)

    async with Everytick("memory://", name="shop", jobs=tmp_path):
        pass

    assert "job 'nightly' sends e-mail and this node has no smtp setting" in caplog.text
