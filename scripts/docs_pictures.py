"""The picture of the report in README.md: what the quickstart's own command draws, as a browser shows it.

    python scripts/docs_pictures.py ./calibrated test.spacy --output docs/report.png

In a folder where the quickstart of README.md was followed with UD English EWT. Needs Playwright and Debian's Chromium, as tests/browser does. The
verdict is written into the picture (PNG text `Description`): tests/docs/test_real_pages.py compares it with what the command says.
"""

from __future__ import annotations

import argparse
import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image, PngImagePlugin
from playwright.sync_api import sync_playwright

from spacy_calib import report

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# From the top of the page to the end of its first diagram; the window, and how wide the picture is made of it.
WIDTH, SHOWN, LAST = 900, 640, "#view-0 .scores"


def photograph(page: Path) -> tuple[bytes, str]:
    """RETURNS (tuple): A PNG of the page, and its verdict."""
    browser = next(found for name in BROWSERS if (found := shutil.which(name)))
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        shown = started.new_page(viewport={"width": WIDTH, "height": 900})
        shown.goto(page.resolve().as_uri())
        shown.wait_for_selector("html[data-drawn=yes]")
        box = shown.locator(LAST).first.bounding_box()
        assert box is not None
        height = box["y"] + box["height"] + 12
        picture = shown.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
        verdict = " ".join(shown.locator("#view-0 .verdict p:not(.heading)").all_text_contents())
        started.close()
    return picture, verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("--output", type=Path, default=Path("docs/report.png"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        report(given.model, given.data, page)
        picture, verdict = photograph(page)
    said = PngImagePlugin.PngInfo()
    said.add_text("Description", " ".join(verdict.split()))
    taken = Image.open(io.BytesIO(picture)).convert("RGB")
    shown = taken.resize((SHOWN, round(taken.height * SHOWN / WIDTH)), Image.Resampling.LANCZOS)
    shown.save(given.output, pnginfo=said, optimize=True)


if __name__ == "__main__":
    main()
