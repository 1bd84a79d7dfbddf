"""Tables and claims from the files of a run, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from frame import between, head, row

from spacy_calib.types import Floats

from .claims import NAMES, TABLE_2, TABLE_3, Claim, crf_claims, learner_claims, over_folds, repair_claims, way_claims
from .judge import FIRST, WAYS, Quarters, Sampled, ece_of, f_measure, sample_counts, sample_ways, wrong_percent
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
    def claims(self) -> dict[str, list[Claim]]:
        """By the title of a table."""
        made = list(self.f_claims)
        if ("cw", "kd_pc") in self.figures:
            made += [*crf_claims(self.corpus, self.f_split, self.wrong), *way_claims(self.figures, self.random["cw"])]
        return {"Claims": made, "Calibration on top": list(repair_claims(self.figures, self.after))}


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
    for title, claims in found.claims.items():
        if claims:
            print(f"\n{title}\n")
            head("| claim | difference | 95 % | |")
        for one in claims:
            form = f"+.{one.digits}f"
            bounds = between(one.difference.interval, form)
            row(one.words, f"{one.difference.estimate:{form}}", bounds, one.difference.verdict)


def _show_learners(found: Found) -> None:
    print()
    head("| learner | folds | F | 95 % | paper | AROW - it, over folds |")
    first = found.f_folds.get("arow", [])
    for rule in (one for one in RULES if one in found.f):
        n = len(found.f_folds[rule])
        apart = over_folds(first[:n], found.f_folds[rule][: len(first)])
        beside = between(apart, "+.4f") if rule != "arow" and np.isfinite(apart[0]) else "-"
        own = found.f[rule]
        row(NAMES[rule], n, f"{own.estimate:.4f}", between(own.interval), f"{TABLE_2[found.corpus][rule]:.3f}", beside)


def _show_split(found: Found) -> None:
    print()
    head("| learner | F | paper | wrong words | paper |")
    for name, (f, wrong) in TABLE_3[found.corpus].items():
        if name in found.wrong:
            ours = f"{found.f_split[name].estimate:.4f}", f"{found.wrong[name].estimate:.2f} %"
            row(NAMES[name], ours[0], f"{f:.3f}", ours[1], f"{wrong:.2f} %")


def _show_ways(found: Found) -> None:
    print()
    titles = f"average precision | wrong of first {FIRST:,} | RMSE | after | sure - right | log loss | after | ECE | after |"
    head(f"| learner | confidence | {titles}", 2)
    for learner in ("cw", "crf"):
        if learner in found.random:
            row(NAMES[learner], "random", f"{found.random[learner].estimate:.3f}", *"-" * 8)
        for way in (one for one in WAYS if (learner, one) in found.figures):
            name = learner, way
            one, after = ({key: own.estimate for key, own in of[name].items()} for of in (found.figures, found.after))
            errors = (f"{ece_of(ways[name]):.4f}" for ways in (found.quarters.ways, found.quarters.after))
            rmse = f"{one['rmse']:.3f}", f"{after['rmse']:.3f}", f"{one['too_sure']:+.4f}"
            losses = f"{one['log_loss']:.4f}", f"{after['log_loss']:.4f}"
            row(NAMES[learner], NAMES[way], f"{one['average_precision']:.3f}", f"{one['found']:,.0f}", *rmse, *losses, *errors)


def show_active(folder: Path, corpus: str, words: Sequence[int] = (5_000, 10_000, 14_000)) -> dict[str, Any]:
    """Print F at so many words labelled, the mean over seeds. RETURNS: The mean curves by way."""
    curves = active_curves(folder, corpus)
    if not curves:
        return {}
    seeds = len(next(iter(curves.values())))
    print(f"\nActive learning, {corpus}: F after so many words, mean of {seeds} seeds\n")
    head(f"| way | {' | '.join(f'{n:,}' for n in words)} |")
    found = {}
    for way, of_seeds in curves.items():
        at = np.mean([np.interp(words, curve[:, 0], curve[:, 1], right=np.nan) for curve in of_seeds], axis=0)
        row(way.replace("_", " "), *("-" if np.isnan(f) else f"{f:.3f}" for f in at))
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
            "claims": {title: [claim.row() for claim in claims] for title, claims in one.claims.items()},
            "notes": one.quarters.notes,
        }
        for one in found
    }


def _plain(one: Sampled) -> list[float]:
    return [one.estimate, *one.interval]


def _plain_ways(figures: Mapping[tuple[str, str], dict[str, Sampled]]) -> dict[str, Any]:
    return {" ".join(name): {key: _plain(one) for key, one in values.items()} for name, values in figures.items()}
