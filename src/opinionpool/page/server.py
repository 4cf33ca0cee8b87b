"""The server of the page: only this machine reaches it, only with a token, and it ends when its last page is closed.

Everything lies below a path that begins with a token made at each start, so that whoever has not read the address that
was printed gets nothing. Requests under a foreign host name, or from a page of another origin, are refused first, which
is what rebinding a name to 127.0.0.1, or a form on a foreign page, would make.
"""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Any, TypeAlias

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opinionpool.errors import ArgumentError
from opinionpool.page import handover, panel, views
from opinionpool.page.answer import PageData
from opinionpool.page.assessment import Assessment, number
from opinionpool.page.panel import button, help_texts
from opinionpool.page.session import Evidence, Keeper, PageInputs, Session, start_of
from opinionpool.report.blocks import STYLE, Html, document, joined, markup, rendered
from opinionpool.report.listing import printable

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
    """Middleware that refuses requests that are too large, or do not come from the page itself."""

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
    """Error for a request whose body is larger than the limit."""


def refused(status: int, why: str) -> Response:
    """Return the HTTP response `status` with `why`, the reason for which a request is refused."""
    return PlainTextResponse(f"{why}\n", status, HEADERS)


def refusing(status: int, why: str) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Error handler that answers with HTTP `status` and `why`, in which {error} and {kind} stand for the error."""

    async def answer(_request: Request, error: Exception) -> Response:
        return refused(status, why.format(error=error, kind=type(error).__name__))

    return answer


HOST = "127.0.0.1"
# Seconds that the server waits for another page once its last one was closed.
LINGER = 60.0
# Pages at a time, and actions in a request.
MOST_PAGES, MOST_ACTIONS = 50, 200
ASSETS = {"icon.svg": "image/svg+xml", "page.js": "text/javascript", "page.css": "text/css"}
TYPES = {".html": "text/html", ".toml": "application/toml", ".csv": "text/csv", ".json": "application/json"}


# Markup in the head of a page: the style and script that it loads.
HEAD = Html(
    '\n<link rel="stylesheet" href="../../assets/report.css">\n<link rel="stylesheet" href="../../assets/page.css">\n'
    '<link rel="icon" href="../../assets/icon.svg">\n<script src="../../assets/page.js" defer></script>'
)
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


class Page:
    """Web application: the page's sessions, one for each browser tab, and endpoints below a secret path."""

    def __init__(self, data: PageData, given: Assessment | None, keeper: Keeper, token: str) -> None:
        self._data, self._given, self._keeper = data, given, keeper
        self._sessions: dict[str, Session] = {}
        self.evidence = Evidence(data)
        self.stopping = asyncio.Event()
        self.open, self.closed_at = 0, math.inf
        routes = [
            Route("/", self._new),
            Route("/page/{name}/", self._page),
            Route("/page/{name}/move", self._known(self._move), methods=["POST"]),
            Route("/page/{name}/later/{what}", self._known(self._later)),
            Route("/page/{name}/alive", self._known(self._alive)),
            Route("/page/{name}/get/{file}", self._known(self._get)),
            Route("/assets/{file}", _asset),
        ]
        self.app = Starlette(
            routes=[Mount(f"/{token}", routes=routes)],
            exception_handlers={
                TooLargeError: refusing(413, "that is more than this page takes"),
                ClientDisconnect: refusing(408, "the request ended before all of it had come"),
                Exception: refusing(500, "a fault of opinionpool itself, please report it: {kind}: {error}"),
            },
        )

    def _known(self, answer: Callable[[Session, Request], Awaitable[Response]]) -> Endpoint:
        """Return an endpoint that calls `answer` with the request's session, or refuses requests without a session."""

        async def endpoint(request: Request) -> Response:
            session = self._sessions.get(request.path_params["name"])
            if session is None:
                return refused(410, "this page is no longer known here; load it again")
            return await answer(session, request)

        return endpoint

    async def _new(self, _request: Request) -> Response:
        """A page of its own for everyone who opens the printed address."""
        start = await run_in_threadpool(start_of, self._data, self._given)
        session = Session(self._data, start)
        while len(self._sessions) >= MOST_PAGES:
            oldest = min(self._sessions.values(), key=lambda each: each.used)
            del self._sessions[oldest.name]
        self._sessions[session.name] = session
        return RedirectResponse(f"page/{session.name}/", 303)

    async def _page(self, request: Request) -> Response:
        session = self._sessions.get(request.path_params["name"])
        if session is None:
            return RedirectResponse("../../", 303)
        return await run_in_threadpool(self._drawn_page, session)

    def _drawn_page(self, session: Session) -> Response:
        with session.lock:
            session.trouble = session.wrong = ""
            inputs = session.inputs()
            regions = self._draw(session, inputs, None)
            version = session.version
        offers = joined(
            markup(
                "<li>{} <span>{}</span></li>",
                button(f"Go on with {printable(kept.assessment.question)[:60]}", "take", id=f"take-{i}", data_value=i),
                f"kept on {kept.when.replace('T', ' at ')[:19]}, {len(kept.assessment.experts)} experts",
            )
            for i, kept in enumerate(self._keeper.found)
            if self._fits(kept.assessment)
        )  # fmt: skip
        return Response(_document(inputs, regions, offers, version), media_type="text/html")

    def _fits(self, kept: Assessment) -> bool:
        """Return True if a kept assessment is about an event of the page's file, or if the page has no file."""
        f = self._data.forecasts
        return f is None or kept.question in f.events

    def _pieces(self, inputs: PageInputs) -> dict[str, Html]:
        """Return the HTML of what an action can change on the page, by the id of the element around it."""
        work: dict[str, Callable[[], dict[str, Html]]] = {
            "panel": lambda: panel.pieces_of(inputs),
            "what_if": lambda: {"work": views.what_if(inputs)},
            "evidence": lambda: {"work": views.evidence(inputs)},
            "hand_over": lambda: {"work": handover.view(inputs)},
            "events": lambda: {"work": views.events(inputs, self._data.pooled())},
        }
        common = {"top": views.top(inputs), "trouble": views.trouble(inputs), "answer": views.answer(inputs)}
        return common | work[inputs.look.view]()

    def _draw(self, session: Session, inputs: PageInputs, version: object) -> dict[str, Html]:
        """HTML of all that changed since the page's `version`; of everything if that is not the last version drawn."""
        pieces, before = self._pieces(inputs), session.drawn
        same = version == session.version and before.keys() == pieces.keys()
        session.drawn, session.version = pieces, session.version + 1
        if same:
            return {key: html for key, html in pieces.items() if before[key] != html}
        return {key: pieces[key] for key in ("top", "trouble", "answer")} | {
            "work": pieces.get("work") or panel.panel(pieces)
        }

    async def _move(self, session: Session, request: Request) -> Response:
        """Do actions, one after the other, and draw the page anew."""
        # Forms of foreign pages cannot send this type without being asked for their origin.
        if not request.headers.get("content-type", "").startswith("application/json"):
            return refused(415, "moves are JSON")
        try:
            given = json.loads(await request.body())
            version, moves = given["version"], given["moves"]
            valid = isinstance(moves, list) and 0 < len(moves) <= MOST_ACTIONS and all(map(_plain, moves))
        except (ValueError, RecursionError, KeyError, TypeError):
            valid = False
        if not valid:
            return refused(400, "moves are a list of objects, and the version that they were made on")
        return await run_in_threadpool(self._moved, session, moves, version)

    def _moved(self, session: Session, moves: list[dict[str, Any]], version: object) -> Response:
        since, busy = time.perf_counter(), time.thread_time()
        with session.lock:
            before = session.present
            for move in moves:
                self._take(session, move) if move.get("do") == "take" else session.act(move)
            if session.present is not before:
                self._keeper.keep(session)
            inputs = session.inputs()
            regions = self._draw(session, inputs, version)
            version = session.version
        took, worked = 1000.0 * (time.perf_counter() - since), 1000.0 * (time.thread_time() - busy)
        drawn = {
            "version": version,
            "regions": regions,
            "live": views.live(inputs),
            "wrong": {"field": session.wrong, "text": session.trouble},
            "view": inputs.look.view,
            "keep": self._keeper.failure,
        }
        return JSONResponse(drawn, headers={"server-timing": f"move;dur={took:.1f}, processor;dur={worked:.1f}"})

    def _take(self, session: Session, move: Mapping[str, Any]) -> None:
        kept = self._keeper.found
        try:
            chosen = kept[int(number(move.get("value"), "an assessment", 0, len(kept) - 1))].assessment
        except ArgumentError:
            session.trouble = "there is no such assessment"
        else:
            if self._fits(chosen):
                session.take(chosen)

    async def _later(self, session: Session, request: Request) -> Response:
        """What takes longer than a move may."""
        what = request.path_params["what"]
        if what not in {"effects", "findings"}:
            return refused(404, "there is no such part")

        def part() -> Response:
            with session.lock:
                inputs = session.inputs()
            if what == "findings":
                return JSONResponse(self.evidence.now(inputs))
            return JSONResponse({"html": rendered(views.effects(inputs)), "again": False})

        return await run_in_threadpool(part)

    async def _get(self, session: Session, request: Request) -> Response:
        """A file to take away."""
        return await run_in_threadpool(self._file, session, request.path_params["file"])

    def _file(self, session: Session, file: str) -> Response:
        with session.lock:
            inputs, when = session.inputs(), session.when
        if inputs.found is None:
            return refused(409, inputs.trouble or "there is no answer yet")
        if file == handover.ARCHIVE:
            content = handover.archive(inputs, inputs.found, when)
        elif file in handover.names(inputs.a, inputs.data, inputs.found):
            content = handover.content(file, inputs, inputs.found, when)
        else:
            return refused(404, "there is no such file")
        kind = TYPES.get("." + file.rpartition(".")[2], "application/octet-stream")
        return Response(content, media_type=kind, headers={"content-disposition": f'attachment; filename="{file}"'})

    async def _alive(self, session: Session, _request: Request) -> Response:
        """A stream that lasts as long as the page is open."""

        async def beats() -> AsyncIterator[str]:
            self.open += 1
            try:
                while not self.stopping.is_set():
                    session.used = time.monotonic()
                    yield ": open\n\n"
                    try:
                        await asyncio.wait_for(self.stopping.wait(), 10.0)
                    except TimeoutError:
                        continue
                yield "event: end\ndata: end\n\n"
            finally:
                self.open -= 1
                self.closed_at = time.monotonic()

        return StreamingResponse(beats(), media_type="text/event-stream")


def _document(inputs: PageInputs, regions: Mapping[str, Html], offers: Html, version: int) -> Html:
    """Return the page as an HTML document; `regions` has the HTML that actions change, by element id."""
    kept = markup(
        '<section class="kept" id="kept" aria-label="Kept assessments"><h2>Kept from an earlier start</h2>'
        "<ul>{}</ul>{}</section>",
        offers, button("Begin anew", "dismiss", id="dismiss"),
    )  # fmt: skip
    body = markup(
        '<a class="skip" href="#answer">To the answer</a>\n'
        '<header id="top">{}</header>\n<div id="trouble" role="alert">{}</div>\n{}'
        '<p id="live" class="unseen" aria-live="polite"></p>\n<main><div id="work">{}</div>\n'
        '<section id="answer" aria-label="Answer" tabindex="-1">{}</section></main>\n{}'
        "<noscript><p>This page needs JavaScript, which comes from your own machine alone.</p></noscript>",
        regions["top"], regions["trouble"], kept if offers else "", regions["work"], regions["answer"], help_texts(),
    )  # fmt: skip
    return document(f"{printable(inputs.question)} – opinionpool", HEAD, body, f' data-version="{version}"')


async def _asset(request: Request) -> Response:
    file = request.path_params["file"]
    if file == "report.css":
        return Response(STYLE, media_type="text/css")
    if file not in ASSETS:
        return refused(404, "there is no such file")
    return Response((files("opinionpool.page") / "assets" / file).read_bytes(), media_type=ASSETS[file])


def _plain(move: object) -> bool:
    """Return True if an action sent by the page is an object whose values are neither lists nor objects."""
    return isinstance(move, dict) and not any(isinstance(value, list | dict) for value in move.values())


class Server:
    """Server of the page, which stops on request, or `linger` seconds after the last browser tab was closed."""

    def __init__(
        self,
        data: PageData,
        given: Assessment | None = None,
        *,
        keep: str | None = None,
        port: int = 0,
        linger: float = LINGER,
    ) -> None:
        self.keeper = Keeper(keep)
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((HOST, port))
        self._socket.listen()
        self.port = int(self._socket.getsockname()[1])
        self.token = secrets.token_urlsafe(24)
        self.address = f"http://{HOST}:{self.port}/{self.token}/"
        self._linger = linger
        self._parts = data, given
        self._server: uvicorn.Server | None = None
        self.started = threading.Event()

    def run(self) -> None:
        """Serve the page until `stop` is called or Ctrl-C is pressed."""
        asyncio.run(self._serve())

    def stop(self) -> None:
        """Ask the server to stop; can be called from any thread."""
        if self._server is not None:
            self._server.should_exit = True

    async def _serve(self) -> None:
        data, given = self._parts
        page = Page(data, given, self.keeper, self.token)
        hosts = frozenset({f"{HOST}:{self.port}", f"localhost:{self.port}"})
        config = uvicorn.Config(
            Guard(page.app, self.token, hosts), log_config=None, access_log=False, lifespan="off", ws="none",
            server_header=False, timeout_graceful_shutdown=2,
        )  # fmt: skip
        self._server = _Uvicorn(config, page.stopping, self.started)
        watching = asyncio.create_task(self._watch(page))
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            watching.cancel()
            page.evidence.close()

    async def _watch(self, page: Page) -> None:
        """End when the last page was closed for long enough."""
        while True:
            await asyncio.sleep(min(1.0, self._linger / 4))
            if page.open == 0 and time.monotonic() - page.closed_at > self._linger:
                self.stop()
                return


class _Uvicorn(uvicorn.Server):
    """Uvicorn server that ends open event streams when it stops, as it would otherwise wait for them."""

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event, started: threading.Event) -> None:
        super().__init__(config)
        self._stopping, self._started = stopping, started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        self._started.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End open streams, then the rest."""
        self._stopping.set()
        await super().shutdown(sockets)
