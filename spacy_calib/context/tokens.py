"""Scores of tokens that look at what surrounds the token. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..calibration.recalibrators.logistic import log_odds, sigmoid
from ..errors import calib_error
from ..schema import Misfit, keyed, lengths, listed, maybe, number, record, text
from ..types import Floats, Ints
from .familiarity import WORD_COUNTS, WordCounts, no_words
from .features import Feature, FromDocs
from .ridge import RIDGE_MODEL, RidgeModel
from .surroundings import AVERAGED, CLIP, Entries, Surroundings
from .words import Words

# When context is kept: always, or where by held-out documents it is no worse than none by more than one standard error.
WHEN = ("always", "no_worse")


def _weights_agree(held: dict[str, Any]) -> str:
    size = {"weights": 1 + len(held["columns"])}  # one for the rival
    models = () if held["models"] is None else (held["models"]["leading"], held["models"]["others"])
    return next(filter(None, (lengths(size, model) for model in models)), "")


# What a fitted TokenContext saves.
_LEARNED = record(
    {
        "columns": listed(listed(text, 2, 2)),
        "known": WORD_COUNTS,
        "averages": keyed(number()),
        "models": maybe(record({"leading": RIDGE_MODEL, "others": RIDGE_MODEL})),
    },
    _weights_agree,
)


class Column(NamedTuple):
    """One of the things that are looked at. feature (str): Short name of the feature that says it. what (str): In words."""

    feature: str
    what: str


@dataclass(frozen=True, eq=False)
class TokenModels:
    """leading (RidgeModel): Of the likeliest tag of each token; it looks at the second likeliest too. others (RidgeModel): Of the other tags,
    which look at the likeliest: where the scores are too sure of that one, they are too unsure of these.
    """

    leading: RidgeModel
    others: RidgeModel


@dataclass(frozen=True, eq=False)
class View:
    """Some tokens as the features see them.

    around (Surroundings): What the features look at. columns (Sequence[Floats]): What they say, each of all tokens.
    leading, others (Floats | None): What the surroundings add to the log-odds of a token's likeliest tag, and to those of its other tags;
        None where only spans look at their surroundings.
    """

    around: Surroundings
    columns: Sequence[Floats]
    leading: Floats | None = None
    others: Floats | None = None


class TokenContext:
    """The step after the maps: logistic regression on the log-odds of a score, of its rival, and on features of the token and its Doc
    (Kuleshov and Liang 2015: recalibration with features).

    features (Sequence[Feature]): What is looked at. when (str): When it is kept, see WHEN.
    shrinkage (float): As many average tokens are added to a Doc before its means are taken.
    known_ (WordCounts): How often forms were met. averages_ (Mapping): See Surroundings. columns_ (tuple[Column, ...]): What the features say.
    models_ (TokenModels | None): None where scores of tokens stay as they are, and only those of spans look at their surroundings.
    RAISES C001: a setting out of range.
    """

    registered = "spacy-calib.Context.v1"

    def __init__(self, features: Sequence[Feature], when: str = "always", shrinkage: float = 10.0):
        if when not in WHEN:
            raise calib_error("C001", name="when", wanted=" or ".join(WHEN), given=repr(when))
        is_number = isinstance(shrinkage, (int, float)) and not isinstance(shrinkage, bool)
        if not (is_number and shrinkage > 0):
            raise calib_error("C001", name="shrinkage", wanted="a number above 0", given=repr(shrinkage))
        if not features:
            raise calib_error("C001", name="features", wanted="one feature at least", given="none")
        self.features = tuple(features)
        self.when = when
        self.shrinkage = float(shrinkage)
        self.known_: WordCounts = no_words()
        self.averages_: Mapping[str, float] = {}
        self.columns_: tuple[Column, ...] = ()
        self.models_: TokenModels | None = None

    @property
    def functions(self) -> tuple[FromDocs, ...]:
        """The users' features among them, which are asked with the Docs."""
        return tuple(feature for feature in self.features if isinstance(feature, FromDocs))

    def clone(self) -> TokenContext:
        """A new one with the same settings, not fitted."""
        return TokenContext(self.features, self.when, self.shrinkage)

    # Applying

    def view(self, words: Words, rows: Ints, scores: Floats) -> View:
        """Look at some tokens. rows (Ints), scores (Floats): Of their entries, as the maps give them; rows ascending.

        RAISES C204: a user's feature says another number of things than at the fit.
        """
        around = Surroundings(words, Entries(rows, scores), self.known_.look_up(words), self.averages_, self.shrinkage)
        said = [feature(around) for feature in self.features]
        for feature, columns in zip(self.features, said, strict=True):
            wanted = sum(column.feature == feature.short for column in self.columns_)
            if len(columns) != wanted:
                raise calib_error("C204", name=feature.registered, wanted=wanted, given=len(columns))
        return self.view_of(around, [column for columns in said for column in columns])

    def view_of(self, around: Surroundings, columns: Sequence[Floats]) -> View:
        """columns (Sequence[Floats]): What the features say of what they look at."""
        if self.models_ is None:
            return View(around, columns)
        leading = self.models_.leading.around([around.rival, *columns])
        return View(around, columns, leading, self.models_.others.around([around.leading, *columns]))

    def calibrate(self, view: View) -> Floats | None:
        """The scores of the entries that the view was made of; None where those of tokens stay as they are."""
        models, entries = self.models_, view.around.entries
        if models is None or view.leading is None or view.others is None:
            return None
        rows = entries.rows
        as_leading = models.leading.slope * entries.log_odds + view.leading[rows]
        as_other = models.others.slope * entries.log_odds + view.others[rows]
        return sigmoid(np.where(entries.leads, as_leading, as_other))

    def calibrate_below(self, view: View, rows: Ints, scores: Floats) -> Floats | None:
        """The same of entries below the threshold. rows (Ints): Token of each. scores (Floats): As the maps give them."""
        if self.models_ is None or view.others is None:
            return None
        return sigmoid(self.models_.others.slope * log_odds(scores, CLIP) + view.others[rows])

    # Saving

    def state(self) -> dict[str, Any]:
        """Name, settings and what was learned: what `load_learned` needs."""
        models = self.models_
        return {
            "@calib_contexts": self.registered,
            "settings": {
                "features": [feature.registered for feature in self.features],
                "when": self.when,
                "shrinkage": self.shrinkage,
            },
            "learned": {
                "columns": [list(column) for column in self.columns_],
                "known": self.known_.state(),
                "averages": dict(self.averages_),
                "models": None if models is None else {name: getattr(models, name).state() for name in ("leading", "others")},
            },
        }

    def load_learned(self, learned: dict[str, Any]) -> TokenContext:
        """Take over the learned part of a saved state. RAISES Misfit: it is not of the form declared."""
        held = _LEARNED(learned, "learned")
        if set(held["averages"]) != set(AVERAGED):
            raise Misfit("learned.averages", f"of {', '.join(AVERAGED)}")
        self.columns_ = tuple(Column(*one) for one in held["columns"])
        self.known_ = WordCounts.from_state(held["known"])
        self.averages_ = held["averages"]
        if held["models"] is not None:
            self.models_ = TokenModels(**{name: RidgeModel.from_state(one) for name, one in held["models"].items()})
        return self
