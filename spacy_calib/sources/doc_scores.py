"""Scores that a component left with a whole document: in `doc.cats`, in an extension, or under a key of `doc.user_data`."""

from __future__ import annotations

from typing import Any

from spacy.tokens import Doc

from ..doc.annotations import CatsAnnotation
from ..doc.annotations.cats import CATS
from .left_scores import EXTENSION, check_extension
from .unit_scores import UnitScoresSource


class DocScoresSource(UnitScoresSource):
    """Reads a value for each document: a mapping of categories to scores, or a number, which is the score of the likeliest category of
    `doc.cats` (see UnitScoresSource). Gold categories stand in `doc.cats` of gold Docs.

    A Doc without any of the categories in `doc.cats` gets their scores there.

    component, labels: See LeftScoresSource.
    score (str): "cats" for `doc.cats`, "_.NAME" for the extension `doc._.NAME`, another name for a key of `doc.user_data`.
    exclusive (bool): Whether a document has one of the categories alone.
    RAISES C001, C111: see `distinct_labels`.
    """

    def __init__(self, component: str = "", score: str = CATS, labels: list[str] | None = None, exclusive: bool = True):
        super().__init__(component, score, labels)
        self.exclusive = exclusive

    @property
    def user_data_key(self) -> str:  # type: ignore[override]
        return "" if self.score == CATS else super().user_data_key

    def annotation(self, pipe: Any) -> CatsAnnotation:
        return CatsAnnotation(self.labels(pipe), not self.exclusive)

    @property
    def where(self) -> str:
        if self.score == CATS:
            return "doc.cats"
        return f"doc.{self.score}" if self._is_extension else f"doc.user_data[{self.score!r}]"

    def named(self, doc: Doc, row: int) -> str:
        return f"the document that begins {doc.text[:40]!r}"

    def values(self, doc: Doc) -> list[Any]:
        if self.score == CATS:
            return [doc.cats or None]
        if not self._is_extension:
            return [doc.user_data.get(self.score)]
        name = self.score.removeprefix(EXTENSION)
        check_extension(Doc, name)
        return [doc._.get(name)]
