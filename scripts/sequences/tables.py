"""Tables and claims from the files of a run, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spacy_calib.types import Floats

from .claims import NAMES, TABLE_2, TABLE_3, Claim, crf_claims, learner_claims, over_folds, repair_claims, way_claims
from .judge import (
    FIRST,
    WAYS,
    Quarters,
    Sampled,
    ece_of,
    f_measure,
    sample_counts,
    sample_ways,
    wrong_percent,
)
from .learning import RULES
from .runs import read_job


@dataclass(frozen=True, eq=False)
class Found:
    """All numbers of one corpus.

    f (dict): Of each learner over its folds. f_folds (dict): Of each fold. f_claims (list): Of learners. quarters (Quarters): Of confidence.
    f_split, wrong (dict): Of CW and CRF there. figures, after (dict): Of each (learner, way), before and after calibration.
    random (dict): Learner -> share of wrong words.
    """

    corpus: str
    f: dict[str, Sampled]
    f_folds: dict[str, list[float]]
    f_claims: list[Claim]
    quarters: Quarters
    f_split: dict[str, Sampled]
    wrong: dict[str, Sampled]
    figures: dict[tuple[str, str], dict[str, Sampled]]
    after: dict[tuple[str, str], dict[str, Sampled]]
    random: dict[str, Sampled]

    @property
    def claims(self) -> list[Claim]:
        made = list(self.f_claims)
        if ("cw", "kd_pc") in self.figures:
            made += [*crf_claims(self.corpus, self.f_split, self.wrong), *way_claims(self.figures, self.random["cw"])]
        return made

    @property
    def all_claims(self) -> dict[str, list[Claim]]:
        """By the title of a table."""
        passive = list(way_claims(self.figures, self.random["pa"], "pa")) if ("pa", "delta") in self.figures else []
        return {
            "Claims": self.claims,
            "Claims, with PA": passive,
            "Calibration on top": list(repair_claims(self.figures, self.after)),
        }


def read_found(folder: Path, corpus: str, n_samples: int) -> Found:
    quarters = Quarters.read(folder, corpus)
    counts: dict[str, list[Floats]] = {}
    for path in (*sorted(folder.glob(f"learners-{corpus}-*.npz")), *sorted(folder.glob(f"pa-{corpus}-*.npz"))):
        arrays, _ = read_job(path)
        for name, values in arrays.items():
            if name.startswith("counts_"):
                counts.setdefault(name[len("counts_") :], []).append(values)
    f_folds = {name: [float(f_measure(part.sum(axis=0))) for part in parts] for name, parts in counts.items()}
    wrong = sample_counts(quarters.counts, wrong_percent, n_samples)
    random = {name: Sampled(one.estimate / 100, one.draws / 100) for name, one in wrong.items()}
    return Found(
        corpus, sample_counts(counts, f_measure, n_samples), f_folds, list(learner_claims(counts, n_samples)),
        quarters, sample_counts(quarters.counts, f_measure, n_samples), wrong,
        sample_ways(quarters.ways, n_samples), sample_ways(quarters.after, n_samples), random,
    )  # fmt: skip


def show(found: Found) -> None:
    """Print all tables of a corpus."""
    print(f"\n## {found.corpus}")
    if found.f:
        _show_learners(found)
    if found.figures:
        _show_split(found)
        _show_ways(found)
    for title, claims in found.all_claims.items():
        if claims:
            print(f"\n{title}\n\n| claim | difference | 95 % | |\n| --- | ---: | ---: | --- |")
            for one in claims:
                low, high = one.difference.interval
                digits = one.digits
                print(
                    f"| {one.words} | {one.difference.estimate:+.{digits}f} | {low:+.{digits}f} to {high:+.{digits}f} "
                    f"| {one.difference.verdict} |"
                )


def _show_learners(found: Found) -> None:
    print("\n| learner | folds | F | 95 % | paper | AROW - it, over folds |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for rule in RULES:
        if rule in found.f:
            low, high = found.f[rule].interval
            n = len(found.f_folds[rule])
            first = found.f_folds.get("arow", [])
            apart = over_folds(first[:n], found.f_folds[rule][: len(first)])
            print(
                f"| {NAMES[rule]} | {n} | {found.f[rule].estimate:.4f} | {low:.4f} to {high:.4f} | {TABLE_2[found.corpus][rule]:.3f} "
                f"| {f'{apart[0]:+.4f} to {apart[1]:+.4f}' if rule != 'arow' and np.isfinite(apart[0]) else '-'} |"
            )


def _show_split(found: Found) -> None:
    print("\n| learner | F | paper | wrong words | paper |\n| --- | ---: | ---: | ---: | ---: |")
    for name, (f, wrong) in TABLE_3[found.corpus].items():
        if name in found.wrong:
            print(
                f"| {NAMES[name]} | {found.f_split[name].estimate:.4f} | {f:.3f} | {found.wrong[name].estimate:.2f} % | {wrong:.2f} % |"
            )


def _show_ways(found: Found) -> None:
    heads = f"| average precision | wrong of first {FIRST:,} | RMSE | after | sure - right | log loss | after | ECE | after |"
    print(f"\n| learner | confidence {heads}\n| --- | --- {'| ---: ' * 9}|")
    for learner in ("cw", "crf", "pa"):
        if learner in found.random:
            print(f"| {NAMES[learner]} | random | {found.random[learner].estimate:.3f} |" + " - |" * 8)
        for way in WAYS:
            name = learner, way
            if name in found.figures:
                one, after = found.figures[name], found.after[name]
                raw, new = (ece_of(ways[name]) for ways in (found.quarters.ways, found.quarters.after))
                print(
                    f"| {NAMES[learner]} | {NAMES[way]} | {one['average_precision'].estimate:.3f} | {one['found'].estimate:,.0f} "
                    f"| {one['rmse'].estimate:.3f} | {after['rmse'].estimate:.3f} | {one['too_sure'].estimate:+.4f} "
                    f"| {one['log_loss'].estimate:.4f} | {after['log_loss'].estimate:.4f} | {raw:.4f} | {new:.4f} |"
                )


def show_active(folder: Path, corpus: str, words: Sequence[int] = (5_000, 10_000, 14_000)) -> dict[str, Any]:
    """Print F at so many words labelled, the mean over seeds. RETURNS: The mean curves by way."""
    curves = active_curves(folder, corpus)
    if not curves:
        return {}
    seeds = len(next(iter(curves.values())))
    print(f"\nActive learning, {corpus}: F after so many words, mean of {seeds} seeds\n")
    print("| way | " + " | ".join(f"{n:,}" for n in words) + " |\n| --- |" + " ---: |" * len(words))
    found = {}
    for way, of_seeds in curves.items():
        at = np.mean([np.interp(words, curve[:, 0], curve[:, 1], right=np.nan) for curve in of_seeds], axis=0)
        print(f"| {way.replace('_', ' ')} | " + " | ".join("-" if np.isnan(f) else f"{f:.3f}" for f in at) + " |")
        found[way] = [curve.tolist() for curve in of_seeds]
    return found


def active_curves(folder: Path, corpus: str) -> dict[str, list[Floats]]:
    """Of each way, (words labelled, F) of each seed, shape (tests, 2)."""
    found: dict[str, list[Floats]] = {}
    for path in sorted(folder.glob(f"active-{corpus}-*.npz")):
        for name, values in read_job(path)[0].items():
            found.setdefault(name.removeprefix("curve_"), []).append(values)
    return found


def numbers_of(found: Iterable[Found]) -> dict[str, Any]:
    """As plain data."""
    return {
        one.corpus: {
            "f": {name: _plain(values) for name, values in one.f.items()},
            "f_of_folds": one.f_folds,
            "f_split": {name: _plain(values) for name, values in one.f_split.items()},
            "wrong_percent": {name: _plain(values) for name, values in one.wrong.items()},
            "ways": _plain_ways(one.figures),
            "ways_calibrated": _plain_ways(one.after),
            "claims": {title: [claim.row() for claim in claims] for title, claims in one.all_claims.items()},
            "notes": one.quarters.notes,
        }
        for one in found
    }


def _plain(one: Sampled) -> list[float]:
    return [one.estimate, *one.interval]


def _plain_ways(figures: Mapping[tuple[str, str], dict[str, Sampled]]) -> dict[str, Any]:
    return {" ".join(name): {key: _plain(one) for key, one in values.items()} for name, values in figures.items()}
