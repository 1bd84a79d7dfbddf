"""The app of `calib view`, without a browser: what it answers, what it refuses, and that nothing stays."""

import io
import re
from typing import Any
from urllib.parse import urlencode

import pytest
import spacy
from spacy.language import Language
from spacy.util import is_compatible_version

from spacy_calib.doc.zones import _ZONE_VERSIONS
from spacy_calib.pipe.record.drift import OTHER_WEIGHTS_SENTENCE
from spacy_calib.plugins.report.page import format_score
from spacy_calib.plugins.report.view_server import MAX_BYTES, MAX_CHARACTERS, Viewer
from tests.conftest import revive
from tests.forked import in_own_process
from tests.plugins.report.markup import ATTACK, Page

TEXT = "the red duck saw a light run ."


class Untouched(io.BytesIO):
    """A body that must not be read."""

    def read(self, *_: Any) -> bytes:
        raise AssertionError("it was read")


def asked(
    viewer: Viewer, path: str = "/", text: str | bytes | None = TEXT, view: object = 0, **more: Any
) -> tuple[int, dict[str, str], str]:
    """(status, headers, body) of what the app answers; a POST of the form if there is a text; bytes are sent as they are."""
    body = text if isinstance(text, bytes) else b"" if text is None else urlencode({"text": text, "view": view}).encode()
    seen: list[tuple[int, dict[str, str]]] = []
    place, _, query = path.partition("?")
    environ = {
        "REQUEST_METHOD": "GET" if text is None else "POST", "PATH_INFO": place, "QUERY_STRING": query, "SERVER_PORT": "8000",
        "HTTP_HOST": "127.0.0.1:8000", "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body),
    } | more  # fmt: skip
    parts = viewer(environ, lambda status, headers: seen.append((int(status[:3]), dict(headers))))
    return *seen[0], b"".join(parts).decode()


def shown(viewer: Viewer, text: str = TEXT, view: int = 0) -> str:
    """The page with the text's scores."""
    status, _, body = asked(viewer, text=text, view=view)
    assert status == 200, body
    return body


def marks(page: str) -> list[list[tuple[str, str]]]:
    """(text, label) of the marks by calibrated and by raw scores."""
    return [Page(part).marks for part in re.findall(r"<section.*?</section>", page, flags=re.S)]


def fault(answer: tuple[int, dict[str, str], str], status: int, kind: str = "text/plain") -> str:
    """The one sentence of a refusal."""
    assert (answer[0], answer[1]["Content-Type"]) == (status, f"{kind}; charset=utf-8")
    assert "Traceback" not in answer[2]
    if kind == "text/plain":
        return answer[2]
    (sentence,) = re.findall(r'<p class="fault" role="alert">(.*?)</p>', answer[2])
    return sentence


def fault_of_text(answer: tuple[int, dict[str, str], str], status: int) -> str:
    """That of a text, which the page shows."""
    return fault(answer, status, "text/html")


@pytest.fixture(scope="module")
def viewer(fitted_bytes) -> Viewer:
    return Viewer(revive(fitted_bytes))


def test_the_page_is_of_this_machine_alone(viewer):
    for path, text, kind in (("/", None, "text/html"), ("/", TEXT, "text/html"), ("/view.css", None, "text/css")):
        status, headers, body = asked(viewer, path, text)
        assert (status, headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
        assert headers["Content-Length"] == str(len(body.encode()))
        assert not re.search(r"https?:|//[a-z]|@import|<script|<style| on\w+=", body)
        policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
        assert (policy["default-src"], policy["form-action"], policy["frame-ancestors"]) == ("'none'", "'self'", "'none'")
        assert "script-src" not in policy
        assert [name for name, sources in policy.items() if "unsafe" in sources] == ["style-src-attr"]
        assert headers["Cache-Control"] == "no-store"
    assert '<option value="0">tagger: tag of each word</option>' in asked(viewer, "/", None)[2]


def test_the_page_shows_the_scores_of_the_attributes(viewer, fitted):
    doc, page = fitted(TEXT), shown(viewer)
    assert marks(page) == [
        [(token.text, f"{token.tag_} {format_score(getattr(token._, name))}") for token in doc]
        for name in ("calib_score", "calib_raw")
    ]
    calibrated, raw = (sum(getattr(token._, name) for token in doc) for name in ("calib_score", "calib_raw"))
    told = f"Expected to be right: {calibrated:.1f} of 8 words by calibrated scores, {raw:.1f} by raw ones."
    assert told in page
    assert f">\n{TEXT}</textarea>" in page


@pytest.mark.parametrize("text", [
    "<script>alert(1)</script>", "</textarea></div>" + ATTACK, "שלום עולם abc !", "a\r\n\tb", "{{ 1 }} {views}", "\0\x1b[31m",
    "é😀\u0301", "\u202ea b",
])  # fmt: skip
def test_a_text_stays_text(viewer, text):
    page = shown(viewer, text)
    allowed = {name for name, _ in Page(asked(viewer, "/", None)[2]).elements} | {"div", "mark", "span", "br", "section", "h2"}
    assert {name for name, _ in Page(page).elements} <= allowed
    words = [word for word in re.sub("[\0\x1b\u202e]", "\ufffd", text).split() if word]
    for found in marks(page):
        assert "".join(word for word, _ in found) == "".join(words)


@pytest.mark.parametrize("path", ["/", "/x", "/view.css"])
def test_a_head_is_answered_as_get_is_without_a_body(viewer, path):
    (status, headers, body), (own, own_headers, nothing) = (
        asked(viewer, path, None, REQUEST_METHOD=how) for how in ("GET", "HEAD")
    )
    assert (own, own_headers["Content-Type"], nothing) == (status, headers["Content-Type"], "")
    assert body


def test_what_is_no_text_is_one_sentence(viewer):
    for body in (b"text=%ED%A0%80", b"text=%FF", "text=é".encode(), b"a=1&b=2&c=3"):
        assert fault_of_text(asked(viewer, text=body), 400).startswith("The request has no text in UTF-8")
    for text in ("", " \n\t "):
        assert fault_of_text(asked(viewer, text=text), 400) == "There is no text; type or paste one."
    assert fault_of_text(asked(viewer, text=b""), 400) == "There is no text; type or paste one."
    for length in ("", "-1", "1e3", "x", "\u0663", "1000"):
        fault_of_text(asked(viewer, CONTENT_LENGTH=length), 400)


def test_a_view_that_there_is_not_is_the_first(viewer):
    for view in ("7", "-1", "x", ""):
        assert marks(asked(viewer, view=view)[2]) == marks(shown(viewer))


def test_a_text_has_at_most_so_many_characters(viewer):
    assert "too long (100,000 characters)" in fault_of_text(asked(viewer, text="x" * 100_000), 413)
    fault_of_text(asked(viewer, text="x" * (MAX_CHARACTERS + 1)), 413)
    assert [word for word, _ in marks(shown(viewer, "x" * MAX_CHARACTERS))[0]] == ["x" * MAX_CHARACTERS]
    for length in (MAX_BYTES + 1, 10**30):
        more = {"CONTENT_LENGTH": str(length), "wsgi.input": Untouched()}
        assert "bytes" in fault_of_text(asked(viewer, **more), 413)


@pytest.mark.parametrize("path", ["/x", "/show", "/?1", "/../view.css", "/view.html.j2", "//"])
def test_other_addresses_are_not_found(viewer, path):
    assert fault(asked(viewer, path), 404).startswith("There is no page for POST /")
    assert fault(asked(viewer, path, None), 404).startswith("There is no page for GET /")


def test_only_the_page_itself_may_ask(viewer):
    for host in ("evil.example", "127.0.0.1", "127.0.0.1:8001", "127.0.0.1:8000.evil.example", "localhost.:8000", ""):
        for text in (None, TEXT):
            assert fault(asked(viewer, text=text, HTTP_HOST=host), 403).startswith(
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


@in_own_process
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
    assert fault_of_text(asked(viewer), 400).startswith("The pipeline fails on this text (no ducks)")
    assert [word for word, _ in marks(shown(viewer, "a cat ."))[0]] == ["a", "cat", "."]


def test_a_single_text_is_compared_with_none_of_the_fit_and_other_weights_are_named(fitted):
    viewer = Viewer(fitted)
    told = viewer.show("! " * 300, viewer.views[0])
    assert told["verdict"] == "unclear"
    assert told["drift"].startswith("A single text cannot be compared")
    layer = fitted.get_pipe("tagger").model.get_ref("output_layer")
    layer.set_param("b", layer.get_param("b") + 1)
    with pytest.warns(UserWarning, match="CW04"):
        page = shown(viewer)
    assert f'<p id="drift" class="unlike">{OTHER_WEIGHTS_SENTENCE}</p>' in page
