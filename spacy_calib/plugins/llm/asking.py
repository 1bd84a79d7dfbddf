"""The component `calib_answers`: asks a language model once per text, and writes the answer with its scores on the Doc."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc

from ...annotations.cats import CATS
from ...errors import CalibError, brief
from ...sources.tool_spans import spans_from
from .messages import WARNINGS, calib_error
from .response import SCORES, Answer, Field

ENTS = "ents"
# Which scores of an answer that is a category stand beside those of the categories; the others differ from these in names of several tokens alone.
_OF_CATEGORIES = ("product", "margin")
# A process waits so long, in seconds, for another one that writes into the cache.
_PATIENCE = 60.0


class Cache:
    """Answers in one SQLite file for several processes; they quote texts. path (str): Made with its folder if missing."""

    def __init__(self, path: str):
        self.path = Path(path)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """RAISES C646: the file is no such cache, or cannot be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(sqlite3.connect(self.path, timeout=_PATIENCE)) as connection, connection:
                tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
                if tables and ("answers",) not in tables:
                    raise sqlite3.DatabaseError("it is another program's database")
                connection.execute("CREATE TABLE IF NOT EXISTS answers (digest TEXT PRIMARY KEY, answer TEXT NOT NULL)")
                yield connection
        except (OSError, sqlite3.Error) as error:
            raise calib_error("C646", path=self.path, why=str(error)) from None

    def get(self, digest: str) -> Answer | None:
        with self._open() as connection:
            row = connection.execute("SELECT answer FROM answers WHERE digest = ?", [digest]).fetchone()
        try:
            return None if row is None else Answer.of(json.loads(row[0]))
        except (ValueError, RecursionError):
            raise calib_error("C646", path=self.path, why="an answer in it cannot be read") from None

    def put(self, digest: str, answer: Answer) -> None:
        with self._open() as connection:
            connection.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", [digest, json.dumps(answer.plain())])


class Asking(Pipe):
    """Asks `ask` about each text and reads the answer; see AnswersSettings.

    asked (int): Number of texts not in the cache. outcomes (Counter): How many answers were "cut", "filtered", "refused", "called"
    (a tool) or "unreadable", which gives a warning once.
    """

    def __init__(
        self,
        nlp: Language,
        name: str,
        *,
        ask: Callable[[str], Any],
        read: Callable[[Answer], Any] | None,
        types: dict[str, str] | None,
        into: str,
        key: str,
        threshold: float,
        misaligned: str,
        cache: str,
    ):
        if into == CATS and not types:
            raise calib_error("C001", name="types", wanted="given beside into = 'cats'", given=repr(types))
        self.nlp, self.name, self.ask, self.types, self.into = nlp, name, ask, types, into
        self.key = key if into in (ENTS, CATS) else into
        self.threshold, self.misaligned = threshold, misaligned
        self.read = read or (self._category if into == CATS else Answer.lines)
        self.cache = Cache(cache) if cache else None
        self.asked, self._key = 0, uuid4().hex
        self.outcomes: Counter[str] = Counter()

    def _category(self, answer: Answer) -> dict[str, float]:
        return answer.among(list(self.types or ()), _begin_of(answer))

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(sorted(set((self.types or {}).values())))

    @property
    def calib_source(self) -> dict[str, Any]:
        """The source that reads these annotations, as a config block."""
        if self.into == CATS:
            names = [CATS, *(f"{self.key}_{name}" for name in _OF_CATEGORIES)]
            return {"@calib_sources": "spacy-calib.DocScores.v1", "score": names}
        where = (
            {"score": [self.key, *SCORES[1:]]}
            if self.into == ENTS
            else {"spans_key": self.key, "score": ["scores", *SCORES[1:]]}
        )
        return {"@calib_sources": "spacy-calib.SpanScores.v1", **where}

    def __call__(self, doc: Doc) -> Doc:
        try:
            if len(doc):
                self._leave(doc, self.answer(doc.text))
        except Exception as error:
            self.get_error_handler()(self.name, self, [doc], error)
        return doc

    def answer(self, text: str) -> Answer:
        """Return the cached or new answer. RAISES C641 to C643, C646: see `Answer.of`, `Cache`. C644: asking failed."""
        digest = self._digest(text)
        answer = None if self.cache is None else self.cache.get(digest)
        if answer is None:
            try:
                response = self.ask(text)
            except Exception as error:
                raise calib_error("C644", name=self.name, text=brief(text), why=brief(error, 200)) from error
            self.asked += 1
            answer = Answer.of(response)
            if self.cache is not None:
                self.cache.put(digest, answer)
        return answer

    def _digest(self, text: str) -> str:
        """Return the digest of the text and of the config block `ask`; a pipe of no pipeline has no block, and finds its own answers."""
        pipe_name = next((name for name, pipe in self.nlp.components if pipe is self), "")
        settings = self.nlp.get_pipe_config(pipe_name)["ask"] if pipe_name else self._key
        return hashlib.sha256(
            json.dumps([settings, text], sort_keys=True, default=repr).encode("utf-8", "surrogatepass")
        ).hexdigest()

    def _read(self, answer: Answer) -> tuple[Any, int, str, str]:
        """Return (fields or a mapping, how many pairs are not in the answer, the outcome, why); no fields of what is not whole.

        RAISES C645: the reader returned something else than fields, pairs or a mapping.
        """
        outcome = answer.outcome
        try:
            reading = self.read(answer) if answer.tokens or not outcome else {} if self.into == CATS else []
            return (*_as_fields(answer, reading, self.name), outcome, "")
        except CalibError:
            raise
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            return {} if self.into == CATS else [], 0, outcome or "unreadable", brief(error, 80)

    def _leave(self, doc: Doc, answer: Answer) -> None:
        """Write an answer on the Doc."""
        reading, n_missing, outcome, why = self._read(answer)
        self.outcomes[outcome] += 1
        if outcome and self.outcomes[outcome] == 1:
            reason = f" ({why})" if why else ""
            warnings.warn(
                WARNINGS["CW86"].format(name=self.name, text=brief(doc.text), outcome=outcome, why=reason), stacklevel=3
            )
        if isinstance(reading, Mapping):
            self._leave_categories(doc, answer, reading)
            return
        spans, counts = answer.found_in(doc.text, reading, self.types)
        group = spans_from(
            doc,
            spans,
            self.key,
            threshold=self.threshold,
            misaligned=self.misaligned,
            ents=self.into == ENTS,
            beside=SCORES[1:],
        )
        counts = dict(Counter(counts) + Counter(absent=n_missing)) | ({outcome: 1} if outcome else {})
        group.attrs["counts"] |= {**counts, "fields": len(reading) + n_missing}

    def _leave_categories(self, doc: Doc, answer: Answer, chances: Mapping[str, float]) -> None:
        names = {name.casefold(): label for name, label in (self.types or {}).items()}
        doc.cats.update({names.get(name.casefold(), name): chance for name, chance in chances.items()})
        start = _begin_of(answer)
        begun = answer.text[start:].casefold()
        category = max((name for name in self.types or () if begun.startswith(name.casefold())), key=len, default="")
        scores = answer.scores(Field(category, category, start, start + len(category), start)) if category else {}
        doc.user_data.update({f"{self.key}_{name}": scores[name] for name in _OF_CATEGORIES if name in scores})


def _begin_of(answer: Answer) -> int:
    """Return the index of the first character that is neither white space nor Markdown nor a quotation mark."""
    return next((index for index, sign in enumerate(answer.text) if not sign.isspace() and sign not in "*_`#\"'"), 0)


def _as_fields(answer: Answer, reading: Any, name: str) -> tuple[Any, int]:
    """Return (fields or a mapping, how many pairs are not in the answer)."""
    if isinstance(reading, Mapping):
        return reading, 0
    fields: list[Any] = list(reading) if isinstance(reading, Iterable) and not isinstance(reading, str) else [None]
    sizes = {len(field) if isinstance(field, tuple) else 0 for field in fields}
    if sizes == {2} and all(isinstance(part, str) for field in fields for part in field):
        located = answer.fields(fields)
        return located, len(fields) - len(located)
    if sizes - {5}:
        raise calib_error("C645", name=name, given=brief(repr(reading)))
    return fields, 0
