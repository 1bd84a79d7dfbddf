"""The part of a spaCy pipe that all our pipes share: annotating in batches, saving one file, warning once."""

from __future__ import annotations

import sys
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

from ..errors import WARNINGS
from .saved import FITTED, StateFormat, dump, read

_FILE = "calibration.msgpack"
_Pipe = TypeVar("_Pipe", bound="AnnotatingPipe")


class AnnotatingPipe(Pipe):
    """A pipe that reads Docs in `predict`, writes in `set_annotations`, and saves its state as one file (`state_format`)."""

    name: str
    state_format: ClassVar[StateFormat] = FITTED

    @abstractmethod
    def predict(self, docs: Sequence[Doc]) -> Any:
        """Compute what to write on the Docs, without changing them."""

    @abstractmethod
    def set_annotations(self, docs: Sequence[Doc], prediction: Any) -> None:
        """Write a result of `predict` on its Docs."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """Return the learned parameters as plain data and arrays."""

    @abstractmethod
    def _read_state(self, state: Any) -> Any:
        """Check a whole state and build its parts; the pipe stays as it is. RAISES InvalidState: it has another form."""

    @abstractmethod
    def _set_state(self, parts: Any) -> None:
        """Take over the parts from `_read_state`, all of them or, if they are refused, none."""

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
        """Annotate a stream of Docs in batches."""
        error_handler = self.get_error_handler()
        for batch in util.minibatch(stream, size=batch_size):
            docs = list(batch)
            try:
                self.set_annotations(docs, self.predict(docs))
                yield from docs
            except Exception as error:
                error_handler(self.name, self, docs, error)

    def initialize(self, get_examples: Callable[[], Iterable[Example]], *, nlp: Language | None = None) -> None:
        """Do nothing: the pipe is fitted after training, not by it."""

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the fitted state as bytes, for `from_bytes`."""
        return dump(self._state(), self.state_format)

    def from_bytes(self: _Pipe, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> _Pipe:
        """Load the state from `to_bytes`. RAISES C010 to C012: invalid bytes. C020: the component has other labels."""
        self._load(bytes_data, "the bytes given")
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the fitted state into a folder."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _FILE).write_bytes(self.to_bytes())

    def from_disk(self: _Pipe, path: str | Path, *, exclude: Iterable[str] = ()) -> _Pipe:
        """Load the state from `to_disk`. RAISES C010 to C012: an invalid file. C020: the component has other labels."""
        file = Path(path) / _FILE
        try:
            data = file.read_bytes()
        except OSError as error:
            raise self.state_format.error(
                self.state_format.unreadable, name=self.name, path=str(file), why=error.strerror or error
            ) from None
        self._load(data, str(file))
        return self


class WarnOnce:
    """Warns by code, once for each set of values.

    messages (Mapping | None): Code -> sentence, in addition to those of the core.
    """

    def __init__(self, pipe: Any, messages: Mapping[str, str] | None = None):
        self.pipe, self.messages = pipe, {**WARNINGS, **(messages or {})}
        self.warned_keys: set[str] = set()

    def __call__(self, code: str, **values: object) -> None:
        key = f"{code}{values}"
        if key not in self.warned_keys:
            self.warned_keys.add(key)
            warnings.warn(self.messages[code].format(name=self.pipe.name, **values), stacklevel=_level_of_user())


def _level_of_user() -> int:
    """Return the `stacklevel` of the first line outside of this package and spaCy, for a warning by the calling function."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("spacy", "spacy_calib"):
        level, frame = level + 1, frame.f_back
    return level
