"""A local page that shows how sure a pipeline is of any text: `spacy calib view`. A function from requests to responses; nothing is kept of a text."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from importlib.resources import files
from typing import Any, NamedTuple
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import set_active_gpu

from ..doc.annotations import get_annotation, plain_name, unit_of
from ..doc.collect import scored_corpus
from ..doc.marked_text import Look, Passage, escape, legend_html, passage_html, style
from ..doc.rendering import marks_spans, read_marks, read_units, read_words
from ..doc.zones import memory_zone
from ..errors import CalibError, calib_error
from ..expect.drift import DIFFERENT, LIKE, OTHER_WEIGHTS, OTHER_WEIGHTS_SENTENCE, TOO_FEW
from ..expect.summary import spans_of, tokens_of
from ..pairs.documents import DOCUMENT, counted
from .component import Calibrator, fitted_pipes
from .event import SUFFIX, event_pipes
from .loading import check_readable, reason

# Characters of a text that a browser shows at once without a wait (some 10 MB of markup), and bytes of a request that are read.
MOST, MOST_BYTES = 20_000, 1 << 20
_FILES = {"/": ("view.html", "text/html"), "/view.css": ("view.css", "text/css"), "/view.js": ("view.js", "text/javascript")}
# A bar in a tip has its width in an attribute.
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
# Above every score: each word can be reached, and the page says at which of them the tab key stops.
_BESIDE = {"calibrated": "before calibration", "raw": "after calibration"}
_LOOKS = {name: Look(doubtful=2.0, tags="all", beside=beside, scores=True) for name, beside in _BESIDE.items()}


class Way(NamedTuple):
    """One thing that a pipe says of a text. name (str): What the page calls it. what (str): What has labels. read (Callable): (Doc, raw: bool) -> what
    is marked in it.
    """

    name: str
    what: str
    pipe: Calibrator
    read: Callable[..., Passage]


def ways_of(nlp: Language) -> list[Way]:
    """All that the fitted pipes of a pipeline say. RAISES C027: it has none. C021, C069: see `check_readable`."""
    pipes = fitted_pipes(nlp)
    return [way for pipe in pipes for way in _ways_of(nlp, pipe, f" ({pipe.attr})" if len(pipes) > 1 else "")]


def _ways_of(nlp: Language, pipe: Calibrator, behind: str) -> Iterator[Way]:
    check_readable(nlp, pipe)
    layer, attr, component = pipe.fit_info.layer, pipe.attr, pipe.source.component or pipe.name
    annotation = get_annotation(layer)
    one, several = annotation.span_words
    if marks_spans(layer):
        yield Way(f"{component}: {several}{behind}", one, pipe, partial(read_marks, attr=attr))
    whole = unit_of(layer) == DOCUMENT
    what, has = ("category of the text", "text") if whole else (f"{plain_name(layer)} of each word", "word")
    yield Way(f"{component}: {what}{behind}", has, pipe, partial(read_words, attr=attr))
    if annotation.span_event:
        name = f"{component}: {annotation.span_event}{behind}"
        yield Way(name, one, pipe, partial(read_units, units=annotation.spans_on, attr=attr, called=one))
    for asked in event_pipes(nlp, attr):
        name = f"{asked.name}: {asked.event.what}{behind}"
        called = asked.event.called[0]
        yield Way(name, called, pipe, partial(read_units, units=asked.event.units, attr=attr + SUFFIX, called=called))


class Viewer:
    """Answers what the page asks, as WSGI has it. One text at a time is read, from whatever thread the question comes.

    nlp (Language): The calibrated pipeline. gpu_id (int): The GPU that it runs on, -1 for the CPU. RAISES C027, C021, C069: see `ways_of`.
    """

    def __init__(self, nlp: Language, gpu_id: int = -1):
        self._nlp, self._gpu_id, self.ways = nlp, gpu_id, ways_of(nlp)
        self._lock, self._context = threading.Lock(), copy_context()  # thinc knows by it where the pipeline runs

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        """As a WSGI application. environ (dict): The request."""
        status, kind, text = self.respond(environ)
        body = text.encode()
        own = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))}
        start_response(status, list({**own, **_HEADERS}.items()))
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def respond(self, environ: dict[str, Any]) -> tuple[str, str, str]:
        """(status, kind of content, content) of the answer; a fault of the request is one sentence. environ (dict): See `__call__`."""
        try:
            _check_asked_here(environ)
            method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "")
            if method in ("GET", "HEAD") and path in _FILES:
                return "200 OK", _FILES[path][1], self._file(*_FILES[path])
            asked, ways = f"{path}?{environ.get('QUERY_STRING', '')}", {f"/show?{i}": way for i, way in enumerate(self.ways)}
            if method != "POST" or asked not in ways:
                raise calib_error("C731", method=method, given=asked.removesuffix("?"))
            return "200 OK", "application/json", json.dumps(self.show(read_text(environ), ways[asked]))
        except CalibError as error:
            return _STATUS.get(error.code, "400 Bad Request"), "application/json", json.dumps({"fault": error.message})

    def _file(self, name: str, kind: str) -> str:
        text = files(__package__).joinpath(name).read_text(encoding="utf-8")
        if kind == "text/css":
            text = style() + text
        ways = "".join(f'<option value="{i}">{escape(way.name)}</option>' for i, way in enumerate(self.ways))
        pipeline = escape(f"{self._nlp.lang}_{self._nlp.meta['name']}")
        for place, value in (("ways", ways), ("pipeline", pipeline), ("legend", legend_html(Look(what="label")))):
            text = text.replace(f"{{{place}}}", value)
        return text

    def show(self, text: str, way: Way) -> dict[str, Any]:
        """What the pipeline says of a text, and nothing of it is kept.

        RETURNS (dict): "calibrated", "raw": the text as HTML, shaded by either. "summary", "drift": A sentence each; "verdict": "like", "unlike" or "unclear".
        RAISES C733, C732: there is no text, or too much. C734: the pipeline fails. C095: it gives no scores.
        """
        if not text.strip():
            raise calib_error("C733")
        if len(text) > MOST:
            raise calib_error("C732", n=f"{len(text):,} characters", most=f"{MOST:,}")
        with self._lock:
            if self._gpu_id >= 0:  # each thread has its own, the first one at its beginning
                set_active_gpu(self._gpu_id)
            return self._context.run(self._show, text, way)

    def _show(self, text: str, way: Way) -> dict[str, Any]:
        with memory_zone(self._nlp):
            doc = self._read(text)
            shaded = {name: way.read(doc, raw=name == "raw") for name in ("calibrated", "raw")}
            marked = {name: passage_html(passage, _LOOKS[name]) for name, passage in shaded.items()}
            verdict, drift = unlike(way.pipe, doc)
            return {**marked, "summary": summary_of(shaded, way.what), "verdict": verdict, "drift": drift}

    def _read(self, text: str) -> Doc:
        try:
            return self._nlp(text)
        except Exception as error:  # whatever a component raises; a traceback would tell of the text
            raise calib_error("C734", why=reason(error)) from None


def _check_asked_here(environ: dict[str, Any]) -> None:
    """RAISES C730: the page was asked for under another name, as one of the web can have for this machine (DNS rebinding), or by another page."""
    port = environ["SERVER_PORT"]
    hosts = [f"{name}{behind}" for behind in ([f":{port}"] + [""] * (port == "80")) for name in (_HERE, "localhost")]
    host, origin = environ.get("HTTP_HOST", ""), environ.get("HTTP_ORIGIN")
    if host not in hosts or origin not in (None, f"http://{host}"):
        raise calib_error("C730", wanted=f"http://{hosts[0]}", given=host if host not in hosts else origin)


def read_text(environ: dict[str, Any]) -> str:
    """The text of a request. RAISES C732: it is too long. C735: it is no text, or ends too early."""
    given = environ.get("CONTENT_LENGTH") or ""
    if not (given.isascii() and given.isdigit()):
        raise calib_error("C735")
    length = int(given[:18])
    if length > MOST_BYTES:
        raise calib_error("C732", n=f"{length:,} bytes", most=f"{MOST:,}")
    with suppress(OSError, UnicodeDecodeError):
        sent = environ["wsgi.input"].read(length)
        if len(sent) == length:
            return str(sent, "utf-8")
    raise calib_error("C735")


def summary_of(shaded: dict[str, Passage], what: str) -> str:
    """How many are expected to be right, by calibrated and by raw scores. what (str): What has labels."""
    after, before = (_scores_in(shaded[name]) for name in ("calibrated", "raw"))
    if not after:
        return "Nothing in it has a score."
    return f"Expected to be right: {sum(after):.1f} of {counted(what, len(after))} by calibrated scores, {sum(before):.1f} by raw ones."


def _scores_in(page: Passage) -> list[float]:
    scores = [one.score for one in page.marks] + [one.score for one in page.words]
    return [score for score in scores if score is not None]


_VERDICTS = {
    LIKE: ("like", "This text is like those that the pipe was fitted on."),
    DIFFERENT: (
        "unlike",
        "This text looks unlike those that the pipe was fitted on ({where}): do not trust these probabilities.",
    ),
    TOO_FEW: (
        "unclear",
        "One text like this tells too little to say whether it is like those of the fit; calib expect compares many texts.",
    ),
    OTHER_WEIGHTS: ("unlike", OTHER_WEIGHTS_SENTENCE),
    "": (
        "unclear",
        "Nothing is known to compare this text with: the pipe keeps no record of those of the fit, or the text has no scores.",
    ),
}


def unlike(pipe: Calibrator, doc: Doc) -> tuple[str, str]:
    """(verdict, sentence): whether a text looks unlike those that the pipe was fitted on, as `calib expect` tells it, see `DriftProfile.judge`. What chance
    makes is drawn from whole documents of the fit: of a shorter text a difference says nothing.
    """
    if pipe.lookup.weights_changed():
        return _VERDICTS[OTHER_WEIGHTS]
    record, labels = pipe.learned.record, pipe.lookup.labels()
    bare = Doc(doc.vocab, words=[token.text for token in doc], spaces=[bool(token.whitespace_) for token in doc])
    corpus = scored_corpus([Example(doc, bare)], pipe.attr, get_annotation(pipe.fit_info.layer), labels)
    if record is None or not corpus.counted.any():
        return _VERDICTS[""]
    found = record.profile.compare(tokens_of(corpus, labels), None if record.entities is None else spans_of(corpus))
    too_short = found.verdict == DIFFERENT and len(doc) < record.profile.usual
    verdict, sentence = _VERDICTS[TOO_FEW if too_short else found.verdict]
    return verdict, sentence.format(where=", ".join(check.name for check in found.checks if check.differs))


class Handler(WSGIRequestHandler):
    """timeout (float): Seconds that a connection may say nothing."""

    timeout = 30.0

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is told of a request."""


class Server(socketserver.ThreadingMixIn, WSGIServer):
    """Serves a viewer to this machine alone, looks up no name and tells of no request. A thread for each connection, as browsers open some that they
    do not use yet.

    port (int): 0 takes a free one. RAISES OSError: the port cannot be opened.
    """

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
        """A browser that went away is no fault."""
