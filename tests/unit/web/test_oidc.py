"""Sign-in by OpenID Connect, against a small provider on a socket of its own that signs what it is told to."""

import asyncio
import base64
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI, Request
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from everytick import Everytick
from everytick.access.settings import access_settings
from everytick.domain.people import CameBy, Doer, Role
from everytick.errors import InvalidSetting, MissingExtra
from everytick.stores.memory import MemoryStore
from everytick.web.asgi import asgi

KEY = RSAKey.generate_key(2048, parameters={"kid": "one"})
OTHER = RSAKey.generate_key(2048, parameters={"kid": "one"})
SETUP = Doer("setup", CameBy.COMMAND)


class Provider:
    """A provider whose one person is `claims`; it gives a code and, for code and proof, a signed token."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.issuer = self.base
        self.claims: dict[str, Any] = {"email": "ann@example.org", "email_verified": True}
        self.key: Any = KEY
        self.header = {"alg": "RS256", "kid": "one"}
        self._asked: dict[str, dict[str, str]] = {}
        self.app = FastAPI()
        self.app.get("/.well-known/openid-configuration")(self.describe)
        self.app.get("/keys")(self.keys)
        self.app.post("/token")(self.token)

    async def describe(self) -> dict[str, str]:
        at = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
        return {"issuer": self.issuer, **{key: self.base + path for key, path in at.items()}}

    async def keys(self) -> dict[str, Any]:
        return {"keys": [KEY.as_dict(private=False)]}

    def authorize(self, address: str) -> dict[str, str]:
        """Return what the person's browser brings back: the provider has signed them in."""
        asked = {key: values[0] for key, values in parse_qs(urlsplit(address).query).items()}
        self._asked["the-code"] = asked
        return {"code": "the-code", "state": asked["state"]}

    async def token(self, request: Request) -> dict[str, str]:
        form = await request.form()
        asked = self._asked.pop(str(form["code"]))
        proof = base64.urlsafe_b64encode(sha256(str(form["code_verifier"]).encode()).digest()).rstrip(b"=").decode()
        assert proof == asked["code_challenge"]
        assert form["redirect_uri"] == asked["redirect_uri"]
        client = base64.b64decode(request.headers["authorization"].removeprefix("Basic ")).decode()
        assert client == "everytick:the-secret"
        now = int(time.time())
        usual = {"iss": self.issuer, "aud": "everytick", "sub": "1", "iat": now, "exp": now + 60}
        claims = {**usual, "nonce": asked["nonce"], **self.claims}
        return {"id_token": jwt.encode(self.header, claims, self.key), "access_token": "x", "token_type": "Bearer"}


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    bound = socket.create_server(("127.0.0.1", 0))
    made = Provider(bound.getsockname()[1])
    server = uvicorn.Server(uvicorn.Config(made.app, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
    serving = asyncio.create_task(server.serve([bound]))
    yield made
    server.should_exit = True
    await serving


@asynccontextmanager
async def _browsing(issuer: str, *, trust_email: bool = False) -> AsyncIterator[httpx2.AsyncClient]:
    store = MemoryStore(lambda: datetime.now(UTC))
    await store.open()
    tick = Everytick(store, name="shop")
    with tick.acting_as(SETUP):
        await tick.people.add_user("ann@example.org", Role.ADMIN)
    access = access_settings(
        oidc_issuer=issuer,
        oidc_client_id="everytick",
        oidc_client_secret="the-secret",
        oidc_trust_email=trust_email,
    )
    transport = httpx2.ASGITransport(asgi(tick, access), client=("192.0.2.7", 5000))
    headers = {"accept": "text/html"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as asking:
        yield asking


@pytest.fixture
async def browser(provider: Provider) -> AsyncIterator[httpx2.AsyncClient]:
    async with _browsing(provider.issuer) as asking:
        yield asking


async def _sign_in(browser: httpx2.AsyncClient, provider: Provider, **changed: str) -> httpx2.Response:
    there = await browser.get("/oidc", params={"next": "/more"})
    assert there.status_code == 303
    assert "SameSite=Lax" in there.headers["set-cookie"]
    return await browser.get("/oidc/callback", params={**provider.authorize(there.headers["location"]), **changed})


async def test_a_user_comes_in_by_the_provider(browser: httpx2.AsyncClient, provider: Provider) -> None:
    """S6: a session as after a password; the page wanted follows."""
    assert "Sign in with your organisation" in (await browser.get("/signin")).text
    back = await _sign_in(browser, provider)

    assert (back.status_code, 'content="0; url=/more"' in back.text) == (200, True)
    assert (await browser.get("/more")).status_code == 200
    assert "ann@example.org" in (await browser.get("/more")).text


@pytest.mark.parametrize("slash_of_provider", ["", "/"])
@pytest.mark.parametrize("slash_of_settings", ["", "/"])
async def test_a_slash_at_the_end_of_the_issuer_is_no_matter(
    provider: Provider, slash_of_settings: str, slash_of_provider: str
) -> None:
    """S6: Auth0 writes it; the description and the token name the same issuer."""
    provider.issuer += slash_of_provider
    async with _browsing(provider.base + slash_of_settings) as browser:
        assert (await _sign_in(browser, provider)).status_code == 200


async def test_a_token_names_the_issuer_as_the_description_does(
    browser: httpx2.AsyncClient, provider: Provider
) -> None:
    provider.claims["iss"] = f"{provider.issuer}/"

    assert (await _sign_in(browser, provider)).status_code == 403


async def test_the_description_of_another_issuer_is_refused(browser: httpx2.AsyncClient, provider: Provider) -> None:
    provider.issuer += "//"

    assert (await browser.get("/oidc")).status_code == 403


async def test_an_address_that_the_provider_says_nothing_about_opens_nothing(
    browser: httpx2.AsyncClient, provider: Provider
) -> None:
    """S6: a person may enter any address at some providers, also that of an admin here."""
    del provider.claims["email_verified"]
    back = await _sign_in(browser, provider)

    assert back.status_code == 403
    assert "web_oidc_trust_email" in back.text
    assert "everytick_session" not in back.headers.get("set-cookie", "")


@pytest.mark.parametrize(("verified", "status"), [(None, 200), (True, 200), ("true", 200), (False, 403), ("", 403)])
async def test_trusted_addresses_need_no_word_of_the_provider(
    provider: Provider, verified: object, status: int
) -> None:
    """S6: an admin who trusts the provider says so by name; an address called unverified stays refused."""
    provider.claims["email_verified"] = verified
    async with _browsing(provider.issuer, trust_email=True) as browser:
        assert (await _sign_in(browser, provider)).status_code == status


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "ann@example.org.evil"},
        {"email": "xann@example.org"},
        {"email": "ANN@example.org"},
        {"email": ["ann@example.org"]},
        {"email": "ann@example.org", "email_verified": False},
        {"email": "ann@example.org", "email_verified": "false"},
        {"email": "ann@example.org", "email_verified": None},
        {"aud": "another"},
        {"iss": "another"},
        {"nonce": "another"},
        {"exp": 1},
    ],
)
async def test_another_name_or_another_token_opens_nothing(
    browser: httpx2.AsyncClient, provider: Provider, claims: dict[str, Any]
) -> None:
    """S6: the whole identity counts; the token is for us, for now and for this sign-in."""
    provider.claims |= claims
    back = await _sign_in(browser, provider)

    assert back.status_code == 403
    assert "everytick_session" not in back.headers.get("set-cookie", "")


@pytest.mark.parametrize(
    ("key", "header"),
    [(OTHER, {"alg": "RS256", "kid": "one"}), (OctKey.import_key("the-secret" * 4), {"alg": "HS256", "kid": "one"})],
)
async def test_a_token_that_another_key_signed_opens_nothing(
    browser: httpx2.AsyncClient, provider: Provider, key: Any, header: dict[str, str]
) -> None:
    """Neither a key of another nor a shared secret in the place of the provider's key."""
    provider.key, provider.header = key, header

    assert (await _sign_in(browser, provider)).status_code == 403


async def test_a_sign_in_ends_in_the_browser_in_which_it_began(browser: httpx2.AsyncClient, provider: Provider) -> None:
    """A stranger's code signs no user in as the stranger."""
    assert (await _sign_in(browser, provider, state="another")).status_code == 403
    browser.cookies.clear()
    assert (await browser.get("/oidc/callback", params={"code": "the-code", "state": ""})).status_code == 403


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service needs none of it until a provider is named."""
    monkeypatch.setitem(sys.modules, "authlib.oidc.core", None)
    access = access_settings(oidc_issuer="https://example.org", oidc_client_id="a", oidc_client_secret="b")
    assert asgi(Everytick("memory://", name="shop")) is not None
    with pytest.raises(MissingExtra, match=r"everytick\[oidc\]"):
        asgi(Everytick("memory://", name="shop"), access)


def test_a_provider_is_asked_by_https_alone() -> None:
    with pytest.raises(InvalidSetting, match="https"):
        asgi(
            Everytick("memory://", name="shop"),
            access_settings(oidc_issuer="http://example.org", oidc_client_id="a", oidc_client_secret="b"),
        )
