"""The pictures of the page in this documentation: ``python docs/page_pictures.py [CHROMIUM]``.

Draws `figures/page-*.png` by driving the page in a browser. Needs Playwright, Chromium, and Pillow, which Matplotlib
brings.
"""

import shutil
import subprocess
import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

FIGURES = Path(__file__).parent / "figures"
SIZE = {"width": 1280, "height": 900}
# Of so many colours a picture stays small.
COLOURS = 96


def pictures(page: Page) -> None:
    """Take the pictures, one after the other."""

    def settled() -> None:
        page.wait_for_selector("html:not([data-busy])")

    def take(name: str) -> None:
        settled()
        page.evaluate("window.scrollTo(0, 0)")
        shot = Image.open(BytesIO(page.screenshot())).convert("RGB")
        shot.quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(FIGURES / f"page-{name}.png", optimize=True)

    page.fill("#new", "Dana, regulator: 60%")
    page.press("#new", "Enter")
    page.wait_for_selector("#name-4")
    page.click("#fold-4")
    page.select_option("#worth-4", "100")
    page.evaluate("document.activeElement.blur()")
    take("panel")
    page.click("#view-what_if")
    page.wait_for_selector("#effects svg")
    for cost, value in (("action", "20"), ("loss", "100")):
        page.fill(f"#{cost}", value)
        page.press(f"#{cost}", "Enter")
        settled()
    page.evaluate("document.activeElement.blur()")
    take("what-if")
    page.click("#view-hand_over")
    page.fill("#assessor", "Jo and Kim")
    page.press("#assessor", "Enter")
    page.evaluate("document.activeElement.blur()")
    take("hand-over")


def main() -> None:
    """Open a page with the three example advisers, and take its pictures."""
    browser = sys.argv[1] if len(sys.argv) > 1 else shutil.which("chromium")
    words = [sys.executable, "-m", "opinionpool", "open", "--no-browser"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        with sync_playwright() as driver:
            shown = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            page = shown.new_page(viewport=SIZE, color_scheme="light")
            page.goto(process.stdout.readline().strip())
            pictures(page)
            shown.close()
    finally:
        process.terminate()


if __name__ == "__main__":
    main()
