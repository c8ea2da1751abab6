"""OpenID Connect: a provider says who the person is. Code flow with PKCE, state and nonce; authlib judges the token."""

from __future__ import annotations

import secrets
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from everytick.domain.values import value
from everytick.errors import InvalidSetting, MissingExtra
from everytick.web.csrf import is_loopback
from everytick.web.problems import Problem

if TYPE_CHECKING:
    from everytick.access.settings import OidcSettings

_ANSWER_SECONDS = 10
"""How long the provider has for one answer."""

_LARGEST_ANSWER_BYTES = 1_000_000
_KEPT_SECONDS = 3600
"""How long the description and the keys of a provider are kept."""

_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Signatures with a key that only the provider has: neither none nor a shared secret."""


@value(frozen=True)
class Flow:
    """One sign-in under way, known to this browser alone."""

    state: str
    nonce: str
    verifier: str
    next: str = ""


def new_flow(wanted: str) -> Flow:
    """Return a new sign-in that leads to the page that is wanted."""
    return Flow(secrets.token_urlsafe(24), secrets.token_urlsafe(24), secrets.token_urlsafe(48), wanted)


class Provider:
    """A provider of OpenID Connect. Its description is read when the first person asks for it."""

    def __init__(self, settings: OidcSettings) -> None:
        parts = urlsplit(settings.issuer)
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise InvalidSetting("web_oidc_issuer", settings.issuer, "must be https")
        self._settings = settings
        self._known: dict[str, tuple[float, Any]] = {}

    async def address(self, flow: Flow, back: str) -> str:
        """Return the provider's page on which the person proves who they are."""
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        described = await self._described()
        asked = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": back,
            "scope": "openid email profile",
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": create_s256_code_challenge(flow.verifier),
            "code_challenge_method": "S256",
        }
        separator = "&" if "?" in described["authorization_endpoint"] else "?"
        return f"{described['authorization_endpoint']}{separator}{urlencode(asked)}"

    async def name(self, code: str, flow: Flow, back: str) -> str:
        """Return the name of the person for whom the provider gave this code, by its signed token."""
        described = await self._described()
        answer = await self._asked(
            "POST",
            described["token_endpoint"],
            data={
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": back,
                "code_verifier": flow.verifier,
            },
            auth=(self._settings.client_id, self._settings.client_secret),
        )
        claims = await self._claims(str(answer.get("id_token", "")), described, flow)
        name = claims.get(self._settings.claim)
        if not isinstance(name, str) or not name:
            raise _refused(f"the provider names no {self._settings.claim}")
        if self._settings.claim == "email":
            self._check_address(claims.get("email_verified"))
        return name

    def _check_address(self, verified: object) -> None:
        """Refuse an address that the provider has not verified: it may be that of another user here."""
        # Some providers write the word.
        if verified in (True, "true"):
            return
        if verified is not None:
            raise _refused("the provider has not verified the address")
        if not self._settings.trust_email:
            text = "its token does not say whether the address is verified (no email_verified)"
            raise _refused(f"{text}; an admin who trusts its addresses sets web_oidc_trust_email")

    async def _claims(self, token: str, described: dict[str, Any], flow: Flow) -> dict[str, Any]:
        from authlib.oidc.core import CodeIDToken
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        try:
            keys = KeySet.import_key_set(await self._kept(described["jwks_uri"]))
            read = jwt.decode(token, keys, algorithms=_ALGORITHMS)
            options: dict[str, Any] = {
                "iss": {"essential": True, "value": described["issuer"]},
                "aud": {"essential": True, "value": self._settings.client_id},
            }
            params = {"nonce": flow.nonce, "client_id": self._settings.client_id}
            claims = CodeIDToken(read.claims, read.header, options, params)
            claims.validate(leeway=60)
        except (JoseError, ValueError, KeyError) as error:
            raise _refused(f"its token is not accepted ({type(error).__name__})") from error
        return dict(claims)

    async def _described(self) -> dict[str, Any]:
        """Return the provider's description. Its `issuer` is the one of the settings, or that and a slash."""
        issuer = self._settings.issuer
        found: dict[str, Any] = await self._kept(f"{issuer}/.well-known/openid-configuration")
        # The settings drop the slash at the end. Auth0 writes it, in the description and in every token.
        if found.get("issuer") not in (issuer, f"{issuer}/"):
            raise _refused("its description names another issuer")
        return found

    async def _kept(self, address: str) -> Any:
        at, found = self._known.get(address, (0.0, None))
        if found is None or time.monotonic() - at > _KEPT_SECONDS:
            found = await self._asked("GET", address)
            self._known[address] = time.monotonic(), found
        return found

    async def _asked(self, method: str, address: str, **given: Any) -> dict[str, Any]:
        import httpx2

        try:
            async with httpx2.AsyncClient(timeout=_ANSWER_SECONDS, follow_redirects=False, trust_env=False) as client:
                answer = await client.request(method, address, **given)
            if answer.status_code != 200 or len(answer.content) > _LARGEST_ANSWER_BYTES:
                raise _refused(f"it answers {answer.status_code}")
            found = answer.json()
        except (httpx2.HTTPError, ValueError) as error:
            raise _refused(f"it cannot be asked ({type(error).__name__})") from error
        if not isinstance(found, dict):
            raise _refused("its answer is no object")
        return found


def provider_of(settings: OidcSettings) -> Provider:
    """Return the provider, or say which extra is missing."""
    try:
        for module in ("authlib.oidc.core", "joserfc", "httpx2"):
            import_module(module)
    except ModuleNotFoundError:
        raise MissingExtra("OpenID Connect", "oidc") from None
    return Provider(settings)


def _refused(why: str) -> Problem:
    return Problem(403, "provider_failed", f"signing in by the provider failed: {why}")
