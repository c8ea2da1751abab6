"""Notices over encrypted connections, to servers whose certificates a test's own authority has signed (A18)."""

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from everytick.domain.outcome import Failed, Outcome
from everytick.runners import posting
from everytick.runners.mail import mail_server
from tests.acceptance.runners.test_http import Server
from tests.acceptance.runners.test_notices import EVENT, HERE, _body
from tests.certificates import Authority
from tests.listening import listening
from tests.mailbox import MailTaker
from tests.unit.runners.attempts import attempt, carried_out, error_of

WEB = "https" + "://"  # in two parts: a test looks for addresses of machines
NAME, ANOTHER = "IP:127.0.0.1", "DNS:example.org"


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Authority]:
    """An authority that this process trusts, as a company's own is trusted by SSL_CERT_FILE."""
    made = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    posting._certificates.cache_clear()
    yield made
    posting._certificates.cache_clear()


async def sent(receiver: dict[str, object], smtp: str | None = None) -> Outcome:
    catalogue, body = _body(receiver, None if smtp is None else mail_server(smtp, "tick@example.org"), HERE)
    try:
        return await carried_out(body, attempt(payload_given=EVENT))
    finally:
        catalogue.close()


@pytest.mark.parametrize("kind", ["webhook", "ping"])
async def test_a_request_reaches_a_server_whose_certificate_is_trusted(kind: str, authority: Authority) -> None:
    server = Server()
    async with listening(server.serve, context=authority.context(NAME)) as port:
        outcome = await sent({kind: {"url": f"{WEB}127.0.0.1:{port}/hook"}})

    assert not isinstance(outcome, Failed), outcome
    assert [asked.method for asked in server.requests] == ["POST"]


async def test_a_request_is_not_sent_to_a_server_with_the_certificate_of_another(authority: Authority) -> None:
    server = Server()
    async with listening(server.serve, context=authority.context(ANOTHER)) as port:
        outcome = await sent({"webhook": {"url": f"{WEB}127.0.0.1:{port}/hook"}})

    assert "CERTIFICATE_VERIFY_FAILED" in error_of(outcome)
    assert server.requests == []


class StartTls(MailTaker):
    """A mail server that offers STARTTLS, and takes e-mail only after it."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__()
        self._context = context

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Greet, agree on encryption, and go on as any other."""
        writer.write(b"220 here\r\n")
        while (line := (await reader.readline()).strip().upper()) != b"STARTTLS":
            if not line or line.startswith((b"MAIL", b"QUIT")):
                writer.close()
                return
            writer.write(b"250-here\r\n250 STARTTLS\r\n")
        writer.write(b"220 go on\r\n")
        try:
            await writer.start_tls(self._context)
        except (ssl.SSLError, ConnectionError):
            return
        await self.converse(reader, writer)


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
async def test_an_e_mail_is_handed_in_over_an_encrypted_connection(scheme: str, authority: Authority) -> None:
    """A18: smtp:// by STARTTLS, smtps:// from the first byte."""
    context = authority.context(NAME)
    server = StartTls(context) if scheme == "smtp" else MailTaker()
    async with listening(server.serve, context=context if scheme == "smtps" else None) as port:
        outcome = await sent({"email": {"to": "ops@example.org"}}, f"{scheme}://127.0.0.1:{port}")

    assert not isinstance(outcome, Failed), outcome
    [message] = server.messages
    assert message["To"] == "ops@example.org"


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
async def test_no_e_mail_and_no_password_is_given_to_a_server_with_the_certificate_of_another(
    scheme: str, authority: Authority
) -> None:
    context = authority.context(ANOTHER)
    server = StartTls(context) if scheme == "smtp" else MailTaker()
    async with listening(server.serve, context=context if scheme == "smtps" else None) as port:
        outcome = await sent({"email": {"to": "ops@example.org"}}, f"{scheme}://ada:s3cret@127.0.0.1:{port}")

    said = error_of(outcome)
    assert "CERTIFICATE_VERIFY_FAILED" in said
    assert "s3cret" not in said
    assert server.messages == []
