"""Sets of tags that hold the gold tag of a token with a chosen probability (split conformal prediction)."""

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
    """By condition the greatest nonconformity in a set (1 if no less will do), shape (n_conditions,), and the fit tokens."""

    values: Floats = saved_field(floats(0.0, 1.0))
    tokens: Ints = saved_field(wholes())

    @classmethod
    def agree(cls, fields: dict[str, Any]) -> str:
        return lengths({"tokens": len(fields["values"])}, fields)


def quantile_rank(n: int, alpha: float) -> int:
    """ceil((n + 1)(1 - alpha)), exact for alpha as written in decimals; above n where n tokens are too few."""
    exact = Fraction(repr(float(alpha)))
    return n + 1 - int((n + 1) * exact)


def cuts_of(nonconformity: Floats, conditions: Ints, n_conditions: int, alpha: float) -> Cuts:
    """The cut of each condition. nonconformity (Floats), conditions (Ints): Of the gold tag of each token."""
    order = np.lexsort((nonconformity, conditions))
    ascending = nonconformity[order]
    tokens = np.bincount(conditions, minlength=n_conditions)
    ranks = np.array([quantile_rank(n, alpha) for n in tokens.tolist()], dtype=np.intp)
    enough = np.flatnonzero(ranks <= tokens)
    values = np.ones(n_conditions)
    wanted = (np.cumsum(tokens) - tokens + ranks)[enough]
    values[enough] = ascending[wanted - 1]
    return Cuts(values, tokens)


def _learned_agrees(held: dict[str, Any]) -> str:
    groups, cuts = held["groups"], held["cuts"]
    wanted = {"pooled": 1, "of_group": len(groups) + 1, "of_tag": len(groups.of_tag)}
    return lengths(wanted, {name: cuts[name].values for name in wanted})


_LEARNED = record(
    {
        "groups": Groups.read,
        "cuts": record(dict.fromkeys(("pooled", "of_group", "of_tag"), Cuts.read)),
        "out_of_reach": number(0.0, 1.0),
        "empty": number(0.0, 1.0),
    },
    _learned_agrees,
)

# Name of the cuts in the saved form -> the attribute.
_SAVED_AS = {"pooled": "of_all_", "of_group": "of_group_", "of_tag": "of_tag_"}


class ConformalSets:
    """Split-conformal sets of tags; by condition Mondrian predictors (Vovk 2012, "Conditional validity
    of inductive conformal predictors").

    The nonconformity of a tag at a token is 1 - its calibrated score, or 1 below the threshold. A set takes in the tags
    up to a cut: of the n fit tokens under its condition the ceil((n + 1)(1 - alpha))-th smallest nonconformity of the
    gold tag, or 1 where n is too small. If the fit tokens and a new one are exchangeable, its gold tag is in its set
    with probability at least 1 - alpha, given the condition. The maps must not have seen the fit tokens: split the
    data, or use scores of cross-validation.

    alpha (float): Share of tokens whose set may miss the gold tag, 0 < alpha < 1.
    coverage (str): The condition. "marginal": none. "group": the group of the token's tag of highest score (of equal
        ones, the first group); a best tag without group, or no tag, is a condition of its own. "tag": the gold tag
        itself, each tag with its own cut (Ding et al. 2023, "classwise"); a tag with few tokens uses the cut of all
        tokens whose gold tag is in its group ("clustered": the share promised is among all of these).
        Promised under "tag": of the tokens whose gold tag is t, at least 1 - alpha have t in their set, for every t
        with a cut below 1 (exactly: over fit data drawn anew, the cut of t is below 1 and the set misses t with
        probability alpha at most). Nothing is promised for other tags (`unreached`), which are in every set where they
        have an entry, nor for gold tags that the model does not know; these count in "marginal" and "group".
    min_tokens (int): A condition with fewer fit tokens has no cut of its own: a tag uses that of its group, a group
        that of all tokens. It does not depend on alpha, so that sets of a smaller alpha contain those of a greater one.
    nonempty (bool): Whether a set holds the likeliest tag (of equal ones, each) whatever the cut says. Empty sets are
        sure to miss, and are many where alpha is above the error rate; one tag more keeps all promises.
    of_all_, of_group_, of_tag_ (Cuts): Of all tokens, per group (the last: no group) and per tag, without fallback.
    out_of_reach_ (float): Share of the fit tokens without a promise: those without a set, and under "tag" those whose
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
        """Learn the cuts.

        rows, tags (Ints): Token and tag (column) of the n entries that reach the threshold; no (token, tag) twice.
        scores (ArrayLike): Their calibrated scores, shape (n,), in [0, 1].
        gold (ArrayLike): Column of each token's gold tag, shape (n_tokens,); -1: the model does not know it, -2: there
            is none (the token is left out).
        groups (Groups): The tags of each group.
        RAISES C001: values out of range. C002: lengths differ. C071: no token has gold.
        """
        wanted = np.asarray(gold, dtype=np.intp)
        rows, tags, given = _checked(rows, tags, scores, len(wanted))
        if wanted.size and wanted.min() < -2:
            raise calib_error("C001", name="gold", wanted="columns, -1 or -2", given=str(wanted.min()))
        held = np.flatnonzero(wanted != -2)
        if not len(held):
            raise calib_error("C071", what="ConformalSets")
        nonconformity = np.ones(len(wanted))
        is_gold = np.flatnonzero(tags == wanted[rows])
        nonconformity[rows[is_gold]] = 1.0 - given[is_gold]
        of_gold = nonconformity[held]
        self.groups = groups
        n_groups, n_tags = len(groups), len(groups.of_tag)
        gold_tag = np.where(wanted[held] < n_tags, wanted[held], -1)
        group_of_gold = np.append(groups.of_tag, -1)[gold_tag]
        group_of_top = _top_groups(rows, tags, given, len(wanted), groups)[held]
        of_group = group_of_gold if self.coverage == "tag" else group_of_top
        self.of_all_ = cuts_of(of_gold, np.zeros(len(held), dtype=np.intp), 1, self.alpha)
        self.of_group_ = cuts_of(of_gold, np.where(of_group < 0, n_groups, of_group), n_groups + 1, self.alpha)
        known = gold_tag >= 0
        self.of_tag_ = cuts_of(of_gold[known], gold_tag[known], n_tags, self.alpha)
        within, out_of_reach = self._within(rows, tags, given, len(wanted))
        empty = np.bincount(rows[within], minlength=len(wanted)) == 0
        self.empty_ = float((empty & ~out_of_reach)[held].mean())
        full = self._full()
        if self.coverage == "tag" and not full.all():
            out_of_reach |= np.append(full, True)[np.where(wanted < n_tags, wanted, -1)]
        self.out_of_reach_ = float(out_of_reach[held].mean())
        return self

    def predict(self, rows: Ints, tags: Ints, scores: ArrayLike, n_tokens: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The sets of some tokens.

        rows, tags, scores: As for `fit`, n entries. n_tokens (int): Tokens, with or without entries.
        RETURNS (tuple): Whether each entry is in its token's set, shape (n,); and whether the token has no set, shape
            (n_tokens,): with a cut of 1 every tag would be in it. Under "tag" only where nothing is promised for any
            tag and the token lacks an entry.
        RAISES C001: values out of range. C002: lengths differ. C004: not fitted.
        """
        rows, tags, given = _checked(rows, tags, scores, n_tokens)
        is_within, out_of_reach = self._within(rows, tags, given, n_tokens)
        if self.nonempty:
            is_within |= given == _highest(rows, given, n_tokens)[rows]
        return is_within, out_of_reach

    def _within(self, rows: Ints, tags: Ints, is_given: Floats, n_tokens: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """What `predict` returns without the rule of `nonempty`."""
        if self.coverage == "tag":
            per_tag = self.tag_cuts()
            cuts = per_tag[np.minimum(tags, len(per_tag) - 1)]
            full = np.append(self._full(), False)
            with_entry = np.bincount(rows[full[np.minimum(tags, len(full) - 1)]], minlength=n_tokens)
            out_of_reach = (with_entry < np.count_nonzero(full)) & self._full().all()
        else:
            per_token = self._token_cuts(rows, tags, is_given, n_tokens)
            cuts, out_of_reach = per_token[rows], per_token >= 1.0
        return 1.0 - is_given <= cuts, out_of_reach

    def group_cuts(self) -> Floats:
        """The cut used for each group, shape (n_groups + 1,); the last is for none. RAISES C004: not fitted."""
        _, of_all, of_group, _ = self._learned()
        return np.where(of_group.tokens >= self.min_tokens, of_group.values, of_all)

    def tag_cuts(self) -> Floats:
        """The cut used for each tag under "tag", (n_tags + 1,); the last for later labels. RAISES C004: not fitted."""
        groups, of_all, _, of_tag = self._learned()
        # Tags without a group have no group to fall back on.
        fallback = np.append(self.group_cuts()[:-1], of_all)[groups.of_tag]
        return np.append(np.where(of_tag.tokens >= self.min_tokens, of_tag.values, fallback), of_all)

    def unreached(self) -> Ints:
        """Columns of the tags for which "tag" promises nothing: they belong in every set. RAISES C004: not fitted."""
        return np.flatnonzero(self._full())

    def _full(self) -> NDArray[np.bool_]:
        """Whether the cut of each tag is 1, shape (n_tags,)."""
        return self.tag_cuts()[:-1] >= 1.0

    def _token_cuts(self, rows: Ints, tags: Ints, scores: Floats, n_tokens: int) -> Floats:
        """The cut of each token, for coverage that is marginal or by group."""
        groups, of_all, _, _ = self._learned()
        if self.coverage == "marginal":
            return np.full(n_tokens, of_all)
        return self.group_cuts()[_top_groups(rows, tags, scores, n_tokens, groups)]

    def _learned(self) -> tuple[Groups, float, Cuts, Cuts]:
        """(groups, cut of all tokens, cuts of groups, cuts of tags). RAISES C004: not fitted."""
        if self.groups is None or self.of_all_ is None or self.of_group_ is None or self.of_tag_ is None:
            raise calib_error("C004", what="ConformalSets")
        return self.groups, float(self.of_all_.values[0]), self.of_group_, self.of_tag_

    def describe(self, labels: Sequence[str]) -> dict[str, Any]:
        """For `info`: settings, fit tokens, shares "out_of_reach" and "empty", "unreached" tags. RAISES C004: not fitted."""
        tokens = int(self._learned()[2].tokens.sum())
        labels_out_of_reach = [labels[column] for column in self.unreached().tolist()] if self.coverage == "tag" else []
        return {
            "alpha": self.alpha,
            "coverage": self.coverage,
            "nonempty": self.nonempty,
            "tokens": tokens,
            "tags": len(labels),
            "out_of_reach": self.out_of_reach_,
            "empty": self.empty_,
            "unreached": labels_out_of_reach,
        }

    def clone(self) -> ConformalSets:
        """Sets with the same settings, not fitted."""
        return type(self)(**self.settings())

    def settings(self) -> dict[str, Any]:
        """What it is made with."""
        return {"alpha": self.alpha, "coverage": self.coverage, "min_tokens": self.min_tokens, "nonempty": self.nonempty}

    def state(self) -> dict[str, Any]:
        """Plain data and arrays. RAISES C004: not fitted."""
        groups, *_ = self._learned()
        cuts = {key: getattr(self, name).state() for key, name in _SAVED_AS.items()}
        return {
            "@calib_sets": self.registered,
            "settings": self.settings(),
            "learned": {"groups": groups.state(), "cuts": cuts, "out_of_reach": self.out_of_reach_, "empty": self.empty_},
        }

    def load_learned(self, fields_saved: dict[str, Any]) -> ConformalSets:
        """Take over what was learned, from a state. RAISES Misfit: it is not of the form declared."""
        fields = _LEARNED(fields_saved, "learned")
        self.groups = fields["groups"]
        for key, cuts in fields["cuts"].items():
            setattr(self, _SAVED_AS[key], cuts)
        self.out_of_reach_, self.empty_ = float(fields["out_of_reach"]), float(fields["empty"])
        return self

    @property
    def n_tags(self) -> int:
        """Number of tags that it was fitted to; 0 before."""
        return 0 if self.groups is None else len(self.groups.of_tag)


def _top_groups(rows: Ints, tags: Ints, scores: Floats, n_tokens: int, groups: Groups) -> Ints:
    """The group of each token's highest entry, the first of those that share the highest score; -1 for none."""
    best = np.flatnonzero(scores == _highest(rows, scores, n_tokens)[rows])
    of_entry = groups.find(tags[best]).astype(np.intp)
    top_groups = np.full(n_tokens, len(groups), dtype=np.intp)
    np.minimum.at(top_groups, rows[best], np.where(of_entry < 0, len(groups), of_entry))
    return np.where(top_groups == len(groups), -1, top_groups)


def _highest(rows: Ints, scores: Floats, n_tokens: int) -> Floats:
    """The highest score of each token's entries; -1 where it has none."""
    highest = np.full(n_tokens, -1.0)
    np.maximum.at(highest, rows, scores)
    return highest


def _checked(rows: ArrayLike, tags: ArrayLike, scores: ArrayLike, n_tokens: int) -> tuple[Ints, Ints, Floats]:
    """The entries as arrays. RAISES C001: values out of range. C002: lengths differ."""
    given = as_probabilities("scores", scores)
    checked = []
    for name, values, end in (("row", rows, n_tokens), ("tag", tags, None)):
        column = np.asarray(values, dtype=np.intp)
        if column.shape != given.shape:
            raise calib_error(
                "C002", what="A set of entries", first=name, second="score", n_first=column.size, n_second=len(given)
            )
        if column.size and (column.min() < 0 or (end is not None and column.max() >= end)):
            wanted = "columns of at least 0" if end is None else f"tokens in [0, {end})"
            raise calib_error("C001", name=f"{name}s", wanted=wanted, given=f"a range of {column.min()} to {column.max()}")
        checked.append(column)
    return checked[0], checked[1], given
