"""The local page of `calib view`, a WSGI application: a form without scripts that shows scores of a text, and stores none."""

from __future__ import annotations

import os
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import set_active_gpu

from ...annotations import get_annotation, plain_name
from ...doc.zones import memory_zone
from ...errors import CalibError
from ...pairs.documents import count_in_words
from ...pipe.component import Calibrator
from ...pipe.pipeline import check_readable, fitted_pipes, reason
from ...pipe.record.drift import OTHER_WEIGHTS_SENTENCE
from .messages import calib_error
from .page import file_text, render_template
from .rendering import Mark, displacy_options, displacy_style, marks_spans, read_spans, read_units, read_words, to_displacy

# Maximum number of characters that a browser shows without delay (some 10 MB of HTML), and of bytes of a request.
MAX_CHARACTERS, MAX_BYTES = 20_000, 1 << 20
# displaCy's colours are style attributes.
_POLICY = (
    "default-src 'none'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-store",
    # With "no-referrer" a browser sends a form without its origin, which is checked.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_STATUS = {"C730": "403 Forbidden", "C731": "404 Not Found", "C732": "413 Content Too Large"}
_HERE = "127.0.0.1"
KINDS = ("calibrated", "raw")
# Fields of the form, and errors that are shown on the page; all others are of requests that the page does not send.
_FIELDS, _TEXT_FAULTS = ("text", "view"), ("C732", "C733", "C734", "C735")


class TextView(NamedTuple):
    """A way to show a text with the scores of `pipe`. name: Title. unit: Word for what has a score. read: Doc -> Marks."""

    name: str
    unit: str
    pipe: Calibrator
    read: Callable[[Doc], list[Mark]]


def list_views(nlp: Language, pipes: Sequence[Calibrator] | None = None) -> list[TextView]:
    """Return the ways to show calib pipes (None: all fitted ones), entities first. RAISES C027: no fitted pipe. C021: a
    component is missing. C069, C084: it or its tok2vec is disabled."""
    pipes = sorted(fitted_pipes(nlp) if pipes is None else pipes, key=lambda pipe: not marks_spans(pipe.fit_info.layer))
    return [view for pipe in pipes for view in _pipe_views(nlp, pipe, f" ({pipe.attr})" if len(pipes) > 1 else "")]


def _pipe_views(nlp: Language, pipe: Calibrator, suffix: str) -> Iterator[TextView]:
    """Yield the ways to show a pipe's scores: of spans, of words or the text, of sentences or links. suffix: Ends each name."""
    check_readable(nlp, pipe)
    layer, attr, component = pipe.fit_info.layer, pipe.attr, pipe.source.component or pipe.name
    annotation = get_annotation(layer)
    unit_word, unit_plural = annotation.kind.span_words
    if marks_spans(layer):
        yield TextView(f"{component}: {unit_plural}{suffix}", unit_word, pipe, partial(read_spans, attr=attr))
    title, unit = (
        ("category of the text", "text") if annotation.kind.of_documents else (f"{plain_name(layer)} of each word", "word")
    )
    yield TextView(f"{component}: {title}{suffix}", unit, pipe, partial(read_words, attr=attr))
    if annotation.kind.span_event:  # a sentence is right if all its arcs are, a link if its entity is: each has a score
        name = f"{component}: {annotation.kind.span_event}{suffix}"
        read = partial(read_units, attr=attr, units=annotation.spans_on, unit_word=unit_word)
        yield TextView(name, unit_word, pipe, read)


class Viewer:
    """The page as a WSGI application; one text at a time. gpu_id: -1 for the CPU. pipes: Calib pipes to show (None: all)."""

    def __init__(self, nlp: Language, gpu_id: int = -1, pipes: Sequence[Calibrator] | None = None):
        self._nlp, self._gpu_id, self.views = nlp, gpu_id, list_views(nlp, pipes)
        self._lock, self._context = threading.Lock(), copy_context()  # a context has thinc's current device

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        status, kind, text = self.respond(environ)
        body = text.encode()
        headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))}
        start_response(status, list({**headers, **_HEADERS}.items()))
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def respond(self, environ: dict[str, Any]) -> tuple[str, str, str]:
        """Return (status, content type, content) for a request (WSGI's `environ`); for a bad one an error message."""
        form: dict[str, str] = {}
        try:
            _check_origin(environ)
            method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "")
            target = f"{path}?{environ.get('QUERY_STRING', '')}".removesuffix("?")
            if method in ("GET", "HEAD") and target == "/view.css":
                return "200 OK", "text/css", file_text("view.css")
            if method not in ("GET", "HEAD", "POST") or target != "/":
                raise calib_error("C731", method=method, given=target)
            if method != "POST":
                return "200 OK", "text/html", self._page()
            form = read_form(environ)
            index = form["view"] if form["view"] in map(str, range(len(self.views))) else "0"
            return "200 OK", "text/html", self._page(form, self.show(form["text"], self.views[int(index)]))
        except CalibError as error:
            status = _STATUS.get(error.code, "400 Bad Request")
            if error.code not in _TEXT_FAULTS:
                return status, "text/plain", error.message
            return status, "text/html", self._page(form, {"fault": error.message})

    def _page(self, form: Mapping[str, str] | None = None, result: Mapping[str, Any] | None = None) -> str:
        """Return the page's HTML. form: Fields that were sent. result: Result of `show`, or {"fault": message}; None before."""
        pipeline, views = f"{self._nlp.lang}_{self._nlp.meta['name']}", [view.name for view in self.views]
        fields: dict[str, Any] = {"form": form or {}, **(result or {})}
        return render_template("view.html.j2", pipeline=pipeline, views=views, max_characters=MAX_CHARACTERS, **fields)

    def show(self, text: str, view: TextView) -> dict[str, Any]:
        """Process a text and return what the page shows.

        RETURNS (dict): "texts": {"calibrated", "raw"}, displaCy's HTML with either score. "summary", "drift": sentences.
        "verdict": "unlike" (the component has other weights than at the fit) or "unclear" (one text cannot show a drift).
        RAISES C732: too long. C733: no text. C734: the pipeline fails. C095: it writes no scores.
        """
        if not text.strip():
            raise calib_error("C733")
        if len(text) > MAX_CHARACTERS:
            raise calib_error("C732", n=f"{len(text):,} characters", most=f"{MAX_CHARACTERS:,}")
        with self._lock:
            if self._gpu_id >= 0:  # each thread has its own device
                set_active_gpu(self._gpu_id)
            return self._context.run(self._show, text, view)

    def _show(self, text: str, view: TextView) -> dict[str, Any]:
        """Return the result of `show` for a checked text. RAISES C734: the pipeline fails. C095: it writes no scores."""
        with memory_zone(self._nlp):
            try:
                doc = self._nlp(text)
            except Exception as error:  # anything a component may raise; a traceback would show the text
                raise calib_error("C734", why=reason(error)) from None
            marks = view.read(doc)
            verdict, drift = _VERDICTS[bool(view.pipe.lookup.weights_changed())]
            texts = {kind: _html_of(doc, marks, kind) for kind in KINDS}
            return {"texts": texts, "summary": expected_right_sentence(marks, view.unit), "verdict": verdict, "drift": drift}


def _check_origin(environ: dict[str, Any]) -> None:
    """Check that a request (WSGI's environ) is from our page. RAISES C730: it names another host (DNS rebinding) or origin."""
    port = environ["SERVER_PORT"]
    port_suffixes = [f":{port}", ""] if port == "80" else [f":{port}"]  # browsers leave out port 80
    hosts = [f"{name}{port_suffix}" for port_suffix in port_suffixes for name in (_HERE, "localhost")]
    host, origin = environ.get("HTTP_HOST", ""), environ.get("HTTP_ORIGIN")
    if host not in hosts or origin not in (None, f"http://{host}"):
        raise calib_error("C730", wanted=f"http://{hosts[0]}", given=host if host not in hosts else origin)


def read_form(environ: dict[str, Any]) -> dict[str, str]:
    """Return the fields "text" and "view" of a request (WSGI's environ). RAISES C732: too long. C735: cut off, or no form."""
    length_text = environ.get("CONTENT_LENGTH") or ""
    if not (length_text.isascii() and length_text.isdigit()):
        raise calib_error("C735")
    length = int(length_text[:18])  # a number with more digits is too large, too
    if length > MAX_BYTES:
        raise calib_error("C732", n=f"{length:,} bytes", most=f"{MAX_CHARACTERS:,}")
    with suppress(OSError, ValueError):
        body = environ["wsgi.input"].read(length)
        if len(body) == length:
            fields = parse_qs(str(body, "ascii"), keep_blank_values=True, errors="strict", max_num_fields=len(_FIELDS))
            return {name: fields.get(name, [""])[0] for name in _FIELDS}
    raise calib_error("C735")


def expected_right_sentence(marks: Sequence[Mark], unit: str) -> str:
    """Return a sentence: how many units are expected to be right by the scores of their marks. unit (str): Word for a unit."""
    scores = [(mark.calibrated, mark.raw) for mark in marks if mark.calibrated is not None and mark.raw is not None]
    if not scores:
        return "Nothing in it has a score."
    calibrated, raw = (sum(values) for values in zip(*scores, strict=True))
    units = count_in_words(unit, len(scores))
    return f"Expected to be right: {calibrated:.1f} of {units} by calibrated scores, {raw:.1f} by raw ones."


def _html_of(doc: Doc, marks: Sequence[Mark], kind: str) -> Any:
    """Return displaCy's HTML of a Doc and its marks, by `kind` of score, without `displacy.render`, which keeps the text."""
    from markupsafe import Markup
    from spacy.displacy import EntityRenderer, SpanRenderer

    texts = [to_displacy(doc, marks, kind)]
    renderer = SpanRenderer if displacy_style(texts) == "span" else EntityRenderer
    return Markup(renderer(displacy_options(texts)).render(texts))


# Whether the weights of a component have changed since the fit -> (verdict, sentence) below its texts.
_VERDICTS = {
    True: ("unlike", OTHER_WEIGHTS_SENTENCE),
    False: ("unclear", "A single text cannot be compared with the texts of the fit: calib expect compares twenty or more."),
}


class Handler(WSGIRequestHandler):
    """A request handler without a log. timeout (float): Seconds until a silent connection is closed."""

    timeout = 30.0

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: requests contain the texts."""


class Server(socketserver.ThreadingMixIn, WSGIServer):
    """Serve a viewer on 127.0.0.1, with a thread per connection. port (int): 0 for any. RAISES OSError: it cannot be opened."""

    daemon_threads = True
    allow_reuse_address = os.name != "nt"  # on Windows two servers could open one port

    def __init__(self, viewer: Viewer, port: int = 0):
        super().__init__((_HERE, port), Handler)
        self.set_app(viewer)
        self.address = f"http://{_HERE}:{self.server_port}"

    def server_bind(self) -> None:
        """Bind the socket, without the look-up of a host name that `HTTPServer` does."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = _HERE, self.server_address[1]
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors, such as a browser that closed the connection."""
