"""What spaCy asks of a pipe that annotates Docs in batches and saves what it learned as one file, and how it warns."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from spacy import util
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.training import Example

from ..errors import WARNINGS, CalibError, calib_error
from .saved import FITTED, StateFormat, dump, read

_FILE = "calibration.msgpack"
_Pipe = TypeVar("_Pipe", bound="AnnotatingPipe")


class AnnotatingPipe(Pipe):
    """A pipe that `predict`s from Docs, writes by `set_annotations`, and saves one file. kept (Kept): How that is known."""

    name: str
    state_format: ClassVar[StateFormat] = FITTED

    @abstractmethod
    def predict(self, docs: Sequence[Doc]) -> Any:
        """What is to be written on the Docs; they are not changed."""

    @abstractmethod
    def set_annotations(self, docs: Sequence[Doc], prediction: Any) -> None:
        """Write on the Docs what `predict` found."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """What the pipe learned, as plain data and arrays."""

    @abstractmethod
    def _read_state(self, state: Any) -> Any:
        """What is made of such a state, all of it checked, before anything is taken over. RAISES Misfit: it is none."""

    @abstractmethod
    def _set_state(self, parts: Any) -> None:
        """Take over what `_made` gave, all of it or (where it is refused) nothing."""

    def _load(self, data: bytes, path: str) -> None:
        self._set_state(read(data, self._read_state, name=self.name, path=path, state_format=self.state_format))

    def __call__(self, doc: Doc) -> Doc:
        error_handler = self.get_error_handler()
        try:
            self.set_annotations([doc], self.predict([doc]))
        except Exception as error:
            error_handler(self.name, self, [doc], error)
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate a stream of Docs, batch by batch."""
        error_handler = self.get_error_handler()
        for batch in util.minibatch(stream, size=batch_size):
            docs = list(batch)
            try:
                self.set_annotations(docs, self.predict(docs))
                yield from docs
            except Exception as error:
                error_handler(self.name, self, docs, error)

    def initialize(self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None) -> None:
        """Nothing to do: the pipe is fitted after training, not by it."""

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The fitted state as bytes."""
        return dump(self._state(), self.state_format)

    def from_bytes(self: _Pipe, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> _Pipe:
        """Load the state from `to_bytes`. RAISES C010 to C012: the bytes. C020: the component has other labels."""
        self._load(bytes_data, "the bytes given")
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the fitted state into a folder."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _FILE).write_bytes(self.to_bytes())

    def check_on_disk(self, path: str | Path) -> None:
        """Read what `to_disk` wrote, and take over nothing of it. RAISES C815: it cannot be read again."""
        file = Path(path) / _FILE
        try:
            read(file.read_bytes(), self._read_state, name=self.name, path=str(file), state_format=self.state_format)
        except CalibError as error:
            raise calib_error("C815", name=self.name, why=error.message) from None

    def from_disk(self: _Pipe, path: str | Path, *, exclude: Iterable[str] = ()) -> _Pipe:
        """Load the state from `to_disk`. RAISES C010 to C012: the file. C020: the component has other labels."""
        file = Path(path) / _FILE
        try:
            data = file.read_bytes()
        except OSError as error:
            raise calib_error("C010", name=self.name, path=str(file), why=error.strerror or error) from None
        self._load(data, str(file))
        return self


class WarnOnce:
    """Warns by code, once for the same values.

    pipe (Any): The pipe that warns. messages (Mapping[str, str] | None): Code -> sentence, in addition to those of the core. said (set): What was warned of already.
    """

    def __init__(self, pipe: Any, messages: Mapping[str, str] | None = None):
        self.pipe, self.messages = pipe, {**WARNINGS, **(messages or {})}
        self.warned_keys: set[str] = set()

    def __call__(self, code: str, **values: object) -> None:
        key = f"{code}{values}"
        if key not in self.warned_keys:
            self.warned_keys.add(key)
            sentence = self.messages[code]
            if "{advice}" in sentence:
                from ..errors.advice import advise  # scoring does not need it

                values["advice"] = advise(code)
            warnings.warn(sentence.format(name=self.pipe.name, **values), stacklevel=3)
