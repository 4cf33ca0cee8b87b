"""Pages as they run: a server in a thread, and a browser if there is one."""

import http.client
import json
import os
import shutil
import threading
from contextlib import contextmanager

import pytest

pytest.importorskip("starlette", reason="the page needs Starlette: pip install 'opinionpool[page]'")
pytest.importorskip("uvicorn", reason="the page needs uvicorn: pip install 'opinionpool[page]'")

from opinionpool.page.answer import PageData
from opinionpool.page.server import Server

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Running:
    """A server that runs, and requests to it."""

    def __init__(self, server):
        self.server = server
        self.address, self.token, self.port = server.address, server.token, server.port

    def request(self, path, *, method="GET", body=None, headers=None):
        """Status, headers and body of one request; `path` begins after the token."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, f"/{self.token}/{path}", body, {"host": f"127.0.0.1:{self.port}"} | (headers or {}))
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), content

    def page(self):
        """The path of a new page."""
        status, headers, _ = self.request("")
        assert status == 303
        return headers["location"]

    def move(self, page, *moves):
        """What the server draws after some moves."""
        body = json.dumps({"version": None, "moves": moves})
        status, headers, content = self.request(
            f"{page}move", method="POST", body=body, headers={"content-type": "application/json"}
        )
        assert status == 200, content
        return json.loads(content) | {"timing": float(headers["server-timing"].rpartition("dur=")[2])}


@pytest.fixture
def serve():
    """Run a server until the test ends."""
    running = []

    def start(data=None, given=None, **options):
        server = Server(data or PageData(), given, **options)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        assert server.started.wait(20)
        running.append((server, thread))
        return Running(server)

    yield start
    for server, thread in running:
        server.stop()
        thread.join(20)
        assert not thread.is_alive()


def browser_path():
    """The browser of this machine, None if there is none."""
    named = os.environ.get("OPINIONPOOL_TEST_BROWSER")
    return named or next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.fixture(scope="session")
def browser():
    """A browser, driven by Playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="tests in a browser need playwright")
    path = browser_path()
    if path is None:
        pytest.skip("no Chromium is installed: apt-get install chromium, or name one in OPINIONPOOL_TEST_BROWSER")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@contextmanager
def watched(browser, address, **options):
    """A page whose errors, and requests to other hosts, fail the test."""
    context = browser.new_context(**options)
    page = context.new_page()
    trouble, hosts = [], set()
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    page.goto(address)
    yield page
    context.close()
    assert trouble == []
    assert hosts == {address.split("/")[2]}
