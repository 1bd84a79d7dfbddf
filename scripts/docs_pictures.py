"""Pictures of the report, of `calib view` and of `spacy_calib.render`, on real data.

    python scripts/docs_pictures.py report ./calibrated test.conllu
    python scripts/docs_pictures.py view ./calibrated
    python scripts/docs_pictures.py render ./calibrated

In a folder where the commands of docs/start/first-fit.md were run. They need Playwright and Debian's Chromium, as tests/browser does. What a picture says is written into it (PNG text `Description`):
tests/docs/test_real_pages.py compares it with what the command says.
"""

from __future__ import annotations

import argparse
import io
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image, PngImagePlugin

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DOCS = Path(__file__).resolve().parent.parent / "docs"
VIEWED = "Time flies like an arrow but fruit flies like a banana. I saw her duck. ur gonna luv dis vid, lol"
# From the top of the page to the end of its first diagram; the window, and how wide the picture is made of it.
WIDTH, SHOWN, LAST = 900, 640, "#view-0 > figure svg"


@contextmanager
def browser(width: int, scale: float = 1) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = next(path for name in BROWSERS if (path := shutil.which(name)))
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium.new_page(viewport={"width": width, "height": 900}, device_scale_factor=scale)
        chromium.close()


def save(picture: bytes, text: str, file: Path, width: int | None = None) -> None:
    """width (int | None): How wide the picture is made."""
    info = PngImagePlugin.PngInfo()
    info.add_text("Description", " ".join(text.split()))
    page = Image.open(io.BytesIO(picture)).convert("RGB")
    if width is not None:
        page = page.resize((width, round(page.height * width / page.width)), Image.Resampling.LANCZOS)
    page.save(file, pnginfo=info, optimize=True)


def report(model: str, data: Path) -> None:
    """The first view of the page that `calib evaluate` writes, with its verdict."""
    import spacy_calib

    with tempfile.TemporaryDirectory() as folder, browser(WIDTH) as shown:
        page = Path(folder) / "report.html"
        spacy_calib.report(model, data, page)
        shown.goto(page.resolve().as_uri())
        box = shown.locator(LAST).first.bounding_box()
        height = box["y"] + box["height"] + 12
        picture = shown.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
        verdict = " ".join(shown.locator("#view-0 .verdict p:not(.heading)").all_text_contents())
    save(picture, verdict, DOCS / "report.png", SHOWN)


def view(model: str) -> None:
    """The page of `calib view` with a text."""
    import threading

    import spacy

    from spacy_calib.plugins.report.view_server import Server, Viewer

    with Server(Viewer(spacy.load(model))) as server, browser(1000) as page:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        page.goto(server.address)
        page.fill("#text", VIEWED)
        with page.expect_navigation():
            page.click("button")
        save(page.screenshot(full_page=True), VIEWED, DOCS / "view.png")
        server.shutdown()
        thread.join()


def render(model: str) -> None:
    """What `spacy_calib.render` shows of a Doc."""
    import spacy

    import spacy_calib

    with browser(900) as page:
        html = spacy_calib.render(spacy.load(model)(VIEWED), page=True, jupyter=False)
        page.set_content(html or "")
        save(page.locator("figure").screenshot(), VIEWED, DOCS / "render.png")


PICTURES: dict[str, Callable[..., None]] = {"report": report, "view": view, "render": render}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", choices=sorted(PICTURES))
    parser.add_argument("model")
    parser.add_argument("data", type=Path, nargs="*")
    options = parser.parse_args()
    PICTURES[options.picture](options.model, *options.data)


if __name__ == "__main__":
    main()
