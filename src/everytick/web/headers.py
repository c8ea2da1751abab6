"""Headers that every answer carries: what a browser may load, where it may be shown, what it may keep."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "manifest-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)

_ALWAYS = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # Not no-referrer: a browser would send `Origin: null` with our own forms then.
    (b"referrer-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    (b"x-permitted-cross-domain-policies", b"none"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Headers:
    """Adds the headers. `cache-control` is added where the answer says nothing: it may be private."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _with_ours(message.get("headers", ()))}
            await send(message)

        await self._app(scope, receive, sending)


def _with_ours(given: object) -> list[tuple[bytes, bytes]]:
    headers = [(bytes(name).lower(), bytes(said)) for name, said in given]  # type: ignore[attr-defined]
    names = {name for name, _ in headers}
    ours = [pair for pair in _ALWAYS if pair[0] not in names]
    if b"cache-control" not in names:
        ours.append((b"cache-control", b"private, no-cache" if b"etag" in names else b"no-store"))
    return [(name, said) for name, said in headers if name != b"server"] + ours
