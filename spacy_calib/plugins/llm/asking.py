"""The component `calib_answers` asks a language model about each text, and writes the answer with its scores on the Doc."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc

from ...annotations.cats import CATS
from ...errors import CalibError, brief
from ...sources.tool_spans import spans_from
from .factory import AnswersSettings
from .messages import WARNINGS, calib_error
from .paths import JsonFields
from .response import SCORES, Answer, Field

ENTS = "ents"
# Scores that are stored for a category; the others of SCORES differ from these only for names of several tokens.
_CATEGORY_SCORES = ("product", "margin")
_TIMEOUT = 60.0  # seconds that a process waits for another one that writes into the cache


class Cache:
    """A cache of a model's answers in an SQLite file, which several processes may use. path (str): File, made if missing."""

    def __init__(self, path: str):
        self.path = Path(path)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open a connection that commits at the end. RAISES C646: the file is no cache of answers, or cannot be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(sqlite3.connect(self.path, timeout=_TIMEOUT)) as connection, connection:
                tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
                if tables and ("answers",) not in tables:
                    raise sqlite3.DatabaseError("it is another program's database")
                connection.execute("CREATE TABLE IF NOT EXISTS answers (digest TEXT PRIMARY KEY, answer TEXT NOT NULL)")
                yield connection
        except (OSError, sqlite3.Error) as error:
            raise calib_error("C646", path=self.path, why=str(error)) from None

    def get(self, digest: str) -> Answer | None:
        """Return the answer stored under a digest, or None. RAISES C646: the file or the answer cannot be read."""
        with self._open() as connection:
            row = connection.execute("SELECT answer FROM answers WHERE digest = ?", [digest]).fetchone()
        try:
            return None if row is None else Answer.from_response(json.loads(row[0]))
        except (ValueError, RecursionError):
            raise calib_error("C646", path=self.path, why="an answer in it cannot be read") from None

    def put(self, digest: str, answer: Answer) -> None:
        """Store an answer under a digest. RAISES C646: the file cannot be written."""
        with self._open() as connection:
            connection.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", [digest, json.dumps(answer.plain())])


class AnswersPipe(Pipe, AnswersSettings):
    """The component `calib_answers`: it sends each text to `ask`, reads the answer, and writes it on the Doc with scores.

    settings: Fields of AnswersSettings; each is an attribute. reader (Callable): Returns the fields or (text, type) pairs in an
    Answer, or category -> probability. n_asked (int): Number of texts sent, not counting those in a cache. outcomes (Counter):
    Number of answers that were complete (""), "cut", "filtered", "refused", "called" (a tool) or "unreadable"; all but "" give
    a warning the first time. RAISES C001: `into` is "cats", but `types` is None. C648: a value of `read` is no path.
    """

    def __init__(self, nlp: Language, name: str, **settings: Any):
        AnswersSettings.__init__(self, **settings)
        if self.into == CATS and not self.types:
            raise calib_error("C001", name="types", wanted="given if into is 'cats'", given=repr(self.types))
        self.nlp, self.name = nlp, name
        # Key of the span group with all spans; of categories, the prefix of the names of their scores.
        self.group_key = self.key if self.into in (ENTS, CATS) else self.into
        default = self._category if self.into == CATS else Answer.lines
        self.reader: Callable[[Answer], Any] = JsonFields(**self.read) if self.read else default
        self._cache = Cache(self.cache) if self.cache else None
        self.n_asked, self._random_key = 0, uuid4().hex  # the key takes the place of the config in `_digest`
        self.outcomes: Counter[str] = Counter()

    def _category(self, answer: Answer) -> dict[str, float]:
        """Return each name in `types` -> probability that the answer begins with it; {} if no top token begins a name."""
        return answer.among(list(self.types or ()), _find_start(answer))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels to which `types` maps the types in the prompt, sorted; () if `types` is None."""
        return tuple(sorted(set((self.types or {}).values())))

    @property
    def calib_source(self) -> dict[str, Any]:
        """Config block of the source that reads the scores of this component, for `calib`."""
        if self.into == CATS:
            names = [CATS, *(f"{self.group_key}_{name}" for name in _CATEGORY_SCORES)]
            return {"@calib_sources": "spacy-calib.DocScores.v1", "score": names}
        source = {"@calib_sources": "spacy-calib.SpanScores.v1"}
        # The first of SCORES is stored as the score of the spans, the others under their own names.
        if self.into == ENTS:
            return {**source, "score": [self.group_key, *SCORES[1:]]}
        return {**source, "spans_key": self.group_key, "score": ["scores", *SCORES[1:]]}

    def __call__(self, doc: Doc) -> Doc:
        """Ask about the text of a Doc, and write the answer on it; errors go to spaCy's error handler."""
        try:
            if len(doc):
                self._write(doc, self.answer(doc.text))
        except Exception as error:
            self.get_error_handler()(self.name, self, [doc], error)
        return doc

    def answer(self, text: str) -> Answer:
        """Return the answer on a text, from the cache or by `ask`.

        RAISES C641 to C643, C647: the response cannot be read. C644: `ask` fails. C646: the cache cannot be used.
        """
        digest = self._digest(text)
        answer = None if self._cache is None else self._cache.get(digest)
        if answer is None:
            try:
                response = self.ask(text)
            except Exception as error:
                raise calib_error("C644", name=self.name, text=brief(text), why=brief(error, 200)) from error
            self.n_asked += 1
            answer = Answer.from_response(response)
            if self._cache is not None:
                self._cache.put(digest, answer)
        return answer

    def _digest(self, text: str) -> str:
        """Return the cache key of a text: a digest of it and of the config block `ask`, or a random key outside a pipeline."""
        pipe_name = next((name for name, pipe in self.nlp.components if pipe is self), "")
        settings = self.nlp.get_pipe_config(pipe_name)["ask"] if pipe_name else self._random_key
        settings_and_text = json.dumps([settings, text], sort_keys=True, default=repr)
        return hashlib.sha256(settings_and_text.encode("utf-8", "surrogatepass")).hexdigest()

    def _read(self, answer: Answer) -> tuple[Any, int, str, str]:
        """Read an answer by `reader`. Return (list of fields, or category -> probability; number of (text, type) pairs that are
        not in the answer; key of `outcomes`; the error of `reader`, or "")."""
        empty: Any = {} if self.into == CATS else []
        try:
            reading = self.reader(answer) if answer.tokens or not answer.outcome else empty  # a refused answer has no tokens
            if isinstance(reading, Mapping) or not reading or isinstance(reading[0], Field):
                return reading, 0, answer.outcome, ""
            fields = answer.fields(reading)  # of (text, type) pairs
            return fields, len(reading) - len(fields), answer.outcome, ""
        except CalibError:
            raise
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            return empty, 0, answer.outcome or "unreadable", brief(error, 80)

    def _write(self, doc: Doc, answer: Answer) -> None:
        """Write the spans or categories of an answer on the Doc, and count incomplete answers and fields left out."""
        reading, n_missing, outcome, reader_error = self._read(answer)
        self.outcomes[outcome] += 1
        if outcome and self.outcomes[outcome] == 1:
            why = f" ({reader_error})" if reader_error else ""
            warnings.warn(WARNINGS["CW86"].format(name=self.name, text=brief(doc.text), outcome=outcome, why=why), stacklevel=3)
        if isinstance(reading, Mapping):
            self._write_categories(doc, answer, reading)
            return
        spans, left_out = answer.found_in(doc.text, reading, self.types)
        # "beside" names the scores to store in addition to that of the span, which is the first of SCORES.
        options: dict[str, Any] = {"threshold": self.threshold, "misaligned": self.misaligned, "beside": SCORES[1:]}
        group = spans_from(doc, spans, self.group_key, ents=self.into == ENTS, **options)
        counts = Counter(left_out) + Counter(absent=n_missing)  # fields left out, by reason
        incomplete = {outcome: 1} if outcome else {}
        group.attrs["counts"] |= {**counts, **incomplete, "fields": len(reading) + n_missing}

    def _write_categories(self, doc: Doc, answer: Answer, probabilities: Mapping[str, float]) -> None:
        """Write the probabilities of categories on `Doc.cats`, and on `Doc.user_data` the scores of the one that the answer
        begins with. probabilities: Name of a category in the prompt -> probability; the key on `Doc.cats` is its label."""
        labels = {name.casefold(): label for name, label in (self.types or {}).items()}
        doc.cats.update({labels.get(name.casefold(), name): value for name, value in probabilities.items()})
        start = _find_start(answer)
        text = answer.text[start:].casefold()
        category = max((name for name in self.types or () if text.startswith(name.casefold())), key=len, default="")
        # The name of the category is both text and type of the field.
        scores = answer.scores(Field(category, category, start, start + len(category), start)) if category else {}
        doc.user_data.update({f"{self.group_key}_{name}": scores[name] for name in _CATEGORY_SCORES if name in scores})


def _find_start(answer: Answer) -> int:
    """Return the index of an answer's first character that is no white space, Markdown or quotation mark; 0 if none."""
    return next((i for i, character in enumerate(answer.text) if not character.isspace() and character not in "*_`#\"'"), 0)
