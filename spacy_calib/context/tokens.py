"""Steps that adjust the scores of tokens, entities and documents by their context: words and other scores. For arrays only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calibration.solvers import log_odds
from ..calibration.spans import SpanRecalibrator, firsts_of
from ..calibration.steps import Predictions
from ..errors import calib_error
from ..schema import (
    InvalidState,
    Serializable,
    floats,
    lengths,
    list_of,
    maybe,
    record,
    saved_field,
    text,
    tuple_of,
    whole,
    wholes,
)
from ..types import Floats, Groups, Ints, Spans
from .blocks import TokenView, WeightBlock, blocks_for, pair_inputs
from .features import FEATURES, DocFunction, Feature, TokenScores
from .log_linear import LogLinear
from .ridge import RidgeModel
from .words import KnownWords, Words

if TYPE_CHECKING:
    from ..calibration.conventions import Shrinkage

# When a fitted context is used: always, or only if the log loss on held-out documents is no higher with it.
WHEN = ("always", "no_worse")

_CONTEXT_STATE = record(
    {
        "columns": list_of(list_of(text, 2, 2)), "centers": floats(), "scales": floats(1e-12), "known": KnownWords.read,
        "n_tags": whole(), "line": maybe(floats()), "model": maybe(LogLinear.read),
    },
    lambda fields: lengths(dict.fromkeys(("centers", "scales"), len(fields["columns"])), fields),
)  # fmt: skip


class TokenContext:
    """A log-linear model that adjusts the score of a (token, tag) pair by the context of the token.

    Its inputs are the log-odds of the score and of its rival (the best other tag), both tags, the ending, form and shape,
    the previous and the next tag, and features (recalibration with features: Kuleshov and Liang 2015).
    features (Sequence[Feature]): Further inputs. when (str): Use the fitted context "always", or only if it is "no_worse": if
        the log loss on held-out documents is no higher. shrink (float): How far recalibrated scores move, in log-odds, towards
        slope * raw log-odds + constant, from 0 (not at all) to 1 (all the way). line_ (Floats | None): (slope, constant) once
        fitted, if shrink is above 0.
    columns_ (tuple): (name of the feature, description) of each feature column. centers_, scales_ (Floats): Mean and deviation
        of each column. vocabulary_ (KnownWords): Forms and endings with weights. n_tags_ (int): Number of tags in the fit.
    model_ (LogLinear | None): The model; None if only scores of spans are adjusted. RAISES C001: a setting out of range.
    """

    registered = "spacy-calib.Context.v1"
    functions: tuple[DocFunction, ...] = ()  # it reads only words and scores

    def __init__(self, features: Sequence[Feature], when: str = "always", shrink: float = 0.0):
        if when not in WHEN:
            raise calib_error("C001", name="when", wanted=" or ".join(WHEN), given=repr(when))
        if isinstance(shrink, bool) or not isinstance(shrink, (int, float)) or not 0 <= shrink <= 1:
            raise calib_error("C001", name="shrink", wanted="a number from 0 to 1", given=repr(shrink))
        self.features, self.when, self.shrink = tuple(features), when, float(shrink)
        self.columns_: tuple[tuple[str, str], ...] = ()
        self.centers_ = np.zeros(0)
        self.scales_ = np.ones(0)
        self.vocabulary_ = KnownWords()
        self.n_tags_ = 0
        self.model_: LogLinear | None = None
        self.line_: Floats | None = None

    def clone(self) -> TokenContext:
        return TokenContext(self.features, self.when, self.shrink)

    @property
    def shrinkage(self) -> Shrinkage | None:
        """The step that shrinks scores after the recalibrators; None if they do not shrink."""
        if self.line_ is None:
            return None
        from ..calibration.conventions import Shrinkage  # few pipes shrink

        return Shrinkage(self.shrink, self.line_)

    @property
    def blocks(self) -> tuple[WeightBlock, ...]:
        """The blocks of weights of the model, for the tags, vocabulary and features of the fit."""
        return blocks_for(self.n_tags_, len(self.vocabulary_.forms), len(self.vocabulary_.endings), len(self.columns_))

    def standardize(self, values: Sequence[Sequence[Floats]], n_tokens: int) -> Floats:
        """Return all k columns, standardized as in the fit, (k, n_tokens). RAISES C204: the fit had more or fewer columns.

        values (Sequence): For each feature its columns, each of shape (n_tokens,).
        """
        columns = [*chain.from_iterable(values)]
        if len(columns) != len(self.columns_):  # find the feature with too few or too many
            for feature, feature_columns in zip(self.features, values, strict=True):
                expected = sum(name == feature.name for name, _ in self.columns_)
                if len(feature_columns) != expected:
                    raise calib_error("C204", name=feature.name, wanted=expected, given=len(feature_columns))
        return (np.array(columns).reshape(len(columns), n_tokens) - self.centers_[:, None]) / self.scales_[:, None]

    def apply(self, predictions: Predictions) -> Predictions:
        """Adjust all scores if there is a model. In any case set `view`, which a context of entities needs."""
        words = predictions.words
        above = None if predictions.levels is None else predictions.kept_indices  # above the threshold; None: all are
        predictions_above = predictions if above is None else predictions.take(above)  # features depend on these only
        tokens = TokenScores(predictions_above.rows, predictions_above.tags, predictions_above.scores, words)
        columns = self.standardize([feature(tokens) for feature in self.features], len(words.forms))
        word_indices = self.vocabulary_.find_indices(words)
        if self.model_ is None:
            return predictions.replace_unchecked(view=TokenView(tokens, columns, word_indices[0], tokens.scores))
        pair_log_odds, is_top = tokens.log_odds, tokens.is_top
        if above is not None:  # `tokens` lacks the predictions below the threshold; none of them counts as a top one
            pair_log_odds, is_top = log_odds(predictions.scores), np.zeros(len(predictions), dtype=bool)
            is_top[above] = tokens.is_top
        pairs = (predictions.rows, predictions.tags, pair_log_odds, is_top)
        inputs = pair_inputs(self.blocks, tokens, word_indices, columns, pairs, self.n_tags_)
        scores = self.model_.predict(pair_log_odds, inputs)
        view = TokenView(tokens, columns, word_indices[0], scores if above is None else scores[above])
        return predictions.replace_unchecked(scores=scores, view=view)

    def state(self) -> dict[str, Any]:
        return {
            "@calib_contexts": self.registered,
            "settings": {"features": [feature.name for feature in self.features], "when": self.when, "shrink": self.shrink},
            "learned": {
                "columns": [list(column) for column in self.columns_], "centers": self.centers_, "scales": self.scales_,
                "known": self.vocabulary_.state(), "n_tags": self.n_tags_, "line": self.line_,
                "model": None if self.model_ is None else self.model_.state(),
            },
        }  # fmt: skip

    def load_learned(self, state: dict[str, Any]) -> TokenContext:
        """Set the learned parameters from a state; return this context. RAISES InvalidState: they lack the declared form."""
        fields = _CONTEXT_STATE(state, "learned")
        if not {name for name, _ in fields["columns"]} <= {feature.name for feature in self.features}:
            raise InvalidState("learned.columns", "of the features in the settings")
        self.columns_ = tuple((name, description) for name, description in fields["columns"])
        self.centers_, self.scales_ = fields["centers"], fields["scales"]
        self.n_tags_, self.vocabulary_ = fields["n_tags"], fields["known"]
        self.model_, self.line_ = fields["model"], fields["line"]
        line_length = None if self.line_ is None else len(self.line_)
        expected_length = 2 if self.shrink and self.model_ is not None else None
        if line_length != expected_length:
            raise InvalidState("learned.line", "two numbers where scores shrink, else none")
        if self.model_ is not None:
            self.model_.check(self.blocks)
        return self


FURTHER_SCORES = "further scores"  # name of this context in the summary of a fit
_FURTHER_STATE = record({"names": tuple_of(text), "model": SpanRecalibrator.read})


class FurtherScores:
    """A context for sources that label documents: it adjusts the score of the label of highest raw score by further scores.

    names_ (tuple[str, ...]): Names of the further scores (other scores that the source has of a document), which are features
        of the recalibrator. model_ (SpanRecalibrator | None): The recalibrator; None before the fit.
    """

    registered = "spacy-calib.FurtherScores.v1"
    functions: tuple[DocFunction, ...] = ()
    when = "always"  # a fit has kept only what lowers the loss
    shrinkage = None

    def __init__(self) -> None:
        self.names_: tuple[str, ...] = ()
        self.model_: SpanRecalibrator | None = None

    @property
    def n_labels(self) -> int:
        """Number of labels of the documents in the fit; 0 before it."""
        return 0 if self.model_ is None else len(self.model_.groups.of_tag)

    def spans(self, words: Words, rows: Ints, tags: Ints, scores: Floats) -> Spans:
        """Represent n labels of documents as spans with further scores, for the recalibrator; a document is one token.

        words (Words): Has the documents' further scores. rows, tags, scores: Document, column and score of each label, (n,).
        """
        further = np.array([words.further_scores[name][rows] for name in self.names_]).reshape(len(self.names_), len(rows))
        on_doc = np.ones(len(rows), dtype=np.bool_)
        return Spans(rows, rows + 1, tags, token_scores=scores, scores=scores, on_doc=on_doc, further_scores=further.T)

    def apply(self, predictions: Predictions) -> Predictions:
        """Adjust the score of each document's top label; its other labels share the rest. Before the fit, nothing changes."""
        if self.model_ is None:
            return predictions
        top = np.flatnonzero(predictions.is_top)
        scores = self.adjust(predictions.rows, predictions.tags, predictions.scores, top, predictions.words)
        return predictions.replace_unchecked(scores=scores)

    def adjust(self, rows: Ints, tags: Ints, scores: Floats, top: Ints, words: Words) -> Floats:
        """Return n new scores: that of each document's top label recalibrated; the document's other labels share the rest.

        rows, tags, scores: Document, label (a column) and score of each of n entries. top (Ints): Indices of the entries of top
            labels. words (Words): All documents, each as one "word", with their further scores (see the class).
        """
        assert self.model_ is not None
        spans = self.spans(words, rows[top], tags[top], scores[top])  # one for each document: its top label
        return replace_top_scores(rows, scores, top, self.model_.predict(spans, spans.scores))

    def state(self) -> dict[str, Any]:
        model = None if self.model_ is None else self.model_.state()
        return {"@calib_contexts": self.registered, "settings": {}, "learned": {"names": list(self.names_), "model": model}}

    def load_learned(self, state: dict[str, Any]) -> FurtherScores:
        """Set the learned parameters from a state; return this context. RAISES InvalidState: they lack the declared form."""
        fields = _FURTHER_STATE(state, "learned")
        if fields["model"].n_further_ != len(fields["names"]):
            raise InvalidState("learned.model", f"one that looks at {len(fields['names'])} further scores")
        self.names_, self.model_ = fields["names"], fields["model"]
        return self


def replace_top_scores(rows: Ints, scores: Floats, top: Ints, new_scores: Floats) -> Floats:
    """Return n scores with each document's top score replaced; its other labels share the rest in the old proportions.

    rows, scores: Document and score of each of n entries. top, new_scores: Index of each top label's entry, and its new score.
    """
    factors = np.ones(int(rows.max(initial=-1)) + 1)  # of each document, for its other labels
    factors[rows[top]] = (1.0 - new_scores) / np.maximum(1.0 - scores[top], CLIP)
    result = np.minimum(scores * factors[rows], 1.0)
    result[top] = new_scores
    return result


CLIP = 1e-4  # scores are clipped to this distance from 0 and 1 before their log-odds are taken
# Descriptions of the features of a span other than the means of its tokens' features and the group of its label.
_SPAN_INPUTS = (
    "entropy of its tokens' scores", "share of unknown forms", "its length", "the minimum score of its tokens",
    "the product of its tokens' scores", "the mean score of its tokens",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class LabelMatch(Serializable):
    """Which token labels match each span label, such as B-X and I-X for X: labels that match have the same number.

    tags, labels (Ints): Number of each token label, and of each span label, by column; -1 if it matches none.
    """

    tags: Ints = saved_field(wholes(-1))
    labels: Ints = saved_field(wholes(-1))

    @classmethod
    def find_contradiction(cls, fields: dict[str, Any]) -> str:
        tags, labels = fields["tags"].max(initial=-1), fields["labels"].max(initial=-1)
        return f"a label of tokens has the number {tags}, those of spans go up to {labels}" if tags > labels else ""

    @classmethod
    def from_labels(cls, tags: Sequence[str], has_prefixes: bool, labels: Sequence[str]) -> LabelMatch:
        """Match token labels (tags) with span labels by name.

        has_prefixes (bool): Whether tags begin with B-, I-, L- or U-. labels (Sequence[str]): Span labels. A label map may have
            made some of them equal. If the only label is "", that of sentences, it matches every tag.
        """
        if tuple(labels) == ("",):
            return cls(np.zeros(len(tags), dtype=np.intp), np.zeros(1, dtype=np.intp))
        number_of = {label: index for index, label in enumerate(labels)}  # equal labels have one number
        tag_numbers = [number_of.get(tag[2:] if has_prefixes else tag, -1) for tag in tags]
        return cls(np.array(tag_numbers, dtype=np.intp), np.array([number_of[label] for label in labels], dtype=np.intp))

    def scores(self, view: TokenView, tokens: Ints, labels: Ints) -> Floats:
        """Return, for n tokens in spans, the sum of the adjusted scores of the token labels that match the span's label, (n,).

        view: All tokens. tokens, labels (Ints): Each token, and its span's label, (n,). A token without scores or match gets 1.
        """
        # The appended -1 is for columns past the end: labels that were appended after the fit.
        tag_numbers, label_numbers = np.append(self.tags, -1), np.append(self.labels, -1)
        number_of_span = label_numbers[np.minimum(labels, len(self.labels))]  # for each of `tokens`
        entries, is_in_span = view.tokens, np.zeros(len(view.forms), dtype=np.intp)
        is_in_span[tokens] = 1
        number_of_entry = tag_numbers[np.minimum(entries.tags, len(self.tags))]
        to_add = np.flatnonzero((number_of_entry >= 0) & (is_in_span[entries.rows] > 0))  # indices of entries
        # `sums`: a row for each token in a span, in order, a column for each number; the sum of the token's scores with it.
        row_of_token, n_rows, n_columns = np.cumsum(is_in_span) - 1, int(is_in_span.sum()), 1 + int(label_numbers.max())
        cells = row_of_token[entries.rows[to_add]] * n_columns + number_of_entry[to_add]  # in the flat `sums`
        sums = np.bincount(cells, view.adjusted_scores[to_add], n_rows * n_columns).reshape(n_rows, n_columns)
        is_unknown = (entries.top_tags[0, tokens] < 0) | (number_of_span < 0)  # no scores, or no match
        return np.where(is_unknown, 1.0, np.minimum(sums[row_of_token[tokens], number_of_span], 1.0))


@dataclass(frozen=True, eq=False)
class SpanContextModel(Serializable):
    """The context step of entities: logistic regression on the log-odds of the earlier score and on features of the entity.

    groups (Groups), tags (LabelMatch): Groups of the span labels, and token labels that match them. columns (tuple[str, ...]):
        Descriptions of the features. model (RidgeModel): The fitted regression.
    """

    groups: Groups = saved_field(Groups.read)
    tags: LabelMatch = saved_field(LabelMatch.read)
    columns: tuple[str, ...] = saved_field(tuple_of(text))
    model: RidgeModel = saved_field(RidgeModel.read)

    @classmethod
    def find_contradiction(cls, fields: dict[str, Any]) -> str:
        sizes = {"weights": len(fields["columns"]), "labels": len(fields["groups"].of_tag)}
        return lengths(sizes, {"weights": fields["model"].weights, "labels": fields["tags"].labels})

    def apply(self, predictions: Predictions) -> Predictions:
        """Adjust the scores of the spans on the Docs (those with the level KEPT); the others, candidates, keep theirs."""
        index = predictions.kept_indices
        if predictions.spans is None or not len(index):
            return predictions
        columns = span_columns(predictions.view, predictions.spans.take(index), self.groups, self.tags)
        scores = predictions.scores.copy()
        scores[index] = self.model.predict(log_odds(scores[index], CLIP), self.model.margins(columns))
        return predictions.replace_unchecked(scores=scores)


def span_columns(view: TokenView, spans: Spans, groups: Groups, tags: LabelMatch) -> list[Floats]:
    """Return the features of n spans as columns, (n,) each, in the order that `span_column_names` describes.

    They are the means of token features, the length, the minimum, product and mean of token scores, and a 0/1 column per group.
    view (TokenView): All tokens of these Docs. groups (Groups): Groups of span labels. tags (LabelMatch): Their token labels.
    """
    lengths, firsts = spans.ends - spans.starts, firsts_of(spans)
    # The tokens of all spans, one span after the other: each span begins at its index in `firsts`.
    tokens = np.repeat(spans.starts - firsts, lengths) + np.arange(lengths.sum())
    token_columns = [*view.columns, view.tokens.entropy, (view.forms < 0).astype(np.float64)]
    means = [np.add.reduceat(column[tokens], firsts) / lengths for column in token_columns]
    scores = tags.scores(view, tokens, np.repeat(spans.labels, lengths))
    minima, products = np.minimum.reduceat(scores, firsts), np.multiply.reduceat(scores, firsts)
    summaries = minima, products, np.add.reduceat(scores, firsts) / lengths
    group_of_span = groups.find(spans.labels)
    is_in_group = ((group_of_span == group).astype(np.float64) for group in range(len(groups)))
    return [*means, np.log(lengths), *(log_odds(column, CLIP) for column in summaries), *is_in_group]


def span_column_names(token_columns: Sequence[str], groups: Groups) -> list[str]:
    """Describe each column of `span_columns`. token_columns: Descriptions of the token features. groups: Of the span labels."""
    return [*token_columns, *_SPAN_INPUTS, *(f"a label of group {name}" for name in groups.names)]


def make_context(when: str = "always", features: list[str] | None = None, shrink: float = 0.0) -> TokenContext:
    """Make the token context of a config. Registered as spacy-calib.Context.v1.

    when (str): Use the context "always", or only if it is "no_worse": if the log loss on held-out documents is no higher.
    features (list[str] | None): Names from FEATURES; None takes all.
    shrink (float): How far scores move, in log-odds, from 0 (not at all) to 1 (all the way), towards a * raw log-odds + c,
        fitted without tokens for which model and gold use tags by different conventions. RAISES C001: a setting is invalid.
    """
    names = list(FEATURES) if features is None else features
    unknown = [name for name in names if name not in FEATURES]
    if unknown:
        raise calib_error("C001", name="features", wanted=f"some of {', '.join(FEATURES)}", given=unknown)
    return TokenContext([FEATURES[name] for name in dict.fromkeys(names)], when, shrink)
