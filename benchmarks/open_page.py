"""How long the page takes from a move of a control to the answer, at the server and on the screen.

    python benchmarks/open_page.py [--browser /usr/bin/chromium]

Times at the server are of the processor, and those on the screen are from the event of the control until the next frame
after the answer was drawn; both are medians and the largest of some moves.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

import numpy as np

from opinionpool.forecasts import Forecasts
from opinionpool.learning.beliefs import Beliefs, ExpertBeliefs
from opinionpool.page.answer import PageData
from opinionpool.page.assessment import Assessment, Expert
from opinionpool.page.server import Server

MOVES = 40


def panel(n: int) -> Assessment:
    """An assessed panel of n experts."""
    experts = tuple(
        Expert(
            i,
            f"expert {i}",
            (0.2 + 0.6 * ((7 * i) % n) / n,),
            ExpertBeliefs(auc=0.6 + 0.3 * i / n, calibration=0.9, bias=0.1),
        )
        for i in range(1, n + 1)
    )
    return Assessment("Will it happen?", experts=experts, everyone=Beliefs(correlation=0.5), prior=(0.4,))


def forecasts(events: int, n: int) -> Forecasts:
    """Forecasts by n experts, half of the events resolved."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=events)
    spread = rng.uniform(0.8, 2.0, n)
    X = 1.0 / (1.0 + np.exp(-((2 * y - 1)[:, None] + rng.normal(size=(events, n)) * spread)))
    outcomes = [int(each) if i % 2 else None for i, each in enumerate(y)]
    return Forecasts.from_array(X, outcomes, events=[f"question {i}" for i in range(events)])


class Client:
    """Moves at a running server."""

    def __init__(self, data: PageData, given: Assessment | None = None) -> None:
        self.server = Server(data, given)
        threading.Thread(target=self.server.run, daemon=True).start()
        self.server.started.wait(30)
        self.page = urllib.request.urlopen(self.server.address).url
        self.version = 1

    def move(self, **entry: object) -> tuple[float, float, int]:
        """Processor and elapsed milliseconds of one move, and the bytes that it draws."""
        request = urllib.request.Request(
            f"{self.page}move",
            json.dumps({"version": self.version, "moves": [entry]}).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            content = answer.read()
            size, self.version = len(content), json.loads(content)["version"]
            timing = dict(part.split(";dur=") for part in answer.headers["server-timing"].split(", "))
        return float(timing["processor"]), float(timing["move"]), size

    def times(self, entries: list[dict[str, object]]) -> tuple[float, float, float, float]:
        """Of several moves: median and most of the processor, median elapsed, kilobytes."""
        found = np.array([self.move(**entry) for entry in entries])
        return np.median(found[:, 0]), found[:, 0].max(), np.median(found[:, 1]), found[:, 2].max() / 1000


def at_the_server() -> list[tuple[str, float, float, float, float]]:
    """Rows of what is moved, and how long it takes."""
    rows = []

    def measure(what: str, client: Client, entries: list[dict[str, object]]) -> None:
        client.move(**entries[0])
        rows.append((what, *client.times(entries[1:])))

    for n in (4, 20, 60):
        client = Client(PageData(), panel(n))
        measure(
            f"{n} experts, a forecast", client, [{"do": "forecast", "expert": 2, "value": 20 + i} for i in range(MOVES)]
        )
        measure(
            f"{n} experts, an accuracy",
            client,
            [{"do": "accuracy", "unit": "auc", "expert": 2, "value": 0.6 + 0.005 * i} for i in range(MOVES)],
        )
        client.server.stop()
    client = Client(PageData(forecasts(1000, 20)))
    measure(
        "file of 1,000 events, a forecast",
        client,
        [{"do": "forecast", "expert": 2, "value": 20 + i} for i in range(MOVES)],
    )
    measure(
        "file of 1,000 events, an accuracy (learns anew)",
        client,
        [{"do": "accuracy", "unit": "auc", "expert": 2, "value": 0.6 + 0.005 * i} for i in range(MOVES)],
    )
    client.server.stop()
    client = Client(PageData(forecasts(100_000, 5)))
    client.move(do="view", value="events")
    measure("100,000 events, a search", client, [{"do": "search", "value": f"question {i}"} for i in range(10)])
    measure(
        "100,000 events, an order", client, [{"do": "order", "value": each} for each in ("high", "name", "few", "low")]
    )
    client.server.stop()
    return rows


SCRIPT = """async () => {
  const control = document.getElementById("forecast-2-slide");
  const took = [];
  for (let i = 0; i < MOVES; i++) {
    const since = performance.now();
    control.value = 20 + i;
    control.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((done) => {
      const drawn = () => requestAnimationFrame(() => setTimeout(done, 0));
      const watch = () => (document.documentElement.dataset.busy ? setTimeout(watch, 0) : drawn());
      watch();
    });
    took.push(performance.now() - since);
  }
  return took;
}"""


def on_the_screen(browser: str) -> list[tuple[int, float, float, float]]:
    """Rows of panels, and milliseconds until the answer is on the screen."""
    from playwright.sync_api import sync_playwright

    rows = []
    with sync_playwright() as driver:
        shown = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for n in (4, 20, 60):
            with tempfile.TemporaryDirectory() as folder:
                from opinionpool.page.assessment import to_toml

                given = panel(n)
                Path(folder, "panel.toml").write_text(to_toml(given.beliefs))
                words = [sys.executable, "-m", "opinionpool", "open", "--no-browser", "--panel", f"{folder}/panel.toml"]
                process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                try:
                    page = shown.new_page(viewport={"width": 1280, "height": 900})
                    page.goto(process.stdout.readline().strip())
                    for key in range(1, n + 1):
                        page.fill(f"#forecast-{key}", str(20 + key))
                        page.press(f"#forecast-{key}", "Enter")
                    page.wait_for_selector("html:not([data-busy])")
                    took = np.array(page.evaluate(SCRIPT.replace("MOVES", str(MOVES))))
                    rows.append((n, np.median(took), np.quantile(took, 0.95), took.max()))
                    page.close()
                finally:
                    process.terminate()
        shown.close()
    return rows


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--browser", default=shutil.which("chromium"))
    browser = parser.parse_args().browser
    print("| at the server | processor, ms | most | elapsed, ms | kB |\n| --- | --- | --- | --- | --- |")
    for what, median, most, elapsed, size in at_the_server():
        print(f"| {what} | {median:.1f} | {most:.1f} | {elapsed:.1f} | {size:.0f} |")
    if browser is None:
        return
    print("\n| on the screen | median, ms | 95% | most |\n| --- | --- | --- | --- |")
    for n, median, high, most in on_the_screen(browser):
        print(f"| {n} experts | {median:.0f} | {high:.0f} | {most:.0f} |")
    print(f"\nLoad of the machine: {os.getloadavg()[0]:.1f}, processors: {os.cpu_count()}")


if __name__ == "__main__":
    main()
