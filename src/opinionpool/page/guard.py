"""Who is answered: requests from this machine, with the token, from the page itself, and of bounded size.

Requests under a foreign host name, or from a page of another origin, are refused first, which is what rebinding a name
to 127.0.0.1, or a form on a foreign page, would make.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Bytes of a request: a panel file of the largest size that is read, and some more.
MOST_BYTES = 1_200_000
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Middleware that refuses requests not made by the page itself, and limits their size."""

    def __init__(self, app: ASGIApp, token: str, hosts: frozenset[str]) -> None:
        self._app, self._token, self._hosts = app, token, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        left = MOST_BYTES

        async def bounded() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise TooLargeError
            return message

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(key.encode(), value.encode()) for key, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *own]
            await send(message)

        await self._app(scope, bounded, headed)

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in self._hosts:
            return refused(403, "this server answers on this machine alone")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            return refused(403, "this server answers its own page alone")
        given = f"{scope['path']}/".split("/")[1]
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return refused(403, "open the address that opinionpool open has printed")
        if int(headers.get("content-length", "0") or 0) > MOST_BYTES:
            return refused(413, "that is more than this page takes")
        return None


class TooLargeError(Exception):
    """A request has more bytes than are taken."""


def refused(status: int, why: str) -> Response:
    """Response with the reason for a refusal."""
    return PlainTextResponse(f"{why}\n", status, HEADERS)


async def gone(_request: Request, _error: Exception) -> Response:
    """The answer to a request whose sender has left, which nobody gets."""
    return refused(408, "the request ended before all of it had come")


async def too_large(_request: Request, _error: Exception) -> Response:
    """The answer to a request with more bytes than are taken."""
    return refused(413, "that is more than this page takes")
