"""The app of `calib view`, without a browser: what it answers, what it refuses, and that nothing stays."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.util import is_compatible_version

from spacy_calib.calibration.cutoffs import Cutoffs
from spacy_calib.doc.zones import _ZONE_VERSIONS
from spacy_calib.pipe.record.drift import OTHER_WEIGHTS_SENTENCE
from spacy_calib.plugins.report.view_server import MAX_BYTES, MAX_CHARACTERS, Viewer
from tests.conftest import revive
from tests.plugins.report.test_marked_text import ATTACK, Page

TEXT = "the red duck saw a light run ."


class Untouched(io.BytesIO):
    """A body that must not be read."""

    def read(self, *_: Any) -> bytes:
        raise AssertionError("it was read")


def asked(
    viewer: Viewer, path: str = "/show?0", text: str | bytes | None = TEXT, **more: Any
) -> tuple[int, dict[str, str], str]:
    """(status, headers, body) of what the app answers; a POST where there is a text."""
    body, seen = text.encode() if isinstance(text, str) else text or b"", []
    place, _, query = path.partition("?")
    environ = {
        "REQUEST_METHOD": "GET" if text is None else "POST", "PATH_INFO": place, "QUERY_STRING": query, "SERVER_PORT": "8000",
        "HTTP_HOST": "127.0.0.1:8000", "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body),
    } | more  # fmt: skip
    parts = viewer(environ, lambda status, headers: seen.append((int(status[:3]), dict(headers))))
    return *seen[0], b"".join(parts).decode()


def shown(viewer: Viewer, text: str | bytes = TEXT, way: int = 0) -> dict[str, Any]:
    status, _, body = asked(viewer, f"/show?{way}", text)
    assert status == 200, body
    return json.loads(body)


def fault(answer: tuple[int, dict[str, str], str], status: int) -> str:
    """The one sentence of a refusal."""
    assert (answer[0], answer[1]["Content-Type"]) == (status, "application/json; charset=utf-8")
    (sentence,) = json.loads(answer[2]).values()
    assert "Traceback" not in sentence
    return sentence


@pytest.fixture(scope="module")
def viewer(fitted_bytes) -> Viewer:
    return Viewer(revive(fitted_bytes))


def test_the_page_is_of_this_machine_alone(viewer):
    for path, kind in (("/", "text/html"), ("/view.css", "text/css"), ("/view.js", "text/javascript")):
        status, headers, body = asked(viewer, path, None)
        assert (status, headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
        assert headers["Content-Length"] == str(len(body.encode()))
        assert not re.search(r"https?:|//[a-z]|@import|\{(ways|legend|pipeline)\}", body)
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'; ")
        assert "'unsafe-inline'" not in re.sub(r"style-src-attr [^;]*", "", headers["Content-Security-Policy"])
        assert headers["Cache-Control"] == "no-store"
    page = asked(viewer, "/", None)[2]
    assert '<option value="0">tagger: tag of each word</option>' in page
    assert not re.search(r"<script(?! src)|<style| style=| on\w+=", page)


def test_the_page_shows_the_scores_of_the_attributes(viewer, fitted):
    doc, found = fitted(TEXT), shown(viewer)
    for kind, wanted in (("calibrated", "calib_score"), ("raw", "calib_raw")):
        page = Page(found[kind])
        assert page.texts == [TEXT]
        scores = [round(float(getattr(token._, wanted)), 3) for token in doc]
        assert [float(held["data-score"]) for held in page.of_class("cb-w")] == scores
        n_right = sum(token._.calib_raw for token in doc)
        assert found["summary"].endswith(f" of 8 words by calibrated scores, {n_right:.1f} by raw ones.")
    first = Page(found["raw"]).of_class("cb-w")[0]["aria-label"]
    best = max(doc._.calib.to_dense([doc[0].tag_], calibrated=False)[0])
    assert first.startswith(f"the: {doc[0].tag_} {100 * best:.1f} %")
    assert "after calibration" in found["raw"]
    assert "before calibration" in found["calibrated"]


@pytest.mark.parametrize(
    ("cutoffs", "attribute"),
    [
        (None, ""),
        (Cutoffs(0.8, 0.95, "all", {"all": 0.7512}), ' data-cutoff="75.12"'),
        (Cutoffs(0.8, 0.95, "all", {"all": None}), ""),
        (Cutoffs(0.8, 0.95, "label", {"PER": 0.75, "ORG": 0.9}), ""),  # no one number stands for two
    ],
)
def test_a_view_has_the_cut_off_of_its_pipe_if_there_is_one_for_all_labels(viewer, cutoffs, attribute):
    view = viewer.views[0]._replace(name="a < b", cutoffs=cutoffs)
    assert view.option(3) == f'<option value="3"{attribute}>a &lt; b</option>'


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>", "</textarea></div>" + ATTACK, "שלום עולם abc !", "a\r\n\tb", "{ways} {legend}", "\0\x1b[31m",
        "é😀\u0301",
    ],
)  # fmt: skip
def test_a_text_stays_text(viewer, text):
    for kind in ("calibrated", "raw"):
        page = Page(shown(viewer, text)[kind])
        assert {name for name, _ in page.elements} <= {"div", "span"}
        assert page.texts == [text.replace("\0", r"\x00").replace("\x1b", r"\x1b")]


@pytest.mark.parametrize("path", ["/", "/x", "/show?0"])
def test_a_head_is_answered_as_get_is_without_a_body(viewer, path):
    (status, headers, body), (own, own_headers, nothing) = (
        asked(viewer, path, None, REQUEST_METHOD=how) for how in ("GET", "HEAD")
    )
    assert (own, own_headers["Content-Type"], nothing) == (status, headers["Content-Type"], "")
    assert body


def test_what_is_no_text_is_one_sentence(viewer):
    half = "\ud800".encode("utf-8", "surrogatepass")
    assert fault(asked(viewer, text=half), 400).startswith("The request has no text in UTF-8")
    for text in ("", " \n\t "):
        assert fault(asked(viewer, text=text), 400) == "There is no text; type or paste one."
    for length in ("", "-1", "1e3", "x", "\u0663"):
        fault(asked(viewer, CONTENT_LENGTH=length), 400)
    fault(asked(viewer, CONTENT_LENGTH=str(len(TEXT) + 1)), 400)  # it ends too early


def test_a_text_has_at_most_so_many_characters(viewer):
    assert "too long (100,000 characters)" in fault(asked(viewer, text="x" * 100_000), 413)
    fault(asked(viewer, text="x" * (MAX_CHARACTERS + 1)), 413)
    assert Page(shown(viewer, "x" * MAX_CHARACTERS)["raw"]).texts == ["x" * MAX_CHARACTERS]
    for length in (MAX_BYTES + 1, 10**30):
        more = {"CONTENT_LENGTH": str(length), "wsgi.input": Untouched()}
        assert "bytes" in fault(asked(viewer, **more), 413)


@pytest.mark.parametrize("path", ["/x", "/show", "/show?1", "/show?-1", "/show?0&x", "/../view.js", "/view.html", "//"])
def test_other_addresses_are_not_found(viewer, path):
    assert fault(asked(viewer, path), 404).startswith("There is no page for POST /")
    assert fault(asked(viewer, path, None), 404).startswith("There is no page for GET /")


def test_only_the_page_itself_may_ask(viewer):
    for host in ("evil.example", "127.0.0.1", "127.0.0.1:8001", "127.0.0.1:8000.evil.example", "localhost.:8000", ""):
        for path, text in (("/", None), ("/show?0", TEXT)):
            assert fault(asked(viewer, path, text, HTTP_HOST=host), 403).startswith(
                "This page is served at http://127.0.0.1:8000 only"
            )
    for origin in ("http://evil.example", "null", "http://127.0.0.1:8001", "https://127.0.0.1:8000"):
        fault(asked(viewer, HTTP_ORIGIN=origin), 403)
    assert asked(viewer, HTTP_ORIGIN="http://127.0.0.1:8000")[0] == 200
    assert asked(viewer, HTTP_HOST="localhost:8000", HTTP_ORIGIN="http://localhost:8000")[0] == 200
    assert asked(viewer, SERVER_PORT="80", HTTP_HOST="localhost")[0] == 200


@pytest.mark.skipif(
    not is_compatible_version(spacy.__version__, _ZONE_VERSIONS), reason="this spaCy has no memory zones that can be used"
)
def test_no_word_is_kept(fitted):
    viewer = Viewer(fitted)
    before = set(fitted.vocab.strings)
    shown(viewer, "Wolpertinger saw Elwetritsch .")
    assert not {"Wolpertinger", "Elwetritsch"} & (set(fitted.vocab.strings) - before)


def test_each_thread_uses_the_gpu_that_was_chosen(fitted, monkeypatch):
    """cupy's current device is that of a thread, not of the process."""
    devices = []
    monkeypatch.setattr("spacy_calib.plugins.report.view_server.set_active_gpu", devices.append)
    shown(Viewer(fitted))
    assert devices == []
    shown(Viewer(fitted, gpu_id=1))
    assert devices == [1]


def test_a_component_that_fails_is_one_sentence_and_the_next_text_is_read(fitted):
    @Language.component("fails_on_ducks")
    def fails(doc):
        if "duck" in doc.text:
            raise RuntimeError("no ducks\nat all")
        return doc

    fitted.add_pipe("fails_on_ducks")
    viewer = Viewer(fitted)
    assert fault(asked(viewer), 400).startswith("The pipeline fails on this text (no ducks)")
    assert Page(shown(viewer, "a cat .")["raw"]).texts == ["a cat ."]


def test_a_single_text_is_compared_with_none_of_the_fit_and_other_weights_are_named(fitted):
    viewer = Viewer(fitted)
    told = shown(viewer, "! " * 300)
    assert told["verdict"] == "unclear"
    assert told["drift"].startswith("A single text cannot be compared")
    layer = fitted.get_pipe("tagger").model.get_ref("output_layer")
    layer.set_param("b", layer.get_param("b") + 1)
    with pytest.warns(UserWarning, match="CW04"):
        assert shown(viewer)["drift"] == OTHER_WEIGHTS_SENTENCE
