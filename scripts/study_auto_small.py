"""Which rule should `--method auto` choose by where data are few and tags are many? Repeated splits by document, as Markdown.

    python scripts/study_auto_small.py --splits 20
    python scripts/study_auto_small.py ark --rules auto "matrix scaling" raw

The sets are those of scripts/quality/data.py (make them with it first): the fit and test documents of a set together, of which each split draws
about --tokens tokens to fit on and judges by the rest. The distance of a rule is its log loss (Brier score) on the rest, less that of the
best of all candidates there, in percent of the raw loss; it should stay within 1 %. SMCE and mean GMCE (five tag frequency groups) stand
beside the 95 % quantile that true scores have by chance. Which of the rules is best is said by the odd splits and judged by the even ones.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from quality.data import DataSet, Split, load
from quality.judge import LOSSES, MARGIN, figures, floors
from quality.ours import Task, applied
from quality_table import default_cache
from tqdm import tqdm

from spacy_calib.calibration.auto import grouping_of
from spacy_calib.calibration.candidates import Candidate, ScaledScores, Trial, choose, select_method
from spacy_calib.calibration.registered import recalibrators, scalings
from spacy_calib.calibration.scaling import Scaling
from spacy_calib.calibration.tag_offsets import TagOffsets
from spacy_calib.calibration.token_fit import Chosen, fit_tokens
from spacy_calib.context.words import SHAPES, Words
from spacy_calib.pipe.registered import make_selector
from spacy_calib.types import Floats

SETS = ("streusle", "ark")
# A candidate that loses more than the best by so many standard errors in cross-validation is taken to be no candidate for the best.
FAR = 3.0
METHODS, SCALINGS = recalibrators(), scalings()
# The scalings that `auto` tries.
AUTO = tuple(make_selector().scalings)
HEADER = "| rule | log loss: % from the best | worst | outside | Brier: % from the best | worst | outside | SMCE | by chance | mean GMCE | by chance |"


# Splits


def joined(data: DataSet) -> Split:
    """The fit and test part of a set as one; documents keep apart."""
    first, second = data.fit, data.test
    moved = np.asarray(second.documents) + int(first.documents.max()) + 1
    return Split(
        np.concatenate([first.logits, second.logits]),
        np.concatenate([first.gold, second.gold]),
        np.concatenate([first.documents, moved]),
        Words.joined([first.words, second.words]),
    )


def split(data: DataSet, whole: Split, n_tokens: int, seed: int) -> DataSet:
    """The set with other documents to fit on, drawn until they hold so many tokens."""
    documents, lengths = np.unique(whole.documents, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(documents))
    n = int(np.searchsorted(np.cumsum(lengths[order]), n_tokens)) + 1
    fits = np.isin(whole.documents, documents[order[:n]])
    return replace(data, fit=whole.take(fits), test=whole.take(~fits))


def made_up(n: int = 2400, n_tags: int = 8) -> DataSet:
    """Tokens of a head that is twice as sure as it should be, in documents of 20."""
    rng = np.random.default_rng(0)

    def part() -> Split:
        true = rng.normal(0, 1.5, (n, n_tags)) - np.arange(n_tags) / 2
        chances = np.exp(true) / np.exp(true).sum(axis=1, keepdims=True)
        gold = (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        forms, flags = np.arange(n).astype(np.uint64) % 40, np.zeros(n, bool)
        words = Words(np.arange(0, n + 1, 20), forms, forms, dict.fromkeys(SHAPES, flags), ~flags)
        return Split((2 * true).astype(np.float32), gold, np.arange(n) // 20, words)

    fit, test = part(), part()
    counts = tuple(np.bincount(fit.gold, minlength=n_tags).tolist())
    return DataSet("made-up", "Made up", tuple("ABCDEFGHIJ"[:n_tags]), counts, False, 0.5, fit, test)


# Candidates and rules


class Trials:
    """All candidates on one split: what cross-validation says of them, and their scores on the rest.

    scalings (dict): Name -> (fitted, the score of each fit pair by scalings that did not see its document).
    """

    def __init__(self, task: Task):
        self.task = task
        self.selector = make_selector(scalings=list(SCALINGS))
        data = task.data
        self.scalings: dict[str, tuple[Scaling | None, Floats]] = {"": (None, data.pairs.scores)}
        for name, prototype in SCALINGS.items():
            own = prototype.clone()
            self.scalings[name] = own, own.cross_fit(data.pairs, data.documents, data.n_tags, self.selector.n_folds)

    @cache  # noqa: B019  (a split's trials live as long as the split)
    def select(self, scalings: tuple[str, ...] = tuple(SCALINGS)) -> list[Trial]:
        """The trials of these scalings, and of none, the best first."""
        data = self.task.data
        kept = data.kept
        scaled = [
            ScaledScores(name, held[kept], own.size(), own.biased)
            for name, (own, held) in self.scalings.items()
            if own is not None and name in scalings
        ]
        return select_method(
            data.pairs.take(kept),
            data.documents[kept],
            lambda number: self.task.group(grouping_of(number)),
            self.selector.methods,
            self.selector.numbers,
            n_folds=self.selector.n_folds,
            scaled=scaled,
        ).trials

    @cache  # noqa: B019
    def scores(self, candidate: Candidate) -> Floats:
        """Of the test pairs, fitted on all fit documents."""
        own, held = self.scalings[candidate.scaling]
        grouping = grouping_of(candidate.n_groups)
        offsets = TagOffsets() if candidate.offsets else None
        chosen = Chosen(grouping, METHODS[candidate.method], offsets, own, held)
        return applied(fit_tokens(self.task.data, chosen, self.task.group(grouping)).calibration, self.task)


def any_scaling(trials: Sequence[Trial]) -> Candidate:
    """The smallest of all that are within one standard error of the best, whatever their scaling."""
    near = [trial for trial in trials if trial.difference <= trial.error]
    return min(near, key=lambda trial: (trial.size, trial.loss)).candidate


# Name -> which candidate a rule takes
CHOICES: dict[str, Callable[[Trials], Candidate]] = {
    "auto": lambda held: choose(held.select(AUTO)),
    "auto, best map": lambda held: held.select(AUTO)[0].candidate,
    "auto of all scalings": lambda held: choose(held.select()),
    "auto of all scalings, best map": lambda held: held.select()[0].candidate,
    "smallest within one error": lambda held: any_scaling(held.select()),
}
FIXED = {
    **{f"{name} scaling": Candidate(5, "identity", False, name) for name in SCALINGS},
    "TFG-5 isotonic": Candidate(5, "isotonic", False),
    "raw": Candidate(5, "identity", False),
}


# Judging


@dataclass(frozen=True)
class Judged:
    """A rule on a split, or (the fields being means) on several.

    log_loss, brier (float): Distance from the best candidate of the split, in percent of the raw loss. smce, mean_gmce (float), smce_floor,
        gmce_floor (float): With the 95 % quantiles that perfectly calibrated scores like these have by chance.
    """

    log_loss: float
    brier: float
    smce: float
    smce_floor: float
    mean_gmce: float
    gmce_floor: float


def judge(task: Task, rules: Sequence[str]) -> dict[str, Judged]:
    """The rules on one split."""
    held, test, groups = Trials(task), task.test, task.groups
    raw = figures(test, test.scores, groups)
    near = [trial.candidate for trial in held.select() if trial.difference <= FAR * trial.error]
    taken = {rule: FIXED[rule] if rule in FIXED else CHOICES[rule](held) for rule in rules}
    least = {
        name: min(float(loss(held.scores(one), test.hits).mean()) for one in {*near, *taken.values(), *FIXED.values()})
        for name, loss in LOSSES.items()
    }
    found: dict[Candidate, Judged] = {}
    for one in set(taken.values()):
        scores = held.scores(one)
        of, chance = figures(test, scores, groups), floors(test, scores, groups)
        far = {name: 100 * (getattr(of, name) - least[name]) / getattr(raw, name) for name in LOSSES}
        found[one] = Judged(far["log_loss"], far["brier"], of.smce, chance["smce"], of.mean_gmce, chance["mean_gmce"])
    return {rule: found[one] for rule, one in taken.items()}


def show(splits: Sequence[Mapping[str, Judged]], rules: Sequence[str]) -> None:
    """A table with a line for each rule."""
    print(HEADER + "\n" + "| --- " * HEADER.count(" | ") + "| --- |")
    for rule in rules:
        each = np.array([astuple(one[rule]) for one in splits])
        mean, worst, outside = each.mean(axis=0), each.max(axis=0), (each > 100 * MARGIN).sum(axis=0)
        losses = " | ".join(f"{mean[k]:.3f} | {worst[k]:.3f} | {outside[k]}" for k in range(2))
        print(f"| {rule} | {losses} | {' | '.join(f'{value:.4f}' for value in mean[2:])} |")


def best_of(splits: Sequence[Mapping[str, Judged]], rules: Sequence[str]) -> str:
    """The rule of the least mean distance by log loss."""
    return min(rules, key=lambda rule: float(np.mean([one[rule].log_loss for one in splits])))


def study(data: DataSet, options: argparse.Namespace) -> None:
    """Print what the rules do on a set."""
    whole = joined(data)
    splits = []
    for seed in tqdm(range(options.splits), desc=data.name, disable=None, leave=False):
        splits.append(judge(Task(split(data, whole, options.tokens, seed)), options.rules))
    print(f"\n{data.name}: {len(data.labels)} tags, {options.splits} splits, about {options.tokens:,} tokens to fit on\n")
    show(splits, options.rules)
    odd, even = splits[1::2], splits[::2]
    if odd:
        best = best_of(odd, options.rules)
        print(f"\nBest on the odd splits: {best}. On the even ones:\n")
        show(even, list(dict.fromkeys([best, *(rule for rule in options.rules if rule == "auto")])))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", default=SETS, metavar="NAME", help=f"Data sets; {' and '.join(SETS)} where none is named"
    )
    parser.add_argument("--splits", type=int, default=20, help="Splits of each set")
    parser.add_argument("--tokens", type=int, default=5000, help="To fit on")
    known = [*CHOICES, *FIXED]
    parser.add_argument("--rules", nargs="+", choices=known, default=known, metavar="RULE", help=f"Of {', '.join(known)}")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="Folder in which the sets were made")
    parser.add_argument("--made-up", action="store_true", help="Made-up tokens of few tags instead of the sets")
    options = parser.parse_args()
    if options.splits < 1:
        parser.error("--splits: at least 1")
    if options.made_up:
        study(made_up(), options)
        return 0
    for name in options.names:
        folder = options.cache / "quality" / "sets" / name
        if not folder.is_dir():
            raise SystemExit(f"There is no data set {name!r} in {folder.parent}; scripts/quality/data.py makes it.")
        study(load(folder), options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
