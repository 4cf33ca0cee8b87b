"""Draws ``plots.png`` and, with Playwright and Chromium, ``report.png``: ``python docs/figures/pictures.py``."""

import subprocess
import sys
import tempfile
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

import opinionpool as op

HERE = Path(__file__).resolve().parent
COLOURS = 96
PANEL = """event,question,ana,ben,chris,dora
port,Will the port reopen before June?,0.30,0.45,0.60,0.40
merger,Will the merger be approved in 2026?,0.70,0.80,0.75,0.90
"""
BELIEFS = """correlation = 0.5
calibration = 0.9
[experts.ana]
auc = 0.88
[experts.chris]
auc = { value = 0.8, worth = 40 }
"""


def reduce(picture: Path) -> None:
    """Few colours, so that the file is small."""
    with Image.open(picture) as full:
        small = full.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
    small.save(picture, optimize=True)


def plots(folder: Path) -> None:
    """Four plots of the tournament."""
    subprocess.run(
        [sys.executable, HERE.parents[1] / "examples" / "tournament.py", folder], check=True, capture_output=True
    )
    forecasts = op.read_forecasts(folder / "tournament.csv", duplicates="last")
    pool, found = op.GaussianPool().fit(forecasts), op.compare_pools(forecasts, repeats=3)
    drawing = Figure(figsize=(10, 9), layout="constrained")
    axes = drawing.subplots(2, 2)
    op.plots.weights(pool, axes[0, 0])
    op.plots.gains(found, axes[0, 1])
    op.plots.reliability(found.answers["gaussian"], forecasts.outcomes, axes[1, 0])
    op.plots.waterfall(op.explain_event(forecasts, "q120", pool.state_), axes[1, 1])
    drawing.savefig(HERE / "plots.png", dpi=110)
    reduce(HERE / "plots.png")


def report(folder: Path) -> None:
    """The beginning of a report without any outcome."""
    from playwright.sync_api import sync_playwright

    (folder / "panel.csv").write_text(PANEL)
    (folder / "panel.toml").write_text(BELIEFS)
    words = [
        "report",
        "panel.csv",
        "-o",
        "report.html",
        "--panel",
        "panel.toml",
        "--prior",
        "0.4",
        "--title",
        "Two decisions",
    ]
    subprocess.run([sys.executable, "-m", "opinionpool", *words], cwd=folder, check=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1040, "height": 1560})
        page.goto((folder / "report.html").as_uri())
        page.screenshot(path=HERE / "report.png")
    reduce(HERE / "report.png")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as empty:
        plots(Path(empty))
        report(Path(empty))
