"""Scores of tokens that look at the word and at what surrounds it. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibration.recalibrators.logistic import log_odds
from ..calibration.steps import Predictions
from ..errors import calib_error
from ..schema import floats, lengths, listed, maybe, record, text, whole
from ..types import Floats, Ints
from .blocks import Looks, blocks_of
from .features import Feature, FromDocs
from .known import KnownWords, no_words
from .log_linear import LogLinear
from .surroundings import Entries, Surroundings
from .words import Words

# When context is kept: always, or where held-out documents lose no more with it than without.
WHEN = ("always", "no_worse")

_LEARNED = record(
    {
        "columns": listed(listed(text, 2, 2)),
        "centers": floats(),
        "scales": floats(1e-12),
        "known": KnownWords.read,
        "n_tags": whole(),
        "n_sources": whole(),
        "model": maybe(LogLinear.read),
    },
    lambda held: lengths(dict.fromkeys(("centers", "scales"), len(held["columns"])), held),
)


@dataclass(frozen=True, eq=False)
class View:
    """Some tokens as features see them.

    around (Surroundings): What they look at. columns (Sequence[Floats]): What they say of all tokens, standardized.
    known (KnownWords): Forms and endings that have weights.
    """

    around: Surroundings
    columns: Sequence[Floats]
    known: KnownWords

    @property
    def unknown(self) -> NDArray[np.bool_]:
        """Of each token, whether its form is not known."""
        assert self.around.words is not None
        return self.known.unknown(self.around.words)


class TokenContext:
    """The log-linear model that looks at the word: log-odds of the score and of its rival, tag beside rival, ending,
    form and shape, the tags beside it, and features (recalibration with features: Kuleshov and Liang 2015).

    features (Sequence[Feature]): What else is looked at. when (str): When it is kept, of WHEN.
    columns_ (tuple): (short name of the feature, what it says) of each column. centers_, scales_ (Floats): Their mean
        and deviation. known_ (KnownWords): Forms and endings with weights. n_tags_ (int): Columns of the fit.
    n_sources_ (int): Named sources of gold. model_ (LogLinear | None): None where only scores of spans are moved.
    RAISES C001: a setting out of range.
    """

    registered = "spacy-calib.Context.v1"

    def __init__(self, features: Sequence[Feature], when: str = "always"):
        if when not in WHEN:
            raise calib_error("C001", name="when", wanted=" or ".join(WHEN), given=repr(when))
        self.features = tuple(features)
        self.when = when
        self.columns_: tuple[tuple[str, str], ...] = ()
        self.centers_ = np.zeros(0)
        self.scales_ = np.ones(0)
        self.known_: KnownWords = no_words()
        self.n_tags_ = self.n_sources_ = 0
        self.model_: LogLinear | None = None

    @property
    def functions(self) -> tuple[FromDocs, ...]:
        """The users' features, which are asked with the Docs."""
        return tuple(feature for feature in self.features if isinstance(feature, FromDocs))

    def clone(self) -> TokenContext:
        """A context with the same settings, not fitted."""
        return TokenContext(self.features, self.when)

    # Applying

    def view(self, words: Words, rows: Ints, tags: Ints, scores: Floats) -> View:
        """Look at some tokens. rows, tags (Ints), scores (Floats): Of all their entries, before the model moves them.

        RAISES C204: a user's feature gives another number of columns than at the fit.
        """
        around = Surroundings(Entries(rows, tags, scores, len(words)), words)
        columns: list[Floats] = []
        for feature in self.features:
            said = feature(around)
            wanted = sum(name == feature.short for name, _ in self.columns_)
            if len(said) != wanted:
                raise calib_error("C204", name=feature.registered, wanted=wanted, given=len(said))
            columns += said
        return View(around, self.standardized(columns), self.known_)

    def standardized(self, columns: Sequence[Floats]) -> list[Floats]:
        """The columns less their means of the fit, divided by its deviations."""
        parts = zip(columns, self.centers_.tolist(), self.scales_.tolist(), strict=True)
        return [(column - center) / scale for column, center, scale in parts]

    def looks(self, view: View, rows: Ints, tags: Ints, own: Floats, leads: Any) -> Looks:
        """Pairs of a view's tokens as the model sees them. rows, tags (Ints), own (Floats), leads: As of `Looks`."""
        known = view.known if len(view.known.endings) else None
        return Looks.of(
            view.around, known, view.columns, self.n_tags_, self.n_sources_, rows=rows, tags=tags, own=own, leads=leads
        )

    def apply(self, given: Predictions) -> Predictions:
        """Move all entries; features look only at those above the threshold. Without a model only the view is new."""
        kept = given.kept
        view = self.view(given.words, given.rows[kept], given.tags[kept], given.scores[kept])
        if self.model_ is None:
            return given.having(view=view)
        leads = np.zeros(len(given), dtype=bool)
        leads[kept] = view.around.entries.leads
        looks = self.looks(view, given.rows, given.tags, log_odds(given.scores), leads)
        return given.having(scores=self.model_.predict(looks.own, blocks_of(looks)), view=view)

    # Saving

    def state(self) -> dict[str, Any]:
        """Name, settings and what was learned."""
        return {
            "@calib_contexts": self.registered,
            "settings": {"features": [feature.registered for feature in self.features], "when": self.when},
            "learned": {
                "columns": [list(column) for column in self.columns_],
                "centers": self.centers_,
                "scales": self.scales_,
                "known": self.known_.state(),
                "n_tags": self.n_tags_,
                "n_sources": self.n_sources_,
                "model": None if self.model_ is None else self.model_.state(),
            },
        }

    def load_learned(self, learned: dict[str, Any]) -> TokenContext:
        """Take over what was learned, from a state. RAISES Misfit: it is not of the form declared."""
        held = _LEARNED(learned, "learned")
        self.columns_ = tuple((feature, what) for feature, what in held["columns"])
        self.centers_, self.scales_ = held["centers"], held["scales"]
        self.n_tags_, self.n_sources_ = held["n_tags"], held["n_sources"]
        self.known_, self.model_ = held["known"], held["model"]
        if self.model_ is not None:
            self.model_.check(blocks_of(self._looks_at_nothing()))
        return self

    def _looks_at_nothing(self) -> Looks:
        """No pairs, to ask how large the blocks are."""
        none = np.zeros(0, dtype=np.intp)
        around = Surroundings(Entries(none, none, np.zeros(0), 0), Words.joined([]))
        empty = View(around, [np.zeros(0) for _ in self.columns_], self.known_)
        return self.looks(empty, none, none, np.zeros(0), np.zeros(0, dtype=bool))
