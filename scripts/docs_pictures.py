"""The pictures of README.md and the site's home, on real data: what the quickstart's own commands and functions draw.

    python scripts/docs_pictures.py report ./calibrated test.conllu
    python scripts/docs_pictures.py sentence ./calibrated
    python scripts/docs_pictures.py view ./calibrated
    python scripts/docs_pictures.py away ./calibrated test.conllu gum.conllu

In a folder where the two commands of docs/index.md were followed with UD English EWT; gum.conllu is `gum_coref`'s dev part. All
but the last need Playwright and Debian's Chromium, as tests/browser does. What a picture says is written into it (PNG text `Description`):
tests/docs/test_real_pages.py compares it with what the command says.
"""

from __future__ import annotations

import argparse
import io
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image, PngImagePlugin

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DOCS = Path(__file__).resolve().parent.parent / "docs"
SENTENCE = "Time flies like an arrow but fruit flies like a banana."
# What hovering over a word shows stands beside its tag here.
NUMBERS = """for (const word of document.querySelectorAll(".cb-w")) {
  const [tag, number] = [word.querySelector(".cb-tag"), word.querySelector(".cb-own .cb-num")];
  if (tag && number) tag.dataset.tag += " " + Math.min(number.textContent.match(/[\\d.]+/)[0] / 100, .99).toFixed(2).slice(1);
}"""
VIEWED = f"{SENTENCE} I saw her duck. ur gonna luv dis vid, lol"
# From the top of the page to the end of its first diagram; the window, and how wide the picture is made of it.
WIDTH, SHOWN, LAST = 900, 640, "#view-0 .diagram"


@contextmanager
def browser(width: int, scale: float = 1) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    found = next(found for name in BROWSERS if (found := shutil.which(name)))
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started.new_page(viewport={"width": width, "height": 900}, device_scale_factor=scale)
        started.close()


def save(picture: bytes, said: str, file: Path, width: int | None = None) -> None:
    """width (int | None): How wide the picture is made."""
    told = PngImagePlugin.PngInfo()
    told.add_text("Description", " ".join(said.split()))
    shown = Image.open(io.BytesIO(picture)).convert("RGB")
    if width is not None:
        shown = shown.resize((width, round(shown.height * width / shown.width)), Image.Resampling.LANCZOS)
    shown.save(file, pnginfo=told, optimize=True)


def report(model: str, data: Path) -> None:
    """The first view of the page that `calib evaluate` writes, with its verdict."""
    import spacy_calib

    with tempfile.TemporaryDirectory() as folder, browser(WIDTH) as shown:
        page = Path(folder) / "report.html"
        spacy_calib.report(model, data, page)
        shown.goto(page.resolve().as_uri())
        shown.wait_for_selector("html[data-drawn=yes]")
        box = shown.locator(LAST).first.bounding_box()
        height = box["y"] + box["height"] + 12
        picture = shown.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
        verdict = " ".join(shown.locator("#view-0 .verdict p:not(.heading)").all_text_contents())
    save(picture, verdict, DOCS / "report.png", SHOWN)


def scores_of(model: str) -> tuple[Any, Any, str]:
    """(the sentence with the scores as they were, with calibrated ones: Docs that `render` draws; both scores of each word, in words)."""
    import spacy

    nlp = spacy.load(model)
    calibrated = nlp(SENTENCE)
    nlp.remove_pipe("calib")
    nlp.add_pipe("calib")  # which is not fitted, and hands on what the tagger says
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it is not fitted
        raw = nlp(SENTENCE)
    words = [f"{one.text} {one._.calib_raw:.2f} {other._.calib_score:.2f}" for one, other in zip(raw, calibrated, strict=True)]
    return raw, calibrated, " ".join(words)


def sentence(model: str) -> None:
    """One sentence, raw above calibrated, with the score below each word."""
    from spacy_calib import render

    raw, calibrated, said = scores_of(model)
    raw.user_data["title"], calibrated.user_data["title"] = "The softmax of the tagger", "Calibrated"
    markup = render([raw, calibrated], jupyter=False, options={"tags": "all", "legend": False})
    with browser(1060, 2) as shown:
        shown.set_content(markup)
        shown.evaluate(NUMBERS)
        save(shown.locator(".spacy-calib").first.screenshot(), said, DOCS / "sentence.png")


def view(model: str) -> None:
    """The page of `calib view`, the second "flies" in focus."""
    import threading

    import spacy

    from spacy_calib.plugins.report.view_server import Server, Viewer

    with Server(Viewer(spacy.load(model))) as server, browser(1000) as shown:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        shown.goto(server.address)
        shown.fill("#text", VIEWED)
        with shown.expect_response("**/show?0"):
            shown.press("#text", "Control+Enter")
        shown.wait_for_selector("body:not([aria-busy])")
        shown.get_by_label("both, one").check()
        shown.locator("#calibrated [data-score]", has_text="flies").nth(1).focus()
        save(shown.screenshot(full_page=True), VIEWED, DOCS / "view.png")
        server.shutdown()
        thread.join()


def reliability(model: str, home: Path, away: Path) -> tuple[list[Any], str]:
    """(panels of a diagram: the scores of predicted tags, in and out of domain; their errors, in words)."""
    import spacy
    from frame import bare

    from spacy_calib.gold.conllu import read_conllu
    from spacy_calib.metrics import calibration_error
    from spacy_calib.plugins.report.plot_data import reliability_panel

    nlp = spacy.load(model)
    panels, said = [], []
    for title, file in (("In domain: EWT test", home), ("Out of domain: GUM", away)):
        found = [
            (token._.calib_raw, token._.calib_score, token.tag_ == other.tag_)
            for _, gold in read_conllu(nlp.vocab, file)
            for token, other in zip(nlp(bare(gold)), gold, strict=True)
            if other.tag and token._.calib_score is not None
        ]
        raw, calibrated, hits = map(list, zip(*found, strict=True))
        panels.append(reliability_panel(raw, calibrated, hits, title))
        said.append(f"{title} {calibration_error(raw, hits):.4f} {calibration_error(calibrated, hits):.4f}")
    return panels, " ".join(said)


def away_from_home(model: str, home: Path, away: Path) -> None:
    """Their picture."""
    from spacy_calib.optional import picture_bytes
    from spacy_calib.plugins.report.plots import draw_panels

    panels, said = reliability(model, home, away)
    title = "Predicted tags of en_core_web_sm that agree with the gold"
    figure = draw_panels(panels, title, measure="error, predicted tag", histograms=False)
    save(picture_bytes(figure, ".png"), said, DOCS / "reliability-en.png")


PICTURES: dict[str, Callable[..., None]] = {"report": report, "sentence": sentence, "view": view, "away": away_from_home}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", choices=sorted(PICTURES))
    parser.add_argument("model")
    parser.add_argument("data", type=Path, nargs="*")
    given = parser.parse_args()
    PICTURES[given.picture](given.model, *given.data)


if __name__ == "__main__":
    main()
