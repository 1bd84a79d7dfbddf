"""The component `calib_answers`: asks a language model once per text, and leaves what its answer says on the Doc, with scores."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc

from ..doc.annotations.cats import CATS
from ..doc.answer import SCORES, Answer, Field
from ..doc.found import spans_from
from ..errors import CalibError, brief, calib_error

ENTS = "ents"
# Which scores of an answer that is a category stand beside those of the categories; the others differ from these in names of several tokens alone.
_OF_CATEGORIES = ("product", "margin")
# A process waits so long, in seconds, for another one that writes into the cache.
_PATIENCE = 60.0


class Cache:
    """Answers on disk, one SQLite file: what was written stays, whatever ends the process, and several processes may share it.

    path (str): The file; it is made, with its folder, where there is none. It holds answers as they are, which quote texts.
    """

    def __init__(self, path: str):
        self.path = Path(path)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """RAISES C646: the file is no such cache, or cannot be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(sqlite3.connect(self.path, timeout=_PATIENCE)) as held, held:
                held.execute("CREATE TABLE IF NOT EXISTS answers (digest TEXT PRIMARY KEY, answer TEXT NOT NULL)")
                yield held
        except (OSError, sqlite3.Error) as error:
            raise calib_error("C646", path=self.path, why=str(error)) from None

    def get(self, digest: str) -> Answer | None:
        with self._open() as held:
            row = held.execute("SELECT answer FROM answers WHERE digest = ?", [digest]).fetchone()
        try:
            return None if row is None else Answer.of(json.loads(row[0]))
        except (CalibError, ValueError):
            raise calib_error("C646", path=self.path, why="an answer in it cannot be read") from None

    def put(self, digest: str, answer: Answer) -> None:
        with self._open() as held:
            held.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", [digest, json.dumps(answer.plain())])


class Asking(Pipe):
    """Asks `ask` of each text and reads the answer. See AnswersSettings.

    asked (int): How many texts were asked for in this process; the others came from the cache.
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
        self.asked = 0

    def _category(self, answer: Answer) -> dict[str, float]:
        return answer.among(list(self.types or ()), _begin_of(answer))

    def _scores_of_category(self, answer: Answer) -> dict[str, float]:
        """Key of the user data -> a further score of the name with which an answer begins; {} where it begins with none."""
        at = _begin_of(answer)
        begun = answer.text[at:].casefold()
        said = max((name for name in self.types or () if begun.startswith(name.casefold())), key=len, default="")
        scores = answer.scores(Field(said, said, at, at + len(said), at)) if said else {}
        return {f"{self.key}_{name}": scores[name] for name in _OF_CATEGORIES if name in scores}

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(sorted(set((self.types or {}).values())))

    @property
    def calib_source(self) -> dict[str, Any]:
        """The source that reads what it leaves, as a config has it."""
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
        """What the model says of a text, from the cache where it was asked before with the same settings.

        RAISES C641 to C643: see `Answer.of`. C644: the function that asks failed. C646: see `Cache`.
        """
        digest = self._digest(text)
        held = None if self.cache is None else self.cache.get(digest)
        if held is None:
            try:
                response = self.ask(text)
            except Exception as error:
                raise calib_error("C644", name=self.name, text=brief(text), why=brief(error, 200)) from error
            self.asked += 1
            held = Answer.of(response)
            if self.cache is not None:
                self.cache.put(digest, held)
        return held

    def _digest(self, text: str) -> str:
        """Of the text and of the block of the config that says who is asked."""
        own = next((name for name, pipe in self.nlp.components if pipe is self), "")
        settings = self.nlp.get_pipe_config(own)["ask"] if own else type(self.ask).__qualname__
        return hashlib.sha256(
            json.dumps([settings, text], sort_keys=True, default=repr).encode("utf-8", "surrogatepass")
        ).hexdigest()

    def _leave(self, doc: Doc, answer: Answer) -> None:
        """RAISES C645: the reader gave something else than fields, pairs or a mapping."""
        said = self.read(answer)
        if isinstance(said, Mapping):
            names = {name.casefold(): label for name, label in (self.types or {}).items()}
            doc.cats.update({names.get(name.casefold(), name): chance for name, chance in said.items()})
            doc.user_data.update(self._scores_of_category(answer))
            return
        fields = _as_fields(answer, said, self.name)
        found, left_out = answer.found_in(doc.text, fields, self.types)
        group = spans_from(
            doc,
            found,
            self.key,
            threshold=self.threshold,
            misaligned=self.misaligned,
            ents=self.into == ENTS,
            beside=SCORES[1:],
        )
        group.attrs["counts"] |= {**left_out, "fields": len(fields)}


def _begin_of(answer: Answer) -> int:
    """The first character of an answer that is no white space."""
    return next((at for at, sign in enumerate(answer.text) if not sign.isspace()), 0)


def _as_fields(answer: Answer, said: Any, name: str) -> list[Any]:
    """RAISES C645: see `_leave`."""
    given: list[Any] = list(said) if isinstance(said, Iterable) and not isinstance(said, str) else [None]
    sizes = {len(one) if isinstance(one, tuple) else 0 for one in given}
    if sizes == {2} and all(isinstance(part, str) for one in given for part in one):
        return answer.fields(given)
    if sizes - {5}:
        raise calib_error("C645", name=name, given=brief(repr(said)))
    return given
