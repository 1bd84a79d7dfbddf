"""Steps that adjust scores of tokens, entities and documents by the words and the scores around them. Knows arrays, never Docs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calibration.recalibrators.logistic import log_odds
from ..calibration.spans import SpanRecalibrator, firsts_of
from ..calibration.steps import Predictions
from ..errors import calib_error
from ..schema import Misfit, Saved, floats, kept, lengths, listed, maybe, record, several, text, whole, wholes
from ..types import Floats, Groups, Ints, Spans
from .blocks import Block, View, blocks_for, pair_inputs
from .features import Feature, FromDocs, TokenScores
from .log_linear import LogLinear
from .ridge import RidgeModel
from .words import KnownWords, Words

if TYPE_CHECKING:
    from ..calibration.conventions import Shrinkage

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
    lambda fields: lengths(dict.fromkeys(("centers", "scales"), len(fields["columns"])), fields),
)


class TokenContext:
    """The log-linear model that looks at the word: log-odds of the score and of its rival, tag and rival, ending,
    form and shape, the tags before and after, and features (recalibration with features: Kuleshov and Liang 2015).

    features (Sequence[Feature]): Other inputs. functions (tuple[FromDocs, ...]): Those of Docs among them.
    when (str): When it is kept, of WHEN. shrink (float): How far its scores shrink, after the maps, towards a line through
        the raw log-odds: from 0 (not at all) to 1 (all the way).
    columns_ (tuple): (name of the feature, meaning) of each column. centers_, scales_ (Floats): Their mean
        and deviation. known_ (KnownWords): Forms and endings with weights. n_tags_ (int): Columns of the fit.
    model_ (LogLinear | None): None where only scores of spans are adjusted. line_ (Floats | None): Slope and constant of the
        line, see `fit_line`; None where scores do not shrink.
    RAISES C001: a setting out of range.
    """

    registered = "spacy-calib.Context.v1"

    def __init__(self, features: Sequence[Feature], when: str = "always", shrink: float = 0.0):
        if when not in WHEN:
            raise calib_error("C001", name="when", wanted=" or ".join(WHEN), given=repr(when))
        if isinstance(shrink, bool) or not isinstance(shrink, (int, float)) or not 0 <= shrink <= 1:
            raise calib_error("C001", name="shrink", wanted="a number from 0 to 1", given=repr(shrink))
        self.features = tuple(features)
        self.functions = tuple(feature for feature in self.features if isinstance(feature, FromDocs))
        self.when = when
        self.shrink = float(shrink)
        self.columns_: tuple[tuple[str, str], ...] = ()
        self.centers_ = np.zeros(0)
        self.scales_ = np.ones(0)
        self.known_ = KnownWords()
        self.n_tags_ = 0
        self.model_: LogLinear | None = None
        self.line_: Floats | None = None

    def clone(self) -> TokenContext:
        """A context with the same settings, not fitted."""
        return TokenContext(self.features, self.when, self.shrink)

    @property
    def shrinkage(self) -> Shrinkage | None:
        """The step after the maps; None where scores do not shrink."""
        from ..calibration.conventions import Shrinkage  # few pipes shrink

        return None if self.line_ is None else Shrinkage(self.shrink, self.line_)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks of the model."""
        return blocks_for(self.n_tags_, len(self.known_.forms), len(self.known_.endings), len(self.columns_))

    # Applying

    def standardized(self, values: Sequence[Sequence[Floats]], n_tokens: int) -> Floats:
        """The values that each feature gave for n tokens, in units of the fit, shape (k, n).

        RAISES C204: a feature gives another number of columns than at the fit.
        """
        columns = [*chain.from_iterable(values)]
        if len(columns) != len(self.columns_) or self.functions:
            for feature, columns_of_feature in zip(self.features, values, strict=True):
                expected = sum(name == feature.name for name, _ in self.columns_)
                if len(columns_of_feature) != expected:
                    raise calib_error("C204", name=feature.name, wanted=expected, given=len(columns_of_feature))
        return (np.array(columns).reshape(len(columns), n_tokens) - self.centers_[:, None]) / self.scales_[:, None]

    def apply(self, predictions: Predictions) -> Predictions:
        """Adjust all entries; features look only at those above the threshold. Without a model only the view is new."""
        words, is_kept = predictions.words, None if predictions.levels is None else predictions.is_kept
        entries = predictions if is_kept is None else predictions.take(is_kept.nonzero()[0])
        tokens = TokenScores(entries.rows, entries.tags, entries.scores, words)
        columns = self.standardized([feature(tokens) for feature in self.features], len(words.forms))
        places = self.known_.places(words)
        if self.model_ is None:
            return predictions.replace_unchecked(view=View(tokens, columns, places[0], tokens.scores))
        odds, is_top = tokens.log_odds, tokens.is_top
        if is_kept is not None:
            odds, is_top = log_odds(predictions.scores), np.zeros(len(predictions.rows), dtype=bool)
            is_top[is_kept] = tokens.is_top
        pairs = (predictions.rows, predictions.tags, odds, is_top)
        scores = self.model_.predict(odds, pair_inputs(self.blocks, tokens, places, columns, pairs, self.n_tags_))
        return predictions.replace_unchecked(
            scores=scores, view=View(tokens, columns, places[0], scores if is_kept is None else scores[is_kept])
        )

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
        fields = _LEARNED(learned, "learned")
        names = {feature.name for feature in self.features}
        if not {name for name, _ in fields["columns"]} <= names:
            raise Misfit("learned.columns", "of the features in the settings")
        self.columns_ = tuple((feature, meaning) for feature, meaning in fields["columns"])
        self.centers_, self.scales_ = fields["centers"], fields["scales"]
        self.n_tags_, self.known_ = fields["n_tags"], fields["known"]
        self.model_, self.line_ = fields["model"], fields["line"]
        size = 2 if self.shrink and self.model_ is not None else None
        if size != (None if self.line_ is None else len(self.line_)):
            raise Misfit("learned.line", "two numbers where scores shrink, else none")
        if self.model_ is not None:
            self.model_.check(self.blocks)
        return self


# The name of this context in a fit.
FURTHER = "further scores"
_FURTHER = record({"names": several(text), "model": SpanRecalibrator.read})


class FurtherScores:
    """In place of a context, for documents: looks at further scores of each, which are hints of its source.

    The map of spans adjusts the label that is the top one by raw scores; the other labels share the rest in the same proportions.
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
        """The number of labels of the fit."""
        return 0 if self.model_ is None else len(self.model_.groups.of_tag)

    def spans(self, words: Words, rows: Ints, tags: Ints, scores: Floats) -> Spans:
        """One label of each of some documents, as spans of one token. rows, tags (Ints), scores (Floats): Document, label and score."""
        extra = np.array([words.hints[name][rows] for name in self.names_]).reshape(len(self.names_), len(rows))
        return Spans(rows, rows + 1, tags, scores, scores, np.ones(len(rows), dtype=np.bool_), extra.T)

    def apply(self, predictions: Predictions) -> Predictions:
        """Adjust the top label of each document that has one above the threshold, and the others with it."""
        if self.model_ is None:
            return predictions
        top = np.flatnonzero(predictions.is_top)
        return predictions.replace_unchecked(
            scores=self.adjust(predictions.rows, predictions.tags, predictions.scores, top, predictions.words)
        )

    def adjust(self, rows: Ints, tags: Ints, scores: Floats, top: Ints, words: Words) -> Floats:
        """The scores of n labels after the map. top (Ints): The indices of those that it adjusts."""
        assert self.model_ is not None
        spans = self.spans(words, rows[top], tags[top], scores[top])
        return replace_top(rows, scores, top, self.model_.predict(spans, spans.own))

    def state(self) -> dict[str, Any]:
        model = None if self.model_ is None else self.model_.state()
        return {"@calib_contexts": self.registered, "settings": {}, "learned": {"names": list(self.names_), "model": model}}

    def load_learned(self, learned: dict[str, Any]) -> FurtherScores:
        """Take over what was learned, from a state. RAISES Misfit: it is not of the form declared."""
        fields = _FURTHER(learned, "learned")
        if fields["model"].n_beside_ != len(fields["names"]):
            raise Misfit("learned.model", f"one that looks at {len(fields['names'])} further scores")
        self.names_, self.model_ = fields["names"], fields["model"]
        return self


def replace_top(rows: Ints, scores: Floats, top: Ints, new_scores: Floats) -> Floats:
    """The scores of n labels with new ones for the top labels; the others of their documents share the rest in the same proportions.

    rows (Ints): Document of each, ascending. top (Ints): At most one label of a document. new_scores (Floats): Theirs.
    """
    n = int(rows.max(initial=-1)) + 1
    share = np.ones(n)
    share[rows[top]] = (1.0 - new_scores) / np.maximum(1.0 - scores[top], CLIP)
    result = np.minimum(scores * share[rows], 1.0)
    result[top] = new_scores
    return result


# Scores are clipped to this distance from 0 and 1 before their log-odds are taken.
CLIP = 1e-4
# Inputs other than the features of the tokens and the group of the label.
_SPAN_INPUTS = (
    "entropy of its tokens' scores",
    "forms that are not known",
    "its length",
    "the least score of its tokens",
    "the product of its tokens' scores",
    "the mean score of its tokens",
)


@dataclass(frozen=True, eq=False)
class TagsOfSpans(Saved):
    """Which labels of tokens belong to a label of spans: they have the same number; -1 stands for none.

    tags, labels (Ints): The number of each label of tokens, and of each label of spans.
    """

    tags: Ints = kept(wholes(-1))
    labels: Ints = kept(wholes(-1))

    @classmethod
    def agree(cls, fields: dict[str, Any]) -> str:
        tags, labels = fields["tags"].max(initial=-1), fields["labels"].max(initial=-1)
        return f"a label of tokens has the number {tags}, those of spans go up to {labels}" if tags > labels else ""

    @classmethod
    def from_labels(cls, tags: Sequence[str], prefixed: bool, labels: Sequence[str]) -> TagsOfSpans:
        """prefixed (bool): Whether labels of tokens begin with B-, I-, L- or U-. labels (Sequence[str]): Of spans, as
        tokens have them; a single one without a name (of sentences) has all labels of tokens.
        """
        if tuple(labels) == ("",):
            return cls(np.zeros(len(tags), dtype=np.intp), np.zeros(1, dtype=np.intp))
        number = {label: place for place, label in enumerate(labels)}
        of_tags = [number.get(tag[2:] if prefixed else tag, -1) for tag in tags]
        return cls(np.array(of_tags, dtype=np.intp), np.array([number[label] for label in labels], dtype=np.intp))

    def scores(self, view: View, tokens: Ints, labels: Ints) -> Floats:
        """The score of a label of spans at a token after the context, the sum over its tags; 1 where it is not known.

        tokens, labels (Ints): Of n scores.
        """
        entries, n_tokens = view.tokens, len(view.forms)
        tag_numbers, label_numbers = np.append(self.tags, -1), np.append(self.labels, -1)
        numbers = label_numbers[np.minimum(labels, len(self.labels))]
        in_spans = np.zeros(n_tokens, dtype=np.intp)
        in_spans[tokens] = 1
        row, size = np.cumsum(in_spans) - 1, 1 + int(label_numbers.max())
        number = tag_numbers[np.minimum(entries.tags, len(self.tags))]
        index = np.flatnonzero((number >= 0) & (in_spans[entries.rows] > 0))
        cells = row[entries.rows[index]] * size + number[index]
        table = np.bincount(cells, view.adjusted[index], size * int(in_spans.sum()))
        unknown = (entries.top_tags[0, tokens] < 0) | (numbers < 0)
        return np.where(unknown, 1.0, np.minimum(table[row[tokens] * size + numbers], 1.0))


@dataclass(frozen=True, eq=False)
class SpanContext(Saved):
    """The step after the map of entities: logistic regression on the log-odds of the score and on the tokens.

    Inputs: the mean of the tokens' features, how many forms are unknown, the length, the group of the label, and the
    minimum, product and mean of the label's scores at the tokens after the context.
    groups (Groups): Of the labels. tags (TagsOfSpans): Theirs. columns (tuple[str, ...]): The meaning of each feature.
    model (RidgeModel): Fitted.
    """

    groups: Groups = kept(Groups.read)
    tags: TagsOfSpans = kept(TagsOfSpans.read)
    columns: tuple[str, ...] = kept(several(text))
    model: RidgeModel = kept(RidgeModel.read)

    @classmethod
    def agree(cls, fields: dict[str, Any]) -> str:
        expected = {"weights": len(fields["columns"]), "labels": len(fields["groups"].of_tag)}
        return lengths(expected, {"weights": fields["model"].weights, "labels": fields["tags"].labels})

    def apply(self, predictions: Predictions) -> Predictions:
        """Adjust the scores of the spans on the Docs."""
        index = predictions.kept_indices
        if predictions.spans is None or not len(index):
            return predictions
        columns = span_columns(predictions.view, predictions.spans.take(index), self.groups, self.tags)
        scores = predictions.scores.copy()
        scores[index] = self.model.predict(log_odds(scores[index], CLIP), self.model.margins(columns))
        return predictions.replace_unchecked(scores=scores)


def span_columns(view: View, spans: Spans, groups: Groups, tags: TagsOfSpans) -> list[Floats]:
    """The features of n spans. view (View): Of all tokens of their Docs. tags (TagsOfSpans): Of the spans' labels."""
    lengths = spans.ends - spans.starts
    firsts = firsts_of(spans)
    tokens = np.repeat(spans.starts - firsts, lengths) + np.arange(lengths.sum())
    token_columns = [*view.columns, view.tokens.entropy, (view.forms < 0).astype(np.float64)]
    means = [np.add.reduceat(column[tokens], firsts) / lengths for column in token_columns]
    scores = tags.scores(view, tokens, np.repeat(spans.labels, lengths))
    summaries = (
        np.minimum.reduceat(scores, firsts),
        np.multiply.reduceat(scores, firsts),
        np.add.reduceat(scores, firsts) / lengths,
    )
    group_numbers = groups.of(spans.labels)
    members = ((group_numbers == group).astype(np.float64) for group in range(len(groups)))
    return [*means, np.log(lengths), *(log_odds(column, CLIP) for column in summaries), *members]


def named_columns(token_columns: Sequence[str], groups: Groups) -> list[str]:
    """The meaning of the columns of `span_columns`. token_columns (Sequence[str]): Meaning of the features of tokens."""
    return [*token_columns, *_SPAN_INPUTS, *(f"a label of group {name}" for name in groups.names)]
