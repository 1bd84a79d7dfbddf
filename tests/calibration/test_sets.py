"""Conformal sets of tags: against a slow reading of the definition, and their coverage by simulation."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_calib.calibration.sets import COVERAGES, ConformalSets, quantile_rank
from spacy_calib.errors import CalibError
from spacy_calib.pipe import saved
from spacy_calib.schema import InvalidState
from spacy_calib.types import Groups

from ..strategies import score

N_TAGS = 5
GROUPS = Groups(("a", "b"), np.array([0, 1, 0, -1, 1]))
every_coverage = pytest.mark.parametrize("coverage", COVERAGES)


class Tokens(NamedTuple):
    """Entries (rows, tags, scores) of some tokens and the gold column of each."""

    rows: np.ndarray
    tags: np.ndarray
    scores: np.ndarray
    gold: np.ndarray

    @property
    def entries(self):
        return self.rows, self.tags, self.scores


def of_lists(entries, gold) -> Tokens:
    """entries: (row, tag, score) each."""
    rows, tags, scores = zip(*entries, strict=True) if entries else ((), (), ())
    return Tokens(np.array(rows, dtype=np.intp), np.array(tags, dtype=np.intp), np.array(scores, dtype=float), np.array(gold))


def one_tag(scores, gold_kept=True) -> Tokens:
    """A token for each score, with one entry: tag 0, the gold one (or not)."""
    n = len(scores)
    zeros = np.zeros(n, dtype=np.intp)
    return Tokens(np.arange(n), zeros, np.array(scores, dtype=float), zeros if gold_kept else zeros + 1)


@st.composite
def tokens(draw, max_tokens: int = 25, n_tags: int = N_TAGS):
    """Tokens with 0 to n_tags entries, and gold that is known, unknown to the model, or missing; at least one has gold."""
    n = draw(st.integers(1, max_tokens))
    entries = [
        (row, tag, draw(score))
        for row in range(n)
        for tag in sorted(draw(st.sets(st.integers(0, n_tags - 1), max_size=n_tags)))
    ]
    gold = draw(st.lists(st.integers(-2, n_tags - 1), min_size=n, max_size=n))
    return of_lists(entries, [draw(st.integers(-1, n_tags - 1)), *gold[1:]])


alphas = st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9])
settings = st.tuples(alphas, st.sampled_from(COVERAGES), st.integers(1, 8), st.booleans())


def fit(given_tokens: Tokens, alpha=0.1, coverage="marginal", min_tokens=1, nonempty=False, groups=GROUPS) -> ConformalSets:
    return ConformalSets(alpha, coverage, min_tokens, nonempty).fit(*given_tokens.entries, given_tokens.gold, groups)


# The definition, read slowly.


def slow_cut(strange: list[float], alpha: float) -> float:
    rank = math.ceil((len(strange) + 1) * (1 - Fraction(str(alpha))))
    return sorted(strange)[rank - 1] if rank <= len(strange) else 1.0


def slow_top_group(scores_of: dict[int, float], groups: Groups) -> int:
    """The group of the highest entry; -1 (none) comes after all groups."""
    best = [tag for tag, value in scores_of.items() if value == max(scores_of.values())]
    of = [int(groups.find(np.array([tag]))[0]) for tag in best]
    known = [group for group in of if group >= 0]
    return min(known) if known else -1


def slow_sets(fitted_on: Tokens, asked: Tokens, alpha, coverage, min_tokens, nonempty, groups):
    """(whether each entry is in its set, whether each token has none)."""

    def scores_by_token(some):
        held: list[dict[int, float]] = [{} for _ in some.gold]
        for row, tag, value in zip(*some.entries, strict=True):
            held[row][int(tag)] = float(value)
        return held

    learned = []  # (nonconformity, gold tag, group of the gold tag, group of the top tag)
    for held, gold in zip(scores_by_token(fitted_on), fitted_on.gold.tolist(), strict=True):
        if gold != -2:
            group = int(groups.of_tag[gold]) if gold >= 0 else -1
            learned.append((1 - held[gold] if gold in held else 1.0, gold, group, slow_top_group(held, groups)))
    pooled = slow_cut([strange for strange, *_ in learned], alpha)

    def cut_of_group(group, column):
        inside = [one[0] for one in learned if one[column] == group]
        return slow_cut(inside, alpha) if len(inside) >= min_tokens else pooled

    def cut_of_tag(tag):
        if tag >= len(groups.of_tag):
            return pooled
        inside = [one[0] for one in learned if one[1] == tag]
        if len(inside) >= min_tokens:
            return slow_cut(inside, alpha)
        return cut_of_group(groups.of_tag[tag], 2) if groups.of_tag[tag] >= 0 else pooled

    sets, unreached = [], []
    for held in scores_by_token(asked):
        if coverage == "tag":
            sets.append({tag for tag, value in held.items() if 1 - value <= cut_of_tag(tag)})
            known = range(len(groups.of_tag))
            unreached.append(all(cut_of_tag(tag) >= 1 for tag in known) and any(tag not in held for tag in known))
        else:
            cut = pooled if coverage == "marginal" else cut_of_group(slow_top_group(held, groups), 3)
            sets.append({tag for tag, value in held.items() if 1 - value <= cut})
            unreached.append(cut >= 1)
        if nonempty:
            sets[-1] |= {tag for tag, value in held.items() if value == max(held.values())}
    inside = [int(tag) in sets[row] for row, tag in zip(asked.rows, asked.tags, strict=True)]
    return inside, unreached


@given(tokens(), tokens(max_tokens=8, n_tags=N_TAGS + 2), settings)
def test_sets_equal_those_by_the_definition(fitted_on, asked, chosen):
    # Tags 5 and 6 of the tokens asked for were appended to the labels after the fit.
    inside, unreached = fit(fitted_on, *chosen).predict(*asked.entries, len(asked.gold))
    wanted_inside, wanted_unreached = slow_sets(fitted_on, asked, *chosen, GROUPS)
    assert inside.tolist() == wanted_inside
    assert unreached.tolist() == wanted_unreached


@given(tokens(), tokens(), st.lists(alphas, min_size=2, max_size=2), settings)
def test_sets_of_a_smaller_alpha_contain_those_of_a_greater_one(fitted_on, asked, two, chosen):
    (wide, wide_unreached), (narrow, narrow_unreached) = (
        fit(fitted_on, alpha, *chosen[1:]).predict(*asked.entries, len(asked.gold)) for alpha in sorted(two)
    )
    assert (wide >= narrow).all()
    assert (wide_unreached >= narrow_unreached).all()


def test_sets_nest_also_where_the_smaller_alpha_is_beyond_a_rare_tag():
    # 20 tokens of tag 0 with low scores, 200 of tag 1 with high ones: a cut borrowed from the group only at the smaller alpha would
    # be far below that of tag 0's own tokens at the greater one.
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.uniform(0.1, 0.2, 20), rng.uniform(0.9, 1.0, 200)])
    tags = np.repeat([0, 1], [20, 200])
    learned = Tokens(np.arange(220), tags, scores, tags)
    groups = Groups(("a",), np.array([0, 0]))
    asked = of_lists([(0, 0, 0.15), (0, 1, 0.8)], [0])
    for alpha in (0.1, 0.06, 0.04, 0.01):
        inside, unreached = fit(learned, alpha, "tag", 20, groups=groups).predict(*asked.entries, 1)
        # Also where the cut of tag 0 is 1, as it is for the last.
        assert inside.tolist()[0] is True
        assert not unreached.any()


@given(tokens(), tokens(), settings, st.permutations(range(N_TAGS)))
def test_tags_permuted_the_sets_are_permuted(fitted_on, asked, chosen, order):
    to = np.array(order)
    groups = Groups(GROUPS.names, GROUPS.of_tag[np.argsort(to)])

    def renamed(some):
        return Tokens(some.rows, to[some.tags], some.scores, np.where(some.gold >= 0, to[some.gold], some.gold))

    inside, unreached = fit(fitted_on, *chosen).predict(*asked.entries, len(asked.gold))
    other = fit(renamed(fitted_on), *chosen, groups=groups).predict(*renamed(asked).entries, len(asked.gold))
    np.testing.assert_array_equal(inside, other[0])
    np.testing.assert_array_equal(unreached, other[1])


@given(tokens(), settings, st.randoms(use_true_random=False))
def test_the_order_of_entries_is_irrelevant(some, chosen, random):
    order = np.array(random.sample(range(len(some.rows)), len(some.rows)), dtype=np.intp)
    turned = Tokens(some.rows[order], some.tags[order], some.scores[order], some.gold)
    inside, unreached = fit(some, *chosen).predict(*some.entries, len(some.gold))
    other = fit(turned, *chosen).predict(*turned.entries, len(some.gold))
    np.testing.assert_array_equal(inside[order], other[0])
    np.testing.assert_array_equal(unreached, other[1])


@given(tokens(), tokens(), settings)
def test_saved_sets_are_the_same(fitted_on, asked, chosen):
    fitted = fit(fitted_on, *chosen)
    data = saved.dump(fitted.state())
    back = saved.load_part(saved.load(data, name="calib", path="memory"), name="calib")
    assert (back.alpha, back.coverage, back.min_tokens, back.nonempty) == chosen
    assert back.describe([""] * N_TAGS) == fitted.describe([""] * N_TAGS)
    assert back.groups.names == GROUPS.names
    for one, other in zip(
        fitted.predict(*asked.entries, len(asked.gold)), back.predict(*asked.entries, len(asked.gold)), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert saved.dump(back.state()) == data


# Worked by hand


def test_sets_by_hand():
    # Nine gold scores and alpha = 0.1: the rank is 10 * 0.9 = 9, the least gold score 0.2 is just taken in.
    nine = one_tag([0.9, 0.8, 0.2, 0.7, 0.95, 0.6, 0.5, 0.4, 0.3])
    asked = of_lists([(0, 0, 0.2), (0, 1, 0.19), (1, 4, 0.9), (3, 2, 0.1)], [0, 0, 0, 0])
    inside, unreached = fit(nine, 0.1).predict(*asked.entries, 4)
    assert inside.tolist() == [True, False, True, False]
    assert unreached.tolist() == [False] * 4
    # alpha = 0.5: rank 5, the fifth highest score, 0.6.
    assert fit(nine, 0.5).of_all_.values.tolist() == [1 - 0.6]


def test_too_few_tokens_for_the_promise():
    eight = one_tag([0.9] * 8)
    inside, unreached = fit(eight, 0.1).predict(*of_lists([(0, 1, 0.0)], [0, 0]).entries, 2)
    assert inside.tolist() == [True]
    assert unreached.tolist() == [True, True]


def test_gold_tags_below_the_threshold_or_unknown_put_the_promise_out_of_reach():
    # 2 of 19 gold tags have no entry; alpha = 0.1 allows one, alpha = 0.2 three.
    known = np.array([0] * 17 + [1, -1])
    learned = Tokens(np.arange(19), np.zeros(19, dtype=np.intp), np.linspace(0.5, 0.9, 19), known)
    assert fit(learned, 0.1).predict(*learned.entries, 19)[1].all()
    assert not fit(learned, 0.2).predict(*learned.entries, 19)[1].any()


def test_tokens_without_gold_are_left_out():
    learned = one_tag([0.9] * 20)
    gold = np.concatenate([learned.gold, np.full(30, -2)])
    more = Tokens(np.arange(50), np.zeros(50, dtype=np.intp), np.concatenate([learned.scores, np.full(30, 0.01)]), gold)
    for name in ("of_all_", "of_group_", "of_tag_"):
        one, other = getattr(fit(learned), name), getattr(fit(more), name)
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.tokens, other.tokens)


def test_a_group_is_that_of_the_highest_tag_not_of_the_gold_one():
    # Tag 0 (group a) on top with .6, gold is tag 1 (group b) with .4: what was learned bears on tokens with a tag of group a on top.
    rows = np.repeat(np.arange(30), 2)
    learned = Tokens(rows, np.tile([0, 1], 30), np.tile([0.6, 0.4], 30), np.ones(30, dtype=np.intp))
    fitted = fit(learned, 0.1, "group")
    assert fitted.of_group_.tokens.tolist() == [30, 0, 0]
    assert fitted.group_cuts()[0] == 1 - 0.4
    # Under tag coverage a group stands for its gold tags.
    assert fit(learned, 0.1, "tag").of_group_.tokens.tolist() == [0, 30, 0]


def test_tokens_without_an_entry_and_tags_without_a_group_share_a_condition():
    learned = of_lists([(0, 3, 0.9), (1, 0, 0.9)], [3, 0, 0])
    assert fit(learned, 0.1, "group").of_group_.tokens.tolist() == [1, 0, 2]


def test_a_rare_tag_uses_its_groups_cut_and_a_rare_group_the_pooled_one():
    # Tags 0 and 2 are of group a, 1 and 4 of group b; 3 has none.
    gold = np.array([0] * 30 + [2] * 5 + [1] * 10)
    scores = np.concatenate([np.full(30, 0.9), np.full(5, 0.5), np.full(10, 0.2)])
    learned = Tokens(np.arange(45), gold, scores, gold)
    cuts = fit(learned, 0.1, "tag", 20).tag_cuts()
    group_a, pooled = 1 - 0.5, 1 - 0.2
    # 35 tokens of group a: rank ceil(36 * .9) = 33, among the five of .5; of all 45 rank 42, among the ten of .2.
    np.testing.assert_array_equal(cuts, [1 - 0.9, pooled, group_a, pooled, pooled, pooled])


def test_a_rare_tag_without_a_group_does_not_use_the_cut_of_unknown_gold():
    # 10 tokens whose gold the model does not know, as tag 3 without a group: their cut would be 1.
    gold = np.array([0] * 200 + [-1] * 10)
    learned = Tokens(np.arange(210), np.zeros(210, dtype=np.intp), np.full(210, 0.9), gold)
    fitted = fit(learned, 0.1, "tag", 5)
    assert fitted.of_group_.values.tolist() == [1 - 0.9, 1.0, 1.0]
    assert fitted.tag_cuts()[3] == 1 - 0.9


def test_gold_of_a_label_that_the_groups_do_not_have_counts_without_a_condition_of_its_own():
    gold = np.array([0] * 30 + [7] * 10)
    learned = Tokens(np.arange(40), gold, np.repeat([0.9, 0.2], [30, 10]), gold)
    fitted = fit(learned, 0.1, "tag")
    assert fitted.of_all_.values.tolist() == [1 - 0.2]
    assert fitted.of_tag_.tokens.tolist() == [30, 0, 0, 0, 0]
    assert fitted.of_group_.tokens.tolist() == [30, 0, 10]


def some_tag_out_of_reach(**settings) -> ConformalSets:
    """Tag 1 has an entry in half of its tokens only: it would have to be in every set."""
    gold = np.repeat([0, 1], [120, 40])
    kept = np.arange(140)
    learned = Tokens(kept, gold[kept], np.full(140, 0.9), gold)
    return ConformalSets(0.1, "tag", **settings).fit(*learned.entries, learned.gold, Groups(("a",), np.array([0, 0])))


def test_a_tag_out_of_reach_voids_no_set():
    fitted = some_tag_out_of_reach()
    assert fitted.unreached().tolist() == [1]
    asked = of_lists([(0, 0, 0.95), (1, 0, 0.95), (1, 1, 0.02), (2, 1, 0.02)], [0, 0, 0])
    inside, unreached = fitted.predict(*asked.entries, 3)
    assert inside.tolist() == [True, True, True, True]
    assert unreached.tolist() == [False, False, False]
    # A quarter of the fit tokens has that tag; nothing is promised for them.
    assert fitted.out_of_reach_ == 0.25
    described = fitted.describe(["N", "V"])
    assert (described["unreached"], described["tags"], described["out_of_reach"]) == (["V"], 2, 0.25)


def test_where_no_tag_can_be_promised_there_are_no_sets():
    fitted = fit(one_tag([0.9] * 5), 0.1, "tag")
    assert fitted.unreached().tolist() == list(range(N_TAGS))
    assert fitted.predict(*one_tag([0.9] * 2).entries, 2)[1].tolist() == [True, True]
    assert fitted.out_of_reach_ == 1.0


def test_tags_within_reach_are_covered_as_promised_beside_one_that_is_not():
    """Half of the tokens of the last tag have no entry for it: the others' promise holds, and no token loses its set."""
    rng = np.random.default_rng(23)
    alpha, found = 0.3, []

    def hide(some: Tokens) -> Tokens:
        shown = (some.tags != 3) | (rng.random(len(some.tags)) < 0.5)
        return Tokens(some.rows[shown], some.tags[shown], some.scores[shown], some.gold)

    for _ in range(100):
        fitted = fit(hide(drawn(rng, 400)), alpha, "tag", 1, groups=WIDE)
        assert fitted.unreached().tolist() == [3]
        asked = hide(drawn(rng, 400))
        assert not fitted.predict(*asked.entries, 400)[1].any()
        held = covered(fitted, asked)
        found.append([held[asked.gold == tag].mean() - (1 - alpha) for tag in range(4)])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / 10
    assert (mean > -4 * error)[:3].all()
    assert mean[3] < -0.05


# Empty sets


def test_empty_sets_are_counted_and_can_hold_the_likeliest_tag():
    # 200 tokens, all right with scores of .505 to .995: at alpha .3 the cut leaves out those below .65 or so.
    learned = one_tag(np.linspace(0.505, 0.995, 200))
    bare, full = fit(learned, 0.3), fit(learned, 0.3, nonempty=True)
    asked = of_lists([(0, 0, 0.9), (1, 0, 0.6), (1, 1, 0.3), (2, 0, 0.4), (2, 1, 0.4), (2, 2, 0.2)], [0, 0, 0])
    assert bare.predict(*asked.entries, 3)[0].tolist() == [True, False, False, False, False, False]
    assert full.predict(*asked.entries, 3)[0].tolist() == [True, True, False, True, True, False]
    assert bare.empty_ == full.empty_ == pytest.approx(0.3, abs=0.01)
    assert bare.describe(["N"])["empty"] == bare.empty_
    assert fit(learned, 0.01).empty_ < 0.01


@given(tokens(), tokens(), settings)
def test_nonempty_sets_contain_the_plain_sets_and_a_tag_of_each_token_with_entries(fit_tokens, new_tokens, chosen):
    (in_plain_set, plain_unreached), (in_set, unreached) = (
        fit(fit_tokens, *chosen[:3], nonempty).predict(*new_tokens.entries, len(new_tokens.gold)) for nonempty in (False, True)
    )
    assert (in_set >= in_plain_set).all()
    np.testing.assert_array_equal(unreached, plain_unreached)
    assert np.isin(np.unique(new_tokens.rows), new_tokens.rows[in_set]).all()


def test_a_state_without_a_learned_part_is_refused():
    for key in fit(one_tag([0.9] * 20)).state()["learned"]:
        state = fit(one_tag([0.9] * 20)).state()
        del state["learned"][key]
        with pytest.raises(InvalidState, match=f"'learned.{key}' is not there"):
            saved.load_part(state, name="calib")


def test_the_rank_is_exact():
    for alpha in ("0.1", "0.3", "0.05", "0.45", "0.7", "0.9", "0.001", "1e-05"):
        for n in range(300):
            assert quantile_rank(n, float(alpha)) == math.ceil((n + 1) * (1 - Fraction(alpha)))
    # In floating point 1 - 0.7 is above 0.3, and of 9 tokens the fourth would be taken for the third.
    assert quantile_rank(9, 0.7) == 3
    assert math.ceil((9 + 1) * (1 - 0.7)) == 4


# Coverage on held-out tokens, with known truth


WIDE = Groups(("a", "b"), np.array([0, 0, 1, 1]))


def drawn(rng: np.random.Generator, n: int) -> Tokens:
    """n tokens with 4 tags, the last two of them harder, gold drawn from known chances. Scores are far too sure, entries below .01 left out."""
    common = np.array([1.5, 1.0, 0.3, 0.3])
    logits = rng.normal(0.0, 1.0, (n, 4)) * np.array([2.0, 2.0, 1.0, 1.0]) + common
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    gold = (rng.random((n, 1)) > np.cumsum(chances, axis=1)).sum(axis=1).clip(max=3)
    scores = chances**2 / (chances**2).sum(axis=1, keepdims=True)
    rows, tags = np.nonzero(scores >= 0.01)
    return Tokens(rows, tags, scores[rows, tags], gold)


def covered(fitted: ConformalSets, asked: Tokens) -> np.ndarray:
    """Whether each token's set holds its gold tag."""
    inside, _ = fitted.predict(*asked.entries, len(asked.gold))
    hit = inside & (asked.tags == asked.gold[asked.rows])
    return np.bincount(asked.rows[hit], minlength=len(asked.gold)) > 0


def condition_of(asked: Tokens, coverage: str) -> np.ndarray:
    if coverage == "marginal":
        return np.zeros(len(asked.gold), dtype=np.intp)
    if coverage == "tag":
        return asked.gold
    dense = np.zeros((len(asked.gold), 4))
    dense[asked.rows, asked.tags] = asked.scores
    return WIDE.of_tag[dense.argmax(axis=1)]


def excess_coverage(coverage: str, judged_by: str, alpha: float = 0.2, n_sets: int = 250) -> np.ndarray:
    """Coverage minus 1 - alpha under each condition of `judged_by`, shape (n_sets, n_conditions); NaN where no token is under it."""
    rng = np.random.default_rng(17)
    n_conditions = {"marginal": 1, "group": 2, "tag": 4}[judged_by]
    found = np.full((n_sets, n_conditions), np.nan)
    for i in range(n_sets):
        fitted = fit(drawn(rng, 200), alpha, coverage, 1, groups=WIDE)
        asked = drawn(rng, 200)
        held, condition = covered(fitted, asked), condition_of(asked, judged_by)
        sizes = np.bincount(condition, minlength=n_conditions)
        with np.errstate(invalid="ignore"):
            found[i] = np.bincount(condition, weights=held, minlength=n_conditions) / sizes - (1 - alpha)
    return found


@every_coverage
def test_held_out_tokens_are_covered_as_promised(coverage):
    found = excess_coverage(coverage, coverage)
    mean = np.nanmean(found, axis=0)
    error = np.nanstd(found, axis=0) / np.sqrt(len(found))
    # Never below 1 - alpha, and above it by at most 1 / (n + 1): the rarest tag has 28 of the 200 tokens, 14 at the least.
    assert (mean > -4 * error).all()
    assert (mean < 1 / 20 + 4 * error).all()
    assert (error < 0.01).all()


def test_marginal_sets_do_not_cover_every_tag_and_group():
    # What coverage by tag and by group are for, and a proof that the simulation sees a condition that is not met.
    for judged_by, least in (("tag", -0.1), ("group", -0.02)):
        found = excess_coverage("marginal", judged_by)
        mean = np.nanmean(found, axis=0)
        assert mean.min() < least
        assert (mean / (np.nanstd(found, axis=0) / np.sqrt(len(found)))).min() < -5


def test_the_mean_coverage_is_the_rank_over_n_plus_one():
    # Scores without ties: exactly k / (n + 1).
    rng = np.random.default_rng(18)
    found = []
    for _ in range(2000):
        fitted = fit(one_tag(rng.random(25)), 0.1)
        found.append(fitted.of_all_.values[0])  # the chance that a uniform nonconformity is at most this
    exact = quantile_rank(25, 0.1) / 26
    assert abs(np.mean(found) - exact) < 4 * np.std(found) / np.sqrt(2000)


# Refusals


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, float("nan"), True, "0.1", None])
def test_an_alpha_out_of_range_is_refused(alpha):
    with pytest.raises(CalibError, match=r"\[C001\] alpha must be a number above 0 and below 1"):
        ConformalSets(alpha)


def test_other_settings_out_of_range_are_refused():
    with pytest.raises(CalibError, match=r"\[C001\] coverage must be one of marginal, group, tag, but 'label' was given"):
        ConformalSets(coverage="label")
    with pytest.raises(CalibError, match=r"\[C001\] nonempty must be true or false, but 1 was given"):
        ConformalSets(nonempty=1)
    with pytest.raises(CalibError, match=r"\[C001\] min_tokens must be a whole number of at least 1"):
        ConformalSets(min_tokens=0)


def test_sets_that_are_not_fitted_raise_c004():
    empty = of_lists([], [])
    for coverage in COVERAGES:
        with pytest.raises(CalibError, match=r"\[C004\] ConformalSets is not fitted yet"):
            ConformalSets(coverage=coverage).predict(*empty.entries, 0)
    for ask in (ConformalSets().state, ConformalSets().group_cuts, ConformalSets().tag_cuts, ConformalSets().unreached):
        with pytest.raises(CalibError, match=r"\[C004\]"):
            ask()


@pytest.mark.parametrize(
    ("rows", "tags", "scores", "code"),
    [
        ([0], [0], [1.2], r"\[C001\] scores"),
        ([0], [0], [float("nan")], r"\[C001\] scores"),
        ([1], [0], [0.5], r"\[C001\] rows must be tokens in \[0, 1\)"),
        ([-1], [0], [0.5], r"\[C001\] rows"),
        ([0], [-1], [0.5], r"\[C001\] tags must be columns"),
        ([0, 0], [0], [0.5], r"\[C002\] A set of entries needs one row for every score"),
        ([0], [], [0.5], r"\[C002\] A set of entries needs one tag for every score"),
    ],
)
def test_bad_entries_are_refused(rows, tags, scores, code):
    with pytest.raises(CalibError, match=code):
        ConformalSets().fit(rows, tags, scores, [0], GROUPS)
    with pytest.raises(CalibError, match=code):
        fit(one_tag([0.9])).predict(rows, tags, scores, 1)


def test_gold_that_is_no_column_is_refused():
    with pytest.raises(CalibError, match=r"\[C001\] gold must be columns, -1 or -2, but -3 was given"):
        ConformalSets().fit([0], [0], [0.5], [-3], GROUPS)
