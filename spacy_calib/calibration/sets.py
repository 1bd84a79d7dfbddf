"""Sets of tags that contain the gold tag of a token with a chosen probability (split conformal prediction)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import calib_error
from ..pairs.bins import check_count
from ..schema import Serializable, floats, lengths, number, record, saved_field, wholes
from ..types import Floats, Groups, Ints, as_probabilities

COVERAGES = ("marginal", "group", "tag")


@dataclass(frozen=True, eq=False)
class Cuts(Serializable):
    """Greatest nonconformity in a set, by condition (1 if no smaller cut has the coverage), and number of fit tokens."""

    values: Floats = saved_field(floats(0.0, 1.0))
    tokens: Ints = saved_field(wholes())

    @classmethod
    def find_contradiction(cls, fields: dict[str, Any]) -> str:
        return lengths({"tokens": len(fields["values"])}, fields)


def quantile_rank(n: int, alpha: float) -> int:
    """Return ceil((n + 1)(1 - alpha)), exact for alpha as written in decimals; above n if n tokens are too few."""
    exact = Fraction(repr(float(alpha)))
    return n + 1 - int((n + 1) * exact)


def cuts_of(nonconformity: Floats, conditions: Ints, n_conditions: int, alpha: float) -> Cuts:
    """Compute the cut of each condition: the nonconformity of rank `quantile_rank`, or 1 where there are too few tokens.

    nonconformity (Floats), conditions (Ints): Nonconformity and condition of each token's gold tag, shape (n_tokens,).
    RETURNS (Cuts): Shape (n_conditions,).
    """
    order = np.lexsort((nonconformity, conditions))
    ascending = nonconformity[order]
    tokens = np.bincount(conditions, minlength=n_conditions)
    ranks = np.array([quantile_rank(n, alpha) for n in tokens.tolist()], dtype=np.intp)
    enough = np.flatnonzero(ranks <= tokens)
    values = np.ones(n_conditions)
    ends = (np.cumsum(tokens) - tokens + ranks)[enough]
    values[enough] = ascending[ends - 1]
    return Cuts(values, tokens)


def _find_contradiction(fields: dict[str, Any]) -> str:
    """Return which cuts have another number of values than there are groups or tags, or ""."""
    groups, cuts = fields["groups"], fields["cuts"]
    sizes = {"pooled": 1, "of_group": len(groups) + 1, "of_tag": len(groups.of_tag)}
    return lengths(sizes, {name: cuts[name].values for name in sizes})


_LEARNED_FORM = record(
    {
        "groups": Groups.read,
        "cuts": record(dict.fromkeys(("pooled", "of_group", "of_tag"), Cuts.read)),
        "out_of_reach": number(0.0, 1.0),
        "empty": number(0.0, 1.0),
    },
    _find_contradiction,
)

# Name of the cuts in the saved form -> the attribute.
_SAVED_AS = {"pooled": "of_all_", "of_group": "of_group_", "of_tag": "of_tag_"}


class ConformalSets:
    """Split-conformal sets of tags, by condition (Mondrian predictors, Vovk 2012, "Conditional validity of inductive conformal
    predictors").

    The nonconformity of a tag at a token is 1 - its calibrated score, or 1 below the threshold. A set contains the tags
    up to a cut: of the n fit tokens under its condition the ceil((n + 1)(1 - alpha))-th smallest nonconformity of the
    gold tag, or 1 if n is too small. If the fit tokens and a new one are exchangeable, its gold tag is in its set
    with probability at least 1 - alpha, given the condition. The maps must not be fitted on the fit tokens: split the
    data, or use scores of cross-validation.

    alpha (float): Share of tokens whose set may miss the gold tag, 0 < alpha < 1.
    coverage (str): The condition. "marginal": none. "group": the group of the token's top tag (of equal scores, the first
        group); a top tag without group, or no tag, is a condition of its own. "tag": the gold tag
        itself, each tag with its own cut (Ding et al. 2023, "classwise"); a tag with few tokens uses the cut of all
        tokens whose gold tag is in its group ("clustered": the coverage is among all of these).
        The coverage under "tag": of the tokens whose gold tag is t, at least 1 - alpha have t in their set, for every t
        with a cut below 1 (exactly: over samples of fit data, the cut of t is below 1 and the set misses t with
        probability alpha at most). Other tags (`unreached`) have no guarantee; they are in every set where they
        have an entry. Nor have gold tags that the model does not know; these count in "marginal" and "group".
    min_tokens (int): A condition with fewer fit tokens has no cut of its own: a tag uses that of its group, a group
        that of all tokens. It does not depend on alpha, so that sets of a smaller alpha contain those of a greater one.
    nonempty (bool): Whether a set contains the top tag (of equal scores, each) even if the cut excludes it. Empty sets
        always miss, and are many if alpha is above the error rate; one more tag keeps all guarantees.
    of_all_, of_group_, of_tag_ (Cuts): Of all tokens, per group (the last: no group) and per tag, without fallback.
    out_of_reach_ (float): Share of the fit tokens without a guarantee: those without a set, and under "tag" those whose
        gold tag is `unreached` or unknown.
    empty_ (float): Share of the fit tokens without a tag up to the cut.
    RAISES C001: a setting out of range.
    """

    registered = "spacy-calib.ConformalSets.v1"

    def __init__(self, alpha: float = 0.1, coverage: str = "marginal", min_tokens: int = 20, nonempty: bool = False):
        if isinstance(alpha, bool) or not isinstance(alpha, (int, float, np.number)) or not 0 < alpha < 1:
            raise calib_error("C001", name="alpha", wanted="a number above 0 and below 1", given=repr(alpha))
        if coverage not in COVERAGES:
            raise calib_error("C001", name="coverage", wanted=f"one of {', '.join(COVERAGES)}", given=repr(coverage))
        self.alpha = float(alpha)
        self.coverage = coverage
        self.min_tokens = check_count("min_tokens", min_tokens)
        if not isinstance(nonempty, bool):
            raise calib_error("C001", name="nonempty", wanted="true or false", given=repr(nonempty))
        self.nonempty = nonempty
        self.groups: Groups | None = None
        self.of_all_: Cuts | None = None
        self.of_group_: Cuts | None = None
        self.of_tag_: Cuts | None = None
        self.out_of_reach_ = 0.0
        self.empty_ = 0.0

    def fit(self, rows: Ints, tags: Ints, scores: ArrayLike, gold: ArrayLike, groups: Groups) -> ConformalSets:
        """Fit the cuts.

        rows, tags (Ints): Token and tag (column) of the n entries that reach the threshold; no (token, tag) twice.
        scores (ArrayLike): Their calibrated scores, shape (n,), in [0, 1].
        gold (ArrayLike): Column of each token's gold tag, shape (n_tokens,); -1: the model does not know it, -2: there
            is none (the token is left out).
        groups (Groups): The tags of each group.
        RAISES C001: values out of range. C002: lengths differ. C071: no token has gold.
        """
        columns = np.asarray(gold, dtype=np.intp)
        n_tokens = len(columns)
        rows, tags, scores = _check_entries(rows, tags, scores, n_tokens)
        if columns.size and columns.min() < -2:
            raise calib_error("C001", name="gold", wanted="columns, -1 or -2", given=str(columns.min()))
        tokens = np.flatnonzero(columns != -2)
        if not len(tokens):
            raise calib_error("C071", what="ConformalSets")
        nonconformity = np.ones(n_tokens)
        is_gold = np.flatnonzero(tags == columns[rows])
        nonconformity[rows[is_gold]] = 1.0 - scores[is_gold]
        gold_nonconformity = nonconformity[tokens]
        self.groups = groups
        n_groups, n_tags = len(groups), len(groups.of_tag)
        gold_tag = np.where(columns[tokens] < n_tags, columns[tokens], -1)
        group_of_gold = np.append(groups.of_tag, -1)[gold_tag]
        group_of_top = _top_groups(rows, tags, scores, n_tokens, groups)[tokens]
        group = group_of_gold if self.coverage == "tag" else group_of_top
        self.of_all_ = cuts_of(gold_nonconformity, np.zeros(len(tokens), dtype=np.intp), 1, self.alpha)
        self.of_group_ = cuts_of(gold_nonconformity, np.where(group < 0, n_groups, group), n_groups + 1, self.alpha)
        has_column = gold_tag >= 0
        self.of_tag_ = cuts_of(gold_nonconformity[has_column], gold_tag[has_column], n_tags, self.alpha)
        in_set, out_of_reach = self._apply_cuts(rows, tags, scores, n_tokens)
        is_empty = np.bincount(rows[in_set], minlength=n_tokens) == 0
        self.empty_ = float((is_empty & ~out_of_reach)[tokens].mean())
        is_unreached = self._is_unreached()
        if self.coverage == "tag" and not is_unreached.all():
            out_of_reach |= np.append(is_unreached, True)[np.where(columns < n_tags, columns, -1)]
        self.out_of_reach_ = float(out_of_reach[tokens].mean())
        return self

    def predict(self, rows: Ints, tags: Ints, scores: ArrayLike, n_tokens: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the sets of some tokens.

        rows, tags (Ints), scores (ArrayLike): Token, column and calibrated score of the n entries that reach the threshold.
        n_tokens (int): Tokens, with or without entries.
        RETURNS (tuple): Whether each entry is in its token's set, shape (n,); and whether the token has no set, shape
            (n_tokens,): with a cut of 1 every tag would be in it. Under "tag" that is so only if no tag has a
            guarantee and the token lacks an entry.
        RAISES C001: values out of range. C002: lengths differ. C004: not fitted.
        """
        rows, tags, scores = _check_entries(rows, tags, scores, n_tokens)
        in_set, out_of_reach = self._apply_cuts(rows, tags, scores, n_tokens)
        if self.nonempty:
            in_set |= scores == _highest(rows, scores, n_tokens)[rows]
        return in_set, out_of_reach

    def _apply_cuts(self, rows: Ints, tags: Ints, scores: Floats, n_tokens: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return (in_set, out_of_reach) as `predict` does, but without the top tags that `nonempty` adds."""
        if self.coverage == "tag":
            tag_cuts = self.tag_cuts()
            cuts = tag_cuts[np.minimum(tags, len(tag_cuts) - 1)]
            is_unreached = np.append(self._is_unreached(), False)
            n_entries = np.bincount(rows[is_unreached[np.minimum(tags, len(is_unreached) - 1)]], minlength=n_tokens)
            out_of_reach = (n_entries < np.count_nonzero(is_unreached)) & self._is_unreached().all()
        else:
            token_cuts = self._token_cuts(rows, tags, scores, n_tokens)
            cuts, out_of_reach = token_cuts[rows], token_cuts >= 1.0
        return 1.0 - scores <= cuts, out_of_reach

    def group_cuts(self) -> Floats:
        """Return the cut of each group, with fallback, (n_groups + 1,); the last is for no group. RAISES C004: not fitted."""
        _, of_all, of_group, _ = self._fitted_cuts()
        return np.where(of_group.tokens >= self.min_tokens, of_group.values, of_all)

    def tag_cuts(self) -> Floats:
        """Return the cut of each tag, with fallback, (n_tags + 1,); the last is for new labels. RAISES C004: not fitted."""
        groups, of_all, _, of_tag = self._fitted_cuts()
        # The fallback of tags without a group is the cut of all tokens.
        fallback = np.append(self.group_cuts()[:-1], of_all)[groups.of_tag]
        return np.append(np.where(of_tag.tokens >= self.min_tokens, of_tag.values, fallback), of_all)

    def unreached(self) -> Ints:
        """Return the columns of the tags without a guarantee under "tag": they belong in every set. RAISES C004: not fitted."""
        return np.flatnonzero(self._is_unreached())

    def _is_unreached(self) -> NDArray[np.bool_]:
        """Return whether the cut of each tag is 1, shape (n_tags,)."""
        return self.tag_cuts()[:-1] >= 1.0

    def _token_cuts(self, rows: Ints, tags: Ints, scores: Floats, n_tokens: int) -> Floats:
        """Return the cut of each token, for "marginal" and "group" coverage."""
        groups, of_all, _, _ = self._fitted_cuts()
        if self.coverage == "marginal":
            return np.full(n_tokens, of_all)
        return self.group_cuts()[_top_groups(rows, tags, scores, n_tokens, groups)]

    def _fitted_cuts(self) -> tuple[Groups, float, Cuts, Cuts]:
        """Return (groups, cut of all tokens, cuts of groups, cuts of tags). RAISES C004: not fitted."""
        if self.groups is None or self.of_all_ is None or self.of_group_ is None or self.of_tag_ is None:
            raise calib_error("C004", what="ConformalSets")
        return self.groups, float(self.of_all_.values[0]), self.of_group_, self.of_tag_

    def describe(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return settings, number of fit tokens, shares and "unreached" labels for `info`. RAISES C004: not fitted."""
        tokens = int(self._fitted_cuts()[2].tokens.sum())
        unreached_labels = [labels[column] for column in self.unreached().tolist()] if self.coverage == "tag" else []
        return {
            "alpha": self.alpha, "coverage": self.coverage, "nonempty": self.nonempty, "tokens": tokens, "tags": len(labels),
            "out_of_reach": self.out_of_reach_, "empty": self.empty_, "unreached": unreached_labels,
        }  # fmt: skip

    def clone(self) -> ConformalSets:
        return type(self)(**self.settings())

    def settings(self) -> dict[str, Any]:
        return {"alpha": self.alpha, "coverage": self.coverage, "min_tokens": self.min_tokens, "nonempty": self.nonempty}

    def state(self) -> dict[str, Any]:
        """Return name, settings and learned values, which `make_part` takes. RAISES C004: not fitted."""
        groups, *_ = self._fitted_cuts()
        cuts = {key: getattr(self, name).state() for key, name in _SAVED_AS.items()}
        return {
            "@calib_sets": self.registered,
            "settings": self.settings(),
            "learned": {"groups": groups.state(), "cuts": cuts, "out_of_reach": self.out_of_reach_, "empty": self.empty_},
        }

    def load_learned(self, values: dict[str, Any]) -> ConformalSets:
        fields = _LEARNED_FORM(values, "learned")
        self.groups = fields["groups"]
        for key, cuts in fields["cuts"].items():
            setattr(self, _SAVED_AS[key], cuts)
        self.out_of_reach_, self.empty_ = float(fields["out_of_reach"]), float(fields["empty"])
        return self

    @property
    def n_tags(self) -> int:
        return 0 if self.groups is None else len(self.groups.of_tag)


def _top_groups(rows: Ints, tags: Ints, scores: Floats, n_tokens: int, groups: Groups) -> Ints:
    """Return the group of each token's top tag, of equal scores the first group; -1 for none."""
    best = np.flatnonzero(scores == _highest(rows, scores, n_tokens)[rows])
    best_groups = groups.find(tags[best]).astype(np.intp)
    top_groups = np.full(n_tokens, len(groups), dtype=np.intp)
    np.minimum.at(top_groups, rows[best], np.where(best_groups < 0, len(groups), best_groups))
    return np.where(top_groups == len(groups), -1, top_groups)


def _highest(rows: Ints, scores: Floats, n_tokens: int) -> Floats:
    """Return the highest score of each token's entries; -1 if it has none."""
    highest = np.full(n_tokens, -1.0)
    np.maximum.at(highest, rows, scores)
    return highest


def _check_entries(rows: ArrayLike, tags: ArrayLike, scores: ArrayLike, n_tokens: int) -> tuple[Ints, Ints, Floats]:
    """Return the entries as arrays. RAISES C001: values out of range. C002: lengths differ."""
    probabilities = as_probabilities("scores", scores)
    columns = []
    for name, values, end in (("row", rows, n_tokens), ("tag", tags, None)):
        column = np.asarray(values, dtype=np.intp)
        if column.shape != probabilities.shape:
            sizes = {"n_first": column.size, "n_second": len(probabilities)}
            raise calib_error("C002", what="A set of entries", first=name, second="score", **sizes)
        if column.size and (column.min() < 0 or (end is not None and column.max() >= end)):
            expected = "columns of at least 0" if end is None else f"tokens in [0, {end})"
            raise calib_error("C001", name=f"{name}s", wanted=expected, given=f"a range of {column.min()} to {column.max()}")
        columns.append(column)
    return columns[0], columns[1], probabilities
