"""The local page of `calib view`: a WSGI application that shows a pipeline's probabilities for any text and stores nothing."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from importlib.resources import files
from typing import Any, NamedTuple
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import set_active_gpu

from ...annotations import get_annotation, plain_name, unit_of
from ...calibration.cutoffs import Cutoffs
from ...doc.zones import memory_zone
from ...errors import CalibError
from ...pairs.documents import DOCUMENT, count_in_words
from ...pipe.component import Calibrator, fitted_pipes
from ...pipe.pipeline import check_readable, reason
from ...pipe.record.drift import OTHER_WEIGHTS_SENTENCE
from .marked_text import DisplayOptions, MarkedText, escape, legend_html, style, text_html
from .messages import calib_error
from .rendering import marks_spans, read_marks, read_units, read_words

# Maximum number of characters that a browser shows without delay (some 10 MB of HTML), and of bytes of a request.
MAX_CHARACTERS, MAX_BYTES = 20_000, 1 << 20
_FILES = {"/": ("view.html", "text/html"), "/view.css": ("view.css", "text/css"), "/view.js": ("view.js", "text/javascript")}
# Style attributes are allowed for the widths of bars in tips.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src data:; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_STATUS = {"C730": "403 Forbidden", "C731": "404 Not Found", "C732": "413 Content Too Large"}
_HERE = "127.0.0.1"
# No score reaches `doubtful`, so every word can be focused; the script decides at which of them the tab key stops.
_SECOND_SCORE = {"calibrated": "before calibration", "raw": "after calibration"}
_DISPLAY_OPTIONS = {
    name: DisplayOptions(doubtful=2.0, tags="all", raw_caption=label, scores=True) for name, label in _SECOND_SCORE.items()
}


class TextView(NamedTuple):
    """A way to show a text.

    name (str): Its title. unit (str): Word for a labelled unit. read (Callable): (doc, raw: bool) -> MarkedText. cutoffs (Cutoffs
    | None): The scores from which the pipe accepts such units.
    """

    name: str
    unit: str
    pipe: Calibrator
    read: Callable[..., MarkedText]
    cutoffs: Cutoffs | None = None

    def option(self, index: int) -> str:
        """Return the view as an HTML option, with the cut-off in percent if there is one for all labels."""
        cutoff = None if self.cutoffs is None or self.cutoffs.per != "all" else self.cutoffs.values.get("all")
        attribute = "" if cutoff is None else f' data-cutoff="{100 * cutoff:.2f}"'
        return f'<option value="{index}"{attribute}>{escape(self.name)}</option>'


def list_views(nlp: Language, pipes: Sequence[Calibrator] | None = None) -> list[TextView]:
    """Return the views of some calib pipes; None takes all fitted ones. RAISES C027: none. C021, C069: one cannot be read."""
    pipes = fitted_pipes(nlp) if pipes is None else pipes
    return [view for pipe in pipes for view in _pipe_views(nlp, pipe, f" ({pipe.attr})" if len(pipes) > 1 else "")]


def _pipe_views(nlp: Language, pipe: Calibrator, suffix: str) -> Iterator[TextView]:
    """Yield what a reader can choose to see of one pipe: spans, words, whole units."""
    check_readable(nlp, pipe)
    layer, attr, component = pipe.fit_info.layer, pipe.attr, pipe.source.component or pipe.name
    annotation = get_annotation(layer)
    unit_word, unit_plural = annotation.span_words
    if marks_spans(layer):
        yield TextView(
            f"{component}: {unit_plural}{suffix}", unit_word, pipe, partial(read_marks, attr=attr), pipe.spans.cutoffs
        )
    whole = unit_of(layer) == DOCUMENT
    title, unit = ("category of the text", "text") if whole else (f"{plain_name(layer)} of each word", "word")
    label_cutoffs = pipe.tokens.label_cutoffs
    yield TextView(
        f"{component}: {title}{suffix}", unit, pipe, partial(read_words, attr=attr), label_cutoffs if whole else None
    )
    if annotation.span_event:
        name = f"{component}: {annotation.span_event}{suffix}"
        read = partial(read_units, units=annotation.spans_on, attr=attr, unit_word=unit_word)
        yield TextView(name, unit_word, pipe, read, label_cutoffs if annotation.spans_are_units else None)


class Viewer:
    """The WSGI application, with one text at a time. gpu_id (int): -1 for the CPU. pipes: Pipes to show; None takes all fitted ones."""

    def __init__(self, nlp: Language, gpu_id: int = -1, pipes: Sequence[Calibrator] | None = None):
        self._nlp, self._gpu_id, self.views = nlp, gpu_id, list_views(nlp, pipes)
        self._lock, self._context = threading.Lock(), copy_context()  # it has thinc's current device

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        status, kind, text = self.respond(environ)
        body = text.encode()
        headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))}
        start_response(status, list({**headers, **_HEADERS}.items()))
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def respond(self, environ: dict[str, Any]) -> tuple[str, str, str]:
        """Return (status, content type, content) for a request; a bad one gets an error message of one sentence."""
        try:
            _check_origin(environ)
            method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "")
            if method in ("GET", "HEAD") and path in _FILES:
                return "200 OK", _FILES[path][1], self._file(*_FILES[path])
            target, views = (
                f"{path}?{environ.get('QUERY_STRING', '')}",
                {f"/show?{i}": view for i, view in enumerate(self.views)},
            )
            if method != "POST" or target not in views:
                raise calib_error("C731", method=method, given=target.removesuffix("?"))
            return "200 OK", "application/json", json.dumps(self.show(read_text(environ), views[target]))
        except CalibError as error:
            return _STATUS.get(error.code, "400 Bad Request"), "application/json", json.dumps({"fault": error.message})

    def _file(self, name: str, kind: str) -> str:
        """Return a file of the page with the names of views, the pipeline and the legend filled in."""
        text = files(__package__).joinpath(name).read_text(encoding="utf-8")
        if kind == "text/css":
            text = style() + text
        views = "".join(view.option(i) for i, view in enumerate(self.views))
        pipeline = escape(f"{self._nlp.lang}_{self._nlp.meta['name']}")
        legend = legend_html(DisplayOptions(label_word="label"))
        for placeholder, value in (("views", views), ("pipeline", pipeline), ("legend", legend)):
            text = text.replace(f"{{{placeholder}}}", value)
        return text

    def show(self, text: str, view: TextView) -> dict[str, Any]:
        """Process a text and return what the page shows.

        RETURNS (dict): "calibrated", "raw": HTML shaded by either score. "summary", "drift": sentences. "verdict": "unlike"
        (the component has other weights than at the fit) or "unclear". RAISES C732: too long. C733: no text. C734: the pipeline fails. C095: it writes no scores.
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
        with memory_zone(self._nlp):
            doc = self._read(text)
            texts = {name: view.read(doc, raw=name == "raw") for name in ("calibrated", "raw")}
            pages = {name: text_html(marked_text, _DISPLAY_OPTIONS[name]) for name, marked_text in texts.items()}
            verdict, drift = _VERDICTS[bool(view.pipe.lookup.weights_changed())]
            return {**pages, "summary": summary_of(texts, view.unit), "verdict": verdict, "drift": drift}

    def _read(self, text: str) -> Doc:
        try:
            return self._nlp(text)
        except Exception as error:  # anything a component may raise; a traceback would show the text
            raise calib_error("C734", why=reason(error)) from None


def _check_origin(environ: dict[str, Any]) -> None:
    """Check that a request comes from our page. RAISES C730: it names another host (DNS rebinding) or origin."""
    port = environ["SERVER_PORT"]
    hosts = [f"{name}{port_suffix}" for port_suffix in ([f":{port}"] + [""] * (port == "80")) for name in (_HERE, "localhost")]
    host, origin = environ.get("HTTP_HOST", ""), environ.get("HTTP_ORIGIN")
    if host not in hosts or origin not in (None, f"http://{host}"):
        raise calib_error("C730", wanted=f"http://{hosts[0]}", given=host if host not in hosts else origin)


def read_text(environ: dict[str, Any]) -> str:
    """Return the text of a request. RAISES C732: it is too long. C735: it is no UTF-8 text, or cut off."""
    length_text = environ.get("CONTENT_LENGTH") or ""
    if not (length_text.isascii() and length_text.isdigit()):
        raise calib_error("C735")
    length = int(length_text[:18])
    if length > MAX_BYTES:
        raise calib_error("C732", n=f"{length:,} bytes", most=f"{MAX_CHARACTERS:,}")
    with suppress(OSError, UnicodeDecodeError):
        body = environ["wsgi.input"].read(length)
        if len(body) == length:
            return str(body, "utf-8")
    raise calib_error("C735")


def summary_of(texts: dict[str, MarkedText], unit: str) -> str:
    """Return a sentence with the expected number of right units, by calibrated and raw scores. unit (str): Word for a unit."""
    calibrated_scores, raw_scores = (_scores_in(texts[name]) for name in ("calibrated", "raw"))
    if not calibrated_scores:
        return "Nothing in it has a score."
    return f"Expected to be right: {sum(calibrated_scores):.1f} of {count_in_words(unit, len(calibrated_scores))} by calibrated scores, {sum(raw_scores):.1f} by raw ones."


def _scores_in(text: MarkedText) -> list[float]:
    scores = [mark.score for mark in text.marks] + [word.score for word in text.words]
    return [score for score in scores if score is not None]


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
    """Serve a viewer on 127.0.0.1, with a thread per connection. port (int): 0 for any free one. RAISES OSError: it cannot be opened."""

    daemon_threads = True

    def __init__(self, viewer: Viewer, port: int = 0):
        super().__init__((_HERE, port), Handler)
        self.set_app(viewer)
        self.address = f"http://{_HERE}:{self.server_port}"

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = _HERE, self.server_address[1]
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors, such as a browser that closed the connection."""
