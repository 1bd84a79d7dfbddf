"""Scores of tokens and of entities that look at words and at what surrounds them. Knows arrays, never Docs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..calibration.conventions import Shrinkage, check_shrink
from ..calibration.recalibrators.logistic import log_odds
from ..calibration.spans import SpanRecalibrator, firsts_of
from ..calibration.steps import Predictions
from ..errors import calib_error
from ..schema import Misfit, Saved, floats, kept, lengths, listed, maybe, record, several, text, whole, wholes
from ..types import Floats, Groups, Ints, Spans
from .blocks import Block, View, blocks_of
from .log_linear import LogLinear
from .ridge import RidgeModel
from .surroundings import Feature, FromDocs, Surroundings
from .words import KnownWords, Words, no_words

# When context is kept: always, or where held-out documents lose no more with it than without.
WHEN = ("always", "no_worse")

_LEARNED = record(
    {
        "columns": listed(listed(text, 2, 2)),
        "centers": floats(),
        "scales": floats(1e-12),
        "known": KnownWords.read,
        "n_tags": whole(),
        "line": maybe(floats()),
        "model": maybe(LogLinear.read),
    },
    lambda held: lengths(dict.fromkeys(("centers", "scales"), len(held["columns"])), held),
)


class TokenContext:
    """The log-linear model that looks at the word: log-odds of the score and of its rival, tag beside rival, ending,
    form and shape, the tags beside it, and features (recalibration with features: Kuleshov and Liang 2015).

    features (Sequence[Feature]): What else is looked at. functions (tuple[FromDocs, ...]): Those of Docs among them.
    when (str): When it is kept, of WHEN. shrink (float): How far its scores shrink, after the maps, towards a line through
        the raw log-odds: from 0 (not at all) to 1 (all the way).
    columns_ (tuple): (name of the feature, what it says) of each column. centers_, scales_ (Floats): Their mean
        and deviation. known_ (KnownWords): Forms and endings with weights. n_tags_ (int): Columns of the fit.
    model_ (LogLinear | None): None where only scores of spans are moved. line_ (Floats | None): Slope and constant of the
        line, see `fit_line`; None where scores do not shrink.
    RAISES C001: a setting out of range.
    """

    registered = "spacy-calib.Context.v1"

    def __init__(self, features: Sequence[Feature], when: str = "always", shrink: float = 0.0):
        if when not in WHEN:
            raise calib_error("C001", name="when", wanted=" or ".join(WHEN), given=repr(when))
        self.features = tuple(features)
        self.functions = tuple(feature for feature in self.features if isinstance(feature, FromDocs))
        self.when = when
        self.shrink = check_shrink(shrink)
        self.columns_: tuple[tuple[str, str], ...] = ()
        self.centers_ = np.zeros(0)
        self.scales_ = np.ones(0)
        self.known_: KnownWords = no_words()
        self.n_tags_ = 0
        self.model_: LogLinear | None = None
        self.line_: Floats | None = None

    def clone(self) -> TokenContext:
        """A context with the same settings, not fitted."""
        return TokenContext(self.features, self.when, self.shrink)

    @property
    def shrinkage(self) -> Shrinkage | None:
        """The step after the maps; None where scores do not shrink."""
        return None if self.line_ is None else Shrinkage(self.shrink, self.line_)

    # Applying

    def view(self, words: Words, rows: Ints, tags: Ints, scores: Floats) -> View:
        """Look at some tokens. rows, tags (Ints), scores (Floats): Of all their entries, before the model moves them.

        RAISES C204: a feature gives another number of columns than at the fit.
        """
        around = Surroundings(rows, tags, scores, len(words.forms), words)
        said = [feature(around) for feature in self.features]
        widths = Counter(map(itemgetter(0), self.columns_))
        for feature, found in zip(self.features, said, strict=True):
            if len(found) != widths[feature.name]:
                raise calib_error("C204", name=feature.name, wanted=widths[feature.name], given=len(found))
        return self.seen(around, said)

    def seen(self, around: Surroundings, said: Sequence[Sequence[Floats]]) -> View:
        """What each feature said of some tokens, in units of the fit, and the places of their words."""
        columns = np.array([*chain.from_iterable(said)]).reshape(len(self.centers_), len(around.first_tag))
        standardized = (columns - self.centers_[:, None]) / self.scales_[:, None]
        forms = endings = np.full(len(around.first_tag), -1, dtype=np.intp)
        if around.words is not None:
            forms, endings = self.known_.places(around.words)
        return View(around, standardized, self.known_, forms, endings, around.scores)

    def blocks(self, view: View, rows: Ints, tags: Ints, own: Floats, leads: NDArray[np.bool_]) -> list[Block]:
        """What the model sees of pairs of the tokens of a view, see `blocks_of`."""
        return blocks_of(view, rows, tags, own, leads, self.n_tags_)

    def apply(self, given: Predictions) -> Predictions:
        """Move all entries; features look only at those above the threshold. Without a model only the view is new."""
        kept = given.kept
        view = self.view(given.words, given.rows[kept], given.tags[kept], given.scores[kept])
        if self.model_ is None:
            return given.having(view=view)
        own, leads = view.around.log_odds, view.around.leads
        if len(kept) < len(given.rows):
            own, leads = log_odds(given.scores), np.zeros(len(given.rows), dtype=bool)
            leads[kept] = view.around.leads
        scores = self.model_.predict(own, self.blocks(view, given.rows, given.tags, own, leads))
        return given.having(scores=scores, view=replace(view, moved=scores[kept]))

    # Saving

    def state(self) -> dict[str, Any]:
        """Name, settings and what was learned."""
        return {
            "@calib_contexts": self.registered,
            "settings": {
                "features": [feature.name for feature in self.features],
                "when": self.when,
                "shrink": self.shrink,
            },
            "learned": {
                "columns": [list(column) for column in self.columns_],
                "centers": self.centers_,
                "scales": self.scales_,
                "known": self.known_.state(),
                "n_tags": self.n_tags_,
                "line": self.line_,
                "model": None if self.model_ is None else self.model_.state(),
            },
        }

    def load_learned(self, learned: dict[str, Any]) -> TokenContext:
        """Take over what was learned, from a state. RAISES Misfit: it is not of the form declared."""
        held = _LEARNED(learned, "learned")
        names = {feature.name for feature in self.features}
        if not {name for name, _ in held["columns"]} <= names:
            raise Misfit("learned.columns", "of the features in the settings")
        self.columns_ = tuple((feature, what) for feature, what in held["columns"])
        self.centers_, self.scales_ = held["centers"], held["scales"]
        self.n_tags_, self.known_ = held["n_tags"], held["known"]
        self.model_, self.line_ = held["model"], held["line"]
        size = 2 if self.shrink and self.model_ is not None else None
        if size != (None if self.line_ is None else len(self.line_)):
            raise Misfit("learned.line", "two numbers where scores shrink, else none")
        if self.model_ is not None:
            # Blocks of no pairs say how large they are.
            none, scores = np.zeros(0, dtype=np.intp), np.zeros(0)
            around = Surroundings(none, none, scores, 0, Words.joined([]))
            view = self.seen(around, [[scores for _ in self.columns_]])
            self.model_.check(self.blocks(view, none, none, scores, np.zeros(0, dtype=bool)))
        return self


# What a fit calls the context that they are.
FURTHER = "further scores"
_FURTHER = record({"names": several(text), "model": SpanRecalibrator.read})


class FurtherScores:
    """In place of a context, for documents: looks at further scores of each, which stand among the hints of its source.

    What is looked at as spans are, by the map of spans, is the label that is the likeliest by raw scores, and the others share what that leaves as they did.
    names_ (tuple[str, ...]): Of the scores. model_ (SpanRecalibrator | None): The map; None where it was not fitted.
    """

    registered = "spacy-calib.FurtherScores.v1"
    functions: tuple[FromDocs, ...] = ()
    when = "always"  # a fit keeps them where they help
    shrinkage = None

    def __init__(self) -> None:
        self.names_: tuple[str, ...] = ()
        self.model_: SpanRecalibrator | None = None

    @property
    def n_labels(self) -> int:
        """To how many it was fitted."""
        return 0 if self.model_ is None else len(self.model_.groups.of_tag)

    def spans(self, words: Words, rows: Ints, tags: Ints, scores: Floats) -> Spans:
        """One label of each of some documents, as spans of one token. rows, tags (Ints), scores (Floats): Document, label and score."""
        beside = np.array([words.hints[name][rows] for name in self.names_]).reshape(len(self.names_), len(rows))
        return Spans(rows, rows + 1, tags, scores, scores, np.ones(len(rows), dtype=np.bool_), beside.T)

    def apply(self, given: Predictions) -> Predictions:
        """Move the likeliest label of each document that has one above the threshold, and the others with it."""
        if self.model_ is None:
            return given
        leads = np.flatnonzero(given.leads)
        return given.having(scores=self.moved(given.rows, given.tags, given.scores, leads, given.words))

    def moved(self, rows: Ints, tags: Ints, scores: Floats, leads: Ints, words: Words) -> Floats:
        """The scores of n labels where the map has moved some, by their index (leads)."""
        assert self.model_ is not None
        spans = self.spans(words, rows[leads], tags[leads], scores[leads])
        return with_leads(rows, scores, leads, self.model_.predict(spans, spans.own))

    def state(self) -> dict[str, Any]:
        model = None if self.model_ is None else self.model_.state()
        return {"@calib_contexts": self.registered, "settings": {}, "learned": {"names": list(self.names_), "model": model}}

    def load_learned(self, learned: dict[str, Any]) -> FurtherScores:
        """Take over what was learned, from a state. RAISES Misfit: it is not of the form declared."""
        held = _FURTHER(learned, "learned")
        if held["model"].n_beside_ != len(held["names"]):
            raise Misfit("learned.model", f"one that looks at {len(held['names'])} further scores")
        self.names_, self.model_ = held["names"], held["model"]
        return self


def with_leads(rows: Ints, scores: Floats, leads: Ints, moved: Floats) -> Floats:
    """The scores of n labels, where some (leads) become others (moved), and those beside them share the rest in the same proportions.

    rows (Ints): Document of each, ascending. leads (Ints): One of a document at most.
    """
    n = int(rows.max(initial=-1)) + 1
    share = np.ones(n)
    share[rows[leads]] = (1.0 - moved) / np.maximum(1.0 - scores[leads], CLIP)
    found = np.minimum(scores * share[rows], 1.0)
    found[leads] = moved
    return found


# Scores are clipped to this distance from 0 and 1 before their log-odds are taken.
CLIP = 1e-4
# What is looked at besides the features of the tokens and the group of the label.
_OF_SPANS = (
    "entropy of its tokens' scores",
    "forms that are not known",
    "its length",
    "the least score of its tokens",
    "the product of its tokens' scores",
    "the mean score of its tokens",
)


@dataclass(frozen=True, eq=False)
class TagsOfSpans(Saved):
    """Which labels of tokens are those of a label of spans: they have the same number, and -1 stands for none.

    tags, labels (Ints): The number of each label of tokens, and of each label of spans.
    """

    tags: Ints = kept(wholes(-1))
    labels: Ints = kept(wholes(-1))

    @classmethod
    def agree(cls, held: dict[str, Any]) -> str:
        tags, labels = held["tags"].max(initial=-1), held["labels"].max(initial=-1)
        return f"a label of tokens has the number {tags}, those of spans go up to {labels}" if tags > labels else ""

    @classmethod
    def of(cls, tags: Sequence[str], prefixed: bool, labels: Sequence[str]) -> TagsOfSpans:
        """prefixed (bool): Whether labels of tokens begin with B-, I-, L- or U-. labels (Sequence[str]): Of spans, as
        tokens have them; a single one without a name (of sentences) has all labels of tokens.
        """
        if tuple(labels) == ("",):
            return cls(np.zeros(len(tags), dtype=np.intp), np.zeros(1, dtype=np.intp))
        number = {label: place for place, label in enumerate(labels)}
        of_tags = [number.get(tag[2:] if prefixed else tag, -1) for tag in tags]
        return cls(np.array(of_tags, dtype=np.intp), np.array([number[label] for label in labels], dtype=np.intp))

    def scores(self, view: View, tokens: Ints, labels: Ints) -> Floats:
        """What the context gives a label of spans at a token, the sum over its tags; 1 where nothing is known of it.

        tokens, labels (Ints): Of n scores.
        """
        around, n_tokens = view.around, len(view.around.first_tag)
        of_tags, of_labels = (np.append(held, -1) for held in (self.tags, self.labels))
        wanted = of_labels[np.minimum(labels, len(self.labels))]
        inside = np.zeros(n_tokens, dtype=np.intp)
        inside[tokens] = 1
        row, size = np.cumsum(inside) - 1, 1 + int(of_labels.max())
        number = of_tags[np.minimum(around.tags, len(self.tags))]
        own = np.flatnonzero((number >= 0) & (inside[around.rows] > 0))
        table = np.bincount(row[around.rows[own]] * size + number[own], view.moved[own], size * int(inside.sum()))
        unknown = (around.first_tag[tokens] < 0) | (wanted < 0)
        return np.where(unknown, 1.0, np.minimum(table[row[tokens] * size + wanted], 1.0))


@dataclass(frozen=True, eq=False)
class SpanContext(Saved):
    """The step after the map of entities: logistic regression on the log-odds of the score and on what surrounds it.

    That is the mean of the tokens' features, how many forms are not known, the length, the group of the label, and what
    the context makes of the label's scores at the tokens: the least, their product and their mean.
    groups (Groups): Of the labels. tags (TagsOfSpans): Theirs. columns (tuple[str, ...]): What each feature says.
    model (RidgeModel): Fitted.
    """

    groups: Groups = kept(Groups.read)
    tags: TagsOfSpans = kept(TagsOfSpans.read)
    columns: tuple[str, ...] = kept(several(text))
    model: RidgeModel = kept(RidgeModel.read)

    @classmethod
    def agree(cls, held: dict[str, Any]) -> str:
        wanted = {"weights": len(held["columns"]), "labels": len(held["groups"].of_tag)}
        return lengths(wanted, {"weights": held["model"].weights, "labels": held["tags"].labels})

    def apply(self, given: Predictions) -> Predictions:
        """Move the scores of the spans on the Docs."""
        kept = given.kept
        if given.spans is None or not len(kept):
            return given
        columns = span_columns(given.view, given.spans.take(kept), self.groups, self.tags)
        scores = given.scores.copy()
        scores[kept] = self.model.predict(log_odds(scores[kept], CLIP), self.model.around(columns))
        return given.having(scores=scores)


def span_columns(view: View, spans: Spans, groups: Groups, tags: TagsOfSpans) -> list[Floats]:
    """The features of n spans. view (View): Of all tokens of their Docs. tags (TagsOfSpans): Of the spans' labels."""
    lengths = spans.ends - spans.starts
    firsts = firsts_of(spans)
    tokens = np.repeat(spans.starts - firsts, lengths) + np.arange(lengths.sum())
    of_tokens = [*view.columns, view.around.entropy, view.unknown.astype(np.float64)]
    means = [np.add.reduceat(column[tokens], firsts) / lengths for column in of_tokens]
    scores = tags.scores(view, tokens, np.repeat(spans.labels, lengths))
    of_scores = (
        np.minimum.reduceat(scores, firsts),
        np.multiply.reduceat(scores, firsts),
        np.add.reduceat(scores, firsts) / lengths,
    )
    own = groups.of(spans.labels)
    members = ((own == group).astype(np.float64) for group in range(len(groups)))
    return [*means, np.log(lengths), *(log_odds(column, CLIP) for column in of_scores), *members]


def named_columns(of_tokens: Sequence[str], groups: Groups) -> list[str]:
    """What the columns of `span_columns` say. of_tokens (Sequence[str]): What the features of tokens say."""
    return [*of_tokens, *_OF_SPANS, *(f"a label of group {name}" for name in groups.names)]
