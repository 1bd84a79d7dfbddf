"""Scores that a component left with tokens: in an extension of each, or as a list under a key of `doc.user_data`."""

from __future__ import annotations

from typing import Any

from spacy.tokens import Doc, Token

from ..doc.annotations import Annotation, get_annotation
from ..errors import calib_error
from .base import to_numpy
from .left_scores import EXTENSION, check_extension
from .unit_scores import UnitScoresSource

_LAYERS = ("tag", "pos", "morph", "lemma", "sent", "dep", "ent_type")


class TokenScoresSource(UnitScoresSource):
    """Reads a value for each token: a number, or a mapping of labels to scores (see UnitScoresSource).

    component, labels: See LeftScoresSource.
    score (str): "_.NAME" for the extension `token._.NAME`, another name for a key of `doc.user_data` that holds a list with one for each token.
    layer (str): Which annotation the labels are of: tag, pos, morph, lemma, sent, dep, ent_type.
    RAISES C001: no such annotation. C001, C111: see `distinct_labels`.
    """

    def __init__(
        self, component: str = "", score: str = f"{EXTENSION}score", layer: str = "tag", labels: list[str] | None = None
    ):
        super().__init__(component, score, labels)
        if layer not in _LAYERS:
            raise calib_error("C001", name="layer", wanted=f"one of {', '.join(_LAYERS)}", given=repr(layer))
        self.layer = layer

    def annotation(self, pipe: Any) -> Annotation:
        return get_annotation(self.layer)

    @property
    def where(self) -> str:
        return f"token.{self.score}" if self._is_extension else f"doc.user_data[{self.score!r}]"

    def named(self, doc: Doc, row: int) -> str:
        return f"the token {doc[row].text[:40]!r}"

    def values(self, doc: Doc) -> list[Any]:
        if self._is_extension:
            name = self.score.removeprefix(EXTENSION)
            check_extension(Token, name)
            return [token._.get(name) for token in doc]
        given = doc.user_data.get(self.score)
        if given is None:
            return []
        values = list(given) if isinstance(given, (list, tuple)) else to_numpy(given).reshape(-1).tolist()
        if len(values) != len(doc):
            raise calib_error("C283", where=self.where, given=len(values), wanted=len(doc), text=doc.text[:40])
        return values
